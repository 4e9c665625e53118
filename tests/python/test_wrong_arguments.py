"""A wrong argument of any public call raises an `InvalidArgumentError` that names the parameter and has a hint.

The calls are found by walking the exports of the package, and their parameters by introspection, so a new call is
tested without being listed here. `RETURNED` lists the classes that users do not instantiate, because their objects are
only returned by calls. `OBJECTS` says how to create the objects whose methods are tested.
"""

from __future__ import annotations

import inspect
import os
import shutil
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import deltalog
from deltalog import (
    CommitProperties,
    DeltaError,
    DeltaTable,
    Field,
    InvalidArgumentError,
    Schema,
    Transaction,
    UnsupportedFeatureError,
    begin_write,
    write_deltalake,
)

ROWS = pa.table({"id": [1, 2], "name": ["a", "b"]})


class Wrong:
    """A class whose objects no parameter accepts."""

    def __repr__(self) -> str:
        return "<wrong>"


class WrongPath(os.PathLike[str]):
    """An object that looks like a path but is not one."""

    def __fspath__(self) -> Any:
        return 3

    def __repr__(self) -> str:
        return "<wrong path>"


CIRCLE: list[Any] = []
CIRCLE.append(CIRCLE)

# The last value is half of a surrogate pair, which cannot be encoded in UTF-8.
NEVER_RIGHT: list[Any] = [Wrong(), WrongPath(), 2.5j, "\ud800"]
# These values have the right type for some parameters: such a call may succeed, or fail with any `DeltaError`.
PERHAPS_RIGHT: list[Any] = [
    None,
    3,
    -1,
    2**70,
    2.5,
    float("nan"),
    True,
    "x",
    "",
    "a\0b",
    b"x",
    [],
    ["a"],
    ["a", 1],
    [("id", "=")],
    ("a", "string"),
    {},
    {"a": 1},
    {1: "a"},
    {"id": CIRCLE},
    pd.NaT,
]

# Valid values for the other arguments of a call.
NEEDED: dict[str, Any] = {
    "after": "id",
    "app_id": "app",
    "column": "id",
    "columns": ["id"],
    "condition": "true",
    "constraints": {"positive": "id > 0"},
    "count": 2,
    "data": ROWS,
    "data_type": "long",
    "default": "1",
    "description": "words",
    "element_type": "long",
    "enabled": True,
    "ending_version": 0,
    "feature": "appendOnly",
    "fields": [Field("more", "long")],
    "fragments": [],
    "json": "{}",
    "key_type": "long",
    "log_store": None,
    "metadata": {"comment": "words"},
    "name": "name",
    "names": ["x"],
    "number": 0,
    "of": 2,
    "predicate": "target.id = source.id",
    "properties": {"x": "y"},
    "query": "SELECT 1",
    "schema": pa.schema({"id": pa.int64()}),
    "set_bloom_filter_enabled": True,
    "source": ROWS,
    "start": 0,
    "starting_version": 0,
    "target": 0,
    "text": '{"type":"struct","fields":[]}',
    "transaction_id": "none",
    "type": "long",
    "updates": {"id": "1"},
    "value_type": "long",
    "version": 0,
}
PLACES = ("table_uri", "table_or_uri", "uri", "target_uri")

OBJECTS: dict[str, Callable[[DeltaTable], Any]] = {
    "DeltaTable": lambda table: table,
    "DistributedWrite": lambda table: begin_write(table, mode="append"),
    "ScanTask": lambda table: table.scan_tasks(1)[0],
    "TableAlterer": lambda table: table.alter,
    "TableMerger": lambda table: table.merge(ROWS, "target.id = source.id"),
    "TableOptimizer": lambda table: table.optimize,
    "TableStream": lambda table: table.stream(),
    "WriteTask": lambda table: writing(table).task,
}
RETURNED = {
    "AlreadyApplied",
    "CloneResult",
    "Commit",
    "ConversionPlan",
    "Difference",
    "DistributedWrite",
    "Metadata",
    "Progress",
    "Protocol",
    "ScanSize",
    "ScanTask",
    "StreamBacklog",
    "StreamBatch",
    "TableAlterer",
    "TableMerger",
    "TableOptimizer",
    "TableStream",
    "VacuumPlan",
    "VacuumResult",
    "Verification",
    "storage.CacheStatistics",
    "storage.LogEntry",
    "storage.LogStore",
}


def writing(table: DeltaTable) -> deltalog.DistributedWrite:
    write = begin_write(table, mode="append")
    assert isinstance(write, deltalog.DistributedWrite)
    return write


def calls(module: ModuleType = deltalog, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yields the name of each call: a function of a module, or a method of a class in a module."""
    for name in module.__all__:
        kind, path = getattr(module, name), prefix + name
        if isinstance(kind, ModuleType):
            yield from calls(kind, f"{path}.")
        elif isinstance(kind, FunctionType):
            yield path, ""
        elif isinstance(kind, type) and not issubclass(kind, (BaseException, Enum)):
            if path not in RETURNED:
                yield path, "__init__"
            if not path.startswith("storage."):
                yield from ((path, method) for method in methods(kind))


def methods(kind: type) -> Iterator[str]:
    for name in dir(kind):
        member = inspect.getattr_static(kind, name)
        is_public = not name.startswith("_") or (name == "__call__" and "__call__" in vars(kind))
        if is_public and callable(getattr(kind, name)) and not isinstance(member, (property, type)):
            yield name


def opened(pristine: Path, place: Path) -> DeltaTable:
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(pristine, place)
    return DeltaTable(place)


def call_of(path: str, method: str, table: DeltaTable) -> Any:
    """Returns the function to call. For a method, an object is made from `table` first."""
    called: Any = deltalog
    for name in path.split("."):
        called = getattr(called, name)
    if method in ("", "__init__"):
        return called
    is_of_class = not isinstance(inspect.getattr_static(called, method), (classmethod, staticmethod))
    if is_of_class and len(inspect.signature(getattr(called, method)).parameters) > 1:
        called = OBJECTS[path](table)
    return getattr(called, method)


def parameters_of(call: Callable[..., Any]) -> list[inspect.Parameter]:
    found = inspect.signature(call).parameters.values()
    return [one for one in found if one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL)]


def positional_of(call: Callable[..., Any]) -> list[str]:
    """Returns the parameters that can only be passed by position, because keyword arguments of the call may have any
    name.
    """
    return [one.name for one in parameters_of(call) if one.kind is one.POSITIONAL_ONLY and one.name != "self"]


def needed(path: str, call: Callable[..., Any], place: Path) -> dict[str, Any]:
    """Returns arguments for the parameters without defaults."""
    arguments: dict[str, Any] = {}
    for parameter in parameters_of(call):
        name = parameter.name
        if name in PLACES:
            arguments[name] = str(place if path == "DeltaTable" else place.parent / "new")
        elif parameter.default is parameter.empty and name != "self":
            arguments[name] = NEEDED[name]
    return arguments


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("wrong") / "table"
    write_deltalake(path, ROWS)
    return path


@pytest.mark.parametrize(("path", "method"), list(calls()), ids=lambda part: part)
def test_wrong_arguments(
    pristine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, method: str
) -> None:
    # For some parameters, a string is a path.
    monkeypatch.chdir(tmp_path)
    place = tmp_path / "table"
    table = opened(pristine, place)
    for parameter in parameters_of(call_of(path, method, table)):
        for value in NEVER_RIGHT + PERHAPS_RIGHT if parameter.name != "self" else []:
            call = call_of(path, method, table)
            arguments = {**needed(path, call, place), parameter.name: value}
            found: DeltaError | None = None
            try:
                positional = [arguments.pop(name) for name in positional_of(call)]
                call(*positional, **arguments)
                table = opened(pristine, place)
            except DeltaError as error:
                found = error
            what = f"{path}.{method}({parameter.name}={value!r})"
            if value in NEVER_RIGHT:
                assert isinstance(found, (InvalidArgumentError, UnsupportedFeatureError)), (what, found)
                assert parameter.name in str(found), (what, str(found))
            if found is not None:
                assert found.hint, (what, str(found))
                assert str(found).endswith(found.hint), (what, str(found))
            shutil.rmtree(tmp_path / "new", ignore_errors=True)


def numpys(kind: str, number: int) -> Any:
    return getattr(np, kind)(number)


def test_integers_of_numpy_are_integers(tmp_path: Path) -> None:
    write_deltalake(tmp_path, ROWS)
    version = numpys("int64", 0)
    assert DeltaTable(tmp_path, version=version).version() == 0
    write_deltalake(
        tmp_path,
        ROWS,
        mode="append",
        target_file_size=numpys("uint32", 1 << 20),
        commit_properties=CommitProperties(app_transactions=[Transaction("app", numpys("int16", 7))]),
        writer_properties=deltalog.WriterProperties(max_row_group_size=numpys("int32", 10)),
    )
    table = DeltaTable(tmp_path)
    assert table.transaction_version("app") == 7
    table.load_as_version(version)
    assert (table.version(), len(table.history(limit=numpys("uint8", 1)))) == (0, 1)
    with pytest.raises(InvalidArgumentError, match="version cannot be"):
        DeltaTable(tmp_path, version=numpys("bool_", True))


@pytest.mark.parametrize(
    ("call", "message", "hint"),
    [
        (
            lambda t: t.update({"id": "1"}, "id > 1"),
            "new_values cannot be the string 'id > 1'",
            "predicate='id > 1'",
        ),
        (lambda t: t.update(), "either updates or new_values", "pass updates"),
        (
            lambda t: write_deltalake(ROWS, t),
            "table_or_uri cannot be an object of type Table",
            "a path",
        ),
        (lambda t: t.alter.set_column_default("id", "x"), "there is no column x", "without columns"),
        (
            lambda t: t.alter.widen_column("id", "bigint"),
            "data_type cannot be 'bigint'",
            "one of string, long",
        ),
        (lambda t: Schema([Field("a", "int64")]), "type cannot be 'int64'", "one of string, long"),
        (lambda t: t.delete("id"), "column id is not a condition: it has the type BIGINT", "compare it"),
        (
            lambda t: t.delete("id = 'x'"),
            "column id of type BIGINT cannot be compared with 'x'",
            "of one type",
        ),
        (lambda t: t.delete("name IN (1)"), "column name of type STRING cannot be compared", "of one type"),
        (lambda t: t.delete("'a' < 1"), "'a' and 1 cannot be compared", "of one type"),
        (lambda t: t.delete("id.part = 1"), "id.part is not a column", "backticks"),
        (lambda t: t.merge(ROWS, "true").execute(), "at least one WHEN clause", "with a match"),
        (
            lambda t: t.merge(ROWS, "true", "t", "T").when_matched_delete().execute(),
            "the same alias 'T'",
            "another alias",
        ),
        (
            lambda t: t.merge(ROWS, "true").when_matched_delete().when_matched_delete().execute(),
            "only the last WHEN MATCHED clause",
            "last",
        ),
        (lambda t: t.delete("id = = 1"), "the SQL cannot be parsed at", "backticks"),
        (lambda t: t.to_arrow(predicate="name"), "it has the type STRING", "compare it"),
        (
            lambda t: t.alter.add_constraint({"c": "id"}),
            "it has the type long, not boolean",
            "choose a condition",
        ),
    ],
)
def test_messages(
    pristine: Path, tmp_path: Path, call: Callable[[DeltaTable], Any], message: str, hint: str
) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        call(opened(pristine, tmp_path / "table"))
    assert message in str(caught.value)
    assert hint in str(caught.value.hint)
