"""Requests run on deltalog's own threads. This works in a forked child, inside an event loop, and from many threads."""

from __future__ import annotations

import asyncio
import os
import pickle
import threading

import pyarrow as pa
import pytest

from deltalog import DeltaTable, write_deltalake

from .programs import run
from .s3_server import S3Server

ROWS = pa.table({"id": [1, 2, 3]})
URI = "s3://tables/t"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_reads_and_writes(s3: S3Server) -> None:
    """A forked child cannot use the open connections and running threads of its parent."""
    program = f"""
import os, sys
import pyarrow as pa
from deltalog import DeltaTable, write_deltalake
options = {s3.options()!r}
data = pa.table({{"id": [1, 2, 3]}})
write_deltalake({URI!r}, data, storage_options=options)
table = DeltaTable({URI!r}, storage_options=options)
for child in range(3):
    if (pid := os.fork()) == 0:
        # The child uses the parent's table object, and then a new one.
        assert table.count() == 3 and pa.table(table.to_arrow()).num_rows == 3
        write_deltalake({URI!r}, data, mode="append", storage_options=options)
        DeltaTable({URI!r}, storage_options=options).update_incremental()
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
table.update_incremental()
assert table.version() == 3 and table.count() == 12
"""
    run(program)


def test_below_an_event_loop(s3: S3Server) -> None:
    async def main() -> int:
        write_deltalake(URI, ROWS, storage_options=s3.options())
        tables = [asyncio.to_thread(DeltaTable, URI, storage_options=s3.options()) for _ in range(8)]
        return sum([table.count() for table in await asyncio.gather(*tables)])

    assert asyncio.run(main()) == 24


def test_threads_share_a_table(s3: S3Server) -> None:
    write_deltalake(URI, ROWS, storage_options=s3.options())
    table = DeltaTable(URI, storage_options=s3.options())
    counts: list[int] = []

    def read() -> None:
        counts.append(pa.table(table.to_arrow()).num_rows)

    threads = [threading.Thread(target=read) for _ in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == [3] * 32


def test_a_pickled_table_has_no_options(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pickled table does not contain its store options. Another process opens it with the credentials of its own
    environment.
    """
    write_deltalake(URI, ROWS, storage_options=s3.options())
    text = pickle.dumps(DeltaTable(URI, storage_options=s3.options()))
    assert b"testkit" not in text
    for name, value in s3.options().items():
        monkeypatch.setenv(name.upper(), value)
    assert pickle.loads(text).count() == 3  # noqa: S301
