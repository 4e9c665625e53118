"""Makes other writers commit at bad moments: while rows are read, or right after the log was read."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from deltalog import DeltaTable


class Interfering:
    """An iterator of rows that makes another writer commit while the rows are read."""

    def __init__(self, rows: pa.Table, other: Any) -> None:
        self._rows, self._other = rows, other

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        def batches() -> Any:
            self._other()
            yield from self._rows.to_batches()

        return pa.RecordBatchReader.from_batches(self._rows.schema, batches()).__arrow_c_stream__(
            requested_schema
        )


def overtaken(table: DeltaTable) -> DeltaTable:
    """Makes the changes of `table` start from the version that it has loaded, as if other writers had committed right
    after it read the log. Returns `table`.
    """
    table._newest_to_change = lambda: table._snapshot  # type: ignore[method-assign]
    return table
