"""Converts the Python Data Source's filters to SQL text, with which the core prunes files.

A filter that has no exact translation is left out, so it does not exclude files.
"""

import datetime
from decimal import Decimal
from typing import Any

from pyspark.sql import datasource

from deltalog.filters import quoted

_COMPARISONS = {
    "EqualTo": "=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
}


def filter_text(filters: list[Any]) -> str:
    """Returns the conjunction of the filters that have a translation."""
    return " AND ".join(f"({text})" for text in map(_text, filters) if text is not None)


def _text(filter_: Any) -> str | None:
    kind = type(filter_).__name__
    if not hasattr(datasource, kind) or not hasattr(filter_, "attribute"):
        return None
    column = ".".join(quoted(part) for part in filter_.attribute)
    if kind == "IsNull":
        return f"{column} IS NULL"
    if kind == "IsNotNull":
        return f"{column} IS NOT NULL"
    if kind == "In":
        values = [_literal(value) for value in filter_.value]
        return (
            None
            if None in values or not values
            else f"{column} IN ({', '.join(str(value) for value in values)})"
        )
    value = _literal(filter_.value) if kind in _COMPARISONS else None
    return None if value is None else f"{column} {_COMPARISONS[kind]} {value}"


def _literal(value: Any) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace("'", "\\'")
        return f"'{escaped}'"
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return f"DATE '{value.isoformat()}'"
    return None
