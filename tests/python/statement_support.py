"""Helpers for the tests of DELETE, UPDATE and MERGE: they create small tables, and compute the expected change data
feed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

import deltalog
from deltalog import DeltaTable
from deltalog._internal import AlreadyApplied

VECTORS = {"delta.enableDeletionVectors": "true"}
FEED = {"delta.enableChangeDataFeed": "true"}
TRACKED = {"delta.enableRowTracking": "true"}

Row = tuple[int | None, str | None, int | None]
SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string()), ("n", pa.int64())])


def rows_of(rows: Sequence[Sequence[Any]], schema: pa.Schema = SCHEMA) -> pa.Table:
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema)
    return pa.table(
        [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)], schema=schema
    )


def created(
    path: Path,
    files: Sequence[Sequence[Sequence[Any]]],
    properties: Mapping[str, str] | None = None,
    partition_by: Sequence[str] | None = None,
    schema: pa.Schema = SCHEMA,
) -> DeltaTable:
    """Creates a table with these files, each added by its own commit."""
    table = DeltaTable.create(
        path, schema, partition_by=partition_by, configuration=dict(properties) if properties else None
    )
    for rows in files:
        deltalog.write_deltalake(path, rows_of(rows, schema), mode="append")
    table.update_incremental()
    return table


def content(table: DeltaTable | Path, version: int | None = None) -> list[tuple[Any, ...]]:
    """Returns the rows, sorted by their values."""
    if not isinstance(table, DeltaTable):
        table = DeltaTable(table, version=version)
    return in_order(tuple(row.values()) for row in pa.table(table.to_arrow()).to_pylist())


def in_order(rows: Any) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in rows), key=repr)


def metrics(done: dict[str, int] | AlreadyApplied) -> dict[str, int]:
    assert isinstance(done, dict)
    return done


def feed(table: DeltaTable, version: int) -> Counter[tuple[Any, ...]]:
    """Returns the changes of a version: how often each pair of a row and a kind of change occurs."""
    changes = pa.table(table.load_cdf(version, version)).to_pylist()
    names = [field.name for field in table.schema().fields]
    return Counter((change["_change_type"], *(change[name] for name in names)) for change in changes)


def expected_feed(
    before: Sequence[Sequence[Any]], after: Sequence[Sequence[Any]]
) -> Counter[tuple[Any, ...]]:
    """Returns the expected change data feed if each row of one list was replaced with the row at the same place of the
    other list.
    """
    return Counter([("update_preimage", *row) for row in before]) + Counter(
        [("update_postimage", *row) for row in after]
    )
