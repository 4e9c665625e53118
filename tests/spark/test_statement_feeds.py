"""The change data feed contains exactly the changes of DELETE, UPDATE and MERGE statements. (PROTOCOL.md, "Change Data
Files".)
"""

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from deltalog import DeltaTable, UnsupportedFeatureError
from tests.python.place import actions, commit_file
from tests.python.statement_support import feed
from tests.spark.statement_tables import FAILING, KINDS, OLD, Row, Rows, check, created, files, in_one_task

FEED = {"delta.enableChangeDataFeed": "true"}
# The kinds that are tested with every Spark release. What distinguishes the other kinds does not depend on the release.
_EVERY_SPARK = ("partitions with vectors", "rewriting")

Changes = Counter[tuple[Any, ...]]
Change = tuple[Row | None, Row | None]
"""A row before and after a statement. The first is None if it was inserted, the second if it was deleted."""


def recording(spark: SparkSession, path: str, kind: str) -> str:
    """Creates a table of this kind with a change data feed, and returns its name."""
    table = created(spark, path, kind)
    DeltaTable(path).alter.set_table_properties(FEED)
    return table


def said(changes: Iterable[Change]) -> Changes:
    """Returns the change data feed that is expected for these changes of rows."""
    found: Changes = Counter()
    for before, after in changes:
        if before is not None and after is not None:
            found.update([("update_preimage", *before), ("update_postimage", *after)])
        elif before is not None:
            found[("delete", *before)] += 1
        elif after is not None:
            found[("insert", *after)] += 1
    return found


def check_feed(spark: SparkSession, path: str, expected: Changes) -> None:
    """Checks the feed of the newest version, as read by the Rust core and by Spark."""
    version = DeltaTable(path).version()
    assert feed(DeltaTable(path), version) == expected
    reader = spark.read.format("deltalog").option("readChangeFeed", "true").option("startingVersion", version)
    names = DeltaTable(path).to_pyarrow_table().column_names
    rows = reader.load(path).select("_change_type", *names).collect()
    assert Counter(map(tuple, rows)) == expected


def change_files(path: str, version: int | None = None) -> list[dict[str, Any]]:
    """Returns the `cdc` actions of a version."""
    version = DeltaTable(path).version() if version is None else version
    return [line["cdc"] for line in actions(Path(path), version) if "cdc" in line]


@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=() if kind in _EVERY_SPARK else pytest.mark.newest) for kind in KINDS],
)
def test_the_feed_has_each_change(spark: SparkSession, path: str, kind: str) -> None:
    """The feed has each change, even if a row moves to another partition."""
    table = recording(spark, path, kind)
    spark.sql(f"UPDATE {table} SET s = concat('new', id), p = p + 1 WHERE id < 100 AND s IS NOT NULL")
    changed = [(i, p + 1, f"new{i}") if i is not None and i < 100 and s else (i, p, s) for i, p, s in OLD]
    rows: Rows = changed
    check_feed(spark, path, said((old, new) for old, new in zip(OLD, changed, strict=True) if old != new))
    assert len({json.dumps(file["partitionValues"]) for file in change_files(path)}) == (
        4 if KINDS[kind][1] else 1
    )
    spark.sql(f"DELETE FROM {table} WHERE id % 10 = 3 OR p = 0")
    gone = [row for row in rows if (row[0] is not None and row[0] % 10 == 3) or row[1] == 0]
    rows = [row for row in rows if row not in gone]
    check_feed(spark, path, said((row, None) for row in gone))
    spark.range(200, 320, 2).createOrReplaceTempView("source")
    spark.sql(
        f"""MERGE INTO {table} t USING source s ON t.id = s.id
            WHEN MATCHED AND s.id < 230 THEN UPDATE SET s = NULL, p = 3 - t.p
            WHEN MATCHED AND s.id % 4 = 0 THEN DELETE
            WHEN NOT MATCHED AND s.id > 299 THEN INSERT (id, p) VALUES (s.id, s.id % 3)
            WHEN NOT MATCHED BY SOURCE AND t.id < 10 THEN UPDATE SET s = 'alone'
            WHEN NOT MATCHED BY SOURCE AND t.p = 2 AND t.id < 250 THEN DELETE"""
    )
    changes: list[Change] = [(None, (i, i % 3, None)) for i in range(300, 320, 2)]
    for row in rows:
        i, p, _ = row
        if i is not None and i >= 200 and i % 2 == 0:
            changes.append((row, (i, 3 - p, None) if i < 230 else None if i % 4 == 0 else row))
        elif i is not None:
            changes.append((row, (i, p, "alone") if i < 10 else None if p == 2 and i < 250 else row))
        else:
            changes.append((row, row))
    check_feed(spark, path, said(change for change in changes if change[0] != change[1]))
    check(spark, path, [new for _, new in changes if new is not None])
    found = DeltaTable(path).history(1)[0]["operationMetrics"]
    assert found["numTargetChangeFilesAdded"] == str(len(change_files(path))) != "0"


@pytest.mark.parametrize("kind", ["vectors", "rewriting"])
def test_change_files_are_written_only_if_other_actions_do_not_show_the_changes(
    spark: SparkSession, path: str, kind: str
) -> None:
    table = recording(spark, path, kind)
    merge = f"MERGE INTO {table} t USING (SELECT * FROM range(290, 310)) s ON t.id = s.id"
    inserts = "WHEN NOT MATCHED THEN INSERT (id, p, s) VALUES (s.id, 5, 'new')"
    spark.sql(f"{merge} AND s.id > 299 WHEN MATCHED THEN UPDATE SET s = 'never' {inserts}")
    new: Rows = [(i, 5, "new") for i in range(290, 310)]
    assert change_files(path) == []
    check_feed(spark, path, said((None, row) for row in new))
    # This statement deletes only whole files, so it writes no change files.
    spark.sql(f"DELETE FROM {table} WHERE p = 0 OR id = -1")
    gone = [row for row in OLD if row[1] == 0]
    assert change_files(path) == []
    check_feed(spark, path, said((row, None) for row in gone))
    # One commit changes some rows of some files, and all rows of other files.
    # With deletion vectors, the file actions alone show all changes.
    rows = [row for row in [*OLD, *new] if row not in gone]
    spark.sql(f"{merge} AND t.id = 300 WHEN MATCHED OR FALSE THEN DELETE {inserts}".replace("OR FALSE ", ""))
    found = said([((300, 5, "new"), None), *((None, (i, 5, "new")) for i in range(290, 310) if i != 300)])
    assert bool(change_files(path)) == (kind == "rewriting")
    check_feed(spark, path, found)
    rows = [row for row in rows if row[0] != 300] + [row for row in new if row[0] != 300]
    spark.sql(f"DELETE FROM {table} WHERE p = 1 OR id = 305")
    gone = [row for row in rows if row[1] == 1 or row[0] == 305]
    assert bool(change_files(path)) == (kind == "rewriting")
    check_feed(spark, path, said((row, None) for row in gone))
    check(spark, path, [row for row in rows if row not in gone])


@pytest.mark.parametrize("broadcast", ["10m", "-1"])
def test_a_row_that_is_deleted_by_several_matches_is_one_change(
    spark: SparkSession, path: str, broadcast: str
) -> None:
    table = recording(spark, path, "vectors")
    spark.sql("SELECT * FROM VALUES (5L), (5L), (6L), (5L) AS s(k)").repartition(3).createOrReplaceTempView(
        "source"
    )
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", broadcast)
    try:
        spark.sql(
            f"MERGE INTO {table} t USING source ON t.id = k WHEN MATCHED THEN DELETE "
            "WHEN NOT MATCHED BY SOURCE AND t.id = 8 THEN UPDATE SET s = 'alone'"
        )
    finally:
        spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")
    by_id = {row[0]: row for row in OLD}
    check_feed(
        spark,
        path,
        said([(by_id[5], None), (by_id[6], None), (by_id[8], (8, by_id[8][1], "alone"))]),
    )


def test_old_values_need_not_meet_the_rules_of_the_table(spark: SparkSession, path: str) -> None:
    """Old values in the feed may break the table's rules, because they are read from the files and not computed
    again.
    """
    spark.sql(
        f"CREATE TABLE deltalog.`{path}` (id LONG, twice LONG GENERATED ALWAYS AS (id * 2), "
        "st STRUCT<a: INT NOT NULL, b: ARRAY<INT>>) USING deltalog "
        "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true', 'delta.enableDeletionVectors' = 'true')"
    )
    table = f"deltalog.`{path}`"
    spark.sql(f"INSERT INTO {table} (id, st) SELECT id, named_struct('a', 1, 'b', array(2)) FROM range(4)")
    DeltaTable(path).alter.add_constraint({"small": "id < 100"})
    # Another writer wrote these values, which break the rules.
    metadata = next(line["metaData"] for line in actions(Path(path), 0) if "metaData" in line)
    schema = json.loads(metadata["schemaString"])
    schema["fields"][1]["metadata"] = {}
    without = {
        **metadata,
        "schemaString": json.dumps(schema),
        "configuration": {**FEED, "delta.enableDeletionVectors": "true"},
    }
    commit_file(Path(path), 3).write_text(json.dumps({"metaData": without}) + "\n")
    spark.sql(f"INSERT INTO {table} VALUES (200, 7, named_struct('a', 3, 'b', array(4)))")
    with_rules = next(line["metaData"] for line in actions(Path(path), 2) if "metaData" in line)
    commit_file(Path(path), 5).write_text(json.dumps({"metaData": with_rules}) + "\n")
    spark.sql(f"UPDATE {table} SET id = 20, st.b = NULL WHERE id = 200")
    spark.sql(
        f"MERGE INTO {table} t USING (SELECT * FROM range(1, 3)) s ON t.id = s.id "
        "WHEN MATCHED AND s.id = 1 THEN UPDATE SET st.a = 5 WHEN MATCHED THEN DELETE"
    )
    found = pa.table(DeltaTable(path).load_cdf(6, 7)).to_pylist()
    old = {"a": 1, "b": [2]}
    assert sorted(
        ((row["_commit_version"], row["_change_type"], row["id"], row["twice"], row["st"]) for row in found),
        key=repr,
    ) == [
        (6, "update_postimage", 20, 40, {"a": 3, "b": None}),
        (6, "update_preimage", 200, 7, {"a": 3, "b": [4]}),
        (7, "delete", 2, 4, old),
        (7, "update_postimage", 1, 2, {"a": 5, "b": [2]}),
        (7, "update_preimage", 1, 2, old),
    ]


@pytest.mark.parametrize("kind", ["vectors", "rewriting"])
def test_a_statement_that_fails_leaves_no_change_files(spark: SparkSession, path: str, kind: str) -> None:
    table = recording(spark, path, kind)
    before = files(path)
    with in_one_task(spark):
        with pytest.raises(Exception, match="boom"):
            spark.sql(f"UPDATE {table} SET s = {FAILING} WHERE id >= 250")
        # The first job writes change files, and the second job fails.
        with pytest.raises(Exception, match="boom"):
            spark.sql(
                f"MERGE INTO {table} t USING (SELECT * FROM range(299, 310, 1, 1)) s ON t.id = s.id "
                "WHEN MATCHED THEN UPDATE SET s = 'm' WHEN NOT MATCHED THEN INSERT (id, p, s) "
                "VALUES (s.id, 0, CAST(if(s.id = 305, raise_error('boom'), 's') AS STRING))"
            )
    assert DeltaTable(path).version() == 1
    assert files(path) == before


def test_change_files_have_no_columns_that_track_rows(spark: SparkSession, path: str) -> None:
    table = recording(spark, path, "tracked with vectors")
    spark.sql(f"UPDATE {table} SET s = 'x' WHERE id = 1")
    (file,) = change_files(path)
    assert pq.read_schema(f"{path}/{file['path']}").names == ["id", "p", "s", "_change_type"]
    assert Path(path, file["path"]).stat().st_size == file["size"]


def test_a_table_with_a_column_named_like_the_kind_of_a_change_is_refused(
    spark: SparkSession, path: str
) -> None:
    """A table with a column `_change_type` is refused, unless the statement needs no change files."""
    data = spark.range(4).selectExpr("id", "'s' AS _Change_type")
    data.write.format("deltalog").option("delta.enableDeletionVectors", "true").save(path)
    metadata = next(line["metaData"] for line in actions(Path(path), 0) if "metaData" in line)
    metadata["configuration"].update(FEED)
    commit_file(Path(path), 1).write_text(json.dumps({"metaData": metadata}) + "\n")
    table = f"deltalog.`{path}`"
    for statement in (
        f"UPDATE {table} SET id = 1",
        f"MERGE INTO {table} t USING (SELECT * FROM range(2)) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET id = 3",
    ):
        with pytest.raises(UnsupportedFeatureError, match="reserved for the change data feed"):
            spark.sql(statement)
    spark.sql(f"DELETE FROM {table} WHERE id = 1")
    assert DeltaTable(path).to_pyarrow_table().num_rows == 3


@pytest.mark.parametrize("kind", ["vectors", "rewriting"])
def test_old_values_of_new_columns_are_null(spark: SparkSession, path: str, kind: str) -> None:
    table = recording(spark, path, kind)
    spark.sql(
        f"""MERGE WITH SCHEMA EVOLUTION INTO {table} t
            USING (SELECT id, 'm' AS s, 1 AS p, id * 2 AS more FROM range(298, 302)) s ON t.id = s.id
            WHEN MATCHED AND s.id = 298 THEN UPDATE SET * WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *"""
    )
    old = {row[0]: (*row, None) for row in OLD}
    expected: Changes = Counter(
        [
            ("update_preimage", *old[298]),
            ("update_postimage", 298, 1, "m", 596),
            ("delete", *old[299]),
            ("insert", 300, 1, "m", 600),
            ("insert", 301, 1, "m", 602),
        ]
    )
    check_feed(spark, path, expected)
