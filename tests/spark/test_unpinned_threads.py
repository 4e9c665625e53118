"""deltalog works with `PYSPARK_PIN_THREAD=false`, where a Python thread has no fixed thread in the JVM."""

import json
from pathlib import Path

import pytest

from tests.spark.processes import run_python

PROGRAM = """
    import json
    import threading
    from concurrent.futures import ThreadPoolExecutor

    from py4j.clientserver import ClientServer
    from pyspark.sql import SparkSession

    import deltalog.spark
    from deltalog.spark.bridge.tables import TableCalls
    from deltalog.spark.jvm.connections import one_connection
    from deltalog.tables import DeltaTable

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.shuffle.partitions", "1").config("spark.sql.warehouse.dir", {warehouse!r})
    spark = deltalog.spark.enable(builder.getOrCreate())
    gateway = spark.sparkContext._gateway
    seen = {{"pinned": isinstance(gateway, ClientServer)}}

    def thread_of_jvm():
        return gateway.jvm.java.lang.Thread.currentThread().getId()

    def work(name):
        spark.range(3).write.format("deltalog").saveAsTable(name)
        spark.range(3, 6).write.format("deltalog").mode("append").saveAsTable(name)
        spark.sql(f"INSERT INTO {{name}} VALUES (6)")
        spark.sql(f"DELETE FROM {{name}} WHERE id = 0")
        DeltaTable.forName(spark, name).update("id = 1", {{"id": "10"}})
        spark.sql(
            f"MERGE INTO {{name}} t USING (VALUES (2L), (7L) AS v(id)) s ON t.id = s.id "
            "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *"
        )
        DeltaTable.forName(spark, name).optimize().executeCompaction()
        spark.table(name).write.format("deltalog").save({directory!r} + name)
        try:
            spark.sql("SELECT 1 AS other").write.format("deltalog").mode("append").save({directory!r} + name)
        except deltalog.DeltaError as error:
            refused = type(error).__name__
        rows = spark.sql(f"SELECT id FROM deltalog.`{directory}{{name}}` ORDER BY id").collect()
        return [refused, [row.id for row in rows]]

    def thread(name):
        results = []
        other = threading.Thread(target=lambda: results.append(work(name)))
        other.start()
        other.join()
        return results

    seen["main"] = [work("main")]
    seen["thread"] = thread("other")
    with ThreadPoolExecutor(2) as pool:
        seen["pool"] = list(pool.map(work, ["a", "b"]))

    # While Python serves a call of the JVM, its own calls run on the JVM thread that waits for it.
    served = []
    read = TableCalls.read

    def recorded(self, *arguments):
        served.append(thread_of_jvm())
        return read(self, *arguments)

    TableCalls.read = recorded
    spark.range(1).count()
    waiting = thread_of_jvm()
    spark.read.format("deltalog").load({directory!r} + "main")
    seen["nested"] = served == [waiting]

    def own(_):
        with one_connection(gateway._gateway_client):
            started.wait()
            ids = {{thread_of_jvm() for _ in range(50)}}
            finished.wait()  # A connection that is free again is for others.
            return ids

    started, finished = threading.Barrier(3), threading.Barrier(3)
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(own, range(3)))
    seen["own"] = [len(ids) for ids in found], len(set().union(*found))
    print(json.dumps(seen))
"""


@pytest.mark.newest
@pytest.mark.oldest
@pytest.mark.thorough
def test_everything_works_without_pinned_threads(tmp_path: Path) -> None:
    """The statements run in the main thread, in another thread, and in several threads at once."""
    program = PROGRAM.format(warehouse=str(tmp_path / "warehouse"), directory=f"{tmp_path}/")
    done = run_python(program, PYSPARK_PIN_THREAD="false")
    assert done.returncode == 0, done.stderr
    expected = ["SchemaMismatchError", [3, 4, 5, 6, 7, 10]]
    assert json.loads(done.stdout) == {
        "pinned": False,
        "main": [expected],
        "thread": [expected],
        "pool": [expected] * 2,
        "nested": True,
        "own": [[1, 1, 1], 3],
    }
