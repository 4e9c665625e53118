"""Tables as lazy Polars frames. A filter on a table selects the rows that Polars selects from the same rows in
memory.
"""

import datetime as dt
import functools
import math
import operator
import subprocess
import sys
import textwrap
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import deltalog.polars
from deltalog import DeltaTable, InvalidArgumentError, NotATableError, conditions, write_deltalake
from deltalog.extras import ExtraRequiredError

pl: Any = pytest.importorskip("polars")
c = pl.col
UTC = dt.timezone.utc

ROWS = pl.DataFrame(
    {
        "k": list(range(8)),
        "i": pl.Series([1, 2, None, -5, 2**40, 0, 7, 8], dtype=pl.Int64),
        "j": pl.Series([1, 2, None, -5, 3, 0, 7, 8], dtype=pl.Int32),
        "f": pl.Series([0.1, -0.0, None, math.nan, math.inf, -math.inf, 1.5, 3e38], dtype=pl.Float32),
        "d": [0.0, -0.0, None, math.nan, math.inf, -math.inf, 1.5, 1e300],
        "s": ["a", "b'\\c", None, "", "ß", "Ab", "%_", "\n"],
        "b": [True, False, None, True, False, True, None, True],
        "t": [None if n == 2 else dt.date(2024, 1, n + 1) for n in range(8)],
        "u": [None if n == 2 else dt.datetime(2024, 1, 1, n, tzinfo=UTC) for n in range(8)],
        "n": [None if n == 2 else dt.datetime(2024, 1, 1, n, 0, 0, 1) for n in range(8)],
        "x": pl.Series(
            [Decimal("1.50"), Decimal("2.25"), None, *[Decimal("-3.00")] * 5], dtype=pl.Decimal(10, 2)
        ),
        "w": pl.Series([Decimal(10**37 + n) for n in range(8)], dtype=pl.Decimal(38, 0)),
        "odd `name`": list("abcdefgh"),
        "st": [{"a": n, "B": str(n)} for n in range(8)],
    }
)

# Filters that the scan evaluates.
EXACT = {
    "comparison": c("i") > 1,
    "of columns": c("i") == c("j"),
    "of a wider one": c("j") < c("i"),
    "double": c("d") > 1.0,
    "zero": c("d") == 0.0,
    "negative zero": c("d") < -0.0,
    "quote and backslash": c("s") == "b'\\c",
    "not equal": c("s") != "a",
    "line break": c("s") == "\n",
    "prefix": c("s").str.starts_with("b'\\"),
    "prefix that is no pattern": c("s").str.starts_with("%"),
    "is in": c("s").is_in(["a", "ß", "\n"]),
    "not in": ~c("i").is_in([1, 2]),
    "boolean": c("b"),
    "not": ~c("b"),
    "boolean literal": c("b") == True,  # noqa: E712 (Polars overloads it)
    "and": c("b") & (c("i") > 0),
    "or": c("b") | (c("i") > 0),
    "date": c("t") > dt.date(2024, 1, 4),
    "dates": c("t").is_in([dt.date(2024, 1, 4), dt.date(1, 1, 1)]),
    "time": c("u") > dt.datetime(2024, 1, 1, 4, tzinfo=UTC),
    "time without a zone": c("n") > dt.datetime(2024, 1, 1, 4, 0, 0, 1),
    "decimal": c("x") > Decimal("1.5"),
    "wide decimal": c("w") == Decimal("1" + "0" * 36 + "3"),
    "between": c("i").is_between(0, 7, closed="left"),
    "null": c("i").is_null(),
    "not null": c("st").is_not_null(),
    "equal or both null": c("i").eq_missing(1),
    "name": c("odd `name`") == "d",
    "long chain": functools.reduce(operator.or_, [c("i") == n for n in range(300)]),
}

# Filters that Polars evaluates, alone or in addition to the scan.
OTHER = {
    "beyond the type": c("j") == 2**40,
    "float of 32 bits": c("f") > 0.1,
    "float of 32 bits, zero": c("f") == 0.0,
    "nan": c("d") > math.nan,
    "equals nan": c("d") == math.nan,
    "infinite": c("d") >= math.inf,
    "is nan": c("d").is_nan(),
    "null among values": c("i").is_in([1, None]),
    "nulls are equal": c("i").is_in([1, None], nulls_equal=True),
    "integer with a float": c("i") > 1.5,
    "arithmetic that wraps": c("i") * 2**62 > 0,
    "division by zero": c("j") / 0 > 1,
    "narrower": c("i").cast(pl.Int32, strict=False) > 1,
    "function": c("s").str.to_uppercase() == "A",
    "part": (c("i") > 1) & (c("s").str.contains("a") | c("b")) & (c("d") < 2),
    "exclusive or": (c("i") > 1) ^ c("b"),
    "field": c("st").struct.field("a") > 3,
    "aggregate": c("i") == c("i").max(),
    "case": pl.when(c("b")).then(c("i") > 1).otherwise(c("i") < 1),
    "true": pl.lit(True),
    "null literal": pl.lit(None, dtype=pl.Boolean),
}


@pytest.fixture(scope="module")
def location(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Creates a table with deletion vectors and column mapping."""
    path = str(tmp_path_factory.mktemp("polars") / "table")
    properties = {"delta.columnMapping.mode": "name", "delta.enableDeletionVectors": "true"}
    gone = ROWS.with_columns(k=c("k") + 100)
    for rows in (pl.concat([ROWS[:3], gone[:3]]), pl.concat([ROWS[3:], gone[3:]])):
        write_deltalake(path, rows.rename({"i": "before"}), mode="append", configuration=properties)
    table = DeltaTable(path)
    table.alter.rename_column("before", "i")
    assert table.delete("k >= 100")["numDeletedRows"] == 8
    return path


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str | None, bool]]:
    """Records the condition of each scan, and whether the scan evaluates the filter completely."""
    found: list[tuple[str | None, bool]] = []
    translated = conditions.translated

    def noted(*arguments: Any) -> Any:
        condition, others = translated(*arguments)
        found.append((condition, not others))
        return condition, others

    monkeypatch.setattr(deltalog.polars, "translated", noted)
    return found


@pytest.mark.parametrize("name", [*EXACT, *OTHER])
@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_a_filter_selects_the_rows_that_polars_selects(
    location: str, seen: list[tuple[str | None, bool]], name: str, engine: Any
) -> None:
    condition = {**EXACT, **OTHER}[name]
    wanted = ROWS.lazy().filter(condition).select("k").collect()["k"].sort().to_list()
    found = deltalog.polars.scan(location).filter(condition).select("k").collect(engine=engine)
    assert found["k"].sort().to_list() == wanted
    if name in EXACT:
        assert [whole for _, whole in seen] == [True], seen


def test_all_columns_and_values_arrive(location: str) -> None:
    frame = deltalog.polars.scan(location)
    assert frame.collect_schema()["w"] == pl.Decimal(38, 0)
    found = frame.sort("k").select(ROWS.columns).collect()
    assert found.equals(ROWS, null_equal=True)
    assert frame.select(pl.len()).collect().item() == 8
    assert frame.select("i").collect().columns == ["i"]


def test_files_that_cannot_match_are_not_read(tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    for number in range(4):
        write_deltalake(path, pl.DataFrame({"a": [number * 10, number * 10 + 1]}), mode="append")
    for file in tmp_path.glob("table/*.parquet"):
        if pl.read_parquet(file)["a"][0] != 20:
            file.unlink()
    assert deltalog.polars.scan(path).filter(c("a") == 21).collect()["a"].to_list() == [21]


def test_the_first_rows_end_the_scan(tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    write_deltalake(path, pl.DataFrame({"a": range(1000)}))
    frame = deltalog.polars.scan(path)
    assert frame.head(3).collect().height == 3
    assert frame.filter(c("a").cast(pl.String).str.ends_with("7")).head(3).collect().height == 3
    assert frame.head(0).collect().height == 0
    assert frame.filter(c("a") > 998).head(7).collect()["a"].to_list() == [999]


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_rows_in_order(tmp_path: Path, engine: Any) -> None:
    """With `ordered=True`, a frame has its rows in the same order each time."""
    path = str(tmp_path / "table")
    for number in range(40):
        rows = pl.DataFrame({"a": range(number * 1000, number * 1000 + 1000), "s": "x" * 100})
        write_deltalake(path, rows, mode="append")
    frame = deltalog.polars.scan(path, ordered=True, threads=4)
    places = frame.with_row_index("place").select("place", "a").collect(engine=engine)
    assert places["place"].to_list() == list(range(40_000))
    every = places["a"]
    assert sorted(every) == list(range(40_000))
    assert frame.slice(12_345, 10_000).collect(engine=engine)["a"].equals(every[12_345:22_345])
    assert frame.head(1500).collect(engine=engine)["a"].equals(every[:1500])
    matching = frame.filter(c("a") % 7 == 0).slice(100, 1000).collect(engine=engine)["a"]
    assert matching.equals(every.filter(every % 7 == 0)[100:1100])
    with pytest.raises(InvalidArgumentError, match="threads cannot be 0"):
        deltalog.polars.scan(path, threads=0)
    with pytest.raises(InvalidArgumentError, match="ordered cannot be 1"):
        deltalog.polars.scan(path, ordered=1)  # type: ignore[arg-type]


def test_a_frame_keeps_its_version(tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    write_deltalake(path, pl.DataFrame({"a": [1]}))
    table = DeltaTable(path)
    frame = deltalog.polars.scan(table)
    write_deltalake(table, pl.DataFrame({"a": [2]}), mode="append")
    assert frame.collect()["a"].to_list() == [1]
    assert sorted(deltalog.polars.scan(table).collect()["a"]) == [1, 2]
    assert deltalog.polars.scan(DeltaTable(path, version=0)).collect()["a"].to_list() == [1]


def test_an_empty_table_has_its_columns(tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    write_deltalake(path, pl.DataFrame({"a": [1], "s": ["x"]}).clear())
    found = deltalog.polars.scan(path).filter(c("a") > 1).collect()
    assert (found.columns, found.height) == (["a", "s"], 0)


def test_a_lazy_frame_is_written(location: str, tmp_path: Path) -> None:
    path = str(tmp_path / "copy")
    write_deltalake(path, deltalog.polars.scan(location).filter(c("i") > 1).select("k", "i", "s"))
    assert sorted(deltalog.polars.scan(path).collect()["k"]) == [1, 4, 6, 7]
    more = deltalog.polars.scan(location).filter(c("i") > 2**50).select("k", "i", "s")
    write_deltalake(path, more, mode="append")
    assert DeltaTable(path).count() == 4
    with pytest.raises(InvalidArgumentError, match="nothing"):
        write_deltalake(path, pl.LazyFrame({"a": [1]}).select(c("nothing")), mode="append")
    assert DeltaTable(path).count() == 4


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotATableError, match="nowhere"):
        deltalog.polars.scan(tmp_path / "nowhere")
    write_deltalake(tmp_path / "here", pl.DataFrame({"a": [1]}))
    with pytest.raises(InvalidArgumentError, match="storage_options cannot be passed with a table"):
        deltalog.polars.scan(DeltaTable(tmp_path / "here"), storage_options={"aws_region": "x"})
    code = """
        import sys
        sys.modules["polars"] = None
        import deltalog.polars
        try:
            deltalog.polars.scan("/nowhere")
        except ImportError as error:
            print(type(error).__name__, error)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith(f"{ExtraRequiredError.__name__} deltalog.polars needs polars")
    assert "pip install 'deltalog[polars]'" in done.stdout
