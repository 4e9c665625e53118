"""Tables in the Python package `datafusion`, compared with the same rows in memory.

`test_datafusion.py` runs this in an environment with DataFusion and the wheel `deltalog-datafusion`.
"""

from __future__ import annotations

import datetime as dt
import gc
import importlib.metadata
import json
import math
import re
import shutil
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import deltalog_datafusion
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from datafusion import SessionConfig, SessionContext
from deltalog_datafusion import _datafusion

import deltalog
import deltalog.datafusion
from deltalog import (
    DeltaTable,
    InvalidArgumentError,
    NotATableError,
    UnsupportedFeatureError,
    write_deltalake,
)
from deltalog.extras import ExtraRequiredError
from scripts.release import trial

NAN = math.nan
UTC = dt.timezone.utc
ROWS = pa.table(
    {
        "id": pa.array(range(10), pa.int64()),
        "i": pa.array([1, 2, None, 3, -7, 5, 0, 9, 2**31 - 1, -(2**31)], pa.int32()),
        "f": pa.array([1.5, NAN, -NAN, 0.0, -0.0, None, math.inf, -math.inf, -1.0, 5e-324]),
        "g": pa.array([0.1, NAN, -NAN, 0.0, -0.0, None, math.inf, -math.inf, -1.0, 1.5], pa.float32()),
        "s": pa.array(["a", "a%b", "it's", "a\\b", "", None, "é", "a\nb", '"q"', "B"]),
        "b": pa.array([True, False, None, True, False, None, True, True, False, True]),
        "d": pa.array(
            [None if n == 2 else Decimal(n * 75 - 150).scaleb(-2) for n in range(10)], pa.decimal128(9, 2)
        ),
        "w": pa.array([Decimal(10**37 + n) for n in range(10)], pa.decimal128(38, 0)),
        "day": pa.array([None if n == 2 else dt.date(1969, 12, 28 + n % 4) for n in range(10)]),
        "t": pa.array(
            [None if n == 2 else dt.datetime(2024, 1, 1, n, 0, 0, n, UTC) for n in range(10)],
            pa.timestamp("us", "UTC"),
        ),
        "n": pa.array(
            [None if n == 2 else dt.datetime(2024, 1, 1, n, 0, 0, n) for n in range(10)], pa.timestamp("us")
        ),
        "x": pa.array([bytes([n, 255 - n]) for n in range(10)]),
        "o": pa.array([{"k": None if n == 2 else n % 3, "v": n / 2} for n in range(10)]),
        "Odd `name`": pa.array(list("abcdefghij")),
    }
)
GONE = 6

# Filters that the scan evaluates. DataFusion may evaluate them again.
BY_THE_SCAN = [
    "i = 3",
    "i <> 3",
    "3 < i",
    "i IN (1, 2, 3, 5) OR i IS NULL",
    "i NOT IN (1, 2, 3, 5)",
    "NOT (i > 2)",
    "i BETWEEN 0 AND 5",
    "i IS DISTINCT FROM 3",
    "f < 0.0",
    "f <= -0.0",
    "f = 0.0",
    "f = -0.0",
    "f > 1.0",
    "NOT (f > 1.0)",
    "f IS NULL",
    "f IN (0.0, 1.5, 2.5, 3.5)",
    "f BETWEEN -1.0 AND 1.5",
    "g > arrow_cast(0.5, 'Float32')",
    "s = 'it''s'",
    "s = 'a\\b'",
    "s = '\"q\"'",
    "s = ''",
    "s > 'a'",
    "s LIKE 'a%'",
    "s LIKE 'a_b'",
    "s NOT LIKE '%a%'",
    "b",
    "NOT b",
    "b IS NOT TRUE",
    "d >= 0.75",
    "d = 1.5",
    "w = arrow_cast('10000000000000000000000000000000000003', 'Decimal128(38, 0)')",
    "day BETWEEN DATE '1969-12-29' AND DATE '1969-12-30'",
    "t > arrow_cast('2024-01-01T05:00:00Z', 'Timestamp(Microsecond, Some(\"UTC\"))')",
    "n >= TIMESTAMP '2024-01-01T05:00:00.000005'",
    "x = X'03fc'",
    "o['k'] = 1",
    "o['k'] IS NULL",
    "\"Odd `name`\" = 'd'",
    " OR ".join(f"i = {n}" for n in range(300)),
]

# Filters that DataFusion must evaluate, because the scan evaluates at most a part of them.
BY_DATAFUSION = [
    "f <> 0.0",
    "f NOT IN (0.0, 1.5)",
    "isnan(f)",
    "f = 'NaN'",
    "upper(s) = 'A'",
    "i + 1 = 4",
    "i IN (1, NULL)",
    "i < 100000000000",
    "g > 0.5",
    "s LIKE 'a\\%b'",
    "s ILIKE 'b'",
    "id < 8 AND i % 2 = 1",
    "i = (SELECT max(i) FROM {})",
    "id IN (SELECT id FROM {} WHERE i > 1)",
]


@pytest.fixture
def table(tmp_path: Path) -> str:
    """Creates a table of two files with a deletion vector, in which the column `i` has another name in the files."""
    path = str(tmp_path / "table")
    properties = {"delta.enableDeletionVectors": "true", "delta.columnMapping.mode": "name"}
    names = ["before" if name == "i" else name for name in ROWS.column_names]
    for start, end in ((0, 5), (5, 10)):
        part = ROWS.slice(start, end - start).rename_columns(names)
        write_deltalake(path, part, mode="append", configuration=properties)
    opened = DeltaTable(path)
    opened.alter.rename_column("before", "i")
    assert opened.delete(f"id = {GONE}")["numDeletedRows"] == 1
    return path


def context_of(**tables: Any) -> SessionContext:
    context = SessionContext(SessionConfig().with_target_partitions(3))
    for name, table in tables.items():
        context.register_table(name, table)
    return context


def integers(context: SessionContext, query: str) -> list[int]:
    return sorted(value for batch in context.sql(query).collect() for value in batch.column(0).to_pylist())


def plan(context: SessionContext, query: str) -> str:
    return "\n".join(context.sql(f"EXPLAIN {query}").to_pydict()["plan"])


@pytest.mark.parametrize("condition", [*BY_THE_SCAN, *BY_DATAFUSION])
def test_a_filter_selects_the_same_rows(table: str, condition: str) -> None:
    context = context_of(t=deltalog_datafusion.table(table))
    context.from_arrow(ROWS.filter(pc.not_equal(ROWS["id"], GONE)), name="m")
    query = "SELECT id FROM {} WHERE " + condition
    wanted = integers(context, query.replace("{}", "m"))
    assert integers(context, query.replace("{}", "t")) == wanted
    if condition in BY_THE_SCAN:
        assert "number_of_children=0" in plan(context, query.replace("{}", "t"))
        # If the column has floating-point numbers, the scan may also return both NaN and both zeros.
        more = 4 if re.search(r"\b[fg]\b", condition) else 0
        assert scanned(context, query) <= len(wanted) + more


def scanned(context: SessionContext, query: str) -> int:
    """Returns the number of rows that the scan has returned to DataFusion, or 0 if the plan has no scan."""
    text = "\n".join(context.sql("EXPLAIN ANALYZE " + query.replace("{}", "t")).to_pydict()["plan"])
    found = re.search(r"DeltaScanExec.*?output_rows=([\d.]+)", text)
    return int(float(found[1])) if found else 0


def test_all_values_are_the_same(table: str) -> None:
    context = context_of(t=deltalog_datafusion.table(table))
    rows = context.sql("SELECT * FROM t ORDER BY id").to_arrow_table()
    wanted = ROWS.filter(pc.not_equal(ROWS["id"], GONE))
    assert rows.column_names == wanted.column_names
    for name in wanted.column_names:
        assert repr(rows[name].to_pylist()) == repr(wanted[name].to_pylist()), name


def test_counts_joins_and_limits(table: str) -> None:
    context = context_of(t=deltalog_datafusion.table(table))
    assert integers(context, "SELECT count(*) FROM t") == [9]
    assert "DeltaScanExec" not in plan(context, "SELECT count(*) FROM t"), "the log has the number of rows"
    assert integers(context, "SELECT count(*) FROM t WHERE i > 0") == [6]
    assert integers(context, "SELECT a.id FROM t AS a JOIN t AS b ON a.id = b.id + 1") == [
        1,
        2,
        3,
        4,
        5,
        8,
        9,
    ]
    assert integers(context, "SELECT t.id FROM t JOIN (VALUES (1), (6), (9)) AS k(id) USING (id)") == [1, 9]
    assert len(integers(context, "SELECT id FROM t LIMIT 3")) == 3
    assert integers(context, "SELECT id FROM t WHERE i IS NULL LIMIT 3") == [2]
    assert integers(context, "SELECT max(id) FROM t") == [9]


def test_versions(table: str) -> None:
    old = deltalog_datafusion.table(DeltaTable(table, version=0))
    context = context_of(old=old, new=deltalog_datafusion.table(Path(table)))
    assert integers(context, "SELECT count(*) FROM old") == [5]
    assert integers(context, "SELECT id FROM new EXCEPT SELECT id FROM old") == [5, 7, 8, 9]
    assert repr(old) == f"deltalog_datafusion.TableProvider({DeltaTable(table).table_uri!r}, version=0)"


def test_inserts(table: str) -> None:
    provider = deltalog_datafusion.table(table)
    context = context_of(t=provider)
    rest = ", ".join(f'"{name}"' for name in ROWS.column_names[1:])
    assert integers(context, f"INSERT INTO t SELECT id + 100, {rest} FROM t WHERE id < 4") == [4]
    assert integers(context, "SELECT id FROM t") == [0, 1, 2, 3, 4, 5, 7, 8, 9, 100, 101, 102, 103]
    assert provider.version == DeltaTable(table).version()
    # All partitions of the input are written.
    source = f"SELECT id + 1000, {rest} FROM t"
    assert integers(context, f"INSERT OVERWRITE t {source} UNION ALL {source}") == [26]
    assert DeltaTable(table).count() == 26
    assert integers(context, "INSERT INTO t (id) VALUES (7)") == [1]
    assert integers(context, "SELECT id FROM t WHERE s IS NULL AND id < 1000") == [7]


def test_an_insert_without_rows_commits_nothing(table: str) -> None:
    provider = deltalog_datafusion.table(table)
    context, version = context_of(t=provider), DeltaTable(table).version()
    assert integers(context, "INSERT INTO t (id) SELECT id FROM t WHERE id > 100") == [0]
    assert (provider.version, DeltaTable(table).version()) == (version, version)


MAPS = pa.table(
    {
        "id": [1, 2, 3],
        "m": pa.array([[("a", "x"), ("b", "y")], [("a", None)], None], pa.map_(pa.string(), pa.string())),
        "x": pa.array([[(b"a", 1)], [(b"b", 2)], []], pa.map_(pa.binary(), pa.int64())),
        "o": pa.array(
            [{"m": [("a", "z")]}, {"m": []}, None],
            pa.struct([("m", pa.map_(pa.string(), pa.string()))]),
        ),
        "l": pa.array([[[("a", "q")]], [], None], pa.list_(pa.map_(pa.string(), pa.string()))),
    }
)


@pytest.mark.parametrize(
    "value",
    ["m['a']", "m['b'] = 'y'", "x[X'61']", "o['m']['a']", "l[1]['a']", "map_keys(m)", "map_values(m)", "m"],
)
def test_values_of_maps(tmp_path: Path, value: str) -> None:
    write_deltalake(tmp_path, MAPS)
    context = context_of(t=deltalog_datafusion.table(tmp_path))
    context.from_arrow(MAPS, name="m")
    wanted, found = (context.sql(f"SELECT id, {value} AS v FROM {name} ORDER BY id") for name in "mt")
    assert found.to_pylist() == wanted.to_pylist()
    if "['" in value:
        wanted, found = (context.sql(f"SELECT id FROM {name} WHERE {value} IS NULL") for name in "mt")
        assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, wanted.to_pylist()))


def test_maps_can_be_inserted(tmp_path: Path) -> None:
    write_deltalake(tmp_path, MAPS)
    context = context_of(t=deltalog_datafusion.table(tmp_path))
    context.from_arrow(MAPS, name="m")
    assert integers(context, "INSERT INTO t SELECT id + 10, m, x, o, l FROM m") == [3]
    assert integers(context, "INSERT INTO t SELECT id + 100, m, x, o, l FROM t WHERE id < 10") == [3]
    for more in (10, 100):
        rows = context.sql(
            f"SELECT id - {more} AS id, m, x, o, l FROM t WHERE id > {more} AND id < {more + 10}"
        )
        assert sorted(rows.to_pylist(), key=lambda row: row["id"]) == MAPS.to_pylist()


def test_an_insert_notices_other_writers(table: str) -> None:
    columns = ", ".join(f'"{name}"' for name in ROWS.column_names)
    copy = f"INSERT INTO t SELECT {columns} FROM t WHERE id < 4"
    context = context_of(t=deltalog_datafusion.table(table))
    DeltaTable(table).delete("id = 1")
    before = DeltaTable(table).version()
    # These statements are based on the version that the provider has opened. The first one reads a row that is gone.
    with pytest.raises(Exception, match="nothing was committed"):
        context.sql(copy).collect()
    with pytest.raises(Exception, match="nothing was committed"):
        context.sql("INSERT OVERWRITE t (id) VALUES (3)").collect()
    # These statements count a row that is gone: by the log's statistics, and in a subquery.
    for rows in (
        "count(*) FROM t",
        "value FROM generate_series(3, 3) WHERE value < (SELECT count(*) FROM t)",
    ):
        with pytest.raises(Exception, match="nothing was committed"):
            context.sql(f"INSERT INTO t (id) SELECT {rows}").collect()
    assert DeltaTable(table).version() == before
    # Rows that a statement does not read may change.
    context = context_of(t=deltalog_datafusion.table(table))
    DeltaTable(table).delete("id = 9")
    assert integers(context, copy) == [3]
    assert DeltaTable(table).count() == 10


def test_the_steps_of_a_release(tmp_path: Path) -> None:
    """Runs what scripts/release/trial.py does with the wheel in a bare root directory."""
    (tmp_path / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in trial.ROWS))
    for arguments, output in trial.STEPS_IN_DATAFUSION:
        here = [re.sub("/(trips|rows)", rf"{tmp_path}/\1", text) for text in arguments]
        ran = subprocess.run([sys.executable, *here], capture_output=True, text=True, check=False)
        assert (ran.returncode, ran.stderr) == (0, ""), arguments
        assert output in ran.stdout


def test_an_insert_that_fails_leaves_nothing(table: str) -> None:
    context = context_of(t=deltalog_datafusion.table(table))
    files, version = set(Path(table).rglob("*.parquet")), DeltaTable(table).version()
    with pytest.raises(Exception, match=r"(?i)divide by zero"):
        context.sql(
            "INSERT INTO t (id) SELECT value FROM generate_series(1, 50000) WHERE 10 / (40000 - value) > -100"
        ).collect()
    with pytest.raises(Exception, match="no keys"):
        context.sql("REPLACE INTO t (id) VALUES (1)").collect()
    assert (set(Path(table).rglob("*.parquet")), DeltaTable(table).version()) == (files, version)


def test_what_cannot_be_opened(tmp_path: Path, table: str) -> None:
    with pytest.raises(NotATableError):
        deltalog_datafusion.table(tmp_path)
    with pytest.raises(InvalidArgumentError):
        deltalog_datafusion.table(3)
    for options in (3, {"a": 3}):
        with pytest.raises(InvalidArgumentError, match="storage_options"):
            deltalog_datafusion.table(DeltaTable(table), storage_options=options)
    opened = DeltaTable(table)
    opened._credential_provider = dict
    with pytest.raises(UnsupportedFeatureError, match="pass the path or URL of the table"):
        deltalog_datafusion.table(opened)
    # A table that has replaced another one at the same path is not mistaken for it.
    opened = DeltaTable(table)
    shutil.rmtree(table)
    write_deltalake(table, pa.table({"id": [1]}))
    with pytest.raises(deltalog.TableReplacedError) as refused:
        deltalog_datafusion.table(opened)
    assert refused.value.hint


def test_a_missing_file_is_an_error(table: str) -> None:
    context = context_of(t=deltalog_datafusion.table(table))
    next(path for path in Path(table).rglob("*.parquet") if "_delta_log" not in path.parts).unlink()
    with pytest.raises(Exception, match="the file is not there"):
        context.sql("SELECT id FROM t").collect()


def test_another_major_version_is_refused(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With another major version of DataFusion, the process would crash."""
    provider = deltalog_datafusion.table(table)
    ours = importlib.metadata.version

    def version(name: str) -> str:
        return "56.1.0" if name == "datafusion" else ours(name)

    monkeypatch.setattr(importlib.metadata, "version", version)
    message = (
        r"works with DataFusion 55, and DataFusion 56\.1\.0 is installed; install deltalog-datafusion 56\.\*"
    )
    with pytest.raises(UnsupportedFeatureError, match=message):
        deltalog_datafusion.table(table)
    with pytest.raises(UnsupportedFeatureError, match=message):
        SessionContext().register_table("t", provider)


def test_datafusion_that_is_missing_is_named(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def version(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", version)
    with pytest.raises(ExtraRequiredError, match=r"pip install 'datafusion>=55,<56'"):
        deltalog_datafusion.table(table)


def test_the_stub_names_what_the_binary_has() -> None:
    stub = (Path(deltalog_datafusion.__file__).parent / "_datafusion.pyi").read_text()
    methods = set(re.findall(r"^    def (\w+)", stub, re.MULTILINE))
    assert methods == {name for name in dir(_datafusion.Table) if not name.startswith("__")}
    names = set(re.findall(r"^(?:class )?(\w+)(?::| =)", stub, re.MULTILINE))
    assert names == {name for name in dir(_datafusion) if not name.startswith("__")}
    assert importlib.metadata.version("deltalog-datafusion") == f"55.{deltalog.__version__}"


def without_duckdb(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)


def test_sql_without_duckdb(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    without_duckdb(monkeypatch)
    query = "SELECT count(*) AS n FROM Trips JOIN other USING (id) WHERE trips.s LIKE 'a%'"
    found = deltalog.sql(query, Trips=table, other=DeltaTable(table, version=0))
    gc.collect()
    assert found.to_pylist() == [{"n": 3}]
    quoted = 'SELECT count(*) AS n FROM "Trips" JOIN trips USING (id)'
    assert deltalog.sql(quoted, Trips=table).to_pylist() == [{"n": 9}]
    # A frame that is derived from the result can be read, too.
    more = deltalog.sql("SELECT id, i FROM t", t=table).filter("i > 2").select("id")
    gc.collect()
    assert sorted(pa.table(more)["id"].to_pylist()) == [3, 5, 7, 8]
    write_deltalake(f"{table}-copy", deltalog.sql("SELECT id, s FROM t WHERE i > 2", t=table))
    assert DeltaTable(f"{table}-copy").count() == 4
    assert deltalog.datafusion.sql('SELECT 1 AS a FROM "a b" LIMIT 1', **{"a b": table}).to_pylist() == [
        {"a": 1}
    ]


def test_sql_that_is_refused(table: str, tmp_path: Path) -> None:
    version = DeltaTable(table).version()
    for query, message in [
        ("SELECT * FROM nothing", "nothing"),
        ("SELECT nothing FROM t", "nothing"),
        ("SELEC 1", "DataFusion does not accept the query"),
        ("INSERT INTO t (id) VALUES (1)", "DML"),
        ("CREATE TABLE u AS SELECT 1", "DDL"),
        ("SET datafusion.execution.batch_size = 1", "does not accept the query"),
        ("", "does not accept the query"),
        ("SELECT 1; SELECT 2", "single SQL statement"),
        ("INSERT INTO t (id) VALUES (1); SELECT 2", "single SQL statement"),
    ]:
        with pytest.raises(InvalidArgumentError, match=message):
            deltalog.datafusion.sql(query, t=table)
    with pytest.raises(InvalidArgumentError, match="query cannot be 3"):
        deltalog.datafusion.sql(3)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="upper and lower case"):
        deltalog.datafusion.sql("SELECT 1", t=table, T=table)
    with pytest.raises(NotATableError):
        deltalog.datafusion.sql("SELECT 1", t=tmp_path / "nowhere")
    # A name is valid only in the query to which it was passed.
    with pytest.raises(InvalidArgumentError, match=r"'datafusion\.public\.t' not found"):
        deltalog.datafusion.sql("SELECT * FROM t")
    assert DeltaTable(table).version() == version


def test_the_command_without_duckdb(
    table: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from deltalog.cli import main

    without_duckdb(monkeypatch)
    assert main(["sql", "SELECT id FROM t WHERE i > 2 ORDER BY id", f"t={table}", "--json", "-n", "2"]) == 0
    assert capsys.readouterr().out.splitlines() == ['{"id":3}', '{"id":5}']
    assert main(["sql", "SELECT nothing FROM t", f"t={table}"]) == 2
    assert "DataFusion does not accept the query" in capsys.readouterr().err
    assert main(["sql", "SELECT 1", "t=nowhere"]) == 3


def test_the_readme_runs(tmp_path: Path) -> None:
    readme = Path(__file__).parents[2] / "crates/deltalog-datafusion/python/README.md"
    blocks = re.findall(r"```python\n(.*?)```", readme.read_text(), re.DOTALL)
    assert blocks
    write_deltalake(tmp_path / "trips", pa.table({"city": ["Oslo", "Rome"], "km": [7.5, 3.0]}))
    ran = subprocess.run(
        [sys.executable, "-c", "\n".join(blocks)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert "7.5" in ran.stdout
