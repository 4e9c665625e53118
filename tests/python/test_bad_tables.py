"""Tables that are damaged, forged or too new. Each raises an error of the right class that names the table, the
version, the file, and what to do.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltalog
from deltalog import DeltaTable, write_deltalake
from tests.python.place import commit_file, data_files

Damage = Callable[[Path], None]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Creates a table with three versions."""
    path = tmp_path / "t"
    for version in range(3):
        write_deltalake(path, pa.table({"id": [version]}), mode="append")
    return path


def read(table: Path, **options: Any) -> list[int]:
    return sorted(pa.table(DeltaTable(table, **options).to_arrow())["id"].to_pylist())


def edit(table: Path, version: int, change: Callable[[dict[str, Any]], None]) -> None:
    """Applies `change` to every action of a commit."""
    file = commit_file(table, version)
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    for line in lines:
        change(line)
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))


def protocol(**fields: Any) -> Callable[[dict[str, Any]], None]:
    def change(action: dict[str, Any]) -> None:
        if "protocol" in action:
            action["protocol"] = {"minReaderVersion": 3, "minWriterVersion": 7, **fields}

    return change


def test_no_table(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    (empty / "_delta_log").mkdir(parents=True)
    junk = tmp_path / "junk"
    (junk / "_delta_log").mkdir(parents=True)
    (junk / "_delta_log" / "notes.json").write_text("{}")
    file = tmp_path / "file"
    file.write_text("")
    cases = [(path, "create the table first") for path in (tmp_path / "absent", empty, junk)]
    for path, way_out in [*cases, (file, "this is a file.*pass the directory")]:
        with pytest.raises(FileNotFoundError, match=f"no Delta table.*{way_out}") as caught:
            DeltaTable(path)
        assert type(caught.value) is deltalog.NotATableError
        assert caught.value.table == path.as_uri()
    assert write_deltalake(empty, pa.table({"a": [1]})) == 0


def test_a_missing_commit(table: Path) -> None:
    commit_file(table, 1).unlink()
    for options in ({}, {"version": 2}):
        with pytest.raises(
            deltalog.CorruptLogError, match=r"version 1 is missing.*restore the file"
        ) as caught:
            read(table, **options)
        error = caught.value
        assert isinstance(error, ValueError)
        assert (error.table, error.version, error.path) == (table.as_uri(), 1, f"_delta_log/{1:020}.json")
    assert read(table, version=0) == [0]
    with pytest.raises(deltalog.CorruptLogError, match="version 1"):
        write_deltalake(table, pa.table({"id": [1]}), mode="append")
    assert len(data_files(table)) == 3


@pytest.mark.parametrize("kind", ["json", "checkpoint.parquet", "compacted.json", "crc"])
def test_a_stray_file_with_a_version_that_is_far_too_high(table: Path, kind: str) -> None:
    """A stray file with a very high version costs no memory or time for the versions below it. Only a commit or a
    checkpoint makes a version exist.
    """
    opened, more = DeltaTable(table), pa.table({"id": [1]})
    version = opened.version()
    stray = f"{900_000_000_000:020}"
    if kind == "compacted.json":
        stray = f"{version + 1:020}.{stray}"
    (table / "_delta_log" / f"{stray}.{kind}").write_text("{}")
    if kind in ("json", "checkpoint.parquet"):
        message = f"version {version + 1} is missing" if kind == "json" else "checkpoint cannot be read"
        for statement in (
            lambda: write_deltalake(table, more, mode="append"),
            lambda: opened.delete("id = 1"),
            lambda: opened.restore(0),
            lambda: DeltaTable(table),
            lambda: list(opened.commits(version)),
        ):
            with pytest.raises(deltalog.CorruptLogError, match=message):
                statement()
    else:
        assert write_deltalake(table, more, mode="append") == version + 1
    (table / "_delta_log" / f"{stray}.{kind}").unlink()
    write_deltalake(table, more, mode="append")


def torn(text: bytes) -> bytes:
    return text[:-20]


def without(kind: str) -> Callable[[bytes], bytes]:
    return lambda text: b"".join(
        line for line in text.splitlines(keepends=True) if not line.startswith(f'{{"{kind}"'.encode())
    )


@pytest.mark.parametrize(
    ("version", "damage", "said"),
    [
        (2, torn, "cut off.*died while writing.*restore the file"),
        (2, lambda _: b"", "empty.*died while writing"),
        (2, lambda text: b"\x00" * len(text), "line 1"),
        (2, lambda _: b'{"add":{"path":"\xff"}}', "line 1"),
        (2, lambda text: text + b'{"add":{"path":5}}\n', "line 3"),
        (2, lambda text: text + b"[]\n", "line 3"),
        (0, without("metaData"), "no 'metaData'"),
        (0, without("protocol"), "no 'protocol'"),
    ],
    ids=["torn", "empty", "zeros", "bytes", "path", "list", "metaData", "protocol"],
)
def test_a_damaged_commit(table: Path, version: int, damage: Callable[[bytes], bytes], said: str) -> None:
    file = commit_file(table, version)
    file.write_bytes(damage(file.read_bytes()))
    for ask in (lambda: read(table), lambda: write_deltalake(table, pa.table({"id": [1]}), mode="append")):
        with pytest.raises(deltalog.CorruptLogError, match=said) as caught:
            ask()
        assert caught.value.table == table.as_uri()
        assert caught.value.version is not None
    assert len(data_files(table)) == 3
    assert DeltaTable.is_deltatable(table)
    if version == 2:
        assert read(table, version=1) == [0, 1]


def test_an_unknown_feature(table: Path) -> None:
    edit(table, 0, protocol(readerFeatures=["timeCrystals"], writerFeatures=["timeCrystals"]))
    for ask in (lambda: read(table), lambda: write_deltalake(table, pa.table({"id": [1]}), mode="append")):
        with pytest.raises(NotImplementedError, match=r"'timeCrystals'.*use a client") as caught:
            ask()
        assert type(caught.value) is deltalog.UnsupportedFeatureError
        assert caught.value.table == table.as_uri()
    assert DeltaTable.is_deltatable(table)


def test_an_unknown_writer_feature(table: Path) -> None:
    edit(table, 0, protocol(minReaderVersion=1, writerFeatures=["timeCrystals"]))
    assert read(table) == [0, 1, 2]
    with pytest.raises(deltalog.UnsupportedFeatureError, match=r"cannot write.*'timeCrystals'"):
        write_deltalake(table, pa.table({"id": [1]}), mode="append")
    assert len(data_files(table)) == 3


def test_a_protocol_of_the_future(table: Path) -> None:
    edit(table, 0, protocol(minReaderVersion=9, minWriterVersion=9))
    with pytest.raises(deltalog.UnsupportedFeatureError, match="version 9"):
        read(table)


@pytest.mark.parametrize(
    "path",
    ["../t.parquet", "a/../../t.parquet", "%2E%2E/t.parquet", "%2e%2e%2ft.parquet", "a%00b", "a%zz", ""],
)
def test_a_path_that_the_protocol_forbids(table: Path, path: str) -> None:
    edit(table, 2, lambda action: action.get("add", {}).update(path=path))
    opened = DeltaTable(table)
    for ask in (opened.to_arrow, opened.files, opened.file_uris):
        with pytest.raises(
            deltalog.CorruptLogError, match=r"path in the log.*read an older version"
        ) as caught:
            ask()
        assert (caught.value.table, caught.value.version, caught.value.path) == (table.as_uri(), 2, path)


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        ("/etc/my%20file", "file:///etc/my%20file"),
        ("file:///etc/x", "file:///etc/x"),
        ("file:/etc/x", "file:///etc/x"),
        ("s3://b/x%20y", "s3://b/x%20y"),
    ],
)
def test_a_path_outside_of_the_table_is_listed_but_not_read(table: Path, path: str, uri: str) -> None:
    edit(table, 2, lambda action: action.get("add", {}).update(path=path))
    opened = DeltaTable(table)
    assert uri in opened.file_uris()
    with pytest.raises(deltalog.UnsupportedFeatureError, match="outside the table") as caught:
        opened.to_arrow()
    assert (caught.value.table, caught.value.version, caught.value.path) == (table.as_uri(), 2, path)


def test_the_first_data_file_is_absent(table: Path) -> None:
    opened = DeltaTable(table)
    first = pa.table(opened.files(columns=["path"]))["path"][0].as_py()
    (table / first).unlink()
    with pytest.raises(FileNotFoundError, match=r"vacuumed.*restore the file") as caught:
        opened.to_arrow()
    error = caught.value
    assert isinstance(error, deltalog.MissingFileError)
    assert (error.table, error.version, error.path) == (table.as_uri(), 2, first)


def test_a_later_data_file_is_absent(table: Path) -> None:
    """If reading fails after the first batch, the library that reads the stream raises its own exception with our
    message.
    """
    opened = DeltaTable(table)
    last = pa.table(opened.files(columns=["path"]))["path"][-1].as_py()
    (table / last).unlink()
    with pytest.raises(OSError, match="the file is not there") as caught:
        pa.table(opened.to_arrow())
    for part in (table.as_uri(), "version 2", last, "restore the file"):
        assert part in str(caught.value)


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[:-10],
        lambda data: data[:4] + b"\xff" * 36 + data[40:],
        lambda data: b"\x00" * len(data),
        lambda data: data[:-8] + b"\xff\xff\xff\x7fPAR1",
    ],
    ids=["empty", "cut", "garbage", "zeros", "footer"],
)
def test_a_damaged_data_file(table: Path, damage: Callable[[bytes], bytes]) -> None:
    for name in data_files(table):
        (table / name).write_bytes(damage((table / name).read_bytes()))
    with pytest.raises(deltalog.CorruptDataError, match="Parquet") as caught:
        read(table)
    assert (caught.value.table, caught.value.version) == (table.as_uri(), 2)
    assert caught.value.path in data_files(table)


def test_a_file_without_read_permission(table: Path) -> None:
    """A file without read permission is never treated as missing."""
    commit_file(table, 1).chmod(0)
    try:
        commit_file(table, 1).read_bytes()
    except PermissionError:
        with pytest.raises(PermissionError) as caught:
            read(table)
        assert isinstance(caught.value, deltalog.AccessDeniedError)
    else:
        # The user root may read all files, so there is no error.
        assert read(table) == [0, 1, 2]


def test_every_error_is_a_delta_error() -> None:
    kinds = {
        name: kind
        for name in deltalog.__all__
        if isinstance(kind := getattr(deltalog, name), type) and issubclass(kind, Exception)
    }
    assert len(kinds) == 18
    parents = {
        "NotATableError": FileNotFoundError,
        "TableAlreadyExistsError": FileExistsError,
        "VersionNotFoundError": LookupError,
        "CorruptLogError": ValueError,
        "CorruptDataError": ValueError,
        "MissingFileError": FileNotFoundError,
        "UnsupportedFeatureError": NotImplementedError,
        "InvalidArgumentError": ValueError,
        "SchemaMismatchError": ValueError,
        "UnavailableError": OSError,
        "AccessDeniedError": PermissionError,
    }
    for name, kind in kinds.items():
        assert issubclass(kind, deltalog.DeltaError)
        assert issubclass(kind, parents.get(name, Exception))
