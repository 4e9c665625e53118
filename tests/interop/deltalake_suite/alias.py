"""A pytest plugin that makes `import deltalake` import deltalog, and that writes the outcomes of all tests to a file.

    python -m pytest -p alias --outcomes outcomes.json

A name that deltalog does not have is an `Absent` object. A test that uses such an object fails with an error that
contains the name. `QueryBuilder` is a replacement that runs queries with DuckDB, because most tests use it only to see
the rows of a table.
"""

from __future__ import annotations

import importlib.metadata
import json
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest

import deltalog
import deltalog.exceptions
import deltalog.storage
from deltalog import table as tables

# The query builder of `deltalake` returns strings as views.
VIEWS = {pa.string(): pa.string_view(), pa.binary(): pa.binary_view()}


class Absent:
    """A name that deltalog does not have."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, *_: object, **__: object) -> Any:
        raise NotImplementedError(f"deltalog has no {self._name}")

    def __getattr__(self, name: str) -> Any:
        raise NotImplementedError(f"deltalog has no {self._name}")


class Raw:
    """The parts of deltalake's internal table object that the tests use."""

    def __init__(self, table: deltalog.DeltaTable) -> None:
        self._table = table

    def table_uri(self) -> str:
        return self._table.table_uri


class QueryBuilder:
    """The parts of `deltalake.QueryBuilder` that the tests need to see rows."""

    def __init__(self, config: dict[str, str] | None = None) -> None:
        if config:
            raise NotImplementedError("deltalog has no settings of DataFusion")
        self._tables: dict[str, Any] = {}

    def register(self, name: str, table: Any) -> QueryBuilder:
        self._tables[name] = table
        return self

    def execute(self, query: str) -> Any:
        from arro3.core import RecordBatchReader, Table

        rows = deltalog.sql(query, **self._tables).to_arrow_table()
        views = pa.schema([field.with_type(VIEWS.get(field.type, field.type)) for field in rows.schema])
        return RecordBatchReader.from_stream(Table.from_arrow(rows.cast(views)))


def module(name: str, *sources: Any, **names: Any) -> None:
    """Creates the module `name` with the public names of other modules and with additional names."""
    made = ModuleType(name)
    for source in sources:
        for each in source.__all__:
            setattr(made, each, getattr(source, each))
    vars(made).update(names, __path__=[], __spec__=ModuleSpec(name, None))
    sys.modules[name] = made
    package, _, last = name.rpartition(".")
    if package in sys.modules:
        setattr(sys.modules[package], last, made)


def absent(*names: str) -> dict[str, Absent]:
    return {name: Absent(name) for name in names}


def install() -> None:
    """Creates the modules of `deltalake`."""
    switches = {
        "_NANOSECOND_TIMESTAMPS": False,
        "_disable_nanosecond_timestamps": lambda: None,
        "_nanosecond_timestamps_enabled": lambda: False,
        **absent("enable_nanosecond_timestamps"),
    }
    no = absent("PostCommitHookProperties", "VariantType", "DataType", "init_tracing")
    version = {"rust_core_version": Absent("rust_core_version")}
    module("deltalake", deltalog, QueryBuilder=QueryBuilder, **switches, **no, **version)
    module("deltalake._internal", deltalog, deltalog.exceptions, **switches)
    module("deltalake.table", deltalog, tables)
    module("deltalake.schema", deltalog, VariantType=Absent("VariantType"))
    module("deltalake.exceptions", deltalog.exceptions)
    module("deltalake.query", QueryBuilder=QueryBuilder)
    module("deltalake.transaction", deltalog, **absent("AddAction", "RemoveAction"))
    module("deltalake.fs", **absent("DeltaStorageHandler"))
    module("deltalake.writer", deltalog)
    module("deltalake.writer._conversion", **absent("_convert_arro3_schema_to_delta"))
    module("deltalake.writer._utils", **absent("try_get_table_and_table_uri"))
    module("deltalake._util", **absent("deprecate_positional_commit_args", "encode_partition_value"))
    # Tests ask the internal table object for the location.
    deltalog.DeltaTable._table = property(Raw)  # type: ignore[attr-defined]
    for name in ("azure", "azure.core", "azure.storage"):
        if name not in sys.modules:
            module(name)
    module("azure.storage.blob")


install()


class Outcomes:
    """Collects the outcome of each test: `passed`, `skipped`, or the first line of what went wrong."""

    def __init__(self) -> None:
        self.found: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            self.found[report.nodeid] = str(getattr(crash, "message", report.longrepr))[:500]
        elif report.skipped or report.when == "call":
            self.found.setdefault(report.nodeid, report.outcome)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.found[report.nodeid] = str(report.longrepr)[-500:]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--outcomes", type=Path, required=True)


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Outcomes(), "outcomes")


def pytest_unconfigure(config: pytest.Config) -> None:
    outcomes: Any = config.pluginmanager.get_plugin("outcomes")
    config.getoption("--outcomes").write_text(json.dumps(outcomes.found, indent=1))


# The suite looks up versions in package metadata, which the alias does not change.
assert importlib.metadata.version("deltalake")
