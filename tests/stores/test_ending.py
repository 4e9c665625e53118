"""A program ends although threads of other libraries are still in deltalog, and wait for a store or credentials."""

from __future__ import annotations

import os
import subprocess

import pyarrow as pa
import pytest

from deltalog import write_deltalake

from .programs import command, environment
from .s3_server import S3Server, rule

URI = "s3://tables/t"
PATIENT = {"read_timeout": "300s", "retry_timeout": "300s"}


def ended(program: str) -> tuple[int, str, str]:
    """Returns the exit status of a program, and what it has written to its two outputs."""
    # The store would be silent for longer than this time limit.
    done = subprocess.run(
        command(program), check=False, timeout=120, env=environment(), capture_output=True, text=True
    )
    return done.returncode, done.stdout, done.stderr


def silent_after_one_file(s3: S3Server) -> None:
    """Makes a table whose newest file can be read, and whose other file the store never sends. pyarrow waits for all
    of a small table before it returns the first rows.
    """
    write_deltalake(URI, pa.table({"n": [1, 2]}), storage_options=s3.options())
    (key,) = (key for key in s3.keys("tables") if key.endswith(".parquet"))
    rows = pa.table({"n": range(100_000)})
    write_deltalake(URI, rows, mode="append", storage_options=s3.options())
    s3.faults(rule("silence_before", "get", key=key))


PROVIDERS = {"without a provider": "None", "with a provider": "lambda: {**secrets, 'expires_at': None}"}


@pytest.mark.parametrize("when", ["in the program", "at exit"])
@pytest.mark.parametrize("provider", PROVIDERS.values(), ids=PROVIDERS)
def test_a_program_ends_while_pyarrow_waits_for_a_silent_store(
    s3: S3Server, provider: str, when: str
) -> None:
    """Once a credential provider has been passed, threads detach from the interpreter while they read, and attach
    again. Therefore, the test runs with and without a provider.
    """
    silent_after_one_file(s3)
    program = f"""
        import atexit
        def read():
            print(next(iter(deltalog.pyarrow.dataset(table).to_batches())).num_rows > 0)
        if {when == "at exit"}:
            atexit.register(read)
        import deltalog.pyarrow
        import pyarrow.dataset  # It cannot be imported at exit.
        options = {s3.options() | PATIENT!r}
        names = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
        provider = {provider}
        secrets = {{name: options.pop(name, None) for name in names}} if provider else {{}}
        table = deltalog.DeltaTable({URI!r}, storage_options=options, credential_provider=provider)
        if {when == "in the program"}:
            read()
    """
    assert ended(program) == (0, "True\n", "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_ends_without_waiting_for_threads_of_its_parent(s3: S3Server) -> None:
    silent_after_one_file(s3)
    program = f"""
        import atexit, os, sys, time
        def last():
            # If the child waited for the thread that only its parent has, it would wait for 10 seconds.
            print(time.monotonic() - begun < 8, flush=True)
        def first():
            global begun
            begun = time.monotonic()
        atexit.register(last)
        import deltalog.pyarrow
        atexit.register(first)
        table = deltalog.DeltaTable({URI!r}, storage_options={s3.options() | PATIENT!r})
        batches = iter(deltalog.pyarrow.dataset(table).to_batches())
        next(batches)
        if (child := os.fork()) == 0:
            sys.exit()
        assert os.waitpid(child, 0)[1] == 0
        os.write(1, b"the child has ended\\n")
    """
    status, output, errors = ended(program)
    assert (status, errors) == (0, "")
    assert output.splitlines() == ["True", "the child has ended", "True"]


def test_a_program_waits_for_a_provider_of_credentials(s3: S3Server) -> None:
    """The program ends only after the provider has returned. Otherwise, Python would end the thread that runs the
    provider while it is inside of deltalog.
    """
    write_deltalake(URI, pa.table({"n": [1]}), storage_options=s3.options())
    program = f"""
        import threading, time, deltalog
        options = {s3.options()!r}
        names = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
        secrets = {{name: options.pop(name, None) for name in names}}
        is_slow, is_asked = threading.Event(), threading.Event()
        def provider():
            if not is_slow.is_set():
                return {{**secrets, "expires_at": time.time() + 1}}
            is_asked.set()
            for _ in range(30):
                time.sleep(0.1)
            print("done", flush=True)
            return {{**secrets, "expires_at": None}}
        table = deltalog.DeltaTable({URI!r}, storage_options=options, credential_provider=provider)
        time.sleep(1.1)
        is_slow.set()
        threading.Thread(target=table.update_incremental, daemon=True).start()
        is_asked.wait()
    """
    assert ended(program) == (0, "done\n", "")
