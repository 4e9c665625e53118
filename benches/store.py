"""Starts the S3 server for cases with an object store, and copies tables to it.

The server is the one that the tests use. It keeps objects in memory and runs in its own process. Each request takes a
fixed time, and in cases that read much data, all requests share a fixed bandwidth. So the results depend on how many
requests a contender sends, and how many at the same time.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

from tests.stores.s3_server import ROOT, S3Server, rule

LATENCY_MS = 20
BYTES_PER_SECOND = 200_000_000

_BUCKET = "tables"
_numbers = count()


@cache
def _server() -> S3Server:
    """Starts the server, which ends when this process ends."""
    release = ROOT / "target" / "release" / "deltalog-s3-server"
    os.environ.setdefault("DELTALOG_S3_SERVER", str(release))
    server = S3Server()
    server.create_bucket(_BUCKET)
    return server


def place(
    table: Path, lost_percent: int = 0, bytes_per_second: int | None = BYTES_PER_SECOND
) -> Mapping[str, Any]:
    """Copies a table to a new place in the store. Returns the URL of the table, and the options with which to open it.

    `lost_percent` of all requests take effect without a response. `bytes_per_second` is the bandwidth that all
    requests share; None for no limit.
    """
    server, prefix = _server(), f"{table.name}-{next(_numbers)}"
    server.faults()
    for key in server.keys(_BUCKET):
        server.delete(_BUCKET, key)
    for file in sorted(table.rglob("*")):
        if file.is_file():
            server.put(_BUCKET, f"{prefix}/{file.relative_to(table)}", file.read_bytes())
    lost = rule("close_after", when={"chance": {"per_mille": lost_percent * 10, "seed": 1}})
    server.faults(rule({"latency_ms": LATENCY_MS}), *([lost] if lost_percent else []))
    server.set(bytes_per_second=bytes_per_second)
    server.take_requests()
    options = {**server.options(), "aws_conditional_put": "etag"}
    return {"table": f"s3://{_BUCKET}/{prefix}", "options": options}
