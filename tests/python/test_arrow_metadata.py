"""The metadata of Arrow fields is kept when data is written to a table and read again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltalog
from deltalog import (
    DeltaTable,
    Field,
    Identity,
    InvalidArgumentError,
    Schema,
    SchemaMismatchError,
    write_deltalake,
)
from deltalog.schema import StructType

LENGTH = "__CHAR_VARCHAR_TYPE_STRING"
GENERATED = {"delta.generationExpression": "id + 1"}
INNER = pa.struct([pa.field("x", pa.string(), metadata={"comment": "inner"})])
# Metadata that Delta defines and unknown metadata are kept. Metadata of Arrow itself is left out.
COLUMNS = [
    pa.field("id", pa.int64(), metadata={"comment": "the key", "team": "5", "PARQUET:field_id": "3"}),
    pa.field("g", pa.int64(), metadata=GENERATED),
    pa.field("i", pa.int64(), metadata={"delta.invariants": '{"expression":{"expression":"i > 0"}}'}),
    pa.field("d", pa.int32(), metadata={"CURRENT_DEFAULT": "7"}),
    pa.field("l", pa.list_(INNER), metadata={LENGTH: "array<struct<x:varchar(2)>>"}),
]
SCHEMA = pa.schema(COLUMNS, metadata={"pandas": "{}"})
KEPT: dict[str, dict[str, Any]] = {
    "id": {"comment": "the key", "team": "5"},
    "g": GENERATED,
    "i": {"delta.invariants": '{"expression":{"expression":"i > 0"}}'},
    "d": {"CURRENT_DEFAULT": "7"},
    "l": {LENGTH: "array<struct<x:varchar(2)>>"},
}
COUNTED = {
    "delta.identity.start": "10",
    "delta.identity.step": "5",
    "delta.identity.allowExplicitInsert": "false",
}

MADE: dict[str, Callable[[Path], object]] = {
    "create": lambda path: DeltaTable.create(path, schema=SCHEMA),
    "create with rows": lambda path: DeltaTable.create(path, data=SCHEMA.empty_table()),
    "write_deltalake": lambda path: write_deltalake(path, SCHEMA.empty_table()),
    "replace": lambda path: DeltaTable.create(path, data=SCHEMA.empty_table(), mode="overwrite"),
}


def metadata_of(schema: pa.Schema) -> dict[str, dict[str, str]]:
    return {
        field.name: {key.decode(): value.decode() for key, value in (field.metadata or {}).items()}
        for field in schema
    }


@pytest.mark.parametrize("way", MADE)
def test_a_new_table_has_the_metadata_of_its_arrow_schema(tmp_path: Path, way: str) -> None:
    if way == "replace":
        write_deltalake(tmp_path, pa.table({"other": [1]}))
    MADE[way](tmp_path)
    table = DeltaTable(tmp_path)
    assert {field.name: field.metadata for field in table.schema().fields} == KEPT
    element = table.schema().fields[4].type.element_type  # type: ignore[union-attr]
    assert isinstance(element, StructType)
    assert element.fields[0].metadata == {"comment": "inner"}
    assert {"generatedColumns", "invariants", "allowColumnDefaults"} <= set(
        table.protocol().writer_features or []
    )
    # The rules are enforced.
    rows = pa.table({"id": [1], "i": [1], "l": pa.array([[{"x": "ab"}]], pa.list_(INNER))})
    write_deltalake(tmp_path, rows, mode="append")
    assert pa.table(DeltaTable(tmp_path).to_arrow()).select(["g", "d"]).to_pylist() == [{"g": 2, "d": 7}]
    with pytest.raises(InvalidArgumentError, match=r"constraint 'i' \(i > 0\)"):
        write_deltalake(tmp_path, pa.table({"id": [1], "i": [0]}), mode="append")
    with pytest.raises(InvalidArgumentError, match="violates the generated column 'g'"):
        write_deltalake(tmp_path, pa.table({"id": [1], "g": [3], "i": [1]}), mode="append")
    long = pa.array([[{"x": "abc"}]], pa.list_(INNER))
    with pytest.raises(SchemaMismatchError, match=r"varchar\(2\)"):
        write_deltalake(tmp_path, pa.table({"id": [1], "i": [1], "l": long}), mode="append")


def test_metadata_is_read_again(tmp_path: Path) -> None:
    table = DeltaTable.create(tmp_path, schema=SCHEMA, configuration={"delta.enableChangeDataFeed": "true"})
    write_deltalake(tmp_path, pa.table({"id": [1], "i": [1]}), mode="append")
    table.update_incremental()
    assert Schema.from_arrow(table.schema()) == table.schema()
    feed = pa.schema(table.load_cdf(1, 1))
    for shown in (
        pa.schema(table.schema()),
        pa.schema(table.to_arrow()),
        feed,
        table.to_pyarrow_table().schema,
    ):
        found = metadata_of(shown)
        assert {name: found[name] for name in KEPT} == KEPT
        [inner] = shown.field("l").type.value_type
        assert inner.metadata == {b"comment": b"inner"}
    assert metadata_of(feed)["_change_type"] == {}
    some = pa.schema(table.to_arrow(columns=["g", "id"]))
    assert metadata_of(some) == {name: KEPT[name] for name in ("g", "id")}
    # A table that is created from the rows has the same rules.
    copy = tmp_path / "copy"
    write_deltalake(copy, table.to_arrow())
    assert DeltaTable(copy).schema() == table.schema()


def test_rules_whose_columns_are_left_out_are_dropped(tmp_path: Path) -> None:
    """If a rule needs columns that are not selected, its metadata is left out. A table with such metadata would be
    invalid.
    """
    invariant = {"delta.invariants": '{"expression":{"expression":"i > ID"}}'}
    columns = [*COLUMNS[:2], pa.field("i", pa.int64(), metadata=invariant), *COLUMNS[3:]]
    table = DeltaTable.create(
        tmp_path / "table", schema=pa.schema(columns), configuration={"delta.enableChangeDataFeed": "true"}
    )
    write_deltalake(table, pa.table({"id": [1], "i": [2]}), mode="append")
    for number, (left, rules) in enumerate(
        [
            (["g"], {"g": {}}),
            (["g", "i"], {"g": {}, "i": {}}),
            (["i", "id"], {"i": invariant, "id": KEPT["id"]}),
            (["id", "g"], {"id": KEPT["id"], "g": GENERATED}),
            (["d", "l"], {"d": KEPT["d"], "l": KEPT["l"]}),
        ]
    ):
        assert metadata_of(pa.schema(table.to_arrow(columns=left))) == rules
        assert metadata_of(pa.schema(table.load_cdf(1, 1, columns=left))).items() >= rules.items()
        copy = tmp_path / f"copy {number}"
        write_deltalake(copy, table.to_arrow(columns=left))
        assert {field.name: field.metadata for field in DeltaTable(copy).schema().fields} == rules
        write_deltalake(copy, table.to_arrow(columns=left), mode="append")
        rows = pa.table(DeltaTable(copy).to_arrow()).to_pylist()
        assert rows == pa.table(table.to_arrow(columns=left)).to_pylist() * 2


def test_identity_columns_are_defined_by_schemas_and_not_by_rows(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("n", pa.int64(), metadata=COUNTED), pa.field("v", pa.string())])
    table = DeltaTable.create(tmp_path / "table", schema=schema)
    assert table.schema() == Schema([Field("n", "long", identity=Identity(10, 5)), Field("v", "string")])
    write_deltalake(table, pa.table({"v": ["a", "b"]}), mode="append")
    table = DeltaTable(tmp_path / "table")
    assert sorted(pa.table(table.to_arrow())["n"].to_pylist()) == [10, 15]
    assert Schema.from_arrow(table.schema()) == table.schema()
    # Rows already contain the values, so a table that is created from rows gets no identity columns.
    assert metadata_of(pa.schema(table.to_arrow())) == {"n": {}, "v": {}}
    write_deltalake(tmp_path / "copy", table.to_arrow())
    assert DeltaTable(tmp_path / "copy").schema() == Schema([Field("n", "long"), Field("v", "string")])
    # Rows cannot contain values for a column whose values are always generated.
    with pytest.raises(SchemaMismatchError, match="identity column 'n' are always generated"):
        write_deltalake(tmp_path / "none", pa.table([[1], ["a"]], schema=schema))
    assert not (tmp_path / "none").exists()


def test_metadata_about_files_is_not_passed_on(tmp_path: Path) -> None:
    mapped = {"delta.columnMapping.mode": "name"}
    write_deltalake(tmp_path / "table", pa.table({"a": [1]}), configuration=mapped)
    table = DeltaTable(tmp_path / "table")
    assert metadata_of(pa.schema(table.to_arrow())) == {"a": {}}
    assert Schema.from_arrow(table.schema()) == table.schema()
    DeltaTable.create(tmp_path / "same", schema=table.schema())
    assert DeltaTable(tmp_path / "same").schema() == Schema([Field("a", "long")])


def test_an_existing_table_keeps_its_metadata(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1]}))
    other = pa.schema(
        [pa.field("id", pa.int64(), metadata={"comment": "x"}), pa.field("g", pa.int64(), metadata=GENERATED)]
    )
    write_deltalake(tmp_path, pa.table([[2], [0]], schema=other), mode="append", schema_mode="merge")
    assert DeltaTable(tmp_path).schema() == Schema([Field("id", "long"), Field("g", "long")])


@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        (
            {**COUNTED, "delta.identity.start": "ten"},
            "'delta.identity.start' of the column 'c' is not a whole number",
        ),
        (
            {**COUNTED, "delta.identity.allowExplicitInsert": "no"},
            "'delta.identity.allowExplicitInsert' of the column",
        ),
        ({"delta.generationExpression": "id +"}, r"the generated column 'c' \(id \+\)"),
        ({"delta.invariants": "i > 0"}, "the invariant of column c"),
        ({"CURRENT_DEFAULT": "'a'"}, "the column 'c' cannot have the default value"),
        ({LENGTH: "varchar(x)"}, r"'varchar\(x\)' is not a Spark type"),
    ],
    ids=str,
)
def test_malformed_metadata_are_refused_by_name(tmp_path: Path, metadata: dict[str, str], words: str) -> None:
    kind = pa.string() if LENGTH in metadata else pa.int64()
    schema = pa.schema([pa.field("id", pa.int64()), pa.field("c", kind, metadata=metadata)])
    for make in (
        lambda: DeltaTable.create(tmp_path / "t", schema=schema),
        lambda: write_deltalake(tmp_path / "t", schema.empty_table()),
    ):
        with pytest.raises(deltalog.DeltaError, match=words):
            make()
    assert not (tmp_path / "t").exists()
