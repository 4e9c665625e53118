"""Converts rows to a canonical form, in which the results of different readers are compared.

The form is one line of JSON per row, with the lines sorted, and SHA-256 over them. The README of the golden
tables defines it: floats as shortest round-trip doubles, decimals as text with their full scale, binary in
hex, timestamps of both kinds without a zone, maps as sorted pairs, a variant as `{"__variant__": value}`.
"""

from __future__ import annotations

import datetime as dt
import decimal
import hashlib
import json
import math
from collections.abc import Callable
from typing import Any

import pyarrow as pa
from pyspark.sql.variant_utils import VariantUtils


def dumps(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def rows(table: pa.Table) -> list[str]:
    """Returns the rows of `table` as sorted lines. If the table equals the table of the previous call, its lines are
    reused.
    """
    plain_schema = pa.schema(map(_without_views, table.schema), table.schema.metadata)
    plain = table if plain_schema == table.schema else table.cast(plain_schema)
    if not _LAST or not _LAST[0].equals(plain, check_metadata=True):
        _LAST[:] = (plain, _rows(plain))
    return list(_LAST[1])


_LAST: list[Any] = []


def _without_views(field: pa.Field) -> pa.Field:
    """Returns a field with the type of plain arrays instead of views; views inside of nested types stay."""
    plain = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}
    return field.with_type(plain.get(field.type, field.type))


def _rows(table: pa.Table) -> list[str]:
    columns = {name: _with_variants(table.schema.field(name)) for name in table.column_names}
    lines = [
        dumps({name: value(columns[name](cell)) for name, cell in row.items()})
        for row in table.to_pylist(maps_as_pydicts=None)
    ]
    return sorted(lines, key=lambda line: line.encode())


def sha256(lines: list[str]) -> str:
    """Returns the hash over `lines`, each followed by a line feed."""
    digest = hashlib.sha256()
    for line in lines:
        digest.update(line.encode() + b"\n")
    return digest.hexdigest()


def _with_variants(field: pa.Field) -> Callable[[Any], Any]:
    """Returns a function that replaces the variants in a value of `field` with the values that Spark decodes from
    them.
    """
    if (field.metadata or {}).get(b"ARROW:extension:name") == b"arrow.parquet.variant":
        return lambda cell: (
            None if cell is None else {"__variant__": VariantUtils.to_python(cell["value"], cell["metadata"])}
        )
    if pa.types.is_struct(field.type):
        parts = {child.name: _with_variants(child) for child in field.type}
        return lambda cell: None if cell is None else {name: part(cell[name]) for name, part in parts.items()}
    if pa.types.is_list(field.type):
        element = _with_variants(field.type.value_field)
        return lambda cell: None if cell is None else [element(child) for child in cell]
    if pa.types.is_map(field.type):
        key, item = _with_variants(field.type.key_field), _with_variants(field.type.item_field)
        return lambda cell: None if cell is None else [(key(name), item(child)) for name, child in cell]
    return lambda cell: cell


def value(cell: Any) -> Any:
    """Returns the JSON form of one Python value from Arrow."""
    match cell:
        case None | bool() | int() | str():
            return cell
        case float():
            return (
                cell
                if math.isfinite(cell)
                else "NaN"
                if math.isnan(cell)
                else "Infinity"
                if cell > 0
                else "-Infinity"
            )
        case decimal.Decimal():
            return format(cell, "f")
        case bytes():
            return cell.hex()
        case dt.datetime():
            instant = cell.astimezone(dt.timezone.utc) if cell.tzinfo else cell
            return instant.replace(tzinfo=None).isoformat(timespec="microseconds")
        case dt.date():
            return cell.isoformat()
        case dict():
            return {name: value(child) for name, child in cell.items()}
        case tuple():
            return [value(child) for child in cell]
        case list():
            # Arrow gives a map to Python as a list of pairs.
            if cell and all(isinstance(entry, tuple) for entry in cell):
                return sorted((value(entry) for entry in cell), key=lambda entry: dumps(entry[0]).encode())
            return [value(child) for child in cell]
        case _:
            raise TypeError(f"no canonical form for {type(cell).__name__}")
