"""The Java classes of this package in the JVM of a session: their visibility, and failures to load them."""

import json
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import deltalog.spark
from benches.tables import vectors
from deltalog.spark.errors import DeltaError
from deltalog.spark.jvm import compile as classes
from tests.spark.processes import run_python


@pytest.fixture
def vector_table(tmp_path: Path) -> str:
    """A table with the rows 0 to 9, of which 3 is deleted. A scan needs our classes on the executors."""
    table = tmp_path / "vectors"
    (table / "_delta_log").mkdir(parents=True)
    pq.write_table(pa.table({"n": pa.array(range(10), pa.int64())}), table / "part.parquet")
    [descriptor] = vectors.write(table, [np.array([3])])
    field = {"name": "n", "type": "long", "nullable": True, "metadata": {}}
    features = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
    metadata = {"id": "t", "format": {"provider": "parquet"}, "partitionColumns": [], "configuration": {}}
    add = {"path": "part.parquet", "partitionValues": {}, "modificationTime": 0, "dataChange": True}
    actions = [
        {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}},
        {"metaData": {**metadata, "schemaString": json.dumps({"type": "struct", "fields": [field]})}},
        {"add": {**add, "size": (table / "part.parquet").stat().st_size, "deletionVector": descriptor}},
    ]
    (table / "_delta_log" / f"{0:020}.json").write_text("\n".join(map(json.dumps, actions)))
    return str(table)


@pytest.mark.slow
def test_executors_receive_the_classes_after_add_jar_and_in_new_contexts(
    vector_table: str, tmp_path: Path
) -> None:
    """`ADD JAR` gives its thread another class loader, whose classes are hidden from other threads."""
    with zipfile.ZipFile(tmp_path / "theirs.jar", "w") as jar:
        jar.writestr("theirs.txt", "")
    done = run_python(
        f"""
        import threading
        from pyspark.sql import SparkSession
        import deltalog.spark

        def context():
            builder = SparkSession.builder.master("local-cluster[2,1,1024]").config("spark.ui.enabled", "false")
            return builder.config("spark.executor.memory", "512m").getOrCreate()

        def read(spark):
            try:
                print("rows", sorted(row.n for row in spark.read.format("deltalog").load({vector_table!r}).collect()))
            except Exception as error:
                print(type(error).__name__, str(error)[:300])

        spark = context()
        spark.sql("ADD JAR '{tmp_path / "theirs.jar"}'")
        deltalog.spark.enable(spark)
        thread = threading.Thread(target=read, args=(spark,))
        thread.start()
        thread.join()
        read(spark)
        spark.stop()
        spark = context()
        deltalog.spark.enable(spark)
        deltalog.spark.enable(spark)
        read(spark)
        jars = spark.sparkContext._jsc.sc().listJars()
        print("jars", sum("deltalog-spark" in jars.apply(i) for i in range(jars.size())))
        """
    )
    rows = "rows [0, 1, 2, 4, 5, 6, 7, 8, 9]"
    assert done.stdout.splitlines() == [rows, rows, rows, "jars 1"], done.stderr


def test_the_java_package_contains_the_version(spark: SparkSession) -> None:
    """Classes of two versions are never confused, neither in the driver nor in messages to executors."""
    assert deltalog.__version__.replace(".", "_") in classes.PACKAGE
    strategy = spark._jsparkSession.sessionState().planner().strategies().head()
    assert strategy.getClass().getName() == f"{classes.PACKAGE}.DeltalogStrategy"


def test_classes_of_another_version_are_refused(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classes, "stamp", lambda: "0.0.1 (other sources)")
    with pytest.raises(DeltaError, match=r"0\.0\.1.*restart"):
        deltalog.spark.enable(spark.newSession())


@pytest.mark.newest
def test_unpinned_threads_are_refused() -> None:
    done = run_python(
        """
        from pyspark.sql import SparkSession
        import deltalog.spark
        spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
        try:
            deltalog.spark.enable(spark)
            print("enabled")
        except deltalog.DeltaError as error:
            print(type(error).__name__, "PYSPARK_PIN_THREAD" in str(error))
        """,
        PYSPARK_PIN_THREAD="false",
    )
    assert done.stdout.splitlines() == ["UnsupportedFeatureError True"], done.stderr


@pytest.mark.newest
@pytest.mark.thorough
def test_the_portable_source_is_used_if_the_sources_do_not_compile(path: str) -> None:
    """A Spark release may change the classes that the sources use in a way that the probe does not detect."""
    done = run_python(
        f"""
        import warnings
        from pyspark.sql import SparkSession
        import deltalog.spark
        from deltalog.spark.jvm import compile as classes
        sources = classes._sources
        broken = f"package {{classes.PACKAGE}};\\nclass Broken extends org.apache.spark.Gone {{{{}}}}"
        classes._sources = lambda: {{**sources(), "Broken.java": broken}}
        spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            deltalog.spark.enable(spark)
        print("warned", [w.category.__name__ for w in caught if "Broken.java" in str(w.message)])
        spark.range(3).write.format("deltalog").mode("append").save({path!r})
        print("rows", sorted(row.id for row in spark.read.format("deltalog").load({path!r}).collect()))
        """
    )
    assert done.stdout.splitlines() == ["warned ['RuntimeWarning']", "rows [0, 1, 2]"], done.stderr
