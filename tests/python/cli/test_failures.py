"""Every failure prints an error on one line, and has the right exit code."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deltalog import DeltaTable, errors
from deltalog.cli.catalog import SUMMARIES, verb_of
from deltalog.cli.failures import CODES, EXPLAINED, code_of
from tests.python.cli.conftest import Command
from tests.python.place import commit_file


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (("hitsory", "trips"), 2, "did you mean history?"),
        (("help", "nothing"), 2, "there is no command 'nothing'"),
        (("head",), 2, "TABLE; see deltalog head --help"),
        (("head", "trips", "--no-such-option"), 2, "--no-such-option"),
        (("head", "trips", "-n", "x"), 2, "expected a whole number"),
        (("head", "trips", "-n", "-1"), 2, "-n"),
        (("head", "nowhere"), 3, "there is no Delta table here"),
        (("head", "s3:/bucket"), 2, "names no bucket"),
        (("head", "trips", "--at", "9"), 3, "the readable versions are 0 to 1"),
        (("head", "trips", "--at", "yesterday"), 2, "timestamp cannot be 'yesterday'"),
        (("head", "trips", "--at", "1" * 30), 2, "version"),
        (("head", "trips", "--columns", "nope"), 2, "there is no column 'nope'"),
        (("head", "trips", "--columns", "a,`b"), 2, "is not a list of columns"),
        (("show", "trips", "--where", "km >"), 2, "cannot be parsed"),
        (("files", "trips", "--columns", "nope"), 2, "nope"),
        (("vacuum", "trips", "--retain", "nan"), 2, "expected a number of hours"),
        (("tail", "trips", "--interval", "0"), 2, "expected a number of seconds"),
        (("create", "x", "--columns", "a int", "--schema", "-"), 2, "not allowed with"),
        (("create", "x", "--schema", "no.json"), 3, "no.json"),
        (("create", "x", "--schema", "trips"), 7, "trips"),
        (("create", "x", "--columns", "a nothing"), 2, "nothing"),
        (("create", "x", "--columns", "a int, A int"), 10, "appears twice"),
        (("convert", "nowhere"), 2, "no Parquet files"),
        (("clone", "trips", "c", "--replace", "--if-not-exists"), 2, "cannot be used together"),
        (("zorder", "trips", ","), 2, "is not a list of columns"),
        (("alter", "trips", "--set", "delta.appendOnly=perhaps"), 2, "perhaps"),
        (("drop-feature", "trips", "nothing"), 2, "nothing"),
    ],
)
def test_wrong_arguments(run: Command, arguments: tuple[str, ...], code: int, text: str) -> None:
    ran = run(*arguments)
    assert (ran.code, ran.out) == (code, ""), ran
    assert ran.err.startswith("error: ")
    assert ran.err.count("\n") == 1
    assert text in ran.err


@pytest.mark.parametrize("name", SUMMARIES)
def test_every_command_without_a_table(run: Command, name: str) -> None:
    more = {"log": ["0"], "diff": ["0"], "changes": ["0"], "zorder": ["a"], "restore": ["0"], "clone": ["c"]}
    more |= {"alter": ["--name", "a"], "drop-feature": ["columnMapping"], "create": ["--columns", "a"]}
    more |= {"append": ["rows.csv"], "export": ["rows.csv"], "sql": ["t=nowhere"]}
    Path("rows.csv").write_text("a\n")
    ran = run(name, "nowhere", *more.get(name, []))
    assert ran.code == (2 if name in ("convert", "create", "completion") else 3)
    assert (ran.out, ran.err.count("\n")) == ("", 1)


def test_options_are_not_repeated_as_they_may_be_secrets(run: Command) -> None:
    ran = run("head", "trips", "-o", "wJalrXUtnFEMI")
    assert ran.code == 2
    assert "wJalr" not in ran.err
    assert "KEY=VALUE" in ran.err


def test_a_damaged_log(run: Command, place: Path) -> None:
    commit_file(place / "trips", 1).write_text('{"add":\n')
    ran = run("info", "trips")
    assert (ran.code, ran.out, ran.err.count("\n")) == (6, "", 1)


def test_a_missing_file(run: Command, place: Path) -> None:
    for file in (place / "trips").glob("city=*/*.parquet"):
        file.unlink()
    ran = run("show", "trips")
    assert (ran.code, ran.err.count("\n")) == (6, 1)


def test_a_feature_that_is_not_supported(run: Command, place: Path) -> None:
    features = '"readerFeatures":["holograms"],"writerFeatures":["holograms"]'
    protocol = f'{{"protocol":{{"minReaderVersion":3,"minWriterVersion":7,{features}}}}}\n'
    commit_file(place / "trips", 2).write_text(protocol)
    ran = run("info", "trips")
    assert ran.code == 5
    assert "holograms" in ran.err


def test_a_conflict(run: Command, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def conflict(*_: Any, **__: Any) -> int:
        raise errors.MetadataChangedException("another writer\nhas \x1b[31mchanged the metadata")

    monkeypatch.setattr(DeltaTable, "restore", conflict)
    ran = run("restore", "trips", "0")
    assert (ran.code, ran.err) == (4, "error: another writer has \\x1b[31mchanged the metadata\n")


def test_a_defect_is_reported_without_a_traceback(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> int:
        raise TypeError("unexpected")

    monkeypatch.setattr(DeltaTable, "count", broken)
    ran = run("count", "trips")
    assert (ran.code, ran.err.count("\n")) == (70, 1)
    assert "a defect of deltalog, TypeError: unexpected" in ran.err
    monkeypatch.setenv("DELTALOG_TRACEBACK", "1")
    assert "Traceback" in run("count", "trips").err


@pytest.mark.parametrize(
    ("interrupt", "text"),
    [
        (KeyboardInterrupt(), "interrupted: nothing was committed"),
        (errors.CommittedInterrupt("interrupted after version 3"), "interrupted after version 3"),
    ],
)
def test_interrupts(
    run: Command, monkeypatch: pytest.MonkeyPatch, interrupt: BaseException, text: str
) -> None:
    def interrupted(*_: Any, **__: Any) -> int:
        raise interrupt

    monkeypatch.setattr(DeltaTable, "restore", interrupted)
    assert run("restore", "trips", "0") == (130, "", f"error: {text}\n")


def classes() -> Iterator[type[errors.DeltaError]]:
    yield from (getattr(errors, name) for name in errors.__all__ if name.endswith(("Error", "Exception")))


def test_every_class_of_errors_has_a_code() -> None:
    codes = {kind.__name__: code_of(kind("")) for kind in classes()}
    assert {name for name, code in codes.items() if code == 70} == {
        "DeltaError",
        "DeltaProtocolError",
        "InternalError",
    }
    assert codes["ConcurrentAppendException"] == 4
    assert set(CODES.values()) | {0, 1} == set(EXPLAINED)


def test_every_command_is_where_the_catalog_says() -> None:
    for name in SUMMARIES:
        assert verb_of(name).examples
