"""The statements that the contenders of `statements` and `spark-statements` run. Each runs on its own copy of the
table, which is made of links.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benches.watch import Watch

KEY = "i0"
"""A column of random numbers below a million."""

DELETE = "i1 < 100000"
"""True for a tenth of the rows, in every file."""

UPDATE = "i1 < 10000"
"""True for a hundredth of the rows, in every file."""

VALUES = {"d0": "d0 + 1"}
MERGED = {"d0": "source.d0"}
MATCHING = 10_000
"""The number of the source's keys that are below a million. A hundredth of the table's rows match one of them."""

KEYS = 11_340

HALF = 500_000
"""The number of keys of a source with which half of the table's rows match."""


def source(schema: pa.Schema) -> pa.Table:
    """Returns the source of a MERGE, with one row for each key. Most of the keys are also keys of the table."""
    keys = np.random.default_rng(1).choice(1_000_000, MATCHING, replace=False)
    return _rows(schema, np.concatenate([keys, np.arange(1_000_000, 1_000_000 + KEYS - MATCHING)]))


def half(schema: pa.Schema) -> pa.Table:
    """Returns a source with a row for every second key of the table."""
    return _rows(schema, np.arange(HALF, dtype=np.int64) * 2)


def _rows(schema: pa.Schema, keys: np.ndarray) -> pa.Table:
    columns = {KEY: keys, "i1": np.zeros(len(keys), dtype=np.int64), "d0": np.ones(len(keys))}
    return pa.table({name: pa.array(values, schema.field(name).type) for name, values in columns.items()})


def measure(
    watch: Watch,
    table: str,
    suffix: str,
    statements: dict[str, Callable[[str], object]],
    count: Callable[[str], int],
    prepare: Callable[[str], object] = lambda copy: None,
) -> dict[str, Any]:
    """Runs each statement on its own copy of the table, and counts the remaining rows. `prepare` is called with a copy
    before the time is measured.
    """
    left = {}
    for name, run in statements.items():
        copy = Path(table).with_name(f"{name}{suffix}")
        shutil.copytree(table, copy, copy_function=os.link)
        prepare(str(copy))
        with watch(f"{name}{suffix}"):
            run(str(copy))
        left[name] = count(str(copy))
        shutil.rmtree(copy)
    return left
