"""Changes of a table's columns (PROTOCOL, "Schema Serialization Format", "Column Mapping"; table feature
`typeWidening`).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deltalog import ArrayType, DeltaTable, Field, Schema, StructType, write_deltalake
from deltalog.errors import (
    CommitConflictError,
    InvalidArgumentError,
    SchemaMismatchError,
    UnsupportedFeatureError,
)
from tests.crafted import CraftedTable, field
from tests.python.alter_support import action, created, refused, rows
from tests.python.interfering import overtaken

MAPPED = {"delta.columnMapping.mode": "name"}
NESTED = pa.table(
    {
        "id": pa.array([1], pa.int32()),
        "s": pa.array(
            [{"x": 1, "l": [{"z": 2}]}],
            pa.struct([("x", pa.int32()), ("l", pa.list_(pa.struct([("z", pa.int32())])))]),
        ),
        "m": pa.array([[("k", 3)]], pa.map_(pa.string(), pa.int32())),
    }
)


def names(table: DeltaTable) -> list[str]:
    return [field.name for field in table.schema().fields]


def operation(path: Path, version: int) -> tuple[str, dict[str, Any]]:
    info = action(path, version, "commitInfo")
    return info["operation"], info["operationParameters"]


@pytest.mark.parametrize("configuration", [{}, MAPPED])
def test_columns_are_added_at_any_place(tmp_path: Path, configuration: dict[str, str]) -> None:
    table = created(tmp_path, NESTED, configuration=configuration)
    new = [Field("a", "string", metadata={"comment": "new"}), Field("b", ArrayType("date"))]
    assert table.alter.add_columns(new) == 1
    assert table.alter.add_columns(Field("first", "long"), first=True) == 2
    assert table.alter.add_columns([Field("c", "long"), Field("d", "long")], after="ID") == 3
    assert names(table) == ["first", "id", "c", "d", "s", "m", "a", "b"]
    assert table.alter.add_columns(Field("y", "string"), parent="s", after="x") == 4
    assert table.alter.add_columns(Field("w", StructType([Field("v", "long")])), parent="s.l.element") == 5
    (row,) = rows(table)
    assert row["s"] == {"x": 1, "y": None, "l": [{"z": 2, "w": None}]}
    assert (row["first"], row["c"], row["a"], row["b"], row["m"]) == (None, None, None, None, [("k", 3)])
    name, parameters = operation(tmp_path, 4)
    assert name == "ADD COLUMNS"
    (column,) = json.loads(parameters["columns"])
    assert (column["column"]["name"], column["column"]["type"], column["position"]) == (
        "s.y",
        "string",
        "AFTER x",
    )
    # New rows may have values in the new columns, and rows from writers that do not know the columns still fit.
    data = pa.table({"id": pa.array([2], pa.int32()), "a": ["x"], "c": pa.array([7], pa.int64())})
    write_deltalake(tmp_path, data, mode="append")
    assert DeltaTable(tmp_path).count("c = 7 AND a = 'x' AND first IS NULL") == 1
    if configuration:
        maximum = int(table.metadata().configuration["delta.columnMapping.maxColumnId"])
        text = table.schema().to_json()
        assert maximum == 6 + 8
        assert text.count("physicalName") == maximum


def test_columns_that_cannot_be_added(tmp_path: Path) -> None:
    table = created(tmp_path, NESTED)
    cases: list[tuple[list[Field], dict[str, Any], type[Exception], str]] = [
        ([Field("ID", "long")], {}, SchemaMismatchError, "appears twice"),
        ([Field("X", "long")], {"parent": "s"}, SchemaMismatchError, "appears twice"),
        ([Field("a", "long", nullable=False)], {}, SchemaMismatchError, "not nullable"),
        ([Field("a b", "long")], {}, SchemaMismatchError, "Parquet"),
        ([Field("", "long")], {}, SchemaMismatchError, "empty"),
        ([Field("a", "long")], {"parent": "id"}, InvalidArgumentError, "no struct 'id'"),
        ([Field("a", "long")], {"after": "nope"}, InvalidArgumentError, "no column 'nope'"),
        ([Field("a", "long")], {"after": "id", "first": True}, InvalidArgumentError, "not both"),
        (
            [Field("a", "long", metadata={"delta.generationExpression": "id"})],
            {},
            InvalidArgumentError,
            "comment",
        ),
    ]
    for fields, options, error, match in cases:
        with refused(tmp_path, error, match):
            table.alter.add_columns(fields, **options)


def test_a_new_type_adds_its_feature(tmp_path: Path) -> None:
    table = created(tmp_path)
    table.alter.add_columns(Field("t", "timestamp_ntz"))
    assert table.protocol().reader_features == ["timestampNtz"]
    table.alter.add_columns(Field("v", "variant"))
    assert table.protocol().reader_features == ["timestampNtz", "variantType"]


def test_writers_do_not_conflict_with_an_added_column(tmp_path: Path) -> None:
    """A new nullable column and concurrent writers of rows do not conflict with each other."""
    table, stale = created(tmp_path), DeltaTable(tmp_path)
    table.alter.add_columns(Field("a", "long"))
    assert stale.version() == 0
    write_deltalake(stale, pa.table({"id": pa.array([3], pa.int64())}), mode="append")
    assert DeltaTable(tmp_path).count("a IS NULL") == 3


def test_columns_are_renamed_and_dropped_without_rewriting(tmp_path: Path) -> None:
    """PROTOCOL, "Column Mapping": "to support the renaming and dropping of columns without having to rewrite"."""
    data = NESTED.append_column("p", [["a"]]).append_column("old", [["gone"]])
    table = created(tmp_path, data, partition_by=["p"], configuration=MAPPED)
    files = sorted(path.name for path in tmp_path.rglob("*.parquet"))
    assert table.alter.rename_column("s.l.element.z", "zz") == 1
    assert table.alter.rename_column("ID", "a name, with {}") == 2
    assert table.alter.rename_column("p", "part") == 3
    assert table.metadata().partition_columns == ["part"]
    assert operation(tmp_path, 2)[1]["newColumnPath"] == "a name, with {}"
    assert table.alter.drop_columns(["old", "s.x"]) == 4
    assert operation(tmp_path, 4) == ("DROP COLUMNS", {"columns": '["old","s.x"]'})
    expected = {"a name, with {}": 1, "s": {"l": [{"zz": 2}]}, "m": [("k", 3)], "part": "a"}
    assert rows(table) == [expected]
    # A new column with the same name is a different column.
    table.alter.add_columns(Field("old", "string"))
    assert rows(table) == [{**expected, "old": None}]
    write_deltalake(
        tmp_path, pa.Table.from_pylist([{**expected, "old": "new"}], pa.schema(table.schema())), mode="append"
    )
    assert DeltaTable(tmp_path).count("part = 'a' AND `a name, with {}` = 1 AND old = 'new'") == 1
    assert set(files) < {path.name for path in tmp_path.rglob("*.parquet")}
    changes: list[tuple[Callable[[], int], type[Exception], str]] = [
        (lambda: table.alter.drop_columns("part"), InvalidArgumentError, "partitioned by it"),
        (lambda: table.alter.drop_columns("s.l"), InvalidArgumentError, "only field of its struct"),
        (lambda: table.alter.drop_columns("nope"), InvalidArgumentError, "no column 'nope'"),
        (
            lambda: table.alter.drop_columns(["a name, with {}", "s", "m", "old"]),
            InvalidArgumentError,
            "would have no column",
        ),
        (lambda: table.alter.rename_column("s", "M"), SchemaMismatchError, "appears twice"),
        (lambda: table.alter.rename_column("s", ""), InvalidArgumentError, "empty"),
    ]
    for change, error, match in changes:
        with refused(tmp_path, error, match):
            change()


def test_statistics_follow_columns(tmp_path: Path) -> None:
    """After a column was renamed, filters on its new name still use the statistics of old files."""
    listed = {"delta.dataSkippingStatsColumns": "id, s.x, S.l"}
    table = created(tmp_path, NESTED, configuration={**MAPPED, **listed})
    table.alter.rename_column("ID", "a key")
    table.alter.rename_column("s", "t")
    assert table.metadata().configuration["delta.dataSkippingStatsColumns"] == "`a key`,t.x,t.l"
    table.alter.drop_columns("t.l")
    assert table.metadata().configuration["delta.dataSkippingStatsColumns"] == "`a key`,t.x"
    data = pa.table({"a key": pa.array([5], pa.int32()), "m": pa.array([[]], NESTED.schema.field("m").type)})
    write_deltalake(tmp_path, data, mode="append")
    assert DeltaTable(tmp_path).min_max("a key") == (1, 5)


def test_columns_of_unmapped_tables_stay(tmp_path: Path) -> None:
    table = created(tmp_path)
    with refused(tmp_path, UnsupportedFeatureError, "column mapping"):
        table.alter.rename_column("id", "key")
    with refused(tmp_path, UnsupportedFeatureError, "column mapping"):
        table.alter.drop_columns("id")


def crafted(path: Path) -> DeltaTable:
    """Creates a table with a CHECK constraint on `a`, and with a column `g` that is generated from `b`."""
    metadata = [
        {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": name}
        for number, name in enumerate("abgc", 1)
    ]
    metadata[2]["delta.generationExpression"] = "b + 1"
    table = CraftedTable(
        path,
        [field(name, "integer", meta) for name, meta in zip("abgc", metadata, strict=True)],
        features=["columnMapping", "typeWidening"],
        writer_features=["checkConstraints", "generatedColumns"],
        configuration={
            **MAPPED,
            "delta.columnMapping.maxColumnId": "4",
            "delta.enableTypeWidening": "true",
            "delta.constraints.positive": "A > 0",
        },
    )
    table.commit()
    return DeltaTable(path)


def test_columns_to_which_rules_refer_cannot_be_changed(tmp_path: Path) -> None:
    """PROTOCOL, "CHECK Constraints": "Columns referred by the SQL expression must exist in the table schema"."""
    table = crafted(tmp_path)
    for column, by in [
        ("a", "the constraint 'positive'"),
        ("b", "the generated column 'g'"),
        ("g", "the generated column 'g'"),
    ]:
        dropped = partial(table.alter.drop_columns, column)
        renamed = partial(table.alter.rename_column, column, "z")
        widened = partial(table.alter.widen_column, column, "long")
        for change in (dropped, renamed, widened):
            with refused(tmp_path, InvalidArgumentError, by):
                change()
    assert table.alter.widen_column("c", "long") == 1
    assert table.alter.rename_column("c", "z") == 2
    assert table.alter.drop_columns("z") == 3


def test_clustering_columns_get_other_names_and_types(tmp_path: Path) -> None:
    """PROTOCOL, "Clustered Table": clustering columns can be renamed and widened, because the domain has physical
    names, and OPTIMIZE still works afterwards. Only dropping a clustering column is refused.
    """
    configuration = {**MAPPED, "delta.enableTypeWidening": "true"}
    data = pa.table({"a": pa.array([3, 1, 2], pa.int32()), "s": [{"b": "x"}] * 3, "c": [1, 2, 3]})
    fields = Schema.from_arrow(data.schema)
    table = DeltaTable.create(tmp_path, schema=fields, cluster_by=["a", "s.b"], configuration=configuration)
    write_deltalake(table, data, mode="append")
    table = DeltaTable(tmp_path)
    table.alter.rename_column("a", "key")
    table.alter.rename_column("s", "t")
    table.alter.rename_column("t.b", "d")
    table.alter.widen_column("key", "long")
    assert table.clustering_columns() == ["key", "t.d"]
    for column in ("key", "t", "t.d"):
        with refused(tmp_path, InvalidArgumentError, "the clustering of the table refers to it"):
            table.alter.drop_columns(column)
    assert table.optimize.cluster()["numFilesAdded"] == 1
    found = pa.table(table.to_arrow()).to_pydict()
    assert (sorted(found["key"]), found["t"]) == ([1, 2, 3], [{"d": "x"}] * 3)
    table.alter.rename_column("key", "again")
    write_deltalake(tmp_path, pa.table(DeltaTable(tmp_path).to_arrow()), mode="append")
    table = DeltaTable(tmp_path)
    # As in the JVM connector, files record the names of the columns by which they were clustered.
    assert table.optimize.cluster()["numFilesRemoved"] == 1
    assert DeltaTable(tmp_path).optimize.cluster(full=True)["numFilesRemoved"] == 2
    table = DeltaTable(tmp_path)
    table.alter.cluster_by("c")
    table.alter.drop_columns("again")


def test_columns_are_moved(tmp_path: Path) -> None:
    table = created(tmp_path, NESTED)
    assert table.alter.move_column("m") == 1
    assert table.alter.move_column("id", after="s") == 2
    assert table.alter.move_column("s.l") == 3
    assert names(table) == ["m", "s", "id"]
    assert rows(table) == [{"m": [("k", 3)], "s": {"l": [{"z": 2}], "x": 1}, "id": 1}]
    name, parameters = operation(tmp_path, 2)
    assert (name, parameters["position"], json.loads(parameters["column"])["name"]) == (
        "CHANGE COLUMN",
        "AFTER s",
        "id",
    )
    with refused(tmp_path, InvalidArgumentError, "no column 'id'"):
        table.alter.move_column("id", after="id")


def test_comments(tmp_path: Path) -> None:
    table = created(tmp_path, NESTED, configuration=MAPPED)
    before = table.schema().to_json()
    assert table.alter.set_column_metadata("s.x", {"comment": "a number", "mine": "1"}) == 1
    assert '"comment":"a number"' in table.schema().to_json()
    assert table.alter.set_column_metadata("s.x", {"comment": None, "mine": None}) == 2
    assert json.loads(table.schema().to_json()) == json.loads(before)
    for key in (
        "delta.invariants",
        "DELTA.columnMapping.id",
        "CURRENT_DEFAULT",
        "__CHAR_VARCHAR_TYPE_STRING",
    ):
        with refused(tmp_path, InvalidArgumentError, "act on it"):
            table.alter.set_column_metadata("s.x", {key: "1"})


def test_a_column_with_null_cannot_be_made_not_null(tmp_path: Path) -> None:
    inner = pa.struct([("x", pa.int64()), ("y", pa.int64())])
    data = pa.table(
        {
            "full": [1, 2],
            "holes": [1, None],
            "s": pa.array([{"x": 1, "y": None}, None], inner),
            "p": ["a", None],
            "l": [[1], [2]],
        }
    )
    table = created(tmp_path, data, partition_by=["p"])
    assert table.alter.set_column_not_null("full") == 1
    assert table.alter.set_column_not_null("s.x") == 2
    for column in ("holes", "s", "s.y", "p"):
        with refused(tmp_path, SchemaMismatchError, "rows with NULL"):
            table.alter.set_column_not_null(column)
    with refused(tmp_path, SchemaMismatchError, "full"):
        write_deltalake(tmp_path, data.set_column(0, "full", pa.array([None, 3], pa.int64())), mode="append")
    assert table.alter.drop_column_not_null("full") == 3
    assert table.alter.drop_column_not_null("full") == 3
    write_deltalake(tmp_path, data.set_column(0, "full", pa.array([None, 3], pa.int64())), mode="append")
    assert DeltaTable(tmp_path).count("full IS NULL") == 1


def test_null_is_found_in_files_without_statistics(tmp_path: Path) -> None:
    table = CraftedTable(tmp_path, [field("a", "long"), field("b", "long")], writer_features=["invariants"])
    table.write("x.parquet", pa.table({"a": [1, 2], "b": [1, None]}))
    table.add("x.parquet")
    table.commit()
    opened = DeltaTable(tmp_path)
    with refused(tmp_path, SchemaMismatchError, "rows with NULL"):
        opened.alter.set_column_not_null("b")
    assert opened.alter.set_column_not_null("a") == 1


def test_forbidding_null_conflicts_with_rows_that_were_not_checked(tmp_path: Path) -> None:
    table = created(tmp_path)
    write_deltalake(tmp_path, pa.table({"id": pa.array([None], pa.int64())}), mode="append")
    with refused(tmp_path, CommitConflictError, "version 1"):
        overtaken(DeltaTable(tmp_path, version=0)).alter.set_column_not_null("id")
    with refused(tmp_path, SchemaMismatchError, "rows with NULL"):
        table.alter.set_column_not_null("id")


def test_types_are_widened_and_the_change_is_recorded(tmp_path: Path) -> None:
    table = created(tmp_path, NESTED, configuration={"delta.enableTypeWidening": "true"})
    assert table.alter.widen_column("id", "long") == 1
    assert table.alter.widen_column("m.value", "decimal(12,2)") == 2
    assert table.alter.widen_column("s.l.element.z", "double") == 3
    assert table.alter.widen_column("id", "decimal(20,0)") == 4
    fields = {field["name"]: field for field in json.loads(table.schema().to_json())["fields"]}
    assert fields["id"]["metadata"]["delta.typeChanges"] == [
        {"fromType": "integer", "toType": "long"},
        {"fromType": "long", "toType": "decimal(20,0)"},
    ]
    assert fields["m"]["metadata"]["delta.typeChanges"] == [
        {"fromType": "integer", "toType": "decimal(12,2)", "fieldPath": "value"}
    ]
    (row,) = rows(table)
    assert (row["id"], row["m"], row["s"]["l"]) == (1, [("k", 3)], [{"z": 2.0}])
    data = pa.table({"id": pa.array([10**19], pa.decimal128(20, 0))})
    write_deltalake(tmp_path, data, mode="append")
    newest = DeltaTable(tmp_path)
    assert newest.count("id = 10000000000000000000") == newest.count("id = 1") == 1
    for column, wanted in [("id", "long"), ("m.value", "long"), ("m.key", "binary"), ("s.x", "short")]:
        with refused(tmp_path, SchemaMismatchError, "not a wider type"):
            table.alter.widen_column(column, wanted)
    assert table.alter.widen_column("s.x", "integer") == 5, "nothing is committed"


def test_types_of_partition_columns_are_widened(tmp_path: Path) -> None:
    data = pa.table({"p": pa.array([1, 2], pa.int16()), "v": ["a", "b"]})
    table = created(tmp_path, data, partition_by=["p"], configuration={"delta.enableTypeWidening": "true"})
    table.alter.widen_column("p", "long")
    write_deltalake(tmp_path, pa.table({"p": pa.array([2**40], pa.int64()), "v": ["c"]}), mode="append")
    found = pa.table(DeltaTable(tmp_path).to_arrow()).sort_by("p")
    assert found["p"].to_pylist() == [1, 2, 2**40]


def test_types_of_tables_that_do_not_allow_it_stay(tmp_path: Path) -> None:
    table = created(tmp_path, pa.table({"a": pa.array([1], pa.int32())}))
    with refused(tmp_path, InvalidArgumentError, "delta.enableTypeWidening"):
        table.alter.widen_column("a", "long")
    assert pq.read_schema(next(tmp_path.glob("*.parquet"))).field("a").type == pa.int32()


def test_a_name_with_a_dot_is_written_in_backticks(tmp_path: Path) -> None:
    configuration = {"delta.columnMapping.mode": "name"}
    write_deltalake(tmp_path, pa.table({"z.z": [1], "q": [2]}), configuration=configuration)
    table = DeltaTable(tmp_path)
    changes: list[Callable[[], object]] = [
        lambda: table.alter.rename_column("z.z", "y"),
        lambda: table.alter.drop_columns(["z.z"]),
        lambda: table.alter.drop_column_not_null("z.z"),
    ]
    for change in changes:
        with pytest.raises(InvalidArgumentError, match=r"the table has no column 'z\.z'") as error:
            change()
        assert error.value.hint == "a name with a dot is written in backticks: `z.z`"
    with refused(tmp_path, InvalidArgumentError, r"the table has no column 'y\.z'.*the columns are z\.z, q"):
        table.alter.rename_column("y.z", "y")
    table.alter.rename_column("`z.z`", "y")
    assert table.schema().names == ["y", "q"]
