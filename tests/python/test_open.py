"""Tables are opened, and return information about themselves."""

from __future__ import annotations

import datetime as dt
import json
import os
import shutil
import traceback
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltalog
from deltalog import DeltaTable, Schema, write_deltalake
from tests.python.place import commit_file

UTC = dt.timezone.utc
DAY = 86_400


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Creates a table of three versions, committed on the first three days of 1971."""
    path = tmp_path / "my table"
    for version in range(3):
        write_deltalake(path, pa.table({"id": [version]}), mode="append")
        os.utime(commit_file(path, version), times=(DAY * (365 + version),) * 2)
    return path


def rows(table: DeltaTable) -> int:
    return int(pa.table(table.to_arrow()).num_rows)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_version(table: Path, version: int) -> None:
    opened = DeltaTable(table, version=version)
    assert (opened.version(), rows(opened)) == (version, version + 1)
    assert repr(opened) == f"DeltaTable('{table.as_uri()}', version={version})"


@pytest.mark.parametrize("version", [-1, True, False, 1.0, "1", 2**64])
def test_invalid_versions(table: Path, version: Any) -> None:
    with pytest.raises(deltalog.InvalidArgumentError, match="version"):
        DeltaTable(table, version=version)


def test_the_error_for_an_absent_version_names_the_readable_ones(table: Path) -> None:
    with pytest.raises(deltalog.VersionNotFoundError, match=r"(?s)0.*2") as caught:
        DeltaTable(table, version=3)
    assert isinstance(caught.value, LookupError)
    assert caught.value.table == table.as_uri()


@pytest.mark.parametrize(
    ("timestamp", "version"),
    [
        (dt.datetime(1971, 1, 1, tzinfo=UTC), 0),
        (dt.datetime(1971, 1, 2, tzinfo=UTC) - dt.timedelta(microseconds=1), 0),
        (dt.datetime(1971, 1, 2), 1),  # A time without a zone is in UTC.
        ("1971-01-02T12:00:00Z", 1),
        ("1971-01-03T01:00:00+02:00", 1),
        ("1971-01-03", 2),
    ],
)
def test_a_timestamp(table: Path, timestamp: dt.datetime | str, version: int) -> None:
    assert DeltaTable(table, timestamp=timestamp).version() == version


@pytest.mark.parametrize("timestamp", ["1970-12-31T23:59:59Z", "1971-01-04"])
def test_the_error_for_a_time_outside_of_the_table_names_the_range(table: Path, timestamp: str) -> None:
    with pytest.raises(deltalog.VersionNotFoundError, match=r"1971-01-01T00:00:00.*1971-01-03T00:00:00"):
        DeltaTable(table, timestamp=timestamp)


@pytest.mark.parametrize("timestamp", ["yesterday", "", 5, dt.date(1971, 1, 2)])
def test_invalid_times(table: Path, timestamp: Any) -> None:
    with pytest.raises(deltalog.InvalidArgumentError, match="ISO 8601"):
        DeltaTable(table, timestamp=timestamp)


def test_a_version_and_a_time_cannot_be_combined(table: Path) -> None:
    with pytest.raises(deltalog.InvalidArgumentError, match="not at both"):
        DeltaTable(table, version=1, timestamp="1971-01-02")


def test_every_spelling_of_a_location(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(table)
    for spelling in (
        table,
        str(table),
        f"{table}/",
        table.as_uri(),
        ".",
        "../my table",
        f"{table}/_delta_log/..",
    ):
        assert DeltaTable(spelling).table_uri == table.as_uri()


def test_a_new_table_beside_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`..` can be used in a path to a table that does not exist yet."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert not DeltaTable.is_deltatable("../deep/new")
    write_deltalake("../deep/new", pa.table({"a": [1]}))
    assert DeltaTable.is_deltatable(tmp_path / "deep" / "new")


def test_the_locals_of_an_open_that_fails_can_be_shown(tmp_path: Path) -> None:
    """If opening fails, the local variables of the call can be displayed, as debuggers and some tracebacks do."""
    with pytest.raises(deltalog.DeltaError) as raised:
        DeltaTable(tmp_path / "absent")
    shown = "".join(traceback.TracebackException.from_exception(raised.value, capture_locals=True).format())
    assert "self = DeltaTable(not opened)" in shown


def test_unknown_storage_options(table: Path) -> None:
    with pytest.raises(deltalog.InvalidArgumentError, match="AWS_REGION"):
        DeltaTable(table, storage_options={"AWS_REGION": "x"})
    with pytest.raises(deltalog.UnsupportedFeatureError, match="the store 'ftp' is not supported"):
        DeltaTable("ftp://host/table")


def test_is_deltatable(table: Path, tmp_path: Path) -> None:
    assert DeltaTable.is_deltatable(table)
    assert not DeltaTable.is_deltatable(tmp_path)
    assert not DeltaTable.is_deltatable(tmp_path / "absent")
    file = tmp_path / "file"
    file.write_text("")
    assert not DeltaTable.is_deltatable(file)
    # A table that cannot be read is still a table.
    commit_file(table, 2).write_text("{")
    assert DeltaTable.is_deltatable(table)


def test_update_goes_to_the_newest(table: Path) -> None:
    opened, other = DeltaTable(table, version=0), DeltaTable(table)
    write_deltalake(table, pa.table({"id": [3]}), mode="append")
    assert (opened.version(), rows(opened)) == (0, 1)
    opened.update_incremental()
    assert (opened.version(), rows(opened)) == (3, 4)
    opened.update_incremental()
    assert opened.version() == 3
    assert other.version() == 2


def test_create(tmp_path: Path) -> None:
    schema = pa.schema(
        [pa.field("id", pa.int64(), nullable=False), ("day", pa.date32()), ("list", pa.list_(pa.string()))]
    )
    made = DeltaTable.create(
        tmp_path,
        schema,
        partition_by="day",
        name="n\u00e4me",
        description="d",
        configuration={"delta.checkpointInterval": "3", "o": ""},
    )
    assert (made.version(), rows(made), made.file_uris()) == (0, 0, [])
    metadata = made.metadata()
    assert (metadata.name, metadata.description, metadata.partition_columns) == ("n\u00e4me", "d", ["day"])
    assert metadata.configuration == {"delta.checkpointInterval": "3", "o": ""}
    assert metadata.created_time is not None
    assert abs(metadata.created_time / 1000 - dt.datetime.now(UTC).timestamp()) < 60
    assert pa.schema(made.schema()).names == schema.names
    assert pa.schema(made.schema()).field("id") == schema.field("id")
    assert made.protocol().min_reader_version == 1
    assert made.protocol().reader_features is None
    assert made.history()[0]["operation"] == "CREATE TABLE"
    with pytest.raises(deltalog.TableAlreadyExistsError) as caught:
        DeltaTable.create(tmp_path, schema)
    assert isinstance(caught.value, FileExistsError)
    assert DeltaTable.create(tmp_path, pa.schema([("x", pa.int8())]), mode="ignore").schema() == made.schema()
    copy = DeltaTable.create(tmp_path / "copy", made.schema())
    assert copy.schema() == made.schema()
    assert hash(copy.schema()) == hash(made.schema())


@pytest.mark.parametrize("schema", [5, "id long", {"id": "long"}])
def test_create_with_an_invalid_schema(tmp_path: Path, schema: Any) -> None:
    with pytest.raises(deltalog.InvalidArgumentError, match="__arrow_c_schema__"):
        DeltaTable.create(tmp_path / "t", schema)
    assert not (tmp_path / "t").exists()


def test_create_does_not_append(tmp_path: Path) -> None:
    with pytest.raises(deltalog.InvalidArgumentError, match="'error', 'ignore' or 'overwrite'"):
        DeltaTable.create(tmp_path / "t", pa.schema([("x", pa.int8())]), mode="append")  # type: ignore[arg-type]
    assert not (tmp_path / "t").exists()


def test_schema(tmp_path: Path) -> None:
    nested = pa.struct(
        [pa.field("a", pa.int32(), nullable=False), ("m", pa.map_(pa.string(), pa.list_(pa.float64())))]
    )
    schema = Schema.from_arrow(
        pa.schema([pa.field("id", pa.int64(), nullable=False), ("s", nested), ("d", pa.decimal128(9, 2))])
    )
    assert schema.names == ["id", "s", "d"]
    assert (
        repr(schema)
        == "Schema(id: long not null, s: struct<a: integer, m: map<string, array<double>>>, d: decimal(9,2))"
    )
    assert Schema.from_json(schema.to_json()) == schema
    assert Schema.from_arrow(pa.schema(schema)) == schema
    assert schema != Schema.from_arrow(pa.schema([("id", pa.int64())]))
    unknown_type = '{"type":"struct","fields":[{"name":"a","type":"huge","nullable":true,"metadata":{}}]}'
    for text, error, words in (
        ("", deltalog.InvalidArgumentError, "JSON"),
        ("{", deltalog.InvalidArgumentError, "JSON"),
        ("[]", deltalog.InvalidArgumentError, "type"),
        ('{"type":"struct"}', deltalog.InvalidArgumentError, "'fields'"),
        (unknown_type, deltalog.UnsupportedFeatureError, "'huge'"),
    ):
        with pytest.raises(error, match=words):
            Schema.from_json(text)


def test_history(table: Path) -> None:
    write_deltalake(table, pa.table({"id": [9]}), mode="overwrite", user_metadata="my \u201cwords\u201d")
    history = DeltaTable(table).history()
    assert [entry["version"] for entry in history] == [3, 2, 1, 0]
    newest = history[0]
    assert (newest["operation"], newest["userMetadata"]) == ("WRITE", "my \u201cwords\u201d")
    assert newest["operationParameters"]["mode"] == "Overwrite"
    assert history[1]["timestamp"] == DAY * 367 * 1000
    assert newest["operationMetrics"]["numOutputRows"] == "1"
    assert newest["engineInfo"].startswith("deltalog")
    assert [entry["version"] for entry in DeltaTable(table).history(2)] == [3, 2]
    assert [entry["version"] for entry in DeltaTable(table, version=1).history()] == [1, 0]
    assert DeltaTable(table).history(0) == []


@pytest.mark.parametrize("limit", [-1, 1.5, "1", True])
def test_invalid_limits(table: Path, limit: Any) -> None:
    with pytest.raises(deltalog.InvalidArgumentError, match="limit"):
        DeltaTable(table).history(limit)


def test_files_outside_of_the_table_are_read_below_allowed_roots(tmp_path: Path) -> None:
    """PROTOCOL, "Add File and Remove File": a path may be absolute, as in shallow clones."""
    source, clone = tmp_path / "a source", tmp_path / "clone"
    deltalog.write_deltalake(source, pa.table({"n": [1, 2]}))
    (clone / "_delta_log").mkdir(parents=True)
    lines = (source / "_delta_log" / f"{0:020}.json").read_text().splitlines()
    actions = [json.loads(line) for line in lines]
    for action in actions:
        if "add" in action:
            action["add"]["path"] = f"{source.as_uri()}/{action['add']['path']}"
    (clone / "_delta_log" / f"{0:020}.json").write_text("\n".join(map(json.dumps, actions)))
    table = deltalog.DeltaTable(clone, allowed_roots=[source])
    assert pa.table(table.to_arrow())["n"].to_pylist() == [1, 2]
    deltalog.write_deltalake(clone, pa.table({"n": [3]}), mode="append")
    table.update_incremental()
    assert sorted(pa.table(table.to_arrow())["n"].to_pylist()) == [1, 2, 3]
    with pytest.raises(deltalog.UnsupportedFeatureError, match="allowed_roots"):
        deltalog.DeltaTable(clone, version=0, allowed_roots=[tmp_path / "a"]).to_arrow()
    with pytest.raises(deltalog.InvalidArgumentError, match="a list"):
        deltalog.DeltaTable(clone, allowed_roots=str(source))


def test_an_update_never_mixes_two_tables(tmp_path: Path) -> None:
    """The table is dropped, and another table with the same number of versions is created at the same path. An update
    does not mix the two.
    """
    write_deltalake(tmp_path, pa.table({"id": [1]}), mode="append")
    old = DeltaTable(tmp_path)
    for _ in range(2):
        write_deltalake(tmp_path, pa.table({"id": [1]}), mode="append")
    table = DeltaTable(tmp_path)
    shutil.rmtree(tmp_path)
    for _ in range(5):
        write_deltalake(tmp_path, pa.table({"id": [2]}), mode="append")
    for handle in (table, old):
        with pytest.raises(deltalog.TableReplacedError, match="open the table again"):
            handle.update_incremental()
        with pytest.raises(deltalog.DeltaError, match="created"):
            write_deltalake(handle, pa.table({"id": [3]}), mode="append")
        with pytest.raises(deltalog.CommitConflictError, match="dropped"):
            write_deltalake(handle, pa.table({"id": [3]}), mode="overwrite")
    assert DeltaTable(tmp_path).count() == 5
    shutil.rmtree(tmp_path)
    with pytest.raises(deltalog.NotATableError):
        table.update_incremental()
