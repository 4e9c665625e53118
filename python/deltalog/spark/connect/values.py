"""The new values that the clauses of a statement assign to columns."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from itertools import chain
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType, VariantType

from deltalog._internal import default_value
from deltalog.spark.connect.fit import fitted
from deltalog.spark.connect.target import Table, as_column, named
from deltalog.spark.errors import InvalidArgumentError, UnsupportedFeatureError

_PART = re.compile(r"\s*(?:`((?:[^`]|``)+)`|([^.`]+))\s*(?:\.|$)")
_DEFAULT = "CURRENT_DEFAULT"

# An assigned value, or assigned values of a struct's fields by their names in lower case.
_Tree = dict[str, Any]


class Assignments:
    """The values of one clause, by columns."""

    def __init__(self, table: Table, alias: str | None, values: Mapping[str, str | Column]) -> None:
        self._table = table
        self._tree: _Tree = {}
        for name, value in values.items():
            self._add(_parts(name), alias, name, value)

    @classmethod
    def all_of(cls, table: Table, source: DataFrame) -> "Assignments":
        """Returns the values of a clause with `*`: each column gets the value of the source column with its name."""
        given = {name.lower(): name for name in source.columns}
        missing = [name for name in table.schema.fieldNames() if name.lower() not in given]
        if missing:
            raise InvalidArgumentError(
                f"the source of the merge has no column {missing[0]}, which the table {table.uri} has: name the "
                "columns in the clause, or add the column to the source"
            )
        made = cls(table, None, {})
        made._tree = {name.lower(): named(source, given[name.lower()]) for name in table.schema.fieldNames()}
        return made

    def _add(self, parts: list[str], alias: str | None, name: str, value: str | Column) -> None:
        if alias is not None and len(parts) > 1 and parts[0].lower() == alias.lower():
            parts = parts[1:]
        field = self._table.column(parts[0])
        kind: DataType = field.dataType
        for part in parts[1:]:
            inner = (
                {field.name.lower(): field for field in kind.fields} if isinstance(kind, StructType) else {}
            )
            if part.lower() not in inner:
                raise InvalidArgumentError(f"the table {self._table.uri} has no column {name}")
            field = inner[part.lower()]
            kind = field.dataType
        tree = self._tree
        keys = [part.lower() for part in parts]
        for key in keys[:-1]:
            tree = tree.setdefault(key, {})
            if not isinstance(tree, dict):
                raise InvalidArgumentError(f"the column {name} is assigned twice, as a whole and in part")
        if keys[-1] in tree:
            raise InvalidArgumentError(f"the column {name} is assigned twice")
        is_default = isinstance(value, str) and value.strip().upper() == "DEFAULT"
        tree[keys[-1]] = default_of(field) if is_default else as_column(value)

    @property
    def columns(self) -> set[str]:
        """The columns, in lower case, to which a value is assigned as a whole or in part."""
        return set(self._tree)

    @property
    def values(self) -> list[Column]:
        """The assigned values in their original order."""
        return _values(self._tree)

    def fit(self, types: Iterable[DataType]) -> None:
        """Casts the values, which have these types, to the types of their columns.

        Raises `SchemaMismatchError` for a value that its column cannot store.
        """
        given = iter(types)
        for name, node in self._tree.items():
            field = self._table.column(name)
            self._tree[name] = _fitted(node, given, field.dataType, field.name)

    def updated(self, field: StructField, old: Column) -> Column | None:
        """Returns the new value of a column whose old value is `old`; None if no value is assigned to it."""
        node = self._tree.get(field.name.lower())
        return None if node is None else _merged(node, field.dataType, old)

    def inserted(self, field: StructField) -> Column:
        """Returns the value of a column in a new row, which is the default value if no value is assigned."""
        node = self._tree.get(field.name.lower())
        if isinstance(node, dict):
            raise UnsupportedFeatureError(
                f"fields of the column {field.name} cannot be given alone to new rows: give it a whole struct"
            )
        return default_of(field).cast(field.dataType) if node is None else node


def default_of(field: StructField) -> Column:
    """Returns the default value of a column, which is NULL if it has none.

    The expression may come from an attacker. So the client computes it with deltalog's evaluator and sends the value to
    the server, because the server's own parser and functions can access more than a table should.
    """
    sql = (field.metadata or {}).get(_DEFAULT)
    if sql is None:
        return sf.lit(None)
    if isinstance(field.dataType, VariantType):
        raise UnsupportedFeatureError(
            f"the default value ({sql}) of the column {field.name}, which is a variant, is not supported under Spark "
            "Connect: give a value for the column"
        )
    schema = json.dumps({"type": "struct", "fields": [field.jsonValue()]})
    return _literal(pa.table(default_value(schema, sql))["value"][0].as_py(), field.dataType)


def _literal(value: Any, kind: DataType) -> Column:
    """Returns a pyarrow value as a Spark literal."""
    literal: Column
    if value is None:
        literal = sf.lit(None)
    elif isinstance(kind, ArrayType):
        literal = sf.array(*(_literal(item, kind.elementType) for item in value))
    elif isinstance(kind, MapType):
        pairs = ((_literal(key, kind.keyType), _literal(item, kind.valueType)) for key, item in value)
        literal = sf.create_map(*chain.from_iterable(pairs))
    elif isinstance(kind, StructType):
        literal = sf.struct(*(_literal(value[part.name], part.dataType).alias(part.name) for part in kind))
    else:
        # A timestamp is passed as text, because Spark would convert a literal from the client's time zone.
        literal = sf.lit(value.isoformat() if isinstance(value, datetime) else value)
    return literal.cast(kind)


def _parts(name: str) -> list[str]:
    parts, at = [], 0
    while at < len(name):
        found = _PART.match(name, at)
        if found is None:
            break
        parts.append(found[1].replace("``", "`") if found[1] else found[2].strip())
        at = found.end()
    if at < len(name) or not parts:
        raise InvalidArgumentError(f"{name!r} is not the name of a column")
    return parts


def _values(node: Any) -> list[Column]:
    if isinstance(node, dict):
        return [value for inner in node.values() for value in _values(inner)]
    return [node]


def _fitted(node: Any, types: Iterator[DataType], kind: DataType, name: str) -> Any:
    if not isinstance(node, dict):
        return fitted(node, next(types), kind, name)
    fields = {field.name.lower(): field for field in kind.fields} if isinstance(kind, StructType) else {}
    return {
        key: _fitted(inner, types, fields[key].dataType, f"{name}.{fields[key].name}")
        for key, inner in node.items()
    }


def _merged(node: Any, kind: DataType, old: Column) -> Column:
    if not isinstance(node, dict) or not isinstance(kind, StructType):
        value: Column = node
        return value
    fields = []
    for field in kind.fields:
        before = old.getField(field.name)
        inner = node.get(field.name.lower())
        value = before if inner is None else _merged(inner, field.dataType, before)
        fields.append(value.alias(field.name))
    return sf.struct(*fields)
