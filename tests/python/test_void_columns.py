"""Void columns are NULL in all rows, and data files do not contain them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deltalog import ArrayType, DeltaTable, Field, Schema, StructType, convert_to_delta, write_deltalake
from deltalog.errors import InvalidArgumentError, SchemaMismatchError
from tests.crafted import CraftedTable, field, struct
from tests.python.alter_support import action, refused, rows
from tests.python.place import data_files

INNER = pa.struct(
    [("v", pa.null()), ("x", pa.int64()), ("r", pa.struct([("y", pa.int64()), ("w", pa.null())]))]
)
SCHEMA = pa.schema([("id", pa.int64()), ("b", pa.null()), ("s", INNER), ("p", pa.string())])
ROWS: list[dict[str, Any]] = [
    {"id": 1, "b": None, "s": {"v": None, "x": 5, "r": {"y": 6, "w": None}}, "p": "a"},
    {"id": 2, "b": None, "s": {"v": None, "x": None, "r": None}, "p": "a"},
    {"id": 3, "b": None, "s": None, "p": "b"},
]
PROPERTIES: dict[str, dict[str, str]] = {
    "plain": {},
    "mapped": {"delta.columnMapping.mode": "name"},
    "by id": {"delta.columnMapping.mode": "id"},
    "tracked": {
        "delta.enableChangeDataFeed": "true",
        "delta.enableRowTracking": "true",
        "delta.enableDeletionVectors": "true",
    },
}


def table_of(found: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(found, schema=SCHEMA)


def sorted_rows(table: DeltaTable, **options: Any) -> list[dict[str, Any]]:
    found = pa.table(DeltaTable(table.table_uri).to_arrow(**options)).to_pylist()
    return sorted(found, key=lambda row: row["id"])


@pytest.fixture(params=PROPERTIES)
def table(request: pytest.FixtureRequest, tmp_path: Path) -> DeltaTable:
    configuration = PROPERTIES[request.param]
    write_deltalake(tmp_path, table_of(ROWS), partition_by=["p"], configuration=configuration)
    return DeltaTable(tmp_path)


def test_a_void_column_is_in_the_schema_and_in_no_file(tmp_path: Path, table: DeltaTable) -> None:
    types = json.loads(action(tmp_path, 0, "metaData")["schemaString"])["fields"]
    assert types[1]["type"] == types[2]["type"]["fields"][0]["type"] == "void"
    for file in data_files(tmp_path):
        assert "void" not in str(pq.read_schema(tmp_path / file))
        assert pq.read_metadata(tmp_path / file).num_columns == 3
    assert pa.table(table.to_arrow()).schema.field("b").type == pa.null()
    assert sorted_rows(table) == ROWS
    assert sorted_rows(table, columns=["b", "id"]) == [{"b": None, "id": number} for number in (1, 2, 3)]
    assert sorted_rows(table, predicate="b IS NULL AND s.v IS NULL AND s.x = 5") == ROWS[:1]
    assert sorted_rows(table, predicate="b IS NOT NULL OR s.r.w IS NOT NULL") == []


def test_rows_of_a_table_with_void_columns_are_changed(table: DeltaTable) -> None:
    write_deltalake(table, pa.table({"id": [4], "p": ["b"]}), mode="append")
    table.update({"id": "id + 10", "b": "NULL"}, predicate="b IS NULL AND id <> 2")
    changed = [{**row, "id": row["id"] + 10} for row in [*ROWS, {**ROWS[2], "id": 4}] if row["id"] != 2]
    assert sorted_rows(table) == [ROWS[1], *changed]
    source = table_of([{**ROWS[0], "id": 13}, {**ROWS[0], "id": 20}])
    merge = table.merge(source, "target.id = source.id", source_alias="source", target_alias="target")
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    table.delete("s.v IS NULL AND id = 2")
    table.optimize.compact()
    assert [row["id"] for row in sorted_rows(table)] == [11, 13, 14, 20]
    assert sorted_rows(table)[3] == {**ROWS[0], "id": 20}
    table.create_checkpoint()
    assert sorted_rows(DeltaTable(table.table_uri), predicate="b IS NULL")[0] == {**ROWS[0], "id": 11}
    if table.metadata().configuration.get("delta.enableChangeDataFeed"):
        feed = pa.table(table.load_cdf(starting_version=0))
        assert feed.schema.field("b").type == pa.null()
        assert feed.num_rows > 8


def test_changes_are_read_across_the_version_that_gives_a_void_column_a_type(tmp_path: Path) -> None:
    write_deltalake(tmp_path, table_of(ROWS), configuration=PROPERTIES["tracked"])
    table = DeltaTable(tmp_path)
    table.alter.widen_column("s.r.w", "date")
    write_deltalake(table, pa.table({"id": [4], "b": [7]}), mode="append", schema_mode="merge")
    found = pa.table(DeltaTable(tmp_path).load_cdf(starting_version=0)).to_pylist()
    assert sorted((row["id"], row["b"]) for row in found) == [(1, None), (2, None), (3, None), (4, 7)]


def test_values_of_a_void_column_are_refused_unless_the_schema_is_merged(table: DeltaTable) -> None:
    given = pa.table({"id": [4], "b": [7], "p": ["b"]})
    with refused(
        Path(table.table_uri.removeprefix("file://")), SchemaMismatchError, "'b' has type void.*merge"
    ):
        write_deltalake(table, given, mode="append")
    with pytest.raises(InvalidArgumentError, match=r"'b'.*INT to VOID"):
        table.update({"b": "1"})
    write_deltalake(table, given, mode="append", schema_mode="merge")
    found = sorted_rows(table)
    assert [row["b"] for row in found] == [None, None, None, 7]
    assert found[0] == ROWS[0]
    merged = pa.table({"id": [5], "s": [{"v": [{"k": "x"}]}], "p": ["b"]})
    write_deltalake(table, merged, mode="append", schema_mode="merge")
    assert [row["s"] and row["s"]["v"] for row in sorted_rows(table)] == [
        None,
        None,
        None,
        None,
        [{"k": "x"}],
    ]
    protocol = DeltaTable(table.table_uri).protocol()
    assert "typeWidening" not in (protocol.writer_features or [])


def test_a_void_column_is_added_and_gets_a_type(table: DeltaTable) -> None:
    table.alter.add_columns(
        [Field("more", "void"), Field("o", StructType([Field("n", "void"), Field("m", "long")]))]
    )
    table.alter.widen_column("b", "date")
    table.alter.widen_column("s.r.w", "string")
    types = {found.name: found.type for found in DeltaTable(table.table_uri).schema().fields}
    assert str(types["b"]) == str(Field("b", "date").type)
    written = {**ROWS[0], "id": 4, "more": None, "o": {"n": None, "m": 1}}
    written["s"] = {"v": None, "x": 5, "r": {"y": 6, "w": "text"}}
    schema = pa.schema(pa.table(DeltaTable(table.table_uri).to_arrow()).schema)
    write_deltalake(table, pa.Table.from_pylist([written], schema=schema), mode="append")
    assert sorted_rows(table)[3] == written
    assert sorted_rows(table)[0] == {**ROWS[0], "more": None, "o": None}


def test_a_void_column_that_must_not_be_null_gets_a_type_if_no_row_has_null(tmp_path: Path) -> None:
    inner = StructType([Field("x", "long"), Field("v", "void", nullable=False)])
    fields = [Field("a", "long"), Field("b", "void", nullable=False), Field("s", inner)]
    table = DeltaTable.create(tmp_path, Schema(fields))
    table.alter.widen_column("b", "long")
    assert not DeltaTable(tmp_path).schema().fields[1].nullable
    write_deltalake(table, pa.table({"a": [1], "b": [1]}), mode="append")
    write_deltalake(table, pa.table({"a": [2], "b": [1]}), mode="append")
    with refused(tmp_path, SchemaMismatchError, "'s.v' contains NULL.*void"):
        write_deltalake(table, pa.table({"a": [3], "b": [1], "s": [{"x": 1}]}), mode="append")
    table.alter.widen_column("s.v", "long")
    assert [row["s"] for row in rows(DeltaTable(tmp_path))] == [None, None]


def with_null_in_void(path: Path) -> DeltaTable:
    """Creates a table with void columns that must not be NULL. It has rows nevertheless, and the void columns are NULL
    in all rows. Other writers may leave such tables.
    """
    inner = struct(field("x", "long"), {**field("v", "void"), "nullable": False})
    table = CraftedTable(
        path, [field("a", "long"), {**field("b", "void"), "nullable": False}, field("s", inner)]
    )
    table.write("f.parquet", pa.table({"a": [1, 2], "s": [{"x": 1}, None]}))
    table.add("f.parquet", stats={"numRecords": 2})
    return DeltaTable(table.commit())


def test_null_in_a_void_column_that_must_not_be_null_is_refused(tmp_path: Path) -> None:
    inner = StructType([Field("x", "long"), Field("v", "void", nullable=False)])
    table = DeltaTable.create(
        tmp_path / "new", Schema([Field("a", "long"), Field("b", "void", nullable=False)])
    )
    for given in ({"a": [1]}, {"a": [1], "b": pa.nulls(1)}):
        for mode in (None, "merge"):
            with refused(tmp_path / "new", SchemaMismatchError, "'b' contains NULL.*void"):
                write_deltalake(table, pa.table(given), mode="append", schema_mode=mode)
    write_deltalake(table, pa.table({"a": pa.array([], pa.int64())}), mode="append")
    table = with_null_in_void(tmp_path / "other")
    with refused(tmp_path / "other", SchemaMismatchError, "'b' contains NULL.*void"):
        table.update({"a": "3"}, predicate="a = 1")
    table.delete("a = 2")
    table.optimize.compact()
    assert rows(table) == [{"a": 1, "b": None, "s": {"x": 1, "v": None}}]
    nested = DeltaTable.create(tmp_path / "nested", Schema([Field("a", "long"), Field("s", inner)]))
    with refused(tmp_path / "nested", SchemaMismatchError, "'s.v' contains NULL"):
        write_deltalake(nested, pa.table({"a": [1, 2], "s": [None, {"x": 1}]}), mode="append")
    write_deltalake(nested, pa.table({"a": [1], "s": pa.nulls(1)}), mode="append")


def test_rows_with_null_in_a_void_column_that_must_not_be_null_prevent_a_type(tmp_path: Path) -> None:
    table = with_null_in_void(tmp_path)
    table.alter.drop_column_not_null("b")
    with refused(tmp_path, SchemaMismatchError, "'s.v'.*allow NULL"):
        table.alter.widen_column("s.v", "long")
    with refused(tmp_path, SchemaMismatchError, "'s.v'.*allow NULL"):
        merged = pa.table({"a": [3], "s": [{"v": 1}]})
        write_deltalake(table, merged, mode="append", schema_mode="merge")
    table.alter.drop_column_not_null("s.v")
    table.alter.widen_column("s.v", "long")
    assert {row["a"]: row["s"] for row in rows(DeltaTable(tmp_path))} == {1: {"x": 1, "v": None}, 2: None}


def test_null_into_a_column_with_a_type_keeps_the_type(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"a": [1], "b": ["x"]}))
    for schema_mode in (None, "merge"):
        write_deltalake(
            tmp_path, pa.table({"a": [2], "b": pa.nulls(1)}), mode="append", schema_mode=schema_mode
        )
    assert [row["b"] for row in rows(DeltaTable(tmp_path)) if row["a"] == 1] == ["x"]
    assert pa.table(DeltaTable(tmp_path).to_arrow(predicate="b IS NULL")).num_rows == 2
    write_deltalake(tmp_path, pa.table({"a": [3], "c": pa.nulls(1)}), mode="append", schema_mode="merge")
    assert DeltaTable(tmp_path).schema().fields[2].name == "c"
    write_deltalake(
        tmp_path, pa.table({"a": [4], "b": pa.nulls(1)}), mode="overwrite", schema_mode="overwrite"
    )
    assert rows(DeltaTable(tmp_path)) == [{"a": 4, "b": None}]


UNSTORABLE = {
    "nothing else": (pa.table({"b": pa.nulls(1)}), "neither a partition column nor void"),
    "a struct of void": (pa.array([{"v": None}], pa.struct({"v": pa.null()})), "'c'.*all have the type void"),
    "a nested struct of void": (
        pa.array(
            [{"x": 1, "r": {"v": None}}], pa.struct({"x": pa.int64(), "r": pa.struct({"v": pa.null()})})
        ),
        "'c.r'.*all have the type void",
    ),
    "a list": (pa.array([[]], pa.list_(pa.null())), r"'c.element'.*void in an array"),
    "a list of structs": (
        pa.array([[]], pa.list_(pa.struct({"x": pa.int64(), "v": pa.null()}))),
        r"'c.element'.*void in an array",
    ),
    "a map": (pa.array([[]], pa.map_(pa.string(), pa.null())), r"'c.value'.*void in an array or a map"),
}


@pytest.mark.parametrize("case", UNSTORABLE)
def test_what_no_file_can_hold_is_refused_for_rows(tmp_path: Path, case: str) -> None:
    data, said = UNSTORABLE[case]
    data = data if isinstance(data, pa.Table) else pa.table({"id": [1], "c": data})
    with pytest.raises(SchemaMismatchError, match=said):
        write_deltalake(tmp_path / "new", data)
    assert not (tmp_path / "new").exists()
    table = DeltaTable.create(tmp_path / "t", data.schema)
    with refused(tmp_path / "t", SchemaMismatchError, said):
        write_deltalake(table, data, mode="append")


def test_a_table_is_not_partitioned_or_clustered_by_void(tmp_path: Path) -> None:
    columns = Schema([Field("a", "long"), Field("b", "void")])
    with pytest.raises(SchemaMismatchError, match=r"partitioned by the column 'b'.*void"):
        DeltaTable.create(tmp_path, columns, partition_by=["b"])
    with pytest.raises(Exception, match="'b'"):
        DeltaTable.create(tmp_path, columns, cluster_by=["b"])


def test_void_columns_of_other_writers_are_read_whatever_their_files_have(tmp_path: Path) -> None:
    table = CraftedTable(
        tmp_path,
        [
            field("a", "long"),
            field("b", "void"),
            field("s", struct(field("v", "null"))),
            field("l", {"type": "array", "elementType": "void", "containsNull": True}),
        ],
    )
    table.write("f.parquet", pa.table({"a": [1], "b": [5]}))
    table.add("f.parquet", stats={"numRecords": 1, "nullCount": {"a": 0}})
    table.commit()
    opened = DeltaTable(tmp_path)
    assert rows(opened) == [{"a": 1, "b": None, "s": None, "l": None}]
    assert pa.table(opened.to_arrow(predicate="b IS NULL")).num_rows == 1
    with refused(tmp_path, SchemaMismatchError, "'s'.*void"):
        opened.update({"a": "2"})


def test_a_file_without_values_becomes_a_void_column(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1], "b": pa.nulls(1)}), tmp_path / "f.parquet")
    table = convert_to_delta(tmp_path)
    assert rows(table) == [{"a": 1, "b": None}]
    assert table.schema().fields[1] == Field("b", "void")
    table.alter.add_columns(Field("l", ArrayType("long")))
    write_deltalake(table, pa.table({"a": [2], "l": [[1]]}), mode="append")
    assert [row["b"] for row in rows(table)] == [None, None]
