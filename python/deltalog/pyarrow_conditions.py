"""Translates pyarrow filters into SQL. The only public form of a pyarrow expression is its pickle: an Arrow IPC file
whose columns are the constants, and whose schema metadata describes the tree. Expressions of an unknown form are not
translated.

Comparisons in pyarrow follow IEEE 754: NaN is not greater than other numbers. In SQL, it is.
"""

import math
import re
import struct
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, NamedTuple, TypeAlias

from deltalog.conditions import MOST_VALUES, NotTranslated, column, flat, literal

__all__ = [
    "Call",
    "Constant",
    "Field",
    "Node",
    "conjuncts",
    "field_type",
    "fields",
    "operands",
    "sql",
    "tree",
]


class Field(NamedTuple):
    """A column, or a field within structs."""

    parts: tuple[str, ...]


class Constant(NamedTuple):
    """A constant, as a pyarrow scalar."""

    value: Any


class Call(NamedTuple):
    """A function, with its options as a dictionary."""

    function: str
    arguments: "list[Node]"
    options: dict[str, Any]


Node: TypeAlias = Field | Constant | Call
"""A part of an expression."""

_OPERATORS = {
    "equal": "=",
    "not_equal": "<>",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
}
_FLIPPED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_EPOCH = datetime(1970, 1, 1)
_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_EXACT_FLOATS = 1 << 53
_MATCH_NULL, _SKIP_NULL = 0, 1
"""The two ways in which `isin` can treat a null in its list of values: as a value that matches NULL, or as if it were
not in the list.
"""


def tree(expression: Any) -> Node:
    """Returns an expression as a tree. Raises `NotTranslated` if its form is unknown."""
    import pyarrow

    try:
        _, [buffer] = expression.__reduce__()
        constants = pyarrow.ipc.open_file(buffer).get_batch(0).columns
        message = pyarrow.ipc.read_message(buffer.slice(8))  # It follows the magic bytes of the file.
        return _built(_metadata(bytes(message.metadata)), constants)
    except (pyarrow.ArrowException, LookupError, TypeError, ValueError, struct.error) as error:
        raise NotTranslated from error


def conjuncts(condition: Node) -> list[Node]:
    """Returns the operands of nested ANDs, which must all be true."""
    return operands(condition, "and_kleene")


def fields(node: Node) -> set[str]:
    """Returns the columns that an expression refers to."""
    found, rest = set(), [node]
    while rest:
        part = rest.pop()
        if isinstance(part, Field):
            found.add(part.parts[0])
        elif isinstance(part, Call):
            rest += part.arguments
    return found


def operands(node: Node, function: str) -> list[Node]:
    """Returns the operands of nested calls of a function that has two."""
    return flat(node, lambda part: _sides(part, function))


def sql(node: Node, schema: Any) -> str:
    """Returns the SQL of a condition on rows with this pyarrow schema.

    For an unknown form, raises `NotTranslated` or any other error, such as a `KeyError`.
    """
    match node:
        case Call("and_kleene" | "or_kleene" as function, _, _):
            operator = " AND " if function == "and_kleene" else " OR "
            return "(" + operator.join(sql(part, schema) for part in operands(node, function)) + ")"
        case Call("invert", [condition], _):
            return f"(NOT {sql(condition, schema)})"
        case Call("is_valid", [Field() as field], _):
            return f"({column(*field.parts)} IS NOT NULL)"
        case Call("is_null", [Field() as field], {"nan_is_null": False}):
            return f"({column(*field.parts)} IS NULL)"
        case Call("is_nan", [Field() as field], _) if _is_double(field_type(field, schema)):
            # Unlike SQL's isnan, this returns NULL for NULL, as in pyarrow.
            return f"({column(*field.parts)} = CAST('NaN' AS DOUBLE))"
        case Call("is_in", [Field() as field], options):
            return _among(field, options, schema)
        case Call("starts_with", [Field() as field], {"pattern": prefix, "ignore_case": False}):
            return _prefixed(field, prefix, schema)
        case Call("match_like", [Field() as field], {"pattern": pattern, "ignore_case": False}):
            found = re.fullmatch(r"([^%_\\]*)%", pattern, re.DOTALL)
            if found:
                return _prefixed(field, found[1], schema)
        case Call(function, [left, right], _) if function in _OPERATORS:
            return _compared(left, _OPERATORS[function], right, schema)
        case Field(parts) if str(field_type(node, schema)) == "bool":
            return column(*parts)
    raise NotTranslated


def _compared(left: Node, operator: str, right: Node, schema: Any) -> str:
    if isinstance(left, Constant):
        left, operator, right = right, _FLIPPED[operator], left
    if not isinstance(left, Field):
        raise NotTranslated
    kind = field_type(left, schema)
    if isinstance(right, Field):
        other = field_type(right, schema)
        if other != kind or not _is_compared_alike(kind):
            raise NotTranslated
        return f"({column(*left.parts)} {operator} {column(*right.parts)})"
    if not isinstance(right, Constant):
        raise NotTranslated
    compared = f"({column(*left.parts)} {operator} {literal(_value(right.value, kind))})"
    if _is_double(kind) and operator.startswith(">"):
        return f"({compared} AND NOT isnan({column(*left.parts)}))"
    return compared


def _among(field: Field, options: dict[str, Any], schema: Any) -> str:
    """Returns the SQL of `isin`, whose result for NULL is true or false, and never NULL."""
    kind, name = field_type(field, schema), column(*field.parts)
    values = options["value_set"].values
    nulls = options["null_matching_behavior"].as_py()
    if len(values) > MOST_VALUES or nulls not in (_MATCH_NULL, _SKIP_NULL):
        raise NotTranslated
    if not _is_compared_alike(kind) and not (_is_double(kind) and _has_no_or_both_zeros(values)):
        raise NotTranslated
    known = ", ".join(literal(_value(value, kind)) for value in values if value.is_valid)
    if not known:
        raise NotTranslated
    if values.null_count and nulls == _MATCH_NULL:
        return f"({name} IS NULL OR {name} IN ({known}))"
    return f"({name} IS NOT NULL AND {name} IN ({known}))"


def _prefixed(field: Field, prefix: Any, schema: Any) -> str:
    if str(field_type(field, schema)) != "string":
        raise NotTranslated
    return f"startswith({column(*field.parts)}, {literal(prefix)})"


def field_type(field: Field, schema: Any) -> Any:
    """Returns the type of a column, or of a field within structs."""
    kind = schema.field(field.parts[0]).type
    for part in field.parts[1:]:
        kind = kind.field(part).type
    return kind


def _is_double(kind: Any) -> bool:
    return str(kind) == "double"


def _is_compared_alike(kind: Any) -> bool:
    """Returns whether values of a type are compared in SQL in the same way as in pyarrow."""
    return not str(kind).startswith(("float", "double", "halffloat", "struct", "list", "map"))


def _has_no_or_both_zeros(values: Any) -> bool:
    """Returns whether a list has 0.0 and -0.0, or neither of them: `isin` tells them apart, unlike IN in SQL."""
    signs = {math.copysign(1, value) for value in values.to_pylist() if value == 0}
    return len(signs) != 1


def _value(scalar: Any, kind: Any) -> Any:
    """Returns a constant as a value whose comparison with a column of the type has the same result in SQL as in
    pyarrow.
    """
    if not scalar.is_valid:
        raise NotTranslated
    of, is_of = str(scalar.type), str(kind)
    value = _instant(scalar) if of.startswith("timestamp") else scalar.as_py()
    match value:
        case bool():
            if is_of == "bool":
                return value
        case int() if is_of.startswith("int") and -(2**63) <= value < 2**63:
            return value
        case int() if is_of == "double" and abs(value) <= _EXACT_FLOATS:
            return float(value)
        case float() if is_of == of == "double":
            return value
        case int() if is_of.startswith("decimal"):
            # pyarrow refuses this comparison if a decimal with all digits of the constant's integer type and with the
            # column's scale would be too wide.
            return Decimal(value)
        case Decimal() if is_of.startswith("decimal"):
            return value
        case str() if is_of == "string":
            return value
        case bytes() if is_of == "binary":
            return value
        case datetime() if is_of.startswith("timestamp") and _is_comparable(scalar.type, kind):
            return value
        case _ if of == is_of == "date32[day]":
            return value
    raise NotTranslated


def _is_comparable(left: Any, right: Any) -> bool:
    """Returns whether pyarrow can compare two timestamp types: if their zones differ, their units must be the same."""
    has_zones = (left.tz is None, right.tz is None)
    return has_zones[0] == has_zones[1] and (left.tz == right.tz or left.unit == right.unit)


def _instant(scalar: Any) -> datetime:
    """Returns a timestamp of any unit, in UTC if it has a zone."""
    seconds, rest = divmod(scalar.value, _PER_SECOND[scalar.type.unit])
    micros, lost = divmod(rest * 1_000_000, _PER_SECOND[scalar.type.unit])
    if lost:
        raise NotTranslated
    moment = _EPOCH + timedelta(seconds=seconds, microseconds=micros)
    return moment if scalar.type.tz is None else moment.replace(tzinfo=timezone.utc)


def _sides(node: Node, function: str) -> tuple[Node, Node] | None:
    match node:
        case Call(found, [left, right], _) if found == function:
            return left, right
    return None


def _built(entries: list[tuple[str, str]], constants: list[Any]) -> Node:
    """Returns the tree that metadata describe. In the metadata, the entry of a call is followed by its arguments, its
    options and an end entry.
    """
    top = Call("", [], {})
    open_calls = [top]
    nested: list[tuple[int, list[str]]] = []
    for kind, value in entries:
        if kind == "nested_field_ref":
            nested.append((int(value), []))
            continue
        if kind == "field_ref" and nested:
            count, parts = nested[-1]
            parts.append(value)
            if len(parts) < count:
                continue
            nested.pop()
            if nested:
                raise NotTranslated  # A nested field reference is a path inside another path.
            open_calls[-1].arguments.append(Field(tuple(parts)))
        elif kind == "field_ref":
            open_calls[-1].arguments.append(Field((value,)))
        elif kind == "literal":
            open_calls[-1].arguments.append(Constant(constants[int(value)][0]))
        elif kind == "call":
            call = Call(value, [], {})
            open_calls[-1].arguments.append(call)
            open_calls.append(call)
        elif kind == "options":
            open_calls[-1].options.update(_options(constants[int(value)][0]))
        elif kind == "end" and open_calls[-1].function == value and len(open_calls) > 1:
            open_calls.pop()
        else:
            raise NotTranslated
    [root] = top.arguments
    if len(open_calls) > 1 or nested:
        raise NotTranslated
    return root


def _options(scalar: Any) -> dict[str, Any]:
    """Returns the options of a function as Python values; scalars that have no Python value are returned unchanged."""
    found = {}
    for field in scalar.type:
        value = scalar[field.name]
        found[field.name] = value.as_py() if str(value.type) in ("bool", "string") else value
    return found


def _metadata(message: bytes) -> list[tuple[str, str]]:
    """Returns the metadata of a schema in their original order and with repeated keys, which pyarrow's own API does not
    provide.

    `message` is a table `Message` of Arrow's format, in FlatBuffers: the header is its third field, and the metadata is
    the third field of the header `Schema`.
    """

    def number(form: str, place: int) -> int:
        found: int = struct.unpack_from(form, message, place)[0]
        return found

    def followed(place: int) -> int:
        return place + number("<I", place)

    def field(table: int, index: int) -> int:
        known = table - number("<i", table)
        at = 4 + 2 * index
        offset = number("<H", known + at) if at < number("<H", known) else 0
        if not offset:
            raise NotTranslated
        return followed(table + offset)

    def text(place: int) -> str:
        return message[place + 4 : place + 4 + number("<I", place)].decode()

    entries = field(field(followed(0), 2), 2)
    found = []
    for index in range(number("<I", entries)):
        entry = followed(entries + 4 + 4 * index)
        found.append((text(field(entry, 0)), text(field(entry, 1))))
    return found
