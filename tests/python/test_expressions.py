"""Predicates that compute values: `to_arrow`, `count` and the file list agree with the same condition in Python."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

from deltalog import DeltaTable, Field, Schema, write_deltalake
from deltalog.errors import DeltaError, InvalidArgumentError

Row = dict[str, Any]

ROWS: list[Row] = [
    {
        "id": n,
        "day": date(2024, 1, 1) + timedelta(days=n * 11),
        "name": None if n % 7 == 0 else f"{'Ab' if n % 2 else 'c'}{n}",
        "price": n * 0.25 - 2,
        "at": datetime(2024, 1, 1, n % 24, 30, tzinfo=timezone.utc) + timedelta(days=n),
        "o": None if n % 5 == 0 else {"x": n % 4},
    }
    for n in range(40)
]
SCHEMA = pa.schema(
    {
        "id": pa.int32(),
        "day": pa.date32(),
        "name": pa.string(),
        "price": pa.float64(),
        "at": pa.timestamp("us", "UTC"),
        "o": pa.struct({"x": pa.int32()}),
    }
)

CONDITIONS: list[tuple[str, Callable[[Row], bool | None]]] = [
    ("id + 1 > 20", lambda row: row["id"] + 1 > 20),
    ("id % 3 = 1 AND id / 2 < 10", lambda row: row["id"] % 3 == 1 and row["id"] / 2 < 10),
    ("month(day) IN (2, 3)", lambda row: row["day"].month in (2, 3)),
    (
        "month(day) = 2 OR upper(name) LIKE 'AB1%'",
        lambda row: row["day"].month == 2 or (row["name"] or "").upper().startswith("AB1"),
    ),
    ("length(name) > 2", lambda row: row["name"] is not None and len(row["name"]) > 2),
    ("coalesce(name, 'none') = 'none'", lambda row: row["name"] is None),
    ("CASE WHEN id < 10 THEN 'a' WHEN id < 20 THEN 'b' END = 'b'", lambda row: 10 <= row["id"] < 20),
    ("CASE WHEN id < 10 THEN 'a' END IS NULL", lambda row: row["id"] >= 10),
    ("id <> 0 AND 100 DIV id > 9", lambda row: row["id"] != 0 and 100 // row["id"] > 9),
    ("round(price) = 1", lambda row: 0.5 <= row["price"] < 1.5),
    ("CAST(price AS INT) = 0", lambda row: -1 < row["price"] < 1),
    ("hour(at) >= 12", lambda row: row["at"].hour >= 12),
    ("date_format(at, 'MM-dd') = '01-03'", lambda row: (row["at"].month, row["at"].day) == (1, 3)),
    ("CAST(at AS DATE) = date_add(DATE '2024-01-01', 5)", lambda row: row["at"].date() == date(2024, 1, 6)),
    ("at > '2024-01-20'", lambda row: row["at"] > datetime(2024, 1, 20, tzinfo=timezone.utc)),
    ("at <= '2024-1-20 13:00'", lambda row: row["at"] <= datetime(2024, 1, 20, 13, tzinfo=timezone.utc)),
    ("'2024-02-01 02:00:00+02:00' < at", lambda row: row["at"] > datetime(2024, 2, 1, tzinfo=timezone.utc)),
    ("at >= DATE '2024-01-20'", lambda row: row["at"].date() >= date(2024, 1, 20)),
    ("at BETWEEN '2024-01' AND DATE '2024-01-09'", lambda row: row["at"].date() < date(2024, 1, 9)),
    ("day < TIMESTAMP '2024-02-03 12:00:00'", lambda row: row["day"] <= date(2024, 2, 3)),
    ("day = TIMESTAMP_NTZ '2024-01-12 00:00:00'", lambda row: row["day"] == date(2024, 1, 12)),
    ("at < TIMESTAMP_NTZ '2024-01-12 00:00:00'", lambda row: row["at"].date() < date(2024, 1, 12)),
    ("day = '2024-1-12'", lambda row: row["day"] == date(2024, 1, 12)),
    ("day IN ('2024-01-12', TIMESTAMP '2024-01-23 00:00:00')", lambda row: row["id"] in (1, 2)),
    ("at > day", lambda row: row["at"].date() >= row["day"]),
    ("at > CAST(day AS STRING)", lambda row: row["at"].date() >= row["day"]),
    ("coalesce(NULL, at, day) < '2024-01-03'", lambda row: row["at"].date() < date(2024, 1, 3)),
    ("o.x + 1 = 2", lambda row: row["o"] is not None and row["o"]["x"] == 1),
    ("name || id = 'Ab11'", lambda row: f"{row['name']}{row['id']}" == "Ab11"),
    ("(id > 5) = (id > 30)", lambda row: (row["id"] > 5) == (row["id"] > 30)),
    ("id = 2 * 3 + 1", lambda row: row["id"] == 7),
]


@pytest.fixture(scope="module", params=[[], ["day"], ["id"]], ids=["plain", "by day", "by id"])
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> DeltaTable:
    path = tmp_path_factory.mktemp("expressions") / "table"
    for start in range(0, len(ROWS), 10):
        rows = pa.Table.from_pylist(ROWS[start : start + 10], SCHEMA)
        write_deltalake(path, rows, mode="append", partition_by=request.param or None)
    return DeltaTable(path)


@pytest.mark.parametrize(("sql", "condition"), CONDITIONS, ids=[sql for sql, _ in CONDITIONS])
def test_rows_are_those_for_which_the_condition_is_true(
    table: DeltaTable, sql: str, condition: Callable[[Row], bool | None]
) -> None:
    wanted = sorted(row["id"] for row in ROWS if condition(row))
    assert sorted(pa.table(table.to_arrow(["id"], sql))["id"].to_pylist()) == wanted
    assert table.count(sql) == len(wanted)
    negated = f"NOT coalesce({sql}, FALSE)"
    assert table.count(negated) == len(ROWS) - len(wanted)


def test_computed_conditions_on_partition_columns_skip_files(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.Table.from_pylist(ROWS, SCHEMA), partition_by=["day"])
    table = DeltaTable(tmp_path)
    days = sorted({row["day"] for row in ROWS if row["day"].month == 2})
    partitions = table.partitions("month(day) = 2")
    assert sorted(str(partition["day"]) for partition in partitions) == [str(day) for day in days]
    assert len(table.file_uris("month(day) = 2")) == len(days) < len(table.file_uris())
    # Constant parts of a condition are computed before files are selected.
    assert len(table.file_uris("day = date_add(DATE '2024-01-01', 22 - 11)")) == 1
    # Whether the division fails depends on the row, so all files are kept.
    assert len(table.file_uris("1 DIV (month(day) - 2) = 5")) == len(table.file_uris())


def test_a_row_without_a_value_is_an_error(table: DeltaTable) -> None:
    for sql in ["1 DIV id = 1", "id + 2147483647 > 0", "CAST(name AS INT) = 1"]:
        with pytest.raises((DeltaError, pa.ArrowException), match="has no value for"):
            pa.table(table.to_arrow(predicate=sql))


def test_what_cannot_be_computed_is_refused_by_name(table: DeltaTable) -> None:
    for sql, part in [
        ("soundex(name) = 'a'", "soundex"),
        ("name + 1 = 2", "STRING, INT"),
        ("upper(id) = 'A'", r"upper\(id\)"),
        ("CAST(price AS STRING) = '1'", "DOUBLE to STRING"),
        ("id + 1", "not a condition"),
        ("o = o", "cannot be compared"),
    ]:
        with pytest.raises(InvalidArgumentError, match=part):
            table.to_arrow(predicate=sql)


MOMENTS = {
    "at": pa.timestamp("us", "UTC"),
    "local": pa.timestamp("us"),
    "day": pa.date32(),
}
KINDS = {"at": "at", "clock": "local", "day": "day"}


def test_the_current_time_is_the_same_in_a_whole_statement(tmp_path: Path) -> None:
    """The current time has the same value in all rows of all files, and in all clauses of a MERGE."""
    empty = {name: pa.nulls(2, kind) for name, kind in MOMENTS.items()}
    for first in (0, 2):
        ids = pa.array([first, first + 1], pa.int32())
        write_deltalake(
            tmp_path, pa.table({"id": ids, "other": pa.nulls(2, MOMENTS["at"]), **empty}), mode="append"
        )
    table = DeltaTable(tmp_path)
    before = datetime.now(timezone.utc)
    table.update(
        {"at": "now()", "other": "CURRENT_TIMESTAMP", "local": "localtimestamp()", "day": "current_date"}
    )
    after = datetime.now(timezone.utc)
    rows = pa.table(table.to_arrow()).to_pylist()
    (at,) = {row["at"] for row in rows} | {row["other"] for row in rows}
    assert before <= at <= after
    assert {row["local"] for row in rows} == {at.replace(tzinfo=None)}
    assert {row["day"] for row in rows} == {at.date()}
    source = pa.table({"id": pa.array([0, 9], pa.int32())})
    merge = table.merge(source, "t.id = s.id", source_alias="s", target_alias="t")
    merge = merge.when_matched_update({"at": "now()"}).when_not_matched_insert({"id": "s.id", "at": "now()"})
    merge.when_not_matched_by_source_update({"at": "now()"}).execute()
    assert len({row["at"] for row in pa.table(table.to_arrow()).to_pylist()}) == 1


def test_a_column_has_precedence_over_a_function_of_its_name(tmp_path: Path) -> None:
    days = pa.array([date(2001, 1, 1), date(2002, 1, 1)], pa.date32())
    write_deltalake(tmp_path, pa.table({"current_date": days, "day": days}))
    table = DeltaTable(tmp_path)
    assert table.count("current_date < DATE '2001-06-01'") == 1
    assert table.count("current_date() < DATE '2001-06-01'") == 0
    table.update({"day": "current_date + 1"})
    assert sorted(pa.table(table.to_arrow())["day"].to_pylist()) == [date(2001, 1, 2), date(2002, 1, 2)]


def test_a_moment_skips_files(tmp_path: Path) -> None:
    now = datetime.now(timezone.utc)
    for days in (0, 10, 20):
        at = pa.array([now - timedelta(days=days, hours=1)], pa.timestamp("us", "UTC"))
        write_deltalake(tmp_path, pa.table({"at": at}), mode="append")
    table = DeltaTable(tmp_path)
    for condition, files in [("at > now() - INTERVAL 2 DAYS", 1), ("at < current_timestamp() - INTERVAL 15 DAYS", 1),
                             ("at::DATE > current_date() - 100", 3), ("at > now()", 0)]:  # fmt: skip
        assert len(pa.table(table.files(condition))) == files, condition
        assert table.count(condition) == files


@pytest.mark.parametrize("column", ["at", "clock", "day"])
def test_dates_and_texts_skip_files_of_timestamps(tmp_path: Path, column: str) -> None:
    """A timestamp column can be compared with dates and strings, which skip the same files as a timestamp literal."""
    kinds = {"at": "TIMESTAMP '2024-01-02 00:00:00'", "clock": "TIMESTAMP_NTZ '2024-01-02 00:00:00'"}
    exact = kinds.get(column, "DATE '2024-01-02'")
    for partition_by in ([], [column]):
        for day in (1, 2, 3):
            at = datetime(2024, 1, day)
            row = {"id": [day], "at": [at.replace(tzinfo=timezone.utc)], "clock": [at], "day": [at.date()]}
            schema = pa.schema({"id": pa.int64(), **{name: MOMENTS[kind] for name, kind in KINDS.items()}})
            write_deltalake(
                tmp_path / str(partition_by), pa.table(row, schema), mode="append", partition_by=partition_by
            )
        table = DeltaTable(tmp_path / str(partition_by))
        for value in ("'2024-1-2'", "DATE '2024-01-02'", "TIMESTAMP '2024-01-02 00:00:00'",
                      "TIMESTAMP_NTZ '2024-01-02 00:00:00'", "' 2024-01-02'"):  # fmt: skip
            for condition, ids in [("{} = {}", [2]), ("{} > {}", [3]), ("{} <= {}", [1, 2]), ("{} <=> {}", [2]),
                                   ("{} IN ({}, '2024')", [1, 2]), ("NOT {} < {}", [2, 3])]:  # fmt: skip
                sql = condition.format(column, value)
                same = condition.format(column, exact).replace("'2024'", exact.replace("-02", "-01"))
                assert 0 < len(table.file_uris(sql)) < 3, sql
                assert table.file_uris(sql) == table.file_uris(same), sql
                assert sorted(pa.table(table.to_arrow(predicate=sql))["id"].to_pylist()) == ids, sql
    table.delete(f"{column} > '2024-01-02'")
    assert table.count() == 2


@pytest.mark.parametrize(
    "sql", ["at > 'yesterday'", "at = ''", "day = '2024-13'", "'12:00' < at", "at = 5", "at = name"]
)
def test_a_string_that_is_not_a_time_is_refused(tmp_path: Path, sql: str) -> None:
    write_deltalake(tmp_path, pa.Table.from_pylist(ROWS, SCHEMA))
    with pytest.raises(DeltaError, match=r"cannot be compared|has no value for"):
        DeltaTable(tmp_path).delete(sql)


@pytest.mark.parametrize("sql", ["rand() < 0.5", "name = uuid()", "uuid() IS NULL", "id IN (1, random())"])
def test_random_values_are_refused_in_conditions(tmp_path: Path, sql: str) -> None:
    write_deltalake(tmp_path, pa.Table.from_pylist(ROWS, SCHEMA))
    table = DeltaTable(tmp_path)
    merge = table.merge(pa.table({"id": [1]}), "t.id = s.id", source_alias="s", target_alias="t")
    for refused in (
        lambda: table.delete(sql),
        lambda: table.update({"id": "1"}, predicate=sql),
        lambda: table.to_arrow(predicate=sql),
        lambda: merge.when_matched_delete(
            sql.replace("name", "t.name").replace("id IN", "t.id IN")
        ).execute(),
    ):
        with pytest.raises(InvalidArgumentError, match="not deterministic"):
            refused()
    with pytest.raises(InvalidArgumentError, match="each time that it is computed"):
        table.alter.add_constraint({"chance": sql})
    assert table.version() == 0


def test_each_row_is_assigned_its_own_random_value(tmp_path: Path) -> None:
    rows = pa.table(
        {"id": range(1000), "key": pa.nulls(1000, pa.string()), "chance": pa.nulls(1000, pa.float64())}
    )
    write_deltalake(tmp_path, rows)
    table = DeltaTable(tmp_path)
    table.update({"key": "uuid()", "chance": "rand() * 2"})
    found = pa.table(table.to_arrow())
    assert (
        len({str(UUID(key, version=4)) for key in found["key"].to_pylist()} & set(found["key"].to_pylist()))
        == 1000
    )
    chances = found["chance"].to_pylist()
    assert all(0 <= chance < 2 for chance in chances)
    assert len(set(chances)) == 1000
    assert 0.8 < sum(chances) / 1000 < 1.2
    with pytest.raises(InvalidArgumentError, match="not supported with these arguments"):
        table.update({"chance": "rand(42)"})


def test_default_values_are_one_moment_for_each_write(tmp_path: Path) -> None:
    fields = [
        Field("id", "integer"),
        Field("at", "timestamp", default="current_timestamp()"),
        Field("day", "date", default="current_date()"),
    ]
    table = DeltaTable.create(tmp_path, Schema(fields))
    before = datetime.now(timezone.utc)
    batches = [pa.record_batch({"id": pa.array([n], pa.int32())}) for n in range(3)]
    write_deltalake(table, pa.RecordBatchReader.from_batches(batches[0].schema, batches), mode="append")
    (appended,) = set(pa.table(table.to_arrow())["at"].to_pylist())
    source = pa.table({"id": pa.array([2, 8, 9], pa.int32())})
    merge = table.merge(source, "t.id = s.id", source_alias="s", target_alias="t")
    merge.when_not_matched_insert({"id": "s.id"}).execute()
    rows = {row["id"]: row for row in pa.table(table.to_arrow()).to_pylist()}
    assert sorted(rows) == [0, 1, 2, 8, 9]
    assert before <= appended == rows[2]["at"] < rows[8]["at"] == rows[9]["at"] <= datetime.now(timezone.utc)
    assert {row["day"] for row in rows.values()} <= {before.date(), datetime.now(timezone.utc).date()}


@pytest.mark.parametrize(
    ("kind", "sql"), [("string", "uuid()"), ("double", "rand()"), ("string", "concat('a', uuid())")]
)
def test_a_default_value_is_the_same_for_all_rows(tmp_path: Path, kind: str, sql: str) -> None:
    with pytest.raises(InvalidArgumentError, match="differs from row to row"):
        DeltaTable.create(tmp_path, Schema([Field("id", "integer"), Field("key", kind, default=sql)]))


@pytest.mark.parametrize(
    "sql", ["at < now()", "at::DATE <= current_date", "localtimestamp() > at::TIMESTAMP_NTZ"]
)
def test_time_dependent_expressions_are_refused_as_constraints(tmp_path: Path, sql: str) -> None:
    write_deltalake(tmp_path, pa.table({"at": pa.array([], pa.timestamp("us", "UTC"))}))
    with pytest.raises(InvalidArgumentError, match="its value changes over time"):
        DeltaTable(tmp_path).alter.add_constraint({"past": sql})
    assert DeltaTable(tmp_path).version() == 0


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("name RLIKE '(?=a)'", "looks around"),
        ("name RLIKE '(?<!a)b'", "looks around"),
        ("name RLIKE 'a*+'", "possessive"),
        ("name RLIKE '(?>a)'", "atomic group"),
        (r"name RLIKE '(a)\\1'", "refers to a group"),
        (r"name RLIKE '\\bA'", r"has \\b"),
        ("name RLIKE '[a&&[b]]'", "intersection"),
        ("name RLIKE '[a[b]]'", "class inside a class"),
        ("name RLIKE '(?m)^a'", "flags"),
        ("name RLIKE '(a'", "without a \\)"),
        ("name RLIKE '(a*)*'", "may match nothing"),
        ("name RLIKE name", "constant"),
        ("regexp_replace(name, 'a', '$1') = ''", "without the number of a group"),
        ("regexp_extract(name, 'a') = ''", "no group 1"),
        ("day + INTERVAL 1 MONTH 1 DAY > day", "interval"),
        ("day + INTERVAL '1-2' YEAR TO MONTH > day", "interval"),
        ("day + INTERVAL 1 DAY * 2 > day", "interval"),
    ],
)
def test_what_has_no_equal_is_refused_by_name(tmp_path: Path, sql: str, why: str) -> None:
    write_deltalake(tmp_path, pa.Table.from_pylist(ROWS, SCHEMA))
    with pytest.raises(InvalidArgumentError, match=why) as refused:
        DeltaTable(tmp_path).delete(sql)
    assert "FUNCTIONS.md" in (refused.value.hint or "")
