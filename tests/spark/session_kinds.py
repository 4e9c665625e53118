"""Runs statements in sessions of every kind, each on its own table, and writes the outcomes to a file.

This program runs in a separate process, because some kinds of sessions can only be created before `enable` is called,
or after the first Spark context has stopped.

    python -m tests.spark.session_kinds DIRECTORY PORT

The outcomes are written to DIRECTORY/outcomes.json. PORT is for a Spark Connect server.
"""

import json
import shutil
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import deltalog
import deltalog.spark

KINDS = (
    "enabled",
    "new",
    "clone",
    "untouched before",
    "used before",
    "used and enabled",
    "of other extensions",
    "without us",
    "connect",
    "batch",
    "second context",
)

ROWS = "SELECT 9 AS id, 'new' AS p"


class Statement:
    """The session in which a statement runs, and its table, which is a managed table in Spark's warehouse."""

    def __init__(self, session: Any, name: str, path: Path) -> None:
        self.session = session
        self.name = name
        self.path = path

    def sql(self, text: str) -> list[Any]:
        """Executes SQL, with `{t}` and `{p}` replaced by the table's name and path."""
        return list(self.session.sql(text.format(t=self.name, p=self.path)).collect())

    def writer(self, mode: str, source: str | None = None) -> Any:
        writer = self.session.sql(ROWS).write.mode(mode)
        return writer if source is None else writer.format(source)

    def rows(self) -> Any:
        return self.session.sql(ROWS)

    def stream(self) -> Any:
        """Returns the writer of a stream of one batch."""
        files = str(self.path.parent.parent / "files of streams")
        self.rows().write.mode("overwrite").parquet(files)
        stream = self.session.readStream.schema("id INT, p STRING").parquet(files)
        writer = stream.writeStream.format("deltalog").trigger(availableNow=True)
        return writer.option(
            "checkpointLocation", str(self.path.parent.parent / f"checkpoint of {self.name}")
        )


def in_sql(text: str) -> Callable[[Statement], Any]:
    return lambda run: run.sql(text)


# Statements that work in every fully configured session.
WORKS: dict[str, Callable[[Statement], Any]] = {
    "saveAsTable, overwrite": lambda run: run.writer("overwrite", "deltalog").saveAsTable(run.name),
    "saveAsTable, append": lambda run: run.writer("append", "deltalog").saveAsTable(run.name),
    "saveAsTable, new": lambda run: run.writer("error", "deltalog").saveAsTable(f"{run.name}_new"),
    "save": lambda run: run.writer("overwrite", "deltalog").save(str(run.path)),
    "createOrReplace": lambda run: run.rows().writeTo(run.name).using("deltalog").createOrReplace(),
    "CREATE OR REPLACE AS": in_sql(f"CREATE OR REPLACE TABLE {{t}} USING deltalog AS {ROWS}"),
    "CREATE OR REPLACE": in_sql("CREATE OR REPLACE TABLE {t} (id INT, p STRING) USING deltalog"),
    "CREATE": in_sql("CREATE TABLE {t}_new (id INT) USING deltalog"),
    "CREATE AS": in_sql(f"CREATE TABLE {{t}}_new USING deltalog AS {ROWS}"),
    "ADD COLUMN": in_sql("ALTER TABLE {t} ADD COLUMN n INT"),
    "COMMENT ON": in_sql("COMMENT ON TABLE {t} IS 'c'"),
    "INSERT": in_sql(f"INSERT INTO {{t}} {ROWS}"),
    "INSERT OVERWRITE": in_sql(f"INSERT OVERWRITE TABLE {{t}} {ROWS}"),
    "DELETE": in_sql("DELETE FROM {t} WHERE id = 1"),
    "UPDATE": in_sql("UPDATE {t} SET p = 'u' WHERE id = 1"),
    "MERGE": in_sql("MERGE INTO {t} USING (SELECT 1 AS k) ON id = k WHEN MATCHED THEN UPDATE SET p = 'm'"),
    "TRUNCATE": in_sql("TRUNCATE TABLE {t}"),
    "DELETE, by path": in_sql("DELETE FROM deltalog.`{p}` WHERE id = 1"),
    "stream, toTable": lambda run: run.stream().toTable(run.name).awaitTermination(),
    "stream, by path": lambda run: run.stream().start(str(run.path)).awaitTermination(),
    "SELECT": in_sql("SELECT * FROM {t}"),
    "SELECT, by path": in_sql("SELECT * FROM deltalog.`{p}`"),
    "DESCRIBE HISTORY": in_sql("DESCRIBE HISTORY {t}"),
    "OPTIMIZE": in_sql("OPTIMIZE {t}"),
}

# Statements that change nothing, such as an OPTIMIZE that finds no files to join.
READS = {"SELECT", "SELECT, by path", "DESCRIBE HISTORY", "OPTIMIZE"}

# Statements that every session must refuse.
REFUSED: dict[str, Callable[[Statement], Any]] = {
    "saveAsTable, overwrite, no format": lambda run: run.writer("overwrite").saveAsTable(run.name),
    "saveAsTable, append, no format": lambda run: run.writer("append").saveAsTable(run.name),
    "saveAsTable, overwrite, ORC": lambda run: run.writer("overwrite", "orc").saveAsTable(run.name),
    "save, overwrite, Parquet": lambda run: run.writer("overwrite", "parquet").save(str(run.path)),
    "save, append, CSV": lambda run: run.writer("append", "csv").save(str(run.path)),
    "save, overwrite, below the table": lambda run: run.writer("overwrite", "parquet").save(
        f"{run.path}/p=a"
    ),
    "save, overwrite, the log": lambda run: run.writer("overwrite", "json").save(f"{run.path}/_delta_log"),
    "external table over it": lambda run: (
        run.writer("overwrite", "parquet").option("path", str(run.path)).saveAsTable(f"{run.name}_other")
    ),
    "INSERT OVERWRITE DIRECTORY": in_sql(f"INSERT OVERWRITE DIRECTORY '{{p}}' USING parquet {ROWS}"),
    "CREATE OR REPLACE AS, Parquet": in_sql(f"CREATE OR REPLACE TABLE {{t}} USING parquet AS {ROWS}"),
    "LOAD DATA": in_sql("LOAD DATA LOCAL INPATH '{p}' INTO TABLE {t}"),
    "SET LOCATION": in_sql("ALTER TABLE {t} SET LOCATION '/tmp'"),
    "SET SERDE": in_sql("ALTER TABLE {t} SET SERDE 'a.b'"),
    "ADD PARTITION": in_sql("ALTER TABLE {t} ADD PARTITION (p = 'c')"),
    "MSCK REPAIR": in_sql("MSCK REPAIR TABLE {t}"),
}


class Warehouse:
    """Spark's warehouse, into which a table is copied for each statement."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory / "warehouse"
        self.template = directory / "template"
        table = str(self.template)
        rows = pyarrow.table({"id": pyarrow.array([1, 2], "int32"), "p": ["a", "b"]})
        deltalog.write_deltalake(table, rows, partition_by=["p"])
        self.count = 0

    def table(self, kind: str) -> tuple[str, Path]:
        """Copies the table, and returns the name and the path of the copy."""
        self.count += 1
        name = f"{kind.replace(' ', '_')}_{self.count}"
        path = self.directory / name
        shutil.copytree(self.template, path)
        return name, path


def contents(path: Path) -> dict[str, bytes]:
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}


def outcome(
    owner: SparkSession, warehouse: Warehouse, kind: str, session: Any, statement: str
) -> dict[str, Any]:
    """Executes a statement, and returns a description of its result and of the table."""
    name, path = warehouse.table(kind)
    before = contents(path)
    error = None
    try:
        owner.sql(f"CREATE TABLE {name} USING deltalog")
        {**WORKS, **REFUSED}[statement](Statement(session, name, path))
    except (PySparkException, Py4JError, deltalog.DeltaError) as problem:
        error = f"{type(problem).__name__}: {problem}"
    after = contents(path)
    new = warehouse.directory / f"{name}_new"
    entries = {row.tableName for row in owner.sql(f"SHOW TABLES LIKE '{name}*'").collect()}
    return {
        "error": error,
        "lost": sorted(file for file in before if after.get(file) != before[file]),
        "added": sorted(set(after) - set(before)),
        "entry": name in entries,
        "entries without a log": sorted(
            other
            for other in entries - {name}
            if not (warehouse.directory / other / "_delta_log" / "00000000000000000000.json").exists()
        ),
        "has created": (new / "_delta_log").exists(),
    }


def all_outcomes(owner: SparkSession, warehouse: Warehouse, kind: str, session: Any) -> dict[str, Any]:
    return {
        statement: outcome(owner, warehouse, kind, session, statement) for statement in {**WORKS, **REFUSED}
    }


def started(directory: Path, port: int | None = None) -> SparkSession:
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.shuffle.partitions", "1").config(
        "spark.ui.showConsoleProgress", "false"
    )
    builder = builder.config("spark.sql.warehouse.dir", str(directory / "warehouse"))
    if port is not None:
        builder = builder.config("spark.plugins", "org.apache.spark.sql.connect.SparkConnectPlugin")
        builder = builder.config("spark.connect.grpc.binding.address", "127.0.0.1")
        builder = builder.config("spark.connect.grpc.binding.port", str(port))
    return builder.getOrCreate()


def with_other_extensions(spark: SparkSession) -> SparkSession:
    """Returns a session of the same context with different extensions, as `withExtensions` does in Scala."""
    jvm: Any = spark.sparkContext._jvm
    shared = jvm.scala.Option.apply(spark._jsparkSession.sharedState())
    extensions = jvm.org.apache.spark.sql.SparkSessionExtensions()
    none, empty = jvm.scala.Option.empty(), jvm.org.apache.spark.api.python.PythonUtils.toScalaMap({})
    context = spark.sparkContext._jsc.sc()
    made = jvm.org.apache.spark.sql.classic.SparkSession(context, shared, none, extensions, empty, empty)
    return SparkSession(spark.sparkContext, made)


def without_us(spark: SparkSession) -> SparkSession:
    """Returns a session that has neither deltalog's extensions nor its catalog."""
    session = with_other_extensions(spark)
    session.conf.unset("spark.sql.catalog.spark_catalog")
    return session


def in_a_batch(spark: SparkSession, directory: Path, run: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
    """Calls a function with the session that Spark passes to `foreachBatch` with a batch."""
    found: dict[str, Any] = {}
    spark.range(1).write.parquet(str(directory / "in"))
    stream = spark.readStream.schema("id long").parquet(str(directory / "in")).writeStream
    stream = stream.foreachBatch(lambda batch, _: found.update(run(batch.sparkSession)))
    started = (
        stream.trigger(availableNow=True).option("checkpointLocation", str(directory / "checkpoint")).start()
    )
    started.awaitTermination()
    return found


def main(directory: Path, port: int) -> dict[str, dict[str, Any]]:
    """Runs each statement in each kind of session, and writes the outcomes."""
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    warnings.simplefilter("ignore")
    warehouse = Warehouse(directory)
    spark = started(directory, port)
    spark.sparkContext.setLogLevel("OFF")
    untouched = spark.newSession()
    used = spark.newSession()
    used.range(1).collect()
    deltalog.spark.enable(spark)
    sessions = {
        "enabled": spark,
        "new": spark.newSession(),
        "clone": SparkSession(spark.sparkContext, spark._jsparkSession.cloneSession()),
        "untouched before": untouched,
        "used before": used,
        "of other extensions": with_other_extensions(spark),
        "without us": without_us(spark),
        "connect": ConnectSession(f"sc://127.0.0.1:{port}"),
    }
    found = {kind: all_outcomes(spark, warehouse, kind, session) for kind, session in sessions.items()}
    found["used and enabled"] = all_outcomes(spark, warehouse, "enabled late", deltalog.spark.enable(used))
    found["batch"] = in_a_batch(
        spark, directory, lambda session: all_outcomes(spark, warehouse, "batch", session)
    )
    spark.stop()
    second = started(directory)
    second.sparkContext.setLogLevel("OFF")
    found["second context"] = all_outcomes(second, warehouse, "second", second)
    return found


if __name__ == "__main__":
    working = Path(sys.argv[1])
    working.joinpath("outcomes.json").write_text(json.dumps(main(working, int(sys.argv[2]))))
