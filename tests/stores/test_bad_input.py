"""Errors name the location, the option or the credentials that are wrong, and what to do.

"There is no table" is reported only if the store has answered that there is none.
"""

from __future__ import annotations

import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pyarrow as pa
import pytest

import deltalog
from deltalog import DeltaTable, write_deltalake

from .s3_server import S3Server, error, rule

ROWS = pa.table({"id": [1, 2, 3]})


@pytest.fixture
def table(s3: S3Server) -> S3Server:
    """Returns a server that has a table `t`."""
    write_deltalake("s3://tables/t", ROWS, storage_options=s3.options())
    return s3


def opening(s3: S3Server, uri: str = "s3://tables/t", **options: str) -> str:
    """Opens a table with changed options, and returns the text of the error."""
    changed = {**s3.options(), **options}
    with pytest.raises(deltalog.DeltaError) as raised:
        DeltaTable(uri, storage_options={name: value for name, value in changed.items() if value})
    assert "testkit-secret" not in str(raised.value)
    return f"{type(raised.value).__name__}: {raised.value}"


def test_a_missing_table_and_a_missing_bucket_differ(table: S3Server) -> None:
    assert "NotATableError: there is no Delta table here" in opening(table, "s3://tables/other")
    text = opening(table, "s3://tabels/t")
    assert text.startswith("InvalidArgumentError: the bucket or container does not exist"), text
    for words in ("NoSuchBucket", "request id TESTKIT", "check its name"):
        assert words in text


@pytest.mark.parametrize(
    ("code", "kind", "words"),
    [
        ("AccessDenied", "AccessDeniedError", "the store refused access"),
        ("ExpiredToken", "AccessDeniedError", "the credentials have expired"),
        ("RequestTimeTooSkewed", "AccessDeniedError", "set the clock"),
        ("InvalidAccessKeyId", "AccessDeniedError", "does not know the access key"),
        ("SignatureDoesNotMatch", "AccessDeniedError", "check the secret key"),
    ],
)
@pytest.mark.parametrize("request_kind", ["get", "list"])
def test_a_refusal_never_means_a_missing_table(
    table: S3Server, code: str, kind: str, words: str, request_kind: str
) -> None:
    table.faults(rule(error(code), request_kind))
    for uri in ("s3://tables/t", "s3://tables/other"):
        text = opening(table, uri)
        assert text.startswith(kind), text
        assert words in text
        assert code in text
    with pytest.raises(deltalog.AccessDeniedError):
        write_deltalake("s3://tables/other", ROWS, storage_options=table.options())
    assert table.keys("tables", "other") == []


def test_wrong_keys(table: S3Server) -> None:
    assert "check the key" in opening(table, aws_access_key_id="wrong")
    assert "check the secret key ('aws_secret_access_key')" in opening(table, aws_secret_access_key="wrong")  # noqa: S106
    table.set(session_token="of-this-hour")  # noqa: S106
    for token in ("", "of-the-last-hour"):
        text = opening(table, aws_session_token=token)
        assert text.startswith("AccessDeniedError"), text


@pytest.mark.parametrize("status", [400, 301])
def test_the_right_region_is_named(table: S3Server, status: int) -> None:
    table.set(region="eu-west-1", wrong_region_status=status)
    text = opening(table, aws_region="us-east-1")
    assert text.startswith("InvalidArgumentError: the bucket is in another region"), text
    assert "set the storage option 'aws_region' to 'eu-west-1'" in text
    assert DeltaTable("s3://tables/t", storage_options=table.options()).version() == 0


def test_a_wrong_endpoint_is_an_error_at_once(s3: S3Server) -> None:
    started = time.monotonic()
    text = opening(s3, aws_endpoint_url="http://127.0.0.1:1")
    assert text.startswith("UnavailableError: the store cannot be reached"), text
    assert "127.0.0.1:1" in text
    assert "check the endpoint" in text
    # One request is sent, and the error does not take minutes.
    assert time.monotonic() - started < 10
    assert "allow_http" in opening(s3, aws_allow_http="")


def test_a_web_page_is_not_an_empty_place() -> None:
    """A console or a proxy answers every request with a web page. This must not be taken as proof that there is no
    table.
    """

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html; charset=utf-8")
            self.send_header("content-length", "13")
            self.end_headers()
            self.wfile.write(b"<html></html>")

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        options = {
            "aws_endpoint_url": f"http://127.0.0.1:{server.server_port}",
            "aws_access_key_id": "key",
            "aws_secret_access_key": "secret",
            "allow_http": "true",
        }
        with pytest.raises(deltalog.UnavailableError, match=r"answered with a web page.*check the endpoint"):
            DeltaTable.is_deltatable("s3://tables/t", storage_options=options)
        server.shutdown()


def test_a_misspelled_option_is_an_error_with_the_right_name(s3: S3Server) -> None:
    assert "there is no storage option 'aws_regoin' for S3" in opening(s3, aws_regoin="x")
    assert "spell it 'aws_region'" in opening(s3, aws_regoin="x")


def test_a_permission_to_read_only(table: S3Server) -> None:
    """If writing is not permitted, an append fails, and none of its rows are visible."""
    table.faults(rule(error("AccessDenied"), "create"))
    with pytest.raises(deltalog.AccessDeniedError, match="permission to write objects"):
        write_deltalake("s3://tables/t", ROWS, mode="append", storage_options=table.options())
    table.faults()
    assert DeltaTable("s3://tables/t", storage_options=table.options()).count() == 3


def test_a_store_that_throttles_requests(table: S3Server) -> None:
    """If the store asks for fewer requests, the request is retried later. If the store continues to refuse it, the
    error contains the reason.
    """
    table.faults(rule(error("SlowDown"), "get", "list", when={"first": 3}))
    assert DeltaTable("s3://tables/t", storage_options=table.options()).count() == 3
    table.faults(rule(error("SlowDown"), "list"))
    text = opening(table, max_retries="1")
    assert text.startswith("UnavailableError: the store asks for fewer requests"), text
