"""`deltalog sql`."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from deltalog.cli.failures import USAGE
from tests.python.cli.conftest import Command

pytest.importorskip("duckdb")


def test_a_query_over_tables(run: Command) -> None:
    ran = run("sql", "SELECT city, max(km) AS most FROM t GROUP BY city ORDER BY city", "t=trips")
    assert [line.split() for line in ran.out.splitlines()[:1]] == [["city", "most"]]
    assert "Oslo" in ran.out
    joined = "SELECT count(*) AS n FROM t JOIN o ON t.km > o.price WHERE t.km > 4"
    assert run("sql", joined, "t=trips", "o=orders", "--json").objects == [{"n": 3}]
    assert run("sql", "SELECT 1 AS a, NULL AS b").out.splitlines()[-1].split() == ["1", "NULL"]
    assert len(run("sql", "FROM range(100000)", "-n", "3", "--json").objects) == 3
    assert run("sql", "FROM t WHERE km > 1000", "t=trips").out.split() == ["city", "km", "----", "--"]


def test_its_rows_as_arrow(run: Command, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    out = io.TextIOWrapper(written)
    monkeypatch.setattr(sys, "stdout", out)
    assert run("sql", "SELECT km FROM t WHERE city = 'Rome'", f"t={place / 'trips'}", "--arrow").code == 0
    out.flush()
    assert sorted(pa.ipc.open_stream(written.getvalue()).read_all()["km"].to_pylist()) == [1.5, 12.0]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("SELECT * FROM nothing",), USAGE, "nothing does not exist"),
        (("SELECT nothing FROM t", "t=trips"), USAGE, "nothing"),
        (("",), USAGE, "query cannot be ''"),
        (("SELECT 1; SELECT 2",), USAGE, "the query has several statements"),
        (("SELECT 1", "t=trips", "t=orders"), USAGE, "two tables have the same name"),
        (("SELECT 1", "trips"), USAGE, "expected KEY=VALUE"),
        (("SELECT 1", "t=nowhere"), 3, "no Delta table"),
        (("SELECT CAST(city AS INT) FROM t", "t=trips"), USAGE, "Conversion Error"),
    ],
)
def test_errors_are_reported_in_one_line(
    run: Command, arguments: tuple[str, ...], code: int, message: str
) -> None:
    ran = run("sql", *arguments)
    assert (ran.code, ran.out) == (code, ""), ran
    assert message in ran.err
    assert ran.err.count("\n") == 1


def test_duckdb_that_is_missing_is_named(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    ran = run("sql", "SELECT 1")
    assert "pip install 'deltalog[sql]'" in ran.err
    assert ran.code == 5
