"""All cases. The cases of Spark have a file of their own."""

from __future__ import annotations

from benches import setups
from benches.case import Case, Limit, Ratio
from benches.contender import (
    ARROW_DATASET,
    DATAFUSION,
    DELTALAKE,
    DELTALAKE_IN_DATAFUSION,
    DELTALAKE_IN_DUCKDB,
    DELTALAKE_IN_POLARS,
    DUCKDB,
    KERNEL,
    KERNEL_LEAN,
    OURS,
    OURS_IN_DATAFUSION,
    OURS_IN_DUCKDB,
    OURS_IN_POLARS,
    POLARS,
)
from benches.scales import (
    DELETED_ROWS,
    LITTERED,
    MANY_FILES,
    MEBI,
    PLAIN,
    ROWS,
    ROWS_OF_PARTITIONS,
    SMALL_FILES,
    V2_FILES,
)
from benches.spark_cases import SPARK_CASES
from benches.tables import Broad, Commits, Data

_TOOLS = (
    ("Polars", POLARS, OURS_IN_POLARS, DELTALAKE_IN_POLARS),
    ("DuckDB", DUCKDB, OURS_IN_DUCKDB, DELTALAKE_IN_DUCKDB),
    ("DataFusion", DATAFUSION, OURS_IN_DATAFUSION, DELTALAKE_IN_DATAFUSION),
)

CASES = (
    Case(
        name="open-list",
        about="open a table with a classic checkpoint and five commits, list all files",
        operation="open_list",
        setup=setups.table_alone,
        tables=MANY_FILES,
        contenders=(OURS, KERNEL, KERNEL_LEAN, DELTALAKE),
        ratios=(
            Ratio("open", "ours", "deltalake"),
            Ratio("open", "ours", "delta_kernel"),
            Ratio("open + list", "ours", "deltalake", time=0.07, memory=0.5),
            Ratio("open + list", "ours", "delta_kernel", time=0.25),
            Ratio("open + list", "ours", "delta_kernel lean"),
        ),
        limits=(Limit("open", "ours", seconds=0.005), Limit("open + list", "ours", peak_bytes=120 * MEBI)),
    ),
    Case(
        name="list-held",
        about="the same list as one Arrow table in memory, and the peak growth of the process",
        operation="list_held",
        setup=setups.table_alone,
        tables=MANY_FILES,
        contenders=(OURS, DELTALAKE),
        ratios=(Ratio("held", "ours", "deltalake"),),
        limits=(Limit("held", "ours", heap_bytes=250_000_000),),
    ),
    Case(
        name="replay/1000x500",
        about="as open-list, for 1,000 commits of 500 files each, without a checkpoint",
        operation="open_list",
        setup=setups.table_alone,
        tables={"small": Commits(50, 50), "medium": Commits(200, 500), "full": Commits(1_000, 500)},
        contenders=(OURS, KERNEL, KERNEL_LEAN, DELTALAKE),
        ratios=(
            Ratio("open + list", "ours", "deltalake", time=0.2),
            Ratio("open + list", "ours", "delta_kernel", time=0.25),
            Ratio("open + list", "ours", "delta_kernel lean"),
        ),
        limits=(Limit("open + list", "ours", peak_bytes=200 * MEBI),),
    ),
    Case(
        name="replay/10000x5",
        about="as open-list, for 10,000 commits of 5 files each, without a checkpoint",
        operation="open_list",
        setup=setups.table_alone,
        tables={"small": Commits(200, 5), "medium": Commits(2_000, 5), "full": Commits(10_000, 5)},
        contenders=(OURS, KERNEL, KERNEL_LEAN, DELTALAKE),
        ratios=(
            Ratio("open + list", "ours", "deltalake", time=0.13),
            Ratio("open + list", "ours", "delta_kernel", time=0.25),
            Ratio("open + list", "ours", "delta_kernel lean"),
        ),
    ),
    Case(
        name="plan",
        about="open, list the files that may match predicates on a partition column and on statistics",
        operation="plan",
        setup=setups.with_predicate,
        tables=MANY_FILES,
        contenders=(OURS, DELTALAKE),
        ratios=(Ratio("plan", "ours", "deltalake", time=0.05),),
    ),
    Case(
        name="refresh",
        about="bring an open table up to date: no new commit, one new commit",
        operation="refresh",
        setup=setups.with_next_commit,
        tables=MANY_FILES,
        contenders=(OURS, DELTALAKE),
        ratios=(Ratio("no-op", "ours", "deltalake"), Ratio("one commit", "ours", "deltalake")),
        limits=(Limit("no-op", "ours", seconds=0.002), Limit("one commit", "ours", seconds=0.005)),
    ),
    Case(
        name="checkpoint",
        about="open the table, and write a classic checkpoint of its newest version",
        operation="checkpoint",
        setup=setups.copied,
        tables=MANY_FILES,
        contenders=(OURS, DELTALAKE),
        ratios=(Ratio("checkpoint", "ours", "deltalake", time=0.4, memory=0.2),),
    ),
    Case(
        name="checkpoint-v2",
        about="write a V2 checkpoint with sidecars, and another one after five commits",
        operation="checkpoint_again",
        setup=setups.with_next_commits,
        tables=V2_FILES,
        contenders=(OURS,),
        ratios=(),
        limits=(Limit("after five commits", "ours", seconds=0.2),),
    ),
    Case(
        name="vacuum",
        about="find a tenth of the files, which no version needs, by a listing; delete them",
        operation="vacuum",
        setup=setups.littered,
        tables=LITTERED,
        contenders=(OURS, DELTALAKE),
        ratios=(
            Ratio("dry run", "ours", "deltalake", time=0.5),
            Ratio("delete", "ours", "deltalake", time=0.5),
        ),
    ),
    Case(
        name="convert",
        about="make a table of a directory of Parquet files, with the statistics of their footers",
        operation="convert",
        setup=setups.copied,
        tables=PLAIN,
        contenders=(OURS, DELTALAKE),
        ratios=(Ratio("convert", "ours", "deltalake", time=0.5),),
    ),
    Case(
        name="statements",
        about="DELETE of 10 %, UPDATE of 1 %, MERGE of 11,340 keys (1 % matched, update and insert); 16 columns",
        operation="statements",
        setup=setups.copied,
        tables=ROWS,
        contenders=(OURS, DELTALAKE),
        ratios=tuple(
            ratio
            for name in ("delete", "update", "merge")
            for ratio in (
                # `deltalake` does not write deletion vectors.
                Ratio(name, "ours", "deltalake", time=0.3),
                Ratio(f"{name}, rewrite", "ours", "deltalake", peer_measure=name),
            )
        ),
    ),
    Case(
        name="optimize",
        about="join 1,000 files of 8,000 rows of 16 columns as files of 128 MiB",
        operation="optimize",
        setup=setups.copied,
        tables=SMALL_FILES,
        contenders=(OURS, DELTALAKE),
        ratios=(Ratio("optimize", "ours", "deltalake", time=0.6),),
    ),
    Case(
        name="z-order",
        about="order 8,000,000 rows of 16 columns by four of them, into 100 files",
        operation="z_order",
        setup=setups.copied,
        tables=ROWS,
        contenders=(OURS, DELTALAKE),
        ratios=(Ratio("z-order", "ours", "deltalake", time=0.5),),
    ),
    Case(
        name="append",
        about="append one row to an open table: the median of the commits between two checkpoints",
        operation="append",
        setup=setups.copied,
        tables=MANY_FILES,
        contenders=(OURS, DELTALAKE),
        ratios=(
            Ratio("one row", "ours", "deltalake"),
            Ratio("one row, beside a checkpoint", "ours", "deltalake", peer_measure="one row"),
        ),
        limits=(Limit("one row", "ours", seconds=0.005),),
    ),
    Case(
        name="broad",
        about="a table of 10,000 columns against one of 1,000: what is linear takes ten times as long",
        operation="broad",
        setup=setups.copied,
        tables={"small": Broad(100), "medium": Broad(1_000), "full": Broad(1_000)},
        contenders=(OURS,),
        ratios=tuple(
            Ratio(f"{what}, broad", "ours", "ours", time=12.0, peer_measure=f"{what}, narrow")
            for what in ("open", "read one file", "append", "delete", "checkpoint")
        ),
    ),
    Case(
        name="append-threads",
        about="64 threads append single rows to one local table; the mean time of an append",
        operation="append_at_once",
        setup=setups.with_threads,
        tables={"small": Commits(1, 5), "medium": Commits(1, 20), "full": Commits(1, 100)},
        contenders=(OURS, DELTALAKE),
        ratios=(Ratio("per append", "ours", "deltalake", time=0.25),),
    ),
    Case(
        name="scan",
        about="the rows as Arrow: one filtered column; all 16 columns, ours with string views and plain strings",
        operation="scan",
        setup=setups.table_alone,
        tables=ROWS,
        contenders=(OURS, DELTALAKE, POLARS, DUCKDB, ARROW_DATASET),
        ratios=(
            *(
                Ratio(measure, "ours", peer.name, time=1.0)
                for measure in ("filter", "all columns")
                for peer in (DELTALAKE, POLARS, DUCKDB, ARROW_DATASET)
            ),
            # Plain strings must be copied; deltalake and Polars return views.
            *(
                Ratio("all columns, plain strings", "ours", peer.name, peer_measure="all columns")
                for peer in (DELTALAKE, POLARS)
            ),
            *(
                Ratio("all columns, plain strings", "ours", peer.name, time=1.0, peer_measure="all columns")
                for peer in (DUCKDB, ARROW_DATASET)
            ),
        ),
    ),
    *(
        Case(
            name=f"{library.name}-{measure}",
            about=f"{title}: {what} 8,000,000 rows; count and sum of the result",
            operation=f"{measure}_rows",
            setup=setups.table_alone,
            tables=ROWS,
            contenders=(ours, library, deltalake),
            ratios=(Ratio(measure, "ours", library.name, time=1.0), Ratio(measure, "ours", "deltalake")),
        )
        for title, library, ours, deltalake in _TOOLS
        for measure, what in (
            ("filter", "a filter that selects half of"),
            ("join", "100,000 keys joined with"),
        )
    ),
    *(
        Case(
            name=f"{library.name}-vectors",
            about=f"{title}: the same filter, with a deletion vector on each file that deletes a tenth of its rows",
            operation="filter_rows",
            setup=setups.table_alone,
            tables=DELETED_ROWS,
            contenders=(ours, deltalake),
            ratios=(Ratio("filter", "ours", "deltalake", time=0.5),),
        )
        for title, library, ours, deltalake in _TOOLS
    ),
    Case(
        name="store-open-list",
        about="as open-list, from a store with 20 ms per request",
        operation="store_open_list",
        setup=setups.in_store_beside_local,
        tables=MANY_FILES,
        contenders=(OURS, DELTALAKE),
        ratios=(
            Ratio("open + list", "ours", "deltalake", time=0.25),
            Ratio("open + list", "ours", "ours", peer_measure="open + list, local"),
        ),
    ),
    Case(
        name="store-scan",
        about="500 files of 2.75 MB as Arrow, from a store with 20 ms per request and 200 MB/s",
        operation="store_scan",
        setup=setups.in_store,
        tables={"small": Data(400_000, files=20), "full": Data(12_500_000, files=500)},
        contenders=(OURS, DELTALAKE, POLARS),
        ratios=(
            Ratio("all columns", "ours", "deltalake", time=1.0),
            Ratio("all columns", "ours", "polars", time=1.0),
        ),
    ),
    Case(
        name="store-append",
        about="as append, to a table in a store with 20 ms per request",
        operation="store_append",
        setup=setups.in_store,
        tables=MANY_FILES,
        contenders=(OURS, DELTALAKE),
        ratios=(Ratio("one row", "ours", "deltalake"),),
    ),
    Case(
        name="store-unanswered",
        about="32 writers append 25 rows each, one by one, to a store that loses 10 % of its answers",
        operation="store_unanswered",
        setup=setups.unanswered,
        tables={"small": Commits(1, 5), "full": Commits(1, 25)},
        contenders=(OURS, DELTALAKE),
        ratios=(Ratio("appends", "ours", "deltalake"),),
    ),
    Case(
        name="write-rows",
        about="write 8,000,000 rows of 16 columns as a new table: from a stream of Parquet, and from memory",
        operation="write",
        setup=setups.with_target,
        tables=ROWS,
        contenders=(OURS, DELTALAKE),
        ratios=(
            Ratio("stream", "ours", "deltalake", time=0.8),
            Ratio("from memory", "ours", "deltalake", time=0.8),
        ),
        limits=(Limit("stream", "ours", peak_bytes=600 * MEBI),),
    ),
    Case(
        name="write-partitions",
        about="write 1,000,000 rows of 16 columns to 10,000 partitions, in random order",
        operation="write_partitioned",
        setup=setups.with_partitions,
        tables=ROWS_OF_PARTITIONS,
        contenders=(OURS, DELTALAKE),
        ratios=(Ratio("partitions", "ours", "deltalake"),),
        limits=(Limit("partitions", "ours", peak_bytes=600 * MEBI),),
    ),
    *SPARK_CASES,
)


def named(wanted: str) -> tuple[Case, ...]:
    """Returns the cases that `name` selects: all cases for `all`, the case with this name, or the cases whose names
    begin with `name` and a slash.
    """
    return tuple(case for case in CASES if wanted in ("all", case.name, case.name.split("/")[0]))
