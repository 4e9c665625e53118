"""The schema of a table, in the protocol's terms and in Arrow's."""

import json
from typing import Any

from deltalog._internal import schema_from_arrow, schema_to_arrow
from deltalog.errors import InvalidArgumentError

__all__ = ["Schema"]


class Schema:
    """A table's schema. Hands itself to Arrow libraries: `pyarrow.schema(table.schema())`."""

    def __init__(self, text: str) -> None:
        self._text = text

    @classmethod
    def from_json(cls, text: str) -> "Schema":
        """The schema in Delta's JSON form, which is also Spark's."""
        schema_to_arrow(text)
        return cls(text)

    @classmethod
    def from_arrow(cls, schema: Any) -> "Schema":
        """The schema of anything with `__arrow_c_schema__`, such as a `pyarrow.Schema`."""
        if not hasattr(schema, "__arrow_c_schema__"):
            raise InvalidArgumentError(
                f"a schema is anything with __arrow_c_schema__, such as a pyarrow.Schema, not {schema!r}"
            )
        return cls(schema_from_arrow(schema))

    def to_json(self) -> str:
        """Delta's JSON form, byte for byte as the log has it."""
        return self._text

    @property
    def names(self) -> list[str]:
        """The top-level columns, in order."""
        return [field["name"] for field in json.loads(self._text).get("fields", ())]

    def __arrow_c_schema__(self) -> object:
        return schema_to_arrow(self._text).__arrow_c_schema__()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and json.loads(self._text) == json.loads(other._text)

    def __hash__(self) -> int:
        return hash(json.dumps(json.loads(self._text), sort_keys=True))

    def __repr__(self) -> str:
        fields = json.loads(self._text).get("fields", ())
        shown = ", ".join(
            f"{field['name']}: {_type(field['type'])}{'' if field['nullable'] else ' not null'}"
            for field in fields
        )
        return f"Schema({shown})"


def _type(kind: Any) -> str:
    """A type as Spark's SQL would have it."""
    if isinstance(kind, str):
        return kind
    if kind["type"] == "struct":
        return f"struct<{', '.join(field['name'] + ': ' + _type(field['type']) for field in kind['fields'])}>"
    if kind["type"] == "array":
        return f"array<{_type(kind['elementType'])}>"
    return f"map<{_type(kind['keyType'])}, {_type(kind['valueType'])}>"
