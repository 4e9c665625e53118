"""deltalog and the JVM connector take turns in clustering the same tables. Protocol: "Clustered Table"."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import deltalog
from tests.golden.canonical import rows
from tests.interop.conftest import Jvm

_STRATEGY = "spark.databricks.delta.optimize.clustering.mergeStrategy.minCubeSize"
_FINISHED, _MOST = f"{_STRATEGY}.threshold", f"{_STRATEGY}.targetCubeSize"
_FILE_SIZE = "spark.databricks.delta.optimize.maxFileSize"


@pytest.fixture
def small_cubes(jvm: Jvm) -> Iterator[Callable[[int], None]]:
    """Returns a function that makes the JVM connector create small files and cubes. The function's argument is the size
    from which the connector treats a cube as finished.
    """

    def choose(size: int) -> None:
        for name, value in ((_FINISHED, size), (_MOST, size * 4), (_FILE_SIZE, size // 2)):
            jvm.run(f"SET {name} = {value}")

    yield choose
    for name in (_FINISHED, _MOST, _FILE_SIZE):
        jvm.run(f"RESET {name}")


def ours(path: Path) -> list[str]:
    return rows(pa.table(deltalog.DeltaTable(path).to_arrow()))


def files(path: Path) -> dict[str, dict[str, str] | None]:
    """Returns the tags of the newest version's files by path. The value of an unclustered file is None."""
    found: dict[str, dict[str, str] | None] = {}
    for commit in sorted((path / "_delta_log").glob("*.json")):
        actions = [json.loads(line) for line in commit.read_text().splitlines()]
        for action in actions:
            if "remove" in action:
                found.pop(action["remove"]["path"])
        for add in (action["add"] for action in actions if "add" in action):
            assert add.get("clusteringProvider") in (None, "liquid")
            found[add["path"]] = add["tags"] if "clusteringProvider" in add else None
    return found


def cubes(path: Path) -> dict[str, set[str]]:
    """Returns the files of each cube by the cube's id. Unclustered files are under the empty string."""
    found: dict[str, set[str]] = defaultdict(set)
    for file, tags in files(path).items():
        found["" if tags is None else tags["ZCUBE_ID"]].add(file)
    return dict(found)


def insert(jvm: Jvm, table: str, first: int, count: int) -> None:
    jvm.run(
        f"""INSERT INTO {table} SELECT id, id * 7919 % 5000,
        struct(IF(id % 7 = 0, NULL, concat('s', id * 31 % 997))) FROM range({first}, {first + count}, 1, 2)"""
    )


@pytest.mark.parametrize("mode", [pytest.param("none", marks=pytest.mark.thorough), "name"])
def test_each_continues_clustering_of_the_other(
    jvm: Jvm, tmp_path: Path, mode: str, small_cubes: Callable[[int], None]
) -> None:
    """Finished cubes of either engine are not rewritten, and the rows and their ids do not change."""
    table = f"delta.`{tmp_path}`"
    inner = "`b c`" if mode == "name" else "b"
    jvm.run(
        f"""CREATE TABLE {table} (id BIGINT, a BIGINT, s STRUCT<{inner}: STRING>) USING delta
        CLUSTER BY (a, s.{inner}) TBLPROPERTIES ('delta.enableDeletionVectors' = 'true',
        'delta.enableRowTracking' = 'true', 'delta.columnMapping.mode' = '{mode}')"""
    )
    tracked = f"SELECT id, s, _metadata.row_id, _metadata.row_commit_version FROM {table}"
    insert(jvm, table, 0, 6_000)
    size = sum(pa.table(deltalog.DeltaTable(tmp_path).files())["size"].to_pylist()) // 2
    small_cubes(size)
    jvm.run(f"OPTIMIZE {table}")
    theirs = cubes(tmp_path)
    assert len(theirs) == 1
    assert "" not in theirs

    # The connector's cube is finished, so deltalog does not rewrite it.
    insert(jvm, table, 6_000, 1_000)
    jvm.run(f"DELETE FROM {table} WHERE id % 100 = 1")
    expected, ids = rows(jvm.query(f"SELECT * FROM {table}")), rows(jvm.query(tracked))
    newest = deltalog.DeltaTable(tmp_path)
    assert newest.clustering_columns() == ["a", "s.b c" if mode == "name" else "s.b"]
    metrics = newest.optimize.cluster(cube_size=size * 3 // 2, target_size=size // 2)
    assert metrics["clusteringStats"]["inputNumZCubes"] == 1
    both = cubes(tmp_path)
    assert len(both) == 2
    assert both.items() >= theirs.items()
    assert newest.optimize.cluster(cube_size=size * 3 // 2)["numFilesAdded"] == 0
    assert rows(jvm.query(f"SELECT * FROM {table}")) == expected == ours(tmp_path)
    assert rows(jvm.query(tracked)) == ids

    # deltalog's cube is not finished, so the connector orders it again, together with new rows.
    insert(jvm, table, 7_000, 1_000)
    jvm.run(f"OPTIMIZE {table}")
    now = cubes(tmp_path)
    assert now.items() >= theirs.items()
    assert not set(both) - set(theirs) & set(now)
    # Both engines record the names of clustering columns in the same way, so each treats the other's cubes as its own.
    assert {tags["ZCUBE_ZORDER_BY"] for tags in files(tmp_path).values() if tags is not None} == {
        json.dumps(["a", f"s.{inner}"], separators=(",", ":"))
    }

    # The connector does not rewrite a finished cube of deltalog, and its second run does nothing.
    deltalog.DeltaTable(tmp_path).optimize.cluster(full=True)
    [one] = cubes(tmp_path)
    version = deltalog.DeltaTable(tmp_path).version()
    for full in ("", " FULL"):
        jvm.run(f"OPTIMIZE {table}{full}")
        assert deltalog.DeltaTable(tmp_path).version() == version
    insert(jvm, table, 8_000, 500)
    jvm.run(f"OPTIMIZE {table}")
    last = cubes(tmp_path)
    assert len(last) == 2
    assert one in last
    expected = rows(jvm.query(f"SELECT * FROM {table}"))
    assert expected == ours(tmp_path)
    assert len(expected) == 8_500 - 70
    history = deltalog.DeltaTable(tmp_path).history()
    runs = [commit for commit in history if commit["operation"] == "OPTIMIZE"]
    assert {run["operationParameters"]["clusterBy"] for run in runs} == {
        json.dumps(["a", f"s.{inner}"], separators=(",", ":"))
    }
    assert {str(run["operationParameters"]["isFull"]).lower() for run in runs} == {"false", "true"}
    mine = [set(run["operationMetrics"]) for run in runs if "targetSize" in run["operationParameters"]]
    assert all(found <= set(runs[0]["operationMetrics"]) for found in mine)


def test_both_agree_on_other_clustering_columns(jvm: Jvm, tmp_path: Path) -> None:
    """Files that were clustered by other columns are rewritten only with FULL. If the table has no clustering columns
    any more, OPTIMIZE merges files.
    """
    for full_by, name in (("jvm", "t"), ("deltalog", "u")):
        path = tmp_path / name
        table = f"delta.`{path}`"
        jvm.run(f"CREATE TABLE {table} (id BIGINT, a BIGINT) USING delta CLUSTER BY (a)")
        jvm.run(f"INSERT INTO {table} SELECT id, id * 7919 % 5000 FROM range(0, 1000)")
        deltalog.DeltaTable(path).optimize.cluster()
        jvm.run(f"ALTER TABLE {table} CLUSTER BY (id)")
        version, old = deltalog.DeltaTable(path).version(), files(path)
        jvm.run(f"OPTIMIZE {table}")
        assert deltalog.DeltaTable(path).optimize.cluster()["numFilesAdded"] == 0
        assert (deltalog.DeltaTable(path).version(), files(path)) == (version, old)
        if full_by == "jvm":
            jvm.run(f"OPTIMIZE {table} FULL")
        else:
            deltalog.DeltaTable(path).optimize.cluster(full=True)
        assert not set(files(path)) & set(old)
        assert all(tags is not None and tags["ZCUBE_ZORDER_BY"] == '["id"]' for tags in files(path).values())
        version = deltalog.DeltaTable(path).version()
        jvm.run(f"OPTIMIZE {table} FULL")
        assert deltalog.DeltaTable(path).optimize.cluster(full=True)["numFilesAdded"] == 0
        assert deltalog.DeltaTable(path).version() == version
        jvm.run(f"INSERT INTO {table} VALUES (1000, 1)")
        jvm.run(f"ALTER TABLE {table} CLUSTER BY NONE")
        if full_by == "jvm":
            jvm.run(f"OPTIMIZE {table}")
        else:
            deltalog.DeltaTable(path).optimize.compact()
        assert list(files(path).values()) == [None]
        expected = rows(jvm.query(f"SELECT * FROM {table}"))
        assert expected == ours(path)
        assert len(expected) == 1001
