"""If a table contains links and special files, nothing outside of the table is read, written or deleted, and no call
hangs.

Protocol: "Data Files" are relative to the table's root. The root itself may be a link, but the files and directories
in it may not.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deltalog import DeltaError, DeltaTable, UnsupportedFeatureError, write_deltalake

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")

LONG_AGO = time.time() - 40 * 86400
FIELDS = [
    {"name": name, "type": kind, "nullable": True, "metadata": {}}
    for name, kind in [("n", "long"), ("p", "string")]
]
PROTOCOL: dict[str, object] = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}


def metadata(partitions: list[str] | None = None) -> dict[str, object]:
    schema = json.dumps({"type": "struct", "fields": FIELDS})
    values = {
        "schemaString": schema,
        "partitionColumns": partitions or [],
        "configuration": {},
        "createdTime": 1,
    }
    return {
        "metaData": {
            "id": "11111111-1111-1111-1111-111111111111",
            "format": {"provider": "parquet", "options": {}},
            **values,
        }
    }


def add(path: str, file: Path, **partition: str) -> dict[str, object]:
    return {
        "add": {
            "path": path,
            "partitionValues": partition,
            "size": file.stat().st_size,
            "modificationTime": 1,
            "dataChange": True,
        }
    }


def remove(path: str) -> dict[str, object]:
    return {"remove": {"path": path, "deletionTimestamp": 1, "dataChange": True}}


def data(path: Path, rows: int = 3) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"n": pa.array(range(rows), pa.int64())}), path)
    return path


def log(table: Path, *commits: list[dict[str, object]]) -> None:
    directory = table / "_delta_log"
    directory.mkdir(parents=True, exist_ok=True)
    for version, actions in enumerate(commits):
        (directory / f"{version:020}.json").write_text(
            "".join(json.dumps(action) + "\n" for action in actions)
        )


def age(*paths: Path) -> None:
    for path in paths:
        os.utime(path, (LONG_AGO, LONG_AGO))


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """Creates a directory beside the table, with a file that must not be touched."""
    age(data(tmp_path / "outside" / "precious.parquet"))
    return tmp_path / "outside"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return tmp_path / "table"


def contents(directory: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()
    }


def test_vacuum_deletes_nothing_behind_a_link(table: Path, outside: Path) -> None:
    file = data(table / "a.parquet")
    log(table, [PROTOCOL, metadata()], [add("a.parquet", file), remove("link/precious.parquet")])
    (table / "link").symlink_to(outside)
    age(*(table / "_delta_log").iterdir())
    before = contents(outside)
    with pytest.raises(UnsupportedFeatureError, match="link") as caught:
        DeltaTable(table).vacuum(full=False, dry_run=False)
    assert caught.value.hint
    assert "link" in str(caught.value)
    found = {
        "path": [f"{table}/link/precious.parquet"],
        "length": [10],
        "isDir": [False],
        "modificationTime": [1],
    }
    with pytest.raises(UnsupportedFeatureError, match="link"):
        DeltaTable(table).vacuum(inventory=pa.table(found), dry_run=False)
    DeltaTable(table).vacuum(dry_run=False)
    assert contents(outside) == before


@pytest.mark.parametrize("source", ["log", "inventory", "listing"])
def test_vacuum_leaves_tables_within_the_table_alone(table: Path, source: str) -> None:
    """If a directory of the table contains another table, a VACUUM must not delete its files, even if the log names
    them.
    """
    file = data(table / "a.parquet")
    log(
        table,
        [PROTOCOL, metadata()],
        [add("a.parquet", file), remove("b/inner/part.parquet"), remove("b/old.parquet")],
    )
    inner, old = data(table / "b" / "inner" / "part.parquet"), data(table / "b" / "old.parquet")
    log(table / "b" / "inner", [PROTOCOL, metadata(), add("part.parquet", inner)])
    age(inner, old, *(table / "_delta_log").iterdir())
    if source == "inventory":
        found = {
            "path": [str(inner), str(old)],
            "length": [10, 10],
            "isDir": [False, False],
            "modificationTime": [1, 1],
        }
        DeltaTable(table).vacuum(inventory=pa.table(found), dry_run=False)
    else:
        DeltaTable(table).vacuum(full=source == "listing", dry_run=False)
    assert inner.exists()
    assert not old.exists()
    assert DeltaTable(table / "b" / "inner").count() == 3


def test_statements_write_nothing_through_a_link(table: Path, outside: Path) -> None:
    files = [data(outside / f"{name}.parquet") for name in "ab"]
    log(table, [PROTOCOL, metadata(["p"]), *(add(f"p=x/{file.name}", file, p="x") for file in files)])
    (table / "p=x").symlink_to(outside)
    before = contents(outside)
    more = pa.table({"n": [7], "p": ["x"]})
    calls: list[Callable[[], object]] = [
        lambda: DeltaTable(table).optimize.compact(),
        lambda: DeltaTable(table).delete("n = 1"),
        lambda: DeltaTable(table).update({"n": "n + 1"}),
        lambda: write_deltalake(table, more, mode="append"),
        lambda: DeltaTable(table).to_pyarrow_table(),
    ]
    for call in calls:
        with pytest.raises(UnsupportedFeatureError, match="symbolic link") as caught:
            call()
        assert "p=x" in str(caught.value)
    assert contents(outside) == before
    assert DeltaTable(table).version() == 0


def test_a_clone_copies_nothing_behind_a_link(table: Path, outside: Path, tmp_path: Path) -> None:
    (outside / "secret").write_text("a secret")
    log(table, [PROTOCOL, metadata(), add("a.parquet", outside / "secret")])
    (table / "a.parquet").symlink_to(outside / "secret")
    with pytest.raises(UnsupportedFeatureError, match="symbolic link"):
        DeltaTable(table).clone(tmp_path / "copy")
    assert b"a secret" not in contents(tmp_path / "copy").values()


def test_manifests_are_not_written_through_a_link(table: Path, outside: Path) -> None:
    file = data(table / "a.parquet")
    log(table, [PROTOCOL, metadata(), add("a.parquet", file)])
    (outside / "manifest").write_text("precious")
    (table / "_symlink_format_manifest").symlink_to(outside)
    before = contents(outside)
    with pytest.raises(UnsupportedFeatureError, match="symbolic link"):
        DeltaTable(table).generate()
    assert contents(outside) == before


@pytest.mark.parametrize("path", ["a%0As3://elsewhere/x.parquet", "a%1B"])
def test_manifests_have_a_line_for_each_file(table: Path, path: str) -> None:
    """Engines trust manifests, so a manifest must have exactly one line for each file, whatever its name is."""
    file = data(table / "a.parquet")
    log(table, [PROTOCOL, metadata(), add(path, file)])
    with pytest.raises(UnsupportedFeatureError, match="control characters"):
        DeltaTable(table).generate()
    assert not (table / "_symlink_format_manifest").exists()


def test_the_log_is_not_read_or_written_through_a_link(table: Path, outside: Path) -> None:
    log(outside, [PROTOCOL, metadata()])
    before = contents(outside)
    table.mkdir()
    (table / "_delta_log").symlink_to(outside / "_delta_log")
    for call in (
        lambda: DeltaTable(table),
        lambda: write_deltalake(table, pa.table({"n": [1]}), mode="append"),
    ):
        with pytest.raises(UnsupportedFeatureError, match="symbolic link"):
            call()
    assert contents(outside) == before


def test_a_commit_does_not_follow_a_dangling_link(table: Path, outside: Path) -> None:
    write_deltalake(table, pa.table({"n": [1]}))
    (table / "_delta_log" / f"{1:020}.json").symlink_to(outside / "new")
    with pytest.raises(DeltaError, match="symbolic link"):
        write_deltalake(table, pa.table({"n": [2]}), mode="append")
    assert not (outside / "new").exists()


def test_the_root_may_be_a_link(table: Path, tmp_path: Path) -> None:
    write_deltalake(table, pa.table({"n": [1], "p": ["x"]}), partition_by=["p"])
    (tmp_path / "alias").symlink_to(table)
    alias = DeltaTable(tmp_path / "alias")
    write_deltalake(alias, pa.table({"n": [2], "p": ["x"]}), mode="append")
    alias.optimize.compact()
    alias.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    assert sorted(alias.to_pyarrow_table()["n"].to_pylist()) == [1, 2]
    assert len(list((table / "p=x").iterdir())) == 1


def pipe(path: Path) -> None:
    os.mkfifo(path)


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def loop(path: Path) -> None:
    path.symlink_to(path.name)


@pytest.mark.parametrize("make", [pipe, device, loop])
@pytest.mark.parametrize(
    "name",
    [
        "a.parquet",
        f"_delta_log/{1:020}.json",
        "_delta_log/_last_checkpoint",
        f"_delta_log/{0:020}.crc",
        f"_delta_log/{0:020}.checkpoint.parquet",
    ],
)
def test_special_files_are_refused_at_once(table: Path, make: Callable[[Path], None], name: str) -> None:
    """Pipes and devices are refused at once, because reading a pipe would block and a device has no end. If they have
    the name of a checksum or a checkpoint, they may also be ignored.
    """
    file = data(table / "a.parquet")
    log(table, [PROTOCOL, metadata(), add("a.parquet", file)])
    (table / name).unlink(missing_ok=True)
    make(table / name)
    began = time.monotonic()
    errors = []
    for call in (
        lambda: DeltaTable(table).to_pyarrow_table(),
        lambda: DeltaTable(table).delete("n = 1"),
        lambda: DeltaTable(table).check("rows"),
    ):
        try:
            call()
        except DeltaError as error:
            errors.append(error)
    assert time.monotonic() - began < 20
    is_needed = not name.endswith((".crc", ".checkpoint.parquet"))
    assert {type(error) for error in errors} <= {UnsupportedFeatureError}, errors
    assert errors or not is_needed
    assert all(error.hint and Path(name).name in str(error) for error in errors), errors
