"""Tables as DuckDB relations, and `deltalog.sql`. A filter on a table selects the rows that DuckDB selects from the
same rows in memory.
"""

import datetime as dt
import math
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from decimal import Decimal
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset
import pytest

import deltalog
import deltalog.duckdb
from deltalog import (
    DeltaTable,
    InvalidArgumentError,
    NotATableError,
    UnsupportedFeatureError,
    write_deltalake,
)
from deltalog.conditions import Rows
from deltalog.extras import ExtraRequiredError

duckdb: Any = pytest.importorskip("duckdb")
PASSES_FILTERS = not duckdb.__version__.startswith("1.")
UTC = dt.timezone.utc


def column(values: list[Any], kind: pa.DataType | None = None) -> pa.Array:
    return pa.array(values, kind)


ROWS = pa.table(
    {
        "k": column(list(range(8)), pa.int64()),
        "i": column([1, 2, None, -5, 2**40, 0, 7, 8], pa.int64()),
        "j": column([1, 2, None, -5, 3, 0, 7, 8], pa.int32()),
        "f": column([0.1, -0.0, None, math.nan, math.inf, -math.inf, 1.5, 3e38], pa.float32()),
        "d": column([0.0, -0.0, None, math.nan, math.inf, -math.inf, 1.5, 1e300], pa.float64()),
        "s": column(["a", "b'\\c", None, "", "ß", "Ab", "%_", "\n"]),
        "b": column([True, False, None, True, False, True, None, True]),
        "t": column([None if n == 2 else dt.date(2024, 1, n + 1) for n in range(8)]),
        "u": column(
            [None if n == 2 else dt.datetime(2024, 1, 1, n, tzinfo=UTC) for n in range(8)],
            pa.timestamp("us", "UTC"),
        ),
        "n": column(
            [None if n == 2 else dt.datetime(2024, 1, 1, n, 0, 0, 1) for n in range(8)], pa.timestamp("us")
        ),
        "x": column([Decimal("1.50"), Decimal("2.25"), None, *[Decimal("-3.00")] * 5], pa.decimal128(10, 2)),
        "w": column([Decimal(10**37 + n) for n in range(8)], pa.decimal128(38, 0)),
        "odd `name`": column(list("abcdefgh")),
        "st": column([{"a": n, "B": {"c": str(n)}, "f": (n - 1) / 2 if n else math.nan} for n in range(8)]),
    }
)

# Filters that the scan evaluates.
EXACT = [
    "i > 1",
    "j <> 3",
    "d > 1.0",
    "d = 0.0",
    "d < -0.0",
    "s = 'b''\\c'",
    "s <> 'a'",
    "s > 'a'",
    "s IN ('a', 'ß')",
    "i IN (1, 2, 1099511627776)",
    "t > DATE '2024-01-04'",
    "t IN (DATE '2024-01-04', DATE '2024-01-05')",
    "u > TIMESTAMPTZ '2024-01-01 04:00:00+00'",
    "n > TIMESTAMP '2024-01-01 04:00:00.000001'",
    "x > 1.5",
    "x IN (1.5, 2.25)",
    "w = 10000000000000000000000000000000000003",
    "i BETWEEN 0 AND 7",
    "i IS NULL",
    "st.a > 5",
    "st.B.c = '3'",
    "\"odd `name`\" = 'd'",
]

# Filters that DuckDB evaluates, alone or in addition to the scan.
OTHER = [
    "i = j",
    "f > 0.1",
    "f = 0.0",
    "f >= 'nan'::FLOAT",
    "f IN (0.0, 1.5, 'nan')",
    "d IN (0.0, 1.5)",
    "d IN (-0.0, 'nan', NULL)",
    "d IN ('nan'::DOUBLE, 1e300, 1.5)",
    "d NOT IN (0.0, 'nan')",
    "d < 'nan'::DOUBLE",
    "d <> 'nan'::DOUBLE",
    "d <> 0.0",
    "d >= 0.0",
    "d <= 0.0",
    "NOT (d > 1.0)",
    "d > 1.0 OR d IS NULL",
    "d > 1.0 OR d < -1.0",
    "st.f > 0.5",
    "st.f IN (0.0, 7.5)",
    "st.f = 'nan'::DOUBLE",
    "d > 'nan'::DOUBLE",
    "d = 'nan'::DOUBLE",
    "d >= 'inf'::DOUBLE",
    "isnan(d)",
    "s LIKE 'a%'",
    "s LIKE '%b'",
    "starts_with(s, '%')",
    "s IN ('a', NULL)",
    "i NOT IN (1, 2)",
    "b",
    "NOT b",
    "b IS TRUE",
    "b AND i > 0",
    "b OR i > 0",
    "x > 1.4::DOUBLE",
    "s IS NULL OR i > 5",
    "i IS DISTINCT FROM 1",
    "i IS NOT DISTINCT FROM NULL",
    "i + 1 > 2",
    "i % 2 = 0",
    "i / 0 > 1",
    "length(s) > 1",
    "upper(s) = 'A'",
    "i > 1.5",
    "j = 1099511627776",
    "year(u) = 2024",
    "NOT (i > 1 AND b)",
    "NOT (i > 1 OR i IS NULL)",
    "i = (SELECT max(i) FROM t)",
    "k IN (SELECT k FROM t WHERE i > 1)",
    "d NOT IN (1.5, 2.5)",
    "i > 1 AND s LIKE '%a%' AND d < 2",
    " OR ".join(f"i = {n}" for n in range(300)),
]


@pytest.fixture(scope="module")
def location(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Creates a table with deletion vectors and column mapping."""
    path = str(tmp_path_factory.mktemp("duckdb") / "table")
    properties = {"delta.columnMapping.mode": "name", "delta.enableDeletionVectors": "true"}
    gone = ROWS.set_column(0, "k", pa.array(range(100, 108), pa.int64()))
    names = ["before" if name == "i" else name for name in ROWS.column_names]
    for start, end in ((0, 3), (3, 8)):
        part = pa.concat_tables([ROWS[start:end], gone[start:end]]).rename_columns(names)
        write_deltalake(path, part, mode="append", configuration=properties)
    table = DeltaTable(path)
    table.alter.rename_column("before", "i")
    assert table.delete("k >= 100")["numDeletedRows"] == 8
    return path


@pytest.fixture(scope="module")
def connection(location: str) -> Any:
    opened = duckdb.connect()
    opened.execute("SET TimeZone = 'UTC'")
    opened.register("arrow", ROWS)
    opened.execute("CREATE TABLE m AS FROM arrow")
    opened.register("t", deltalog.duckdb.source(location))
    return opened


def source_without(location: str, *modules: str) -> Any:
    """Returns the source for a DuckDB that lacks these modules, or for a process in which these libraries are not
    installed.
    """
    with pytest.MonkeyPatch.context() as patched:
        for module in modules:
            patched.setitem(sys.modules, module, None)
        return deltalog.duckdb.source(location)


@pytest.mark.parametrize("condition", [*EXACT, *OTHER])
def test_a_filter_selects_the_rows_that_duckdb_selects(connection: Any, condition: str) -> None:
    wanted = connection.sql(f"SELECT k FROM m WHERE {condition} ORDER BY k").fetchall()
    assert connection.sql(f"SELECT k FROM t WHERE {condition} ORDER BY k").fetchall() == wanted
    if PASSES_FILTERS and condition in EXACT:
        [(_, plan)] = connection.sql(f"EXPLAIN SELECT k FROM t WHERE {condition}").fetchall()
        assert "PYTHON_ARROW_SCAN" in plan
        assert "Filters:" in plan, plan
        assert "FILTER" not in plan.replace("Filters", ""), plan


def test_all_columns_and_values_arrive(connection: Any) -> None:
    for query in ("SELECT * FROM {} ORDER BY k", "SELECT s, i FROM {} ORDER BY k", "SELECT count(*) FROM {}"):
        wanted, found = (connection.sql(query.format(name)).fetchall() for name in ("m", "t"))
        assert repr(found) == repr(wanted)  # NaN is not equal to itself, so strings are compared.
    assert connection.sql("SELECT count(*) FROM t a JOIN t b USING (k)").fetchall() == [(8,)]


@pytest.mark.parametrize("condition", ["true", "j <> 3", "d > 1", "i IS NULL"])
@pytest.mark.parametrize("order", ["i", "i DESC", "s", "d"])
def test_the_first_rows_in_an_order_are_found(connection: Any, condition: str, order: str) -> None:
    """For ORDER BY with a LIMIT, DuckDB passes filters for the rows that can still be among the first ones."""
    for nulls in ("FIRST", "LAST"):
        query = f"SELECT k FROM {{}} WHERE {condition} ORDER BY {order} NULLS {nulls}, k LIMIT 3"
        wanted = connection.sql(query.format("m")).fetchall()
        assert connection.sql(query.format("t")).fetchall() == wanted


def test_long_lists_of_numbers(connection: Any) -> None:
    numbers = ", ".join(f"{n}.5" for n in range(20_000))
    for column in "df":
        assert connection.sql(f"SELECT k FROM t WHERE {column} IN ({numbers})").fetchall() == [(6,)]


def test_files_that_cannot_match_are_not_read(tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    for number in range(4):
        write_deltalake(path, pa.table({"a": [number * 10, number * 10 + 1]}), mode="append")
    for uri in DeltaTable(path).file_uris("a < 20 OR a > 21"):
        Path(uri.removeprefix("file://")).unlink()
    found = deltalog.sql("SELECT a FROM t WHERE a >= 20 AND a < 30", t=path)
    assert found.fetchall() == [(20,), (21,)]


def test_a_source_keeps_its_version_and_can_be_read_again(tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    write_deltalake(path, pa.table({"a": [1]}))
    table = DeltaTable(path)
    first = deltalog.duckdb.source(table)
    write_deltalake(table, pa.table({"a": [2]}), mode="append")
    opened = duckdb.connect()
    for _ in range(2):
        assert opened.from_arrow(first).fetchall() == [(1,)]
        assert opened.sql("SELECT a FROM first").fetchall() == [(1,)], "a variable is named in the query"
    both = deltalog.sql(
        "SELECT (SELECT count(*) FROM now), (SELECT count(*) FROM past)",
        now=table,
        past=DeltaTable(path, version=0),
    )
    assert both.fetchall() == [(2, 1)]


def test_a_result_is_written(location: str, tmp_path: Path) -> None:
    path = str(tmp_path / "copy")
    write_deltalake(path, deltalog.sql("SELECT k, s FROM t WHERE i > 1", t=location))
    assert deltalog.sql("SELECT count(*), max(k) FROM t", t=path).fetchall() == [(4, 7)]


def test_rows_that_duckdb_computes_while_they_are_written(location: str, tmp_path: Path) -> None:
    """DuckDB releases the interpreter lock in the calling thread, and then reads the table's stream in this thread."""
    path = str(tmp_path / "copy")
    queries = [f"SELECT k, s FROM t WHERE i {condition}" for condition in ("> 1", "< 1")]
    write_deltalake(path, (deltalog.sql(query, t=location).to_arrow_table() for query in queries))
    write_deltalake(path, (deltalog.sql(query, t=location) for query in queries), mode="append")
    assert DeltaTable(path).count() == 12
    source = deltalog.sql("SELECT k, s FROM t WHERE k < 2", t=location)
    merge = DeltaTable(path).merge(source, "target.k = source.k")
    assert merge.when_matched_delete().execute()["num_target_rows_deleted"] == 2


def test_signals_are_not_looked_for_while_duckdb_has_detached_the_thread(
    location: str, tmp_path: Path
) -> None:
    """A write checks for signals every 200 ms, but must not do so while DuckDB computes, because the thread does not
    hold the interpreter lock then.
    """
    path = str(tmp_path / "copy")

    def results() -> Iterator[pa.Table]:
        end = time.monotonic() + 1
        while True:
            yield deltalog.sql("SELECT k, s FROM t WHERE i > 1", t=location).to_arrow_table()
            if time.monotonic() > end:
                return

    write_deltalake(path, results())
    assert DeltaTable(path).count() % 4 == 0


@pytest.mark.parametrize(
    "query",
    [
        "SELECT 1; SELECT 2",
        "COPY (SELECT 1) TO 'file'; SELECT 2",
        "SELECT 1; COPY (SELECT 1) TO 'file'",
        "SELECT 'é;' AS \";\" /* ; */; -- ;\n SELECT 2",
        "SELECT 1; PIVOT t ON a USING count(*)",
    ],
)
def test_several_statements_are_refused_before_the_first_is_executed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    write_deltalake(tmp_path / "t", pa.table({"a": [1]}))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidArgumentError, match="the query has several statements") as refused:
        deltalog.sql(query, t="t")
    assert refused.value.hint == "pass one query at a time"
    assert [path.name for path in tmp_path.iterdir()] == ["t"]


def test_semicolons_and_comments_around_a_query_are_accepted(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", pa.table({"a": [1, 1, 2]}))
    for query, rows in [
        ("; SELECT 1;", [(1,)]),
        ("/* ; */ SELECT 'é;' AS \";\"; -- ;\n; /* SELECT 2 */", [("é;",)]),
        ("SELECT $$; SELECT 2$$;;", [("; SELECT 2",)]),
        ("SELECT 3; \u3000", [(3,)]),
        ("PIVOT t ON a USING count(*);", [(2, 1)]),
        ("FROM t LIMIT 1", [(1,)]),
    ]:
        assert deltalog.sql(query, t=tmp_path / "t").fetchall() == rows, query


@pytest.mark.parametrize(
    "query",
    [
        "",
        " ; ",
        "-- x",
        "CREATE TABLE x AS FROM t",
        "SET threads = 1",
        "DROP VIEW t",
        "COPY t TO 'file'",
        "ATTACH 'file'",
    ],
)
def test_a_statement_without_a_result_is_refused_before_it_is_executed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    write_deltalake(tmp_path / "t", pa.table({"a": [1]}))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidArgumentError, match="pass a statement that returns rows, such as a SELECT"):
        deltalog.sql(query, t="t")
    assert [path.name for path in tmp_path.iterdir()] == ["t"]


def test_names_that_duckdb_does_not_tell_apart_are_refused(tmp_path: Path) -> None:
    """DuckDB does not distinguish upper and lower case in names, so it would read the second table by both names."""
    first, second = (str(tmp_path / name) for name in "ab")
    for path in (first, second):
        write_deltalake(path, pa.table({"a": [1]}))
    with pytest.raises(InvalidArgumentError, match="upper and lower case"):
        deltalog.sql("SELECT * FROM t", t=first, T=second)


@pytest.mark.parametrize("name", ["table", "tables", "query"])
def test_a_query_reads_no_variables_of_python(location: str, name: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"Table with name {name} does not exist"):
        deltalog.sql(f'SELECT * FROM "{name}"', t=DeltaTable(location))


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotATableError, match="nowhere"):
        deltalog.sql("SELECT 1", t=tmp_path / "nowhere")
    with pytest.raises(InvalidArgumentError, match="query cannot be 7"):
        deltalog.sql(7)  # type: ignore[arg-type]
    code = """
        import sys
        sys.modules["duckdb"] = None
        import deltalog
        try:
            deltalog.sql("SELECT 1")
        except ImportError as error:
            print(type(error).__name__, error)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("ExtraRequiredError deltalog.sql needs duckdb, or datafusion")
    assert "pip install 'deltalog[sql]'" in done.stdout


def test_an_old_duckdb_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """An old DuckDB would raise "Connection has already been closed" when the rows are read."""
    monkeypatch.setattr(duckdb, "__version__", "1.4.5")
    with pytest.raises(
        ExtraRequiredError, match=r"DuckDB 1\.5 or newer, and DuckDB 1\.4\.5 is installed: pip"
    ):
        deltalog.sql("SELECT 1")
    monkeypatch.setattr(duckdb, "__version__", "1.10.0.dev3")
    assert deltalog.sql("SELECT 1").fetchall() == [(1,)]


def test_a_damaged_table_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    write_deltalake(path, pa.table({"a": [1]}))
    [file] = DeltaTable(path).file_uris()
    result = deltalog.sql("SELECT a + 1 FROM t", t=path)
    Path(file.removeprefix("file://")).unlink()
    with pytest.raises(Exception, match=Path(file).name):
        result.fetchall()


@pytest.mark.parametrize("has_pyarrow", [True, False])
def test_a_duckdb_without_sources_reads_rows_once(
    location: str, monkeypatch: pytest.MonkeyPatch, has_pyarrow: bool
) -> None:
    """If pyarrow is installed, only the needed columns are read."""
    columns: list[Any] = []
    read = Rows.read

    def counted(rows: Any, *arguments: Any, **options: Any) -> Any:
        columns.extend([] if options.get("limit") == 0 else [arguments[0]])
        return read(rows, *arguments, **options)

    missing = [] if has_pyarrow else ["pyarrow.dataset"]
    plain = source_without(location, "duckdb._sources", *missing)
    assert isinstance(plain, pyarrow.dataset.Dataset) == has_pyarrow
    monkeypatch.setattr(Rows, "read", counted)
    opened = duckdb.connect()
    opened.register("t", plain)
    for count in (1, 2):
        assert opened.sql("SELECT k FROM t WHERE i > 1 ORDER BY k").fetchall() == [(1,), (4,), (6,), (7,)]
        assert len(columns) == count
    assert all(set(names) <= {"k", "i"} for names in columns) if has_pyarrow else columns == [None, None]
    assert sorted(opened.from_arrow(plain).filter("i > 1").project("k").fetchall())[-1] == (7,)


@pytest.mark.parametrize("condition", ["d <= 'nan'::DOUBLE", "d BETWEEN 0 AND 'nan'::DOUBLE"])
def test_numbers_up_to_nan_do_not_include_null(connection: Any, condition: str) -> None:
    query = f"SELECT k FROM {{}} WHERE {condition} ORDER BY k"
    if PASSES_FILTERS:
        assert connection.sql(query.format("t")).fetchall() == connection.sql(query.format("m")).fetchall()
    else:
        with pytest.raises(duckdb.Error, match="install DuckDB 2 or newer"):
            connection.sql(query.format("t")).fetchall()


def field(*parts: str) -> Any:
    return pyarrow.dataset.field(*parts)


@pytest.mark.parametrize(
    ("condition", "expression"),
    [
        ("d > 1.0", field("d") > 1.0),
        ("d >= 1.0", field("d") >= 1.0),
        ("d < 1.0", field("d") < 1.0),
        ("d <> 1.5", field("d") != 1.5),
        ("d = 0.0", field("d") == 0.0),
        ("d = 'nan'", field("d").is_nan()),
        ("d < 'nan'", ~field("d").is_nan()),
        ("d >= 1 AND d IS NOT NULL", (field("d") >= 1.0) & field("d").is_valid()),
        ("d > 1 OR d IS NULL", (field("d") > 1.0) | field("d").is_null()),
        ("d IN (0.0, 1.5)", field("d").isin([0.0, 1.5])),
        ("d IN (-0.0, 'nan', NULL)", field("d").isin([-0.0, math.nan, None])),
        ("f > 1", field("f") > 1.0),
        ("f IN (0, 1.5)", field("f").isin([0.0, 1.5])),
        ("f > 1 AND s IN ('b', 'ß')", (field("f") > 1.0) & field("s").isin(["b", "ß"])),
        ("st.f > 1", field("st", "f") > 1.0),
        ("st.f IN (0.0, 2.5)", field("st", "f").isin([0.0, 2.5])),
        ("true", field("i").is_null()),
        ("true", field("d").is_null() & field("i").is_null()),
        ("j > 1", field("i").is_null() & (field("j") > 1)),
        ("d > 1", (field("d") > 1.0) & field("i").is_null()),
        ("d > 1 AND false", (field("d") > 1.0) & pyarrow.dataset.scalar(False)),
        (" OR ".join(f"d > {n}" for n in range(300)), reduce(or_, (field("d") > n for n in range(300)))),
    ],
)
def test_filters_of_duckdb_1_are_compared_as_in_sql(
    connection: Any, location: str, condition: str, expression: Any
) -> None:
    """DuckDB 1 passes such expressions, and does not evaluate them again (see its file
    `duckdb_py/arrow/pyarrow_filter_pushdown.cpp`). It evaluates only a filter on null again, which it passes for ORDER
    BY with a LIMIT.
    """
    wanted = connection.sql(f"SELECT k FROM m WHERE {condition} ORDER BY k").fetchall()
    found = source_without(location, "duckdb._sources").scanner(["k"], expression).to_table()
    assert [(key,) for key in sorted(found["k"].to_pylist())] == wanted


def test_a_filter_of_an_unknown_form_is_refused_where_floating_point_numbers_are_compared(
    location: str,
) -> None:
    plain = source_without(location, "duckdb._sources")
    with pytest.raises(UnsupportedFeatureError, match=r"filter of an unknown form: .*d") as refused:
        plain.scanner(["k"], field("d") + 1 > 2)
    assert refused.value.hint == "install DuckDB 2 or newer: pip install 'duckdb>=2'"
    assert plain.scanner(["k"], field("i") + 1 > 2).to_table().num_rows == 4
    # DuckDB 1 passes this for `i > 1 AND d <= 'nan'`, although d may be NULL.
    with pytest.raises(UnsupportedFeatureError, match=r"filter of an unknown form: .*true"):
        plain.scanner(["k"], (field("i") > 1) & pyarrow.dataset.scalar(True))
