"""Writes that change the schema of the table."""

from __future__ import annotations

import datetime
import decimal
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

import deltalog
from deltalog import DeltaTable, write_deltalake
from tests.python.interfering import Interfering
from tests.python.place import actions, data_files

MAPPED = {"delta.columnMapping.mode": "name"}


def rows(path: Path) -> list[dict[str, Any]]:
    """Checks that `deltalake` reads the same rows, and returns them."""
    ours = sorted(pa.table(DeltaTable(path).to_arrow()).to_pylist(), key=repr)
    if "delta.columnMapping.mode" not in DeltaTable(path).metadata().configuration:
        theirs = deltalake.DeltaTable(path).to_pyarrow_table().to_pylist()
        assert sorted(theirs, key=repr) == ours
    return ours


def metadata_actions(path: Path, version: int) -> list[dict[str, Any]]:
    return [line["metaData"] for line in actions(path, version) if "metaData" in line]


def test_columns_are_added_at_every_depth(tmp_path: Path) -> None:
    """Protocol: "Change Metadata". The new schema and the rows are one commit. Older rows have NULL in the new
    columns.
    """
    inner = pa.struct([("x", pa.int64())])
    first = pa.schema(
        [("id", pa.int64()), ("s", inner), ("l", pa.list_(inner)), ("m", pa.map_(pa.string(), inner))]
    )
    old: dict[str, Any] = {"id": 1, "s": {"x": 1}, "l": [{"x": 1}], "m": [("k", {"x": 1})]}
    write_deltalake(tmp_path, pa.Table.from_pylist([old], schema=first))
    wider = pa.struct([("y", pa.string()), ("X", pa.int64())])
    second = pa.schema(
        [
            ("new", pa.date32()),
            ("ID", pa.int64()),
            ("s", wider),
            ("l", pa.list_(wider)),
            ("m", pa.map_(pa.string(), wider)),
        ]
    )
    value = {"y": "y", "X": 2}
    day = datetime.date(2024, 2, 29)
    new: dict[str, Any] = {"new": day, "ID": 2, "s": value, "l": [value], "m": [("k", value)]}
    data = pa.Table.from_pylist([new], schema=second)
    with pytest.raises(deltalog.SchemaMismatchError):
        write_deltalake(tmp_path, data, mode="append")
    assert write_deltalake(tmp_path, data, mode="append", schema_mode="merge") == 1
    before, after = {"x": 1, "y": None}, {"x": 2, "y": "y"}
    assert rows(tmp_path) == [
        {"id": 1, "s": before, "l": [before], "m": [("k", before)], "new": None},
        {"id": 2, "s": after, "l": [after], "m": [("k", after)], "new": day},
    ]
    assert len(metadata_actions(tmp_path, 1)) == 1
    # If there are no new columns, the commit has no metadata, and is a blind append.
    assert write_deltalake(tmp_path, data, mode="append", schema_mode="merge") == 2
    assert metadata_actions(tmp_path, 2) == []
    assert next(line["commitInfo"] for line in actions(tmp_path, 2) if "commitInfo" in line)["isBlindAppend"]
    assert DeltaTable(tmp_path).verify().ok


def test_an_overwrite_adds_columns_and_keeps_existing_ones(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"a": [1], "b": ["x"]}), partition_by=["b"])
    data = pa.table({"c": [1.5], "b": ["y"]})
    write_deltalake(tmp_path, data, mode="overwrite", schema_mode="merge")
    assert rows(tmp_path) == [{"a": None, "b": "y", "c": 1.5}]
    data = pa.table({"d": [True], "b": ["z"]})
    write_deltalake(tmp_path, data, mode="overwrite", schema_mode="merge", partition_overwrite="dynamic")
    write_deltalake(
        tmp_path, pa.table({"e": [1], "b": ["y"]}), mode="overwrite", schema_mode="merge", predicate="b = 'y'"
    )
    assert rows(tmp_path) == [
        {"a": None, "b": "y", "c": None, "d": None, "e": 1},
        {"a": None, "b": "z", "c": None, "d": True, "e": None},
    ]


def test_new_columns_get_ids_and_physical_names(tmp_path: Path) -> None:
    """Protocol: "Writer Requirements for Column Mapping"."""
    write_deltalake(tmp_path, pa.table({"a": [1]}), configuration=MAPPED)
    nested = pa.array([{"x": 1, "y": 2}])
    write_deltalake(tmp_path, pa.table({"a": [2], "with space": nested}), mode="append", schema_mode="merge")
    assert rows(tmp_path) == [{"a": 1, "with space": None}, {"a": 2, "with space": {"x": 1, "y": 2}}]
    table = DeltaTable(tmp_path)
    assert table.metadata().configuration["delta.columnMapping.maxColumnId"] == "4"
    write_deltalake(tmp_path, pa.table({"b": ["x"]}), mode="overwrite", schema_mode="overwrite")
    assert rows(tmp_path) == [{"b": "x"}]
    table.update_incremental()
    assert table.metadata().configuration["delta.columnMapping.maxColumnId"] == "5"


def test_types_become_wider_if_the_table_allows_it(tmp_path: Path) -> None:
    """Protocol: "Type Widening"."""
    small = pa.table({"n": pa.array([1], pa.int32()), "l": pa.array([[1]], pa.list_(pa.int16()))})
    large = pa.table({"n": pa.array([2**40], pa.int64()), "l": pa.array([[2**20]], pa.list_(pa.int32()))})
    write_deltalake(tmp_path / "fixed", small)
    with pytest.raises(deltalog.SchemaMismatchError):
        write_deltalake(tmp_path / "fixed", large, mode="append", schema_mode="merge")
    path = tmp_path / "wide"
    write_deltalake(path, small, configuration={"delta.enableTypeWidening": "true"})
    with pytest.raises(deltalog.SchemaMismatchError):
        write_deltalake(path, large, mode="append")
    write_deltalake(path, large, mode="append", schema_mode="merge")
    found = sorted(pa.table(DeltaTable(path).to_arrow()).to_pylist(), key=repr)
    assert found == [{"n": 1, "l": [1]}, {"n": 2**40, "l": [2**20]}]
    for other in (pa.table({"n": ["text"]}), pa.table({"n": [decimal.Decimal("1.5")]})):
        with pytest.raises(deltalog.SchemaMismatchError):
            write_deltalake(path, other, mode="append", schema_mode="merge")
    # A narrower type is converted, as in any append.
    write_deltalake(path, small, mode="append", schema_mode="merge")
    assert metadata_actions(path, 2) == []


@pytest.mark.parametrize("names", [["n", "s"], ["n", "s", "other"]])
def test_an_overwritten_schema_has_no_changes_of_types(tmp_path: Path, names: list[str]) -> None:
    """Protocol: "Type Widening". An overwrite of the schema leaves no file with an older type, so the new schema
    records no type changes.
    """

    def inner(data_type: pa.DataType) -> pa.Array:
        return pa.array([{"l": [{"x": 1}]}], pa.struct([("l", pa.list_(pa.struct([("x", data_type)])))]))

    small = pa.table({"n": pa.array([1], pa.int32()), "s": inner(pa.int16())})
    large = pa.table({"n": pa.array([1], pa.int64()), "s": inner(pa.int32()), "other": ["a"]})
    write_deltalake(tmp_path, small, configuration={"delta.enableTypeWidening": "true"})
    merged = large.select(["n", "s"])
    write_deltalake(tmp_path, merged, mode="overwrite", schema_mode="merge")
    assert DeltaTable(tmp_path).schema().to_json().count("delta.typeChanges") == 2
    write_deltalake(tmp_path, large.select(names), mode="overwrite", schema_mode="overwrite")
    (metadata,) = metadata_actions(tmp_path, 2)
    assert "delta.typeChanges" not in metadata["schemaString"]
    write_deltalake(tmp_path, large.select(names), mode="overwrite", schema_mode="overwrite")
    assert metadata_actions(tmp_path, 3) == []
    assert pa.table(DeltaTable(tmp_path).to_arrow()).to_pylist() == large.select(names).to_pylist()


def test_an_overwrite_replaces_schema_and_partitioning(tmp_path: Path) -> None:
    configuration = {"delta.appendOnly": "false", "mine": "yes"}
    write_deltalake(
        tmp_path, pa.table({"a": [1], "p": ["x"]}), partition_by=["p"], configuration=configuration, name="t"
    )
    identity = DeltaTable(tmp_path).metadata().id
    data = pa.table({"p": [1.5], "q": ["y"]})
    write_deltalake(tmp_path, data, mode="overwrite", schema_mode="overwrite", partition_by=["q"])
    table = DeltaTable(tmp_path)
    assert rows(tmp_path) == [{"p": 1.5, "q": "y"}]
    assert (table.metadata().partition_columns, table.metadata().id) == (["q"], identity)
    assert (table.metadata().configuration, table.metadata().name) == (configuration, "t")
    write_deltalake(tmp_path, pa.table({"r": [1], "Q": ["z"]}), mode="overwrite", schema_mode="overwrite")
    assert deltalake.DeltaTable(tmp_path).metadata().partition_columns == ["Q"]
    with pytest.raises(
        deltalog.SchemaMismatchError, match=r"partitioned by the column 'Q'.*or pass an empty list"
    ):
        write_deltalake(tmp_path, pa.table({"r": [1]}), mode="overwrite", schema_mode="overwrite")
    write_deltalake(
        tmp_path, pa.table({"r": [1]}), mode="overwrite", schema_mode="overwrite", partition_by=[]
    )
    assert rows(tmp_path) == [{"r": 1}]
    assert deltalake.DeltaTable(tmp_path).metadata().partition_columns == []
    # Older versions can still be read as before.
    assert deltalake.DeltaTable(tmp_path, version=0).to_pyarrow_table().to_pylist() == [{"a": 1, "p": "x"}]


REFUSED: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "append": (
        {"mode": "append"},
        deltalog.InvalidArgumentError,
        "a write in the mode append cannot overwrite",
    ),
    "dynamic": (
        {"partition_overwrite": "dynamic"},
        deltalog.InvalidArgumentError,
        "overwrite of some partitions",
    ),
    "predicate": ({"predicate": "a = 1"}, deltalog.InvalidArgumentError, "rows for which a = 1 is true"),
    "unknown": ({"schema_mode": "replace"}, deltalog.InvalidArgumentError, "schema_mode cannot be 'replace'"),
    "only partitions": ({"partition_by": ["a", "b"]}, deltalog.SchemaMismatchError, "not a partition column"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_is_refused_before_a_row_is_read(tmp_path: Path, case: str) -> None:
    arguments, error, message = REFUSED[case]
    write_deltalake(tmp_path, pa.table({"a": [1], "c": [1]}), partition_by=["c"])
    files = data_files(tmp_path)
    wanted: dict[str, Any] = {"mode": "overwrite", "schema_mode": "overwrite", **arguments}
    with pytest.raises(error, match=message):
        write_deltalake(tmp_path, pa.table({"a": [1], "b": [2]}), **wanted)
    assert (data_files(tmp_path), DeltaTable(tmp_path).version()) == (files, 0)


@pytest.mark.parametrize("mode", ["merge", "overwrite"])
def test_names_and_types_that_no_table_can_have_are_refused(tmp_path: Path, mode: Any) -> None:
    write_deltalake(tmp_path, pa.table({"a": [1]}))
    refused = [pa.table({"a b": [1]}), pa.table({"x": [1], "X": [1]})]
    if mode == "overwrite":
        # A table cannot have only void columns. With `merge`, the old column stays, so this write would succeed.
        refused.append(pa.table({"n": pa.nulls(1)}))
    for data in refused:
        with pytest.raises(deltalog.SchemaMismatchError):
            write_deltalake(tmp_path, data, mode="overwrite", schema_mode=mode)
    assert DeltaTable(tmp_path).version() == 0


def test_constraints_must_apply_to_the_new_schema(tmp_path: Path) -> None:
    """Protocol: "CHECK Constraints"."""
    write_deltalake(tmp_path, pa.table({"a": [1]}))
    DeltaTable(tmp_path).alter.add_constraint({"positive": "a > 0"})
    with pytest.raises(deltalog.DeltaError, match="'positive'"):
        write_deltalake(tmp_path, pa.table({"b": [1]}), mode="overwrite", schema_mode="overwrite")
    data = pa.table({"a": [-1], "b": [1]})
    with pytest.raises(deltalog.InvalidArgumentError, match="'positive'"):
        write_deltalake(tmp_path, data, mode="overwrite", schema_mode="overwrite")
    write_deltalake(tmp_path, pa.table({"b": [1], "a": [2]}), mode="overwrite", schema_mode="overwrite")
    assert rows(tmp_path) == [{"a": 2, "b": 1}]
    with pytest.raises(deltalog.InvalidArgumentError, match="'positive'"):
        write_deltalake(tmp_path, pa.table({"a": [0], "c": [1]}), mode="append", schema_mode="merge")


def test_two_changes_of_the_schema_conflict(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"a": [1]}))

    def append(name: str, **arguments: Any) -> None:
        write_deltalake(tmp_path, pa.table({name: [1]}), mode="append", **arguments)

    source = Interfering(pa.table({"b": [1]}), lambda: append("c", schema_mode="merge"))
    with pytest.raises(deltalog.CommitConflictError) as caught:
        write_deltalake(tmp_path, source, mode="append", schema_mode="merge")
    assert caught.value.reason == "metadata_changed"
    source = Interfering(pa.table({"b": [1]}), lambda: append("a"))
    write_deltalake(tmp_path, source, mode="append", schema_mode="merge")
    assert sorted(rows(tmp_path)[0]) == ["a", "b", "c"]
    assert len(rows(tmp_path)) == 4
