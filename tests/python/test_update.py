"""UPDATE, with and without deletion vectors. Protocol: "Row Tracking", "Generated Columns", "Change Data Files"."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltalog
from deltalog import (
    CommitConflictError,
    DeltaTable,
    Field,
    Identity,
    InvalidArgumentError,
    Schema,
    SchemaMismatchError,
    UnsupportedFeatureError,
)
from tests.python.interfering import overtaken
from tests.python.place import data_files, tree
from tests.python.statement_support import (
    FEED,
    TRACKED,
    VECTORS,
    Row,
    content,
    created,
    expected_feed,
    feed,
    in_order,
    metrics,
    rows_of,
)

FILES: list[list[Row]] = [[(1, "a", 1), (2, "a", None), (3, None, 3)], [(4, "b", 4), (5, "b", 5)]]
ROWS = [row for rows in FILES for row in rows]
BOTH = pytest.mark.parametrize("properties", [{}, VECTORS], ids=["copied", "vectors"])


@BOTH
def test_values_are_computed_from_the_old_row(tmp_path: Path, properties: dict[str, str]) -> None:
    table = created(tmp_path, FILES, {**properties, **FEED})
    done = metrics(table.update({"n": "id", "id": "n * 10"}, predicate="n > 3"))
    assert content(table) == in_order([*ROWS[:3], (40, "b", 4), (50, "b", 5)])
    assert done["numUpdatedRows"] == 2
    assert feed(table, table.version()) == expected_feed(ROWS[3:], [(40, "b", 4), (50, "b", 5)])
    info = table.history(1)[0]
    assert info["operation"] == "UPDATE"
    assert info["operationParameters"]["predicate"] == '["n > 3"]'
    assert {name: int(value) for name, value in info["operationMetrics"].items()} == done


@BOTH
def test_all_rows_are_updated_without_a_predicate(tmp_path: Path, properties: dict[str, str]) -> None:
    table = created(tmp_path, FILES, properties)
    done = metrics(table.update(new_values={"p": "it's \\ new", "n": None}))
    assert content(table) == in_order((row[0], "it's \\ new", None) for row in ROWS)
    assert (done["numUpdatedRows"], done["numCopiedRows"], done["numRemovedFiles"]) == (5, 0, 2)


@BOTH
def test_partition_columns_may_be_changed(tmp_path: Path, properties: dict[str, str]) -> None:
    table = created(tmp_path, FILES, {**properties, **FEED}, ["p"])
    table.update({"p": "CASE WHEN id = 1 THEN 'b' ELSE NULL END"}, predicate="p = 'a'")
    after = [(1, "b", 1), (2, None, None)]
    assert content(table) == in_order([*after, *ROWS[2:]])
    assert feed(table, table.version()) == expected_feed(ROWS[:2], after)
    assert table.count_by_partition() is not None


def test_vectors_write_changed_rows_only(tmp_path: Path) -> None:
    table = created(tmp_path, FILES, VECTORS)
    done = metrics(table.update({"n": "0"}, predicate="id IN (1, 4)"))
    assert (done["numAddedFiles"], done["numRemovedFiles"], done["numCopiedRows"]) == (1, 0, 0)
    assert (done["numDeletionVectorsAdded"], done["numUpdatedRows"]) == (2, 2)
    # Updates rows of a file that has already lost some rows.
    table.update({"n": "n + 1"}, predicate="id <= 4")
    assert content(table) == in_order([(1, "a", 1), (2, "a", None), (3, None, 4), (4, "b", 1), (5, "b", 5)])


@BOTH
def test_changed_rows_keep_their_ids_and_get_the_version(tmp_path: Path, properties: dict[str, str]) -> None:
    """Protocol, "Row Tracking": a row keeps its id, and its commit version is the version of its last change."""
    table = created(tmp_path, FILES, {**TRACKED, **properties})

    def ids() -> dict[int, tuple[int, int]]:
        rows = pa.table(table.to_arrow(row_ids=True)).to_pylist()
        return {row["id"]: (row["_row_id"], row["_row_commit_version"]) for row in rows}

    before = ids()
    for keys in ([2, 4], [4]):
        table.update({"n": "7"}, predicate=f"id IN ({', '.join(map(str, keys))})")
        before.update({key: (before[key][0], table.version()) for key in keys})
        assert ids() == before


@BOTH
def test_rules_of_the_table_hold(tmp_path: Path, properties: dict[str, str]) -> None:
    schema = Schema(
        [
            Field("id", "long", nullable=False),
            Field("double", "long", generated_as="id * 2"),
            Field("name", "string", metadata={"__CHAR_VARCHAR_TYPE_STRING": "varchar(3)"}),
        ]
    )
    table = DeltaTable.create(
        tmp_path, schema, configuration=dict(properties) or None, constraints={"positive": "id > 0"}
    )
    deltalog.write_deltalake(tmp_path, pa.table({"id": [1, 2], "name": ["a", "b"]}), mode="append")
    table.update_incremental()
    table.update({"id": "id + 10"}, predicate="id = 1")
    assert content(table) == in_order([(11, 22, "a"), (2, 4, "b")])
    before = tree(tmp_path)
    for values, error, match in [
        ({"id": "-1"}, InvalidArgumentError, "positive"),
        ({"id": "NULL"}, SchemaMismatchError, "NOT NULL"),
        ({"double": "5"}, InvalidArgumentError, "generated column"),
        ({"name": "'long'"}, SchemaMismatchError, "name"),
    ]:
        with pytest.raises(error, match=match):
            table.update(values)
    assert tree(tmp_path) == before
    table.update({"id": "3", "double": "6"}, predicate="name = 'b'")
    assert content(table) == in_order([(11, 22, "a"), (3, 6, "b")])


SAME_KEY = pa.table({"key": [1], "n": [7]})


@BOTH
def test_identity_columns_keep_their_values(tmp_path: Path, properties: dict[str, str]) -> None:
    """Protocol, "Identity Columns": users may provide values only for new rows, so an UPDATE of the column is refused.
    The JVM connector does the same.
    """
    for accepts_values in (False, True):
        path = tmp_path / str(accepts_values)
        identity = Identity(allow_explicit_insert=accepts_values)
        schema = Schema([Field("key", "long", identity=identity), Field("n", "long")])
        table = DeltaTable.create(path, schema, configuration=dict(properties) or None)
        deltalog.write_deltalake(path, pa.table({"n": [1, 2, 3]}), mode="append")
        table.update_incremental()
        table.update({"n": "n * 10"}, predicate="n > 1")
        expected = in_order([(1, 1), (2, 20), (3, 30)])
        assert content(table) == expected
        changes: list[Callable[[DeltaTable], object]] = [
            lambda table: table.update({"KEY": "5"}),
            lambda table: (
                table.merge(SAME_KEY, "target.key = source.key").when_matched_update_all().execute()
            ),
            lambda table: (
                table.merge(SAME_KEY, "target.key = source.key")
                .when_not_matched_by_source_update({"key": "target.key + 1"})
                .execute()
            ),
        ]
        for change in changes:
            with pytest.raises(SchemaMismatchError, match="identity column 'key' cannot be changed"):
                change(table)
        assert content(table) == expected
        table.merge(SAME_KEY, "false").when_not_matched_insert({"n": "source.n"}).execute()
        assert content(table) == in_order([*expected, (4, 7)])


VALUES: dict[str, tuple[str, Any, Any]] = {
    "byte": ("byte", 1, -128),
    "int": ("integer", 1, 2**31 - 1),
    "text": ("string", "a", "it's \\ \n"),
    "float": ("float", 0.5, float("inf")),
    "double": ("double", 0.5, 1e300),
    "decimal": ("decimal(9,2)", Decimal("1.50"), Decimal("-2.25")),
    "boolean": ("boolean", True, False),
    "bytes": ("binary", b"\x00", b"\xff'"),
    "date": ("date", datetime.date(2024, 1, 1), datetime.date(1600, 2, 29)),
    "time": (
        "timestamp",
        datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone.utc),
        datetime.datetime(2024, 2, 29, 12, 30, 15, 123_456, datetime.timezone.utc),
    ),
}


@pytest.mark.parametrize("name", VALUES)
def test_values_of_python(tmp_path: Path, name: str) -> None:
    kind, old, new = VALUES[name]
    table = DeltaTable.create(
        tmp_path,
        Schema([Field("k", "long"), Field("a b", kind)]),
        configuration={"delta.columnMapping.mode": "name"},
    )
    fields = pa.schema(table.schema())
    deltalog.write_deltalake(tmp_path, pa.table([[1, 2], [old, old]], schema=fields), mode="append")
    table.update_incremental()
    table.update(new_values={"a b": new}, predicate="k = 1")
    assert content(table) == in_order([(1, new), (2, old)])
    table.update(new_values={"`a b`": None}, predicate=[("k", "=", 2)])
    assert content(table) == in_order([(1, new), (2, None)])


def test_nested_columns_are_assigned_as_a_whole(tmp_path: Path) -> None:
    data = pa.table({"k": [1, 2], "s": [{"x": 1, "y": [1]}, None], "t": [{"x": 5, "y": [2, 3]}, None]})
    deltalog.write_deltalake(tmp_path, data, configuration=VECTORS)
    table = DeltaTable(tmp_path)
    table.update({"s": "t", "k": "k + t.x"}, predicate="k = 1")
    found = pa.table(table.to_arrow()).sort_by("k").to_pylist()
    assert found[1] == {"k": 6, "s": {"x": 5, "y": [2, 3]}, "t": {"x": 5, "y": [2, 3]}}
    with pytest.raises(UnsupportedFeatureError, match="part of a column"):
        table.update({"s.x": "1"})


@pytest.mark.parametrize(
    ("values", "match"),
    [
        ({}, "without new values"),
        ({"nope": "1"}, "nope"),
        ({"n": "nope + 1"}, "nope"),
        ({"n": "'abc'"}, "abc"),
        ({"n": "id", "N": "id"}, "assigned twice"),
        ({"n": 5}, "SQL text"),
        ({"n": "1 / (id - 4)"}, "has no value"),
    ],
)
def test_values_that_cannot_be_assigned_are_refused(tmp_path: Path, values: Any, match: str) -> None:
    table = created(tmp_path, FILES, VECTORS)
    before = tree(tmp_path)
    with pytest.raises((InvalidArgumentError, SchemaMismatchError), match=match):
        table.update(values)
    assert tree(tmp_path) == before


def test_values_come_from_one_argument(tmp_path: Path) -> None:
    table = created(tmp_path, FILES)
    with pytest.raises(InvalidArgumentError, match="either"):
        table.update()
    with pytest.raises(InvalidArgumentError, match="either"):
        table.update({"n": "1"}, {"n": 1})


def test_an_update_conflicts_with_rows_that_it_should_have_seen(tmp_path: Path) -> None:
    created(tmp_path, FILES, VECTORS)
    first, second = DeltaTable(tmp_path), overtaken(DeltaTable(tmp_path))
    # A blind append may be ordered before or after the UPDATE.
    deltalog.write_deltalake(tmp_path, rows_of([(9, "z", 9)]), mode="append")
    first.update({"n": "100"}, predicate="id = 1")
    second.update({"n": "101"}, predicate="id = 2")
    assert content(tmp_path) == in_order([(1, "a", 100), (2, "a", 101), *ROWS[2:], (9, "z", 9)])
    late = overtaken(DeltaTable(tmp_path))
    first.update({"n": "5"}, predicate="id = 3")
    files = data_files(tmp_path)
    with pytest.raises(CommitConflictError) as caught:
        late.update({"p": "'q'"}, predicate="n = 5")
    assert caught.value.reason == "concurrent_append"
    assert data_files(tmp_path) == files
