"""deltalog's Java classes in the JVM of a session: where they are visible, and what happens if they cannot be
loaded.
"""

import json
import re
import zipfile
from pathlib import Path

import deltalake
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from benches.tables import vectors
from deltalog.spark.jvm import Jvm
from scripts import spark_jars
from tests.spark.jar_copies import BUILD, MARKER, SYMBOLS, changed, of_this_spark, release, text
from tests.spark.processes import run_python


@pytest.fixture
def vector_table(tmp_path: Path) -> str:
    """Creates a table with the rows 0 to 9. Row 3 is deleted, so a scan needs deltalog's classes on the executors."""
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
@pytest.mark.thorough
def test_executors_receive_the_classes_after_add_jar_and_in_new_contexts(
    vector_table: str, tmp_path: Path
) -> None:
    """Executors receive the classes even after `ADD JAR`, which gives its thread another class loader, whose classes
    are hidden from other threads.
    """
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


@pytest.mark.newest
def test_the_jar_is_that_of_all_sessions() -> None:
    """deltalog's jar is added for all sessions, even while the session of a Connect client is active. Otherwise, Spark
    might add the jar for this session only.
    """
    done = run_python(
        """
        from pyspark.sql import SparkSession
        import deltalog.spark

        builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
        deltalog.spark.enable(builder.getOrCreate()).stop()
        spark = builder.getOrCreate()
        jvm = spark.sparkContext._jvm
        sets = getattr(jvm.java.lang.Class.forName("org.apache.spark.JobArtifactSet$"), "getField")("MODULE$").get(None)
        state = sets.getClass().getDeclaredField("currentClientSessionState")
        state.setAccessible(True)
        client = jvm.org.apache.spark.JobArtifactState("a client", jvm.scala.Option.empty())
        state.get(None).set(jvm.scala.Option.apply(client))
        spark.sql("SELECT 1").collect()
        jars = spark.sparkContext._jsc.sc().addedJars()
        print("deltalog-spark" in str(jars.apply("default")), jars.contains("a client"))
        """
    )
    assert done.stdout.splitlines() == ["True False"], done.stderr


def test_executors_receive_a_copy(spark: SparkSession) -> None:
    """Executors receive a copy of the jar. Those that start after the wheel was replaced need the same classes as the
    driver.
    """
    jars = spark._jsc.sc().listJars()
    [given] = {name for name in map(jars.apply, range(jars.size())) if "deltalog-spark" in name}
    assert re.search(rf"/deltalog-spark-{re.escape(release())}-\d+\.jar$", given)


def test_settings_can_name_the_classes(spark: SparkSession) -> None:
    """Settings of Spark can name deltalog's classes, because the name of the Java package is the same in all
    versions.
    """
    strategy = spark._jsparkSession.sessionState().planner().strategies().head()
    assert strategy.getClass().getName() == "io.deltalog.spark.DeltalogStrategy"
    assert spark.conf.get("spark.sql.catalog.spark_catalog") == "io.deltalog.spark.DeltalogCatalog"


@pytest.mark.newest
@pytest.mark.parametrize("version", [None, "0.0.1 (other sources)"])
def test_a_given_jar_is_used_if_it_has_the_same_version(tmp_path: Path, version: str | None) -> None:
    given = changed(tmp_path, "given.jar", **({} if version is None else {"MARKER": version}))
    done = run_python(
        f"""
        from pyspark.sql import SparkSession
        import deltalog.spark
        builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
        spark = builder.config("spark.jars", {str(given)!r}).getOrCreate()
        try:
            deltalog.spark.enable(spark)
            jars = spark.sparkContext._jsc.sc().listJars()
            print(jars.size(), jars.apply(0).endswith("/given.jar"))
        except deltalog.DeltaError as error:
            print(type(error).__name__, str(error))
        """
    )
    if version is None:
        assert done.stdout.splitlines() == ["1 True"], done.stderr
    else:
        assert "UnsupportedFeatureError the JVM of this session has" in done.stdout, done.stderr
        assert f"deltalog {version}, but Python has deltalog {text(MARKER)}: restart the JVM" in done.stdout


def test_a_jar_for_another_build_of_spark_is_checked(spark: SparkSession, tmp_path: Path) -> None:
    """If the jar was compiled for a different build of Spark, every symbol to which its classes refer is checked: it
    must exist with the same types.
    """
    classes = Jvm(spark.sparkContext._gateway).classes

    def missing(build: str, symbols: str = "") -> str:
        jar = changed(tmp_path, "checked.jar", BUILD=build, SYMBOLS=f"{symbols}{text(SYMBOLS)}")
        return str(classes.missing(str(jar))).removeprefix("read: ")

    assert missing(text(BUILD), "class org.apache.spark.Gone\n") == ""
    assert missing("another") == ""
    for symbols, wanted in {
        "class org.apache.spark.Gone\nmethod f ()V\n": "org.apache.spark.Gone",
        "interface java.lang.String\n": "the interface java.lang.String",
        "class java.lang.Runnable\n": "the class java.lang.Runnable",
        "type java.lang.String\nmethod length ()J\n": "java.lang.String.length()J",
        "class java.lang.String\nfield value I\n": "java.lang.String.value",
        "class java.util.ArrayList\nmethod <init> (J)V\n": "java.util.ArrayList.<init>(J)V",
    }.items():
        assert missing("another", symbols) == wanted
    kept = "class java.util.ArrayList\nfield modCount I\nmethod toString ()Ljava/lang/String;\n"
    assert missing("another", f"{kept}interface java.util.List\nmethod hashCode ()I\n") == ""
    many = "".join(f"class gone.C{number}\n" for number in range(5))
    assert missing("another", many) == "gone.C0, gone.C1, gone.C2 and 2 more"


def test_classes_that_leave_methods_open_do_not_fit(spark: SparkSession, tmp_path: Path) -> None:
    """A Spark release may add an abstract method to an interface. Classes of ours that do not implement it do not fit
    this release.
    """
    jvm = Jvm(spark.sparkContext._gateway)
    compiler = jvm.root.org.codehaus.janino.SimpleCompiler()
    compiler.cook("package theirs; public abstract class Half implements Runnable {}")
    half = bytearray(bytes(compiler.getBytecodes()["theirs.Half"]))
    # The access flags of a class follow its constants. This removes the flag for abstract classes.
    flags = half.rindex(b"\x04\x21")
    half[flags : flags + 2] = b"\x00\x21"
    jar = changed(tmp_path, "half.jar", BUILD="another")
    with zipfile.ZipFile(jar, "a") as archive:
        archive.writestr("theirs/Half.class", bytes(half))
    wanted = "read: an implementation of public abstract void java.lang.Runnable.run() in theirs.Half"
    assert str(jvm.classes.missing(str(jar))) == wanted


@pytest.mark.oldest
def test_the_jar_is_what_the_sources_give(tmp_path: Path) -> None:
    """Compiling the sources again with the same PySpark and JDK gives exactly the bytes of the jar."""
    # The test compares booleans, because pytest would take minutes to show how two jars differ.
    is_same = spark_jars.build(release(), tmp_path).read_bytes() == of_this_spark().read_bytes()
    assert is_same


USE = """
    import warnings
    from pathlib import Path
    from pyspark.sql import SparkSession
    import deltalog.spark
    from deltalog.spark.jvm import jars
    jars._DIRECTORY = Path({directory!r})
    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            deltalog.spark.enable(spark, alias_delta={alias})
            {then}
    for warning in caught:
        if issubclass(warning.category, RuntimeWarning):
            print("warned", warning.filename, warning.message)
    spark.range(3).write.format("deltalog").mode("append").save({path!r})
    for name in {names}:
        print("rows", sorted(row.id for row in spark.read.format(name).load({path!r}).collect()))
    catalog = spark.conf.get("spark.sql.catalog.spark_catalog", "builtin")
    print("native", catalog == "io.deltalog.spark.DeltalogCatalog")
"""


def use(directory: Path, path: str, alias: bool, then: str = "pass") -> list[str]:
    """Runs a process that uses the jars in a directory and executes a statement after `enable`. Returns its output."""
    names = ("deltalog", "delta") if alias else ("deltalog",)
    done = run_python(USE.format(directory=str(directory), path=path, alias=alias, names=names, then=then))
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.newest
def test_the_newest_jar_is_used_if_it_fits(path: str, tmp_path: Path) -> None:
    """The jar for the newest Spark is used if it fits a release without its own jar. It is read only once, because the
    wheel may be replaced while the JVM runs.
    """
    jar = changed(tmp_path / "jars", "deltalog-spark-3.9.jar", BUILD="another")
    found = use(jar.parent, path, alias=True, then=f"Path({str(jar)!r}).unlink(missing_ok=True)")
    assert found == ["rows [0, 1, 2]", "rows [0, 1, 2]", "native True"]


@pytest.mark.newest
@pytest.mark.thorough
def test_the_portable_source_is_used_if_no_jar_fits(path: str, tmp_path: Path) -> None:
    symbols = f"class org.apache.spark.Gone\n{text(SYMBOLS)}"
    changed(tmp_path / "jars", f"deltalog-spark-{release()}.jar", BUILD="another", SYMBOLS=symbols)
    changed(tmp_path / "jars", "deltalog-spark-9.9.jar", BUILD="another", SYMBOLS="class org.Newer\n")
    *warned, rows, of_alias, native = use(tmp_path / "jars", path, alias=True)
    assert len(warned) == 2, "one for each call"
    assert "warned <string> deltalog cannot use the native path of Spark" in warned[0]
    assert "(missing: org.apache.spark.Gone)" in warned[0]
    assert (rows, of_alias, native) == ("rows [0, 1, 2]", "rows [0, 1, 2]", "native False")
    assert len(deltalake.DeltaTable(path).to_pyarrow_table()) == 3


@pytest.mark.newest
@pytest.mark.thorough
def test_the_portable_source_is_used_without_any_jar(path: str, tmp_path: Path) -> None:
    *warned, rows, native = use(tmp_path, path, alias=False)
    assert "lacks its Java classes" in warned[0]
    assert "`make wheel`" in warned[0]
    assert (rows, native) == ("rows [0, 1, 2]", "native False")
