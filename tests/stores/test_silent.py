"""If a store does not answer, calls end after the configured time, and the error names what they waited for."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

import pyarrow as pa
import pytest

from deltalog import DeltaTable, UnavailableError, write_deltalake

from .s3_server import S3Server, rule

SECRET = "MADEUPsecret0123456789abcdefgh"  # noqa: S105
LIMITS = {"read_timeout": "150ms", "retry_timeout": "500ms"}


@pytest.fixture
def silent() -> Iterator[dict[str, str]]:
    """Returns the options for a server that accepts connections but never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield {
            "aws_endpoint_url": f"http://127.0.0.1:{server.getsockname()[1]}",
            "aws_access_key_id": "madeup",
            "aws_secret_access_key": SECRET,
            "aws_region": "us-east-1",
            "aws_allow_http": "true",
        }


def test_opening_a_table_in_a_silent_store_times_out(silent: dict[str, str]) -> None:
    begun = time.monotonic()
    with pytest.raises(UnavailableError, match=r"gave no answer for 0\.\d s") as raised:
        DeltaTable("s3://tables/t", storage_options={**silent, **LIMITS})
    assert time.monotonic() - begun < 3
    text = str(raised.value)
    assert "GET 127.0.0.1:" in text
    assert SECRET not in text
    assert raised.value.hint
    assert "'read_timeout'" in raised.value.hint
    assert "'retry_timeout'" in raised.value.hint


def test_a_store_that_was_silent_works_again(s3: S3Server) -> None:
    """A call succeeds no matter how slowly the store answers within the limits, and how many requests the call
    sends.
    """
    options = {**s3.options(), "read_timeout": "400ms", "retry_timeout": "800ms"}
    write_deltalake("s3://tables/t", pa.table({"n": [1]}), storage_options=options)
    table = DeltaTable("s3://tables/t", storage_options=options)
    s3.faults(rule("silence_before"))
    with pytest.raises(UnavailableError, match="gave no answer"):
        table.update_incremental()
    s3.faults(rule({"latency_ms": 250}))
    until = time.monotonic() + 10
    while True:
        try:
            table.update_incremental()
            break
        except UnavailableError:
            assert time.monotonic() < until, (
                "the table is still unavailable 10 seconds after the store recovered"
            )
            time.sleep(0.02)
