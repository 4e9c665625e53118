"""The names taken from `deltalake` return what `deltalake` returns."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import deltalake
import numpy as np
import pyarrow as pa
import pyarrow.compute
import pytest

import deltalog
from deltalog.filters import filter_argument

DAY = datetime.date(2024, 2, 29)
NOON = datetime.datetime(2024, 2, 29, 12, 30, 15, 250_000, datetime.timezone.utc)
DATA = pa.table(
    {
        "p": pa.array([1, 1, 2, None, 3], pa.int32()),
        "q": ["a", "it's \\ a", "b", "a", None],
        "n": pa.array([1, 2, None, 4, 5], pa.int64()),
        "x": [0.5, 1e300, -1.0, None, 2.0],
        "s": ["x", "y'", "\\z", None, "x"],
        "d": pa.array([DAY, None, DAY + datetime.timedelta(1), DAY, DAY], pa.date32()),
        "t": pa.array([NOON, NOON, None, NOON + datetime.timedelta(1), NOON], pa.timestamp("us", "UTC")),
        "c": pa.array([Decimal("1.50"), None, Decimal("-2.25"), Decimal(0), Decimal(9)], pa.decimal128(9, 2)),
        "b": [b"\x00\xff", None, b"", b"a", b"a"],
        "f": [True, False, None, True, False],
    }
)

FILTERS: list[Any] = [
    [("n", "=", 1)],
    [("n", "==", 2)],
    [("n", "!=", 1)],
    [("n", ">", 1), ("n", "<=", 4)],
    [[("n", "=", 1)], [("n", "=", 5), ("f", "=", False)]],
    [("n", "in", [1, 5])],
    [("n", "not in", [1, 5])],
    [("n", "in", [])],
    [("n", "not in", [])],
    [("s", "=", "y'")],
    [("s", "=", "\\z")],
    [("q", "=", "it's \\ a")],
    [("s", "not in", ["x"])],
    [("x", ">=", 1e300)],
    [("x", "<", -0.5)],
    [("d", ">", DAY)],
    [("t", "=", NOON)],
    [("t", ">", NOON)],
    [("c", "<", Decimal("1.5"))],
    [("b", "=", b"\x00\xff")],
    [("f", "=", True)],
    [("p", "=", 1)],
    [("p", "in", (2, 3)), ("f", "!=", True)],
]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("names")
    deltalake.write_deltalake(path, DATA, partition_by=["p", "q"])
    return path


def rows(table: pa.Table) -> list[str]:
    return sorted(repr(row) for row in table.select(DATA.column_names).to_pylist())


@pytest.mark.parametrize("filters", FILTERS, ids=repr)
def test_filters_find_the_rows_that_deltalake_finds(table: Path, filters: Any) -> None:
    theirs, ours = deltalake.DeltaTable(table), deltalog.DeltaTable(table)
    expected = rows(theirs.to_pyarrow_table(filters=filters))
    assert rows(ours.to_pyarrow_table(filters=filters)) == expected
    assert rows(pa.table(ours.scan(predicate=filters))) == expected
    assert ours.count(filters) == len(expected)
    # A pandas frame may show NULL as NaN.
    assert len(ours.to_pandas(filters=filters, columns=["n"])) == len(expected)


def test_columns_partitions_and_filters_together(table: Path) -> None:
    theirs, ours = deltalake.DeltaTable(table), deltalog.DeltaTable(table)
    chosen: dict[str, Any] = {
        "partitions": [("p", "=", "1")],
        "columns": ["s", "n"],
        "filters": [("n", "<", 9)],
    }
    with pytest.warns(DeprecationWarning, match="partitions"):
        expected = theirs.to_pyarrow_table(**chosen)
    found = ours.to_pyarrow_table(**chosen)
    assert found.column_names == expected.column_names == ["s", "n"]
    assert sorted(found.to_pylist(), key=repr) == sorted(expected.to_pylist(), key=repr)
    assert ours.to_pandas(columns=["n"], filters="n > 1 AND n < 5")["n"].tolist() in ([2, 4], [4, 2])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (("p", ">=", "2"), ("p", ">=", 2)),
        (("p", "in", ["1", "3"]), ("p", "in", [1, 3])),
        (("x", "<", "1e0"), ("x", "<", 1.0)),
        (("c", "=", "1.50"), ("c", "=", Decimal("1.5"))),
        (("d", "=", "2024-02-29"), ("d", "=", DAY)),
        (("t", "=", "2024-02-29T12:30:15.250Z"), ("t", "=", NOON)),
        (("f", "=", "true"), ("f", "=", True)),
        (("P", ">=", "2"), ("p", ">=", 2)),
        (("P", "in", ["1", "3"]), ("p", "in", [1, 3])),
    ],
)
def test_text_is_a_value_of_the_column(table: Path, text: Any, value: Any) -> None:
    ours = deltalog.DeltaTable(table)
    expected = ours.to_pyarrow_table(filters=[value])
    assert expected.num_rows > 0
    assert ours.to_pyarrow_table(filters=[text]).equals(expected)


@pytest.mark.parametrize(
    ("numpys", "value"),
    [
        (("x", ">", np.float64(0.5)), ("x", ">", 0.5)),
        (("x", ">", np.float32(0.5)), ("x", ">", 0.5)),
        (("n", "<", np.int64(4)), ("n", "<", 4)),
        (("p", "in", np.array([1, 3])), ("p", "in", [1, 3])),
        (("f", "=", np.bool_(True)), ("f", "=", True)),
        (("s", "=", np.str_("x")), ("s", "=", "x")),
    ],
)
def test_scalars_of_numpy_are_values(table: Path, numpys: Any, value: Any) -> None:
    ours = deltalog.DeltaTable(table)
    expected = ours.to_pyarrow_table(filters=[value])
    assert expected.num_rows > 0
    assert ours.to_pyarrow_table(filters=[numpys]).equals(expected)


def test_partitions(table: Path) -> None:
    theirs, ours = deltalake.DeltaTable(table), deltalog.DeltaTable(table)

    def sets(partitions: list[Any]) -> set[frozenset[Any]]:
        return {frozenset(partition.items()) for partition in partitions}

    assert sets(ours.partitions()) == sets(theirs.partitions())
    assert ours.partitions() == [
        {"p": None, "q": "a"},
        {"p": "1", "q": "a"},
        {"p": "1", "q": "it's \\ a"},
        {"p": "2", "q": "b"},
        {"p": "3", "q": None},
    ]
    for chosen in ([("p", "=", 1)], [("q", "in", ["a", "b"])]):
        assert sets(ours.partitions(chosen)) == sets(theirs.partitions(file_pruning_predicate=chosen))
    assert ours.partitions("n = 5") == [{"p": "3", "q": None}]


def test_a_table_without_partition_columns_has_no_partitions(tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path, DATA)
    assert deltalog.DeltaTable(tmp_path).partitions() == deltalake.DeltaTable(tmp_path).partitions() == []


def test_transaction_version(tmp_path: Path) -> None:
    progress = deltalake.CommitProperties(app_transactions=[deltalake.Transaction("app", 5)])
    deltalake.write_deltalake(tmp_path, DATA, commit_properties=progress)
    theirs, ours = deltalake.DeltaTable(tmp_path), deltalog.DeltaTable(tmp_path)
    for app in ("app", "another"):
        assert ours.transaction_version(app) == theirs.transaction_version(app)
    assert ours.transaction_version("app") == 5


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"filesystem": object()}, deltalog.UnsupportedFeatureError, "filesystem, of pyarrow"),
        ({"filters": pa.compute.field("n") > 1}, deltalog.UnsupportedFeatureError, "type Expression"),
        ({"filters": [("n", "~", 1)]}, deltalog.InvalidArgumentError, "one of"),
        ({"filters": [("n", "=", None)]}, deltalog.InvalidArgumentError, "IS NULL"),
        ({"filters": [("x", "=", float("nan"))]}, deltalog.InvalidArgumentError, "no SQL form"),
        ({"filters": [("n", "in", "15")]}, deltalog.InvalidArgumentError, "list of values"),
        ({"filters": [("n", "=", "one")]}, deltalog.InvalidArgumentError, "not a value of the type long"),
        ({"filters": [("c", "=", "one")]}, deltalog.InvalidArgumentError, "not a value of the type decimal"),
        ({"filters": [("x", "=", "NaN")]}, deltalog.InvalidArgumentError, "no SQL form"),
        ({"filters": [("x", "<", "-Infinity")]}, deltalog.InvalidArgumentError, "no SQL form"),
        ({"filters": [("c", "=", "NaN")]}, deltalog.InvalidArgumentError, "no SQL form"),
        ({"filters": [("n", "=", np.timedelta64(1, "s"))]}, deltalog.InvalidArgumentError, "no SQL form"),
        ({"filters": [("f", "=", "maybe")]}, deltalog.InvalidArgumentError, "cannot be compared"),
        ({"filters": [("n", 1)]}, deltalog.InvalidArgumentError, "a tuple of column"),
        ({"filters": [("missing", "=", 1)]}, deltalog.InvalidArgumentError, "missing"),
        ({"columns": "n"}, deltalog.InvalidArgumentError, "list of names"),
    ],
)
def test_invalid_arguments(table: Path, arguments: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        deltalog.DeltaTable(table).to_pyarrow_table(**arguments)


def test_fields_of_the_schema(tmp_path: Path) -> None:
    nested = deltalog.StructType([deltalog.Field("x", "double"), deltalog.Field("y", "date")])
    fields = [
        deltalog.Field("id", "long", nullable=False, metadata={"comment": "the \u201ckey\u201d"}),
        deltalog.Field("price", "decimal(9,2)"),
        deltalog.Field("tags", deltalog.ArrayType("string", contains_null=False)),
        deltalog.Field("more", deltalog.MapType("string", nested, value_contains_null=False)),
    ]
    deltalog.DeltaTable.create(tmp_path, deltalog.Schema(fields))
    theirs = deltalake.DeltaTable(tmp_path).schema().fields
    ours = deltalog.DeltaTable(tmp_path).schema().fields
    assert ours == fields
    assert [json.loads(field.to_json()) for field in ours] == [
        json.loads(field.to_json()) for field in theirs
    ]
    assert [repr(field.type) for field in ours] == [repr(field.type) for field in theirs]
    assert [(field.name, field.nullable) for field in ours] == [
        (field.name, field.nullable) for field in theirs
    ]


def test_a_filter_with_many_texts_parses_the_schema_once(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = deltalog.DeltaTable(table).schema()
    parsed: list[list[deltalog.Field]] = []

    def fields(_: deltalog.Schema) -> list[deltalog.Field]:
        parsed.append(found)
        return found

    found = schema.fields
    monkeypatch.setattr(deltalog.Schema, "fields", property(fields))
    assert filter_argument([("p", "in", [str(number) for number in range(100)])], schema, "predicate")
    assert len(parsed) == 1
