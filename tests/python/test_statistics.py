"""Statistics are computed for files that lack them. Protocol: "Per-file Statistics"."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deltalog import CommitProperties, DeltaTable, InvalidArgumentError, write_deltalake

NONE = {"delta.dataSkippingNumIndexedCols": "0", "delta.enableChangeDataFeed": "true"}


@pytest.fixture
def table(tmp_path: Path) -> DeltaTable:
    """Creates a table with three files in two partitions, without statistics of columns."""
    path = str(tmp_path / "t")
    for number in range(3):
        rows = pa.table({"id": [2 * number, 2 * number + 1], "p": ["a" if number < 2 else "b"] * 2})
        write_deltalake(path, rows, partition_by=["p"], mode="append", configuration=NONE)
    table = DeltaTable(path)
    table.alter.set_table_properties({"delta.dataSkippingNumIndexedCols": "32"})
    return table


def bounds(table: DeltaTable) -> list[Any]:
    """Returns the minimum and maximum id in the statistics of each file."""
    files = pa.table(table.files()).to_pylist()
    found = [(file["stats"]["minValues"] or {}).get("id") for file in files]
    most = [(file["stats"]["maxValues"] or {}).get("id") for file in files]
    return sorted(zip(found, most, strict=True), key=str)


@pytest.mark.parametrize("nested", [False, True])
def test_columns_are_found_by_their_ids(tmp_path: Path, nested: bool) -> None:
    """With column mapping by ids, the names in a file may be the names of other columns in the table. Protocol:
    "Column Mapping".
    """

    def in_file(name: str, number: int) -> pa.Field:
        return pa.field(name, pa.int64(), metadata={"PARQUET:field_id": str(number)})

    def in_table(name: str, number: int, type_: Any = "long") -> dict[str, Any]:
        mapping = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": name}
        return {"name": name, "type": type_, "nullable": True, "metadata": mapping}

    path = tmp_path / "t"
    (path / "_delta_log").mkdir(parents=True)
    columns = [in_file("a", 1), in_file("b", 2)]
    values = [pa.array([1, 2, 3]), pa.array([100, 200, 300])]
    fields = [in_table("a", 2), in_table("b", 1)]
    if nested:
        struct = pa.StructArray.from_arrays(values, fields=columns)
        columns = [pa.field("s", struct.type, metadata={"PARQUET:field_id": "3"})]
        values, fields = [struct], [in_table("s", 3, {"type": "struct", "fields": fields})]
    pq.write_table(pa.table(values, schema=pa.schema(columns)), path / "f.parquet")
    metadata = {
        "id": "x",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": [],
        "configuration": {"delta.columnMapping.mode": "id", "delta.columnMapping.maxColumnId": "3"},
        "createdTime": 0,
    }
    size = (path / "f.parquet").stat().st_size
    add = {
        "path": "f.parquet",
        "partitionValues": {},
        "size": size,
        "modificationTime": 0,
        "dataChange": True,
    }
    actions = [
        {"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}},
        {"metaData": metadata},
        {"add": add},
    ]
    (path / "_delta_log" / f"{0:020}.json").write_text(
        "".join(json.dumps(action) + "\n" for action in actions)
    )
    table = DeltaTable(path)
    column = "s.a" if nested else "a"
    assert pa.table(table.to_arrow(predicate=f"{column} = 200")).num_rows == 1
    assert table.recompute_statistics()["numUpdatedFiles"] == 1
    [file] = pa.table(table.files()).to_pylist()
    least = file["stats"]["minValues"]
    assert (least["s"] if nested else least) == {"a": 100, "b": 1}
    assert pa.table(DeltaTable(path).to_arrow(predicate=f"{column} = 200")).num_rows == 1


def test_files_get_statistics(table: DeltaTable) -> None:
    before, version = pa.table(table.to_arrow()), table.version()
    assert bounds(table) == [(None, None)] * 3
    planned = table.recompute_statistics(dry_run=True)
    assert (planned["numFilesChosen"], planned["numUpdatedFiles"], table.version()) == (3, 0, version)
    first = table.recompute_statistics(
        "p = 'a'", commit_properties=CommitProperties(custom_metadata={"why": "slow"})
    )
    assert (first["numFilesConsidered"], first["numUpdatedFiles"], first["numFilesByFooter"]) == (2, 2, 2)
    done = table.recompute_statistics()
    assert (done["numFilesConsidered"], done["numUpdatedFiles"], table.version()) == (3, 1, version + 2)
    assert bounds(table) == [(0, 1), (2, 3), (4, 5)]
    assert pa.table(table.to_arrow()).sort_by("id") == before.sort_by("id")
    last, other = table.history(2)
    assert [last["operation"], other["operation"]] == ["COMPUTE STATS"] * 2
    assert (other["why"], json.loads(other["operationParameters"]["predicate"])) == ("slow", ["p = 'a'"])
    assert table.recompute_statistics()["numFilesChosen"] == 0
    # The change data feed shows no changes.
    assert pa.table(table.load_cdf(version + 1)).num_rows == 0
    # Another implementation reads the statistics and the rows.
    theirs = deltalake.DeltaTable(table.table_uri)
    actions = pa.table(theirs.get_add_actions(flatten=True)).to_pylist()
    assert sorted(action["min.id"] for action in actions) == [0, 2, 4]
    assert pa.table(theirs.to_pyarrow_table()).sort_by("id").to_pylist() == before.sort_by("id").to_pylist()


def test_statistics_of_deleted_rows(table: DeltaTable) -> None:
    table.alter.set_table_properties({"delta.enableDeletionVectors": "true"})
    table.recompute_statistics()
    table.delete("id = 5")
    assert table.recompute_statistics()["numFilesChosen"] == 0
    done = table.recompute_statistics(all_files=True)
    assert (done["numFilesByRows"], done["numUpdatedFiles"]) == (1, 1)
    assert bounds(table) == [(0, 1), (2, 3), (4, 4)]


def test_other_columns_choose_no_files(table: DeltaTable) -> None:
    with pytest.raises(InvalidArgumentError, match="columns that are not partition columns"):
        table.recompute_statistics("id = 1")


def marks(path: Path) -> list[bool]:
    """Returns for each file of the newest version whether its statistics have deltalog's mark."""
    stats = [json.loads(add["stats"]) for add in live(path)]
    return [found.get("deltalog") == 1 for found in stats]


def live(path: Path) -> list[dict[str, Any]]:
    """Returns the newest `add` action of each live file."""
    files: dict[str, dict[str, Any]] = {}
    for commit in sorted((path / "_delta_log").glob("*.json")):
        for line in commit.read_text().splitlines():
            action = json.loads(line)
            if "remove" in action:
                files.pop(action["remove"]["path"], None)
            if "add" in action:
                files[action["add"]["path"]] = action["add"]
    return list(files.values())


def test_statistics_keep_their_mark_and_other_writers_get_none(tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    vectors = {"delta.enableDeletionVectors": "true"}
    for number in range(3):
        rows = pa.table({"id": [2 * number, 2 * number + 1], "f": [0.5, float("nan")]})
        write_deltalake(ours, rows, mode="append", configuration=vectors)
        deltalake.write_deltalake(theirs, rows, mode="append")
    DeltaTable(ours).delete("id = 1")
    assert marks(ours) == [True] * 3
    DeltaTable(ours).clone(str(tmp_path / "copy"))
    assert marks(tmp_path / "copy") == [True] * 3
    newest = DeltaTable(ours)
    newest.optimize.compact()
    newest.restore(3)
    assert marks(ours) == [True] * 3
    DeltaTable(theirs).clone(str(tmp_path / "copy of theirs"))
    assert marks(tmp_path / "copy of theirs") == [False] * 3
    # Statistics from another writer's footers do not get the mark.
    # NULL counts and bounds that were computed from rows do.
    newest = DeltaTable(theirs)
    newest.recompute_statistics(all_files=True)
    assert marks(theirs) == [False] * 3
    newest.optimize.compact()
    assert marks(theirs) == [True]


DOUBLES = [[0.0, 1.0], [10.0, 11.0], [20.0, 21.0], [30.0, 31.0]]


def kept(path: Path, condition: str) -> list[float]:
    """Returns the first number of each file that a filter keeps."""
    uris = DeltaTable(path).file_uris(condition)
    return sorted(pq.read_table(uri)["f"][0].as_py() for uri in uris)


def test_files_of_doubles_are_skipped_by_their_maxima(tmp_path: Path) -> None:
    """A filter for large doubles keeps files with a NaN, which is greater than all numbers, and files whose writer
    does not report whether there is one.
    """
    path, with_nan, theirs = tmp_path / "ours", tmp_path / "with nan", tmp_path / "theirs"
    for numbers in DOUBLES:
        other = {"g": [float("nan"), 0.5]}
        write_deltalake(path, pa.table({"f": numbers, **other}), mode="append")
        write_deltalake(with_nan, pa.table({"f": [*numbers, float("nan")]}), mode="append")
        deltalake.write_deltalake(theirs, pa.table({"f": numbers}), mode="append")
    first = [numbers[0] for numbers in DOUBLES]
    for condition, expected in {
        "f > 25": [30.0],
        "f >= 21": [20.0, 30.0],
        "f > 31": [],
        "f BETWEEN 10.5 AND 20": [10.0, 20.0],
        "NOT (f <= 11)": [20.0, 30.0],
        "f != 0": first,
        "f < 5 OR f > 30": [0.0, 30.0],
        "f > g": first,
    }.items():
        assert kept(path, condition) == expected, condition
    assert kept(with_nan, "f > 25") == kept(theirs, "f > 25") == first
    assert DeltaTable(with_nan).count("f > 25") == 4 + 2
    # The result is the same with a checkpoint, even if it has struct statistics.
    for properties in ({}, {"delta.checkpoint.writeStatsAsStruct": "true"}):
        if properties:
            DeltaTable(path).alter.set_table_properties(properties)
        DeltaTable(path).create_checkpoint()
        assert kept(path, "f > 25") == [30.0]
    # A MERGE skips files that its keys cannot match.
    [gone] = DeltaTable(path).file_uris("f < 5")
    Path(gone.removeprefix("file://")).unlink()
    for keys in ([10.0, 31.0], [float(key) for key in range(10, 300)], [31.0, float("nan")]):
        source = pa.table({"f": keys})
        newest = DeltaTable(path)
        merge = newest.merge(source, "t.f = s.f", source_alias="s", target_alias="t")
        done = merge.when_matched_update({"f": "t.f"}).execute()
        assert done["numTargetRowsUpdated"] == sum(key in keys for numbers in DOUBLES for key in numbers)


def test_ordered_doubles_are_skipped(tmp_path: Path) -> None:
    numbers = [float(number * 7919 % 1000) for number in range(1000)]
    rows = pa.table({"f": numbers, "text": ["x" * 100 + str(number) for number in numbers]})
    for part in range(4):
        write_deltalake(tmp_path, rows.slice(part * 250, 250), mode="append")
    assert len(DeltaTable(tmp_path).file_uris("f > 900")) == 4
    DeltaTable(tmp_path).optimize.z_order(["f"], target_size=4_000)
    files = len(DeltaTable(tmp_path).file_uris())
    assert files > 2
    assert len(DeltaTable(tmp_path).file_uris("f > 900")) < files / 2
    assert DeltaTable(tmp_path).count("f > 900") == 99
