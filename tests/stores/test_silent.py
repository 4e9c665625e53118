"""Stores that give no answer: calls end after the time that is set, and say what was waited for."""

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
    """The options of a server that accepts connections and is silent."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield {
            "aws_endpoint_url": f"http://127.0.0.1:{server.getsockname()[1]}",
            "aws_access_key_id": "madeup",
            "aws_secret_access_key": SECRET,
            "aws_region": "us-east-1",
            "aws_allow_http": "true",
        }


def test_an_open_on_a_silent_store_ends_and_says_what_was_waited_for(silent: dict[str, str]) -> None:
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


def test_a_slow_upload_is_not_cut(s3: S3Server) -> None:
    """The time is that of silence."""
    options = {**s3.options(), **LIMITS, "read_timeout": "400ms"}
    data = pa.table({"n": pa.array(range(150_000), pa.int64())})
    write_deltalake("s3://tables/t", data.slice(0, 1), storage_options=options)
    s3.faults(rule({"bytes_per_second": 500_000}, "put", "create_upload", "upload_part"))
    begun = time.monotonic()
    write_deltalake("s3://tables/t", data, mode="append", storage_options=options)
    assert time.monotonic() - begun > 0.4, "the upload takes longer than the limit"
    assert DeltaTable("s3://tables/t", storage_options=options).count() == 150_001
