"""Writes: modes, partitions, properties, and data that does not fit the table."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

import deltalog
from deltalog import DeltaTable, write_deltalake
from tests.golden.canonical import rows
from tests.python.place import actions, data_files, tree

ONE, TWO = pa.table({"id": [1], "p": ["x"]}), pa.table({"id": [2], "p": ["y"]})


def ids(path: Path) -> list[int]:
    return sorted(pa.table(DeltaTable(path).to_arrow())["id"].to_pylist())


def test_modes(tmp_path: Path) -> None:
    assert write_deltalake(tmp_path, ONE) == 0
    before = tree(tmp_path)
    with pytest.raises(deltalog.TableAlreadyExistsError, match="append or overwrite") as caught:
        write_deltalake(tmp_path, TWO, mode="error")
    assert isinstance(caught.value, FileExistsError)
    assert write_deltalake(tmp_path, TWO, mode="ignore") is None
    with pytest.raises(deltalog.InvalidArgumentError, match=r"'upsert'.*'append', 'overwrite'"):
        write_deltalake(tmp_path, TWO, mode="upsert")  # type: ignore[call-overload]
    assert tree(tmp_path) == before
    assert write_deltalake(tmp_path, TWO, mode="append") == 1
    assert ids(tmp_path) == [1, 2]
    assert write_deltalake(tmp_path, TWO, mode="overwrite") == 2
    assert ids(tmp_path) == [2]
    assert len(data_files(tmp_path)) == 3
    assert pa.table(DeltaTable(tmp_path, version=1).to_arrow()).num_rows == 2


def test_files_have_the_requested_size(tmp_path: Path) -> None:
    """An option or a table property sets the size of files, no matter how the rows are divided into batches."""
    many = pa.table({"id": [number * 0x9E3779B97F4A7C15 % 2**62 for number in range(300_000)]})
    properties = {"delta.targetFileSize": "1mb"}
    writes: list[tuple[int, dict[str, Any]]] = [
        (300_000, {"target_file_size": 1 << 20, "configuration": {"delta.targetFileSize": "1g"}}),
        (77_777, {"configuration": properties}),
        (3_000, {"configuration": properties}),
    ]
    sizes = []
    for number, (rows_per_batch, options) in enumerate(writes):
        path = tmp_path / str(number)
        write_deltalake(path, pa.Table.from_batches(many.to_batches(rows_per_batch)), **options)
        sizes.append([action["add"]["size"] for action in actions(path, 0) if "add" in action])
    assert len(sizes[0]) == 3
    assert all(1 << 20 <= size < 2 << 20 for size in sizes[0][:-1])
    assert all(each == sizes[0] for each in sizes)
    for wrong in (0, -1, True, "1mb"):
        with pytest.raises(deltalog.InvalidArgumentError, match="target_file_size"):
            write_deltalake(tmp_path / "t", ONE, target_file_size=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", ["error", "append", "overwrite", "ignore"])
def test_every_mode_creates_a_table(mode: Any, tmp_path: Path) -> None:
    assert write_deltalake(tmp_path, ONE, mode=mode) == 0
    assert ids(tmp_path) == [1]


def test_no_rows(tmp_path: Path) -> None:
    assert write_deltalake(tmp_path, ONE.slice(0, 0)) == 0
    assert write_deltalake(tmp_path, ONE, mode="append") == 1
    assert write_deltalake(tmp_path, ONE.slice(0, 0), mode="overwrite") == 2
    assert ids(tmp_path) == []
    assert write_deltalake(tmp_path, ONE.slice(0, 0), mode="append") == 3  # As in `deltalake`.
    assert len(data_files(tmp_path)) == 1


@pytest.mark.parametrize("partition_by", ["p", ["p"], ("p",), ["P"]])
def test_partition_by(partition_by: Any, tmp_path: Path) -> None:
    write_deltalake(tmp_path, ONE, partition_by=partition_by)
    write_deltalake(tmp_path, TWO, mode="append", partition_by=partition_by)
    write_deltalake(tmp_path, TWO, mode="append")
    assert DeltaTable(tmp_path).metadata().partition_columns == ["p"]
    assert [name.split("/")[0] for name in data_files(tmp_path)] == ["p=x", "p=y", "p=y"]
    for other in ([], ["id"], ["p", "id"]):
        with pytest.raises(deltalog.SchemaMismatchError, match="partitioned by p, not by"):
            write_deltalake(tmp_path, ONE, mode="append", partition_by=other)


CHARACTERS = [chr(code) for code in range(1, 0x7F)]
ODD = [
    None,
    "",
    "\U0001f600",
    "\u00e9",
    "e\u0301",
    "%41",
    "a" * 300,
    "..",
    ".",
    " ",
    "a/../b",
    "__HIVE_DEFAULT_PARTITION__x",
    "null",
]


def test_every_partition_value(tmp_path: Path) -> None:
    """'' is NULL in a partition column: protocol, "Partition Value Serialization"."""
    values = [*CHARACTERS, *[f"a{character}b" for character in CHARACTERS], *ODD]
    data = pa.table({"id": range(len(values)), "p": pa.array(values, pa.string())})
    path = tmp_path / "a" / "b" / "t"
    write_deltalake(path, data, partition_by="p")
    wanted = rows(
        pa.table({"id": data["id"], "p": pa.array([value or None for value in values], pa.string())})
    )
    table = DeltaTable(path)
    assert rows(pa.table(table.to_arrow())) == wanted
    assert rows(deltalake.DeltaTable(path).to_pyarrow_table()) == wanted
    # Nothing was written outside of the table, and each file is at the path that the file list has.
    assert all(name.startswith("a/b/t/") for name in tree(tmp_path))
    listed = pa.table(table.files(columns=["path"]))["path"].to_pylist()
    assert sorted(listed) == data_files(path)
    for value in ("'", '"', "\\", "%", "a/b", "\U0001f600"):
        # As in Spark, two backslashes in a SQL string stand for one.
        quoted = "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"
        found = pa.table(table.to_arrow(predicate=f"p = {quoted}"))
        assert found["p"].to_pylist() == [value], value


def test_append_only(tmp_path: Path) -> None:
    """Protocol, "Append-only Tables"."""
    write_deltalake(tmp_path, ONE, configuration={"delta.appendOnly": "true"})
    write_deltalake(tmp_path, TWO, mode="append")
    with pytest.raises(deltalog.InvalidArgumentError, match=r"delta.appendOnly"):
        write_deltalake(tmp_path, TWO, mode="overwrite")
    assert ids(tmp_path) == [1, 2]
    assert len(data_files(tmp_path)) == 2


def test_metadata_is_only_for_new_tables(tmp_path: Path) -> None:
    write_deltalake(tmp_path, ONE, name="n", description="d", configuration={"my.key": "\u00e9"})
    write_deltalake(tmp_path, ONE, mode="append", name="other", configuration={"my.key": "other"})
    metadata = DeltaTable(tmp_path).metadata()
    assert (metadata.name, metadata.description, metadata.configuration) == ("n", "d", {"my.key": "\u00e9"})
    with pytest.raises(deltalog.InvalidArgumentError, match="strings to strings"):
        write_deltalake(tmp_path / "t", ONE, configuration={"delta.checkpointInterval": 3})  # type: ignore[dict-item]


def test_checkpoint_interval(tmp_path: Path) -> None:
    for _ in range(8):
        write_deltalake(tmp_path, ONE, mode="append", configuration={"delta.checkpointInterval": "3"})
    checkpoints = sorted(file.name for file in (tmp_path / "_delta_log").glob("*.checkpoint.parquet"))
    assert [int(name[:20]) for name in checkpoints] == [3, 6]
    assert ids(tmp_path) == [1] * 8


BAD = {
    "another type": ({"id": ["x"], "p": ["x"]}, "'id' has type long in the table"),
    "another type, no rows": (
        {"id": pa.array([], pa.string()), "p": pa.array([], pa.string())},
        "'id' has type long in the table",
    ),
    "a new column": ({"id": [1], "p": ["x"], "q": [1]}, "no column 'q'"),
    "a name twice": (pa.table([pa.array([1]), pa.array([1])], names=["id", "ID"]), "'ID'"),
    "a partition of another type": ({"id": [1], "p": [1]}, "'p' has type string in the table"),
}


@pytest.mark.parametrize("mode", ["append", "overwrite"])
@pytest.mark.parametrize("bad", BAD)
def test_data_that_does_not_fit_leaves_nothing_behind(bad: str, mode: Any, tmp_path: Path) -> None:
    data, said = BAD[bad]
    write_deltalake(tmp_path, ONE, partition_by="p")
    before = tree(tmp_path)
    with pytest.raises(deltalog.SchemaMismatchError, match=re.escape(said)) as caught:
        write_deltalake(tmp_path, pa.table(data), mode=mode)
    assert caught.value.table == tmp_path.as_uri()
    assert tree(tmp_path) == before


def test_a_later_row_that_does_not_fit_leaves_nothing_behind(tmp_path: Path) -> None:
    DeltaTable.create(tmp_path, pa.schema([("id", pa.int8()), ("p", pa.string())]), partition_by="p")
    before = tree(tmp_path)
    batches = [pa.record_batch({"id": [number], "p": [str(number)]}) for number in (1, 2, 1000)]
    with pytest.raises(deltalog.SchemaMismatchError, match="1000"):
        write_deltalake(tmp_path, pa.Table.from_batches(batches), mode="append")
    assert tree(tmp_path) == before


@pytest.mark.parametrize(
    ("data", "partition_by", "said"),
    [
        ({"a": [1]}, "b", "'b' is not in the schema"),
        ({"a": [1]}, "a", "not a partition column"),
        ({"a": [1], "b": [[1]]}, "b", "nested column 'b'"),
        ({"a": [1], "b": [1]}, ["b", "B"], "twice"),
        ({}, None, "at least one column"),
        ({"a b": [1]}, None, "contains ' '"),
        ({"s": [{"x": [{"a=b": 1}]}]}, None, "'a=b' contains '='"),
    ],
)
def test_invalid_tables(data: Any, partition_by: Any, said: str, tmp_path: Path) -> None:
    for make in (
        write_deltalake,
        lambda path, data, **options: DeltaTable.create(path, data.schema, **options),
    ):
        with pytest.raises(deltalog.SchemaMismatchError, match=said):
            make(tmp_path / "t", pa.table(data), partition_by=partition_by)
        assert not (tmp_path / "t").exists()


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("delta.checkpointInterval", "0", "a whole number of at least 1"),
        ("delta.appendOnly", "maybe", "true or false"),
        ("delta.appendonly", "true", "spell it 'delta.appendOnly'"),
        ("delta.frobnicate", "1", "no table property 'delta.frobnicate'"),
        ("delta.dataSkippingStatsColumns", "`a", "delta.dataSkippingStatsColumns"),
    ],
)
def test_invalid_properties(name: str, value: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(deltalog.DeltaError, match=said):
        write_deltalake(tmp_path, ONE, configuration={name: value})
    with pytest.raises(deltalog.DeltaError, match=said):
        DeltaTable.create(tmp_path, ONE.schema, configuration={name: value})
    assert not list(tmp_path.iterdir())


def test_columns_by_name(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"a": [1], "b": ["x"]}))
    write_deltalake(tmp_path, pa.table({"B": ["y"], "A": [2]}), mode="append")
    write_deltalake(tmp_path, pa.table({"a": [3]}), mode="append")
    assert rows(pa.table(DeltaTable(tmp_path).to_arrow())) == rows(
        pa.table({"a": [1, 2, 3], "b": ["x", "y", None]})
    )


def test_the_log_of_a_write(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1, 2, None]}), user_metadata="u")
    kinds = [next(iter(action)) for action in actions(tmp_path, 0)]
    assert kinds == ["commitInfo", "protocol", "metaData", "add"]
    info = actions(tmp_path, 0)[0]["commitInfo"]
    assert info["operationMetrics"]["numOutputRows"] == "3"
    assert info["userMetadata"] == "u"


def test_a_location_below_a_file(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("x")
    for make in (lambda: write_deltalake(file, ONE), lambda: DeltaTable.create(file / "t", ONE.schema)):
        with pytest.raises(deltalog.UnavailableError, match="could not be created"):
            make()
    assert file.read_text() == "x"


def test_an_overwrite_through_a_table_replaces_the_version_of_the_table(tmp_path: Path) -> None:
    """Rows that were committed after the table was opened must not disappear without a conflict."""
    write_deltalake(tmp_path, ONE)
    table = DeltaTable(tmp_path)
    write_deltalake(tmp_path, TWO, mode="append")
    files = data_files(tmp_path)
    with pytest.raises(deltalog.CommitConflictError, match="version 1") as caught:
        write_deltalake(table, pa.table(table.to_arrow(predicate="id = 1")), mode="overwrite")
    assert caught.value.version == 1
    assert ids(tmp_path) == [1, 2]
    assert data_files(tmp_path) == files
    table.update_incremental()
    assert write_deltalake(table, ONE, mode="overwrite") == 2
    assert ids(tmp_path) == [1]


def test_an_append_through_a_table_extends_the_newest_version(tmp_path: Path) -> None:
    write_deltalake(tmp_path, ONE)
    table = DeltaTable(tmp_path)
    write_deltalake(tmp_path, TWO, mode="overwrite")
    assert write_deltalake(table, ONE, mode="append") == 2
    assert (table.version(), ids(tmp_path)) == (2, [1, 2])


def test_a_table_passes_its_storage_options_on(tmp_path: Path) -> None:
    write_deltalake(tmp_path, ONE)
    table = DeltaTable(tmp_path)
    with pytest.raises(deltalog.InvalidArgumentError, match="storage_options"):
        write_deltalake(table, ONE, mode="append", storage_options={"key": "value"})


def test_a_commit_that_cannot_be_read_back_is_unknown(tmp_path: Path) -> None:
    """The store reports that a commit exists already, but the commit cannot be read. It may be our own, so the outcome
    is unknown.
    """
    write_deltalake(tmp_path, ONE)
    table = DeltaTable(tmp_path)
    log = tmp_path / "_delta_log"
    (log / f"{1:020}.json").mkdir()
    with pytest.raises(deltalog.CommitStateUnknownError, match="find_commit") as caught:
        write_deltalake(tmp_path, TWO, mode="append")
    transaction = caught.value.transaction_id
    assert transaction is not None
    assert caught.value.version == 1
    assert len(data_files(tmp_path)) == 2
    (log / f"{1:020}.json").rmdir()
    assert table.find_commit(transaction) is None
    (log / f"{1:020}.json").write_text(json.dumps({"commitInfo": {"txnId": transaction}}))
    assert table.find_commit(transaction) == 1
    assert table.find_commit("another") is None
