"""Columns keep their collations, and strings are written and compared byte by byte (table feature `collations`)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deltalog import DeltaTable, InvalidArgumentError, write_deltalake
from tests.crafted import CraftedTable, field, struct
from tests.python.place import actions, data_files

KEY = "__COLLATIONS"
FIELDS: list[dict[str, Any]] = [
    field("id", "long"),
    field("s", "string", {KEY: {"s": "spark.UTF8_LCASE"}}),
    field("n", struct(field("t", "string", {KEY: {"t": "icu.UNICODE"}}))),
    field(
        "l",
        {"type": "array", "elementType": "string", "containsNull": True},
        {KEY: {"l.element": "icu.UNICODE_CI"}},
    ),
]
FEATURES = ["collations", "domainMetadata", "checkConstraints", "generatedColumns", "invariants"]
ROWS = pa.table(
    {
        "id": [1, 2],
        "s": ["B", "a"],
        "n": pa.array([{"t": "x"}, None], pa.struct([("t", pa.string())])),
        "l": pa.array([["y"], None], pa.list_(pa.string())),
    }
)


def collations(path: Path) -> dict[str, Any]:
    """Returns the collations of all top-level columns and struct fields, by name."""

    def of(columns: list[dict[str, Any]]) -> dict[str, Any]:
        found = {}
        for column in columns:
            if KEY in column["metadata"]:
                found[column["name"]] = column["metadata"][KEY]
            if isinstance(column["type"], dict) and column["type"]["type"] == "struct":
                found |= of(column["type"]["fields"])
        return found

    return of(json.loads(DeltaTable(path).schema().to_json())["fields"])


def crafted(path: Path, **options: Any) -> Path:
    return CraftedTable(path, FIELDS, writer_features=FEATURES, **options).commit()


KEPT = {
    "s": {"s": "spark.UTF8_LCASE"},
    "t": {"t": "icu.UNICODE"},
    "l": {"l.element": "icu.UNICODE_CI"},
}


def test_collations_are_kept_and_statistics_compare_bytes(tmp_path: Path) -> None:
    path = crafted(tmp_path / "t")
    write_deltalake(path, ROWS, mode="append")
    (add,) = (action["add"] for action in actions(path, 1) if "add" in action)
    stats = json.loads(add["stats"])
    assert (stats["minValues"]["s"], stats["maxValues"]["s"]) == ("B", "a")
    assert "statsWithCollation" not in stats
    assert collations(path) == KEPT
    extended = ROWS.append_column("more", [["u", "v"]])
    write_deltalake(path, extended, mode="append", schema_mode="merge")
    assert collations(path) == KEPT
    write_deltalake(path, ROWS, mode="overwrite", schema_mode="overwrite")
    assert collations(path) == KEPT
    # Filters compare bytes, which the feature allows for readers.
    assert pa.table(DeltaTable(path).to_arrow(predicate="s < 'a'"))["id"].to_pylist() == [1]


def test_a_renamed_column_keeps_its_collations(tmp_path: Path) -> None:
    path = crafted(tmp_path / "t")
    table = DeltaTable(path)
    table.alter.set_table_properties({"delta.columnMapping.mode": "name"})
    table.alter.rename_column("s", "text")
    table.alter.rename_column("n.t", "inner")
    table.alter.rename_column("l", "s")
    assert collations(path) == {
        "text": {"text": "spark.UTF8_LCASE"},
        "inner": {"inner": "icu.UNICODE"},
        "s": {"s.element": "icu.UNICODE_CI"},
    }


@pytest.mark.parametrize("sql", ["s <> 'b'", "n.t IS NOT NULL OR id > 0", "l IS NOT NULL OR id > 0"])
def test_constraints_that_depend_on_a_collation_are_refused(tmp_path: Path, sql: str) -> None:
    path = crafted(tmp_path / "t", configuration={"delta.constraints.c": sql})
    with pytest.raises(InvalidArgumentError, match=r"'c'.*collation, which only Spark implements"):
        write_deltalake(path, ROWS, mode="append")
    assert not data_files(path)


def test_rows_are_not_replaced_by_a_collation(tmp_path: Path) -> None:
    """This is refused, because Spark would check new rows with the collation, while the core would select old rows by
    their bytes.
    """
    path = crafted(tmp_path / "t")
    write_deltalake(path, ROWS, mode="append")
    with pytest.raises(InvalidArgumentError, match=r"s has a collation, which only Spark implements"):
        write_deltalake(path, ROWS.slice(1, 1), mode="overwrite", predicate="s = 'a'")
    assert DeltaTable(path).version() == 1
    write_deltalake(path, ROWS.slice(1, 1), mode="overwrite", predicate="id = 2")
    assert DeltaTable(path).to_pyarrow_table().sort_by("id").to_pylist() == ROWS.to_pylist()


def test_other_constraints_are_checked(tmp_path: Path) -> None:
    path = crafted(tmp_path / "t", configuration={"delta.constraints.c": "id < 2"})
    with pytest.raises(InvalidArgumentError, match="'c'"):
        write_deltalake(path, ROWS, mode="append")
    write_deltalake(path, ROWS.slice(0, 1), mode="append")
