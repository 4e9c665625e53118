"""The canonical form of rows, in which tables of any reader are compared: one line of JSON a row, lines sorted, SHA-256 over them.

The form is the one that the README of the golden tables lays down: floats as shortest round-trip doubles, decimals as text with their full
scale, binary in hex, both kinds of timestamp without a zone, maps as sorted pairs.
"""

from __future__ import annotations

import datetime as dt
import decimal
import hashlib
import json
import math
from typing import Any

import pyarrow as pa


def dumps(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def rows(table: pa.Table) -> list[str]:
    """The rows of `table` as sorted lines."""
    lines = [dumps({name: value(cell) for name, cell in row.items()}) for row in table.to_pylist(maps_as_pydicts=None)]
    return sorted(lines, key=lambda line: line.encode())


def sha256(lines: list[str]) -> str:
    """The hash over `lines`, each followed by a line feed."""
    digest = hashlib.sha256()
    for line in lines:
        digest.update(line.encode() + b"\n")
    return digest.hexdigest()


def value(cell: Any) -> Any:
    """What JSON shall say for one Python value of Arrow's."""
    match cell:
        case None | bool() | int() | str():
            return cell
        case float():
            return cell if math.isfinite(cell) else "NaN" if math.isnan(cell) else "Infinity" if cell > 0 else "-Infinity"
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
            # Arrow hands a map over as a list of pairs.
            if cell and all(isinstance(entry, tuple) for entry in cell):
                return sorted((value(entry) for entry in cell), key=lambda entry: dumps(entry[0]).encode())
            return [value(child) for child in cell]
        case _:
            raise TypeError(f"no canonical form for {type(cell).__name__}")
