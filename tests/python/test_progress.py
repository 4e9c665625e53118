"""Operations report their progress as numbers, which bars can show."""

from __future__ import annotations

import io
import sys
import threading
import time
import types
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

import deltalog
from deltalog import DeltaTable, InvalidArgumentError, bars, convert_to_deltalake, write_deltalake
from deltalog.observing import Progress
from tests.interrupting import pressing

FILES = 12


def made(path: Path) -> DeltaTable:
    for number in range(FILES):
        write_deltalake(path, pa.table({"x": range(number * 10, number * 10 + 10)}), mode="append")
    return DeltaTable(path)


def ends(reports: list[Progress], operation: str) -> list[tuple[int, int | None, str]]:
    """Returns the last numbers that each operation of a kind has reported."""
    return [
        (report.done, report.all, report.unit)
        for report in reports
        if report.is_finished and report.operation == operation
    ]


def test_every_operation_reports_its_numbers(tmp_path: Path) -> None:
    reports: list[Progress] = []
    path = tmp_path / "t"
    with deltalog.progress(reports.append):
        table = made(path)
    assert ends(reports, "WRITE") == [(10, None, "rows")] * FILES

    def run(operation: str, work: Any, place: str = table.table_uri) -> tuple[int, int | None, str]:
        reports.clear()
        with deltalog.progress(reports.append):
            work()
        assert {report.table for report in reports if report.operation == operation} == {place}
        (end,) = ends(reports, operation)
        return end

    assert run("SCAN", lambda: pa.table(table.to_arrow())) == (FILES, FILES, "files")
    assert run("SCAN", lambda: pa.table(table.to_arrow(predicate="x < 15"))) == (2, None, "files")
    assert run("UPDATE", lambda: table.update({"x": "x + 0"}, predicate="x = 5")) == (1, 1, "files")
    assert run("DELETE", lambda: table.delete("x = 6 OR x = 17")) == (2, 2, "files")
    source = pa.table({"x": [111, 500]})
    merge = table.merge(source, "t.x = s.x", "s", "t").when_matched_delete().when_not_matched_insert_all()
    assert run("MERGE", merge.execute)[2] == "files"
    assert run("CHECKPOINT", table.create_checkpoint)[0] == len(table.file_uris())
    done, every, unit = run("OPTIMIZE", table.optimize.compact)
    assert (done, unit) == (every, "bytes")
    done, every, unit = run("OPTIMIZE", lambda: table.optimize.z_order(["x"]))
    assert (done, unit) == (every, "bytes")
    assert run("RESTORE", lambda: table.restore(FILES - 1)) == (FILES, FILES, "files")
    done, every, unit = run(
        "VACUUM", lambda: table.vacuum(0, dry_run=False, enforce_retention_duration=False)
    )
    assert (done, unit) == (every, "files")
    copy = tmp_path / "clone"
    assert run("CLONE", lambda: table.clone(copy, shallow=False), copy.as_uri()) == (FILES, FILES, "files")
    assert run("FSCK", lambda: pa.table(table.check()))[0] == FILES
    place = tmp_path / "parquet"
    place.mkdir()
    pa.parquet.write_table(pa.table({"x": [1]}), place / "a.parquet")
    reports.clear()
    with deltalog.progress(reports.append):
        convert_to_deltalake(str(place))
    assert ends(reports, "CONVERT") == [(1, 1, "footers")]


def test_only_what_begins_within_the_block_is_reported(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    reports: list[Progress] = []
    with deltalog.progress(reports.append):
        pass
    pa.table(table.to_arrow())
    assert reports == []
    assert not [thread for thread in threading.enumerate() if thread.name == "deltalog-progress"]


def test_what_the_function_raises_is_raised_at_the_end(tmp_path: Path) -> None:
    table = made(tmp_path / "t")

    def fail(_: Progress) -> None:
        raise LookupError("no bar")

    with pytest.raises(LookupError, match="no bar"), deltalog.progress(fail):
        assert pa.table(table.to_arrow()).num_rows == FILES * 10

    def divide() -> None:
        with deltalog.progress(fail):
            pa.table(table.to_arrow())
            _ = 1 / 0

    # If the block itself raises an exception, this exception is raised.
    with pytest.raises(ZeroDivisionError):
        divide()
    with pytest.raises(InvalidArgumentError, match="show cannot be 3; pass a function"), deltalog.progress(3):  # type: ignore[arg-type]
        pass


def test_an_interrupt_ends_the_block(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    reports: list[Progress] = []

    def read() -> None:
        with deltalog.progress(reports.append):
            pa.table(table.to_arrow())
            with pressing(lambda: True):
                while True:
                    time.sleep(0.01)

    with pytest.raises(KeyboardInterrupt):
        read()
    assert ends(reports, "SCAN") == [(FILES, FILES, "files")]
    assert not [thread for thread in threading.enumerate() if thread.name == "deltalog-progress"]


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def report(done: int, every: int | None = 200, *, end: bool = False, number: int = 1) -> Progress:
    return Progress("OPTIMIZE", "file:///t", done, every, "files", end, number)


def test_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    line = bars.Line(terminal, patience=0)
    line.show(report(50))
    assert terminal.getvalue() == "\r\x1b[KOPTIMIZE ████░░░░░░░░░░░░░░░  25% 50 of 200 files"
    line.show(report(200, end=True))
    assert terminal.getvalue().endswith("\r\x1b[K")
    for kind in (io.StringIO(), Terminal()):
        # No bar is shown if the output is a pipe, or if the operation takes no time.
        quiet = bars.Line(kind, patience=0 if type(kind) is io.StringIO else 60)
        quiet.show(report(1))
        quiet.close()
        assert kind.getvalue() == ""


@pytest.mark.parametrize("width", [5, 20, 39, 80])
@pytest.mark.parametrize("every", [None, 0, 10**15])
def test_a_line_fits(width: int, every: int | None) -> None:
    for done in (0, 3, 2 * 10**15):
        for unit in ("bytes", "rows"):
            text = bars.line_of(Progress("CHECKPOINT\n", "t", done, every, unit, False, 1), width, "#.")
            assert len(text) <= width
            assert "\n" not in text


def test_notebooks_have_bars_of_their_libraries(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    drawn: list[Any] = []

    class Bar:
        def __init__(self, **settings: Any) -> None:
            self.n = 0
            self.settings = settings
            drawn.append(self)

        def update(self, count: int) -> None:
            self.n += count

        def close(self) -> None:
            self.settings["closed"] = True

    table = made(tmp_path / "t")
    monkeypatch.setitem(sys.modules, "ipykernel", types.ModuleType("ipykernel"))
    module = types.ModuleType("tqdm.auto")
    module.tqdm = Bar  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tqdm", types.ModuleType("tqdm"))
    monkeypatch.setitem(sys.modules, "tqdm.auto", module)
    with deltalog.progress():
        pa.table(table.to_arrow())
    (bar,) = drawn
    assert (bar.n, bar.settings["total"], bar.settings["desc"], bar.settings["closed"]) == (
        FILES,
        FILES,
        "SCAN",
        True,
    )


def test_rich_draws_bars(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("rich")
    table = made(tmp_path / "t")
    monkeypatch.setitem(sys.modules, "ipykernel", types.ModuleType("ipykernel"))
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with deltalog.progress():
        pa.table(table.to_arrow())
    assert "SCAN (files)" in capsys.readouterr().out
