"""A pipeline over real data, raw CSV → bronze → silver → gold, on Delta tables, with Spark and without the
JVM connector.

    python -m demo.pipeline [--output DIRECTORY]

An independent reader, `deltalake`, opens every table again and must find the same counts and sums. Each run
starts with an empty output directory.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import deltalake
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import track
from rich.table import Table

import deltalog
import deltalog.spark
from demo import flights, plot

console = Console(highlight=False)


@dataclass(frozen=True)
class Places:
    """The locations of all outputs."""

    root: Path

    @property
    def bronze(self) -> str:
        return str(self.root / "bronze" / "flights")

    @property
    def silver(self) -> str:
        return str(self.root / "silver" / "flights")

    @property
    def delays(self) -> str:
        return str(self.root / "gold" / "delays_by_month")

    @property
    def carriers(self) -> str:
        return str(self.root / "gold" / "carriers")

    @property
    def plot(self) -> Path:
        return self.root / "flights.png"


def start_spark(root: Path) -> SparkSession:
    spark = (
        SparkSession.builder.master("local[*]")
        .appName("deltalog demo")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(root / "warehouse"))
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    deltalog.spark.enable(spark)
    return spark


def new_table(title: str, **columns: str) -> Table:
    """Returns a compact table. `columns` maps each column to its justification."""
    table = Table(title=title, title_justify="left", title_style="italic", box=SIMPLE_HEAD, pad_edge=False)
    for name, justify in columns.items():
        table.add_column(name.replace("_", " "), justify="right" if justify == "right" else "left")
    return table


def show(frame: DataFrame, title: str) -> None:
    """Prints a small result as a compact table."""
    table = new_table(
        title,
        **{name: "left" if type_ in ("string", "timestamp") else "right" for name, type_ in frame.dtypes},
    )
    for row in frame.collect():
        table.add_row(
            *(f"{cell:,}" if isinstance(cell, int) else "" if cell is None else str(cell) for cell in row)
        )
    console.print(table)


def version_of(spark: SparkSession, path: str, version: int) -> DataFrame:
    return spark.read.format("deltalog").option("versionAsOf", version).load(path)


def append_bronze(rows: DataFrame, path: str) -> None:
    rows.write.format("deltalog").mode("append").partitionBy("month").save(path)


def load_bronze(raw: DataFrame, places: Places) -> DataFrame:
    """Makes twelve commits, one per month, without the late day. Returns the rows of the late day."""
    month, day = flights.LATE_DAY
    late = (F.col("month") == month) & (F.col("day") == day)
    for number in track(range(1, 13), "twelve months, twelve commits", console=console):
        append_bronze(raw.where((F.col("month") == number) & ~late), places.bronze)
    return raw.where(late)


def append_late_rows(late: DataFrame, places: Places, csv: Path) -> None:
    """Appends with two writers at once: Spark here, and a process without Spark."""
    command = [sys.executable, "-m", "demo.second_writer", places.bronze, str(csv)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parent.parent
    ) as second:
        assert second.stdin is not None  # noqa: S101 (for the type checker)
        assert second.stdout is not None  # noqa: S101
        if second.stdout.readline() != "ready\n":
            raise SystemExit("the second writer did not start")
        second.stdin.write("go\n")
        second.stdin.flush()
        append_bronze(late.where(~F.col("origin").isin(*flights.LATE_AIRPORTS)), places.bronze)
        output, _ = second.communicate(timeout=120)
    if second.returncode != 0:
        raise SystemExit(f"the second writer failed with exit code {second.returncode}")
    console.print(
        f"the second writer committed version {' and '.join(output.split())}; Spark committed at the same time"
    )


def build_silver(spark: SparkSession, places: Places) -> None:
    """Writes the flights that arrived, with proper times, in files that each cover a range of days."""
    bronze = spark.read.format("deltalog").load(places.bronze)
    airlines = spark.read.csv(str(flights.data_directory() / "airlines.csv"), header=True).withColumnRenamed(
        "name", "airline"
    )
    (
        bronze.where(F.col("dep_delay").isNotNull() & F.col("arr_delay").isNotNull())
        .join(F.broadcast(airlines), "carrier")
        .select(
            F.make_date("year", "month", "day").alias("date"),
            "airline",
            F.concat("carrier", "flight").alias("flight"),
            "tailnum",
            "origin",
            "dest",
            F.col("time_hour").alias("scheduled"),
            "dep_delay",
            "arr_delay",
            "air_time",
            "distance",
        )
        .repartitionByRange(16, "date")
        .write.format("deltalog")
        .mode("overwrite")
        .save(places.silver)
    )


def build_gold(spark: SparkSession, places: Places) -> None:
    """Writes one aggregate by DataFrame and one by SQL."""
    silver = spark.read.format("deltalog").load(places.silver)
    (
        silver.groupBy(F.month("date").alias("month"), "origin")
        .agg(F.count("*").alias("flights"), F.round(F.avg("dep_delay"), 2).alias("mean_delay"))
        .orderBy("month", "origin")
        .write.format("deltalog")
        .mode("overwrite")
        .save(places.delays)
    )
    (
        spark.sql(f"""
            SELECT airline, count(*) AS flights, sum(distance) AS miles,
                   round(avg(arr_delay), 1) AS mean_delay,
                   round(100 * avg(CASE WHEN arr_delay > 15 THEN 1 ELSE 0 END), 1) AS late_percent
            FROM deltalog.`{places.silver}` GROUP BY airline""")
        .coalesce(1)
        .write.format("deltalog")
        .mode("overwrite")
        .save(places.carriers)
    )
    show(
        spark.sql(f"SELECT * FROM deltalog.`{places.carriers}` ORDER BY flights DESC LIMIT 5"),
        "gold: the five largest airlines (delay in minutes; late: more than 15)",
    )


def show_skipping(spark: SparkSession, places: Places) -> None:
    """Shows how many files a filter keeps: by partition in bronze, by statistics in silver."""
    table = new_table(
        "files that a filter keeps",
        table="left",
        filter="left",
        read="right",
        skipped="right",
        of="right",
        rows_found="right",
    )
    for name, path, predicate in (
        ("bronze", places.bronze, "month = 7 AND dep_delay > 120"),
        ("silver", places.silver, "date BETWEEN DATE '2013-07-01' AND DATE '2013-07-14'"),
    ):
        handle = deltalog.DeltaTable(path)
        kept, total = len(handle.file_uris(predicate)), len(handle.file_uris())
        if kept >= total:
            raise SystemExit(f"{name}: the filter {predicate} skipped no file")
        rows = spark.read.format("deltalog").load(path).where(predicate).count()
        table.add_row(name, predicate, f"{kept:,}", f"{total - kept:,}", f"{total:,}", f"{rows:,}")
    console.print(table)


def show_time_travel(spark: SparkSession, places: Places) -> None:
    before, after = (
        version_of(spark, places.bronze, 11).count(),
        spark.read.format("deltalog").load(places.bronze).count(),
    )
    console.print(
        f"bronze at version 11: {before:,} rows; now: {after:,}; the late day added {after - before:,}"
    )
    if after != flights.ROWS:
        raise SystemExit(
            f"bronze has {after:,} rows instead of {flights.ROWS:,}: an append was lost or doubled"
        )


def check_with_deltalake(spark: SparkSession, places: Places) -> None:
    """Checks that an independent reader finds the same counts and sums."""
    table = new_table(
        "the same tables, read by deltalake",
        table="left",
        rows="right",
        sum_of="left",
        Spark="right",
        deltalake="right",
    )
    unequal = []
    for name, path, column in (
        ("bronze", places.bronze, "distance"),
        ("silver", places.silver, "arr_delay"),
        ("gold delays", places.delays, "flights"),
        ("gold carriers", places.carriers, "miles"),
    ):
        ours = spark.read.format("deltalog").load(path).agg(F.count("*"), F.sum(column)).collect()[0]
        theirs = deltalake.DeltaTable(path).to_pyarrow_table(columns=[column])
        found = (theirs.num_rows, pc.sum(theirs[column]).as_py())
        table.add_row(name, f"{ours[0]:,}", column, f"{ours[1]:,}", f"{found[1]:,}")
        if tuple(ours) != found:
            unequal.append(f"{name}: Spark {tuple(ours)}, deltalake {found}")
    console.print(table)
    if unequal:
        raise SystemExit("The readers disagree: " + "; ".join(unequal))


def rows_per_commit(spark: SparkSession, places: Places) -> list[plot.Commit]:
    """Returns the number of rows that each commit of bronze added, and its writer."""
    commits = []
    rows = 0
    for entry in (
        deltalog.spark.DeltaTable.forPath(spark, places.bronze).history().orderBy("version").collect()
    ):
        total = version_of(spark, places.bronze, entry["version"]).count()
        commits.append(
            plot.Commit(
                entry["version"],
                total - rows,
                "Spark" if "Spark" in (entry["engineInfo"] or "") else "second writer",
            )
        )
        rows = total
    return commits


def run(places: Places) -> None:
    started = time.perf_counter()

    def step(title: str) -> None:
        console.rule(f"[bold]{title}[/bold]  [dim]{time.perf_counter() - started:.0f} s[/dim]", align="left")

    step("Start Spark, unpack the raw data")
    csv = flights.extract(places.root / "raw")
    spark = start_spark(places.root)
    raw = spark.read.csv(str(csv), header=True, schema=flights.SPARK_SCHEMA, nullValue="NA").cache()

    step("Bronze: raw rows, partitioned by month")
    late = load_bronze(raw, places)

    step("Late rows: two writers append at once")
    append_late_rows(late, places, csv)

    step("Time travel")
    show_time_travel(spark, places)

    step("Silver: cleaned")
    build_silver(spark, places)

    step("Gold: aggregates")
    build_gold(spark, places)

    step("A filtered query reads only the files it needs")
    show_skipping(spark, places)

    step("History")
    history = deltalog.spark.DeltaTable.forPath(spark, places.bronze).history(4)
    show(
        history.select(
            "version", F.date_format("timestamp", "HH:mm:ss").alias("time"), "operation", "engineInfo"
        ),
        "the last commits of bronze",
    )

    step("Check by another reader")
    check_with_deltalake(spark, places)

    step("Plot")
    delays = spark.read.format("deltalog").load(places.delays).orderBy("month", "origin").collect()
    plot.draw(
        [(row["month"], row["origin"], row["mean_delay"]) for row in delays],
        rows_per_commit(spark, places),
        places.plot,
    )
    spark.stop()

    step("Done; everything is here")
    for name, place in (
        ("raw data", csv),
        ("bronze", places.bronze),
        ("silver", places.silver),
        ("gold", places.delays),
        ("", places.carriers),
        ("plot", places.plot),
    ):
        console.print(f"{name:<10}{place}", soft_wrap=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Run the demo pipeline.")
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("demo-output"),
        help="output directory, emptied first (default: %(default)s)",
    )
    root = parser.parse_args().output.resolve()
    if root.exists() and any(root.iterdir()) and not (root / ".deltalog-demo").is_file():
        raise SystemExit(
            f"{root} holds something that is not a demo's output; name another directory with --output"
        )
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    (root / ".deltalog-demo").touch()
    run(Places(root))


if __name__ == "__main__":
    main()
