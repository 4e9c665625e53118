"""Fixtures for the tests with object stores."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .s3_server import S3Server


@pytest.fixture(scope="session")
def running_s3() -> Iterator[S3Server]:
    """An S3 server in its own process, which all tests share."""
    with S3Server() as server:
        yield server


@pytest.fixture
def s3(running_s3: S3Server) -> S3Server:
    """An S3 server whose only content is an empty bucket `tables`."""
    running_s3.reset()
    running_s3.create_bucket("tables")
    return running_s3
