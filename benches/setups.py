"""Prepares the arguments of measurements.

Each function creates the arguments of one measurement from the specification of a table, the table's directory, and an
empty directory for the measurement.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benches import store
from benches.tables import Checkpointed, Commits, Data, Littered, TableSpec
from benches.tables.actions import MONTHS, ROWS_PER_FILE
from benches.tables.checkpointed import CHANGES_PER_COMMIT, TAIL, VERSION, commit, removed_later
from benches.tables.littered import leave


def table_alone(spec: TableSpec, table: Path, scratch: Path) -> Mapping[str, Any]:
    return {"table": str(table)}


def in_store(spec: TableSpec, table: Path, scratch: Path) -> Mapping[str, Any]:
    return store.place(table)


def in_store_beside_local(spec: TableSpec, table: Path, scratch: Path) -> Mapping[str, Any]:
    return {**store.place(table, bytes_per_second=None), "local": str(table)}


def unanswered(spec: TableSpec, table: Path, scratch: Path) -> Mapping[str, Any]:
    """Prepares an empty table, to which each of 32 writers appends `spec.adds` rows, one by one."""
    import pyarrow as pa

    from deltalog import write_deltalake

    assert isinstance(spec, Commits)
    empty = scratch / "empty"
    write_deltalake(empty, pa.table({"id": pa.array([], pa.int64())}))
    return {**store.place(empty, lost_percent=10), "writers": 32, "each": spec.adds}


def with_predicate(spec: TableSpec, table: Path, scratch: Path) -> Mapping[str, Any]:
    """Adds a predicate that selects one month by partition values, and a hundredth of the files by statistics."""
    assert isinstance(spec, Checkpointed)
    return {
        "table": str(table),
        "predicate": f"month = '{MONTHS[4]}' AND i0 < {spec.files * ROWS_PER_FILE // 100}",
    }


def with_next_commit(spec: TableSpec, table: Path, scratch: Path) -> Mapping[str, Any]:
    """Copies the log as hard links, and prepares a further commit, which the contender moves into the log."""
    assert isinstance(spec, Checkpointed)
    copy, version = scratch / "table", VERSION + TAIL + 1
    shutil.copytree(table, copy, copy_function=os.link)
    text = scratch / "commit"
    text.write_text(commit(version, spec.files, []))
    return {
        "table": str(copy),
        "commit": str(text),
        "commit_to": str(copy / "_delta_log" / f"{version:020}.json"),
    }


def copied(spec: TableSpec, table: Path, scratch: Path) -> Mapping[str, Any]:
    """Copies the log as hard links. A write to a file replaces its link, so the original does not change."""
    shutil.copytree(table, scratch / "table", copy_function=os.link)
    return {"table": str(scratch / "table")}


def with_threads(spec: TableSpec, table: Path, scratch: Path) -> Mapping[str, Any]:
    """Copies the log. Each of 64 threads appends `spec.adds` rows, one by one."""
    assert isinstance(spec, Commits)
    return {**copied(spec, table, scratch), "threads": 64, "each": spec.adds}


def with_next_commits(spec: TableSpec, table: Path, scratch: Path) -> Mapping[str, Any]:
    """Copies the log as hard links, and prepares five further commits that add and remove files. The contender moves
    them into the log.
    """
    assert isinstance(spec, Checkpointed)
    arguments = copied(spec, table, scratch)
    gone = removed_later(spec.files, TAIL * CHANGES_PER_COMMIT)
    commits = scratch / "commits"
    commits.mkdir()
    for number in range(TAIL):
        version = VERSION + TAIL + 1 + number
        removed = gone[number * CHANGES_PER_COMMIT : (number + 1) * CHANGES_PER_COMMIT]
        (commits / f"{version:020}.json").write_text(commit(version, spec.files, removed))
    return {**arguments, "commits": str(commits)}


def with_target(spec: TableSpec, table: Path, scratch: Path) -> Mapping[str, Any]:
    return {"table": str(table), "target": str(scratch / "written")}


def with_partitions(spec: TableSpec, table: Path, scratch: Path) -> Mapping[str, Any]:
    """Prepares as many partitions as give each partition a hundred rows."""
    assert isinstance(spec, Data)
    return {**with_target(spec, table, scratch), "partitions": spec.rows // 100}


def copied_with_target(spec: TableSpec, table: Path, scratch: Path) -> Mapping[str, Any]:
    return {**copied(spec, table, scratch), "target": str(scratch / "written")}


def littered(spec: TableSpec, table: Path, scratch: Path) -> Mapping[str, Any]:
    """Copies only the log as hard links, and adds data files that no version needs, which the contender deletes."""
    assert isinstance(spec, Littered)
    copy = scratch / "table"
    shutil.copytree(table / "_delta_log", copy / "_delta_log", copy_function=os.link)
    leave(copy, spec.left)
    return {"table": str(table), "copy": str(copy)}
