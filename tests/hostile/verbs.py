"""The operations that users perform without Spark on a table from an unknown writer."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from itertools import islice
from typing import Any

import pyarrow as pa

from deltalog import DeltaTable, Field, write_deltalake
from tests.hostile.place import Place
from tests.hostile.tables import rows

Verb = Callable[[Place], Any]


def _opened(place: Place) -> DeltaTable:
    return DeltaTable(place.table)


def _columns(table: DeltaTable) -> list[str]:
    return [str(name) for name in pa.schema(table.schema()).names]


def _rows(stream: Any) -> list[Any]:
    """Reads and validates up to 20 batches, and returns the first strings of each string column."""
    found: list[Any] = []
    for batch in islice(pa.RecordBatchReader.from_stream(stream), 20):
        batch.validate(full=True)
        texts = (column for column in batch.columns if pa.types.is_string(column.type))
        found += (column.slice(0, 50).to_pylist() for column in texts)
    return found


def _source(table: DeltaTable) -> pa.Table:
    """Returns rows to write. They fit the table if a mutation has not changed its columns."""
    source = rows(1_000, 5)
    names = _columns(table)
    return source.select([name for name in source.column_names if name in names] or ["n"])


def _vacuum(place: Place, **arguments: Any) -> Any:
    arguments = {"retention_hours": 0, "enforce_retention_duration": False, "dry_run": False, **arguments}
    return _opened(place).vacuum(**arguments)


VERBS: dict[str, Verb] = {
    "read": lambda place: _rows(_opened(place).to_arrow()),
    "filter": lambda place: _rows(_opened(place).to_arrow(predicate="n > 10 AND s IS NOT NULL")),
    "count": lambda place: _opened(place).count(),
    "answers": lambda place: (
        _opened(place).min_max("n"),
        _rows(_opened(place).count_by_partition()),
        _opened(place).partitions(),
    ),
    "look": lambda place: (
        repr(_opened(place)),
        _opened(place).history(),
        _opened(place).metadata(),
        _opened(place).protocol(),
        _opened(place).file_uris(),
        _rows(_opened(place).files()),
    ),
    "log": lambda place: (
        _rows(_opened(place).commit_actions(0)),
        _opened(place).verify(),
    ),
    "old": lambda place: _rows(DeltaTable(place.table, version=1).to_arrow()),
    "changes": lambda place: _rows(_opened(place).load_cdf(0)),
    "append": lambda place: write_deltalake(place.table, _source(_opened(place)), mode="append"),
    "overwrite": lambda place: write_deltalake(place.table, _source(_opened(place)), mode="overwrite"),
    "delete": lambda place: _opened(place).delete("n % 2 = 0"),
    "delete all": lambda place: _opened(place).delete(),
    "update": lambda place: _opened(place).update({"n": "n + 1"}, predicate="n < 50"),
    "merge": lambda place: (
        _opened(place)
        .merge(rows(10, 20), "t.n = s.n", source_alias="s", target_alias="t")
        .when_matched_update({"f": "s.f"})
        .when_not_matched_insert({"n": "s.n"})
        .execute()
    ),
    "compact": lambda place: _opened(place).optimize.compact(),
    "z-order": lambda place: _opened(place).optimize.z_order(["n"]),
    "purge": lambda place: _opened(place).optimize.purge(),
    "vacuum": _vacuum,
    "vacuum of the log": lambda place: _vacuum(place, full=False),
    "restore": lambda place: _opened(place).restore(0),
    "clone": lambda place: _opened(place).clone(str(place.copy), mode="overwrite"),
    "shallow clone": lambda place: _opened(place).clone(str(place.copy), shallow=True, mode="overwrite"),
    "checkpoint": lambda place: _opened(place).create_checkpoint(),
    "clean up": lambda place: _opened(place).cleanup_metadata(),
    "compact the log": lambda place: _opened(place).compact_logs(0, _opened(place).version()),
    "manifests": lambda place: _opened(place).generate(),
    "statistics": lambda place: _opened(place).recompute_statistics(),
    "check": lambda place: (_rows(_opened(place).check("rows")), _opened(place).repair(dry_run=False)),
    "properties": lambda place: _opened(place).alter.set_table_properties(
        {"delta.logRetentionDuration": "interval 0 days", "delta.enableChangeDataFeed": "true"}
    ),
    "columns": lambda place: _opened(place).alter.add_columns([Field("added", "long")]),
    "retentions": lambda place: (
        _opened(place).log_retention(),
        _opened(place).deleted_file_retention() > timedelta(),
    ),
}
