"""Converts filters that are lists of tuples, as in pyarrow and `deltalake`, to SQL."""

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any, TypeAlias

from deltalog.checked import is_text
from deltalog.errors import InvalidArgumentError, UnsupportedFeatureError, hinted, shown, wrong_argument
from deltalog.schema import ArrayType, DataType, MapType, PrimitiveType, Schema, StructType

__all__ = ["Filter", "filter_argument", "value_as_sql"]

Condition: TypeAlias = tuple[str, str, Any]

Filter: TypeAlias = str | Sequence[Condition] | Sequence[Sequence[Condition]]
"""A condition on rows: SQL text, or tuples of a column, an operator and a value.

A row matches a list if all of its tuples are true. It matches a list of lists if all tuples of at least one inner list
are true. The operators are `=` (or `==`), `!=`, `<`, `<=`, `>`, `>=`, `in` and `not in`. A string that is compared with
a column of another type is converted to that type, as in `("year", "=", "2021")`. An integer that is compared with a
column of strings is converted to a string.
"""

_EXPECTED = "SQL text such as \"month = 7\", or a list of tuples such as [('month', '=', 7)]"

_COMPARISONS = {"=": "=", "==": "=", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}

_EQUALITIES = ("=", "==", "!=", "in", "not in")

_Kinds: TypeAlias = dict[str, str]
"""The type of each primitive column, by the column's name in lower case."""


def filter_argument(filters: Filter | None, schema: Schema, name: str) -> str | None:
    """Returns a filter for a table with `schema` as SQL; None if there is no filter or the list is empty."""
    if filters is None or is_text(filters):
        return filters
    if type(filters).__module__.startswith("pyarrow"):
        refused = UnsupportedFeatureError(f"{name} cannot be a pyarrow {type(filters).__name__}")
        raise hinted(refused, f"pass {_EXPECTED}")
    if not isinstance(filters, (list, tuple)):
        raise wrong_argument(name, filters, _EXPECTED)
    if not filters:
        return None
    kinds = {
        field.name.lower(): field.type.type
        for field in schema.fields
        if isinstance(field.type, PrimitiveType)
    }
    groups = filters if all(isinstance(group, list) for group in filters) else [filters]
    return " OR ".join(f"({_all_of(group, kinds)})" for group in groups)


def quoted(name: str) -> str:
    """Returns the name of a column as an SQL identifier."""
    return "`" + name.replace("`", "``") + "`"


def _all_of(conditions: Sequence[Any], kinds: _Kinds) -> str:
    return " AND ".join(_condition(condition, kinds) for condition in conditions) or "true"


def _condition(condition: Any, kinds: _Kinds) -> str:
    if not isinstance(condition, tuple) or len(condition) != 3 or not is_text(condition[0]):
        expected = "a tuple of column, operator and value, such as ('month', '=', 7)"
        raise wrong_argument("a condition of a filter", condition, expected)
    name, operator, value = condition
    column = quoted(name)
    kind = kinds.get(name.lower(), "string")
    if kinds.get(name.lower()) == "string" and operator in _EQUALITIES:
        value = [_spelled(one) for one in value] if isinstance(value, (list, tuple, set)) else _spelled(value)
    if isinstance(operator, str) and operator in _COMPARISONS:
        return f"{column} {_COMPARISONS[operator]} {_literal(value, kind, condition)}"
    if operator not in ("in", "not in"):
        known = ", ".join([*_COMPARISONS, "in", "not in"])
        raise wrong_argument(f"the operator of {shown(condition)}", operator, f"one of {known}")
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise wrong_argument(f"the value of {operator!r}", value, "a list of values")
    values = ", ".join(_literal(one, kind, condition) for one in value)
    if operator == "in":
        return f"{column} IN ({values})" if values else "false"
    # As in pyarrow, rows with NULL match `not in`.
    return f"({column} IS NULL OR {column} NOT IN ({values}))" if values else "true"


def _spelled(value: Any) -> Any:
    """Returns an integer as a string. As in `deltalake`, an integer is compared with a column of strings in this form,
    such as the year of a partition.
    """
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def value_as_sql(value: Any, kind: DataType | None, name: str) -> str:
    """Returns a Python value as SQL, for the column `name` of type `kind`.

    A list or tuple becomes an array; if the column is a map, it must contain pairs of key and value. A dict becomes a
    map if the column is a map, and otherwise a struct.
    """
    value = _plain(value)
    if value is None:
        return "NULL"
    if isinstance(kind, MapType) and isinstance(value, (Mapping, list, tuple)):
        entries = list(value.items()) if isinstance(value, Mapping) else value
        if not all(isinstance(entry, tuple) and len(entry) == 2 for entry in entries):
            raise wrong_argument(
                f"the value of {name!r}", value, "a dict, or a list of pairs of key and value"
            )
        types = (kind.key_type, kind.value_type)
        return _called(
            "map",
            (value_as_sql(part, of, name) for pair in entries for part, of in zip(pair, types, strict=True)),
        )
    if isinstance(value, Mapping):
        if not value or not all(isinstance(key, str) for key in value):
            raise wrong_argument(
                f"the value of {name!r}", value, "a dict with the names of the struct's fields"
            )
        fields = (
            {field.name.lower(): field.type for field in kind.fields} if isinstance(kind, StructType) else {}
        )
        parts = (
            (field, value_as_sql(part, fields.get(field.lower()), name)) for field, part in value.items()
        )
        return _called(
            "named_struct", (text for field, part in parts for text in (_quoted_text(field), part))
        )
    if isinstance(value, (list, tuple)):
        element = kind.element_type if isinstance(kind, ArrayType) else None
        return _called("array", (value_as_sql(part, element, name) for part in value))
    primitive = kind.type if isinstance(kind, PrimitiveType) else "string"
    if isinstance(value, float) and not math.isfinite(value):
        return f"CAST('{value}' AS {'FLOAT' if primitive == 'float' else 'DOUBLE'})"
    return _literal(value, primitive, (name, "=", value))


def _called(function: str, arguments: Iterable[str]) -> str:
    return f"{function}({', '.join(arguments)})"


def _literal(value: Any, kind: str, condition: Any) -> str:
    """Returns a Python value as SQL, for a comparison with a column of the primitive type `kind`."""
    value = _plain(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, Decimal) and value.is_finite():
        return f"{value:f}"
    if isinstance(value, float) and math.isfinite(value):
        return f"{value!r}D"
    if is_text(value):
        return _text(value, kind, condition)
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(value, datetime):
        if value.tzinfo is None:
            return f"TIMESTAMP_NTZ '{value.isoformat(' ')}'"
        return f"TIMESTAMP '{value.astimezone(timezone.utc).replace(tzinfo=None).isoformat(' ')}Z'"
    if isinstance(value, date):
        return f"DATE '{value.isoformat()}'"
    refused = InvalidArgumentError(f"the value of {shown(condition)} has no SQL form")
    raise hinted(refused, 'write the condition as SQL, such as "month IS NULL"')


def _plain(value: Any) -> Any:
    """Converts a NumPy number, boolean or array to Python's types, and returns any other value unchanged."""
    if type(value).__module__ != "numpy":
        return value
    import numpy as np

    if isinstance(value, np.ndarray):
        return list(value)
    is_number = isinstance(value, (np.bool_, np.number)) and not isinstance(value, np.timedelta64)
    return value.item() if is_number else value


def _text(text: str, kind: str, condition: Any) -> str:
    """Returns a string as SQL, converted to the primitive type `kind`."""
    number: int | float | Decimal | None = None
    try:
        if kind in ("byte", "short", "integer", "long"):
            number = int(text)
        elif kind in ("float", "double"):
            number = float(text)
        elif kind.startswith("decimal"):
            number = Decimal(text)
    except (ValueError, ArithmeticError) as error:
        refused = InvalidArgumentError(f"the string in {shown(condition)} is not a value of type {kind}")
        raise hinted(refused, f"pass a {kind}, or a string that represents one") from error
    if number is not None:
        return _literal(number, kind, condition)
    quoted = _quoted_text(text)
    if kind == "boolean":
        return text if text.lower() in ("true", "false") else quoted
    return f"{kind.upper()} {quoted}" if kind in ("date", "timestamp", "timestamp_ntz") else quoted


def _quoted_text(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
