"""Tests which library `deltalog.sql` uses. `test_duckdb.py` and `datafusion_cases.py` test it with each library."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

import deltalog
import deltalog.datafusion
from deltalog.extras import ExtraRequiredError, required


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests two cases: neither DuckDB nor DataFusion is installed, and DataFusion is installed without
    `deltalog-datafusion`.
    """
    for module in ("duckdb", "datafusion", "deltalog_datafusion"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ExtraRequiredError, match=r"pip install 'deltalog\[sql\]'"):
        deltalog.sql("SELECT 1")
    with pytest.raises(ExtraRequiredError, match="pip install deltalog-datafusion"):
        deltalog.datafusion.sql("SELECT 1")
    spec = importlib.util.find_spec("pytest")
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: spec if name == "datafusion" else found(name)
    )
    with pytest.raises(ExtraRequiredError, match="deltalog-datafusion"):
        deltalog.sql("SELECT 1")


def test_a_folder_of_the_same_name_is_no_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("duckdb", "datafusion", "deltalog_datafusion"):
        (tmp_path / module).mkdir()
        monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert importlib.util.find_spec("duckdb") is not None
    with pytest.raises(ExtraRequiredError, match=r"pip install 'deltalog\[sql\]'"):
        deltalog.sql("SELECT 1")


@pytest.mark.parametrize(
    ("library", "reader"),
    [("polars", "scan"), ("duckdb", "source"), ("pyarrow", "dataset"), ("dask", "read")],
)
def test_an_argument_that_is_no_table_is_named(library: str, reader: str) -> None:
    pytest.importorskip(library)
    read = getattr(importlib.import_module(f"deltalog.{library}"), reader)
    with pytest.raises(deltalog.InvalidArgumentError, match=r"^table cannot be None; pass a path or a URL"):
        read(None)


def test_a_name_without_a_table_is_named() -> None:
    pytest.importorskip("duckdb")
    trips: Any = None
    with pytest.raises(deltalog.InvalidArgumentError, match=r"^trips cannot be None"):
        deltalog.sql("SELECT 1 FROM trips", trips=trips)


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        (None, "some_library, which is not installed"),
        ("", r"some_library\.part, which the installed some_library does not have"),
        (
            "import some_dependency",
            r"some_library, which cannot be imported \(No module named 'some_dependency'\)",
        ),
        (
            "raise ModuleNotFoundError('no dependency\\ninstall it')",
            r"some_library, which cannot be imported \(no dependency\)",
        ),
    ],
)
def test_why_a_library_cannot_be_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str | None, problem: str
) -> None:
    """Ray and Dask, for example, can be installed without the packages that their data frames need."""
    if code is not None:
        (tmp_path / "some_library").mkdir()
        (tmp_path / "some_library/__init__.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ExtraRequiredError, match=f"^what needs {problem}: pip install it$") as raised:
        required("some_library.part", "what", "pip install it")
    assert raised.value.hint == "pip install it"
    sys.modules.pop("some_library", None)
