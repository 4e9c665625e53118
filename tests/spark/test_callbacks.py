"""Calls from the JVM to Python: they leak no resources, are authenticated, and can be nested."""

import contextlib
import gc
import os
import re
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

import deltalog
from deltalog.spark.errors import DeltaError
from deltalog.spark.failures import transport
from deltalog.spark.jvm import callback
from deltalog.spark.read import planner
from tests.spark.processes import run_python


def descriptors(process: int | str) -> int:
    return sum(1 for _ in Path(f"/proc/{process}/fd").iterdir())


def listening_ports() -> set[int]:
    """Returns the TCP ports on which this process listens."""
    sockets = set()
    for descriptor in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            sockets.add(str(descriptor.readlink()))
    ports = set()
    for line in Path("/proc/self/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[3] == "0A" and f"socket:[{fields[9]}]" in sockets:
            ports.add(int(fields[1].split(":")[1], 16))
    return ports


@pytest.fixture
def table(spark: SparkSession, path: str) -> str:
    spark.range(8).selectExpr("id", "id % 2 AS p").write.format("deltalog").partitionBy("p").save(path)
    return path


def joined(spark: SparkSession, path: str, number: int) -> list[Any]:
    """Makes a join of two scans. Spark plans one of them on a thread of its own pool."""
    frame = spark.read.format("deltalog").load(path).where(f"id >= {number % 4}")
    return frame.join(sf.broadcast(frame.where("p = 1")), "id").select("id").collect()


def resources(spark: SparkSession) -> dict[str, int]:
    """Counts the resources in this process and in the JVM that planning could leak."""
    gateway: Any = spark.sparkContext._gateway
    jvm: Any = spark.sparkContext._jvm
    gc.collect()
    runtime = jvm.java.lang.Runtime.getRuntime()
    heap = []
    for _ in range(3):
        runtime.gc()
        heap.append(runtime.totalMemory() - runtime.freeMemory())
    [resident] = re.findall(r"VmRSS:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return {
        "threads": threading.active_count(),
        "descriptors": descriptors("self"),
        "descriptors of the JVM": descriptors(jvm.java.lang.ProcessHandle.current().pid()),
        "objects kept for the JVM": len(gateway.gateway_property.pool),
        "planners": sum(isinstance(found, planner.Planner) for found in gc.get_objects()),
        "MiB": int(resident) // 1024,
        "MiB of heap": min(heap) >> 20,
    }


TABLES, VERSIONS = 13, 11  # Together, the tables have more versions than the planners that deltalog keeps.
# How many times each version is planned after the warm-up. 14 rounds make 2,002 plans (`make soak`).
ROUNDS = int(os.environ.get("DELTALOG_LEAK_ROUNDS", "1"))


@pytest.mark.newest
@pytest.mark.timeout(900)
@pytest.mark.thorough
def test_planning_leaks_nothing(spark: SparkSession, tmp_path: Path) -> None:
    """The resources stay the same while many versions are planned, most of them by one thread. A warm-up fills all
    caches before the resources are counted for the first time.
    """
    paths = [str(tmp_path / f"table {number}") for number in range(TABLES)]
    for number in range(TABLES * VERSIONS):
        rows = pa.table({"id": [number], "p": [number % 2]})
        deltalog.write_deltalake(paths[number % TABLES], rows, mode="append")
    assert TABLES * VERSIONS > planner._KEPT

    def plan(number: int) -> None:
        version, table = divmod(number % (TABLES * VERSIONS), TABLES)
        frame = spark.read.format("deltalog").option("versionAsOf", version).load(paths[table])
        frame.where(f"id = {number}")._jdf.queryExecution().executedPlan().toString()

    def rounds(count: int) -> dict[str, int]:
        with ThreadPoolExecutor(10) as pool:
            list(pool.map(lambda number: joined(spark, paths[0], number), range(10)))
        for number in range(count * TABLES * VERSIONS):
            plan(number)
        return resources(spark)

    before = rounds(1 if ROUNDS < 10 else 3)
    after = rounds(ROUNDS)
    for name, tolerance in {"MiB": 8, "MiB of heap": 16, "descriptors of the JVM": 4}.items():
        more = after.pop(name) - before.pop(name)
        # Memory can be judged only after many plans, because Spark's own caches grow at first.
        assert more <= tolerance or (ROUNDS < 10 and name.startswith("MiB")), name
    assert after == before


def test_the_text_of_a_plan_makes_no_call_to_python(
    spark: SparkSession, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from deltalog.spark.bridge import Bridge

    plan = spark.read.format("deltalog").load(table).where("p = 1")._jdf.queryExecution().executedPlan()
    called: list[Any] = []
    monkeypatch.setattr(Bridge, "call", lambda *request: called.append(request))
    assert re.search(r"\[v0, 2 of 4 files", plan.toString())
    assert called == []


def test_kept_exceptions_hold_no_frames(spark: SparkSession, path: str) -> None:
    with pytest.raises(DeltaError):
        spark.read.format("deltalog").load(path)
    kept = list(transport._pending.values())
    assert kept
    for error in kept:
        seen: BaseException | None = error
        while seen is not None:
            assert seen.__traceback__ is None
            seen = seen.__cause__ or seen.__context__


def test_processes_that_share_a_jvm_do_not_confuse_their_errors() -> None:
    code = "from deltalog.spark.failures import transport; print(transport.keep(ValueError()))"
    first, second = (run_python(code).stdout for _ in range(2))
    assert first
    assert second
    assert first != second


def test_errors_that_pyspark_raised_in_a_callback_keep_their_condition(
    spark: SparkSession, table: str
) -> None:
    """The raised error is a copy of the original error, even if its class cannot be created from its own `args`."""
    from pyspark.errors.exceptions.captured import AnalysisException

    frame = spark.sql("SELECT array(1) AS id, 1L AS p")
    caught = []
    for _ in range(2):
        with pytest.raises(AnalysisException, match="id") as raised:
            frame.write.format("deltalog").mode("append").save(table)
        caught.append(raised.value)
    assert (
        caught[0].getCondition()
        == caught[1].getCondition()
        == "INCOMPATIBLE_DATA_FOR_TABLE.CANNOT_SAFELY_CAST"
    )


def test_connections_without_a_token_are_not_served(
    spark: SparkSession, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every user of the machine can connect to the port, so a connection must send a token.

    PySpark's own callback server, which it starts for example for `foreachBatch`, does not require a token.
    """
    from pyspark.java_gateway import ensure_callback_server_started

    from deltalog.spark.bridge import Bridge

    gateway: Any = spark.sparkContext._gateway
    ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
    assert len(spark.read.format("deltalog").load(table).collect()) == 8
    called: list[Any] = []
    monkeypatch.setattr(Bridge, "call", lambda *request: called.append(request), raising=False)
    monkeypatch.setattr(Bridge, "apply", lambda *request: called.append(request), raising=False)
    ports = listening_ports()
    assert {gateway._callback_server.get_listening_port()} < ports
    for port in ports:
        for target in {callback._TARGET, *gateway.gateway_property.pool.dict}:
            for method in ("call", "apply"):
                with socket.create_connection(("127.0.0.1", port), timeout=5) as client:
                    client.sendall(f"c\n{target}\n{method}\nsTableCalls\nsexists\ne\n".encode())
                    with contextlib.suppress(OSError):
                        client.recv(100)
    assert called == []


def test_calls_may_be_nested_and_do_not_block_each_other(
    spark: SparkSession, table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Calls may be nested, as a write plans reads. They do not block each other: several threads plan at the same time
    while one of them waits for its store.
    """
    from deltalog.spark.read import planner

    waiting, go = threading.Event(), threading.Event()
    files: Callable[..., Any] = planner.Planner._files

    def slow(self: planner.Planner, filters: str, time_zone: str) -> Any:
        if "7777" in filters:
            waiting.set()
            assert go.wait(60)
        return files(self, filters, time_zone)

    monkeypatch.setattr(planner.Planner, "_files", slow)
    with ThreadPoolExecutor(8) as pool:
        slow_read = pool.submit(
            lambda: spark.read.format("deltalog").load(table).where("id < 7777").collect()
        )
        try:
            assert waiting.wait(60)
            others = [pool.submit(joined, spark, table, number) for number in range(6)]
            assert [len(other.result(60)) for other in others] == [4, 4, 3, 3, 4, 4]
            copy = str(tmp_path / "copy")
            frame = spark.read.format("deltalog").load(table)
            frame.join(sf.broadcast(frame.where("p = 0")), "id", "left_semi").write.format("deltalog").save(
                copy
            )
            assert sorted(row.id for row in spark.read.format("deltalog").load(copy).collect()) == [
                0,
                2,
                4,
                6,
            ]
        finally:
            go.set()
        assert len(slow_read.result(60)) == 8
