"""A wrong argument of any public call is an `InvalidArgumentError` that names the parameter, with a hint.

The calls and their parameters are found by introspection, so a new one is tested without being listed here.
"""

from __future__ import annotations

import inspect
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltalog
from deltalog import (
    DeltaError,
    DeltaTable,
    Field,
    InvalidArgumentError,
    UnsupportedFeatureError,
    storage,
    upkeep,
)

ROWS = pa.table({"id": [1, 2], "name": ["a", "b"]})


class Wrong:
    """An object of a class that no parameter takes."""

    def __repr__(self) -> str:
        return "<wrong>"


# The last ones are of the right type for some parameters: such a call may succeed, or fail with any `DeltaError`.
NEVER_RIGHT: list[Any] = [Wrong(), 2.5j]
PERHAPS_RIGHT: list[Any] = [
    None,
    3,
    -1,
    2.5,
    True,
    "x",
    "",
    b"x",
    ["a"],
    ["a", 1],
    ("a", "string"),
    {"a": 1},
    {1: "a"},
]

# What a call needs beside the argument that is wrong.
NEEDED: dict[str, Any] = {
    "after": "id",
    "app_id": "app",
    "column": "id",
    "columns": ["id"],
    "condition": "true",
    "constraints": {"positive": "id > 0"},
    "data": ROWS,
    "default": "1",
    "description": "words",
    "element_type": "long",
    "enabled": True,
    "ending_version": 0,
    "feature": "appendOnly",
    "fields": [Field("more", "long")],
    "key_type": "long",
    "log_store": None,
    "metadata": {"comment": "words"},
    "min_reader_version": 1,
    "name": "name",
    "names": ["x"],
    "new_values": None,
    "predicate": "target.id = source.id",
    "properties": {"x": "y"},
    "schema": pa.schema({"id": pa.int64()}),
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
    "data_type": "long",
}


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("wrong") / "table"
    deltalog.write_deltalake(path, ROWS)
    return path


def public(kind: type) -> Iterator[str]:
    for name in dir(kind):
        member = inspect.getattr_static(kind, name)
        if not name.startswith("_") and not isinstance(member, property) and callable(getattr(kind, name)):
            yield name


def calls() -> Iterator[tuple[str, str]]:
    for kind in ("DeltaTable", "alter", "optimize", "merge"):
        of = {
            "DeltaTable": DeltaTable,
            "alter": deltalog.TableAlterer,
            "optimize": deltalog.TableOptimizer,
            "merge": deltalog.TableMerger,
        }[kind]
        for name in public(of):
            yield kind, name
    yield "DeltaTable", "__init__"
    for name in ("Field", "Schema", "PrimitiveType", "ArrayType", "MapType", "StructType"):
        yield name, "__init__"
    for name in ("from_json", "from_arrow"):
        yield "Schema", name
    for name in ("write_deltalake", "begin_write", "convert_to_delta", "plan_conversion"):
        yield "deltalog", name
    for name in ("register_log_store", "check"):
        yield "storage", name
    for name in ("run_in_background", "wait"):
        yield "upkeep", name


def opened(pristine: Path, place: Path) -> DeltaTable:
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(pristine, place)
    return DeltaTable(place)


def call_of(kind: str, name: str, table: DeltaTable) -> Any:
    """Returns what is called, on `table` if it is a method."""
    if name == "__init__":
        return getattr(deltalog, kind)
    if kind in ("deltalog", "storage", "upkeep", "Schema"):
        modules = {"deltalog": deltalog, "storage": storage, "upkeep": upkeep, "Schema": deltalog.Schema}
        return getattr(modules[kind], name)
    merge = table.merge(ROWS, "target.id = source.id")
    on = {"DeltaTable": table, "alter": table.alter, "optimize": table.optimize, "merge": merge}
    return getattr(on[kind], name)


def needed(kind: str, call: Callable[..., Any], place: Path) -> dict[str, Any]:
    """Returns arguments for the parameters without defaults."""
    arguments: dict[str, Any] = {}
    for name, parameter in inspect.signature(call).parameters.items():
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            continue
        if name in ("table_uri", "table_or_uri", "uri", "target_uri"):
            arguments[name] = str(
                place if kind == "DeltaTable" and name == "table_uri" else place.parent / "new"
            )
        elif parameter.default is parameter.empty:
            arguments[name] = NEEDED[name]
    return arguments


@pytest.mark.parametrize(("kind", "name"), list(calls()), ids=lambda part: part)
def test_wrong_arguments(
    pristine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, name: str
) -> None:
    # A text may be taken for a path.
    monkeypatch.chdir(tmp_path)
    place = tmp_path / "table"
    table = opened(pristine, place)
    for parameter in inspect.signature(call_of(kind, name, table)).parameters.values():
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            continue
        for value in NEVER_RIGHT + PERHAPS_RIGHT:
            call = call_of(kind, name, table)
            arguments = {**needed(kind, call, place), parameter.name: value}
            found: DeltaError | None = None
            try:
                call(**arguments)
                table = opened(pristine, place)
            except DeltaError as error:
                found = error
            if value in NEVER_RIGHT:
                what = f"{kind}.{name}({parameter.name}={value!r})"
                assert isinstance(found, (InvalidArgumentError, UnsupportedFeatureError)), (what, found)
                assert parameter.name in str(found), (what, str(found))
                assert found.hint, (what, str(found))
                assert str(found).endswith(found.hint)
            shutil.rmtree(tmp_path / "new", ignore_errors=True)
