"""Parses definitions of columns as in SQL, such as `id bigint not null, tags array<string>`."""

import re
from typing import TYPE_CHECKING

from deltalog.cli.failures import UsageError

if TYPE_CHECKING:
    from deltalog.schema import DataType, Field

__all__ = ["field_of", "fields_of", "name_and_rest"]

_SYNONYMS = {
    "bigint": "long",
    "bool": "boolean",
    "dec": "decimal",
    "int": "integer",
    "numeric": "decimal",
    "real": "float",
    "smallint": "short",
    "timestamp_ltz": "timestamp",
    "tinyint": "byte",
}
"""The SQL names of types, with the names of the same types in a table's log."""

_TOKEN = re.compile(r"\s*(?:`((?:[^`]|``)+)`|(\w+)|([<>(),:]))\s*")
_DEEPEST = 50


class _Reader:
    """Reads a definition token by token."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[tuple[str, str]] = []
        """The remaining tokens in reverse order. Each has a kind: `name` (in backticks), `word`, or `mark`."""
        at = 0
        while at < len(text.rstrip()):
            found = _TOKEN.match(text, at)
            if found is None:
                raise self.wrong(f"near {text[at : at + 20].strip()!r}")
            if found[1] is not None:
                self.tokens.append(("name", found[1].replace("``", "`")))
            else:
                self.tokens.append(("word", found[2]) if found[2] is not None else ("mark", found[3]))
            at = found.end()
        self.tokens.reverse()

    def wrong(self, where: str) -> UsageError:
        return UsageError(
            f"{self.text!r} does not define columns: {where}; write it as 'id bigint not null, tags array<string>'"
        )

    def take(self) -> tuple[str, str]:
        if not self.tokens:
            raise self.wrong("it ends too early")
        return self.tokens.pop()

    def has(self, *words: str) -> bool:
        """Returns whether `words` are the next tokens, and removes them if so."""
        coming = [token for _, token in self.tokens[-1 : -1 - len(words) : -1]]
        if [token.lower() for token in coming] != list(words):
            return False
        del self.tokens[-len(words) :]
        return True

    def expect(self, mark: str) -> None:
        kind, token = self.take()
        if kind == "name" or token != mark:
            raise self.wrong(f"near {token!r}, where {mark!r} is expected")

    def name(self) -> str:
        kind, token = self.take()
        if kind == "mark":
            raise self.wrong(f"near {token!r}, where a name is expected")
        return token

    def type(self, depth: int = 0) -> "DataType | str":
        from deltalog.schema import ArrayType, MapType, StructType

        if depth > _DEEPEST:
            raise self.wrong("types are nested too deeply")
        kind, token = self.take()
        if kind != "word":
            raise self.wrong(f"near {token!r}, where a type is expected")
        word = token.lower()
        if word == "array" and self.has("<"):
            element = self.type(depth + 1)
            self.expect(">")
            return ArrayType(element)
        if word == "map" and self.has("<"):
            key = self.type(depth + 1)
            self.expect(",")
            value = self.type(depth + 1)
            self.expect(">")
            return MapType(key, value)
        if word == "struct" and self.has("<"):
            return StructType(self.fields(depth + 1, ">"))
        if self.has("("):
            arguments = [self.name()]
            while self.has(","):
                arguments.append(self.name())
            self.expect(")")
            return f"{_SYNONYMS.get(word, word)}({','.join(arguments)})"
        word = _SYNONYMS.get(word, word)
        return "decimal(10,0)" if word == "decimal" else word

    def field(self, depth: int) -> "Field":
        from deltalog.schema import Field

        name = self.name()
        self.has(":")
        kind = self.type(depth)
        return Field(name, kind, nullable=not self.has("not", "null"))

    def fields(self, depth: int, end: str | None) -> "list[Field]":
        """Reads fields up to the mark `end`; if it is None, up to the end of the definition."""
        fields = [self.field(depth)]
        while self.has(","):
            fields.append(self.field(depth))
        if end is not None:
            self.expect(end)
        elif self.tokens:
            raise self.wrong(f"near {self.tokens[-1][1]!r}")
        return fields


def fields_of(text: str) -> "list[Field]":
    """Returns the columns of a definition."""
    return _Reader(text).fields(0, None)


def field_of(text: str) -> "Field":
    """Returns the column of a definition. Raises an error if it does not define exactly one column."""
    fields = fields_of(text)
    if len(fields) != 1:
        raise UsageError(f"{text!r} defines {len(fields)} columns, where one is expected")
    return fields[0]


def name_and_rest(text: str) -> tuple[str, str]:
    """Splits a definition into the path of a column, which may contain dots and backticks, and the rest."""
    found = re.match(r"\s*((?:`(?:[^`]|``)+`|[^\s`])+)\s+(.+)", text, re.DOTALL)
    if found is None:
        raise UsageError(f"{text!r} does not name a column and its type, such as 'id bigint'")
    return found[1], found[2]
