"""Fixtures of the tests with object stores."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .s3_server import S3Server


@pytest.fixture(scope="session")
def running_s3() -> Iterator[S3Server]:
    """The process of a server for S3, which tests share."""
    with S3Server() as server:
        yield server


@pytest.fixture
def s3(running_s3: S3Server) -> S3Server:
    """A server for S3 with nothing but an empty bucket `tables`."""
    running_s3.reset()
    running_s3.create_bucket("tables")
    return running_s3
