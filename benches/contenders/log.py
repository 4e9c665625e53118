"""Functions that add, inspect and remove log files without the library that is measured."""

from __future__ import annotations

import json
import os
from pathlib import Path


def put_into_place(commits: str, table: str) -> None:
    for commit in sorted(Path(commits).iterdir()):
        os.link(commit, Path(table) / "_delta_log" / commit.name)


def files_of_checkpoint(table: str, version: int) -> int:
    """Returns the number of live files in the classic checkpoint of `version`, as its Parquet footer states it."""
    import pyarrow.parquet as pq

    metadata = pq.read_metadata(Path(table) / "_delta_log" / f"{version:020}.checkpoint.parquet")
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    names = [groups[0].column(number).path_in_schema for number in range(groups[0].num_columns)]
    paths = names.index("add.path")
    return sum(group.num_rows - int(group.column(paths).statistics.null_count) for group in groups)


def remove_all_but_newest_checkpoint(table: str) -> None:
    """Removes the commits before the newest checkpoint, and all other checkpoints. Sidecars stay."""
    log = Path(table) / "_delta_log"
    commits = sorted(log.glob("*.json"), key=lambda file: file.name)
    checkpoints = [file for file in log.iterdir() if ".checkpoint." in file.name]
    newest = max(checkpoints, key=lambda file: file.name[:20])
    for file in {*commits, *checkpoints} - {newest}:
        if file.name[:20] < newest.name[:20] or ".checkpoint." in file.name:
            file.unlink()


def appended(table: str, expected: int) -> int:
    """Returns the number of files that the versions after version 0 add. Each of these versions must add one file.

    Raises:
        ValueError: the number is not `expected`, a version is missing, or a file was added twice.
    """
    commits = sorted((Path(table) / "_delta_log").glob("*.json"), key=lambda file: file.name)
    added = [
        json.loads(line)["add"]["path"]
        for commit in commits[1:]
        for line in commit.read_text().splitlines()
        if line.startswith('{"add"')
    ]
    if not len(commits) - 1 == len(added) == len(set(added)) == expected:
        raise ValueError(f"{len(commits)} versions with {len(set(added))} new files after {expected} appends")
    return len(added)
