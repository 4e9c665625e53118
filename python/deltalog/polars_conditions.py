"""Translates Polars filters into SQL.

The only public form of a Polars expression is JSON, and it differs between releases. Expressions of an unknown form are
not translated.
"""

import io
import json
import warnings
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, TypeAlias

from deltalog.conditions import MOST_VALUES, NotTranslated, column, flat, literal

__all__ = ["conjuncts", "sql"]

Node: TypeAlias = Any
"""An expression: a dictionary with one entry, whose key is the kind of the expression."""

_COMPARISONS = {
    "Eq": "=",
    "NotEq": "<>",
    "Lt": "<",
    "LtEq": "<=",
    "Gt": ">",
    "GtEq": ">=",
    "EqValidity": "<=>",
}
_WIDTHS = {"Int8": 1, "Int16": 2, "Int32": 4, "Int64": 8}
_EPOCH = datetime(1970, 1, 1)


def conjuncts(predicate: Any) -> list[Node]:
    """Returns the operands of the filter's ANDs, which must all be true."""
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # Polars warns that this format is not stable. Unknown forms are handled, so the warning is hidden.
        tree = json.loads(predicate.meta.serialize(format="json"))
    return flat(tree, lambda node: _sides(node, "And"))


def sql(node: Node, pl: Any, schema: Any) -> str:
    """Returns the SQL for a condition on the columns of a frame with this schema.

    If there is no exact translation, raises `NotTranslated` or any other error, such as a `KeyError` for an unknown
    form.
    """
    match node:
        case {"BinaryExpr": {"op": "And" | "Or" as op}}:
            parts = flat(node, lambda part: _sides(part, op))
            return "(" + f" {op.upper()} ".join(sql(part, pl, schema) for part in parts) + ")"
        case {"BinaryExpr": {"left": left, "op": op, "right": right}}:
            return f"({_operand(left, schema)} {_COMPARISONS[op]} {_operand(right, schema)})"
        case {"Function": {"input": inputs, "function": {"Boolean": function}}}:
            return _function(function, inputs, pl, schema)
        case {"Function": {"input": [value, prefix], "function": {"StringExpr": "StartsWith"}}}:
            return f"startswith({_operand(value, schema)}, {literal(_text(prefix))})"
        case {"Column": name} if schema[name] == pl.Boolean:
            return column(name)
    raise NotTranslated


def _function(function: Any, inputs: list[Node], pl: Any, schema: Any) -> str:
    match function, inputs:
        case "Not", [value]:
            return f"(NOT {sql(value, pl, schema)})"
        case "IsNull", [value]:
            return f"({_operand(value, schema)} IS NULL)"
        case "IsNotNull", [value]:
            return f"({_operand(value, schema)} IS NOT NULL)"
        case {"IsBetween": {"closed": closed}}, [value, low, high]:
            above, below = {
                "Both": (">=", "<="),
                "Left": (">=", "<"),
                "Right": (">", "<="),
                "None": (">", "<"),
            }[closed]
            of, least, most = (_operand(part, schema) for part in (value, low, high))
            return f"({of} {above} {least} AND {of} {below} {most})"
        case {"IsIn": {"nulls_equal": False}}, [value, {"Literal": {"Scalar": {"List": ipc}}}]:
            values = _values(ipc, pl)
            if not 0 < len(values) <= MOST_VALUES or any(isinstance(value, float) for value in values):
                raise NotTranslated
            return f"({_operand(value, schema)} IN ({', '.join(map(literal, values))}))"
    raise NotTranslated


def _sides(node: Node, op: str) -> tuple[Node, Node] | None:
    match node:
        case {"BinaryExpr": {"left": left, "op": found, "right": right}} if found == op:
            return left, right
    return None


def _operand(node: Node, schema: Any) -> str:
    match node:
        case {"Column": name}:
            return _comparable(name, schema)
        # Casting an integer to a wider type does not change the result of a comparison, so the cast is left out.
        case {"Cast": {"expr": {"Column": name}, "dtype": {"Literal": wide}}}:
            if _WIDTHS[str(schema[name])] <= _WIDTHS[wide]:
                return _comparable(name, schema)
        case {"Literal": {"Scalar": scalar}}:
            return literal(_value(scalar))
    raise NotTranslated


def _comparable(name: str, schema: Any) -> str:
    # Polars compares a 32-bit float with a 32-bit literal, and SQL does not have such literals.
    if str(schema[name]) == "Float32":
        raise NotTranslated
    return column(name)


def _value(scalar: dict[str, Any]) -> Any:
    """Returns the value of a literal. For NaN and infinities, the JSON has null, which is returned as None."""
    [(kind, value)] = scalar.items()
    match kind, value:
        case "Int8" | "Int16" | "Int32" | "Int64" | "Boolean" | "String" | "Float64", _:
            return value
        case "Date", _:
            return date(1970, 1, 1) + timedelta(days=value)
        case "Datetime", [micros, "Microseconds", zone]:
            moment = _EPOCH + timedelta(microseconds=micros)
            return moment if zone is None else moment.replace(tzinfo=timezone.utc)
        case "Decimal", [unscaled, *_, scale]:  # Some releases have the precision between these two values.
            return Decimal(
                f"{unscaled}E-{scale}"
            )  # Parsing a string is exact, unlike arithmetic with decimals.
    raise NotTranslated


def _text(node: Node) -> str:
    text = node["Literal"]["Scalar"]["String"]
    if not isinstance(text, str):
        raise NotTranslated
    return text


def _values(ipc: list[int], pl: Any) -> list[Any]:
    """Returns the values of a list. Polars writes it as an Arrow IPC stream with one column and one row per value."""
    [values] = pl.read_ipc_stream(io.BytesIO(bytes(ipc))).get_columns()
    return list(values.to_list())
