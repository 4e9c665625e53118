"""The description of a DELETE, UPDATE or MERGE that a client sends to the server, and the names of the columns of its
rows.

| option of the read | |
| --- | --- |
| `deltalog.positions` | rows have the number of their file (`FILE`) and their position there (`ROW`) |
| `deltalog.condition` | JSON: a condition in SQL that only skips files, and the time zone of its times |

| option of the write | |
| --- | --- |
| `deltalog.statement` | `StatementRequest` as JSON |
"""

import json
from typing import Any, NamedTuple

from deltalog.spark.dml.text import Clause, StatementText

FORMAT = "deltalog"
POSITIONS = "deltalog.positions"
CONDITION = "deltalog.condition"
STATEMENT = "deltalog.statement"

MARKER_PREFIX = "__deltalog_"
# The marker columns of rows; see `marked_rows.rs` in the core.
OPERATION = "__deltalog_operation"
FILE = "__deltalog_file"
ROW = "__deltalog_row"
REMOVE = 1
WRITE = 2
MATCHED = 4
BY_SOURCE = 8

ROW_ID = "_row_id"

POSITION_FIELDS: list[dict[str, Any]] = [
    {"name": FILE, "type": "integer", "nullable": False, "metadata": {}},
    {"name": ROW, "type": "long", "nullable": False, "metadata": {}},
]


class StatementRequest(NamedTuple):
    """A statement whose rows a client has described as a DataFrame with marker columns."""

    statement_id: str
    """The `txnId` of the commit. The client uses it to find the metrics."""
    version: int
    """The version that the statement reads."""
    table_id: str
    text: StatementText
    reads: tuple[str, str] | None
    """An SQL condition that is true for all rows that the statement reads, with the time zone for its times; None if it
    reads the whole table.
    """
    assigned: list[str]
    """The columns to which clauses that change rows assign values."""
    given: list[list[str]]
    """The columns to which each clause that inserts rows assigns values."""
    matches_once: bool = False
    source_rows: int = 0
    app_transaction: tuple[str, int] | None = None
    user_metadata: str | None = None

    def to_json(self) -> str:
        return json.dumps({**self._asdict(), "text": self.text._asdict()})

    @classmethod
    def from_json(cls, text: str) -> "StatementRequest":
        values = json.loads(text)
        about = values["text"]
        kinds = ("matched", "not_matched", "not_matched_by_source")
        clauses: dict[str, list[Clause]] = {kind: [tuple(clause) for clause in about[kind]] for kind in kinds}
        values["text"] = StatementText(about["name"], about["predicate"], **clauses)
        for name in ("reads", "app_transaction"):
            values[name] = None if values[name] is None else tuple(values[name])
        return cls(**values)
