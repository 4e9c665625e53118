"""The schema of a table, with the protocol's types, and conversions from and to Arrow."""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from deltalog._internal import schema_from_arrow, schema_to_arrow
from deltalog.arguments import text_argument, whole_argument
from deltalog.arrow_types import ArrowSchemaExportable
from deltalog.checked import checks_arguments, is_text
from deltalog.errors import (
    CorruptLogError,
    DeltaError,
    InvalidArgumentError,
    UnsupportedFeatureError,
    hinted,
    wrong_argument,
)
from deltalog.html import Facts

__all__ = ["ArrayType", "DataType", "Field", "Identity", "MapType", "PrimitiveType", "Schema", "StructType"]


class _Json(ABC):
    """The base class of schemas, fields and types. They are compared and hashed by their JSON form."""

    @abstractmethod
    def _json(self) -> Any: ...

    def to_json(self) -> str:
        """Returns Delta's JSON form, which is also Spark's."""
        return json.dumps(self._json(), ensure_ascii=False, separators=(",", ":"))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self._json() == other._json()

    def __hash__(self) -> int:
        return hash(json.dumps(self._json(), sort_keys=True))


class PrimitiveType(_Json):
    """A type without nested types, such as `long`, `string` or `decimal(9,2)`."""

    def __init__(self, data_type: str) -> None:
        self.type = primitive_argument(data_type, "data_type")

    def _json(self) -> str:
        return self.type

    def __str__(self) -> str:
        return self.type

    def __repr__(self) -> str:
        return f'PrimitiveType("{self.type}")'


@checks_arguments
class ArrayType(_Json):
    """An array whose elements are all of one type."""

    type = "array"

    def __init__(self, element_type: "DataType | str", contains_null: bool = True) -> None:
        self.element_type = _type_of(element_type, "element_type")
        self.contains_null = contains_null

    def _json(self) -> dict[str, Any]:
        element = self.element_type._json()
        return {"type": self.type, "elementType": element, "containsNull": self.contains_null}

    def __str__(self) -> str:
        return f"array<{self.element_type}>"

    def __repr__(self) -> str:
        return f"ArrayType({self.element_type!r}, contains_null={self.contains_null})"


@checks_arguments
class MapType(_Json):
    """A map from keys of one type to values of one type."""

    type = "map"

    def __init__(
        self, key_type: "DataType | str", value_type: "DataType | str", value_contains_null: bool = True
    ) -> None:
        self.key_type = _type_of(key_type, "key_type")
        self.value_type = _type_of(value_type, "value_type")
        self.value_contains_null = value_contains_null

    def _json(self) -> dict[str, Any]:
        return {
            "type": self.type,
            "keyType": self.key_type._json(),
            "valueType": self.value_type._json(),
            "valueContainsNull": self.value_contains_null,
        }

    def __str__(self) -> str:
        return f"map<{self.key_type}, {self.value_type}>"

    def __repr__(self) -> str:
        nulls = self.value_contains_null
        return f"MapType({self.key_type!r}, {self.value_type!r}, value_contains_null={nulls})"


class StructType(_Json):
    """A struct of named fields, each with its own type."""

    type = "struct"

    def __init__(self, fields: "Sequence[Field]") -> None:
        self.fields = fields_argument(fields)

    def _json(self) -> dict[str, Any]:
        return {"type": self.type, "fields": [field._json() for field in self.fields]}

    def __str__(self) -> str:
        return f"struct<{', '.join(f'{field.name}: {field.type}' for field in self.fields)}>"

    def __repr__(self) -> str:
        return f"StructType({self.fields!r})"


DataType: TypeAlias = PrimitiveType | ArrayType | MapType | StructType
"""Any type that a field can have."""


@checks_arguments
@dataclass(frozen=True)
class Identity:
    """How the values of an identity column are generated (protocol: "Identity Columns")."""

    start: int = 1
    """The first value."""
    step: int = 1
    """The difference between two values, which may be negative."""
    allow_explicit_insert: bool = False
    """Whether writers may set values explicitly."""

    def __post_init__(self) -> None:
        whole_argument(self.start, "start", "a 64-bit integer")
        if whole_argument(self.step, "step", "a nonzero 64-bit integer") == 0:
            raise wrong_argument("step", self.step, "a nonzero 64-bit integer")


@checks_arguments
class Field(_Json):
    """A column, or a field of a struct.

    Columns of a table that is to be created (`DeltaTable.create`) may have one of the rules `generated_as`, `default`
    and `identity`. The rules are stored in `metadata`, under the protocol's keys.

    Args:
        name: the name.
        type: the type.
        nullable: whether values may be NULL.
        metadata: additional information about the column.
        comment: a description for people.
        generated_as: an expression in Spark's SQL that computes the values from other columns (protocol: "Generated
            Columns").
        default: an expression in Spark's SQL without columns, whose value is used if a write does not include the
            column (protocol: "Default Columns").
        identity: makes writers generate increasing or decreasing numbers; the type is `long`.
    """

    def __init__(
        self,
        name: str,
        type: DataType | str,  # noqa: A002
        nullable: bool = True,
        metadata: dict[str, Any] | None = None,
        *,
        comment: str | None = None,
        generated_as: str | None = None,
        default: str | None = None,
        identity: Identity | None = None,
    ) -> None:
        self.name = name
        self.type = _type_of(type, "type")
        self.nullable = nullable
        texts = {"comment": comment, "delta.generationExpression": generated_as, "CURRENT_DEFAULT": default}
        self.metadata = _metadata(metadata)
        self.metadata |= {key: text for key, text in texts.items() if text is not None}
        if identity is not None:
            if not isinstance(identity, Identity):
                raise wrong_argument("identity", identity, "an Identity, such as Identity(start=1)")
            self.metadata["delta.identity.start"] = int(identity.start)
            self.metadata["delta.identity.step"] = int(identity.step)
            self.metadata["delta.identity.allowExplicitInsert"] = identity.allow_explicit_insert

    def _json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "type": self.type._json(),
            "nullable": self.nullable,
            "metadata": self.metadata,
        }

    def __repr__(self) -> str:
        metadata = f", metadata={self.metadata}" if self.metadata else ""
        return f"Field({self.name}, {self.type!r}, nullable={self.nullable}{metadata})"


class Schema(Facts):
    """The schema of a table: `Schema([Field("id", "long", nullable=False), Field("name", "string")])`.

    Arrow libraries accept it directly: `pyarrow.schema(table.schema())`. In Arrow, the metadata of fields are strings.
    As in `deltalake`, other values are converted to JSON, and `from_arrow` returns the same schema again.
    """

    def __init__(self, fields: Sequence[Field]) -> None:
        self._text = StructType(fields).to_json()
        _check(self._text)

    @classmethod
    def from_json(cls, text: str) -> "Schema":
        """Creates a schema from Delta's JSON form, which is also Spark's."""
        _check(text_argument("text", text, _JSON))
        return cls._of(text)

    @classmethod
    def from_arrow(cls, schema: ArrowSchemaExportable) -> "Schema":
        """Creates a schema from an object with `__arrow_c_schema__`, such as a `pyarrow.Schema`.

        The metadata of fields, at every depth, become Delta's: comments, `delta.generationExpression`,
        `delta.invariants`, `CURRENT_DEFAULT`, the metadata of identity columns, lengths of strings, and unknown keys.
        Keys of Arrow itself (`ARROW:…`, `PARQUET:…`) and of the schema as a whole (`pandas`) are dropped.
        """
        if not hasattr(schema, "__arrow_c_schema__"):
            raise wrong_argument("schema", schema, _SCHEMA)
        return cls._of(schema_from_arrow(schema))

    @classmethod
    def _of(cls, text: str) -> "Schema":
        """Creates a schema from JSON that was already checked."""
        schema = cls.__new__(cls)
        schema._text = text
        return schema

    def to_json(self) -> str:
        """Returns Delta's JSON form. For the schema of a table, it is byte for byte the same as in the log."""
        return self._text

    def to_arrow(self) -> ArrowSchemaExportable:
        """Returns the schema for Arrow libraries. They also accept this object directly: `pyarrow.schema(schema)`."""
        exported: ArrowSchemaExportable = schema_to_arrow(self._text)
        return exported

    @property
    def fields(self) -> list[Field]:
        """The top-level columns, in order, with their types, nullability and metadata."""
        return [_field(field) for field in json.loads(self._text).get("fields", ())]

    @property
    def names(self) -> list[str]:
        """The names of the top-level columns, in order."""
        return [field.name for field in self.fields]

    def _facts(self) -> Iterator[tuple[str, object]]:
        for field in self.fields:
            yield field.name, f"{field.type}{'' if field.nullable else ' not null'}"

    def __arrow_c_schema__(self) -> object:
        return schema_to_arrow(self._text).__arrow_c_schema__()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and json.loads(self._text) == json.loads(other._text)

    def __hash__(self) -> int:
        return hash(json.dumps(json.loads(self._text), sort_keys=True))

    def __repr__(self) -> str:
        shown = ", ".join(
            f"{field.name}: {field.type}{'' if field.nullable else ' not null'}" for field in self.fields
        )
        return f"Schema({shown})"


_SCHEMA = "a deltalog.Schema, or an object with __arrow_c_schema__, such as a pyarrow.Schema"


def schema_argument(schema: object, name: str = "schema") -> Schema:
    """Converts a schema that a user passes as the parameter `name`."""
    if isinstance(schema, Schema):
        return schema
    if not hasattr(schema, "__arrow_c_schema__"):
        raise wrong_argument(name, schema, _SCHEMA)
    return Schema.from_arrow(schema)


def fields_argument(fields: object) -> list[Field]:
    """Checks and returns the fields that a user passes."""
    expected = "a list of Field, such as [Field('id', 'long')]"
    if isinstance(fields, (str, bytes)) or not isinstance(fields, Iterable):
        raise wrong_argument("fields", fields, expected)
    given = list(fields)
    found = [field for field in given if isinstance(field, Field)]
    if len(found) < len(given):
        raise wrong_argument("fields", fields, expected)
    return found


def primitive_argument(data_type: object, name: str) -> str:
    """Checks and returns the name of a primitive type that a user passes as the parameter `name`."""
    if is_text(data_type):
        field = {"name": "field", "type": data_type, "nullable": True, "metadata": {}}
        try:
            schema_to_arrow(json.dumps({"type": "struct", "fields": [field]}))
        except DeltaError as error:
            raise wrong_argument(name, data_type, f"one of {_PRIMITIVES}") from error
        return data_type
    raise wrong_argument(name, data_type, f"the name of a primitive type: one of {_PRIMITIVES}")


_PRIMITIVES = (
    "string, long, integer, short, byte, float, double, decimal(10,2), boolean, binary, date, timestamp, timestamp_ntz "
    "and variant"
)


def _metadata(metadata: object) -> dict[str, Any]:
    """Checks and returns the metadata that a user passes for a field."""
    if metadata is None:
        return {}
    expected = "a dictionary of strings to values that JSON can represent"
    if not isinstance(metadata, Mapping) or not all(map(is_text, metadata)):
        raise wrong_argument("metadata", metadata, expected)
    try:
        is_json = is_text(json.dumps(dict(metadata), allow_nan=False, ensure_ascii=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise wrong_argument("metadata", metadata, expected) from error
    if not is_json:
        raise wrong_argument("metadata", metadata, expected)
    return dict(metadata)


def _type_of(kind: object, name: str) -> DataType:
    if isinstance(kind, str):
        return _primitive(primitive_argument(kind, name))
    if isinstance(kind, (PrimitiveType, ArrayType, MapType, StructType)):
        return kind
    expected = "the name of a primitive type, or a PrimitiveType, ArrayType, MapType or StructType"
    raise wrong_argument(name, kind, expected)


_JSON = "the JSON form of a schema, as to_json() returns it"


def _check(text: str) -> None:
    """Raises an error if the schema is invalid."""
    try:
        schema_to_arrow(text)
    except CorruptLogError as error:
        refused = InvalidArgumentError(str(error))
        if error.hint is None:
            raise hinted(refused, f"pass {_JSON}") from error
        refused.hint = error.hint
        raise refused from error
    except UnsupportedFeatureError as error:
        raise error if error.hint else hinted(error, f"use one of the types {_PRIMITIVES}") from None


def _field(read: dict[str, Any]) -> Field:
    return Field(read["name"], _type(read["type"]), read.get("nullable", True), read.get("metadata"))


def _type(read: Any) -> DataType:
    """Returns a type from its JSON form, which was checked when the schema was created."""
    if isinstance(read, str):
        return _primitive(read)
    if read["type"] == "struct":
        return StructType([_field(field) for field in read["fields"]])
    if read["type"] == "array":
        return ArrayType(_type(read["elementType"]), read.get("containsNull", True))
    if read["type"] == "map":
        contains_null = read.get("valueContainsNull", True)
        return MapType(_type(read["keyType"]), _type(read["valueType"]), contains_null)
    return _primitive(read["type"])


def _primitive(name: str) -> PrimitiveType:
    """Returns a primitive type without checking its name again."""
    kind = PrimitiveType.__new__(PrimitiveType)
    kind.type = name
    return kind
