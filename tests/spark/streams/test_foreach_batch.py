"""In `foreachBatch`, the user's function writes to tables and runs statements for each batch of a stream."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from deltalog import DeltaTable as Table
from deltalog.spark.errors import SchemaMismatchError
from deltalog.tables import DeltaTable
from tests.spark.streams.batches import Batches, Rows, ended, repeat_batch, written

Step = Callable[[DataFrame, int], None]


@pytest.fixture
def batches(tmp_path: Path) -> Batches:
    """Returns two batches. The second batch changes a row of the first batch and adds a row."""
    made = Batches(tmp_path / "batches")
    made.add(id=[1, 2], v=["a", "b"])
    made.add(id=[2, 3], v=["B", "c"])
    return made


def run(spark: SparkSession, batches: Batches, checkpoint: Path, step: Step) -> None:
    writer = batches.read(spark).writeStream.foreachBatch(step).trigger(availableNow=True)
    ended(writer.option("checkpointLocation", str(checkpoint)).start())


def merge_by_verbs(session: SparkSession, path: str, batch: DataFrame) -> None:
    target = DeltaTable.forPath(session, path).alias("t")
    merge = target.merge(batch.alias("s"), "t.id = s.id")
    merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()


MERGE = """
    MERGE INTO deltalog.`{path}` AS t USING {source} AS s ON t.id = s.id
    WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"""


def merge_by_sql(session: SparkSession, path: str, batch: DataFrame) -> None:
    if session is batch.sparkSession or session._jsparkSession.equals(batch.sparkSession._jsparkSession):
        batch.createOrReplaceTempView("updates")
        session.sql(MERGE.format(path=path, source="updates"))
    else:
        # A temporary view that the function creates in the batch's session does not exist in other sessions.
        batch.createOrReplaceGlobalTempView("updates")
        session.sql(MERGE.format(path=path, source="global_temp.updates"))


@pytest.mark.every_spark
@pytest.mark.parametrize("merge", [merge_by_verbs, merge_by_sql])
@pytest.mark.parametrize("is_outer", [False, True])
def test_foreach_batch_can_merge(
    spark: SparkSession,
    batches: Batches,
    tmp_path: Path,
    path: str,
    merge: Callable[..., None],
    is_outer: bool,
) -> None:
    """The function may use the batch's session, which is a copy of the stream's session, or the session that started
    the stream.
    """
    spark.sql(f"CREATE TABLE deltalog.`{path}` (id BIGINT, v STRING) USING deltalog")

    def step(batch: DataFrame, _: int) -> None:
        merge(spark if is_outer else batch.sparkSession, path, batch)

    run(spark, batches, tmp_path / "checkpoint", step)
    assert written(path) == [(1, "a"), (2, "B"), (3, "c")]
    assert [commit["operation"] for commit in Table(path).history()] == ["MERGE", "MERGE", "CREATE TABLE"]


def append(batch: DataFrame, number: int, path: str) -> None:
    writer = batch.write.format("deltalog").mode("append")
    writer.option("txnAppId", "job").option("txnVersion", number).save(path)


def insert(batch: DataFrame, number: int, path: str) -> None:
    in_transaction(batch.sparkSession, number)
    batch.createOrReplaceTempView("updates")
    batch.sparkSession.sql(f"INSERT INTO deltalog.`{path}` SELECT * FROM updates")


def delete(batch: DataFrame, number: int, path: str) -> None:
    in_transaction(batch.sparkSession, number)
    batch.sparkSession.sql(
        f"DELETE FROM deltalog.`{path}` WHERE id = (SELECT min(id) FROM deltalog.`{path}`)"
    )


def update(batch: DataFrame, number: int, path: str) -> None:
    in_transaction(batch.sparkSession, number)
    DeltaTable.forPath(batch.sparkSession, path).update("id < 10", {"v": "concat(v, '!')"})


def merge(batch: DataFrame, number: int, path: str) -> None:
    in_transaction(batch.sparkSession, number)
    target = DeltaTable.forPath(batch.sparkSession, path).alias("t")
    target.merge(batch.alias("s"), "t.id = s.id").whenMatchedUpdate(
        set={"v": "concat(t.v, s.v)"}
    ).whenNotMatchedInsertAll().execute()


def in_transaction(session: SparkSession, number: int) -> None:
    """Makes the following statements record an application and its version. SQL statements have no options, so these
    are settings of the batch's session.
    """
    session.conf.set("spark.databricks.delta.write.txnAppId", "job")
    session.conf.set("spark.databricks.delta.write.txnVersion", number)


ONCE: dict[str, tuple[Callable[[DataFrame, int, str], None], Rows]] = {
    "append": (append, [(1, "a"), (2, "B"), (2, "b"), (3, "c"), (8, "x"), (9, "y")]),
    "INSERT": (insert, [(1, "a"), (2, "B"), (2, "b"), (3, "c"), (8, "x"), (9, "y")]),
    "DELETE": (delete, []),
    "UPDATE": (update, [(8, "x!!"), (9, "y!!")]),
    "MERGE": (merge, [(1, "a"), (2, "bB"), (3, "c"), (8, "x"), (9, "y")]),
}


@pytest.mark.parametrize("name", ONCE)
def test_a_write_that_an_application_has_recorded_is_not_repeated(
    spark: SparkSession, batches: Batches, tmp_path: Path, path: str, name: str
) -> None:
    step, rows = ONCE[name]
    checkpoint = tmp_path / "checkpoint"
    old = spark.createDataFrame([(8, "x"), (9, "y")], "id bigint, v string")
    old.coalesce(1).write.format("deltalog").save(path)
    seen: list[int] = []

    def counted(batch: DataFrame, number: int) -> None:
        seen.append(number)
        step(batch, number, path)

    run(spark, batches, checkpoint, counted)
    assert (written(path), Table(path).version()) == (rows, 2)
    assert Table(path).transaction_versions() == {"job": 1}
    repeat_batch(checkpoint, 1)
    run(spark, batches, checkpoint, counted)
    assert seen == [0, 1, 1]
    assert (written(path), Table(path).version()) == (rows, 2)
    assert spark.conf.get("spark.databricks.delta.write.txnAppId", None) is None


def test_an_error_of_the_function_ends_the_query(
    spark: SparkSession, batches: Batches, tmp_path: Path, path: str
) -> None:
    """The query's exception contains only the text of the error, as with every error in such a function."""
    spark.sql(f"CREATE TABLE deltalog.`{path}` (id BIGINT) USING deltalog")

    def step(batch: DataFrame, _: int) -> None:
        batch.write.format("deltalog").mode("append").save(path)

    with pytest.raises(Exception, match="has no column v") as raised:
        run(spark, batches, tmp_path / "checkpoint", step)
    assert SchemaMismatchError.__name__ in str(raised.value)
    assert Table(path).version() == 0


def test_foreach_batch_can_use_names_of_tables(spark: SparkSession, batches: Batches, tmp_path: Path) -> None:
    def step(batch: DataFrame, number: int) -> None:
        batch.write.format("deltalog").mode("append").saveAsTable("of_batches")
        found: Any = batch.sparkSession.table("of_batches").count()
        assert found == 2 * (number + 1)

    try:
        run(spark, batches, tmp_path / "checkpoint", step)
        assert spark.table("of_batches").count() == 4
    finally:
        spark.sql("DROP TABLE IF EXISTS of_batches")
