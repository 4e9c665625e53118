"""The operations that users perform in Spark on a table from an unknown writer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import deltalog.spark
from tests.hostile.place import Place

# Java reports these faults as exceptions of ordinary calls.
CRASHES = ("OutOfMemoryError", "StackOverflowError", "NoClassDefFoundError", "java.lang.InternalError")
EXPECTED = (PySparkException, Py4JJavaError)


def session(scratch: str) -> SparkSession:
    settings = {
        "spark.driver.memory": "1g",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.warehouse.dir": f"{scratch}/warehouse",
        "spark.ui.retainedJobs": "10",
        "spark.ui.retainedStages": "10",
        "spark.sql.ui.retainedExecutions": "10",
    }
    builder = SparkSession.builder.master("local[2]").appName("hostile tables")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = deltalog.spark.enable(builder.getOrCreate())
    spark.sparkContext.setLogLevel("OFF")
    return spark


def spark_verbs(spark: SparkSession) -> dict[str, Callable[[Place], Any]]:
    def sql(text: str) -> Callable[[Place], Any]:
        # The name is put in backticks, and may then be any string.
        return lambda place: spark.sql(text.replace("{t}", f"deltalog.`{place.table}`")).collect()

    def read(**options: str) -> Callable[[Place], Any]:
        reader = spark.read.format("deltalog").options(**options)
        return lambda place: reader.load(str(place.table)).limit(50).collect()

    def written(mode: str, **options: str) -> Callable[[Place], Any]:
        rows = spark.range(1_000, 1_005).selectExpr("id AS n", "id / 3.0D AS f", "'x' AS s", "'1' AS p")
        writer = rows.write.format("deltalog").mode(mode).options(**options)
        return lambda place: writer.save(str(place.table))

    return {
        "read": read(),
        "old": read(versionAsOf="1"),
        "changes": read(readChangeFeed="true", startingVersion="0"),
        "filter": sql("SELECT * FROM {t} WHERE n > 10 AND s IS NOT NULL LIMIT 50"),
        "sum": sql("SELECT p, count(*), sum(n), max(f) FROM {t} GROUP BY p"),
        "count": sql("SELECT count(*) FROM {t}"),
        "history": sql("DESCRIBE HISTORY {t}"),
        "detail": sql("DESCRIBE DETAIL {t}"),
        "describe": sql("DESCRIBE TABLE EXTENDED {t}"),
        "append": written("append"),
        "append with schema": written("append", mergeSchema="true"),
        "overwrite": written("overwrite"),
        "replace where": written("overwrite", replaceWhere="n >= 1000"),
        "insert": sql("INSERT INTO {t} (n, s) VALUES (1, 'a'), (2, NULL)"),
        "delete": sql("DELETE FROM {t} WHERE n % 2 = 0"),
        "delete all": sql("DELETE FROM {t}"),
        "update": sql("UPDATE {t} SET n = n + 1 WHERE n < 50"),
        "merge": sql(
            "MERGE INTO {t} t USING (SELECT id AS n FROM range(10, 30)) s ON t.n = s.n "
            "WHEN MATCHED THEN UPDATE SET f = 1.0D WHEN NOT MATCHED THEN INSERT (n) VALUES (s.n)"
        ),
        "optimize": sql("OPTIMIZE {t}"),
        "z-order": sql("OPTIMIZE {t} ZORDER BY (n)"),
        "vacuum": sql("VACUUM {t}"),
        "restore": sql("RESTORE TABLE {t} TO VERSION AS OF 0"),
        "properties": sql("ALTER TABLE {t} SET TBLPROPERTIES ('delta.appendOnly' = 'false')"),
        "columns": sql("ALTER TABLE {t} ADD COLUMNS (added BIGINT)"),
        "constraint": sql("ALTER TABLE {t} ADD CONSTRAINT small CHECK (n < 1000000)"),
        "clone": lambda place: sql(f"CREATE OR REPLACE TABLE deltalog.`{place.copy}` DEEP CLONE {{t}}")(
            place
        ),
        "shallow clone": lambda place: sql(
            f"CREATE OR REPLACE TABLE deltalog.`{place.copy}` SHALLOW CLONE {{t}}"
        )(place),
    }
