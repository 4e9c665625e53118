"""A pipeline over real data, raw CSV → bronze → silver → gold, on Delta tables, with Spark and without the JVM
connector. Late reports are merged into the silver table. Further late reports arrive as files, which a stream merges,
while another stream maintains sums of the bronze table. Rows are deleted on request, and the change data feed of
silver brings gold up to date. Finally the tables are maintained: small files are joined, rows are ordered, and a
mistake is undone.

    python -m demo.pipeline [--output DIRECTORY]

An independent reader, the package `deltalake`, opens every table at the end and must find the same counts and sums.
Each run starts with an empty output directory.
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
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import track
from rich.table import Table

import deltalog
import deltalog.plot
import deltalog.spark
from demo import flights, maintenance, plot, silver, streams

console = Console(highlight=False)

CHANGES = tuple(silver.KIND.values())


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
    def reports(self) -> str:
        return str(self.root / "gold" / "reports")

    @property
    def plot(self) -> Path:
        return self.root / "flights.png"

    @property
    def skipping(self) -> Path:
        return self.root / "skipping.png"

    def overlap(self, when: str) -> Path:
        return self.root / f"overlap-{when}.png"


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
    """Returns an empty table for the terminal, with little spacing. `columns` maps each column to its justification."""
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
    (
        rows.write.format("deltalog")
        .mode("append")
        .partitionBy("month")
        .option("delta.enableChangeDataFeed", "true")
        .save(path)
    )


def is_late() -> Column:
    month, day = flights.LATE_DAY
    return (F.col("month") == month) & (F.col("day") == day)


def is_in_the_air() -> Column:
    month, day, time_of_day = flights.IN_THE_AIR
    return (F.col("month") == month) & (F.col("day") == day) & (F.col("dep_time") >= time_of_day)


def load_bronze(raw: DataFrame, places: Places) -> DataFrame:
    """Loads bronze in twelve commits, one per month, without the last day. Returns the late reports."""
    reported = raw.where(~is_late()).withColumns(
        {
            name: F.when(is_in_the_air(), None).otherwise(F.col(name))
            for name in ("arr_time", "arr_delay", "air_time")
        }
    )
    for number in track(range(1, 13), "twelve months, twelve commits", console=console):
        append_bronze(reported.where(F.col("month") == number), places.bronze)
    return raw.where(is_late() | is_in_the_air())


def append_late_rows(late: DataFrame, places: Places, csv: Path) -> None:
    """Appends late reports with two writers at once: Spark in this process, and another process without Spark."""
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
        others = ~F.col("origin").isin(*flights.LATE_AIRPORTS, flights.FILES_AIRPORT)
        append_bronze(late.where(is_late() & others), places.bronze)
        output, _ = second.communicate(timeout=120)
    if second.returncode != 0:
        raise SystemExit(f"the second writer failed with exit code {second.returncode}")
    console.print(
        f"the second writer committed version {' and '.join(output.split())}; Spark committed at the same time"
    )


def build_carriers(spark: SparkSession, places: Places) -> None:
    """Writes an aggregate of silver by SQL."""
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


def stream_files(spark: SparkSession, raw: DataFrame, late: DataFrame, places: Places) -> None:
    """Runs two streams: one merges the last reports, which arrive as files, and the other maintains sums of bronze.
    Both are stopped and started again between files. At the end silver must have all flights, and the sums must be
    right.
    """
    inbox, checkpoints = places.root / "inbox", places.root / "checkpoints"
    tables = streams.Tables(places.bronze, places.silver, places.reports)
    of_files = F.col("origin") == flights.FILES_AIRPORT
    for reports in (late.where(is_in_the_air()), late.where(is_late() & of_files)):
        inbox.mkdir(exist_ok=True)
        with streams.merging(spark, inbox, tables, checkpoints / "silver"):
            streams.deliver(reports, inbox)
        streams.keep_sums(spark, tables, checkpoints / "gold")
    history = deltalog.spark.DeltaTable.forPath(spark, places.reports).history().orderBy("version")
    show(history.select("version", "operation", "operationParameters.epochId"), "the batches of gold")
    flown = [
        frame.agg(F.count("*"), F.sum("arr_delay"), F.sum("air_time")).collect()[0]
        for frame in (silver.cleaned(raw), spark.read.format("deltalog").load(places.silver))
    ]
    if flown[0] != flown[1]:
        raise SystemExit(f"silver: the reports of all flights have {flown[0]}, silver has {flown[1]}")
    kept = spark.read.format("deltalog").load(places.reports)
    wrong = streams.sums(spark.read.format("deltalog").load(places.bronze)).exceptAll(kept).count()
    if wrong:
        raise SystemExit(f"gold: {wrong} sums that the stream maintains differ from the sums of bronze")
    console.print(f"two streams, each stopped and started again: silver has all {flown[1][0]:,} flights once")


def change_silver(spark: SparkSession, places: Places, since: int) -> None:
    """Merges the reports that bronze has received after its version `since` into silver."""
    merged = silver.merge_reports(spark, places.bronze, since, places.silver)
    show(merged, "MERGE of the late reports into silver")


def forget(spark: SparkSession, places: Places) -> None:
    """Deletes the flights of aircraft whose owners asked for it."""
    forgotten = silver.forget(spark, places.silver).collect()[0].num_affected_rows
    console.print(f"DELETE of {forgotten:,} flights of the aircraft {', '.join(silver.FORGOTTEN)}")


def carry_on(spark: SparkSession, places: Places) -> list[silver.Changes]:
    """Brings gold up to date from the change data feed of silver, and compares gold with sums over all rows of
    silver.
    """
    feed = silver.changes(spark, places.silver, since=0)
    changed = silver.by_version(spark, feed, places.silver)
    table = new_table(
        "the change data feed of silver", version="right", statement="left", **dict.fromkeys(CHANGES, "right")
    )
    for version in changed:
        counts = (f"{version.rows.get(kind, 0):,}" for kind in CHANGES)
        table.add_row(str(version.version), version.statement, *counts)
    console.print(table)
    show(silver.carry_on(spark, feed, places.delays), "MERGE of the feed into gold")
    whole = silver.delays(spark.read.format("deltalog").load(places.silver))
    wrong = whole.exceptAll(spark.read.format("deltalog").load(places.delays)).count()
    if wrong:
        raise SystemExit(f"gold: {wrong} sums differ from the sums of silver, so the feed is not complete")
    return changed


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


def maintain(spark: SparkSession, places: Places) -> list[plot.Skipping]:
    """Merges small files of bronze and orders the rows of silver. Returns the files that filters skip before and
    after.
    """
    show(maintenance.compact(spark, places.bronze), "OPTIMIZE of bronze")
    before = maintenance.kept(places.silver)
    maintenance.order(spark, places.silver)
    after = maintenance.kept(places.silver)
    table = new_table(
        "files of silver that a filter reads, before and after its rows were ordered",
        filter="left",
        before="right",
        after="right",
        skipped="right",
    )
    for predicate, one, other in zip(maintenance.FILTERS, before, after, strict=True):
        table.add_row(
            predicate,
            f"{one.files} of {one.of}",
            f"{other.files} of {other.of}",
            f"{other.skipped:.0%}",
        )
        if other.skipped < 0.5:
            raise SystemExit(f"silver: the filter {predicate} reads {other.files} of {other.of} files")
    console.print(table)
    found = zip(maintenance.FILTERS, before, after, strict=True)
    return [plot.Skipping(predicate, one.skipped, other.skipped) for predicate, one, other in found]


def undo_a_mistake(spark: SparkSession, places: Places) -> None:
    """Changes all rows of silver by mistake, and restores the previous version."""
    good = deltalog.DeltaTable(places.silver).version()

    def delays() -> int:
        total = spark.read.format("deltalog").load(places.silver).agg(F.sum("arr_delay")).first()
        return int(total[0]) if total is not None else 0

    known = delays()
    maintenance.blunder(spark, places.silver)
    console.print(f"UPDATE without WHERE: the sum of the delays was {known:,}, and is {delays():,}")
    show(maintenance.undo(spark, places.silver, good), f"RESTORE of version {good}")
    if delays() != known:
        raise SystemExit(f"silver: the sum of the delays is {delays():,} after the restore, not {known:,}")
    console.print(f"the sum of the delays is {known:,} again")


def show_time_travel(spark: SparkSession, places: Places) -> None:
    bronze = spark.read.format("deltalog").load(places.bronze)
    before, after = version_of(spark, places.bronze, 11).count(), bronze.count()
    console.print(f"bronze at version 11: {before:,} rows; now: {after:,}")
    # Flights that were in the air are reported twice; only the second report has an arrival.
    twice = bronze.where(is_in_the_air()).count() // 2
    if after != flights.ROWS + twice:
        raise SystemExit(
            f"bronze has {after:,} rows instead of {flights.ROWS + twice:,}: rows were lost or written twice"
        )
    newest = deltalog.DeltaTable(places.silver).version()
    known = [
        version_of(spark, places.silver, version).where(F.col("tailnum").isin(*silver.FORGOTTEN)).count()
        for version in (0, newest)
    ]
    console.print(
        f"flights of these aircraft in silver at version 0: {known[0]:,}; at version {newest}: {known[1]:,}"
    )
    if known[1] != 0:
        raise SystemExit("silver still has rows that were deleted")


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
        ("gold reports", places.reports, "reports"),
    ):
        ours = spark.read.format("deltalog").load(path).agg(F.count("*"), F.sum(column)).collect()[0]
        theirs = pa.table(deltalake.DeltaTable(path).scan(columns=[column]))
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
        if entry["operation"] == "OPTIMIZE":
            continue  # This commit adds no rows.
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

    step("Silver: cleaned; gold: aggregates")
    silver.build(spark.read.format("deltalog").load(places.bronze), places.silver)
    silver.delays(spark.read.format("deltalog").load(places.silver)).write.format("deltalog").save(
        places.delays
    )
    reported = deltalog.DeltaTable(places.bronze).version()

    step("Late reports: two writers append at once")
    append_late_rows(late, places, csv)

    step("Silver: late reports are merged")
    change_silver(spark, places, reported)

    step("Streams: files are merged into silver, and gold follows bronze")
    stream_files(spark, raw, late, places)

    step("Silver: rows are deleted on request")
    forget(spark, places)

    step("Gold: brought up to date by the change data feed of silver")
    changed = carry_on(spark, places)
    build_carriers(spark, places)

    step("Time travel")
    show_time_travel(spark, places)

    step("Maintenance: small files are joined, rows are ordered")
    unordered = deltalog.DeltaTable(places.silver).version()
    skipping = maintain(spark, places)

    step("A filtered query reads only the files it needs")
    show_skipping(spark, places)

    step("Maintenance: a mistake is undone")
    undo_a_mistake(spark, places)

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
    delays = spark.read.format("deltalog").load(places.delays).collect()
    plot.draw(
        [(row["month"], row["origin"], row["minutes"] / row["flights"]) for row in delays],
        rows_per_commit(spark, places),
        changed,
        places.plot,
    )
    silver_before = deltalog.DeltaTable(places.silver, version=unordered)
    for table, when in ((silver_before, "before"), (deltalog.DeltaTable(places.silver), "after")):
        deltalog.plot.overlap(table, "date").savefig(places.overlap(when), dpi=120)
    plot.draw_skipping(skipping, places.skipping)
    spark.stop()

    step("Done; everything is here")
    for name, place in (
        ("raw data", csv),
        ("bronze", places.bronze),
        ("silver", places.silver),
        ("gold", places.delays),
        ("", places.carriers),
        ("", places.reports),
        ("plots", places.plot),
        ("", places.overlap("before")),
        ("", places.overlap("after")),
        ("", places.skipping),
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
            f"{root} contains files that the demo did not write; choose another directory with --output"
        )
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    (root / ".deltalog-demo").touch()
    run(Places(root))


if __name__ == "__main__":
    main()
