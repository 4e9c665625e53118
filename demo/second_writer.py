"""Appends the late flights of some airports, one commit each, in a separate process without Spark.

    python -m demo.second_writer TABLE CSV

The program prints `ready` when it has loaded its rows, waits for a line on standard input, appends, and prints the
versions that it committed.
"""

from __future__ import annotations

import sys

import pyarrow as pa
import pyarrow.compute as pc

import deltalog
from demo.flights import LATE_AIRPORTS, LATE_DAY, read_arrow


def late_rows(csv: str, airport: str) -> pa.Table:
    month, day = LATE_DAY
    late = (pc.field("month") == month) & (pc.field("day") == day) & (pc.field("origin") == airport)
    return read_arrow(csv).filter(late)


def main(table: str, csv: str) -> None:
    batches = [late_rows(csv, airport) for airport in LATE_AIRPORTS]
    print("ready", flush=True)
    sys.stdin.readline()
    for rows in batches:
        deltalog.write_deltalake(table, rows, mode="append", partition_by=["month"])
        print(deltalog.DeltaTable(table).version(), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:3])
