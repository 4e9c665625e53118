"""A table as HTML, for notebooks.

Strings from the table are escaped, because the table may come from an untrusted source. The HTML loads no external
resources.
"""

from typing import TYPE_CHECKING

from deltalog.errors import DeltaError
from deltalog.html import rows_html, text_html
from deltalog.words import moment

if TYPE_CHECKING:
    from deltalog.table import DeltaTable

__all__ = ["table_html"]

_MOST_COLUMNS = 50
_COMMITS = 3


def table_html(table: "DeltaTable") -> str:
    """Returns HTML that describes a version of a table: its size, columns, and last commits."""
    try:
        parts = [_facts(table), _columns(table), _commits(table)]
    except DeltaError as error:
        parts = [f"<p>{text_html(str(error))}</p>"]
    return f"<div><strong>{text_html(repr(table))}</strong>{''.join(parts)}</div>"


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
    return rows_html(None, ([name, value] for name, value in facts if value))


def _columns(table: "DeltaTable") -> str:
    fields = table.schema().fields
    rows = [
        [field.name, str(field.type), "" if field.nullable else "not null"]
        for field in fields[:_MOST_COLUMNS]
    ]
    if len(fields) > _MOST_COLUMNS:
        rows.append([f"… and {len(fields) - _MOST_COLUMNS:,} more", "", ""])
    return rows_html(["column", "type", "null"], rows)


def _commits(table: "DeltaTable") -> str:
    history = table.history(_COMMITS)
    rows = (
        [str(commit.get("version")), _time(commit.get("timestamp")), commit.get("operation") or ""]
        for commit in history
    )
    return rows_html(["version", "time", "operation"], rows)


def _time(milliseconds: object) -> str:
    return moment(milliseconds) if isinstance(milliseconds, int) else ""
