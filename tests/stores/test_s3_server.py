"""Tests how Python tests start and control the S3 server. The server itself is tested in `crates/testkit`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from .s3_server import ROOT, S3Server, error, kinds, rule

TABLE = "s3://tables/t"
ROWS = pa.table({"id": [1, 2, 3]})


def test_a_client_writes_and_reads_a_table(s3: S3Server) -> None:
    write_deltalake(TABLE, ROWS, storage_options=s3.options())
    written = s3.take_requests()
    commit = "t/_delta_log/00000000000000000000.json"
    assert commit in s3.keys("tables", "t/_delta_log/")
    assert kinds(request for request in written if request["key"] == commit).count("create") == 1
    assert DeltaTable(TABLE, storage_options=s3.options()).to_pyarrow_table() == ROWS
    read = s3.requests()
    assert "list" in kinds(read)
    assert "put" not in kinds(read)
    assert s3.open_uploads("tables") == []


def test_requests_fail_as_rules_say(s3: S3Server) -> None:
    write_deltalake(TABLE, ROWS, storage_options=s3.options())
    s3.take_requests()
    s3.faults(rule(error("AccessDenied"), "list", key="t/_delta_log"))
    with pytest.raises(Exception, match="AccessDenied"):
        DeltaTable(TABLE, storage_options=s3.options())
    denied = [request for request in s3.requests() if request["rules"]]
    assert {(request["kind"], request["status"]) for request in denied} == {("list", 403)}
    s3.faults()
    assert DeltaTable(TABLE, storage_options=s3.options()).version() == 0


def test_settings_change_while_it_runs(s3: S3Server) -> None:
    old = s3.options()
    s3.set(access_key="rotated", session_token="of a day")  # noqa: S106 (no secret)
    with pytest.raises(Exception, match="InvalidAccessKeyId"):
        write_deltalake(TABLE, ROWS, storage_options=old)
    write_deltalake(TABLE, ROWS, storage_options=s3.options())
    with pytest.raises(ValueError, match="unknown field `acess_key`"):
        s3.set(acess_key="typo")
    with pytest.raises(ValueError, match="unknown variant `close`"):
        s3.faults(rule("close"))
    s3.reset()
    assert s3.options() == old
    assert s3.requests() == []


def test_objects_are_seen_directly(s3: S3Server) -> None:
    s3.put("tables", "t/p=a%20b/é?.txt", b"\x00content")
    s3.fill("tables", "t/part-", ".parquet", 3, "text")
    parts = [f"t/part-0000000{number}.parquet" for number in range(3)]
    assert s3.keys("tables") == ["t/p=a%20b/é?.txt", *parts]
    assert s3.keys("tables", "t/part") == parts
    assert s3.get("tables", "t/p=a%20b/é?.txt") == b"\x00content"
    assert s3.get("tables", parts[2]) == b"text"
    s3.set_modified("tables", parts[2], 1_000_000)
    s3.delete("tables", parts[2])
    for ask in (s3.get, s3.delete):
        with pytest.raises(LookupError, match="no such object"):
            ask("tables", parts[2])
    with pytest.raises(LookupError, match="no bucket 'other'"):
        s3.keys("other")
    assert s3.requests() == []


def test_it_ends_when_it_is_closed() -> None:
    assert S3Server().close() == 0


def test_it_does_not_outlive_a_process_that_is_killed() -> None:
    code = "import os, signal; from tests.stores.s3_server import S3Server; server = S3Server(); "
    code += "print(server.pid, flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    killed = subprocess.run([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, check=False)
    pid, deadline = int(killed.stdout), time.monotonic() + 60
    while is_running(pid):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{pid}/stat")
    # A process that has lost its parent may still be listed after it has ended, until its exit status is collected.
    return not (status.exists() and re.search(r"\) Z ", status.read_text()))


def test_a_binary_that_is_missing_is_named_with_the_command_that_builds_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DELTALOG_S3_SERVER", str(tmp_path / "absent"))
    with pytest.raises(FileNotFoundError, match=r"absent does not exist; build it with: cargo build -p"):
        S3Server()
