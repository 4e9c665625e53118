"""Default values and clustering columns of existing tables."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from deltalog import (
    CommitConflictError,
    DeltaTable,
    Field,
    Identity,
    InvalidArgumentError,
    Schema,
    write_deltalake,
)
from tests.python.alter_support import NUMBERS, action, created, refused, rows
from tests.python.interfering import overtaken
from tests.python.place import actions, commit_file

NESTED = pa.table(
    {
        "id": pa.array([1], pa.int64()),
        "s": pa.array([{"x": None}], pa.struct([("x", pa.int32())])),
        "flag": [True],
    }
)


def clustering(path: Path, version: int) -> list[list[str]]:
    found = action(path, version, "domainMetadata")
    assert (found["domain"], found["removed"]) == ("delta.clustering", False)
    columns: list[list[str]] = json.loads(found["configuration"])["clusteringColumns"]
    return columns


def test_default_values(tmp_path: Path) -> None:
    """PROTOCOL, "Default Columns"."""
    table = created(tmp_path)
    assert table.alter.set_column_default("name", "concat('x', 'y')") == 1
    assert "allowColumnDefaults" in (table.protocol().writer_features or [])
    assert table.alter.set_column_default("NAME", "concat('x', 'y')") == 1, "it has this default already"
    write_deltalake(tmp_path, NUMBERS, mode="append")
    table.update_incremental()
    assert table.alter.drop_column_default("name") == 3
    write_deltalake(tmp_path, NUMBERS, mode="append")
    assert sorted(str(row["name"]) for row in rows(table)) == ["None", "None", "a", "xy"]
    assert action(tmp_path, 3, "commitInfo")["operation"] == "CHANGE COLUMN"


@pytest.mark.parametrize(
    ("column", "sql", "message"),
    [
        ("missing", "1", "no column"),
        ("s.x", "1", "only columns of the table"),
        ("id", "'x'", "'id' cannot have the default value"),
        ("id", "s.x", "'id' cannot have the default value"),
        ("id", "uuid()", "'id' cannot have the default value"),
    ],
)
def test_default_values_that_are_refused(tmp_path: Path, column: str, sql: str, message: str) -> None:
    table = created(tmp_path, NESTED)
    with refused(tmp_path, InvalidArgumentError, message):
        table.alter.set_column_default(column, sql)


def test_generated_and_identity_columns_have_no_default(tmp_path: Path) -> None:
    columns = [
        Field("a", "long"),
        Field("b", "long", generated_as="a"),
        Field("c", "long", identity=Identity()),
        Field("d", "long", nullable=False),
    ]
    table = DeltaTable.create(tmp_path, Schema(columns))
    for column in ("b", "c"):
        with refused(tmp_path, InvalidArgumentError, "exclude each other"):
            table.alter.set_column_default(column, "1")
    with refused(tmp_path, InvalidArgumentError, "it is NULL"):
        table.alter.set_column_default("d", "NULL")
    with refused(tmp_path, InvalidArgumentError, "'a' has no default value"):
        table.alter.drop_column_default("a")


def test_clustering_columns(tmp_path: Path) -> None:
    """PROTOCOL, "Writer Requirements for Clustered Table": the domain has physical names."""
    table = created(tmp_path, NESTED, configuration={"delta.columnMapping.mode": "name"})
    assert table.alter.cluster_by(["S.X", "id"]) == 1
    assert table.clustering_columns() == ["s.x", "id"]
    assert {"clustering", "domainMetadata"} <= set(table.protocol().writer_features or [])
    assert all(name.startswith("col-") for path in clustering(tmp_path, 1) for name in path)
    parameters = action(tmp_path, 1, "commitInfo")["operationParameters"]
    assert parameters == {"oldClusteringColumns": "", "newClusteringColumns": "s.x,id"}
    assert table.alter.cluster_by(["s.x", "id"]) == 1, "it is clustered so already"
    assert table.alter.cluster_by("id") == 2
    assert table.alter.cluster_by(None) == 3
    assert clustering(tmp_path, 3) == []
    assert table.clustering_columns() == []
    assert not [line for line in actions(tmp_path, 3) if "metaData" in line or "protocol" in line]


def test_new_files_have_statistics_of_clustering_columns(tmp_path: Path) -> None:
    """New files have statistics of clustering columns, even if table properties are later changed to exclude them."""
    table = created(tmp_path, NESTED)
    table.alter.cluster_by("s.x")
    table.alter.set_table_properties({"delta.dataSkippingNumIndexedCols": "0"})
    write_deltalake(tmp_path, NESTED, mode="append")
    stats = json.loads(action(tmp_path, 3, "add")["stats"])
    assert stats["nullCount"] == {"s": {"x": 1}}


def test_clustering_that_is_refused(tmp_path: Path) -> None:
    """PROTOCOL, "Clustered Table"."""
    table = created(tmp_path / "a", NESTED)
    for columns, message in (
        (["flag"], "no bounds"),
        (["s"], "no bounds"),
        (["missing"], "no such column"),
        (["id", "ID"], "twice"),
        (["id", "s.x", "id", "id", "id"], "at most 4"),
    ):
        with refused(tmp_path / "a", InvalidArgumentError, message):
            table.alter.cluster_by(columns)
    partitioned = created(tmp_path / "b", partition_by="name")
    with refused(tmp_path / "b", InvalidArgumentError, "partitioned"):
        partitioned.alter.cluster_by("id")


def test_a_file_without_statistics_of_a_new_clustering_column(tmp_path: Path) -> None:
    """PROTOCOL, "it is required for all table files to have statistics for these added columns"."""
    table = created(tmp_path, NESTED, configuration={"delta.dataSkippingStatsColumns": "id"})
    with refused(tmp_path, InvalidArgumentError, "no statistics"):
        table.alter.cluster_by("s.x")
    table.alter.set_table_properties({"delta.dataSkippingStatsColumns": "id,s.x"})
    with refused(tmp_path, InvalidArgumentError, "a file has no statistics") as _:
        table.alter.cluster_by("s.x")
    write_deltalake(tmp_path, NESTED, mode="overwrite")
    table.update_incremental()
    table.alter.cluster_by("s.x")


@pytest.mark.parametrize(
    "values",
    [
        [1.5, math.nan],
        [-math.inf, 1.5],
        [datetime(2024, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)],
    ],
)
def test_a_table_is_clustered_by_a_column_without_bounds(tmp_path: Path, values: list[object]) -> None:
    """JSON has neither NaN nor infinite numbers, and the bounds of timestamps are rounded to milliseconds, so a file
    may lack the bounds of a column. Rows with such values may be added to a clustered table, too.
    """
    table = created(tmp_path, pa.table({"id": [1, 2], "x": values}))
    stats = json.loads(action(tmp_path, 0, "add")["stats"])
    assert "x" not in stats["minValues"] or "x" not in stats["maxValues"]
    table.alter.cluster_by("x")
    assert clustering(tmp_path, 1) == [["x"]]
    write_deltalake(tmp_path, pa.table({"id": [3, 4], "x": values}), mode="append")
    table.update_incremental()
    table.optimize.compact()
    kept = pa.table(table.to_arrow()).sort_by("id")
    assert kept.column("id").to_pylist() == [1, 2, 3, 4]
    assert [str(value) for value in kept.column("x").to_pylist()] == [str(value) for value in values * 2]


def test_a_new_column_has_statistics_after_they_are_recomputed(tmp_path: Path) -> None:
    """Files that were written before the column was added have no statistics of it."""
    table = created(tmp_path, pa.table({"id": [1, 2]}))
    table.alter.add_columns([Field("x", "string")])
    with pytest.raises(InvalidArgumentError, match="call recompute_statistics, or choose another column"):
        table.alter.cluster_by("x")
    table.recompute_statistics()
    table.alter.cluster_by("x")
    assert clustering(tmp_path, 3) == [["x"]]


def test_concurrently_added_rows_conflict_with_new_clustering_columns(tmp_path: Path) -> None:
    table = created(tmp_path, NESTED)
    write_deltalake(tmp_path, NESTED, mode="append")
    with pytest.raises(CommitConflictError):
        overtaken(DeltaTable(tmp_path, version=0)).alter.cluster_by("id")
    table.alter.cluster_by(["id", "s.x"])
    write_deltalake(tmp_path, NESTED, mode="append")
    # Fewer columns, or the same columns in a different order, need no new statistics.
    assert table.alter.cluster_by("s.x") == 4
    assert commit_file(tmp_path, 4).exists()
