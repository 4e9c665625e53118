"""Tests the format `deltalog` under Spark Connect. Clients run in separate processes, because a process can have only
one kind of session.
"""

import base64
import getpass
import textwrap
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deltalog
from tests.spark.connect_server import STARTED, run_client, running_server
from tests.stores.mini_hdfs import MiniHdfs
from tests.stores.s3_server import S3Server

pytest.importorskip("grpc")
pytest.importorskip("pandas")


# The features that the protocol version (1, 4) implies.
LEGACY = ("appendOnly", "changeDataFeed", "checkConstraints", "generatedColumns", "invariants")


CANARY = "canary+secret/key"


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    """Starts an S3 server whose access keys only the Connect server has."""
    with S3Server() as server:
        server.set(secret_key=CANARY)
        server.create_bucket("tables")
        yield server


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the directory for the Connect server's logs."""
    return tmp_path_factory.mktemp("logs")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, s3: S3Server, logs: Path) -> Iterator[tuple[str, Path]]:
    """Starts a Connect server in a separate process and working directory. Returns its address and the directory."""
    keys = {name.upper(): value for name, value in s3.options().items() if name.endswith(("_key", "_id"))}
    yield from running_server(tmp_path_factory, logs, None, **keys)


def test_a_client_needs_no_classes_of_a_jvm(tmp_path: Path) -> None:
    code = """
        import deltalog.spark
        from deltalog.tables import DeltaTable
        print([name for name in sys.modules if name.startswith(("py4j", "pyspark.core"))])
    """
    done = run_client(code, tmp_path)
    assert done.stdout.strip() == "[]", done.stderr


def test_tables_are_read_and_written_through_the_server(server: tuple[str, Path], tmp_path: Path) -> None:
    address, _ = server
    path = str(tmp_path / "a table")
    deltalake.write_deltalake(
        path, pa.table({"a": pa.array([1, 2], pa.int64()), "p": ["x", "y"]}), partition_by=["p"]
    )
    changed = f"{path} 6"
    for number in (1, 3, 4):
        deltalake.write_deltalake(
            changed,
            pa.table({"id": [number]}),
            mode="append",
            configuration={"delta.enableChangeDataFeed": "true"},
        )
    code = f"""
        import pathlib
        import time
        from pyspark.sql import SparkSession
        spark = SparkSession.builder.remote({address!r}).getOrCreate()
        import deltalog.spark
        deltalog.spark.enable(spark)
        deltalog.spark.enable(spark)
        path = {path!r}
        load = lambda path, **options: spark.read.format("deltalog").options(**options).load(path)
        read = lambda **options: sorted(map(tuple, load(path, **options).collect()))
        print("first", read())
        spark.createDataFrame([(3, "z")], "a long, p string").write.format("deltalog").mode("append").save(path)
        print("appended", read())
        print("old", read(versionAsOf="0"))
        new = path + " 2"
        spark.range(5).write.format("deltalog").mode("append").save(new)
        print("new", spark.read.format("deltalog").load(new).count())
        try:
            spark.range(2).write.format("deltalog").mode("overwrite").save(new)
        except Exception as error:
            print("without base", "baseVersion" in str(error))
        old = load(new)
        columns = old.columns  # The server may keep the analyzed plan.
        spark.range(5, 6).write.format("deltalog").mode("append").save(new)
        try:
            old.where("id > 0").write.format("deltalog").mode("overwrite").option("baseVersion", 0).save(new)
        except Exception as error:
            print("conflict", "version 1, committed in the meantime, added files" in str(error))
        print("rows", load(new).count())
        spark.range(2).write.format("deltalog").mode("overwrite").option("baseVersion", 1).save(new)
        print("over", load(new).count())
        before = set(pathlib.Path(new).rglob("*.parquet"))
        def second_task_fails(batches):
            for batch in batches:
                if batch["id"][0].as_py() == 1:
                    while set(pathlib.Path(new).rglob("*.parquet")) == before:
                        time.sleep(0.1)
                    time.sleep(3)
                    raise ValueError("boom")
                yield batch
        failing = spark.range(0, 2, numPartitions=2).mapInArrow(second_task_fails, "id long")
        try:
            failing.write.format("deltalog").mode("append").save(new)
        except Exception as error:
            print("failed", "boom" in str(error), set(pathlib.Path(new).rglob("*.parquet")) == before)
        noon = "2024-02-29 12:00:00"
        times = spark.sql(f"select timestamp '{{noon}}+00:00' t, array(timestamp_ntz '{{noon}}') n")
        times.write.format("deltalog").mode("overwrite").save(path + " 4")
        read_times = load(path + " 4").selectExpr("unix_seconds(t)", "cast(n[0] as string)")
        print("times", *map(tuple, read_times.collect()))
        spark.range(0).write.format("deltalog").mode("append").save(path + " 5")
        print("empty", spark.read.format("deltalog").load(path + " 5").collect())
        feed = load(path + " 6", readChangeFeed=True, startingVersion=1)
        changes = feed.where("_change_type = 'insert'").select("id", "_change_type", "_commit_version")
        print("changes", *map(tuple, changes.orderBy("id").collect()))
        try:
            spark.read.format("deltalog").load(path + " 3").collect()
        except Exception as error:
            print("missing", "a%20table%203" in str(error))
        spark.stop()
    """
    done = run_client(code, tmp_path)
    wanted = [
        "first [(1, 'x'), (2, 'y')]",
        "appended [(1, 'x'), (2, 'y'), (3, 'z')]",
        "old [(1, 'x'), (2, 'y')]",
        "new 5",
        "without base True",
        "conflict True",
        "rows 6",
        "over 2",
        "failed True True",
        "times (1709208000, '2024-02-29 12:00:00')",
        "empty []",
        "changes (3, 'insert', 1) (4, 'insert', 2)",
        "missing True",
    ]
    assert done.stdout.splitlines() == wanted, done.stderr


@pytest.mark.newest
def test_the_servers_workers_count_identity_columns(server: tuple[str, Path], tmp_path: Path) -> None:
    """PROTOCOL, "Identity Columns": each Spark task gets its own range of values.

    The client has the complete PySpark, not only `pyspark-client`.
    """
    address, _ = server
    path = str(tmp_path / "counted")
    number = deltalog.Field("number", "long", identity=deltalog.Identity(start=1, step=1))
    deltalog.DeltaTable.create(path, schema=deltalog.Schema([deltalog.Field("id", "long"), number]))
    code = f"""
        from pyspark.sql import SparkSession
        import deltalog.spark
        spark = deltalog.spark.enable(SparkSession.builder.remote({address!r}).getOrCreate())
        for start in (0, 20):
            rows = spark.range(start, start + 20, numPartitions=4)
            rows.write.format("deltalog").mode("append").save({path!r})
        """
    done = run_client(code, tmp_path, is_pure=False)
    found = pa.table(deltalog.DeltaTable(path).to_arrow()).sort_by("id").to_pydict()
    assert found["id"] == list(range(40)), done.stderr
    first, second = set(found["number"][:20]), set(found["number"][20:])
    assert first == {1 + task + 65536 * row for task in range(4) for row in range(5)}
    assert len(second) == 20
    assert min(second) == max(first) + 1


def test_the_server_executes_commands_for_the_client(server: tuple[str, Path], tmp_path: Path) -> None:
    """Commands are executed by the server: in the client's process, every attempt to open a table is made to fail."""
    address, directory = server
    for number in (1, 2, 3):
        deltalake.write_deltalake(
            str(directory / "table"),
            pa.table({"a": pa.array([number], pa.int64()), "p": ["x" if number < 3 else "y"]}),
            partition_by=["p"],
            mode="append",
        )
    code = f"""
        import sys
        import pyspark.errors
        from pyspark.sql import SparkSession
        import deltalog.errors
        import deltalog.spark
        from deltalog.tables import DeltaTable
        spark = deltalog.spark.enable(SparkSession.builder.remote({address!r}).getOrCreate())
        path = {str(directory / "table")!r}

        class Closed:
            def open(*arguments, **named):
                raise RuntimeError("the client opens a table")

        ours = [module for name, module in sys.modules.items() if name.startswith("deltalog")]
        patched = [module for module in ours if hasattr(module, "Snapshot")]
        for module in patched:
            module.Snapshot = Closed
        names = {{module.__name__ for module in patched}}
        print("patched", {{"deltalog.spark.tables.handle", "deltalog.spark.portable"}} <= names)
        print("is", DeltaTable.isDeltaTable(spark, path), DeltaTable.isDeltaTable(spark, path + " 2"))
        table = DeltaTable.forPath(spark, path)
        print("history", [row.version for row in table.history(2).collect()])
        [detail] = table.detail().collect()
        print("detail", detail.numFiles, detail.partitionColumns, detail.createdAt is not None)
        print("count", table.count(), table.count("p = 'x' AND a > 1"))
        by_partition = table.count_by_partition()
        print("partitions", by_partition.schema.simpleString(), *sorted(map(tuple, by_partition.collect())))
        print("extremes", table.min_max("a"), table.min_max("p"))
        for _ in range(2):
            table.addFeatureSupport("vacuumProtocolCheck")
        table.upgradeTableProtocol(1, 4)
        print("features", table.detail().collect()[0].tableFeatures)
        table.dropFeatureSupport("vacuumProtocolCheck")
        [newest] = table.history(1).collect()
        print("dropped", newest.version, newest.operation)
        old = table.toDF()
        spark.createDataFrame([(4, "z")], "a long, p string").write.format("deltalog").mode("append").save(path)
        print("rows", sorted(map(tuple, old.collect())), table.count())
        read = spark.read.format("deltalog")
        with_zone = read.option("timestampAsOf", str(table.history(1).collect()[0].timestamp.astimezone()))
        print("at", len(with_zone.load(path).collect()))
        named = DeltaTable.forName(spark, "deltalog.`" + path + "`").count()
        print("named", named)

        def refused(kind, call):
            try:
                call()
                print("not refused")
            except pyspark.errors.AnalysisException as error:
                print(isinstance(error, kind), str(error))

        own = deltalog.errors
        refused(own.NotATableError, lambda: DeltaTable.forPath(spark, path + " 2"))
        refused(own.InvalidArgumentError, lambda: DeltaTable.forPath(spark, "table"))
        refused(own.InvalidArgumentError, lambda: DeltaTable.isDeltaTable(spark, "file:table"))
        refused(own.InvalidArgumentError, lambda: table.count("nonsense > 1"))
        refused(own.InvalidArgumentError, lambda: table.addFeatureSupport("nonsense"))
        refused(own.UnsupportedFeatureError, lambda: DeltaTable.createOrReplace(spark))
        sparks = pyspark.errors.PySparkException
        refused(sparks, lambda: read.load("table").collect())
        refused(sparks, lambda: read.option("timestampAsOf", "2025-01-31 12:00:00").load(path).collect())
    """
    client = tmp_path / "of the client"
    client.mkdir()
    done = run_client(code, client)
    wanted = [
        "patched True",
        "is True False",
        "history [2, 1]",
        "detail 3 ['p'] True",
        "count 3 1",
        "partitions struct<p:string,count:bigint> ('x', 2) ('y', 1)",
        "extremes (1, 3) ('x', 'y')",
        f"features {sorted([*LEGACY, 'vacuumProtocolCheck'])}",
        "dropped 5 DROP FEATURE",
        "rows [(1, 'x'), (2, 'x'), (3, 'y')] 4",
        "at 4",
        "named 4",
    ]
    lines = done.stdout.splitlines()
    assert lines[: len(wanted)] == wanted, (done.stdout, done.stderr)
    refusals = "\n".join(lines[len(wanted) :])
    assert "False" not in refusals, refusals
    assert "not refused" not in refusals, refusals
    for text in (
        "no Delta table",
        "'table' is relative",
        "'file:table' is relative",
        "nonsense",
        "createOrReplace",
    ):
        assert text in refusals, (text, refusals)
    assert refusals.count("'table' is relative") >= 2, refusals
    assert "'2025-01-31 12:00:00' has no time zone" in refusals, refusals


@pytest.mark.newest
def test_tables_in_a_store(server: tuple[str, Path], s3: S3Server, logs: Path, tmp_path: Path) -> None:
    """The server has the credentials, and the client passes the location of the store. No secret is visible to the
    client or in logs.
    """
    uri = "s3a://tables/a t"
    options = s3.options()
    place = {name: options[name] for name in ("aws_endpoint_url", "aws_region", "aws_allow_http")}
    code = f"""
        from pyspark.sql import SparkSession
        import deltalog.spark
        from deltalog.tables import DeltaTable
        spark = deltalog.spark.enable(SparkSession.builder.remote({server[0]!r}).getOrCreate())
        place, uri = {place!r}, {uri!r}
        def outcome(call):
            try:
                return call()
            except Exception as error:
                return type(error).__name__ + ": " + str(error).replace("\\n", " ")
        def read(**options):
            return spark.read.format("deltalog").options(**place, **options).load(uri)
        def write(rows, mode, **options):
            rows.write.format("deltalog").mode(mode).options(**place, **options).save(uri)
        data = spark.range(100, numPartitions=1).selectExpr("id", "id % 2 AS p", "'old' AS s")
        write(data, "append", **{{"delta.enableDeletionVectors": "true", "delta.enableRowTracking": "true"}})
        write(data.where("id < 20"), "overwrite", baseVersion="0")
        print("rows", read().count(), read(versionAsOf="0").count())
        table = DeltaTable.forPath(spark, uri, place).alias("t")
        print("deleted", table.delete("id < 5").collect()[0].num_affected_rows)
        print("updated", table.update("id < 8", {{"s": "'new'"}}).collect()[0].num_affected_rows)
        source = spark.createDataFrame([(9, 1, "merged"), (200, 0, "added")], "id long, p long, s string")
        # The source reads the table through a different spelling of its URL.
        itself = spark.read.format("deltalog").options(**place).load(uri.replace("s3a:", "s3:")).where("id = 10")
        merge = table.merge(source.union(itself).alias("s"), "t.id = s.id").whenMatchedUpdateAll()
        print("merged", merge.whenNotMatchedInsertAll().execute().collect()[0].num_affected_rows)
        print("versions", [row.version for row in table.history().collect()], table.count("s = 'new'"))
        print("location", table.detail().collect()[0].location)
        failing = data.selectExpr("if(id = 99, raise_error('boom'), id) AS id", "p", "s")
        print("failing", outcome(lambda: write(failing.selectExpr("CAST(id AS LONG) AS id", "p", "s"), "append")))
        table.toDF().explain(True)
        print("bucket", outcome(lambda: DeltaTable.forPath(spark, "s3://nowhere/t", place)))
        def with_secret(name, value="refused-value"):
            return {{**place, name: value}}
        reader, writer = spark.read.format("deltalog"), data.write.format("deltalog").mode("append")
        key, setting = with_secret("aws_secret_access_key"), with_secret("fs.s3a.secret.key")
        proxy = with_secret("proxy_url", "http://user:refused-value@127.0.0.1")
        print("refused", outcome(lambda: reader.options(**key).load(uri).collect()))
        print("refused", outcome(lambda: writer.options(**setting).save(uri)))
        print("refused", outcome(lambda: DeltaTable.forPath(spark, uri, proxy)))
        print("misuse", outcome(lambda: DeltaTable.forPath(spark, uri, {{"mergeSchema": "true"}})))
    """
    done = run_client(code, tmp_path)
    assert done.returncode == 0, (done.stdout, done.stderr)
    found = [line.split(" ", 1) for line in done.stdout.splitlines() if " " in line]
    said = dict(found)
    assert said["rows"] == "20 100"
    assert (said["deleted"], said["updated"], said["merged"]) == ("5", "3", "3")
    assert said["versions"] == "[4, 3, 2, 1, 0] 3"
    assert said["location"] == "s3://tables/a%20t"
    assert "boom" in said["failing"]
    assert "NoSuchBucket" in said["bucket"]
    assert "mergeschema is not an option" in said["misuse"]
    refusals = [text for name, text in found if name == "refused"]
    for text, name in zip(refusals, ["aws_secret_access_key", "fs.s3a.secret.key", "proxy_url"], strict=True):
        assert f"secrets ({name}) are refused" in text, text
        assert "refused-value" not in text
    table = deltalog.DeltaTable(uri, storage_options=options)
    rows = pa.table(table.to_arrow()).sort_by("id").to_pydict()
    assert rows["id"] == [*range(5, 20), 200]
    assert rows["s"][:6] == ["new", "new", "new", "old", "merged", "old"]
    # The failed job has left no files behind.
    versions = [deltalog.DeltaTable(uri, version, storage_options=options) for version in range(5)]
    assert {key.rpartition("/")[2] for key in s3.keys("tables") if key.endswith(".parquet")} == {
        file.rpartition("/")[2] for version in versions for file in version.file_uris()
    }
    seen = done.stdout + done.stderr
    seen += "".join(file.read_text(errors="replace") for file in logs.rglob("*") if file.is_file())
    assert "aws_endpoint_url" in seen  # The event log contains the plans.
    seen += "".join(s3.get("tables", key).decode("latin-1") for key in s3.keys("tables"))
    for form in (CANARY, quote(CANARY, safe=""), base64.b64encode(CANARY.encode()).decode(), CANARY[7:]):
        assert form not in seen


@pytest.mark.newest
@pytest.mark.thorough
def test_maintenance_of_tables_in_a_store(server: tuple[str, Path], s3: S3Server, tmp_path: Path) -> None:
    """Methods that maintain, clone and convert tables run in the server."""
    options = s3.options()
    place = {name: options[name] for name in ("aws_endpoint_url", "aws_region", "aws_allow_http")}
    uri, plain, local = "s3a://tables/kept up", tmp_path / "plain files", str(tmp_path / "a copy")
    for number in range(4):
        table = pa.table({"id": range(number * 10, number * 10 + 10), "p": ["é"] * 10})
        configuration = {"delta.enableDeletionVectors": "true"}
        deltalog.write_deltalake(
            uri,
            table,
            mode="append",
            configuration=configuration,
            storage_options=options,
            partition_by=["p"],
        )
        day = plain / f"day=2024-02-0{number + 1}"
        day.mkdir(parents=True)
        pq.write_table(table.select(["id"]), day / "part.parquet")
    code = f"""
        from pyspark.sql import SparkSession
        import deltalog.spark
        from deltalog.tables import DeltaTable
        spark = deltalog.spark.enable(SparkSession.builder.remote({server[0]!r}).getOrCreate())
        place, uri, plain, local = {place!r}, {uri!r}, {str(plain)!r}, {local!r}
        table = DeltaTable.forPath(spark, uri, place)
        def outcome(call):
            try:
                return call()
            except Exception as error:
                return type(error).__name__ + ": " + str(error).replace("\\n", " ")
        def files(metrics):
            return metrics.numFilesRemoved, metrics.numFilesAdded
        print("optimized", *files(table.optimize().executeCompaction().collect()[0].metrics))
        table.delete("id % 10 = 3")
        print("ordered", *files(table.optimize().executeZOrderBy("id").collect()[0].metrics))
        print("restored", table.restoreToVersion(3).collect()[0].num_restored_files, table.count())
        table.restoreToVersion(5)
        print("problems", table.check("rows").count(), table.repair().count())
        print("described", table.recomputeStatistics(allFiles=True).collect()[0][0])
        spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
        table.vacuum(0)
        print("after", table.count(), [row.operation for row in table.history(2).collect()])
        deep = table.clone(uri + " deep", properties={{"mine": "x"}})
        print("deep", deep.count(), deep.detail().collect()[0].properties["mine"], deep.check("rows").count())
        print("twice", outcome(lambda: table.clone(uri + " deep")))
        deep.delete("id < 20")
        print("again", table.clone(uri + " deep", replace=True).count(), deep.history(1).collect()[0].version)
        print("local", table.clone(local).count(), outcome(lambda: table.clone("a_name")))
        old = table.cloneAtVersion(5, uri + " low", isShallow=True)
        print("low", old.count(), old.check("rows").count(), len(old.toDF().collect()))
        print("then", outcome(lambda: table.cloneAtTimestamp("2001-01-01 00:00:00", uri + " old")))
        spark.conf.set("spark.sql.ansi.enabled", "false")
        print("nonsense", outcome(lambda: table.cloneAtTimestamp("nonsense", uri + " old")))
        print("properties", outcome(lambda: table.clone(uri + " old", properties={{"mine": 1}})))
        print("plain", outcome(lambda: DeltaTable.forPath(spark, plain)))
        made = DeltaTable.convertToDelta(spark, f"parquet.`{{plain}}`", "day DATE")
        print("made", made.count("day = DATE '2024-02-02'"), made.detail().collect()[0].partitionColumns)
        same = DeltaTable.convertToDelta(spark, f"parquet.`{{plain}}`", "day DATE")
        print("same", same.history().count())
        print("manifest", outcome(lambda: table.generate("symlink_format_manifest")))
        made.generate("symlink_format_manifest")
    """
    done = run_client(code, tmp_path)
    assert done.returncode == 0, (done.stdout, done.stderr)
    said = dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)
    assert said["optimized"] == "4 1"
    assert said["ordered"] == "1 1"
    assert said["restored"] == "4 40"
    assert said["described"] == "1"
    assert said["problems"] == "0 0"
    assert said["after"] == "36 ['VACUUM END', 'VACUUM START']"
    assert said["deep"] == "36 x 0"
    assert "TableAlreadyExistsError" in said["twice"]
    assert said["again"] == "36 2"
    assert said["local"].startswith("36 UnsupportedFeatureError")
    assert said["low"] == "36 0 36"
    assert "2001" in said["then"]
    assert said["nonsense"] == "InvalidArgumentError: 'nonsense' is not a time"
    assert "JSON object of texts" in said["properties"]
    assert "NotATableError" in said["plain"]
    assert said["made"] == "10 ['day']"
    assert said["same"] == "1"
    assert "vectors" in said["manifest"]
    assert len(list(plain.rglob("day=*/manifest"))) == 4
    copy = deltalog.DeltaTable(f"{uri} deep", storage_options=options)
    assert sorted(copy.to_pyarrow_table()["id"].to_pylist()) == [i for i in range(40) if i % 10 != 3]


@pytest.mark.newest
@pytest.mark.thorough
def test_a_table_in_hdfs(server: tuple[str, Path], hdfs: MiniHdfs, tmp_path: Path) -> None:
    """A table in HDFS is read and written with options instead of Hadoop's configuration files. Here an option names
    the user.
    """
    uri = f"{hdfs.root}/connect/a table"
    code = f"""
        from pyspark.sql import SparkSession
        import deltalog.spark
        from deltalog.tables import DeltaTable
        spark = deltalog.spark.enable(SparkSession.builder.remote({server[0]!r}).getOrCreate())
        uri, user = {uri!r}, {{"hdfs_user": {getpass.getuser()!r}}}
        spark.range(9, numPartitions=1).write.format("deltalog").mode("append").options(**user).save(uri)
        DeltaTable.forPath(spark, uri, user).delete("id > 2")
        print(sorted(row.id for row in spark.read.format("deltalog").options(**user).load(uri).collect()))
    """
    done = run_client(code, tmp_path)
    assert done.stdout.splitlines() == ["[0, 1, 2]"], (done.stdout, done.stderr)
    assert deltalog.DeltaTable(uri).version() == 1


@pytest.mark.thorough
def test_streams_through_the_server(server: tuple[str, Path], tmp_path: Path) -> None:
    """Streams run in the server. One of them merges each batch with `DeltaTable`, in a Python process of the server
    that has a Connect session.
    """
    address, _ = server
    for id_ in (1, 2):
        deltalog.write_deltalake(tmp_path / "source", pa.table({"id": [id_]}), mode="append")
    deltalog.write_deltalake(tmp_path / "merged", pa.table({"id": [1], "count": [10]}))
    code = f"""
        from pyspark.sql import SparkSession
        from pyspark.sql import functions as sf
        spark = SparkSession.builder.remote({address!r}).getOrCreate()
        import deltalog.spark
        deltalog.spark.enable(spark)
        root = {str(tmp_path)!r}

        def writer(checkpoint):
            rows = spark.readStream.format("deltalog").load(f"{{root}}/source")
            started = rows.writeStream.trigger(availableNow=True)
            return started.option("checkpointLocation", f"{{root}}/{{checkpoint}}")

        def merge(batch, number):
            from deltalog.tables import DeltaTable
            rows = batch.groupBy("id").count().alias("s")
            table = DeltaTable.forPath(batch.sparkSession, f"{{root}}/merged").alias("t")
            update = table.merge(rows, "t.id = s.id").whenMatchedUpdate(set={{"count": "t.count + s.count"}})
            update.whenNotMatchedInsertAll().execute()

        writer("copies").format("deltalog").start(f"{{root}}/copy").awaitTermination()
        started(writer("merges").foreachBatch(merge)).awaitTermination()
        query = writer("refused").format("deltalog").option("txnAppId", "x").start(f"{{root}}/wrong")
        try:
            query.awaitTermination()
        except Exception as error:
            print("error", "the option txnAppId does not apply to streams" in str(error))
    """
    done = run_client(STARTED + textwrap.dedent(code), tmp_path)
    assert done.stdout.split() == ["error", "True"], done.stdout + done.stderr
    copied = pa.table(deltalog.DeltaTable(tmp_path / "copy").to_arrow())["id"].to_pylist()
    merged = pa.table(deltalog.DeltaTable(tmp_path / "merged").to_arrow()).to_pylist()
    assert sorted(copied) == [1, 2]
    assert sorted((row["id"], row["count"]) for row in merged) == [(1, 11), (2, 1)]
    assert not (tmp_path / "wrong").exists()
