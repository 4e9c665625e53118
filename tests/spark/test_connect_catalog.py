"""Spark Connect with a server whose settings enable deltalog's catalog, used by clients with and without deltalog."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltalog
from deltalog.spark.configuration import jar
from tests.spark.connect_server import STARTED, run_client, running_server

pytest.importorskip("grpc")
pytest.importorskip("pandas")

BEGIN = """
import json
from pyspark.sql import SparkSession, functions as sf
spark = SparkSession.builder.remote({address!r}).create()
said = {{}}
def outcome(call):
    try:
        return call()
    except Exception as error:
        kinds = [kind.__name__ for kind in type(error).__mro__]
        return [kinds, str(error).splitlines()[0]]
def rows(frame):
    return [list(row) for row in frame.collect()]
def sql(text, **named):
    return rows(spark.sql(text, **named))
"""
WITH_DELTALOG = """
import deltalog.spark
from deltalog.tables import DeltaTable
deltalog.spark.enable(spark)
"""
WITHOUT_DELTALOG = """
import sys
sys.modules["deltalog"] = None
"""
END = "\nspark.stop()\nprint(json.dumps(said))\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """Starts a Connect server whose settings enable deltalog. Returns its address and its directory."""
    settings = {
        "spark.jars": jar(),
        "spark.sql.extensions": "io.deltalog.spark.DeltalogExtensions",
        "spark.deltalog.python": sys.executable,
    }
    yield from running_server(tmp_path_factory, more=settings)


def client(server: tuple[str, Path], tmp_path: Path, begin: str, code: str) -> dict[str, Any]:
    """Runs the code of a client, and returns the content of the code's variable `said`."""
    done = run_client(BEGIN.format(address=server[0]) + begin + code + END, tmp_path)
    assert done.returncode == 0, done.stderr
    said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return said


def ids(path: Path) -> list[tuple[Any, ...]]:
    table = pa.table(deltalog.DeltaTable(path).to_arrow())
    return sorted(map(tuple, (row.values() for row in table.select(["id", "p"]).to_pylist())))


def test_statements_of_a_client_are_executed_by_the_server(server: tuple[str, Path], tmp_path: Path) -> None:
    """A client's statements are executed by the server, each as one commit. Conditions and values are given as strings
    or columns, and tables by path or name.
    """
    code = f"""
for name, place in (("path", {str(tmp_path / "by path")!r}), ("name", {str(tmp_path / "by name")!r})):
    made = spark.createDataFrame([(i, "old") for i in range(10)], "id int, p string").coalesce(1)
    made.write.format("deltalog").save(place)
    spark.sql(f"CREATE TABLE of_{{name}} USING deltalog LOCATION '{{place}}'")
    by_path = DeltaTable.forPath(spark, place)
    table = (by_path if name == "path" else DeltaTable.forName(spark, "of_name")).alias("t")
    counts = [
        rows(table.delete("t.id = 0")),
        rows(table.delete(sf.col("t.id") == 1)),
        rows(table.update("id = 2", {{"p": "upper(p)"}})),
        rows(table.update(sf.col("id") == 3, {{"p": sf.lit("column")}})),
    ]
    source = spark.createDataFrame([(4, "s"), (5, "s"), (20, "s"), (21, "s")], "id int, p string").alias("s")
    merge = table.merge(source, "t.id = s.id").whenMatchedUpdate("s.id = 4", {{"p": "concat(t.p, s.p)"}})
    merge = merge.whenMatchedDelete().whenNotMatchedInsert(sf.col("s.id") == 20, {{"id": "s.id"}})
    merge = merge.whenNotMatchedInsertAll().whenNotMatchedBySourceUpdate("t.id = 6", {{"p": "'left'"}})
    counts.append(rows(merge.whenNotMatchedBySourceDelete("t.id = 7").execute()))
    wider = spark.createDataFrame([(8, "w", 1.5)], "id int, p string, more double").alias("s")
    evolving = table.merge(wider, "t.id = s.id").withSchemaEvolution().whenMatchedUpdateAll()
    counts.append(rows(evolving.execute()))
    counts.append(table.toDF().columns)
    said[name] = counts
twice = spark.sql("SELECT 8 AS id, explode(array('a', 'b')) AS p").alias("s")
said["twice"] = outcome(lambda: table.merge(twice, "t.id = s.id").whenMatchedUpdate(set={{"p": "s.p"}}).execute())
said["column"] = outcome(lambda: table.update("nothing = 1", {{"p": "'x'"}}))
said["random"] = outcome(lambda: table.delete("rand() < 2"))
"""
    said = client(server, tmp_path, WITH_DELTALOG, code)
    for name in ("path", "name"):
        counts = [[[1]], [[1]], [[1]], [[1]], [[6, 2, 2, 2]], [[1, 1, 0, 0]], ["id", "p", "more"]]
        assert said[name] == counts
        table = deltalog.DeltaTable(tmp_path / f"by {name}")
        operations = [commit["operation"] for commit in reversed(table.history())]
        assert operations == ["WRITE", "DELETE", "DELETE", "UPDATE", "UPDATE", "MERGE", "MERGE"]
        expected = [(2, "OLD"), (3, "column"), (4, "olds"), (6, "left"), (8, "w"), (9, "old"), (20, None)]
        assert ids(tmp_path / f"by {name}") == [*expected, (21, "s")]
    assert "MERGE_CARDINALITY_VIOLATION" in said["twice"][1]
    assert "InvalidArgumentError" in said["twice"][0]
    assert "AnalysisException" in said["column"][0]
    assert "UNRESOLVED_COLUMN" in said["column"][1]
    assert "INVALID_NON_DETERMINISTIC_EXPRESSIONS" in said["random"][1]


@pytest.mark.thorough
def test_verbs_of_a_client_with_deltalog_use_the_catalog_of_the_server(
    server: tuple[str, Path], tmp_path: Path
) -> None:
    code = f"""
place = {str(tmp_path)!r}
build = lambda make: make(spark).tableName("built").addColumn("id", "INT").addColumn("p", "STRING")
table = build(DeltaTable.create).addColumn("twice", "INT", generatedAlwaysAs="id * 2").execute()
said["again"] = outcome(lambda: build(DeltaTable.create).execute())[1]
build(DeltaTable.createIfNotExists).execute()
spark.sql("INSERT INTO built (id, p) VALUES (1, 'a')")
spark.sql("INSERT INTO built (id, p) VALUES (2, 'b')")
said["rows"] = sql("SELECT * FROM built ORDER BY id")
said["optimized"] = table.optimize().executeCompaction().collect()[0].metrics.numFilesAdded
said["restored"] = table.restoreToVersion(1).collect()[0].num_restored_files
said["counts"] = [table.count("id = 1"), table.min_max("id"), rows(table.count_by_partition())]
table.addFeatureSupport("vacuumProtocolCheck")
table.vacuum()
said["detail"] = "vacuumProtocolCheck" in table.detail().collect()[0].tableFeatures
said["history"] = [row.operation for row in table.history().collect()]
said["clone"] = [table.clone("copied").count(), table.clone(place + "/copy", isShallow=True).count()]
said["named"] = sql("SELECT count(*) FROM copied")
said["checked"] = [table.check("rows").count(), table.repair().count()]
spark.range(3).write.format("parquet").saveAsTable("plain")
said["converted"] = DeltaTable.convertToDelta(spark, "plain").count()
said["is"] = [DeltaTable.isDeltaTable(spark, place + "/copy"), DeltaTable.isDeltaTable(spark, place)]
said["missing"] = outcome(lambda: DeltaTable.forPath(spark, place))
said["alias"] = [spark.read.format("delta").load(place + "/copy").count()]
said["off"] = outcome(
    lambda: deltalog.spark.enable(spark, alias_delta=False).read.format("delta").load(place + "/copy").count()
)[1]
said["alias"].append(deltalog.spark.enable(spark, alias_delta=True).table(f"delta.`{{place}}/copy`").count())
"""
    said = client(server, tmp_path, WITH_DELTALOG, code)
    assert "TABLE_OR_VIEW_ALREADY_EXISTS" in said["again"]
    assert said["rows"] == [[1, "a", 2], [2, "b", 4]]
    assert said["optimized"] == 1
    assert said["restored"] == 1
    assert said["counts"] == [1, [1, 1], [[1]]]
    assert said["detail"]
    assert "OPTIMIZE" in said["history"]
    assert said["clone"] == [1, 1]
    assert said["named"] == [[1]]
    assert said["checked"] == [0, 0]
    assert said["converted"] == 3
    assert said["is"] == [True, False]
    assert {"NotATableError", "AnalysisException"} <= set(said["missing"][0])
    assert said["alias"] == [1, 1]
    assert "DATA_SOURCE_NOT_FOUND" in said["off"]


@pytest.mark.newest
def test_a_client_does_not_need_deltalog(server: tuple[str, Path], tmp_path: Path) -> None:
    code = f"""
import threading, time
path = {str(tmp_path / "t")!r}
sql("CREATE TABLE plain_t (id INT, p STRING) USING deltalog PARTITIONED BY (p)")
sql("INSERT INTO plain_t VALUES (1, 'a'), (2, 'b')")
frame = spark.createDataFrame([(2, "b"), (3, "it's")], "id int, p string")
frame.write.format("deltalog").mode("append").saveAsTable("plain_t")
frame.writeTo("plain_t").append()
frame.writeTo("plain_u").using("deltalog").partitionedBy("p").createOrReplace()
frame.where("id = 3").writeTo("plain_u").overwrite(sf.col("id") == 3)
frame.write.format("deltalog").save(path)
sql(f"UPDATE deltalog.`{{path}}` SET p = 'u' WHERE id = :i", args={{"i": 3}})
said["path"] = sorted(rows(spark.read.format("deltalog").load(path)))
said["read"] = sql(f"SELECT count(*) FROM deltalog.`{{path}}` VERSION AS OF 0")
merged = frame.withColumn("p", sf.lit("m")).alias("s").mergeInto("plain_u", sf.expr("plain_u.id = s.id"))
merged.whenMatched().updateAll().whenNotMatched().insertAll().merge()
said["merged"] = sql("SELECT * FROM plain_u ORDER BY ALL")
said["optimized"] = sql("OPTIMIZE plain_t WHERE p = :p", args={{"p": "b"}})[0][1][:2]
said["quoted"] = sql("OPTIMIZE plain_t WHERE p = :p AND p IS NOT NULL", args={{"p": "it's"}})[0][1][:2]
said["nameless"] = sql("OPTIMIZE plain_t WHERE p = ?", args=["b"])[0][1][:2]
said["history"] = [row.operation for row in spark.sql("DESCRIBE HISTORY plain_t").collect()]
said["refused"] = outcome(lambda: sql("VACUUM plain_t RETAIN 0 HOURS"))
slept = "CAST(java_method('java.lang.Thread', 'sleep', 1500L) AS STRING)"
slow = f"SELECT CAST(id AS INT), {{slept}} FROM range(0, 40, 1, 20)"
version = len(said["history"])
found = []
def write():
    found.append(outcome(lambda: sql(f"INSERT INTO plain_t {{slow}}"))[1])
thread = threading.Thread(target=write)
thread.start()
deadline = time.monotonic() + 60
while not spark.interruptAll() and time.monotonic() < deadline:
    time.sleep(0.2)
thread.join()
said["interrupted"] = found
said["committed"] = spark.sql("DESCRIBE HISTORY plain_t").count() - version
"""
    said = client(server, tmp_path, WITHOUT_DELTALOG, code)
    assert said["path"] == [[2, "b"], [3, "u"]]
    assert said["read"] == [[2]]
    assert said["merged"] == [[2, "m"], [3, "m"]]
    assert said["optimized"] == [1, 3]
    assert said["quoted"] == [1, 2]
    assert said["nameless"] == [0, 0]
    assert said["history"][:3] == ["OPTIMIZE", "OPTIMIZE", "WRITE"]
    assert "retention" in said["refused"][1]
    assert "OPERATION_CANCELED" in said["interrupted"][0] or "cancel" in said["interrupted"][0].lower()
    assert said["committed"] == 0


def test_a_stream_of_a_client_is_read_by_the_server(server: tuple[str, Path], tmp_path: Path) -> None:
    code = f"""
place, checkpoint = {str(tmp_path / "table")!r}, {str(tmp_path / "checkpoint")!r}
spark.range(0, 2, 1, 1).write.format("deltalog").save(place)
spark.range(2, 4, 1, 1).write.format("deltalog").mode("append").save(place)
def ids(name, reader):
    writer = reader.writeStream.format("memory").queryName(name).option("checkpointLocation", checkpoint)
    writer.trigger(availableNow=True).start().awaitTermination()
    return sorted(row.id for row in spark.table(name).collect())
said["first"] = ids("first", spark.readStream.format("deltalog").option("maxFilesPerTrigger", 1).load(place))
spark.range(4, 5).write.format("deltalog").mode("append").save(place)
said["refused"] = outcome(lambda: spark.readStream.format("deltalog").option("versionAsOf", 0).load(place).schema)
"""
    said = client(server, tmp_path, WITHOUT_DELTALOG, code)
    assert said["first"] == [0, 1, 2, 3]
    assert "versionAsOf does not apply to a stream" in said["refused"][1]


STREAMS = """
reading = spark.readStream.format("deltalog").option("maxFilesPerTrigger", 1)
def writer(checkpoint):
    started = reading.load(f"{root}/source").writeStream.trigger(availableNow=True)
    return started.option("checkpointLocation", f"{root}/{checkpoint}")

writer("copying").format("deltalog").toTable("streamed").awaitTermination()
said["copied"] = sorted(rows(spark.table("streamed")))
misspelled = spark.readStream.format("deltalog").option("maxFilesTrigger", 1)
said["misspelled"] = outcome(lambda: misspelled.load(f"{root}/source").columns)
said["update"] = outcome(lambda: writer("updates").format("deltalog").outputMode("update").start(f"{root}/x"))

def merge(batch, number):
    from deltalog.tables import DeltaTable
    table = DeltaTable.forPath(batch.sparkSession, f"{root}/merged").alias("t")
    merged = table.merge(batch.alias("s"), "t.id = s.id").whenMatchedUpdate(set={"n": "t.n + 1"})
    merged.whenNotMatchedInsert(values={"id": "s.id", "n": "0"}).execute()
    batch.createOrReplaceTempView("updates")
    merge = f"MERGE INTO deltalog.`{root}/merged` t USING updates s ON t.id = s.id"
    batch.sparkSession.sql(f"{merge} WHEN MATCHED THEN UPDATE SET n = n + 10")

started(writer("merging").foreachBatch(merge)).awaitTermination()
"""


@pytest.mark.thorough
def test_streams_of_a_client_are_written_by_the_server(server: tuple[str, Path], tmp_path: Path) -> None:
    """The server writes the streams of a client. Statements and methods on batches run in a Python process of the
    server, which is itself a Connect client.
    """
    for id_ in (1, 2):
        deltalog.write_deltalake(tmp_path / "source", pa.table({"id": [id_]}), mode="append")
    deltalog.write_deltalake(tmp_path / "merged", pa.table({"id": [1], "n": [5]}))
    said = client(server, tmp_path, WITH_DELTALOG, f"root = {str(tmp_path)!r}\n{STARTED}{STREAMS}")
    assert said["copied"] == [[1], [2]]
    assert "did you mean maxFilesPerTrigger" in said["misspelled"][1]
    assert "InvalidArgumentError" in said["misspelled"][0]
    assert "does not support the output mode update" in said["update"][1]
    merged = pa.table(deltalog.DeltaTable(tmp_path / "merged").to_arrow()).to_pylist()
    assert sorted((row["id"], row["n"]) for row in merged) == [(1, 16), (2, 10)]
