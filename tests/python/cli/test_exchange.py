"""Rows are imported and exported exactly. If that is not possible, an error names the line, and nothing is
committed.
"""

from __future__ import annotations

import datetime as dt
import gzip
import io
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from deltalog import DeltaTable, Field, Identity, Schema, write_deltalake
from tests.python.cli.conftest import Command

UTC = dt.timezone.utc
FORMATS = ["csv", "jsonl", "parquet", "arrow"]

SIMPLE = pa.table(
    {
        "byte": pa.array([127, -128, None], pa.int8()),
        "short": pa.array([32767, -32768, None], pa.int16()),
        "integer": pa.array([2**31 - 1, -(2**31), None], pa.int32()),
        "long": pa.array([2**63 - 1, -(2**63), None], pa.int64()),
        "float": pa.array([0.1, float("inf"), None], pa.float32()),
        "double": pa.array([-0.0, 1.7976931348623157e308, None], pa.float64()),
        "decimal": pa.array([Decimal("12345678901234567890123456.7800000001"), Decimal("-0.1"), None]).cast(
            pa.decimal128(38, 10)
        ),
        "text": pa.array(['a,"b"\r\nc\u2028\x00', "", None]),
        "binary": pa.array([b"\x00\xff", b"", None]),
        "boolean": pa.array([True, False, None]),
        "date": pa.array([dt.date(1, 1, 1), dt.date(9999, 12, 31), None]),
        "timestamp": pa.array(
            [dt.datetime(1969, 12, 31, 23, 59, 59, 999999, UTC), dt.datetime(2026, 11, 24, tzinfo=UTC), None],
            pa.timestamp("us", "UTC"),
        ),
        "timestamp_ntz": pa.array(
            [dt.datetime(1, 1, 1), dt.datetime(2026, 11, 24, 1, 2, 3), None], pa.timestamp("us")
        ),
    }
)
NESTED = pa.table(
    {
        "list": pa.array([[1, None], [], None], pa.list_(pa.int64())),
        "map": pa.array([[("a", Decimal("1.50"))], [], None], pa.map_(pa.string(), pa.decimal128(10, 2))),
        "struct": pa.array([{"x": [{"y": 0.5}], "z": None}, {"x": None, "z": b"a"}, None]).cast(
            pa.struct([("x", pa.list_(pa.struct([("y", pa.float64())]))), ("z", pa.binary())])
        ),
    }
)


def content(table: str, version: int | None = None) -> list[str]:
    return sorted(map(repr, pa.table(DeltaTable(table, version=version).to_arrow()).to_pylist()))


@pytest.mark.parametrize("suffix", [*FORMATS, "csv.gz", "jsonl.gz", "parquet.gz", "arrow.gz"])
@pytest.mark.parametrize("name", ["simple", "nested"])
def test_what_is_exported_can_be_appended(run: Command, place: Path, name: str, suffix: str) -> None:
    data = {"simple": SIMPLE, "nested": NESTED}[name]
    write_deltalake("source", data)
    DeltaTable.create("target", data.schema)
    exported = run("export", "source", f"rows.{suffix}")
    if name == "nested" and suffix.startswith("csv"):
        assert (exported.code, exported.err.count("\n")) == (5, 1)
        assert not list(place.glob("*rows*"))
        return
    assert (exported.code, exported.err) == (0, "")
    assert run("append", "target", f"rows.{suffix}", "--json").objects == [{"version": 1, "rows": 3}]
    assert content("target") == content("source")


def test_other_software_reads_what_is_exported(run: Command) -> None:
    for form in FORMATS:
        assert run("export", "trips", f"trips.{form}", "--columns", "km").code == 0
    tables = [
        pyarrow.csv.read_csv("trips.csv"),
        pyarrow.parquet.read_table("trips.parquet"),
        pa.ipc.open_stream(Path("trips.arrow").read_bytes()).read_all(),
    ]
    for table in tables:
        assert sorted(table["km"].to_pylist()) == [1.5, 4.5, 7.5, 12.0]
    lines = Path("trips.jsonl").read_text().splitlines()
    assert sorted(lines) == sorted(f'{{"km":{km}}}' for km in (1.5, 4.5, 7.5, 12.0))


def test_files_of_other_software(run: Command) -> None:
    rows = pa.table({"city": ["Bern"], "km": [1.0]})
    pyarrow.csv.write_csv(rows, "rows.csv")
    pyarrow.parquet.write_table(rows, "rows.parquet")
    with pa.OSFile("rows.feather", "wb") as file, pa.ipc.new_file(file, rows.schema) as writer:
        writer.write_table(rows)
    for number, name in enumerate(("rows.csv", "rows.parquet", "rows.feather"), 1):
        assert run("append", "trips", name).code == 0
        assert run("count", "trips", "--where", "city = 'Bern'").out == f"{number}\n"


def given(monkeypatch: pytest.MonkeyPatch, text: str | bytes) -> None:
    """Makes the command read a text from standard input."""
    data = text.encode() if isinstance(text, str) else text
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


@pytest.mark.parametrize(
    ("form", "text", "line", "message"),
    [
        ("csv", "id,price\n1,1.10\n1.5,2\n", 3, "column 'id': '1.5' is not a whole number"),
        ("csv", "id,price\n9223372036854775808,1\n", 2, "is not a 64-bit number"),
        ("csv", "id,price\n1,1.239\n", 2, "more digits after the point than decimal(10,2)"),
        ("csv", 'id,price\n"",1\n', 2, "column 'id': '' is not a number"),
        ("csv", "id,price\n1\n", 2, "there are 1 values for 2 columns"),
        ("csv", "id,price\n\n", 2, "there are 1 values for 2 columns"),
        ("csv", "id,price\n1,2,3\n", 2, "there are 3 values for 2 columns"),
        ("csv", 'id,price\n"1\n2",3\n', 2, "is not a number"),
        ("csv", 'id,price\n1,2\n3,"4\n', 3, "a quote is not closed"),
        ("csv", "id,cost\n", 1, "there is no column 'cost' (line 1); the columns are: id, price"),
        ("csv", "id,id\n", 1, "the column 'id' occurs twice"),
        ("csv", b"id,price\n\xff,1\n", 2, "not text in UTF-8"),
        ("csv", "", None, "there is no first line"),
        ("jsonl", '{"id":1}\n\n{"id":1.5}\n', 3, "column 'id': '1.5' is not a whole number"),
        ("jsonl", '{"id":1,"price":"1.239"}\n', 1, "more digits"),
        ("jsonl", '{"id":true}\n', 1, "'true' is not a 64-bit number"),
        ("jsonl", '{"id":1,"cost":2}\n', 1, "there is no column 'cost'"),
        ("jsonl", '{"id":1,"id":2}\n', 1, "column 'id': it occurs twice"),
        ("jsonl", '{"id":1}{"id":2}\n', 1, "something after the object"),
        ("jsonl", '{"id":1}\n[1]\n', 2, "not a JSON object"),
        ("jsonl", '{"id":', 1, "not a JSON object"),
        ("jsonl", b'{"id":1}\n\xff\n', 2, "not text in UTF-8"),
        ("parquet", "PAR1", None, "cannot be read as Parquet"),
        ("arrow", "something else", None, "Arrow IPC"),
        ("arrow", "", None, "ends too early"),
    ],
)
def test_what_does_not_fit(
    run: Command,
    monkeypatch: pytest.MonkeyPatch,
    form: str,
    text: str | bytes,
    line: int | None,
    message: str,
) -> None:
    given(monkeypatch, text)
    version, rows = DeltaTable("orders").version(), content("orders")
    ran = run("append", "orders", "--format", form)
    assert (ran.code, ran.out, ran.err.count("\n")) == (10, "", 1)
    assert ran.err.startswith("error: standard input: ")
    assert message in ran.err
    assert line is None or f"(line {line})" in ran.err
    assert (DeltaTable("orders").version(), content("orders")) == (version, rows)


def test_a_late_error_commits_nothing(run: Command, monkeypatch: pytest.MonkeyPatch, place: Path) -> None:
    lines = [f"{number},1.00" for number in range(60_000)]
    given(monkeypatch, "id,price\n" + "\n".join([*lines, "x,1"]))
    before = {file for file in (place / "orders").rglob("*") if file.is_file()}
    ran = run("append", "orders", "--format", "csv")
    assert ran.code == 10
    assert "column 'id': 'x' is not a number (line 60002)" in ran.err
    assert {file for file in (place / "orders").rglob("*") if file.is_file()} == before


def test_truncated_files(run: Command) -> None:
    write_deltalake("many", pa.table({"city": ["a"] * 50_000, "km": [float(km) for km in range(50_000)]}))
    for form in ("arrow", "parquet", "jsonl.gz", "csv.gz"):
        assert run("export", "many", f"many.{form}").code == 0
        data = Path(f"many.{form}").read_bytes()
        for length in (len(data) - 1, len(data) // 2):
            Path(f"cut.{form}").write_bytes(data[:length])
            ran = run("append", "trips", f"cut.{form}")
            assert ran.code in (2, 10), (form, length)
            assert ran.err.startswith(f"error: cut.{form}")
            assert ran.err.count("\n") == 1
    assert DeltaTable("trips").version() == 1


def test_an_arrow_stream_that_ends_after_a_batch(run: Command) -> None:
    rows = pa.table({"city": ["a", "b"], "km": [1.0, 2.0]})
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows, max_chunksize=1)
    data = sink.getvalue()
    assert data.endswith(b"\xff\xff\xff\xff\0\0\0\0")
    Path("cut.arrow").write_bytes(data[:-8])
    assert run("append", "trips", "cut.arrow").code == 10
    Path("whole.arrow").write_bytes(data)
    assert run("append", "trips", "whole.arrow", "--json").objects == [{"version": 2, "rows": 2}]


def test_csv_of_other_forms(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    given(monkeypatch, '\ufeffkm;city\r\n1.5;NULL\r\nNULL;"NULL"\r\n2;\r\n')
    ran = run("append", "trips", "--format", "csv", "--delimiter", ";", "--null", "NULL", "--json")
    assert ran.objects == [{"version": 2, "rows": 3}]
    rows = pa.table(DeltaTable("trips").to_arrow(predicate="city IS NULL OR city = 'NULL'")).to_pylist()
    # In a partition column, an empty string is NULL.
    assert sorted(rows, key=repr) == [
        {"city": "NULL", "km": None},
        {"city": None, "km": 1.5},
        {"city": None, "km": 2.0},
    ]
    given(monkeypatch, "7,Oslo\n")
    arguments = ("append", "trips", "--format", "csv", "--no-header")
    assert run(*arguments, "--columns", "km,city").code == 0
    given(monkeypatch, "Oslo,8\n")
    assert run(*arguments).code == 0
    assert run("count", "trips", "--where", "km IN (7, 8) AND city = 'Oslo'").out == "2\n"


def test_columns_that_the_table_computes(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    columns = [
        Field("id", "long", identity=Identity()),
        Field("price", "double", default="7"),
        Field("gross", "double", generated_as="price * 2D"),
        Field("note", "string"),
    ]
    DeltaTable.create("computed", Schema(columns))
    given(monkeypatch, '{"note":"a"}\n{"price":null}\n')
    late = run("append", "computed", "--format", "jsonl")
    assert late.code == 10
    assert "but the first line does not" in late.err
    given(monkeypatch, '{"note":"a"}\n{}\n')
    assert run("append", "computed", "--format", "jsonl").code == 0
    given(monkeypatch, "note,price\nb,1.5\n")
    assert run("append", "computed", "--format", "csv").code == 0
    rows = pa.table(DeltaTable("computed").to_arrow()).to_pylist()
    values = [(row["price"], row["gross"], row["note"]) for row in sorted(rows, key=lambda row: row["id"])]
    assert values == [(7.0, 14.0, "a"), (7.0, 14.0, None), (1.5, 3.0, "b")]


def test_no_rows(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    for form, text in (("csv", "id,price\n"), ("jsonl", "\n")):
        given(monkeypatch, text)
        assert run("append", "orders", "--format", form, "--json").objects[0]["rows"] == 0


def test_files_that_exist_are_kept(run: Command, place: Path) -> None:
    Path("rows.csv").write_text("mine")
    ran = run("export", "trips", "rows.csv")
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert Path("rows.csv").read_text() == "mine"
    assert run("export", "trips", "rows.csv", "--replace", "-n", "1").code == 0
    assert len(Path("rows.csv").read_text().splitlines()) == 2


def test_a_failed_export_leaves_nothing(run: Command, place: Path) -> None:
    for file in (place / "trips").glob("city=Oslo/*.parquet"):
        file.write_bytes(b"no Parquet")
    Path("rows.csv").write_text("mine")
    before = set(place.iterdir())
    assert run("export", "trips", "rows.csv", "--replace").code == 6
    assert set(place.iterdir()) == before
    assert Path("rows.csv").read_text() == "mine"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("append", "trips", "rows.txt"), "pass --format"),
        (("append", "trips", "nowhere.csv"), "nowhere.csv"),
        (("append", "trips"), "pass --format"),
        (("append", "trips", "a.jsonl", "--no-header"), "can only be used with CSV"),
        (("append", "trips", "a.csv", "--columns", "km"), "can only be used with --no-header"),
        (("append", "trips", "a.csv", "--delimiter", "::"), "single ASCII character"),
        (("append", "trips", "a.csv", "--delimiter", '"'), "cannot be a quote"),
        (("export", "trips", "rows.xls"), "pass --format"),
        (("export", "trips", "no/such/place.csv"), "no/such"),
        (("export", "trips", "a.csv", "--null", ","), "the text for NULL"),
    ],
)
def test_wrong_arguments(run: Command, arguments: tuple[str, ...], text: str) -> None:
    Path("a.jsonl").write_text("{}\n")
    if arguments[0] == "append":
        Path("a.csv").write_text("km\n1\n")
    ran = run(*arguments)
    assert ran.code in (2, 3)
    assert (ran.out, ran.err.count("\n")) == ("", 1)
    assert text in ran.err
    assert DeltaTable("trips").version() == 1


def test_a_message(run: Command) -> None:
    Path("a.csv").write_text("km\n1\n")
    assert run("append", "trips", "a.csv", "--message", "from the shell").code == 0
    assert DeltaTable("trips").history(1)[0]["userMetadata"] == "from the shell"


def test_gzip_is_gzip(run: Command) -> None:
    assert run("export", "trips", "a.csv.gz", "--columns", "km").code == 0
    assert gzip.decompress(Path("a.csv.gz").read_bytes()).splitlines()[0] == b"km"
    Path("b.csv.gz").write_bytes(b"not compressed")
    ran: Any = run("append", "trips", "b.csv.gz")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
