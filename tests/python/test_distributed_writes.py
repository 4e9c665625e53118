"""Several processes write files of one commit. Their tasks and fragments are plain data."""

from __future__ import annotations

import json
import multiprocessing
import os
import pickle
import signal
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

import deltalog
from deltalog import (
    CommitProperties,
    DeltaTable,
    DistributedWrite,
    Field,
    Fragment,
    Identity,
    Schema,
    Transaction,
    WriteTask,
    begin_write,
    write_deltalake,
)
from tests.python import workers
from tests.python.place import actions, data_files
from tests.python.workers import SCHEMA, part, work, write_and_wait

SPAWN = multiprocessing.get_context("spawn")


def begin(path: Any, schema: Any = None, **arguments: Any) -> DistributedWrite:
    write = begin_write(path, schema, **{"mode": "append", **arguments})
    assert isinstance(write, DistributedWrite)
    return write


def rows(path: Path) -> list[dict[str, Any]]:
    return sorted(pa.table(DeltaTable(path).to_arrow()).to_pylist(), key=lambda row: row["id"])


def ids(path: Path) -> list[int]:
    return [row["id"] for row in rows(path)]


def test_processes_write_and_one_commits(tmp_path: Path) -> None:
    table = tmp_path / "a table"
    write = begin(table, SCHEMA, partition_by="p")
    with ProcessPoolExecutor(1, SPAWN) as pool:
        fragments = list(pool.map(work, [write.task] * 3, range(3)))
        # Another process is killed while it writes.
        receiver, sender = SPAWN.Pipe(duplex=False)
        doomed = SPAWN.Process(target=write_and_wait, args=(write.task, sender))
        doomed.start()
        assert receiver.recv()
        assert doomed.pid is not None
        os.kill(doomed.pid, signal.SIGKILL)
        doomed.join()
    torn = [file for file in table.rglob("*.parquet") if file.stat().st_size == 0 or _is_torn(file)]
    assert torn
    assert write.commit(fragments) == 0
    assert ids(table) == list(range(6))
    assert not any(file.exists() for file in torn)
    assert len(data_files(table)) == len(DeltaTable(table).file_uris()) == 6
    assert len(deltalake.DeltaTable(table).to_pyarrow_table()) == 6
    add = next(action["add"] for action in actions(table, 0) if "add" in action)
    assert json.loads(add["stats"])["numRecords"] == 1
    assert add["partitionValues"] in ({"p": "0"}, {"p": "1"})


def _is_torn(file: Path) -> bool:
    return file.read_bytes()[-4:] != b"PAR1"


def test_a_task_and_a_fragment_are_plain_data(tmp_path: Path) -> None:
    write_deltalake(tmp_path, part(1))
    write = begin(tmp_path)
    task = pickle.loads(pickle.dumps(write.task))  # noqa: S301
    assert task == write.task == WriteTask(write.task.to_json())
    fragment = pickle.loads(pickle.dumps(task.write(part(2, 3))))  # noqa: S301
    assert fragment == Fragment(fragment.to_json())
    assert (fragment.num_rows, len(fragment.paths), fragment.write_id) == (2, 1, task.write_id)
    assert fragment.size_in_bytes == sum((tmp_path / path).stat().st_size for path in fragment.paths)
    assert task.table_uri == DeltaTable(tmp_path).table_uri
    assert write.commit(iter([fragment])) == 1
    with pytest.raises(deltalog.InvalidArgumentError, match="not a write fragment"):
        Fragment("{}")
    with pytest.raises(deltalog.InvalidArgumentError, match="not a write task"):
        WriteTask(fragment.to_json())


def test_a_worker_that_runs_twice_leaves_nothing(tmp_path: Path) -> None:
    write = begin(tmp_path, SCHEMA)
    first, second = (write.task.write(part(1)) for _ in range(2))
    with pytest.raises(deltalog.InvalidArgumentError, match="twice"):
        write.commit([first, first])
    assert write.commit([second]) == 0
    assert ids(tmp_path) == [1]
    assert len(data_files(tmp_path)) == 1
    with pytest.raises(deltalog.InvalidArgumentError, match="already committed"):
        write.commit([first])


def test_fragments_of_other_writes_and_other_things_are_refused(tmp_path: Path) -> None:
    write_deltalake(tmp_path, part(1))
    one, other = begin(tmp_path), begin(tmp_path)
    good, foreign = one.task.write(part(2)), other.task.write(part(3))
    changed = json.loads(good.to_json())
    changed["files"][0]["size"] += 1
    for fragments, error, message in (
        ([foreign], deltalog.InvalidArgumentError, "belongs to the write"),
        ([good, Fragment(json.dumps(changed))], deltalog.InvalidArgumentError, "twice"),
        ([Fragment(json.dumps(changed))], deltalog.CorruptDataError, "but its fragment says"),
        ([None], deltalog.InvalidArgumentError, "the fragments that WriteTask.write returned"),
        (None, deltalog.InvalidArgumentError, "the fragments that WriteTask.write returned"),
    ):
        with pytest.raises(error, match=message):
            one.commit(fragments)  # type: ignore[arg-type]
    assert one.commit([good]) == 1
    (tmp_path / foreign.paths[0]).unlink()
    with pytest.raises(deltalog.MissingFileError, match="same place"):
        other.commit([foreign])
    other.abort()
    assert ids(tmp_path) == [1, 2]


def test_the_block_aborts_what_was_not_committed(tmp_path: Path) -> None:
    write_deltalake(tmp_path, part(1))
    before = data_files(tmp_path)
    write = begin(tmp_path)

    def fail() -> None:
        with write:
            write.task.write(part(2))
            assert data_files(tmp_path) != before
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    with begin(tmp_path) as left:
        left.task.write(part(2))
    for ended in (write, left):
        with pytest.raises(deltalog.InvalidArgumentError, match="already aborted"):
            ended.commit([])
    assert data_files(tmp_path) == before
    with begin(tmp_path) as committed:
        committed.commit([committed.task.write(part(2))])
    assert ids(tmp_path) == [1, 2]


def test_concurrent_commits(tmp_path: Path) -> None:
    write_deltalake(tmp_path, part(1))
    append, overwrite = begin(tmp_path), begin(tmp_path, mode="overwrite")
    fragments = [append.task.write(part(2))], [overwrite.task.write(part(3))]
    write_deltalake(tmp_path, part(4), mode="append")
    assert append.commit(fragments[0]) == 2
    with pytest.raises(deltalog.CommitConflictError):
        overwrite.commit(fragments[1])
    with pytest.raises(deltalog.InvalidArgumentError, match="has failed"):
        overwrite.abort()
    stale = begin(tmp_path)
    fragment = stale.task.write(part(5))
    assert stale.commit([fragment]) == 3
    assert ids(tmp_path) == [1, 2, 4, 5]
    assert len(data_files(tmp_path)) == 4


def test_workers_enforce_the_rules_of_the_table(tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path, part(1))
    deltalake.DeltaTable(tmp_path).alter.add_constraint({"small": "id < 10"})
    write = begin(tmp_path)
    with pytest.raises(deltalog.InvalidArgumentError, match="small"):
        write.task.write(part(2, 10))
    with pytest.raises(deltalog.SchemaMismatchError, match="other"):
        write.task.write(pa.table({"other": [1]}))
    with pytest.raises(deltalog.InvalidArgumentError, match="unknown"):
        write.task.write(part(2), storage_options={"key": "secret"})
    assert write.commit([write.task.write(part(2))]) == 2
    assert ids(tmp_path) == [1, 2]
    assert len(data_files(tmp_path)) == 2


@pytest.mark.parametrize("mode", ["name", "id"])
def test_column_mapping(mode: str, tmp_path: Path) -> None:
    configuration = {"delta.columnMapping.mode": mode}
    write = begin(tmp_path, SCHEMA, partition_by="p", configuration=configuration)
    fragments = [WriteTask(write.task.to_json()).write(part(number)) for number in range(3)]
    values = json.loads(fragments[0].to_json())["files"][0]["partitionValues"]
    assert list(values) != ["p"]
    assert write.commit(fragments) == 0
    assert rows(tmp_path) == part(0, 1, 2).to_pylist()
    append = begin(tmp_path)
    assert append.commit([append.task.write(part(3))]) == 1
    assert rows(tmp_path) == part(0, 1, 2, 3).to_pylist()


def test_modes_and_options_are_those_of_a_write(tmp_path: Path) -> None:
    with pytest.raises(deltalog.NotATableError, match="no schema to create one"):
        begin_write(tmp_path, mode="append")
    once = CommitProperties(custom_metadata={"by": "me"}, app_transactions=[Transaction("job", 1)])
    write = begin(tmp_path, SCHEMA, mode="error", commit_properties=once, partition_by=["p"])
    second = begin(tmp_path, SCHEMA, mode="append", commit_properties=once, partition_by=["p"])
    fragment = second.task.write(part(9))
    assert write.commit([write.task.write(part(1, 2))]) == 0
    assert isinstance(second.commit([fragment]), deltalog.AlreadyApplied)
    assert isinstance(begin_write(tmp_path, commit_properties=once), deltalog.AlreadyApplied)
    assert begin_write(tmp_path, mode="ignore") is None
    with pytest.raises(deltalog.TableAlreadyExistsError):
        begin_write(tmp_path, SCHEMA)
    replace = begin(tmp_path, mode="overwrite", predicate="id > 1")
    with pytest.raises(deltalog.InvalidArgumentError, match="id > 1"):
        replace.task.write(part(0))
    assert replace.commit([replace.task.write(part(4))]) == 1
    dynamic = begin(tmp_path, mode="overwrite", partition_overwrite="dynamic")
    assert dynamic.commit([dynamic.task.write(part(6))]) == 2
    merged = begin(tmp_path, pa.schema([*SCHEMA, ("x", pa.int32())]), schema_mode="merge")
    assert merged.commit([merged.task.write(part(7).append_column("x", pa.array([1], pa.int32())))]) == 3
    assert rows(tmp_path) == [
        {"id": 1, "p": "1", "x": None},
        {"id": 6, "p": "0", "x": None},
        {"id": 7, "p": "1", "x": 1},
    ]
    newest = DeltaTable(tmp_path).history()
    assert newest[-1]["by"] == "me"
    assert newest[1]["operationParameters"]["mode"] == "Overwrite"
    sized = begin(tmp_path, target_file_size=1 << 20)
    many = pa.table(
        {"id": [number * 0x9E3779B97F4A7C15 % 2**62 for number in range(300_000)], "p": ["x"] * 300_000}
    )
    assert len(sized.task.write(many).paths) == 2
    sized.abort()
    with pytest.raises(deltalog.InvalidArgumentError, match="target_file_size"):
        begin_write(tmp_path, target_file_size=0)


def test_workers_count_identity_columns_by_the_numbers_of_their_tasks(tmp_path: Path) -> None:
    """Protocol: "Identity Columns"."""
    schema = Schema([Field("id", "long"), Field("number", "long", identity=Identity(start=10, step=10))])
    DeltaTable.create(tmp_path, schema=schema)
    data = pa.table({"id": range(5)})
    write = begin(tmp_path, mode="append")
    with pytest.raises(deltalog.InvalidArgumentError, match=r"'number'.*tasks\(count\)"):
        write.task.write(data)
    with pytest.raises(deltalog.InvalidArgumentError, match="count cannot be 0"):
        write.tasks(0)
    with pytest.raises(deltalog.InvalidArgumentError, match="no task 3 of 3"):
        write.task.numbered(3, 3)
    tasks = write.tasks(3)
    assert tasks[1] == write.task.numbered(1, 3) != tasks[0]
    with ProcessPoolExecutor(1, SPAWN) as pool:
        parts = [data.slice(0, 3), data.slice(3, 1), data.slice(4)]
        fragments = list(pool.map(workers.write, tasks, parts))
    with pytest.raises(deltalog.InvalidArgumentError, match="two fragments belong to the task 1 of 3"):
        write.commit([*fragments, tasks[1].write(data)])
    write.commit(fragments)
    found = pa.table(DeltaTable(tmp_path).to_arrow()).sort_by("id").to_pydict()
    assert found == {"id": [0, 1, 2, 3, 4], "number": [10, 40, 70, 20, 30]}
    # The high water mark was updated, so later writes continue after it.
    write_deltalake(tmp_path, data.slice(0, 1), mode="append")
    numbers = pa.table(DeltaTable(tmp_path).to_arrow()).column("number").to_pylist()
    assert max(numbers) == 80
    assert len(set(numbers)) == 6
