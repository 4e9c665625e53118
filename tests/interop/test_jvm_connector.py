"""The JVM connector reads the tables that deltalog writes, and vice versa."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import deltalog
from tests.golden.canonical import rows
from tests.interop.checkpoints import add_many_files, leave_newest_checkpoint, write_checkpoints
from tests.interop.conftest import Jvm
from tests.interop.data import PARTITION_BY, PARTITIONS, TYPES


def ours(path: Path, version: int | None = None) -> list[str]:
    return rows(pa.table(deltalog.DeltaTable(path, version=version).to_arrow()))


def test_they_read_every_type_of_ours(jvm: Jvm, tmp_path: Path) -> None:
    deltalog.write_deltalake(tmp_path, TYPES)
    assert rows(jvm.query(f"SELECT * FROM delta.`{tmp_path}`")) == rows(TYPES)


def test_they_read_our_partitions_and_skip_by_our_statistics(jvm: Jvm, tmp_path: Path) -> None:
    deltalog.write_deltalake(tmp_path, PARTITIONS, partition_by=PARTITION_BY)
    assert rows(jvm.query(f"SELECT * FROM delta.`{tmp_path}`")) == rows(PARTITIONS)
    assert (
        jvm.query(f"SELECT string FROM delta.`{tmp_path}` WHERE value = 2 AND string = 'a/b'").num_rows == 1
    )


def test_we_read_all_versions_of_their_tables(jvm: Jvm, tmp_path: Path) -> None:
    """deltalog reads every version of a table in which the connector has rewritten a file for a DELETE, and has
    written a checkpoint after the usual number of commits.
    """
    table = f"delta.`{tmp_path}`"
    jvm.run(
        f"""CREATE TABLE {table} USING delta PARTITIONED BY (p) TBLPROPERTIES ('delta.checkpointInterval' = '3')
        AS SELECT id, CASE WHEN id % 3 = 0 THEN NULL ELSE concat('p/ %', id % 3) END AS p,
        CAST(id AS DECIMAL(20, 3)) AS d, named_struct('a', array(id, NULL)) AS s, map('k', id) AS m,
        timestamp_micros(id) AS t, X'00FF' AS b FROM range(100)"""
    )
    for number in range(4):
        jvm.run(f"DELETE FROM {table} WHERE id % 10 = {number}")
    assert (tmp_path / "_delta_log" / f"{3:020}.checkpoint.parquet").is_file()
    for version in range(5):
        assert ours(tmp_path, version) == rows(jvm.query(f"SELECT * FROM {table} VERSION AS OF {version}"))
    assert ours(tmp_path) == rows(jvm.query(f"SELECT * FROM {table}"))


def test_they_keep_writing_after_our_checkpoint(jvm: Jvm, tmp_path: Path) -> None:
    table = f"delta.`{tmp_path}`"
    data = pa.table({"id": pa.array(range(10), pa.int64())})
    for _ in range(4):
        deltalog.write_deltalake(
            tmp_path, data, mode="append", configuration={"delta.checkpointInterval": "2"}
        )
    jvm.run(f"INSERT INTO {table} SELECT 100")
    jvm.run(f"DELETE FROM {table} WHERE id < 5")
    deltalog.write_deltalake(tmp_path, data, mode="append")
    assert ours(tmp_path) == rows(jvm.query(f"SELECT * FROM {table}"))
    assert len(ours(tmp_path)) == 4 * 5 + 1 + 10
    versions = jvm.query(f"DESCRIBE HISTORY {table}").column("version")
    assert sorted(versions.to_pylist()) == list(range(7))


def test_each_accepts_the_checksums_of_the_other(jvm: Jvm, tmp_path: Path) -> None:
    """The connector fails if a checksum differs from the log. It compares them when it writes a checkpoint, and in this
    test also before and after each commit. Each engine computes its checksums from the checksums of the other engine.
    """
    table = f"delta.`{tmp_path}`"
    jvm.run("SET spark.databricks.delta.incremental.commit.verify = true")
    data = pa.table({"id": pa.array(range(10), pa.int64())})
    properties = {"delta.checkpointInterval": "3", "delta.enableDeletionVectors": "true"}
    deltalog.write_deltalake(tmp_path, data, configuration=properties)
    for number in range(3):
        jvm.run(f"DELETE FROM {table} WHERE id = {number}")
        deltalog.write_deltalake(tmp_path, data, mode="append")
        deltalog.write_deltalake(tmp_path, data, mode="append")
    deltalog.write_deltalake(tmp_path, data, mode="overwrite")
    jvm.run(f"INSERT INTO {table} SELECT 100")
    deltalog.DeltaTable(tmp_path).compact_logs(7, 8)
    jvm.run(f"DELETE FROM {table} WHERE id = 100")
    newest = deltalog.DeltaTable(tmp_path)
    for version in range(newest.version() + 1):
        found = deltalog.DeltaTable(tmp_path, version=version).verify()
        assert found.ok, (version, found)
        assert found.file is not None, version
    assert ours(tmp_path) == rows(jvm.query(f"SELECT * FROM {table}"))
    jvm.run("RESET spark.databricks.delta.incremental.commit.verify")


@pytest.mark.parametrize("mapping", [pytest.param("none", marks=pytest.mark.thorough), "id"])
def test_we_read_their_deletion_vectors_and_change_data_feed(jvm: Jvm, tmp_path: Path, mapping: str) -> None:
    """The connector has deleted, updated, merged, purged and restored rows of the table, some of them several times.
    deltalog reads some versions, and the change data feed from each version to the newest one.
    """
    table = f"delta.`{tmp_path}`"
    jvm.run(
        f"""CREATE TABLE {table} (id BIGINT, p BIGINT, s STRING) USING delta PARTITIONED BY (p) TBLPROPERTIES (
        'delta.checkpointInterval' = '4', 'delta.enableDeletionVectors' = 'true',
        'delta.enableChangeDataFeed' = 'true', 'delta.columnMapping.mode' = '{mapping}')"""
    )
    statements = [
        f"INSERT INTO {table} SELECT id, id % 3, concat('s', id) FROM range(0, 1000, 1, 4)",
        f"DELETE FROM {table} WHERE id % 7 = 1",
        f"DELETE FROM {table} WHERE id BETWEEN 200 AND 600 AND p <> 2",
        f"UPDATE {table} SET s = 'new' WHERE id % 11 = 0",
        f"""MERGE INTO {table} t USING (SELECT id, id % 3 AS p FROM range(980, 1020)) u ON t.id = u.id
        WHEN MATCHED AND t.p = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET s = 'merged'
        WHEN NOT MATCHED THEN INSERT (id, p, s) VALUES (u.id, u.p, NULL)""",
        f"DELETE FROM {table} WHERE p = 1",
        f"OPTIMIZE {table}",
        f"DELETE FROM {table} WHERE id = 2 OR id = 3",
        f"REORG TABLE {table} APPLY (PURGE)",
        f"RESTORE TABLE {table} TO VERSION AS OF 3",
        f"DELETE FROM {table} WHERE id > 666",
        f"RESTORE TABLE {table} TO VERSION AS OF 2",
    ]
    for statement in statements:
        jvm.run(statement)
    newest = deltalog.DeltaTable(tmp_path)
    vectors = pa.table(newest.files(columns=["deletion_vector"])).column("deletion_vector")
    assert vectors.null_count < len(vectors)
    theirs = jvm.query(f"SELECT * FROM table_changes_by_path('{tmp_path}', 0)")
    for version in (3, 5, 10, newest.version()):
        assert ours(tmp_path, version) == rows(jvm.query(f"SELECT * FROM {table} VERSION AS OF {version}")), (
            version
        )
    for version in range(newest.version() + 1):
        since = theirs.filter(pc.greater_equal(theirs.column("_commit_version"), version))
        assert rows(pa.table(newest.load_cdf(version))) == rows(since), version


def test_we_keep_writing_over_deletion_vectors_with_the_feed_on(jvm: Jvm, tmp_path: Path) -> None:
    """deltalog creates a table with deletion vectors and a change data feed, and the connector deletes and updates
    rows. Then deltalog appends rows, writes a checkpoint and overwrites the table.
    """
    table = f"delta.`{tmp_path}`"
    data = pa.table({"id": pa.array(range(100), pa.int64()), "p": [number % 2 for number in range(100)]})
    properties = {
        "delta.enableDeletionVectors": "true",
        "delta.enableChangeDataFeed": "true",
        "delta.checkpointInterval": "4",
    }
    deltalog.write_deltalake(tmp_path, data, partition_by=["p"], configuration=properties)
    jvm.run(f"DELETE FROM {table} WHERE id % 10 = 1")
    jvm.run(f"UPDATE {table} SET id = id + 1000 WHERE id % 10 = 2")
    deltalog.write_deltalake(tmp_path, data.slice(0, 3), mode="append")
    deltalog.write_deltalake(tmp_path, data.slice(3, 3), mode="append")
    assert (tmp_path / "_delta_log" / f"{4:020}.checkpoint.parquet").is_file()
    assert ours(tmp_path) == rows(jvm.query(f"SELECT * FROM {table}"))
    deltalog.write_deltalake(tmp_path, data.slice(50, 2), mode="overwrite")
    jvm.run(f"DELETE FROM {table} WHERE id = 50")
    for version in (4, 5, 6):
        assert ours(tmp_path, version) == rows(jvm.query(f"SELECT * FROM {table} VERSION AS OF {version}")), (
            version
        )
    changes = pa.table(deltalog.DeltaTable(tmp_path).load_cdf())
    assert rows(changes) == rows(jvm.query(f"SELECT * FROM table_changes_by_path('{tmp_path}', 0)"))


NESTED = pa.struct([pa.field("x y", pa.int64())])


@pytest.mark.parametrize(
    "properties",
    [
        {"delta.columnMapping.mode": "id"},
        {
            "delta.columnMapping.mode": "name",
            "delta.enableInCommitTimestamps": "true",
            "delta.enableRowTracking": "true",
            "delta.enableDeletionVectors": "true",
        },
    ],
    ids=["id", "name and others"],
)
def test_they_write_to_tables_with_our_features(jvm: Jvm, tmp_path: Path, properties: dict[str, str]) -> None:
    """Both engines write alternately, and column ids, row ids, physical names and timestamps stay consistent."""
    table = f"delta.`{tmp_path}`"
    is_mapped = "delta.columnMapping.mode" in properties
    names = ["the id", "p, q", "s;t"] if is_mapped else ["id", "p", "s"]

    def data(start: int) -> pa.Table:
        ids = range(start, start + 10)
        nested = pa.array(
            [{"x y" if is_mapped else "x": number} for number in ids],
            NESTED if is_mapped else pa.struct([pa.field("x", pa.int64())]),
        )
        return pa.table(
            [pa.array(ids, pa.int64()), pa.array([f"p{number % 2}" for number in ids]), nested], names
        )

    def write(start: int, mode: Literal["append", "overwrite"] = "append") -> None:
        deltalog.write_deltalake(
            tmp_path, data(start), mode=mode, partition_by=[names[1]], configuration=properties
        )

    write(0)
    write(10)
    jvm.run(f"INSERT INTO {table} SELECT 100, 'p1', NULL")
    jvm.run(f"DELETE FROM {table} WHERE `{names[0]}` IN (3, 4)")
    write(20)
    assert ours(tmp_path) == rows(jvm.query(f"SELECT * FROM {table}"))
    skipped = jvm.query(f"SELECT * FROM {table} WHERE `{names[0]}` >= 20 AND `{names[1]}` = 'p1'")
    assert skipped.num_rows == 6
    history = jvm.query(f"DESCRIBE HISTORY {table}")
    versions = history.column("version").to_pylist()
    assert sorted(versions) == list(range(5))
    if "delta.enableRowTracking" in properties:
        theirs = jvm.query(f"SELECT `{names[0]}` AS id, _metadata.row_id AS row_id FROM {table}")
        mine = pa.table(deltalog.DeltaTable(tmp_path).to_arrow(row_ids=True))
        mine = mine.select([names[0], "_row_id"]).rename_columns(["id", "row_id"])
        assert rows(mine) == rows(theirs)
        assert pc.count_distinct(theirs.column("row_id")).as_py() == theirs.num_rows
    if "delta.enableInCommitTimestamps" in properties:
        times = dict(zip(versions, history.column("timestamp").to_pylist(), strict=True))
        assert len(set(times.values())) == 5
        for entry in deltalog.DeltaTable(tmp_path).history():
            assert entry["timestamp"] == int(times[entry["version"]].timestamp() * 1000)
    write(30, "overwrite")
    assert ours(tmp_path) == rows(jvm.query(f"SELECT * FROM {table}")) == rows(data(30))


def test_they_read_every_form_of_our_checkpoints(jvm: Jvm, tmp_path: Path) -> None:
    """Each checkpoint is the only source of its version. In the table with sidecars, the second checkpoint reuses
    sidecars of the first one.
    """
    structs = {"delta.checkpoint.writeStatsAsStruct": "true"}
    forms = {
        "classic": {},
        "structs": {**structs, "delta.checkpoint.writeStatsAsJson": "false"},
        "v2": {"delta.checkpointPolicy": "v2"},
        "v2-structs": {"delta.checkpointPolicy": "v2", **structs},
    }
    for name, properties in forms.items():
        written = write_checkpoints(tmp_path / name, properties)
        table = f"delta.`{tmp_path / name}`"
        assert rows(jvm.query(f"SELECT * FROM {table}")) == rows(pa.table(written.to_arrow())), name
        one = f"SELECT value FROM {table} WHERE value = 3 AND string = 'a=b' AND date = DATE '2020-02-29'"
        assert jvm.query(one).num_rows == 2, name
    path = tmp_path / "sidecars"
    number = add_many_files(path, {"delta.checkpointPolicy": "v2"})
    for value in (-1, -2):
        deltalog.DeltaTable(path).create_checkpoint()
        deltalog.write_deltalake(path, pa.table({"id": [value]}), mode="append")
    leave_newest_checkpoint(path)
    detail = jvm.query(f"DESCRIBE DETAIL delta.`{path}`")
    assert detail.column("numFiles").to_pylist() == [number + 2]
