"""Schema objects in Python: they are made from fields, and return their fields."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

import deltalog
from deltalog import ArrayType, DeltaTable, Field, MapType, PrimitiveType, Schema, StructType

FIELDS = [
    Field("id", "long", nullable=False, metadata={"comment": "the \u201ckey\u201d"}),
    Field("when", PrimitiveType("timestamp_ntz")),
    Field("price", "decimal(9,2)"),
    Field("tags", ArrayType("string", contains_null=False)),
    Field(
        "more", MapType("string", StructType([Field("x", "double"), Field("y", ArrayType("date"))]), False)
    ),
]


def test_a_schema_returns_the_fields_it_was_made_from(tmp_path: Path) -> None:
    schema = Schema(FIELDS)
    table = DeltaTable.create(tmp_path, schema)
    read = table.schema()
    assert read == schema
    assert read.fields == FIELDS
    assert [field.name for field in read.fields] == read.names == ["id", "when", "price", "tags", "more"]
    key = read.fields[0]
    assert (key.type, key.nullable, key.metadata) == (
        PrimitiveType("long"),
        False,
        {"comment": "the \u201ckey\u201d"},
    )
    tags, more = read.fields[3].type, read.fields[4].type
    assert isinstance(tags, ArrayType)
    assert (tags.element_type.type, tags.contains_null) == ("string", False)
    assert isinstance(more, MapType)
    assert isinstance(more.value_type, StructType)
    assert [field.name for field in more.value_type.fields] == ["x", "y"]
    assert pa.schema(schema).field("tags").type.value_field.nullable is False


def test_the_json_of_fields_matches_the_json_of_the_schema() -> None:
    schema = Schema(FIELDS)
    assert Schema.from_json(schema.to_json()).fields == FIELDS
    assert [json.loads(field.to_json()) for field in FIELDS] == json.loads(schema.to_json())["fields"]
    # Some writers use other forms: a primitive type as an object, or fields without nullability or metadata.
    fields = '{"name":"a","type":{"type":"long"}},{"name":"b","type":{"type":"array","elementType":"long"}}'
    short = f'{{"type":"struct","fields":[{fields}]}}'
    assert Schema.from_json(short).fields == [Field("a", "long"), Field("b", ArrayType("long"))]
    assert len({Field("a", "long"), Field("a", "long", True), Field("a", "long", False)}) == 2


def test_invalid_schemas() -> None:
    with pytest.raises(deltalog.InvalidArgumentError, match="type cannot be 'int64'"):
        Field("a", "int64")
    with pytest.raises(deltalog.SchemaMismatchError, match="column 'A' appears twice"):
        Schema([Field("a", "long"), Field("A", "long")])
    text = Schema([Field("a", "long"), Field("b", "long")]).to_json().replace('"b"', '"A"')
    with pytest.raises(deltalog.SchemaMismatchError, match="column 'A' appears twice"):
        Schema.from_json(text)
    with pytest.raises(deltalog.InvalidArgumentError, match="type cannot be"):
        Field("a", 7)  # type: ignore[arg-type]
