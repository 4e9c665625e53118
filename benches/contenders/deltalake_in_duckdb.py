"""`deltalake` as a source for DuckDB: as a pyarrow dataset, or through its own scan if the table has deletion vectors,
which the dataset does not support.
"""

from functools import partial
from typing import Any

import pyarrow.dataset as _  # noqa: F401 (so that the import is not measured)
from deltalake import DeltaTable

from benches.contenders import duck, rows


def _source(table: str) -> Any:
    opened = DeltaTable(table)
    if "deletionVectors" in (opened.protocol().reader_features or []):
        # DuckDB does not pass the needed columns to such a scan, so they are selected here.
        return opened.scan(columns=["i1", rows.COLUMN])
    return opened.to_pyarrow_dataset()


filter_rows = partial(duck.filter_rows, source_of=_source)
join_rows = partial(duck.join_rows, source_of=_source)
