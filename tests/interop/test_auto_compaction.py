"""The compaction of small files after a write, compared with the JVM connector."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from deltalog import DeltaTable, write_deltalake
from tests.interop.conftest import Jvm

AUTO = {"delta.autoOptimize.autoCompact": "true", "delta.enableDeletionVectors": "true"}


def rows(first: int, count: int = 1) -> pa.Table:
    ids = range(first, first + count)
    return pa.table({"id": pa.array(ids, pa.int64()), "p": pa.array(["x" if at % 2 else None for at in ids])})


def ids_of_jvm(jvm: Jvm, path: Path, version: int | None = None) -> list[int]:
    at = "" if version is None else f" VERSION AS OF {version}"
    found: list[int] = jvm.query(f"SELECT id FROM delta.`{path}`{at} ORDER BY id")["id"].to_pylist()
    return found


def automatic(jvm: Jvm, path: Path) -> list[tuple[int, Any]]:
    """Returns the versions of OPTIMIZE commits in the JVM connector's history, with their parameter `auto`."""
    history = jvm.query(f"DESCRIBE HISTORY delta.`{path}`").to_pylist()
    optimized = [row for row in history if row["operation"] == "OPTIMIZE"]
    return sorted((row["version"], dict(row["operationParameters"])["auto"]) for row in optimized)


def appended(path: Path) -> None:
    """Creates a table with 49 files in each of two partitions."""
    for number in range(49):
        configuration = AUTO if number == 0 else None
        data = rows(2 * number, 2)
        write_deltalake(path, data, mode="append", partition_by=["p"], configuration=configuration)


def test_the_jvm_connector_reads_a_table_after_a_compaction(jvm: Jvm, tmp_path: Path) -> None:
    path = tmp_path / "t"
    appended(path)
    write_deltalake(path, rows(98, 2), mode="append")
    assert len(DeltaTable(path).file_uris()) == 2
    assert ids_of_jvm(jvm, path) == list(range(100))
    assert ids_of_jvm(jvm, path, 49) == list(range(100))
    assert ids_of_jvm(jvm, path, 48) == list(range(98))
    assert automatic(jvm, path) == [(50, "true")]
    # The connector continues to use the table.
    jvm.run(f"DELETE FROM delta.`{path}` WHERE id = 7")
    jvm.run(f"INSERT INTO delta.`{path}` VALUES (1000, 'x')")
    expected = [number for number in range(100) if number != 7] + [1000]
    assert ids_of_jvm(jvm, path) == expected
    assert sorted(pa.table(DeltaTable(path).to_arrow())["id"].to_pylist()) == expected


def test_both_compact_the_same_files_for_the_same_reason(jvm: Jvm, tmp_path: Path) -> None:
    """In both engines, the 50th small file of a partition starts a compaction of this partition only."""
    for name in ("ours", "jvm"):
        appended(tmp_path / name)
    write_deltalake(tmp_path / "ours", rows(99), mode="append")
    # The JVM connector counts the files that it has written itself, or that it has seen when it read the table's state.
    jvm.run(f"SELECT count(*) FROM delta.`{tmp_path / 'jvm'}`")
    jvm.run(f"INSERT INTO delta.`{tmp_path / 'jvm'}` VALUES (99, 'x')")
    ours, theirs = (DeltaTable(tmp_path / name) for name in ("ours", "jvm"))
    assert ours.version() == theirs.version() == 50
    assert len(ours.file_uris()) == len(theirs.file_uris()) == 50
    assert len(ours.file_uris("p = 'x'")) == len(theirs.file_uris("p = 'x'")) == 1
    (our_commit,), (their_commit,) = ours.history(1), theirs.history(1)
    assert our_commit["operation"] == their_commit["operation"] == "OPTIMIZE"
    assert our_commit["operationParameters"]["auto"] == their_commit["operationParameters"]["auto"]
    assert ids_of_jvm(jvm, tmp_path / "ours") == ids_of_jvm(jvm, tmp_path / "jvm")
