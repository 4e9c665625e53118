"""`pyarrow.dataset`: reads the table's directory as plain Parquet files."""

from __future__ import annotations

from typing import Any

import pyarrow.dataset as ds

from benches.contenders import rows
from benches.watch import Watch


def scan(watch: Watch, table: str) -> dict[str, Any]:
    with watch("filter"):
        some = rows.take(
            ds.dataset(table).scanner(columns=[rows.COLUMN], filter=ds.field("i1") < rows.LIMIT).to_reader()
        )
    with watch("all columns"):
        everything = rows.take(ds.dataset(table).scanner().to_reader())
    return rows.answer(some, everything)
