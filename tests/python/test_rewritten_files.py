"""Files are rewritten when a feature is dropped (PROTOCOL, "Deletion Vectors", "Type Widening", "Column Mapping", "Row
Tracking").
"""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from deltalog import DeltaTable, Field, InvalidArgumentError, Schema, write_deltalake
from tests.python.alter_support import created, rows
from tests.python.place import actions, commit_file

VECTORS = {"delta.enableDeletionVectors": "true"}


def delete(path: Path, predicate: str) -> None:
    nothing = pa.table(DeltaTable(path).to_arrow(predicate="1 = 0")).slice(0, 0)
    write_deltalake(path, nothing, mode="overwrite", predicate=predicate)


def commit_of(path: Path, operation: str) -> list[dict[str, Any]]:
    """Returns the actions of the only commit with this operation."""
    (found,) = [
        lines
        for lines in (actions(path, version) for version in range(DeltaTable(path).version() + 1))
        if any(line.get("commitInfo", {}).get("operation") == operation for line in lines)
    ]
    return found


def of(lines: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [line[name] for line in lines if name in line]


def sorted_rows(path: Path, **options: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pa.table(DeltaTable(path).to_arrow(**options)).to_pylist()
    return sorted(found, key=str)


def test_restored_files_are_rewritten(tmp_path: Path) -> None:
    """PROTOCOL, "Deletion Vectors": readers that do not know the feature would apply the tombstone of a file with a
    vector to the same file without one.
    """
    created(tmp_path, configuration=VECTORS)
    before = sorted_rows(tmp_path)
    delete(tmp_path, "id = 1")
    lines = actions(tmp_path, 1)
    (add,) = of(lines, "add")
    (removed,) = of(lines, "remove")
    # These actions are what a commit that restores version 0 contains.
    tombstone = {name: value for name, value in add.items() if name not in ("stats", "tags")}
    tombstone |= {"deletionTimestamp": add["modificationTime"], "extendedFileMetadata": True}
    live = {
        name: value
        for name, value in removed.items()
        if name not in ("deletionTimestamp", "extendedFileMetadata")
    }
    live |= {"modificationTime": add["modificationTime"]}
    assert "deletionVector" in tombstone
    assert "deletionVector" not in live
    restored = [{"commitInfo": {"operation": "RESTORE"}}, {"remove": tombstone}, {"add": live}]
    commit_file(tmp_path, 2).write_text("\n".join(map(json.dumps, restored)))
    table = DeltaTable(tmp_path)
    assert sorted_rows(tmp_path) == before
    table.alter.drop_feature("deletionVectors")
    assert sorted_rows(tmp_path) == before
    assert add["path"] not in "".join(DeltaTable(tmp_path).file_uris())


def test_only_files_with_vectors_are_rewritten(tmp_path: Path) -> None:
    """PROTOCOL, "Add File and Remove File": only files with vectors are rewritten. The rows stay the same, so the
    change data feed has no changes.
    """
    data = pa.table(
        {"id": pa.array(range(10), pa.int64()), "p": [f"p/ {number % 2}" for number in range(10)]}
    )
    feed = {"delta.enableChangeDataFeed": "true"}
    created(tmp_path, data, partition_by=["p"], configuration={**VECTORS, **feed})
    write_deltalake(tmp_path, data, mode="append")
    delete(tmp_path, "id in (0, 2, 5) and p = 'p/ 0'")
    table = DeltaTable(tmp_path)
    before, paths = sorted_rows(tmp_path), set(table.file_uris())
    changed = len(pa.table(table.load_cdf(0)))
    version = table.alter.drop_feature("deletionVectors")
    assert sorted_rows(tmp_path) == before
    lines = commit_of(tmp_path, "REORG")
    (added,) = of(lines, "add")
    removed = of(lines, "remove")
    assert len(removed) == 2
    assert all("deletionVector" in remove for remove in removed)
    assert not any(line["dataChange"] for line in [added, *removed])
    assert (added["partitionValues"], "deletionVector" in added) == ({"p": "p/ 0"}, False)
    assert '"numRecords":6' in added["stats"]
    assert not of(lines, "cdc")
    # The files of the other partition have not changed.
    assert len(paths & set(table.file_uris())) == 2
    assert len(pa.table(table.load_cdf(0, ending_version=version))) == changed
    assert not table.verify().differences


def test_a_file_without_live_rows_is_only_removed(tmp_path: Path) -> None:
    created(tmp_path, configuration=VECTORS)
    write_deltalake(tmp_path, pa.table({"id": pa.array([3], pa.int64()), "name": ["c"]}), mode="append")
    for number in (1, 2):
        delete(tmp_path, f"name is null and id = 2 or id = {number}")
    table = DeltaTable(tmp_path)
    table.alter.drop_feature("deletionVectors")
    assert rows(table) == [{"id": 3, "name": "c"}]
    assert len(table.file_uris()) == 1


@pytest.mark.parametrize("mode", ["none", "name"])
def test_rows_keep_their_ids(tmp_path: Path, mode: str) -> None:
    """PROTOCOL, "Row Tracking": "When a row is updated or copied, the stable Row ID for this row is preserved"."""
    tracking = {"delta.enableRowTracking": "true", "delta.columnMapping.mode": mode}
    data = pa.table({"id": pa.array(range(6), pa.int64())})
    created(tmp_path, data, configuration={**VECTORS, **tracking})
    write_deltalake(tmp_path, data, mode="append")
    delete(tmp_path, "id in (1, 4)")
    before = sorted_rows(tmp_path, row_ids=True)
    table = DeltaTable(tmp_path)
    features = ["deletionVectors", *(["columnMapping"] if mode == "name" else [])]
    for feature in features:
        table.alter.drop_feature(feature)
        assert sorted_rows(tmp_path, row_ids=True) == before
    assert commit_of(tmp_path, "REORG")[0]["commitInfo"]["tags"] == {"delta.rowTracking.preserved": "true"}
    (added,) = of(commit_of(tmp_path, "REORG"), "add")
    # The file itself also gets new row ids, and has no statistics for the hidden columns with the rows' own ids.
    assert added["baseRowId"] == 12
    assert "_row-id-col" not in added["stats"]
    # Rows that are moved a second time also keep their ids.
    write_deltalake(tmp_path, data.slice(0, 1), mode="append")
    found = sorted_rows(tmp_path, row_ids=True)
    assert len({row["_row_id"] for row in found}) == len(found) == len(before) + 1


def test_older_types(tmp_path: Path) -> None:
    """PROTOCOL, "Type Widening": files, nested values and partition values with the earlier types are rewritten."""
    columns = pa.schema(
        [
            ("id", pa.int32()),
            ("day", pa.date32()),
            ("s", pa.struct([("x", pa.int8()), ("y", pa.string())])),
            ("l", pa.list_(pa.int16())),
        ]
    )
    widening = {"delta.enableTypeWidening": "true", "delta.feature.timestampNtz": "supported"}
    table = DeltaTable.create(tmp_path, columns, partition_by=["day"], configuration=widening)
    old = {"id": [1], "day": [date(2024, 2, 29)], "s": [{"x": 1, "y": "a"}], "l": [[1, None]]}
    write_deltalake(tmp_path, pa.table(old, schema=columns), mode="append")
    table.update_incremental()
    for column, wide in (
        ("id", "long"),
        ("s.x", "integer"),
        ("l.element", "integer"),
        ("day", "timestamp_ntz"),
    ):
        table.alter.widen_column(column, wide)
    new = pa.table(DeltaTable(tmp_path).to_arrow())
    write_deltalake(tmp_path, new, mode="append")
    before, kept = sorted_rows(tmp_path), len(DeltaTable(tmp_path).file_uris())
    assert (len(before), kept) == (2, 2)
    table.update_incremental()
    table.alter.drop_feature("typeWidening")
    assert sorted_rows(tmp_path) == before
    (added,) = of(commit_of(tmp_path, "REORG"), "add")
    assert added["partitionValues"]["day"].startswith("2024-02-29 00:00:00")
    in_file = pa.parquet.read_schema(next(tmp_path.rglob(added["path"].rsplit("/", 1)[-1])))
    assert in_file.field("id").type == pa.int64()
    assert in_file.field("s").type.field("x").type == pa.int32()
    assert in_file.field("l").type.value_type == pa.int32()
    assert "delta.typeChanges" not in table.schema().to_json()
    assert "typeWidening" not in (table.protocol().reader_features or [])
    # The file with the current types was not rewritten.
    assert len(of(commit_of(tmp_path, "REORG"), "remove")) == 1


@pytest.mark.parametrize("mode", ["name", "id"])
def test_physical_names(tmp_path: Path, mode: str) -> None:
    """PROTOCOL, "Column Mapping": afterwards, files, partition values and statistics have the names that users see."""
    fields = [
        ("id", pa.int64()),
        ("p", pa.string()),
        ("s", pa.struct([("x", pa.int64()), ("y", pa.string())])),
    ]
    columns = pa.schema(fields)
    table = DeltaTable.create(
        tmp_path, columns, partition_by=["p"], configuration={"delta.columnMapping.mode": mode, **VECTORS}
    )
    data = {"id": [1, 2, 3], "p": ["a", None, "a"], "s": [{"x": 1, "y": "b"}, None, {"x": None, "y": "c"}]}
    write_deltalake(tmp_path, pa.table(data), mode="append")
    table.update_incremental()
    table.alter.rename_column("s.x", "z")
    table.alter.rename_column("p", "q")
    delete(tmp_path, "id = 3")
    before = sorted_rows(tmp_path)
    table.update_incremental()
    table.alter.drop_feature("columnMapping")
    assert sorted_rows(tmp_path) == before
    lines = commit_of(tmp_path, "REMOVE COLUMN MAPPING")
    assert sorted((add["partitionValues"]["q"] or "") for add in of(lines, "add")) == ["", "a"]
    for add in of(lines, "add"):
        assert ('"z"' in add["stats"], add["dataChange"], "deletionVector" in add) == (True, False, False)
        in_file = pa.parquet.read_schema(next(tmp_path.rglob(add["path"].rsplit("/", 1)[-1])))
        assert in_file.names == ["id", "s"]
        assert b"PARQUET:field_id" not in (in_file.field("id").metadata or {})
    assert "delta.columnMapping" not in table.schema().to_json()
    assert not any(name.startswith("delta.columnMapping") for name in table.metadata().configuration)
    # Earlier versions keep their names.
    assert pa.table(DeltaTable(tmp_path, version=1).to_arrow()).column_names == ["id", "p", "s"]
    write_deltalake(tmp_path, pa.table({"id": [9], "q": ["a"]}), mode="append")
    assert len(sorted_rows(tmp_path)) == 3
    assert not DeltaTable(tmp_path).verify().differences


def test_clustering_columns_follow_their_names(tmp_path: Path) -> None:
    """PROTOCOL, "Clustered Table": the domain has the names that columns have in files."""
    columns = Schema([Field("id", "long"), Field("name", "string")])
    mapped = {"delta.columnMapping.mode": "name"}
    table = DeltaTable.create(tmp_path, columns, cluster_by=["name"], configuration=mapped)
    table.alter.drop_feature("columnMapping")
    assert table.clustering_columns() == ["name"]
    (domain,) = of(commit_of(tmp_path, "REMOVE COLUMN MAPPING"), "domainMetadata")
    assert '[["name"]]' in domain["configuration"]


def test_rows_that_other_writers_add_stay(tmp_path: Path) -> None:
    """Rows that other writers add during the drop stay. A statement through a table object that was opened before
    still finds its rows.
    """
    table = created(tmp_path, configuration=VECTORS)
    delete(tmp_path, "id = 1")
    table.update_incremental()
    write_deltalake(tmp_path, pa.table({"id": pa.array([7], pa.int64())}), mode="append")
    table.alter.drop_feature("deletionVectors")
    assert [row["id"] for row in sorted_rows(tmp_path)] == [2, 7]


def test_rules_are_not_evaluated_again(tmp_path: Path) -> None:
    """Rows are moved even if the table has a constraint that cannot be evaluated here, because existing rows are not
    checked again.
    """
    supported = {"delta.feature.checkConstraints": "supported"}
    table = created(tmp_path, configuration={**VECTORS, **supported})
    delete(tmp_path, "id = 1")
    first = commit_file(tmp_path, 0)
    rule = '"configuration":{"delta.constraints.c":"soundex(name) = 1",'
    first.write_text(first.read_text().replace('"configuration":{', rule))
    for checksum in (tmp_path / "_delta_log").glob("*.crc"):
        checksum.unlink()
    table = DeltaTable(tmp_path)
    with pytest.raises(InvalidArgumentError, match="cannot be evaluated"):
        write_deltalake(tmp_path, pa.table({"id": pa.array([5], pa.int64())}), mode="append")
    table.alter.drop_feature("deletionVectors")
    assert rows(table) == [{"id": 2, "name": None}]
