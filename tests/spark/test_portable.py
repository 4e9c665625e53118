"""Runs the portable source (the Python data source) without a session, as Spark's workers do.

It returns the rows that the golden tables expect, as the native scan does.
"""

import datetime
import decimal
import json
import pickle
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

import deltalog
from deltalog._internal import SparkWrite
from deltalog.spark import portable
from deltalog.spark.connect import exchange, task_files
from deltalog.spark.portable import DeltalogDataSource, DeltalogWriter
from deltalog.spark.sql import maintenance
from tests.conftest import missing
from tests.crafted import CraftedTable, field
from tests.golden import canonical
from tests.golden.expected import ROOT, Golden, load

TABLES = [golden for golden in load() if golden.outcome == "read"]


def read(golden: Golden, **options: Any) -> pa.Table:
    """Returns the rows of a read. Each partition is read with a pickled copy of the reader, as in another process."""
    source = DeltalogDataSource(
        {
            "path": str(golden.table),
            "numPartitions": "3",
            **{name: str(value) for name, value in options.items()},
        }
    )
    schema = source.schema()
    reader = source.reader(schema)
    batches = [
        batch
        for partition in reader.partitions()
        for batch in pickle.loads(pickle.dumps(reader)).read(partition)  # noqa: S301
    ]
    from deltalog.spark.schema import arrow_schema

    return pa.Table.from_batches(batches, arrow_schema(schema))


@pytest.mark.newest
def test_every_table_is_read_as_expected() -> None:
    if not TABLES:
        missing(f"no golden tables at {ROOT}; DELTALOG_GOLDEN names another folder")
    failures = []
    for golden in TABLES:
        if "variant" in str(golden.expected["schema"]):
            continue  # Spark does not mark variants in the Arrow data that it passes to Python.
        lines = canonical.rows(read(golden))
        if (len(lines), canonical.sha256(lines)) != (
            golden.expected["num_rows"],
            golden.expected["rows_sha256"],
        ):
            failures.append(golden.name)
    assert not failures


@pytest.mark.parametrize(
    "golden", [golden for golden in TABLES if "cdf" in golden.expected], ids=lambda golden: golden.name
)
def test_change_data_feeds_agree_with_python(golden: Golden) -> None:
    feed = golden.expected["cdf"]
    start, end = feed["start_version"], feed["end_version"]
    found = read(golden, readChangeFeed="true", startingVersion=start, endingVersion=end)
    wanted = pa.table(deltalog.DeltaTable(golden.table).load_cdf(start, end))
    assert found.column_names == wanted.column_names
    assert canonical.rows(found) == canonical.rows(wanted)


TRACKED = [golden for golden in TABLES if "rowTracking" in golden.features and golden.expected["num_rows"]]


@pytest.mark.parametrize("golden", TRACKED, ids=lambda golden: golden.name)
def test_row_ids_agree_with_python(golden: Golden) -> None:
    """PROTOCOL.md, "Row Tracking"."""
    found, wanted = (
        read(golden, rowIds="true"),
        pa.table(deltalog.DeltaTable(golden.table).to_arrow(row_ids=True)),
    )
    assert found.column_names == wanted.column_names
    assert canonical.rows(found) == canonical.rows(wanted)


def test_row_ids_are_refused_without_row_tracking() -> None:
    golden = next(golden for golden in TABLES if "rowTracking" not in golden.features)
    with pytest.raises(deltalog.InvalidArgumentError, match="row tracking is not enabled"):
        read(golden, rowIds="true")


ZONE = {"condition": None, "time_zone": "UTC"}


def ask(path: str, command: str, **arguments: Any) -> Any:
    """Executes a command through the data source, as `DeltaTable` does under Spark Connect."""
    options = {"path": path, exchange.COMMAND: command, exchange.ARGUMENTS: json.dumps(arguments)}
    source = DeltalogDataSource(options)
    assert source.schema().names == [exchange.ANSWER]
    reader = pickle.loads(pickle.dumps(source.reader(source.schema())))  # noqa: S301
    [row] = [row for partition in reader.partitions() for row in reader.read(partition)]
    return exchange.value_of(*row)


def test_results_of_commands_agree_with_python(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    moment = datetime.datetime(2024, 1, 2, 3, 4, 5, 678901, tzinfo=datetime.timezone.utc)
    columns = {
        "d": pa.array([datetime.date(1999, 12, 31), datetime.date(2024, 1, 1)]),
        "n": pa.array([decimal.Decimal("1.50"), decimal.Decimal("-2.25")], pa.decimal128(10, 2)),
        "p": pa.array([moment, moment]),
        "s": ["ß", "a"],
    }
    deltalog.write_deltalake(path, pa.table(columns), partition_by=["p"])
    table = deltalog.DeltaTable(path)
    assert ask(path, "version") == 0
    assert ask(path, "history", limit=1)[0]["version"] == 0
    assert ask(path, "detail")["partitionColumns"] == ["p"]
    assert ask(path, "count", **ZONE) == table.count() == 2
    for column in columns:
        extremes = ask(path, "minMax", column=column, **ZONE)
        assert extremes == table.min_max(column)
        assert (
            extremes is not None or column == "s"
        )  # Bounds of strings are not exact, so there is no answer.
    counts = ask(path, "countByPartition", **ZONE)
    assert counts.to_pylist() == [{"p": moment, "count": 2}]


def test_files_are_checked_and_repaired_by_commands(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    deltalog.write_deltalake(path, pa.table({"a": [1, 2], "p": [None, "x"]}), partition_by=["p"])
    assert ask(path, "generate", mode="symlink_format_manifest") == 0
    assert ask(path, "check", level="rows") == []
    next(Path(path).glob("p=__*/*.parquet")).unlink()
    [found] = ask(path, "check", level="files")
    assert found["problem"] == "missing file"
    assert found["partition_values"] == {"p": None}
    assert maintenance.checked_row(found)[5].tzinfo == datetime.timezone.utc
    choices = {"remove_damaged": False, "drop_files_without_vectors": False, "user_metadata": "why"}
    planned = ask(path, "repair", dry_run=True, **choices)
    assert (len(planned["rows"]), planned["version"]) == (1, None)
    assert ask(path, "repair", dry_run=False, **choices) == {**planned, "version": 1}
    # A server may execute a command twice.
    assert ask(path, "repair", dry_run=False, **choices) == {"rows": [], "version": None}
    assert deltalog.DeltaTable(path).history(1)[0]["userMetadata"] == "why"


def test_errors_of_commands_keep_their_class_and_attributes(tmp_path: Path) -> None:
    with pytest.raises(deltalog.NotATableError) as caught:
        ask(str(tmp_path / "t"), "version")
    with pytest.raises(deltalog.NotATableError) as direct:
        deltalog.DeltaTable(tmp_path / "t")
    for name in ("table", "version", "path", "line", "hint", "reason"):
        assert getattr(caught.value, name) == getattr(direct.value, name)
    assert str(caught.value) == str(direct.value)
    deltalog.write_deltalake(tmp_path / "t", pa.table({"a": [1]}))
    with pytest.raises(deltalog.InvalidArgumentError, match="must be one of version, history"):
        ask(str(tmp_path / "t"), "reorganize")
    for path in ("t", "file:t", "./t"):
        with pytest.raises(deltalog.InvalidArgumentError, match="is relative"):
            ask(path, "version")


@pytest.mark.parametrize("moment", ["2025-01-31", "2025-01-31 12:00:00", "2025-01-31T12:00"])
def test_a_timestamp_without_a_zone_is_refused(tmp_path: Path, moment: str) -> None:
    """A timestamp without a zone is refused. The source does not know the session's time zone, and a different zone
    might select a different version.
    """
    deltalog.write_deltalake(tmp_path / "t", pa.table({"a": [1]}))
    for option in ("timestampAsOf", "startingTimestamp"):
        options = {
            "path": str(tmp_path / "t"),
            option: moment,
            "readChangeFeed": str(option != "timestampAsOf"),
        }
        with pytest.raises(deltalog.InvalidArgumentError, match=f"{option} .* has no time zone"):
            DeltalogDataSource(options).schema()


def writer(path: str, overwrite: bool = False, **options: Any) -> DeltalogWriter:
    source = DeltalogDataSource({"path": path, **{name: str(value) for name, value in options.items()}})
    made = source.writer(StructType().add("id", "long").add("p", "string"), overwrite)
    assert isinstance(made, DeltalogWriter)
    return made


def task(write: DeltalogWriter, *ids: int) -> Any:
    """Writes the rows of one task with a pickled copy of the writer, as in another process."""
    batch = pa.RecordBatch.from_pydict({"id": list(ids), "p": [f"p {number % 2}" for number in ids]})
    return pickle.loads(pickle.dumps(write)).write(iter([batch]))  # noqa: S301


def save(path: str, *ids: int, overwrite: bool = False, **options: Any) -> None:
    write = writer(path, overwrite, **options)
    write.commit([task(write, *ids)])


def ids(path: str) -> list[int]:
    return sorted(pa.table(deltalog.DeltaTable(path).to_arrow())["id"].to_pylist())


def test_overwrites_require_their_base(tmp_path: Path) -> None:
    """Overwrites must name the version on which they are based. Spark does not pass the plan to this source, so it
    cannot find out which version was read.
    """
    path = str(tmp_path / "t")
    save(path, 0, 1, 2, overwrite=True)
    save(path, 100)
    with pytest.raises(
        deltalog.InvalidArgumentError, match=r"unknown which version .* set the option baseVersion"
    ):
        save(path, 1, 2, overwrite=True)
    with pytest.raises(deltalog.CommitConflictError) as caught:
        save(path, 1, 2, overwrite=True, baseVersion=0)
    assert (caught.value.reason, caught.value.version) == ("concurrent_append", 1)
    with pytest.raises(deltalog.VersionNotFoundError):
        save(path, 1, 2, overwrite=True, baseVersion=2)
    with pytest.raises(deltalog.InvalidArgumentError, match="baseVersion must be a version number or newest"):
        save(path, 1, 2, overwrite=True, baseVersion="")
    with pytest.raises(deltalog.InvalidArgumentError, match="baseVersion needs the mode overwrite"):
        save(path, 7, baseVersion=1)
    assert ids(path) == [0, 1, 2, 100]
    save(path, 1, 100, overwrite=True, baseVersion=1)
    assert ids(path) == [1, 100]
    save(path, 5, overwrite=True, baseVersion="newest")
    assert ids(path) == [5]


def test_a_repeated_write_has_no_effect(tmp_path: Path) -> None:
    """Protocol: "Transaction Identifiers". A record of the same or a later version is found before the job, if it
    exists by then. Otherwise, if another process makes it during the job, the commit finds it.
    """
    path = str(tmp_path / "t")
    options: dict[str, Any] = {"txnAppId": "job", "txnVersion": 3, "userMetadata": "mine"}
    first, second = (writer(path, **options) for _ in range(2))
    first.commit([task(first, 1, 2)])
    second.commit([task(second, 1, 2)])
    assert (ids(path), len(data_files(path))) == ([1, 2], 1)
    source = DeltalogDataSource({"path": path, "txnAppId": "job", "txnVersion": "2"})
    again = source.writer(StructType().add("id", "long").add("p", "string"), overwrite=True)
    assert isinstance(again, portable.NothingToWrite)
    again.commit([pickle.loads(pickle.dumps(again)).write(iter(()))])  # noqa: S301
    table = deltalog.DeltaTable(path)
    assert (table.version(), table.transaction_version("job"), ids(path)) == (0, 3, [1, 2])
    assert table.history()[0]["userMetadata"] == "mine"
    with pytest.raises(deltalog.InvalidArgumentError, match="txnAppId is set without txnVersion"):
        writer(path, txnAppId="job")


def test_tasks_of_spark_count_identity_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """PROTOCOL, "Identity Columns". If a task is repeated, it generates the same values, but only one attempt is
    committed.
    """
    metadata = {
        "delta.identity.start": 1,
        "delta.identity.step": 1,
        "delta.identity.allowExplicitInsert": False,
    }
    fields = [field("id", "long"), field("p", "string"), field("number", "long", metadata)]
    path = str(CraftedTable(tmp_path / "t", fields, writer_features=["identityColumns"]).commit())

    class Context:
        number = 0

        @classmethod
        def get(cls) -> Any:
            return cls

        @classmethod
        def partitionId(cls) -> int:  # noqa: N802 (Spark's name)
            return cls.number

    def counted(write: DeltalogWriter, *numbers: int) -> list[Any]:
        messages = []
        for number in numbers:
            monkeypatch.setattr(Context, "number", number)
            messages.append(task(write, 2 * number, 2 * number + 1))
        return messages

    monkeypatch.setattr(task_files, "TaskContext", Context)
    repeated, write = writer(path), writer(path)
    messages = counted(repeated, 0, 7, 7)
    with pytest.raises(deltalog.InvalidArgumentError, match="two fragments belong to the task 7"):
        repeated.commit(messages)
    messages = counted(write, 0, 7, 65535)
    with pytest.raises(deltalog.InvalidArgumentError, match="this task of the write has no number"):
        counted(write, 65536)
    write.commit(messages)
    found = pa.table(deltalog.DeltaTable(path).to_arrow()).sort_by("id").to_pydict()
    assert found["number"] == [1, 65537, 8, 65544, 65536, 131072]


def data_files(path: str) -> set[Path]:
    return set(Path(path).rglob("*.parquet"))


def test_a_failed_job_leaves_no_files(tmp_path: Path) -> None:
    """A failed job leaves no files behind. The commit message of a failed task is None."""
    path = str(tmp_path / "a table")
    deltalog.write_deltalake(path, pa.table({"id": [0], "p": ["p 0"]}), partition_by=["p"])
    before = data_files(path)
    write = writer(path)
    messages = [task(write, 1, 2), task(write, 3), None]
    assert len(data_files(path) - before) == 3
    pickle.loads(pickle.dumps(write)).abort(messages)  # noqa: S301
    assert data_files(path) == before
    write = writer(path)
    message = task(write, 1)
    Path(path).rename(tmp_path / "moved away")
    write.abort([message, None])  # An error here would hide the reason why the job failed.


def test_a_failed_commit_leaves_no_files(tmp_path: Path) -> None:
    """A failed commit leaves no files behind, because Spark also aborts a write whose commit has failed."""
    path = str(tmp_path / "t")
    save(path, 0)
    write = writer(path, overwrite=True, baseVersion=0)
    messages = [task(write, 1)]
    save(path, 100)
    with pytest.raises(deltalog.CommitConflictError):
        write.commit(messages)
    write.abort(messages)
    committed = {Path(uri).name for uri in deltalog.DeltaTable(path).file_uris()}
    assert {file.name for file in data_files(path)} == committed
    write = writer(path)
    messages = [task(write, 1)]
    for file in Path(path, "_delta_log").iterdir():
        file.unlink()
    for number in (7, 8):
        deltalog.write_deltalake(path, pa.table({"id": [number], "p": ["p 1"]}), mode="append")
    before = data_files(path)
    with pytest.raises(deltalog.CommitConflictError):
        write.commit(messages)
    write.abort(messages)
    assert len(before - data_files(path)) == 1
    assert ids(path) == [7, 8]


def test_the_files_of_a_commit_with_unknown_outcome_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "t")
    save(path, 0)
    write = writer(path)
    messages = [task(write, 1)]
    before = data_files(path)

    def in_doubt(*_: Any) -> int:
        raise deltalog.CommitStateUnknownError("the store's answer was lost")

    resumed = SimpleNamespace(commit_fragments=in_doubt)
    fake = SimpleNamespace(resume=lambda *_: resumed, delete=SparkWrite.delete)
    monkeypatch.setattr(portable, "SparkWrite", fake)
    with pytest.raises(deltalog.CommitStateUnknownError):
        write.commit(messages)
    write.abort(messages)
    assert data_files(path) == before
