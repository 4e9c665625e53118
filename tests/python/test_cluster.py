"""OPTIMIZE clusters the rows of clustered tables. Protocol: "Clustered Table"."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

from deltalog import CommitProperties, DeltaTable, InvalidArgumentError, write_deltalake


def some_rows(count: int, seed: int) -> pa.Table:
    numbers = random.Random(seed)  # noqa: S311
    return pa.table(
        {
            "id": list(range(seed * count, (seed + 1) * count)),
            "a": [numbers.randrange(10**6) for _ in range(count)],
            "s": [{"b.c": f"{numbers.randrange(10**6):06}"} for _ in range(count)],
        }
    )


def clustered(path: Path, **configuration: str) -> DeltaTable:
    """Creates an empty table that is clustered by two columns."""
    return DeltaTable.create(
        str(path), some_rows(1, 0).schema, cluster_by=["a", "s.`b.c`"], configuration=dict(configuration)
    )


def append(table: DeltaTable, rows: pa.Table) -> None:
    write_deltalake(table, rows, mode="append")
    table.update_incremental()


def seen(table: DeltaTable) -> list[dict[str, Any]]:
    rows = pa.table(table.to_arrow()).to_pylist()
    return sorted(rows, key=lambda row: row["id"])


def size_of(table: DeltaTable) -> int:
    return int(sum(pa.table(table.files())["size"].to_pylist()))


def files_of(table: DeltaTable, condition: str) -> int:
    return int(pa.table(table.files(predicate=condition)).num_rows)


def tags(path: Path, version: int) -> list[dict[str, str]]:
    lines = (path / "_delta_log" / f"{version:020}.json").read_text().splitlines()
    adds = [json.loads(line)["add"] for line in lines if "add" in json.loads(line)]
    assert all(add["clusteringProvider"] == "liquid" for add in adds)
    return [add["tags"] for add in adds]


@pytest.mark.parametrize("mode", ["none", "name"])
def test_filters_on_clustering_columns_skip_files(tmp_path: Path, mode: str) -> None:
    table = clustered(tmp_path, **{"delta.columnMapping.mode": mode, "delta.enableRowTracking": "true"})
    for seed in range(4):
        append(table, some_rows(5_000, seed))
    before, conditions = seen(table), ("a = 500000", "s.`b.c` = '250000'")
    assert [files_of(table, condition) for condition in conditions] == [4, 4]
    size = size_of(table)
    metrics = table.optimize.cluster(target_size=-(-size // 32))
    count = metrics["numFilesAdded"]
    assert 30 <= count <= 34
    assert max(files_of(table, condition) for condition in conditions) <= count // 3
    assert metrics["clusteringStats"] == {
        "inputZCubeFiles": {"numFiles": 0, "size": 0},
        "inputOtherFiles": {"numFiles": 4, "size": size},
        "inputNumZCubes": 0,
        "mergedFiles": {"numFiles": 4, "size": size},
        "numOutputZCubes": 1,
    }
    assert (metrics["zOrderStats"], metrics["preserveInsertionOrder"]) == (None, False)
    assert seen(table) == before
    [marks] = {tuple(sorted(found.items())) for found in tags(tmp_path, table.version())}
    found = dict(marks)
    assert (json.loads(found["ZCUBE_ZORDER_BY"]), found["ZCUBE_ZORDER_CURVE"]) == (
        ["a", "s.`b.c`"],
        "hilbert",
    )
    if mode == "none":
        assert deltalake.DeltaTable(str(tmp_path)).count() == len(before)


def test_new_files_are_clustered_with_few_others(tmp_path: Path) -> None:
    table = clustered(tmp_path)
    append(table, some_rows(40_000, 0))
    target = size_of(table) // 160
    table.optimize.cluster(target_size=target)
    before, version = seen(table), table.version()
    assert table.optimize.cluster(target_size=target)["numFilesAdded"] == 0
    assert table.version() == version
    append(table, some_rows(1_000, 40))
    files = size_of(table)
    [added] = [
        add["size"]
        for add in pa.table(table.files()).to_pylist()
        if add["path"] in newest_paths(tmp_path, table)
    ]
    metrics = table.optimize.cluster(target_size=target)
    assert metrics["filesRemoved"]["totalSize"] <= 3 * added < files / 8
    assert metrics["clusteringStats"]["inputNumZCubes"] == 1
    assert [row for row in seen(table) if row["id"] < 40_000] == before
    # A full run clusters all files together. A second full run has nothing to do.
    whole = table.optimize.cluster(full=True, dry_run=True)
    assert whole["clusteringStats"]["mergedFiles"]["numFiles"] == len(table.file_uris())
    assert table.optimize.cluster(full=True)["clusteringStats"]["numOutputZCubes"] == 1
    assert table.optimize.cluster(full=True)["numFilesAdded"] == 0
    assert len(seen(table)) == 41_000


def newest_paths(path: Path, table: DeltaTable) -> set[str]:
    lines = (path / "_delta_log" / f"{table.version():020}.json").read_text().splitlines()
    return {json.loads(line)["add"]["path"] for line in lines if "add" in json.loads(line)}


def test_compact_clusters_and_other_columns_need_all_files(tmp_path: Path) -> None:
    table = clustered(tmp_path)
    append(table, some_rows(100, 0))
    table.optimize.compact(commit_properties=CommitProperties(custom_metadata={"by": "me"}))
    [newest] = table.history(1)
    assert (newest["operation"], newest["by"]) == ("OPTIMIZE", "me")
    assert json.loads(newest["operationParameters"]["clusterBy"]) == ["a", "s.`b.c`"]
    table.alter.cluster_by("id")
    assert table.optimize()["numFilesAdded"] == 0
    assert table.optimize.cluster(full=True)["numFilesAdded"] == 1
    [found] = tags(tmp_path, table.version())
    assert found["ZCUBE_ZORDER_BY"] == '["id"]'
    append(table, some_rows(100, 1))
    table.alter.cluster_by([])
    metrics = table.optimize.compact()
    assert (metrics["numFilesRemoved"], metrics["clusteringStats"]) == (2, None)
    assert len(seen(table)) == 200


def test_deleted_rows_and_purges(tmp_path: Path) -> None:
    table = clustered(tmp_path, **{"delta.enableDeletionVectors": "true"})
    append(table, some_rows(1_000, 0))
    table.optimize.cluster()
    [before] = tags(tmp_path, table.version())
    for start in (0, 500):
        table.delete(f"id >= {start} and id < {start + 100}")
        done = table.optimize.purge() if start else table.optimize.cluster()
        assert (done["numFilesAdded"], done["deletionVectorStats"]["numDeletionVectorsRemoved"]) == (1, 1)
        assert tags(tmp_path, table.version()) == [before]
    assert len(seen(table)) == 800


def test_a_checkpoint_says_how_files_are_clustered(tmp_path: Path) -> None:
    for policy in ("classic", "v2"):
        table = clustered(tmp_path / policy, **{"delta.checkpointPolicy": policy})
        append(table, some_rows(100, 0))
        table.optimize.cluster()
        table.create_checkpoint()
        for commit in (tmp_path / policy / "_delta_log").glob("*.json"):
            commit.unlink()
        table = DeltaTable(str(tmp_path / policy))
        metrics = table.optimize.cluster()
        assert (metrics["clusteringStats"]["inputNumZCubes"], metrics["numFilesAdded"]) == (1, 0)


def test_what_cannot_be_clustered(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path / "plain"), pa.table({"a": [1]}))
    plain = DeltaTable(str(tmp_path / "plain"))
    with pytest.raises(InvalidArgumentError, match="has no clustering columns"):
        plain.optimize.cluster()
    table = clustered(tmp_path / "clustered")
    append(table, some_rows(10, 0))
    with pytest.raises(InvalidArgumentError, match="no partitions that a predicate could choose"):
        table.optimize.compact("a = 1")
    with pytest.raises(InvalidArgumentError, match="the table is clustered"):
        table.optimize.z_order("a")
    for wrong in (0, -1, 1.5, "1"):
        with pytest.raises(InvalidArgumentError, match="from 1"):
            table.optimize.cluster(cube_size=wrong)  # type: ignore[arg-type]
    assert table.version() == 1
