"""`deltalake` as a source of DuckDB: its pyarrow dataset, or its scan if the table has deletion vectors, which datasets
do not support.
"""

from functools import partial
from typing import Any

import pyarrow.dataset as _  # noqa: F401 (so that the import is not measured)
from deltalake import DeltaTable

from benches.contenders import duck, rows


def _source(table: str) -> Any:
    opened = DeltaTable(table)
    if "deletionVectors" in (opened.protocol().reader_features or []):
        # DuckDB cannot tell a scan which columns it needs.
        return opened.scan(columns=["i1", rows.COLUMN])
    return opened.to_pyarrow_dataset()


filter_rows = partial(duck.filter_rows, source_of=_source)
join_rows = partial(duck.join_rows, source_of=_source)
