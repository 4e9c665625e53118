"""Decides whether the rows of a write are shuffled before they are written, so that its files have about the target
size.

Without the shuffle, each task of a job writes its own file for each partition of the table. With the shuffle
(`BalancedRows.java`), rows of the same partition are written by the same tasks, and tasks have about the same size.

| option | session setting | table property |
| --- | --- | --- |
| `optimizeWrite` | `spark.databricks.delta.optimizeWrite.enabled` | `delta.autoOptimize.optimizeWrite` |

An option takes precedence over the setting, and the setting over the property. Names and precedence are the same
as in the JVM connector, and so are two more settings:

- `spark.databricks.delta.optimizeWrite.binSize`: the size of the rows of a task in the shuffle, in MiB or with a
  unit (`1g`). By default it is 512 MiB, four times the target size of the table's files, because rows take less space
  in files.
- `spark.databricks.delta.optimizeWrite.maxShufflePartitions`: the number of parts into which rows are divided by the
  values of the partition columns, 2,000 by default, and at least as many as in the session's other shuffles. If several
  partitions of the table are in the same part, they may get more files than their own size requires.

This requires Spark's adaptive execution. If it is off, the rows are written without a shuffle, and a warning is logged.
"""

import logging
import re
from typing import Any

from deltalog._internal import SparkWrite
from deltalog.spark.errors import InvalidArgumentError
from deltalog.spark.options import Options
from deltalog.spark.write.settings import Settings

_log = logging.getLogger("deltalog.spark")

_PREFIX = "spark.databricks.delta.optimizeWrite."
_PARTS = 2000
_ROWS_TO_FILES = 4
"""The approximate ratio of the size of shuffled rows to their size in a Parquet file."""
_UNITS = {"": 20, "b": 0, "k": 10, "kb": 10, "m": 20, "mb": 20, "g": 30, "gb": 30, "t": 40, "tb": 40}


def balance(options: Options, settings: Settings, pending: SparkWrite) -> dict[str, Any] | None:
    """Describes how rows are shuffled, for `BalancedRows.java`; None if they are not.

    Raises `InvalidArgumentError` for an invalid value of an option or a setting.
    """
    size, parts = _size(settings), settings.size(f"{_PREFIX}maxShufflePartitions", least=1)
    wanted = options.is_true("optimizeWrite")
    if wanted is None:
        wanted = _enabled(settings)
    if wanted is None:
        wanted = pending.optimizes_writes
    if not wanted:
        return None
    if not settings.is_adaptive:
        _log.warning(
            "the rows of a write to the table %s are not shuffled, although optimizeWrite is on: set "
            "spark.sql.adaptive.enabled to true, without which Spark cannot divide rows by their size",
            pending.location,
        )
        return None
    # Without partition columns there is nothing to divide rows by.
    parts = (parts or _PARTS) if pending.partition_columns else 1
    return {"bytes": size or _ROWS_TO_FILES * pending.target_file_size, "parts": parts}


def _enabled(settings: Settings) -> bool | None:
    name = f"{_PREFIX}enabled"
    if name in settings.delta and settings.boolean(name) is None:
        raise InvalidArgumentError(f"{name} cannot be {settings.delta[name]!r}: set it to true or false")
    return settings.boolean(name)


def _size(settings: Settings) -> int | None:
    name = f"{_PREFIX}binSize"
    text = settings.delta.get(name)
    if text is None:
        return None
    found = re.fullmatch(r"(\d+)\s*([a-z]*)", text.strip().lower())
    size = int(found[1]) << _UNITS[found[2]] if found and found[2] in _UNITS else 0
    if not 0 < size < 2**63:
        raise InvalidArgumentError(f"{name} cannot be {text!r}: set it to a size such as 512m or 1g")
    return size
