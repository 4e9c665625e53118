"""Tables with Iceberg compatibility (PROTOCOL, "Iceberg Compatibility V1", "Iceberg Compatibility V2"; protocol RFC
"Iceberg Compatibility V3").
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deltalog import ArrayType, DeltaTable, DistributedWrite, Field, begin_write, write_deltalake
from deltalog.errors import CommitConflictError, InvalidArgumentError
from tests import variants
from tests.crafted import CraftedTable, field
from tests.iceberg import file_ids, log_ids
from tests.python.alter_support import refused
from tests.python.interfering import overtaken
from tests.python.place import actions

V1 = "delta.enableIcebergCompatV1"
V2 = "delta.enableIcebergCompatV2"
V3 = "delta.enableIcebergCompatV3"
TRACKED = "delta.enableRowTracking"
MAPPED = "delta.columnMapping.mode"

FLAT = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "p": ["a", "", None]})
INNER = pa.struct([("x", pa.int64()), ("deep", pa.list_(pa.string()))])
LISTS = pa.array([[[1, None], []], None, [None]], pa.list_(pa.list_(pa.int32())))
MAPS = pa.array([[("k", {"x": 1, "deep": ["a"]})], [], None], pa.map_(pa.string(), INNER))
NESTED = FLAT.append_column("l", LISTS).append_column("m", MAPS)


def created(path: Path, version: str = V2, data: pa.Table = NESTED, **properties: str) -> DeltaTable:
    write_deltalake(path, data, partition_by=["p"], configuration={version: "true", **properties})
    return DeltaTable(path)


def begun(path: Path) -> DistributedWrite:
    write = begin_write(path, mode="append")
    assert isinstance(write, DistributedWrite)
    return write


def rows(table: DeltaTable) -> list[dict[str, Any]]:
    return sorted(pa.table(table.to_arrow()).to_pylist(), key=lambda row: row["id"])


def check_files(table: DeltaTable) -> None:
    """Checks that each file has the field ids of the log, and that each column and each part of a column has a
    different id.
    """
    expected = log_ids(table)
    assert len(set(expected.values())) == len(expected)
    assert max(expected.values()) <= int(table.metadata().configuration["delta.columnMapping.maxColumnId"])
    for path in table.file_uris():
        found = file_ids(Path(path.removeprefix("file://")))
        assert found.items() <= expected.items(), path


@pytest.mark.parametrize(("version", "data"), [(V1, FLAT), (V2, NESTED), (V3, NESTED)])
def test_a_new_table_keeps_to_the_rules(tmp_path: Path, version: str, data: pa.Table) -> None:
    table = created(tmp_path, version, data)
    feature = version.replace("delta.enableI", "i")
    assert table.protocol().reader_features == ["columnMapping"]
    assert {"columnMapping", feature} <= set(table.protocol().writer_features or [])
    assert table.metadata().configuration[MAPPED] == "name"
    write_deltalake(tmp_path, data, mode="append")
    table = DeltaTable(tmp_path)
    check_files(table)
    ids = log_ids(table)
    assert len(ids) == (2 if version == V1 else 11)
    # Partition columns are "placed *after* the data columns". As in the log, an empty string is NULL in them.
    partition = json.loads(table.schema().to_json())["fields"][1]["metadata"][
        "delta.columnMapping.physicalName"
    ]
    for path in table.file_uris():
        file = pq.read_table(path.removeprefix("file://"), partitioning=None)
        assert file.column_names[-1] == partition
        assert set(file.column(partition).to_pylist()) <= {"a", None}
    expected = [{**row, "p": row["p"] or None} for row in data.to_pylist() for _ in range(2)]
    assert rows(table) == expected
    assert all(json.loads(add["stats"])["numRecords"] for add in adds(tmp_path, 1))


def adds(path: Path, version: int) -> list[dict[str, Any]]:
    return [line["add"] for line in actions(path, version) if "add" in line]


def test_new_columns_get_ids_for_their_parts(tmp_path: Path) -> None:
    table = created(tmp_path)
    before = log_ids(table)
    table.alter.add_columns([Field("added", ArrayType("long", True))])
    table.alter.rename_column("l", "renamed")
    more = NESTED.rename_columns(["id", "p", "renamed", "m"]).append_column(
        "merged",
        pa.array([[("a", [1])], None, None], pa.map_(pa.string(), pa.list_(pa.int64()))),
    )
    write_deltalake(tmp_path, more, mode="append", schema_mode="merge")
    table = DeltaTable(tmp_path)
    after = log_ids(table)
    # These are the ids of "added" and "added.element", and of "merged", its key, its value and the value's element.
    assert before.items() <= after.items()
    assert len(after) == len(before) + 2 + 4
    check_files(table)
    found = [file_ids(Path(path.removeprefix("file://"))) for path in table.file_uris()]
    assert {len(ids) for ids in found} == {len(before), len(after)}
    assert len(rows(table)) == 6


def test_an_overwritten_schema_gets_other_ids(tmp_path: Path) -> None:
    table = created(tmp_path)
    before = set(log_ids(table).values())
    new = NESTED.append_column("more", pa.array([[1.5], None, []], pa.list_(pa.float64())))
    write_deltalake(tmp_path, new, mode="overwrite", schema_mode="overwrite")
    table = DeltaTable(tmp_path)
    assert not before & set(log_ids(table).values())
    check_files(table)
    assert len(table.file_uris()) == 2


def test_files_of_several_processes_have_the_same_ids(tmp_path: Path) -> None:
    created(tmp_path)
    with begun(tmp_path) as write:
        write.commit([write.task.write(NESTED.slice(0, 1)), write.task.write(NESTED.slice(1))])
    table = DeltaTable(tmp_path)
    check_files(table)
    assert len(rows(table)) == 6
    assert all(add["tags"] == {"ICEBERG_COMPAT_VERSION": "2"} for add in adds(tmp_path, 1))


@pytest.mark.parametrize(
    ("properties", "data", "match"),
    [
        ({V1: "true"}, NESTED, r"'l' has the type array"),
        ({V1: "true", V2: "true"}, FLAT, "exclude each other"),
        ({V2: "true", MAPPED: "none"}, FLAT, "not mapped"),
        ({V1: "true", "delta.feature.deletionVectors": "supported"}, FLAT, "'deletionVectors'"),
        ({V2: "true", "delta.enableDeletionVectors": "true"}, FLAT, "deletion vectors are on"),
        ({V3: "true", TRACKED: "false"}, FLAT, "the rows of the table have no ids"),
        ({V3: "true", V2: "true"}, FLAT, "exclude each other"),
    ],
)
def test_what_a_version_forbids_is_refused(
    tmp_path: Path, properties: dict[str, str], data: pa.Table, match: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=match):
        write_deltalake(tmp_path / "t", data, configuration=properties)
    assert not (tmp_path / "t" / "_delta_log").exists()


def test_changes_that_a_version_forbids_are_refused(tmp_path: Path) -> None:
    flat = created(tmp_path / "v1", V1, FLAT)
    with refused(tmp_path / "v1", InvalidArgumentError, "'l' has the type array"):
        flat.alter.add_columns([Field("l", ArrayType("long", True))])
    with refused(tmp_path / "v1", InvalidArgumentError, "supports the feature 'deletionVectors'"):
        flat.alter.add_feature("deletionVectors")
    with refused(tmp_path / "v1", InvalidArgumentError, "'l' has the type array"):
        write_deltalake(tmp_path / "v1", NESTED, mode="append", schema_mode="merge")
    table = created(tmp_path / "v2", V2, FLAT, **{"delta.enableTypeWidening": "true"})
    with refused(tmp_path / "v2", InvalidArgumentError, "deletion vectors are on"):
        table.alter.set_table_properties({"delta.enableDeletionVectors": "true"})
    with refused(tmp_path / "v2", InvalidArgumentError, "exclude each other"):
        table.alter.set_table_properties({V1: "true"})
    # The table may have the feature for deletion vectors, as long as they are not enabled.
    table.alter.add_feature("deletionVectors")
    write_deltalake(tmp_path / "v2", FLAT, mode="append")


def test_only_type_changes_of_iceberg(tmp_path: Path) -> None:
    narrow = pa.table({"a": pa.array([1], pa.int32()), "d": pa.array([1], pa.decimal128(6, 2))})
    write_deltalake(tmp_path, narrow, configuration={V2: "true", "delta.enableTypeWidening": "true"})
    table = DeltaTable(tmp_path)
    for column, to in [("a", "double"), ("a", "decimal(12,0)"), ("d", "decimal(10,4)")]:
        with refused(tmp_path, InvalidArgumentError, "only allows changes that Iceberg supports"):
            table.alter.widen_column(column, to)
    table.alter.widen_column("a", "long")
    table.alter.widen_column("d", "decimal(10,2)")
    write_deltalake(tmp_path, narrow, mode="append")
    assert pa.table(DeltaTable(tmp_path).to_arrow()).column("a").to_pylist() == [1, 1]


def test_partition_columns_keep_their_names_in_a_replacement(tmp_path: Path) -> None:
    """The protocol's section has this example: replacing a partition column with a column of another name is refused,
    but a different type is allowed.
    """
    created(tmp_path, V1, FLAT)
    other = FLAT.rename_columns(["id", "q"])
    with refused(tmp_path, InvalidArgumentError, "partitioned by p .* partitioned by q"):
        DeltaTable.create(
            tmp_path, data=other, partition_by=["q"], configuration={V1: "true"}, mode="overwrite"
        )
    with refused(tmp_path, InvalidArgumentError, "partitioned by no column"):
        write_deltalake(tmp_path, FLAT, mode="overwrite", schema_mode="overwrite", partition_by=[])
    wider = FLAT.set_column(1, "p", pa.array([1, 2, None], pa.int64()))
    write_deltalake(tmp_path, wider, mode="overwrite", schema_mode="overwrite", partition_by=["p"])
    check_files(DeltaTable(tmp_path))
    DeltaTable.create(tmp_path, data=other, partition_by=["q"], mode="overwrite")


def test_an_empty_table_becomes_compatible(tmp_path: Path) -> None:
    DeltaTable.create(tmp_path, schema=NESTED.schema, partition_by=["p"])
    table = DeltaTable(tmp_path)
    with refused(tmp_path, InvalidArgumentError, "not mapped"):
        table.alter.set_table_properties({V2: "true"})
    table.alter.set_table_properties({V2: "true", MAPPED: "name"})
    assert len(log_ids(DeltaTable(tmp_path))) == 11
    write_deltalake(tmp_path, NESTED, mode="append")
    check_files(DeltaTable(tmp_path))


def test_files_must_comply_when_the_compatibility_begins(tmp_path: Path) -> None:
    table = created(tmp_path / "ended")
    table.alter.unset_table_properties([V2])
    # The old files lack the partition column and the field ids of parts.
    write_deltalake(tmp_path / "ended", NESTED, mode="append")
    assert len(file_ids(Path(adds_of(tmp_path / "ended")[-1]))) == 5
    with refused(tmp_path / "ended", InvalidArgumentError, "does not have the partition column 'p'"):
        DeltaTable(tmp_path / "ended").alter.set_table_properties({V2: "true"})
    # The table can be replaced, as the error suggests.
    DeltaTable.create(
        tmp_path / "ended", data=NESTED, partition_by=["p"], configuration={V2: "true"}, mode="overwrite"
    )
    check_files(DeltaTable(tmp_path / "ended"))

    write_deltalake(tmp_path / "mapped", NESTED, configuration={MAPPED: "name"})
    with refused(tmp_path / "mapped", InvalidArgumentError, "has no field id in the file"):
        DeltaTable(tmp_path / "mapped").alter.set_table_properties({V2: "true"})

    table = created(tmp_path / "again")
    before = log_ids(table)
    table.alter.set_table_properties({V2: "false"})
    table.alter.set_table_properties({V2: "true"})
    assert log_ids(DeltaTable(tmp_path / "again")) == before

    vectors = {MAPPED: "name", "delta.enableDeletionVectors": "true"}
    write_deltalake(tmp_path / "deleted", FLAT, configuration=vectors)
    write_deltalake(tmp_path / "deleted", FLAT.slice(0, 0), mode="overwrite", predicate="id = 1")
    with refused(tmp_path / "deleted", InvalidArgumentError, "has a deletion vector"):
        DeltaTable(tmp_path / "deleted").alter.set_table_properties(
            {V2: "true", "delta.enableDeletionVectors": "false"}
        )


def adds_of(path: Path) -> list[str]:
    """Returns the paths of all files that commits have added. The newest commit's files come last."""
    version = DeltaTable(path).version()
    return [str(path / add["path"]) for number in range(version + 1) for add in adds(path, number)]


def test_files_without_a_number_of_rows_are_refused(tmp_path: Path) -> None:
    mapping = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "id"}
    crafted = CraftedTable(
        tmp_path,
        [field("id", "long", mapping)],
        features=["columnMapping"],
        configuration={MAPPED: "name", "delta.columnMapping.maxColumnId": "1"},
    )
    schema = pa.schema([pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"})])
    crafted.write("f.parquet", pa.table({"id": [1]}, schema=schema))
    crafted.add("f.parquet")
    crafted.commit()
    with refused(tmp_path, InvalidArgumentError, "does not have the number of rows"):
        DeltaTable(tmp_path).alter.set_table_properties({V2: "true"})


def test_concurrently_added_rows_are_a_conflict(tmp_path: Path) -> None:
    """If another writer adds rows while the compatibility is enabled, there is a conflict, because its files may not
    comply.
    """
    write_deltalake(tmp_path, FLAT, configuration={MAPPED: "name"})
    table = DeltaTable(tmp_path)
    write_deltalake(tmp_path, FLAT, mode="append")
    with pytest.raises(CommitConflictError):
        overtaken(DeltaTable(tmp_path, version=0)).alter.set_table_properties({V2: "true"})
    with begun(tmp_path) as write:
        fragment = write.task.write(FLAT)
        table.alter.set_table_properties({V2: "true"})
        with pytest.raises(CommitConflictError):
            write.commit([fragment])


def test_the_feature_is_dropped_after_the_property_was_removed(tmp_path: Path) -> None:
    table = created(tmp_path)
    ids = log_ids(table)
    with refused(tmp_path, InvalidArgumentError, "compatibility with Iceberg is enabled"):
        table.alter.drop_feature("icebergCompatV2")
    table.alter.unset_table_properties([V2])
    table.alter.drop_feature("icebergCompatV2")
    assert "icebergCompatV2" not in (table.protocol().writer_features or [])
    assert log_ids(DeltaTable(tmp_path)) == ids
    write_deltalake(tmp_path, NESTED, mode="append")
    assert not any("tags" in add for add in adds(tmp_path, 3))
    assert len(rows(DeltaTable(tmp_path))) == 6


def test_version_3_tracks_rows_and_gives_their_columns_the_ids_of_iceberg(tmp_path: Path) -> None:
    """ "Materialized Row ID column must use field ID 2147483540", and the column with commit versions 2147483539."""
    table = created(tmp_path, V3)
    configuration = table.metadata().configuration
    assert configuration[TRACKED] == "true"
    assert {"rowTracking", "domainMetadata", "icebergCompatV3"} <= set(table.protocol().writer_features or [])
    write_deltalake(tmp_path, NESTED.slice(0, 1), mode="append")

    def tracked() -> dict[int, tuple[int, int]]:
        found = pa.table(DeltaTable(tmp_path).to_arrow(columns=["id"], row_ids=True)).to_pylist()
        return {row["_row_id"]: (row["id"], row["_row_commit_version"]) for row in found}

    before = tracked()
    # The files of the partitions NULL and 'a' also have other rows, which are copied or kept.
    write_deltalake(tmp_path, NESTED.slice(2, 1), mode="overwrite", predicate="id = 3")
    after = tracked()
    assert {key: row for key, row in before.items() if row[0] != 3}.items() <= after.items()
    names = [
        configuration[f"delta.rowTracking.materialized{what}ColumnName"]
        for what in ("RowId", "RowCommitVersion")
    ]
    expected = {**log_ids(table), **dict(zip(names, (2147483540, 2147483539), strict=True))}
    files = [file_ids(path) for path in tmp_path.rglob("*.parquet")]
    copied = [ids for ids in files if names[0] in ids]
    assert len(copied) == 1
    assert copied == [expected]
    assert {tag for add in adds(tmp_path, 2) for tag in add["tags"].values()} == {"3"}


def test_version_3_allows_deletion_vectors_and_variants(tmp_path: Path) -> None:
    """ "Unlike IcebergCompatV1 and IcebergCompatV2, this feature does _NOT_ forbid … Deletion Vectors"."""
    table = created(tmp_path, V3, FLAT, **{"delta.enableDeletionVectors": "true"})
    write_deltalake(tmp_path, FLAT.slice(0, 0), mode="overwrite", predicate="id = 2")
    table.update_incremental()
    vectors = pa.table(table.files(columns=["deletion_vector"])).column("deletion_vector")
    assert vectors.null_count < len(vectors)
    assert [row["id"] for row in rows(table)] == [1, 3]
    table.alter.add_columns([Field("v", "variant")])
    values = variants.VALUES[1:4]
    data = FLAT.append_column(variants.field("v"), pa.array(values, variants.STORAGE))
    write_deltalake(tmp_path, data, mode="append")
    table = DeltaTable(tmp_path)
    found = [(row["id"], row["v"]) for row in rows(table)]
    assert [value for _, value in found if value] == values
    assert [key for key, value in found if not value] == [1, 3]
    check_files(table)
    # The two parts of a variant have no field ids, because Iceberg treats a variant as one column.
    (name,) = (
        field["metadata"]["delta.columnMapping.physicalName"]
        for field in json.loads(table.schema().to_json())["fields"]
        if field["name"] == "v"
    )
    by_write = [file_ids(tmp_path / add["path"]) for add in adds(tmp_path, table.version())]
    assert by_write == [log_ids(table)] * 2
    assert all(name in ids and f"{name}.value" not in ids for ids in by_write)


def test_what_version_3_needs_stays(tmp_path: Path) -> None:
    table = created(tmp_path, V3, FLAT, **{"delta.enableTypeWidening": "true"})
    with refused(tmp_path, InvalidArgumentError, "the rows of the table have no ids"):
        table.alter.set_table_properties({TRACKED: "false"})
    with refused(tmp_path, InvalidArgumentError, "rowTracking"):
        table.alter.drop_feature("rowTracking")
    table.alter.add_feature("allowColumnDefaults")
    with refused(tmp_path, InvalidArgumentError, r"default value \(1 \+ 1\) of the column 'id' is computed"):
        table.alter.set_column_default("id", "1 + 1")
    table.alter.set_column_default("id", "-1")
    table.alter.add_columns([Field("n", "integer")])
    with refused(tmp_path, InvalidArgumentError, "only allows changes that Iceberg supports"):
        table.alter.widen_column("n", "double")
    table.alter.unset_table_properties([V3])
    table.alter.drop_feature("icebergCompatV3")
    assert "icebergCompatV3" not in (table.protocol().writer_features or [])
    table.alter.set_table_properties({TRACKED: "false"})


def test_a_table_of_version_2_gets_version_3(tmp_path: Path) -> None:
    table = created(tmp_path / "t")
    with refused(tmp_path / "t", InvalidArgumentError, "the rows of the table have no ids"):
        table.alter.set_table_properties({V2: "false", V3: "true"})
    table.alter.set_table_properties({V2: "false", V3: "true", TRACKED: "true"})
    write_deltalake(tmp_path / "t", NESTED, mode="append")
    check_files(DeltaTable(tmp_path / "t"))
    found = pa.table(DeltaTable(tmp_path / "t").to_arrow(columns=["id"], row_ids=True))
    assert len(set(found.column("_row_id").to_pylist())) == 6

    # Rows that were copied earlier have their row ids in columns whose field ids Iceberg does not know.
    table = created(tmp_path / "copied", V2, FLAT, **{TRACKED: "true"})
    write_deltalake(tmp_path / "copied", FLAT, mode="append")
    write_deltalake(tmp_path / "copied", FLAT.slice(0, 0), mode="overwrite", predicate="id = 3")
    table.update_incremental()
    with refused(tmp_path / "copied", InvalidArgumentError, "has no field id in the file"):
        table.alter.set_table_properties({V2: "false", V3: "true"})
