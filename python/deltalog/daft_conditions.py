"""Translates Daft filters into SQL."""

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow
import pyarrow.types
from daft.expressions.visitor import PredicateVisitor

from deltalog.conditions import MOST_VALUES, NotTranslated, column, literal

__all__ = ["conjuncts"]


def conjuncts(predicate: Any, schema: pyarrow.Schema) -> list[str]:
    """Returns SQL for the conjuncts of a condition that have an exact equivalent. They are all true for the rows that
    the condition selects.
    """
    try:
        return [_Sql(schema).visit(predicate)]
    except NotTranslated:
        sides = _Sides().visit(predicate)
        return [] if sides is None else [text for side in sides for text in conjuncts(side, schema)]


class _Known(PredicateVisitor[Any]):  # type: ignore[misc]
    """A visitor that raises `NotTranslated` for every kind of expression that a subclass does not handle."""

    def _otherwise(self) -> Any:
        raise NotTranslated

    def _unknown(self, *_: Any) -> Any:
        return self._otherwise()

    visit_col = visit_lit = visit_alias = visit_cast = visit_function = visit_coalesce = _unknown
    visit_and = visit_or = visit_not = visit_is_in = visit_between = visit_is_null = visit_not_null = _unknown
    visit_equal = visit_not_equal = visit_less_than = visit_less_than_or_equal = _unknown
    visit_greater_than = visit_greater_than_or_equal = _unknown


class _Sides(_Known):
    """Returns the two sides of an AND, or None if the expression is not an AND."""

    def _otherwise(self) -> Any:
        return None

    def visit_and(self, left: Any, right: Any) -> Any:
        return left, right


class _Column(_Known):
    """Returns the name of a column."""

    def visit_col(self, name: str) -> str:
        return name


class _Value(_Known):
    """Returns the value of a literal."""

    def visit_lit(self, value: Any) -> Any:
        return value


class _Sql(_Known):
    """Returns the SQL of a condition on single columns.

    Conditions on columns of floats and timestamps are not translated: libraries order NaN differently, and timestamps
    have units and zones.
    """

    def __init__(self, schema: pyarrow.Schema) -> None:
        self._schema = schema

    def visit_col(self, name: str) -> str:
        if not pyarrow.types.is_boolean(self._schema.field(name).type):
            raise NotTranslated
        return column(name)

    def visit_and(self, left: Any, right: Any) -> str:
        return f"({self.visit(left)} AND {self.visit(right)})"

    def visit_or(self, left: Any, right: Any) -> str:
        return f"({self.visit(left)} OR {self.visit(right)})"

    def visit_not(self, expr: Any) -> str:
        return f"(NOT {self.visit(expr)})"

    def visit_is_null(self, expr: Any) -> str:
        return f"({column(_Column().visit(expr))} IS NULL)"

    def visit_not_null(self, expr: Any) -> str:
        return f"({column(_Column().visit(expr))} IS NOT NULL)"

    def visit_equal(self, left: Any, right: Any) -> str:
        return self._comparison(left, "=", right)

    def visit_not_equal(self, left: Any, right: Any) -> str:
        return self._comparison(left, "<>", right)

    def visit_less_than(self, left: Any, right: Any) -> str:
        return self._comparison(left, "<", right)

    def visit_less_than_or_equal(self, left: Any, right: Any) -> str:
        return self._comparison(left, "<=", right)

    def visit_greater_than(self, left: Any, right: Any) -> str:
        return self._comparison(left, ">", right)

    def visit_greater_than_or_equal(self, left: Any, right: Any) -> str:
        return self._comparison(left, ">=", right)

    def visit_between(self, expr: Any, lower: Any, upper: Any) -> str:
        return f"({self._comparison(expr, '>=', lower)} AND {self._comparison(expr, '<=', upper)})"

    def visit_is_in(self, expr: Any, items: list[Any]) -> str:
        if not 0 < len(items) <= MOST_VALUES:
            raise NotTranslated
        name = _Column().visit(expr)
        return f"({column(name)} IN ({', '.join(self._literal(name, item) for item in items)}))"

    def _comparison(self, left: Any, operator: str, right: Any) -> str:
        try:
            name = _Column().visit(left)
        except NotTranslated:
            name = _Column().visit(right)
            return f"({self._literal(name, left)} {operator} {column(name)})"
        return f"({column(name)} {operator} {self._literal(name, right)})"

    def _literal(self, name: str, expr: Any) -> str:
        """Returns the SQL of a literal that is compared with a column, and checks that it has the type of the
        column.
        """
        value, kind = _Value().visit(expr), self._schema.field(name).type
        is_alike = (
            (pyarrow.types.is_integer(kind) and type(value) is int)
            or (pyarrow.types.is_boolean(kind) and type(value) is bool)
            or (pyarrow.types.is_decimal(kind) and isinstance(value, Decimal))
            or (pyarrow.types.is_date(kind) and isinstance(value, date) and not isinstance(value, datetime))
            or (_is_text(kind) and isinstance(value, str))
        )
        if not is_alike:
            raise NotTranslated
        return literal(value)


def _is_text(kind: pyarrow.DataType) -> bool:
    return bool(pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind))
