"""Converts values to the types of a table's columns, by Spark's rules for storing values (ANSI, its default).

Fields of structs are matched by name. A value that does not fit its column fails the statement, even in sessions in
which a cast would wrap it around or return NULL.
"""

from collections.abc import Callable

from pyspark.sql import Column
from pyspark.sql import functions as sf
from pyspark.sql.types import (
    ArrayType,
    AtomicType,
    BooleanType,
    DataType,
    DateType,
    MapType,
    NullType,
    NumericType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from deltalog.spark.errors import SchemaMismatchError

_TIMES = (DateType, TimestampType, TimestampNTZType)
# Casts of storable values to these types cannot fail.
_SAFE = (StringType, BooleanType)


def fitted(value: Column, kind: DataType, column: DataType, name: str) -> Column:
    """Casts a value of type `kind` to the type of the column `name`.

    Raises `SchemaMismatchError` if the column cannot store values of this type.
    """
    if same(kind, column):
        return value
    if isinstance(kind, NullType):
        return sf.lit(None).cast(column)
    if isinstance(column, StructType) and isinstance(kind, StructType):
        return _struct(value, kind, column, name)
    if isinstance(column, ArrayType) and isinstance(kind, ArrayType):
        return sf.transform(value, _element(kind.elementType, column.elementType, f"{name}.element"))
    if isinstance(column, MapType) and isinstance(kind, MapType):
        key = _element(kind.keyType, column.keyType, f"{name}.key")
        values = _element(kind.valueType, column.valueType, f"{name}.value")
        return sf.map_from_arrays(
            sf.transform(sf.map_keys(value), key), sf.transform(sf.map_values(value), values)
        )
    if not _is_storable(kind, column):
        raise SchemaMismatchError(
            f"a value of type {kind.simpleString()} cannot be stored in the column {name}, which has the type "
            f"{column.simpleString()}: cast it"
        )
    if isinstance(column, _SAFE):
        return value.cast(column)
    cast = value.try_cast(column)
    text = f"a value of type {kind.simpleString()} does not fit the column {name} ({column.simpleString()}): "
    refusal = sf.raise_error(sf.concat(sf.lit(text), value.cast("string"))).cast(column)
    return sf.when(value.isNotNull() & cast.isNull(), refusal).otherwise(cast)


def _element(kind: DataType, column: DataType, name: str) -> Callable[[Column], Column]:
    return lambda element: fitted(element, kind, column, name)


def _struct(value: Column, kind: StructType, column: StructType, name: str) -> Column:
    given = {field.name.lower(): field for field in kind.fields}
    extra = [field.name for field in kind.fields if field.name.lower() not in _names(column)]
    missing = [field.name for field in column.fields if field.name.lower() not in given]
    if extra or missing:
        what = f"has no field {extra[0]}" if extra else f"needs the field {missing[0]}"
        raise SchemaMismatchError(f"the column {name} {what}: a struct is stored by the names of its fields")
    fields = []
    for field in column.fields:
        found = given[field.name.lower()]
        part = fitted(value.getField(found.name), found.dataType, field.dataType, f"{name}.{field.name}")
        fields.append(part.alias(field.name))
    return sf.when(value.isNotNull(), sf.struct(*fields))


def _names(struct: StructType) -> set[str]:
    return {field.name.lower() for field in struct.fields}


def same(one: DataType, other: DataType) -> bool:
    """Returns whether two types are the same, ignoring nullability. The names of fields must have the same case."""
    if isinstance(one, StructType) and isinstance(other, StructType):
        return len(one.fields) == len(other.fields) and all(
            a.name == b.name and same(a.dataType, b.dataType)
            for a, b in zip(one.fields, other.fields, strict=True)
        )
    if isinstance(one, ArrayType) and isinstance(other, ArrayType):
        return same(one.elementType, other.elementType)
    if isinstance(one, MapType) and isinstance(other, MapType):
        return same(one.keyType, other.keyType) and same(one.valueType, other.valueType)
    return one == other


def _is_storable(kind: DataType, column: DataType) -> bool:
    if isinstance(column, StringType):
        return isinstance(kind, AtomicType)
    if isinstance(column, NumericType):
        return isinstance(kind, NumericType)
    return isinstance(column, _TIMES) and isinstance(kind, _TIMES)
