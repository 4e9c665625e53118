"""A table as HTML, for notebooks.

Texts of the table are escaped, as it may come from a stranger. The page loads nothing from elsewhere.
"""

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

from deltalog.errors import DeltaError
from deltalog.escape import visible
from deltalog.words import moment

if TYPE_CHECKING:
    from deltalog.table import DeltaTable

__all__ = ["table_html"]

_MOST_COLUMNS = 50
_COMMITS = 3


def table_html(table: "DeltaTable") -> str:
    """Returns what a version of a table is: size, columns, and last commits."""
    try:
        parts = [_facts(table), _columns(table), _commits(table)]
    except DeltaError as error:
        parts = [f"<p>{_text(str(error))}</p>"]
    return f"<div><strong>{_text(repr(table))}</strong>{''.join(parts)}</div>"


def _text(value: object) -> str:
    return escape(visible(str(value)))


def _facts(table: "DeltaTable") -> str:
    snapshot, metadata = table._snapshot, table.metadata()
    facts = [
        ("name", metadata.name),
        ("description", metadata.description),
        ("committed", _time(snapshot.timestamp_ms)),
        ("files", f"{snapshot.num_files():,}"),
        ("bytes", f"{snapshot.size_in_bytes():,}"),
        ("partitioned by", ", ".join(metadata.partition_columns)),
        ("clustered by", ", ".join(table.clustering_columns())),
        ("features", ", ".join(snapshot.table_features)),
    ]
    return _rows(None, ([name, value] for name, value in facts if value))


def _columns(table: "DeltaTable") -> str:
    fields = table.schema().fields
    rows = [
        [field.name, str(field.type), "" if field.nullable else "not null"]
        for field in fields[:_MOST_COLUMNS]
    ]
    if len(fields) > _MOST_COLUMNS:
        rows.append([f"… and {len(fields) - _MOST_COLUMNS:,} more", "", ""])
    return _rows(["column", "type", "null"], rows)


def _commits(table: "DeltaTable") -> str:
    history = table.history(_COMMITS)
    rows = (
        [str(commit.get("version")), _time(commit.get("timestamp")), commit.get("operation") or ""]
        for commit in history
    )
    return _rows(["version", "time", "operation"], rows)


def _rows(heads: Sequence[str] | None, rows: Iterable[Sequence[object]]) -> str:
    head = "" if heads is None else f"<tr>{''.join(f'<th>{_text(name)}</th>' for name in heads)}</tr>"
    lines = (f"<tr>{''.join(f'<td>{_text(value)}</td>' for value in row)}</tr>" for row in rows)
    return f"<table>{head}{''.join(lines)}</table>"


def _time(milliseconds: object) -> str:
    return moment(milliseconds) if isinstance(milliseconds, int) else ""
