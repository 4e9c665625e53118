"""Filters of Polars as SQL. Polars has no public form of its expressions but JSON, which differs between releases:
what is not known is not translated.
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
"""An expression: a dictionary with one entry, whose key is its kind."""

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
    """Returns the conditions that must all be true."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # The form is not stable, which is why each part may be unknown.
        tree = json.loads(predicate.meta.serialize(format="json"))
    return flat(tree, lambda node: _sides(node, "And"))


def sql(node: Node, pl: Any, schema: Any) -> str:
    """Returns the SQL of a condition on columns of a frame with this schema.

    Raises `NotTranslated`, or any error of a look-up, for what is not known.
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
        # An integer that is cast to a wider one compares in the same way.
        case {"Cast": {"expr": {"Column": name}, "dtype": {"Literal": wide}}}:
            if _WIDTHS[str(schema[name])] <= _WIDTHS[wide]:
                return _comparable(name, schema)
        case {"Literal": {"Scalar": scalar}}:
            return literal(_value(scalar))
    raise NotTranslated


def _comparable(name: str, schema: Any) -> str:
    # Polars compares a float of 32 bits with a literal of 32 bits, which SQL does not have.
    if str(schema[name]) == "Float32":
        raise NotTranslated
    return column(name)


def _value(scalar: dict[str, Any]) -> Any:
    """Returns the value of a literal. JSON has null for NaN and for infinities."""
    [(kind, value)] = scalar.items()
    match kind, value:
        case "Int8" | "Int16" | "Int32" | "Int64" | "Boolean" | "String" | "Float64", _:
            return value
        case "Date", _:
            return date(1970, 1, 1) + timedelta(days=value)
        case "Datetime", [micros, "Microseconds", zone]:
            moment = _EPOCH + timedelta(microseconds=micros)
            return moment if zone is None else moment.replace(tzinfo=timezone.utc)
        case "Decimal", [unscaled, *_, scale]:  # With the precision in between, or without it.
            return Decimal(f"{unscaled}E-{scale}")  # Exact, as arithmetic of decimals is not.
    raise NotTranslated


def _text(node: Node) -> str:
    text = node["Literal"]["Scalar"]["String"]
    if not isinstance(text, str):
        raise NotTranslated
    return text


def _values(ipc: list[int], pl: Any) -> list[Any]:
    """Returns the values of a list, which Polars writes as a stream of Arrow IPC: one column, with a row for each."""
    [values] = pl.read_ipc_stream(io.BytesIO(bytes(ipc))).get_columns()
    return list(values.to_list())
