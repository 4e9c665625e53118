"""Some servers redirect requests, repeat secrets, or send endless responses. No secret is passed on, and memory stays
bounded.
"""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

import pytest

from deltalog import DeltaError, DeltaTable

SECRET = "MADEUPsecret0123456789abcdefgh"  # noqa: S105
KEY = base64.b64encode((SECRET * 2)[:32].encode()).decode()


class Seen(NamedTuple):
    """A request that a server has received."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class Server(ThreadingHTTPServer):
    """A server on the loopback interface that records its requests."""

    daemon_threads = True

    def __init__(self, mode: str, to: str = "") -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.mode, self.to = mode, to
        self.seen: list[Seen] = []

    @property
    def url(self) -> str:
        """Its origin."""
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    """Answers requests as the mode of the server determines."""

    protocol_version = "HTTP/1.1"
    server: Server

    def log_message(self, *_: object) -> None:
        """Prints nothing."""

    def answer(self) -> None:
        """Records the request and answers it."""
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        self.server.seen.append(Seen(self.command, self.path, dict(self.headers.items()), body))
        if self.server.mode == "redirect":
            self.send(307, b"", location=self.server.to + self.path)
        elif self.server.mode == "own" and not self.path.startswith("/moved"):
            self.send(307, b"", location=f"{self.server.url}/moved{self.path}")
        elif self.server.mode == "own" and "list-type" in self.path:
            text = "<ListBucketResult><Name>bkt</Name><KeyCount>0</KeyCount></ListBucketResult>"
            self.send(200, text.encode())
        elif self.server.mode == "echo":
            headers = " ".join(self.headers.values())
            text = f"{headers} {self.path.replace('&', ' ')} {body.decode('latin-1').replace('&', ' ')}"
            self.send(403, f"<Error><Code>AccessDenied</Code><Message>{text}</Message></Error>".encode())
        elif self.server.mode == "refusing" or (self.server.mode == "endless" and "list-type" in self.path):
            self.send_response(200 if self.server.mode == "endless" else 403)
            self.send_header("content-type", "application/xml")
            self.send_header("connection", "close")
            self.end_headers()
            self.wfile.write(b"<Error><Code>AccessDenied</Code><Message>")
            try:
                while True:
                    self.wfile.write(b"x" * (1 << 16))
            except OSError:
                self.close_connection = True
        else:
            self.send(404, b"<Error><Code>NoSuchKey</Code></Error>")

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = answer  # noqa: N815

    def send(self, status: int, body: bytes, **headers: str) -> None:
        """Sends an answer."""
        self.send_response(status)
        for name, value in {
            "content-type": "application/xml",
            "content-length": str(len(body)),
            **headers,
        }.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


@contextmanager
def serving(mode: str, to: str = "") -> Iterator[Server]:
    """Runs a server in this mode."""
    with Server(mode, to) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


CLIENT = {"allow_http": "true", "max_retries": "0", "timeout": "5s"}


def s3(asked: str, other: str, **more: str) -> tuple[str, dict[str, str]]:
    """Returns the location and options of a table in S3, with a session token."""
    keys = {"aws_access_key_id": "AKID", "aws_secret_access_key": "made-up", "aws_session_token": SECRET}
    place = {"aws_region": "us-east-1", "aws_endpoint_url": asked, "aws_metadata_endpoint": other}
    return "s3://bkt/t", {**CLIENT, **keys, **place, **more}


def azure(asked: str, **more: str) -> tuple[str, dict[str, str]]:
    """A table in Azure."""
    place = {"azure_storage_endpoint": asked, "azure_storage_account_name": "acc"}
    return "abfss://c@acc.dfs.core.windows.net/t", {**CLIENT, **place, **more}


def places(asked: str, other: str) -> dict[str, tuple[str, dict[str, str]]]:
    """Returns the location and the options of a table for each kind of store and credentials. `asked` receives the
    first request, and requests contain a secret.
    """
    oauth = {
        "azure_storage_client_id": "id",
        "azure_storage_client_secret": SECRET,
        "azure_storage_tenant_id": "of",
    }
    return {
        "s3": s3(asked, other),
        "customer's key": s3(
            asked, other, aws_server_side_encryption="sse-c", aws_sse_customer_key_base64=KEY
        ),
        "dynamodb": s3(asked, other, log_store="dynamodb", dynamodb_endpoint=asked),
        "azure key": azure(asked, azure_storage_account_key=KEY),
        "azure token": azure(asked, azure_storage_token=SECRET),
        "azure signature": azure(asked, azure_storage_sas_token=f"sv=2021-06-08&ss=b&sp=rwdl&sig={SECRET}"),
        "azure secret": azure(other, **oauth, azure_storage_authority_host=asked),
        "google token": (
            "gs://bkt/t",
            {**CLIENT, "google_bearer_token": SECRET, "google_base_url": asked},
        ),
    }


KINDS = list(places("", ""))


@pytest.mark.parametrize("kind", KINDS)
def test_redirects_to_other_hosts_are_not_followed(kind: str) -> None:
    """A redirect to another port is not followed, so the other server receives no token, key, signature or body."""
    with serving("404") as other, serving("redirect", other.url.replace("127.0.0.1", "localhost")) as asked:
        location, options = places(asked.url, other.url)[kind]
        with pytest.raises(DeltaError) as caught:
            DeltaTable(location, storage_options=options)
        assert asked.seen
        elsewhere = [seen for seen in other.seen if seen.headers["host"].startswith("localhost")]
        assert not elsewhere
        assert SECRET not in str(caught.value)


def test_redirects_within_a_store_are_followed_without_a_referer() -> None:
    """Redirects with the same scheme, host and port stay within the store, so they are followed."""
    with serving("own") as asked:
        location, options = s3(asked.url, asked.url)
        with pytest.raises(DeltaError):
            DeltaTable(location, storage_options=options)
        moved = [seen for seen in asked.seen if seen.path.startswith("/moved")]
        assert moved
        for seen in asked.seen:
            assert "referer" not in {name.lower() for name in seen.headers}


@pytest.mark.parametrize("kind", KINDS)
def test_secrets_that_a_server_repeats_are_hidden(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    """Some servers quote parts of a request in their error: headers, the query, a form."""
    caplog.set_level(1)
    with serving("echo") as asked, serving("404") as other:
        location, options = places(asked.url, other.url)[kind]
        with pytest.raises(DeltaError) as caught:
            DeltaTable(location, storage_options=options)
        assert asked.seen
        sent = "".join(f"{seen.path} {seen.headers} {seen.body!r}" for seen in asked.seen)
        if kind != "azure key":
            assert SECRET in sent or KEY in sent
        said = f"{caught.value!r} {caught.value} {vars(caught.value)} {caplog.text}"
        assert "AccessDenied" in said or "403" in said
        signatures = [
            seen.headers["authorization"].rsplit(
                "=" if "Signature=" in seen.headers["authorization"] else ":", 1
            )[-1]
            for seen in asked.seen
            if "authorization" in seen.headers
        ]
        for secret in [SECRET, KEY, *signatures]:
            assert secret not in said


@pytest.mark.parametrize("mode", ["endless", "refusing"])
def test_an_answer_without_an_end_is_an_error(mode: str) -> None:
    """A listing may have at most 64 MiB, and an error 1 MiB. More is an error."""
    with serving(mode) as asked:
        location, options = s3(asked.url, asked.url)
        with pytest.raises(DeltaError) as caught:
            DeltaTable(location, storage_options=options)
        assert "longer than" in str(caught.value)
