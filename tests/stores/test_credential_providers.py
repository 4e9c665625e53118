"""Tables get their credentials from a provider, the argument `credential_provider=`."""

from __future__ import annotations

import json
import os
import pickle
import threading
import time
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest

import deltalog
from deltalog import DeltaTable, DistributedWrite, begin_write, write_deltalake

from . import programs
from .s3_server import S3Server

ROWS = pa.table({"id": [1, 2, 3]})
URI = "s3://tables/t"
SECRETS = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")


def place(s3: S3Server) -> dict[str, str]:
    """Returns the options for the server, without credentials."""
    return {name: value for name, value in s3.options().items() if name not in SECRETS}


class Provider:
    """A function that returns the right credentials, and counts its calls."""

    def __init__(self, s3: S3Server, lifetime: float | None = None) -> None:
        self.s3, self.lifetime, self.asked, self.asking, self.most = s3, lifetime, 0, 0, 0

    def __call__(self) -> Mapping[str, Any]:
        self.asked += 1
        self.asking += 1
        self.most = max(self.most, self.asking)
        time.sleep(0.01)
        options = self.s3.options()
        self.asking -= 1
        end = None if self.lifetime is None else time.time() + self.lifetime
        return {name: options.get(name) for name in SECRETS} | {"expires_at": end}


def test_everything_that_opens_a_store_takes_a_provider(s3: S3Server) -> None:
    provider = Provider(s3)
    opened: dict[str, Any] = {"storage_options": place(s3), "credential_provider": provider}
    deltalog.storage.check(URI, **opened)
    assert not DeltaTable.is_deltatable(URI, **opened)
    created = DeltaTable.create(URI, ROWS.schema, **opened)
    before = provider.asked
    write_deltalake(URI, ROWS, mode="append", **opened)
    write = begin_write(URI, mode="append", **opened)
    assert isinstance(write, DistributedWrite)
    with write:
        write.commit([write.task.write(ROWS, place(s3), credential_provider=provider)])
    table = DeltaTable(URI, **opened)
    write_deltalake(table, ROWS, mode="append")
    table.update_incremental()
    table.delete("id = 1")
    assert (table.version(), table.count()) == (4, 6)
    # The tables share a client of the store, which has already asked the provider.
    assert provider.asked == before
    assert created.version() == 0


def test_expired_credentials_are_requested_again(s3: S3Server) -> None:
    provider = Provider(s3, lifetime=1.0)
    write_deltalake(URI, ROWS, storage_options=place(s3), credential_provider=provider)
    table = DeltaTable(URI, storage_options=place(s3), credential_provider=provider)
    s3.set(secret_key="another", session_token="and a token")  # noqa: S106
    time.sleep(1.1)
    before = provider.asked
    assert pa.table(table.to_arrow()).num_rows == 3
    assert provider.asked > before


def test_one_thread_gets_credentials_for_all_threads(s3: S3Server) -> None:
    write_deltalake(URI, ROWS, storage_options=s3.options())
    provider = Provider(s3)
    tables: list[int] = []

    def read() -> None:
        table = DeltaTable(URI, storage_options=place(s3), credential_provider=provider)
        tables.append(pa.table(table.to_arrow()).num_rows)

    threads = [threading.Thread(target=read) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert tables == [3] * 16
    # The client of a store is dropped with its last table, so the threads may have used several clients.
    assert provider.most == 1


def opening(s3: S3Server, provider: Any, uri: str = URI, **options: str) -> deltalog.DeltaError:
    with pytest.raises(deltalog.DeltaError) as raised:
        DeltaTable(uri, storage_options={**place(s3), **options}, credential_provider=provider)
    return raised.value


def failing() -> object:
    raise LookupError("the vault is sealed")


def test_a_provider_that_fails(s3: S3Server) -> None:
    error = opening(s3, failing)
    assert type(error).__name__ == "AccessDeniedError"
    assert f"the credential provider {__name__}.failing failed" in str(error)
    assert "LookupError: the vault is sealed" in str(error)
    assert isinstance(error.__cause__, LookupError)
    assert s3.requests() == []


def test_a_provider_that_asks_to_stop(s3: S3Server) -> None:
    def stop() -> object:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        DeltaTable(URI, storage_options=place(s3), credential_provider=stop)


def test_a_provider_that_returns_something_else(s3: S3Server) -> None:
    error = opening(s3, lambda: {"user": "hidden"})
    assert type(error).__name__ == "InvalidArgumentError"
    assert "returned a mapping without credentials, with the names 'user'" in str(error)
    assert "'access_key_id'" in str(error)
    error = opening(s3, lambda: {"token": "hidden"})
    assert "this store takes an access key" in str(error)
    error = opening(s3, lambda: {"access_key_id": "x", "secret_access_key": "hidden", "expires_at": 1})
    assert "returned credentials that have expired" in str(error)
    assert "hidden" not in str(error)
    error = opening(s3, dict, **{SECRETS[1]: "hidden"})
    assert "'aws_secret_access_key' and a credential provider cannot be passed together" in str(error)


def test_the_wrong_credentials(s3: S3Server) -> None:
    write_deltalake(URI, ROWS, storage_options=s3.options())
    error = opening(s3, lambda: {"access_key_id": "testkit", "secret_access_key": "hidden"})
    assert type(error).__name__ == "AccessDeniedError"
    assert "hidden" not in str(error)


def test_nothing_is_committed_without_credentials(s3: S3Server) -> None:
    """If the provider fails, the put of the commit is not sent, so nothing has to be read back."""
    provider = Provider(s3, lifetime=1.0)
    write_deltalake(URI, ROWS, storage_options=place(s3), credential_provider=provider)
    table = DeltaTable(URI, storage_options=place(s3), credential_provider=provider)
    time.sleep(1.1)
    provider.s3 = None  # type: ignore[assignment]
    with pytest.raises(deltalog.AccessDeniedError, match="'NoneType' object has no attribute 'options'"):
        write_deltalake(table, ROWS, mode="append")
    assert DeltaTable(URI, storage_options=s3.options()).version() == 0


PROGRAM = """
import json, os, sys, time
import polars, pyarrow as pa
from deltalog import DeltaTable, write_deltalake
options = json.loads(sys.argv[1])
secrets = {name: options.pop(name) for name in list(options) if "key" in name or "token" in name}
valid = 1.0  # Seconds. On a busy machine, an answer may take a part of them.
def provider():
    # Other threads run and take the interpreter lock.
    time.sleep(0.001)
    return secrets, time.time() + valid
def expire():
    time.sleep(valid + 0.01)
opened = dict(storage_options=options, credential_provider=provider)
uri = "s3://tables/t"
"""


def run(s3: S3Server, program: str) -> None:
    programs.run(PROGRAM + program, json.dumps(s3.options()))


def test_a_consumer_that_holds_the_interpreter(s3: S3Server) -> None:
    """A provider needs Python's global lock, which a consumer of a stream may hold while it waits for rows. This must
    not deadlock.
    """
    run(
        s3,
        """
for _ in range(8):
    write_deltalake(uri, pa.table({"id": list(range(1000))}), mode="append", **opened)
table = DeltaTable(uri, **opened)
for read in (pa.table, polars.DataFrame, polars.from_arrow):
    for _ in range(2):
        expire()
        assert len(read(table.to_arrow())) == 8000
""",
    )


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_asks_the_provider_itself(s3: S3Server) -> None:
    run(
        s3,
        """
write_deltalake(uri, pa.table({"id": [1]}), **opened)
table = DeltaTable(uri, **opened)
for child in range(3):
    expire()
    if (pid := os.fork()) == 0:
        assert pa.table(table.to_arrow()).num_rows == 1
        write_deltalake(uri, pa.table({"id": [1]}), mode="append", **opened)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
table.update_incremental()
assert table.version() == 3
""",
    )


def test_a_process_ends_while_a_provider_is_asked(s3: S3Server) -> None:
    """If the interpreter ended while a thread of ours still ran Python code, some of these runs would crash."""
    for _ in range(4):
        run(
            s3,
            """
import threading
write_deltalake(uri, pa.table({"id": [1]}), mode="append", **opened)

def slow():
    for _ in range(100):
        time.sleep(0.0001)
    return secrets, time.time() + 0.05

def work():
    table = DeltaTable(uri, storage_options=options, credential_provider=slow)
    while True:
        try:
            table.update_incremental()
        except Exception:
            time.sleep(0.01)

for _ in range(4):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.3)
""",
        )


WHERE: dict[str, str] = {}


def of_this_module() -> dict[str, str]:
    return WHERE


class BotoSession:
    """A class that looks like `boto3.Session`."""

    region_name = None

    def get_credentials(self) -> object:
        return self

    def get_frozen_credentials(self) -> object:
        return type("Frozen", (), {**of_this_module(), "token": WHERE.get("session_token")})


def test_a_pickled_table_has_a_function_as_its_provider(
    s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = s3.options()
    WHERE.update(access_key_id=options[SECRETS[0]], secret_access_key=options[SECRETS[1]])
    WHERE.update(access_key=options[SECRETS[0]], secret_key=options[SECRETS[1]])
    write_deltalake(URI, ROWS, storage_options=options)
    table = DeltaTable(URI, storage_options=place(s3), credential_provider=of_this_module)
    pickled = pickle.dumps(table)
    assert options["aws_secret_access_key"].encode() not in pickled
    for name, value in place(s3).items():
        monkeypatch.setenv(name.upper(), value)
    assert pa.table(pickle.loads(pickled).to_arrow()).num_rows == 3  # noqa: S301
    session = DeltaTable(URI, credential_provider=BotoSession())
    assert session.count() == 3
    with pytest.raises(deltalog.UnsupportedFeatureError, match="BotoSession cannot be pickled"):
        pickle.dumps(session)
