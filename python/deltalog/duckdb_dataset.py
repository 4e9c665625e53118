"""The source for DuckDB 1 where pyarrow is installed: a pyarrow dataset, to which DuckDB passes columns and a filter.

DuckDB 1 does not evaluate such a filter again, and pyarrow compares floating-point numbers in another way than SQL: NaN
is not greater than other numbers, and -0.0 is not in a list with 0.0. So a filter on floating-point numbers is replaced
by one that selects in pyarrow what the original filter selects in SQL.

DuckDB 1.5.0 to 1.5.2 pass the filter `x IS NULL` for `ORDER BY x NULLS FIRST LIMIT 10`, because they lose the other
half of an OR. So IS NULL filters are ignored. No rows are wrong because of this: DuckDB evaluates the IS NULL of a
WHERE itself and does not pass it.
"""

import functools
import math
import operator
from typing import Any

from deltalog.conditions import NotTranslated, Rows
from deltalog.errors import UnsupportedFeatureError, hinted
from deltalog.pyarrow import table_dataset
from deltalog.pyarrow_conditions import (
    Call,
    Constant,
    Field,
    Node,
    conjuncts,
    field_type,
    fields,
    operands,
    tree,
)

__all__ = ["source"]

_COMPARISONS = {
    "equal": operator.eq,
    "not_equal": operator.ne,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
}


def source(rows: Rows) -> Any:
    """Returns a dataset of the rows, for DuckDB 1."""
    return _source_class()(rows, None, None)


@functools.cache
def _source_class() -> Any:
    """Returns the class of sources. It is defined inside this function because its base class needs pyarrow."""

    class Source(table_dataset()):  # type: ignore[misc]
        """The rows of a table at one version. DuckDB only calls `scanner`."""

        def scanner(self, columns: Any = None, filter: Any = None, **options: Any) -> Any:  # noqa: A002
            """Returns a scanner of the rows that a filter of DuckDB selects."""
            as_in_sql = None if filter is None else _as_in_sql(filter, self.schema)
            return super().scanner(columns, as_in_sql, **options)

    return Source


def _as_in_sql(expression: Any, schema: Any) -> Any:
    """Returns an expression that is true in pyarrow for the rows for which DuckDB's filter is true in SQL, or None for
    all rows.

    Raises:
        UnsupportedFeatureError: the filter has an unknown form, so its columns or comparisons are unknown.
    """
    try:
        whole = tree(expression)
        parts = conjuncts(whole)
        needed = [part for part in parts if not _is_null(part)]
        has_floats = any(_has_floats(schema.field(name).type) for name in fields(whole))
        has_constants = any(isinstance(part, Constant) for part in _conditions(whole))
        if has_floats or has_constants or len(needed) < len(parts):
            built = (_built(part, schema) for part in needed)
            return functools.reduce(operator.and_, built) if needed else None
        return expression
    except (NotTranslated, LookupError) as error:
        refused = UnsupportedFeatureError(f"DuckDB 1 passes a filter of an unknown form: {expression}")
        raise hinted(refused, "install DuckDB 2 or newer: pip install 'duckdb>=2'") from error


def _built(node: Node, schema: Any) -> Any:
    import pyarrow.dataset

    match node:
        case Call("and_kleene" | "or_kleene" as function, _, _):
            joined = operator.and_ if function == "and_kleene" else operator.or_
            return functools.reduce(joined, (_built(part, schema) for part in operands(node, function)))
        case Call("invert", [Call("is_nan", [Field(parts)], _)], _):
            return ~pyarrow.dataset.field(parts).is_nan()
        case Call("is_valid", [Field(parts)], _):
            return pyarrow.dataset.field(parts).is_valid()
        case Call("is_null", [Field(parts)], _) if _is_null(node):
            return pyarrow.dataset.field(parts).is_null()
        case Call("is_nan", [Field(parts)], _):
            return pyarrow.dataset.field(parts).is_nan()
        case Call("is_in", [Field(parts) as field], {"value_set": value_set}):
            if _has_floats(field_type(field, schema)):
                return _among(field, value_set.values, schema)
            return pyarrow.dataset.field(parts).isin(value_set.values)
        case Call(function, [Field(parts) as field, Constant(value)], _) if function in _COMPARISONS:
            compared = _COMPARISONS[function](pyarrow.dataset.field(parts), pyarrow.dataset.scalar(value))
            if function.startswith("greater") and _has_floats(field_type(field, schema)):
                return compared | pyarrow.dataset.field(parts).is_nan()
            return compared
        case Constant(value) if value.as_py() is False:
            return pyarrow.dataset.scalar(False)
    # DuckDB 1 passes the constant true for `x <= 'nan'`. The constant would also select rows in which x is NULL.
    raise NotTranslated


def _conditions(node: Node) -> list[Node]:
    """Returns the conditions that are joined by ANDs and ORs."""
    found, rest = [], [node]
    while rest:
        match rest.pop():
            case Call("and_kleene" | "or_kleene", parts, _):
                rest += parts
            case part:
                found.append(part)
    return found


def _is_null(node: Node) -> bool:
    match node:
        case Call("is_null", [Field()], {"nan_is_null": False}):
            return True
    return False


def _among(field: Field, value_set: Any, schema: Any) -> Any:
    """Returns the expression for a floating-point number in a list. A null in the list selects no rows."""
    import pyarrow
    import pyarrow.dataset

    values = value_set.drop_null().to_pylist()
    if 0.0 in values:
        values += [0.0, -0.0]
    numbers = [value for value in values if not math.isnan(value)]
    found = pyarrow.dataset.field(field.parts)
    among = found.isin(pyarrow.array(numbers, field_type(field, schema)))
    return among if len(numbers) == len(values) else among | found.is_nan()


def _has_floats(kind: Any) -> bool:
    """Returns whether a type is a floating-point type, or a struct that contains one."""
    import pyarrow.types

    if pyarrow.types.is_struct(kind):
        return any(_has_floats(field.type) for field in kind)
    return bool(pyarrow.types.is_floating(kind))
