"""The cases of Spark."""

from __future__ import annotations

from benches import setups
from benches.case import Case, Limit, Ratio
from benches.contender import (
    JVM_PARQUET,
    SPARK_EXECUTORS,
    SPARK_JVM,
    SPARK_OURS,
    SPARK_PARQUET,
    START_JVM,
    START_OURS,
    START_PARQUET,
)
from benches.scales import DELETED_ROWS, LITTERED, MANY_FILES, MEBI, PLAIN, ROWS, SMALL_FILES
from benches.tables import Checkpointed, Data, Streamed

SPARK_CASES = (
    Case(
        name="spark-start",
        about="Spark: enable a session that has executed one statement; first and second SELECT and MERGE of a row",
        operation="start",
        setup=setups.with_target,
        tables={"small": Data(400_000)},
        contenders=(START_OURS, START_PARQUET, START_JVM),
        ratios=(
            Ratio("first SELECT", "ours", "parquet"),
            Ratio("second SELECT", "ours", "parquet"),
            Ratio("first MERGE of a row", "ours", "jvm"),
            Ratio("second MERGE of a row", "ours", "jvm"),
        ),
        limits=(Limit("enable", "ours", seconds=1.0),),
    ),
    Case(
        name="spark-scan",
        about="Spark: a filtered sum of one column; all 16 columns",
        operation="scan",
        setup=setups.table_alone,
        tables=ROWS,
        contenders=(SPARK_OURS, SPARK_PARQUET, SPARK_JVM, JVM_PARQUET),
        ratios=tuple(
            ratio
            for measure in ("filter + sum", "all columns")
            for ratio in (
                Ratio(measure, "ours", "parquet", time=1.05),
                Ratio(measure, "jvm", "parquet beside jvm"),
                Ratio(measure, "ours", "jvm"),
            )
        ),
        warm_up=2,
    ),
    Case(
        name="spark-scan-dv",
        about="Spark: the same queries with a deletion vector on every file (10 % deleted), and without",
        operation="scan_vectors",
        setup=setups.table_alone,
        tables=DELETED_ROWS,
        contenders=(SPARK_OURS, SPARK_PARQUET, SPARK_JVM),
        ratios=tuple(
            ratio
            for measure in ("filter + sum", "all columns")
            for ratio in (
                # In a table with deletion vectors, files without one must cost nothing extra.
                Ratio(f"{measure}, without vectors", "ours", "parquet", time=1.05),
                Ratio(
                    f"{measure}, with vectors", "jvm", "parquet", peer_measure=f"{measure}, without vectors"
                ),
                Ratio(
                    f"{measure}, with vectors",
                    "ours",
                    "ours",
                    time=1.25,
                    peer_measure=f"{measure}, without vectors",
                ),
                Ratio(f"{measure}, with vectors", "jvm", "jvm", peer_measure=f"{measure}, without vectors"),
                Ratio(f"{measure}, with vectors", "ours", "jvm", time=0.4),
            )
        ),
        warm_up=2,
    ),
    Case(
        name="spark-write",
        about="Spark: write the 16 columns as a new table",
        operation="write",
        setup=setups.with_target,
        tables=ROWS,
        contenders=(SPARK_OURS, SPARK_PARQUET, SPARK_JVM, JVM_PARQUET),
        ratios=(
            Ratio("write", "ours", "parquet", time=1.10),
            Ratio("write", "jvm", "parquet beside jvm"),
            Ratio("write", "ours", "jvm"),
        ),
        warm_up=1,
    ),
    Case(
        name="spark-statements",
        about="Spark: DELETE of 10 %, UPDATE of 1 %, MERGEs of 11,340 and 500,000 keys; with vectors and by rewriting",
        operation="statements",
        setup=setups.copied_with_target,
        tables=ROWS,
        contenders=(SPARK_OURS, SPARK_PARQUET, SPARK_JVM),
        ratios=(
            Ratio("delete", "ours", "jvm", time=0.15),
            Ratio("delete", "ours", "parquet"),
            Ratio("delete, rewrite", "ours", "jvm", time=0.8),
            Ratio("update", "ours", "jvm", time=0.35),
            Ratio("update", "ours", "parquet", time=1.1),
            Ratio("update, rewrite", "ours", "jvm", time=0.8),
            Ratio("merge", "ours", "jvm", time=0.2),
            Ratio("merge", "ours", "parquet"),
            Ratio("merge, rewrite", "ours", "jvm", time=0.7),
            Ratio("merge, insert only", "ours", "jvm", time=0.15),
            Ratio("merge, delete only", "ours", "jvm", time=0.15),
            Ratio("merge, delete only", "ours", "parquet"),
            Ratio("merge, half of the rows", "ours", "jvm", time=0.8),
            Ratio("merge, half of the rows, rewrite", "ours", "jvm", time=0.8),
        ),
        warm_up=1,
    ),
    Case(
        name="spark-wide-merge",
        about="Spark: MERGE of three rows with 150, 750 and 1,500 columns that are made from one expression",
        operation="wide_merge",
        setup=setups.with_target,
        tables=PLAIN,
        contenders=(SPARK_OURS, SPARK_JVM),
        ratios=tuple(Ratio(f"{width} columns", "ours", "jvm") for width in (150, 750, 1500)),
        warm_up=1,
    ),
    Case(
        name="spark-stream",
        about="Spark: streams from table to table, of 500,000 rows in each batch and of ten; each in a new JVM",
        operation="stream",
        setup=setups.with_target,
        tables={"small": Streamed(20, 3, 20_000), "full": Streamed(100, 8, 500_000)},
        contenders=(START_OURS, START_JVM),
        ratios=(
            Ratio("first batch of a session", "ours", "jvm", time=0.4),
            Ratio("large batch", "ours", "jvm", time=0.35),
            Ratio("tiny batch", "ours", "jvm", time=0.2),
        ),
    ),
    Case(
        name="spark-vacuum",
        about="Spark: the same, by VACUUM ... DRY RUN and VACUUM",
        operation="vacuum",
        setup=setups.littered,
        tables=LITTERED,
        contenders=(SPARK_OURS, SPARK_JVM),
        ratios=(Ratio("dry run", "ours", "jvm", time=0.3), Ratio("delete", "ours", "jvm", time=0.3)),
        warm_up=1,
    ),
    Case(
        name="spark-optimize",
        about="Spark: the same as optimize, by OPTIMIZE; in the driver, as local sessions do it, and by executors",
        operation="optimize",
        setup=setups.copied,
        tables=SMALL_FILES,
        contenders=(SPARK_OURS, SPARK_EXECUTORS, SPARK_JVM),
        ratios=(Ratio("optimize", "ours", "jvm", time=0.6), Ratio("optimize", "executors", "jvm")),
        warm_up=1,
    ),
    Case(
        name="spark-z-order",
        about="Spark: the same as z-order, by OPTIMIZE ... ZORDER BY; in the driver, and by executors",
        operation="z_order",
        setup=setups.copied,
        tables=ROWS,
        contenders=(SPARK_OURS, SPARK_EXECUTORS, SPARK_JVM),
        ratios=(Ratio("z-order", "ours", "jvm", time=0.5), Ratio("z-order", "executors", "jvm")),
        warm_up=1,
    ),
    Case(
        name="spark-convert",
        about="Spark: the same as convert, by CONVERT TO DELTA",
        operation="convert",
        setup=setups.copied,
        tables=PLAIN,
        contenders=(SPARK_OURS, SPARK_JVM),
        ratios=(Ratio("convert", "ours", "jvm", time=0.5),),
        warm_up=1,
    ),
    Case(
        name="spark-plan",
        about="Spark: from the path to the files of the tasks, and to the tasks; no filter, first plan",
        operation="plan",
        setup=setups.table_alone,
        tables={"small": Checkpointed(10_000), "full": Checkpointed(100_000)},
        contenders=(SPARK_OURS, SPARK_JVM),
        ratios=(Ratio("plan", "ours", "jvm"), Ratio("tasks", "ours", "jvm")),
        limits=(Limit("plan", "ours", seconds=1.0),),
        warm_up=1,
    ),
    Case(
        name="spark-first-plan",
        about="the same, for a million files; growth of the driver's heap",
        operation="plan",
        setup=setups.table_alone,
        tables=MANY_FILES,
        contenders=(SPARK_OURS, SPARK_JVM),
        ratios=(Ratio("plan", "ours", "jvm", time=0.1), Ratio("tasks", "ours", "jvm")),
        limits=(Limit("plan", "ours", heap_bytes=8 * MEBI),),
        warm_up=1,
    ),
)
