"""Tables as pyarrow datasets. A filter on a table selects the rows that pyarrow selects from the same rows in
memory.
"""

import datetime as dt
import functools
import itertools
import math
import operator
import pickle
import subprocess
import sys
import textwrap
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet
import pytest

import deltalog.pyarrow
from deltalog import (
    DeltaTable,
    InvalidArgumentError,
    MissingFileError,
    NotATableError,
    UnsupportedFeatureError,
    conditions,
    write_deltalake,
)

c = pc.field
UTC = dt.timezone.utc

ROWS = pa.table(
    {
        "k": range(8),
        "i": pa.array([1, 2, None, -5, 2**40, 0, 7, 8], pa.int64()),
        "j": pa.array([1, 2, None, -5, 3, 0, 7, 8], pa.int32()),
        "f": pa.array([0.1, -0.0, None, math.nan, math.inf, -math.inf, 1.5, 3e38], pa.float32()),
        "d": [0.0, -0.0, None, math.nan, math.inf, -math.inf, 1.5, 1e300],
        "e": [math.copysign(math.nan, -1), 1.0, None, math.nan, 1.5, None, -1.5, 0.0],
        "s": ["a", "b'\\c", None, "", "ß", "Ab", "%_", "\n"],
        "b": [True, False, None, True, False, True, None, True],
        "y": [b"a", b"\x00\xff", None, b"", b"b", b"'", b"\\", b"a"],
        "t": [None if n == 2 else dt.date(2024, 1, n + 1) for n in range(8)],
        "u": pa.array(
            [None if n == 2 else dt.datetime(2024, 1, 1, n, tzinfo=UTC) for n in range(8)],
            pa.timestamp("us", tz="UTC"),
        ),
        "n": [None if n == 2 else dt.datetime(2024, 1, 1, n, 0, 0, 1) for n in range(8)],
        "x": pa.array(
            [Decimal("1.50"), Decimal("2.25"), None, *[Decimal("-3.00")] * 5], pa.decimal128(10, 2)
        ),
        "w": pa.array([Decimal(10**37 + n) for n in range(8)], pa.decimal128(38, 0)),
        "odd `name`\n\"": list("abcdefgh"),
        "st": [{"a": n, "B": str(n)} for n in range(8)],
    }
)  # fmt: skip

# Filters that the scan evaluates.
EXACT = {
    "comparison": c("i") > 1,
    "the other way": pc.scalar(1) < c("i"),
    "of columns": c("s") < c("s"),
    "beyond the type": c("j") < 2**40,
    "double": c("d") > 1.0,
    "not greater": ~(c("d") > 1.0),
    "not less": ~(c("d") < 1.0),
    "not nan": ~(c("e") >= 1.0),
    "double and a whole number": c("d") >= 1,
    "zero": c("d") == 0.0,
    "negative zero": c("d") < -0.0,
    "is nan": pc.is_nan(c("d")),
    "is not nan": ~pc.is_nan(c("e")),
    "nan or greater": pc.is_nan(c("e")) | (c("e") > 1.0),
    "quote and backslash": c("s") == "b'\\c",
    "not equal": c("s") != "a",
    "line break": c("s") == "\n",
    "binary": c("y") == b"\x00\xff",
    "prefix": pc.starts_with(c("s"), "b'\\"),
    "prefix that is no pattern": pc.starts_with(c("s"), "%"),
    "pattern of a prefix": pc.match_like(c("s"), "A%"),
    "is in": c("s").isin(["a", "ß", "\n"]),
    "not in": ~c("i").isin([1, 2]),
    "null among values": c("i").isin([1, None]),
    "not null among values": ~c("i").isin([1, None]),
    "nulls are skipped": pc.is_in(c("i"), options=pc.SetLookupOptions(pa.array([1, None]), skip_nulls=True)),
    "boolean": c("b"),
    "not": ~c("b"),
    "boolean literal": c("b") == True,  # noqa: E712 (pyarrow overloads it)
    "and": c("b") & (c("i") > 0),
    "or": c("b") | (c("i") > 0),
    "date": c("t") > dt.date(2024, 1, 4),
    "among doubles and both zeros": c("d").isin([0.0, -0.0, 1.5]),
    "among doubles without a zero": c("d").isin([1.5, 2.5, None]),
    "dates": c("t").isin([dt.date(2024, 1, 4), dt.date(1, 1, 1)]),
    "time": c("u") > dt.datetime(2024, 1, 1, 4, tzinfo=UTC),
    "time of another unit": c("u") == pa.scalar(1704081600, pa.timestamp("s", tz="UTC")),
    "time of another zone": c("u") >= pa.scalar(1704081600000000, pa.timestamp("us", tz="Asia/Tokyo")),
    "time without a zone": c("n") > dt.datetime(2024, 1, 1, 4, 0, 0, 1),
    "decimal": c("x") > Decimal("1.5"),
    "wide decimal": c("w") == Decimal("1" + "0" * 36 + "3"),
    "null": c("i").is_null(),
    "not null": c("st").is_valid(),
    "name": c("odd `name`\n\"") == "d",
    "field": c("st", "a") > 3,
    "field of text": c("st", "B").isin(["1", "7"]),
    "long chain": functools.reduce(operator.or_, [c("i") == n for n in range(300)]),
}  # fmt: skip

# Filters that pyarrow evaluates, alone or in addition to the scan.
OTHER = {
    "float of 32 bits": c("f") > 0.1,
    "float of 32 bits, zero": c("f") == 0.0,
    "nan": c("d") < math.nan,
    "equals nan": c("d") == math.nan,
    "infinite": c("d") >= math.inf,
    "doubles": c("d") < c("e"),
    "among doubles": c("d").isin([0.0, 1.5]),
    "among doubles and nan": c("d").isin([1.5, math.nan]),
    "null or nan": c("d").is_null(nan_is_null=True),
    "integer with a float": c("j") > 1.5,
    "arithmetic that wraps": pc.multiply(c("i"), 2**62) > 0,
    "decimal and a wide one": c("x") < pa.scalar(Decimal("2.00"), pa.decimal128(38, 30)),
    "cast": c("i").cast("double") > 1.5,
    "function": pc.utf8_upper(c("s")) == "A",
    "prefix in any case": pc.starts_with(c("s"), "a", ignore_case=True),
    "pattern": pc.match_like(c("s"), "_"),
    "pattern with an escape": pc.match_like(c("s"), "\\%%"),
    "nanoseconds": c("n") > pa.scalar(1704067200000001001, pa.timestamp("ns")),
    "null literal": c("i") > pa.scalar(None, pa.int64()),
    "part": (c("i") > 1) & (pc.match_substring(c("s"), "a") | c("b")) & (c("j") < 8),
    "true": pc.scalar(True),
    "by place": pc.field(1) > 1,
}


@pytest.fixture(scope="module")
def location(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Creates a table with deletion vectors and column mapping."""
    path = str(tmp_path_factory.mktemp("pyarrow") / "table")
    properties = {"delta.columnMapping.mode": "name", "delta.enableDeletionVectors": "true"}
    gone = ROWS.set_column(0, "k", pa.array(range(100, 108)))
    for some in (slice(0, 3), slice(3, 8)):
        rows = pa.concat_tables([whole[some.start : some.stop] for whole in (ROWS, gone)])
        names = ["before" if name == "i" else name for name in ROWS.column_names]
        write_deltalake(path, rows.rename_columns(names), mode="append", configuration=properties)
    table = DeltaTable(path)
    table.alter.rename_column("before", "i")
    assert table.delete("k >= 100")["numDeletedRows"] == 8
    return path


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Records for each scan whether it evaluates the filter completely."""
    found: list[bool] = []
    translated = conditions.translated

    def noted(*arguments: Any) -> Any:
        condition, others = translated(*arguments)
        found.append(not others)
        return condition, others

    monkeypatch.setattr(deltalog.pyarrow, "translated", noted)
    return found


@pytest.mark.parametrize("name", [*EXACT, *OTHER])
def test_a_filter_selects_the_rows_that_pyarrow_selects(location: str, seen: list[bool], name: str) -> None:
    condition = {**EXACT, **OTHER}[name]
    memory = ds.InMemoryDataset(ROWS)
    dataset = deltalog.pyarrow.dataset(location)
    for selection in (condition, ~condition):
        wanted = memory.to_table(["k"], selection)["k"].to_pylist()
        found = dataset.to_table(["k"], selection)
        assert sorted(found["k"].to_pylist()) == wanted
        assert (found.schema.names, dataset.count_rows(selection)) == (["k"], len(wanted))
        assert dataset.filter(selection).filter(c("k") < 6).count_rows() == sum(k < 6 for k in wanted)
    if name in EXACT:
        assert all(seen)
        assert seen


@pytest.mark.parametrize("number", [1, -3, 2**40, -(2**63), 2**64 - 1])
def test_decimals_are_compared_with_whole_numbers(location: str, seen: list[bool], number: int) -> None:
    """pyarrow itself refuses this comparison: it has no decimal type with room for both the digits of a 64-bit integer
    and the scale of the column.
    """
    dataset = deltalog.pyarrow.dataset(location)
    value = pa.scalar(number, pa.uint64() if number >= 2**63 else pa.int64())
    for name, compare in itertools.product(
        ("x", "w"), (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)
    ):
        wanted = [
            row["k"] for row in ROWS.to_pylist() if row[name] is not None and compare(row[name], number)
        ]
        assert sorted(dataset.to_table(["k"], compare(c(name), value))["k"].to_pylist()) == wanted
        assert dataset.count_rows(compare(c(name), value)) == len(wanted)
    among = sorted(dataset.to_table(["k"], c("x").isin(pa.array([number], value.type)))["k"].to_pylist())
    assert among == [row["k"] for row in ROWS.to_pylist() if row["x"] == number]
    assert all(seen)


def test_all_columns_and_values_arrive(location: str) -> None:
    dataset = deltalog.pyarrow.dataset(location)
    found = dataset.to_table(ROWS.column_names).sort_by("k")
    assert found.schema.equals(ROWS.schema.with_metadata(None)) or found.schema.types == ROWS.schema.types
    # NaN of either sign is not equal to itself.
    plain = [name for name in ROWS.column_names if name not in ("f", "d", "e")]
    assert found.select(plain).to_pylist() == ROWS.select(plain).to_pylist()
    assert repr(found.select(["f", "d", "e"]).to_pylist()) == repr(ROWS.select(["f", "d", "e"]).to_pylist())
    assert set(dataset.schema.names) == set(ROWS.column_names)
    assert dataset.count_rows() == len(dataset.to_table()) == 8
    assert dataset.to_table(columns=[]).num_rows == 8


def test_projections(location: str) -> None:
    dataset = deltalog.pyarrow.dataset(location)
    computed = {"twice": c("k") * 2, "text": c("st", "B")}
    assert dataset.to_table(computed, c("k") == 3).to_pylist() == [{"twice": 6, "text": "3"}]
    assert dataset.to_table(["s", "k", "s"], c("k") == 4).to_pydict() is not None
    assert dataset.to_table(["s"], pc.utf8_upper(c("s")) == "A").to_pylist() == [{"s": "a"}]
    for columns in (["nope"], ["k", "nope"], {"x": c("nope")}):
        with pytest.raises(pa.ArrowInvalid, match=r"(?s)nope.*\bi: int64"):
            dataset.to_table(columns)
    with pytest.raises(pa.ArrowInvalid, match="nope"):
        dataset.to_table(filter=c("nope") == 1)
    with pytest.raises(pa.ArrowNotImplementedError, match="greater_equal"):
        dataset.to_table(filter=c("u") >= pa.scalar(0, pa.timestamp("s", tz="Asia/Tokyo")))
    with pytest.raises(InvalidArgumentError, match="filter cannot be 'k = 1'"):
        dataset.to_table(filter="k = 1")


def test_files_that_cannot_match_are_not_read(tmp_path: Path) -> None:
    for number in range(4):
        write_deltalake(tmp_path / "t", pa.table({"a": [number * 10, number * 10 + 1]}), mode="append")
    dataset = deltalog.pyarrow.dataset(tmp_path / "t")
    for file in tmp_path.glob("t/*.parquet"):
        if pa.parquet.read_table(file)["a"][0].as_py() != 20:
            file.unlink()
    assert dataset.to_table(filter=c("a") == 21).to_pylist() == [{"a": 21}]
    with pytest.raises(MissingFileError):
        dataset.to_table()


def test_rows_are_streamed(tmp_path: Path) -> None:
    """Readers get batches while files are still being read. If only the first rows are needed, the scan ends after
    them.
    """
    rows = pa.table({"a": pa.array(range(200_000), pa.int32())})
    write_deltalake(tmp_path / "t", rows)
    dataset = deltalog.pyarrow.dataset(tmp_path / "t")
    batches = dataset.to_batches(batch_size=1000)
    assert all(0 < batch.num_rows <= 1000 for batch in itertools.islice(batches, 5))
    del batches
    assert dataset.head(3).num_rows == 3
    assert dataset.head(3, filter=c("a") * 2 > 7).num_rows == 3
    reader = dataset.scanner(["a"], c("a") >= 199_999, use_threads=False).to_reader()
    assert [row for batch in reader for row in batch["a"].to_pylist()] == [199_999]
    ds.write_dataset(dataset, tmp_path / "copy", format="parquet")
    assert ds.dataset(tmp_path / "copy").count_rows() == 200_000
    write_deltalake(tmp_path / "t2", dataset.scanner().to_reader())
    assert DeltaTable(tmp_path / "t2").count() == 200_000


def test_pyarrow_does_not_run_python_while_it_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """pyarrow reads ahead in its own threads. If such a thread ran Python code at the end of the interpreter, the
    process would wait for it forever.
    """

    class WithoutIterator:
        def __init__(self, stream: Any) -> None:
            self.__arrow_c_schema__ = stream.__arrow_c_schema__
            self.__arrow_c_stream__ = stream.__arrow_c_stream__

    write_deltalake(tmp_path / "t", pa.table({"a": [1, 2]}))
    dataset = deltalog.pyarrow.dataset(tmp_path / "t")
    read = conditions.Rows.read
    monkeypatch.setattr(
        conditions.Rows, "read", lambda *given, **named: WithoutIterator(read(*given, **named))
    )
    assert dataset.to_table(filter=c("a") > 1).to_pylist() == [{"a": 2}]


@pytest.mark.parametrize("provider", [False, True], ids=["without a provider", "with a provider"])
def test_a_program_ends_while_pyarrow_reads_ahead(tmp_path: Path, provider: bool) -> None:
    """Once a credential provider has been passed, threads that read a stream detach from the interpreter and attach
    again. After the interpreter has ended, Python lets no thread attach.
    """
    write_deltalake(tmp_path / "t", pa.table({"a": pa.array(["x" * 1000]).take(pa.array([0] * 200_000))}))
    code = """
        import contextlib, sys, deltalog.pyarrow
        if sys.argv[2] == "True":
            with contextlib.suppress(deltalog.DeltaError):
                deltalog.DeltaTable(sys.argv[1] + "-none", credential_provider=lambda: None)
        next(iter(deltalog.pyarrow.dataset(sys.argv[1]).to_batches()))
    """
    command = [sys.executable, "-c", textwrap.dedent(code), str(tmp_path / "t"), str(provider)]
    ended = subprocess.run(command, check=False, timeout=60, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")


READS = {
    "stream": "pa.table(table.to_arrow())",
    "dataset": "deltalog.pyarrow.dataset(table).to_table()",
    "one batch": "next(iter(deltalog.pyarrow.dataset(table).to_batches()))",
}


@pytest.mark.parametrize("rows", READS.values(), ids=READS)
def test_a_table_can_be_read_when_the_interpreter_ends(tmp_path: Path, rows: str) -> None:
    """The function `read` is registered before deltalog is imported, so it runs after deltalog's own exit functions.
    pyarrow's threads read a dataset, and may still read ahead when `read` has returned.
    """
    write_deltalake(tmp_path / "t", pa.table({"a": pa.array(["x" * 1000]).take(pa.array([0] * 200_000))}))
    code = f"""
        import atexit, sys
        def read():
            table = deltalog.DeltaTable(sys.argv[1])
            print({rows}["a"][0])
        atexit.register(read)
        import pyarrow as pa, deltalog, deltalog.pyarrow
        read()
    """
    command = [sys.executable, "-c", textwrap.dedent(code), str(tmp_path / "t")]
    ended = subprocess.run(command, check=False, timeout=60, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, f"{'x' * 1000}\n" * 2, "")


def test_a_dataset_keeps_its_version(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"a": [1]}))
    table = DeltaTable(tmp_path)
    dataset = deltalog.pyarrow.dataset(table)
    write_deltalake(table, pa.table({"a": [2]}), mode="append")
    assert dataset.to_table().to_pylist() == [{"a": 1}]
    assert deltalog.pyarrow.dataset(table).count_rows() == 2
    assert deltalog.pyarrow.dataset(DeltaTable(tmp_path, version=0)).count_rows() == 1


def test_what_pyarrow_cannot_do(tmp_path: Path) -> None:
    """If pyarrow's own code tries to read the dataset, there is an error, not a crash or wrong rows."""
    rows = pa.table({"k": [1, 2], "s": ["a", "b"]})
    write_deltalake(tmp_path, rows)
    dataset = deltalog.pyarrow.dataset(tmp_path)
    other = ds.InMemoryDataset(rows)
    call: Callable[[], Any]
    read: Callable[[], Any]
    for call in (
        lambda: dataset.get_fragments(),
        lambda: dataset.sort_by("k"),
        lambda: dataset.join(other, "k"),
        lambda: dataset.join_asof(other, "k", "k", 1),
        lambda: dataset.replace_schema(rows.schema),
        lambda: dataset.take([1]),
        lambda: dataset.children,
        lambda: ds.dataset([dataset, other]),
    ):
        with pytest.raises(UnsupportedFeatureError, match="a dataset of deltalog has no"):
            call()
    with pytest.raises(TypeError, match="scan_tasks"):
        pickle.dumps(dataset)
    for read in (
        lambda: ds.Scanner.from_dataset(dataset).to_table(),
        lambda: ds.UnionDataset(dataset.schema, [dataset]).to_table(),
        lambda: other.join(dataset, "k"),
    ):
        with pytest.raises(FileNotFoundError, match="only be read by its own methods"):
            read()
    assert isinstance(dataset, ds.Dataset)


def test_polars_pushes_columns_and_filters(location: str, seen: list[bool]) -> None:
    pl: Any = pytest.importorskip("polars")
    frame = pl.scan_pyarrow_dataset(deltalog.pyarrow.dataset(location))
    found = frame.filter((pl.col("i") > 1) & (pl.col("s") != "a")).select("k").collect()
    assert sorted(found["k"]) == [1, 4, 6, 7]
    assert seen == [True]
    assert frame.select(pl.len()).collect().item() == 8


def test_duckdb_reads_a_dataset(location: str, seen: list[bool]) -> None:
    """DuckDB reads the same rows from our dataset as from pyarrow's own dataset. (DuckDB 1 lets pyarrow evaluate
    comparisons, which loses NaN.)
    """
    duckdb: Any = pytest.importorskip("duckdb")
    with duckdb.connect() as connection:
        connection.register("t", deltalog.pyarrow.dataset(location))
        connection.register("memory", ds.InMemoryDataset(ROWS))
        for condition in (
            "i > 1 AND s <> 'a'",
            "i BETWEEN 1 AND 7",
            "i IN (1, 7, 9)",
            "i NOT IN (1, 7, 9)",
            "i IS NULL OR b",
            "NOT b",
            "d > 1.0",
            "d = 'nan'::DOUBLE",
            "d < 'inf'::DOUBLE",
            "e < 1.5",
            "f > 0.1",
            "s LIKE 'b%'",
            "s IN ('a', 'b''\\c')",
            "t > DATE '2024-01-06'",
            "u > TIMESTAMPTZ '2024-01-01 05:30:00+00'",
            "n = TIMESTAMP '2024-01-01 04:00:00.000001'",
            "x = 2.25",
            "w > 10000000000000000000000000000000000003::DECIMAL(38, 0)",
            "st.a > 5",
            "y = '\\x00\\xFF'::BLOB",
        ):
            query = f"SELECT k FROM {{}} WHERE {condition} ORDER BY k"
            wanted = connection.sql(query.format("memory")).fetchall()
            assert connection.sql(query.format("t")).fetchall() == wanted, condition
        if duckdb.__version__ < "2":
            assert seen.count(True) >= 12
        assert connection.sql("SELECT count(*) FROM t").fetchall() == [(8,)]
        joined = connection.sql("SELECT a.k FROM t a JOIN t b ON a.i = b.j ORDER BY 1 LIMIT 2")
        assert joined.fetchall() == [(0,), (1,)]


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotATableError, match="nowhere"):
        deltalog.pyarrow.dataset(tmp_path / "nowhere")
    write_deltalake(tmp_path / "here", pa.table({"a": [1]}))
    with pytest.raises(InvalidArgumentError, match="storage_options cannot be passed with a table"):
        deltalog.pyarrow.dataset(DeltaTable(tmp_path / "here"), storage_options={"aws_region": "x"})
    code = """
        import sys
        sys.modules["pyarrow"] = None
        import deltalog.pyarrow
        try:
            deltalog.pyarrow.dataset("/nowhere")
        except ImportError as error:
            print(type(error).__name__, error)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("ExtraRequiredError deltalog.pyarrow needs pyarrow")
