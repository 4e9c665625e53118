"""Starts and controls the S3 server of `crates/testkit`, which counts requests and makes them fail.

The server runs in a separate process. It ends when this process ends, because it reads from a pipe that only this
process can write to.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import quote, urlsplit

ROOT = Path(__file__).parents[2]
BUILD = "cargo build -p deltalog-testkit --bin deltalog-s3-server"


def binary() -> Path:
    """Returns the path of the server's binary: the debug build, unless `DELTALOG_S3_SERVER` names another binary."""
    path = Path(os.environ.get("DELTALOG_S3_SERVER") or ROOT / "target" / "debug" / "deltalog-s3-server")
    if not path.is_file():
        profile = " --release" if path.parent.name == "release" else ""
        raise FileNotFoundError(f"{path} does not exist; build it with: {BUILD}{profile}")
    return path


def error(code: str, **details: object) -> dict[str, object]:
    """Returns a fault with which the server responds with an S3 error.

    Args:
        code: the code of S3, which decides the status, such as `SlowDown` (503) or `AccessDenied` (403).
        details: `status`, `retry_after` (seconds), `after_effect` (whether the request takes effect nevertheless).
    """
    return {"error": {"code": code, **details}}


def rule(
    fault: str | dict[str, Any], *kinds: str, key: str = "", when: str | dict[str, Any] = "always"
) -> dict[str, object]:
    """Returns a rule that makes requests fail or slow.

    Args:
        fault: `"close_before"`, `"close_after"`, `"silence_before"`, `"silence_after"` (before or after the effect of
            the request), `"cut_body"`, `error(code)`, `{"latency_ms": 20}` or `{"bytes_per_second": 1000}`.
        kinds: the kinds of requests that the rule matches: `"get"`, `"head"`, `"head_bucket"`, `"put"`, `"create"`
            (put-if-absent), `"update"`, `"delete"`, `"delete_many"`, `"list"`, `"create_upload"`, `"upload_part"`,
            `"complete_upload"`, `"abort_upload"`. Without kinds, the rule matches all requests.
        key: a string that the key (or the prefix of a listing) must contain.
        when: `"always"`, `{"first": 3}`, `{"nth": 3}`, `{"every": 3}` or `{"chance": {"per_mille": 100, "seed": 1}}`.
    """
    return {"fault": fault, "kinds": kinds, "key": key, "when": when}


class S3Server:
    """A running server, which keeps objects in memory. The methods access its content directly, not through S3
    requests.
    """

    def __init__(self) -> None:
        self._process = subprocess.Popen([binary()], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdout
        started = json.loads(self._process.stdout.readline())
        self.endpoint: str = started["endpoint"]
        self._control = urlsplit(started["control"]).netloc

    @property
    def pid(self) -> int:
        """The id of the server's process."""
        return self._process.pid

    def close(self) -> int:
        """Ends the server; returns the exit status of its process."""
        with self._process as process:
            assert process.stdin
            process.stdin.close()
            return process.wait(60)

    def __enter__(self) -> S3Server:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def options(self) -> dict[str, str]:
        """Returns the options with which a client reaches the server."""
        settings = self.settings()
        options = {
            "aws_endpoint_url": self.endpoint,
            "aws_access_key_id": settings["access_key"],
            "aws_secret_access_key": settings["secret_key"],
            "aws_session_token": settings["session_token"],
            "aws_region": settings["region"] or "us-east-1",
            "aws_allow_http": "true",
        }
        return {name: value for name, value in options.items() if value is not None}

    def settings(self) -> dict[str, Any]:
        """Returns the settings of the whole server."""
        return dict(json.loads(self._ask("GET", "/settings")))

    def set(self, **settings: object) -> None:
        """Changes settings: `access_key`, `secret_key`, `session_token`, `region`, `wrong_region_status` (400 or 301),
        `ignores_conditions`, `page_size`, `minimum_part`, `bytes_per_second`."""
        self._ask("PATCH", "/settings", settings)

    def faults(self, *rules: dict[str, object]) -> None:
        """Replaces all rules and resets their counters."""
        self._ask("PUT", "/faults", rules)

    def requests(self) -> list[dict[str, Any]]:
        """Returns the recorded requests: kind, bucket, key, query, range, sizes, status, and the rules that applied."""
        return list(json.loads(self._ask("GET", "/requests")))

    def take_requests(self) -> list[dict[str, Any]]:
        """Returns the requests so far and forgets them."""
        return list(json.loads(self._ask("DELETE", "/requests")))

    def reset(self) -> None:
        """Forgets all buckets, rules, requests and changed settings."""
        self._ask("POST", "/reset")

    def create_bucket(self, bucket: str) -> None:
        """Creates a bucket, unless it exists."""
        self._ask("POST", f"/buckets/{quote(bucket)}")

    def put(self, bucket: str, key: str, content: bytes) -> None:
        """Writes an object."""
        self._ask("PUT", f"/objects/{quote(bucket)}/{quote(key)}", content)

    def get(self, bucket: str, key: str) -> bytes:
        """Returns the content of an object."""
        return self._ask("GET", f"/objects/{quote(bucket)}/{quote(key)}")

    def delete(self, bucket: str, key: str) -> None:
        """Removes an object."""
        self._ask("DELETE", f"/objects/{quote(bucket)}/{quote(key)}")

    def set_modified(self, bucket: str, key: str, milliseconds: int) -> None:
        """Sets the modification time of an object, in milliseconds since 1970."""
        self._ask("PUT", f"/modified/{quote(bucket)}/{quote(key)}", milliseconds)

    def fill(self, bucket: str, prefix: str, suffix: str, count: int, content: str = "") -> None:
        """Writes objects `<prefix>00000000<suffix>` and so on, with the same content."""
        fields = {"prefix": prefix, "suffix": suffix, "count": count, "content": content}
        self._ask("POST", f"/fill/{quote(bucket)}", fields)

    def keys(self, bucket: str, prefix: str = "") -> list[str]:
        """Returns all keys with a prefix, sorted."""
        return list(json.loads(self._ask("GET", f"/keys/{quote(bucket)}?prefix={quote(prefix)}")))

    def open_uploads(self, bucket: str) -> list[str]:
        """Returns the key of each multipart upload that is neither completed nor aborted."""
        return list(json.loads(self._ask("GET", f"/uploads/{quote(bucket)}")))

    def _ask(self, method: str, path: str, body: object = b"") -> bytes:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        with closing(HTTPConnection(self._control, timeout=60)) as connection:
            connection.request(method, path, content)
            response = connection.getresponse()
            answer = response.read()
        if response.status == 404:
            raise LookupError(answer.decode())
        if response.status != 200:
            raise ValueError(answer.decode())
        return answer


def kinds(requests: Iterable[dict[str, Any]]) -> list[str]:
    """Returns the kind of each request."""
    return [request["kind"] for request in requests]
