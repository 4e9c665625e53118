"""`char(n)` and `varchar(n)` inside structs, arrays and maps work as in Spark's writer."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from deltalog import (
    DeltaTable,
    Field,
    SchemaMismatchError,
    TableAlterer,
    UnsupportedFeatureError,
    write_deltalake,
)
from tests import lengths
from tests.crafted import CraftedTable, struct
from tests.python.place import data_files


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return CraftedTable(tmp_path / "t", lengths.FIELDS).commit()


def test_strings_are_padded_and_cut_at_every_depth(path: Path) -> None:
    write_deltalake(path, lengths.GIVEN, mode="append")
    assert DeltaTable(path).to_pyarrow_table().sort_by("id").to_pylist() == lengths.STORED.to_pylist()
    # Values that fit are unchanged.
    write_deltalake(path, lengths.STORED, mode="overwrite")
    assert DeltaTable(path).to_pyarrow_table().sort_by("id").to_pylist() == lengths.STORED.to_pylist()


@pytest.mark.parametrize(("rows", "column", "kind"), lengths.REFUSED)
def test_a_longer_string_is_refused(path: Path, rows: pa.Table, column: str, kind: str) -> None:
    with pytest.raises(SchemaMismatchError, match=re.escape(f"column '{column}' has the type {kind}")):
        write_deltalake(path, rows, mode="append")
    assert not data_files(path)


def test_keys_that_become_equal_are_refused(path: Path) -> None:
    with pytest.raises(SchemaMismatchError, match=r"two keys of a map in column 'm' become equal"):
        write_deltalake(path, lengths.rows(m=[[("k", "1")], [("k", "1"), ("k ", "2")]]), mode="append")
    assert not data_files(path)


@pytest.mark.parametrize(
    "change",
    [
        lambda alter: alter.move_column("s.e"),
        lambda alter: alter.add_columns(Field("new", "string"), parent="s"),
    ],
    ids=["moved", "added"],
)
def test_structs_with_lengths_cannot_get_other_fields(
    path: Path, change: Callable[[TableAlterer], object]
) -> None:
    """Spark reads the fields of a struct with `char` or `varchar` from a separate type string. Changes of such a
    struct are refused, because they would not update that string.
    """
    with pytest.raises(UnsupportedFeatureError, match=r"could not be written after the change.*'s'"):
        change(DeltaTable(path).alter)
    assert DeltaTable(path).version() == 0


def test_fields_that_another_writer_has_moved_are_not_guessed(tmp_path: Path) -> None:
    column = lengths.FIELDS[1]
    moved = {**column, "type": struct(*reversed(column["type"]["fields"]))}
    path = CraftedTable(tmp_path / "t", [lengths.FIELDS[0], moved]).commit()
    with pytest.raises(
        UnsupportedFeatureError, match=r"column 's' cannot be written.*fields of a struct have changed since"
    ):
        write_deltalake(path, lengths.GIVEN.select(["id"]), mode="append")


def test_values_hidden_by_null_are_not_checked(path: Path) -> None:
    """Lengths are checked only for real values. The memory behind a NULL struct or list, or outside of a slice, may
    contain anything.
    """
    too_long = pa.array(["much too long"] * 3)
    hidden = pa.array([True, False, True])
    fields = [pa.field("a", pa.string()), pa.field("b c", pa.string())]
    structs = pa.StructArray.from_arrays(
        [pa.array(["a", "much too long", "b"]), pa.array([None] * 3, pa.string())],
        fields=fields,
        mask=pa.array([False, True, False]),
    )
    inner = pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), too_long, mask=pa.array([True] * 3))
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), inner, mask=hidden)
    write_deltalake(path, pa.table({"id": [0, 1, 2], "s": structs, "l": lists}), mode="append")
    sliced = (
        lengths.rows(l=[[["much too long"]], [["a"]], [["much too long"]]]).select(["id", "l"]).slice(1, 1)
    )
    write_deltalake(path, sliced.set_column(0, "id", [[3]]), mode="append")
    found = DeltaTable(path).to_pyarrow_table().sort_by("id").to_pylist()
    assert [row["s"] and row["s"]["a"] for row in found] == ["a  ", None, "b  ", None]
    assert [row["l"] for row in found] == [None, [None], None, [["a "]]]
