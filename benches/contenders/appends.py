"""Creates rows that are appended one by one, and times the appends."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from statistics import median
from time import perf_counter

import pyarrow as pa

from benches.tables.actions import MONTHS, REGIONS, Shape
from benches.watch import Watch, peak_bytes

WARM_UP = 5
"""The number of commits before the table's next checkpoint. The commit that writes the checkpoint is not measured."""

MEASURED = 9
"""The number of appends up to the commit before the next checkpoint."""

BESIDE = 5
"""The number of measured appends while a checkpoint is being written. It is small, so that they end before a
checkpoint of many files is complete.
"""

_TYPES = {"long": pa.int64(), "double": pa.float64(), "string": pa.string()}


def row(shape: Shape) -> pa.Table:
    """Returns one row with the columns of the tables that have no data files."""
    columns = {name: pa.array([None], _TYPES[type_]) for name, type_ in shape.columns()}
    return pa.table({**columns, "i0": [1], "month": [MONTHS[0]], "region": [REGIONS[0]]})


def measure(
    watch: Watch, lap: str, append: Callable[[], None], update: Callable[[], None], settle: Callable[[], None]
) -> None:
    """Measures the median time of several appends.

    `settle` waits until the background work of the warm-up is done. `update` brings the table up to date
    between the appends.
    """
    for _ in range(WARM_UP):
        append()
        update()
    settle()
    watch.took(lap, _median(MEASURED, append, update), peak_bytes())


def measure_beside(watch: Watch, lap: str, append: Callable[[], None], update: Callable[[], None]) -> None:
    """Measures the median time of the appends that follow a checkpoint. It is called after `measure`."""
    append()
    update()
    watch.took(lap, _median(BESIDE, append, update), peak_bytes())


def _median(count: int, append: Callable[[], None], update: Callable[[], None]) -> float:
    seconds = []
    for _ in range(count):
        start = perf_counter()
        append()
        seconds.append(perf_counter() - start)
        update()
    return median(seconds)


def unanswered(
    watch: Watch,
    writers: int,
    each: int,
    writer: Callable[[], Callable[[pa.Table], object]],
    errors: tuple[type[Exception], ...],
    ids: Callable[[], pa.Array],
) -> dict[str, int]:
    """Lets `writers` threads append `each` rows, one by one, to a table in a store that answers only some requests.

    `writer` opens the table and returns a function that appends to it, and `ids` reads the ids of all rows. An append
    that raises one of `errors` is not repeated. Records how many appends were acknowledged, how many of these are in
    the table, how many rows occur twice, how many appends failed, and how many of these are in the table nevertheless.
    """

    def work(number: int) -> list[int]:
        append = writer()
        acknowledged = []
        for id_ in range(number * each, (number + 1) * each):
            try:
                append(pa.table({"id": pa.array([id_], pa.int64())}))
            except errors:
                continue
            acknowledged.append(id_)
        return acknowledged

    start = perf_counter()
    with ThreadPoolExecutor(writers) as pool:
        acknowledged = {id_ for some in pool.map(work, range(writers)) for id_ in some}
    watch.took("appends", perf_counter() - start, peak_bytes())
    rows = ids().to_pylist()
    counts = {
        "acknowledged": len(acknowledged),
        "landed": len(acknowledged & set(rows)),
        "doubled": len(rows) - len(set(rows)),
        "errors": writers * each - len(acknowledged),
        "landed in spite of an error": len(set(rows) - acknowledged),
    }
    for quantity, number in counts.items():
        watch.note("appends", quantity, number)
    # An append that fails is not an error of the benchmark: the case counts how contenders differ in this.
    return {"appends": writers * each}


def at_once(watch: Watch, lap: str, append: Callable[[], None], threads: int, each: int) -> int:
    """Measures the mean time of an append while `threads` threads make `each` appends. Returns the total number of
    appends.
    """

    def work(_: int) -> None:
        for _ in range(each):
            append()

    start = perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(work, range(threads)):
            pass
    seconds = perf_counter() - start
    watch.took(lap, seconds / (threads * each), peak_bytes())
    return threads * each
