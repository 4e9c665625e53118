"""Shows results, plans and tables as HTML in notebooks.

Strings from a table are escaped, because the table may come from an untrusted source. The HTML loads no external
resources.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from html import escape

from deltalog.escape import visible

__all__ = ["Facts", "rows_html", "text_html"]

_MOST = 50
"""The maximum number of values of a list that are shown."""


class Facts:
    """The base class of results and plans, which notebooks show as a table of names and values."""

    def _facts(self) -> Iterator[tuple[str, object]]:
        """Yields the names and the values to show. By default, these are the fields of the dataclass."""
        for name in getattr(self, "__dataclass_fields__", ()):
            yield name, getattr(self, name)

    def _repr_html_(self) -> str:
        rows = ([name.replace("_", " "), _value(value)] for name, value in self._facts())
        return f"<div><strong>{text_html(type(self).__name__)}</strong>{rows_html(None, rows)}</div>"


def text_html(value: object) -> str:
    """Returns a value as escaped HTML."""
    return escape(visible(str(value)))


def rows_html(heads: Sequence[str] | None, rows: Iterable[Sequence[object]]) -> str:
    """Returns an HTML table."""
    head = "" if heads is None else f"<tr>{''.join(f'<th>{text_html(name)}</th>' for name in heads)}</tr>"
    lines = (f"<tr>{''.join(f'<td>{text_html(value)}</td>' for value in row)}</tr>" for row in rows)
    return f"<table>{head}{''.join(lines)}</table>"


def _value(value: object) -> str:
    """Returns a value formatted for people."""
    if value is None:
        return ""
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S} UTC"
    if isinstance(value, Mapping):
        return _listed([f"{name}: {_value(each)}" for name, each in value.items()])
    if isinstance(value, (list, tuple)):
        return _listed([_value(each) for each in value])
    return str(value)


def _listed(values: list[str]) -> str:
    more = [f"… and {len(values) - _MOST:,} more"] if len(values) > _MOST else []
    return ", ".join(values[:_MOST] + more)
