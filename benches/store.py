"""A server for S3 that cases with an object store share: how it is started, and how tables get there.

It is the server of the tests, in memory, in its own process. Each request takes a fixed time, and where much is read,
all together have a fixed bandwidth, so that a contender is measured by its requests and by how many it sends at the
same time.
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
    """Starts the server. It ends with this process."""
    release = ROOT / "target" / "release" / "deltalog-s3-server"
    os.environ.setdefault("DELTALOG_S3_SERVER", str(release))
    server = S3Server()
    server.create_bucket(_BUCKET)
    return server


def place(
    table: Path, lost_percent: int = 0, bytes_per_second: int | None = BYTES_PER_SECOND
) -> Mapping[str, Any]:
    """Copies a table to a new place in the store. Returns its URL, and the options to open it with.

    `lost_percent` of all requests take effect without a response. `bytes_per_second` is the bandwidth of all requests
    together; None for no limit.
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
