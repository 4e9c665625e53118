"""`optimize`, `zorder`, `cluster`: rewrite files so that they can be read faster."""

from collections.abc import Mapping
from typing import Any

from deltalog.cli.failures import UsageError
from deltalog.cli.output import Output
from deltalog.cli.verb import Arguments, Parser, Verb, add_table, columns_of, open_table, whole
from deltalog.words import counted, size

__all__ = ["VERBS"]


def _add_common(parser: Parser, *, with_filter: bool = True) -> None:
    if with_filter:
        parser.add_argument(
            "--where", metavar="SQL", help="rewrite only some partitions: a condition on partition columns"
        )
    parser.add_argument(
        "--target-size",
        metavar="BYTES",
        type=whole,
        help="the size of new files; by default the table's delta.targetFileSize, or 128 MiB",
    )
    parser.add_argument("--dry-run", action="store_true", help="write nothing, and print what would be done")
    parser.add_argument(
        "--check-rows",
        action="store_true",
        help="before the commit, read the new files again and compare their rows with the old files",
    )


def _common(arguments: Arguments) -> dict[str, Any]:
    return {
        "target_size": arguments.target_size,
        "dry_run": arguments.dry_run,
        "check_rows": arguments.check_rows,
    }


def _report(metrics: Mapping[str, Any], arguments: Arguments, out: Output) -> None:
    if not out.is_for_people:
        out.object(metrics)
        return
    removed, added = metrics["numFilesRemoved"], metrics["numFilesAdded"]
    if not removed:
        out.lines(["nothing to do"])
        return
    would = "would be " if arguments.dry_run else ""
    before = f"{counted(removed, 'file')} of {size(metrics['filesRemoved']['totalSize'])}"
    after = f"{counted(added, 'file')} of {size(metrics['filesAdded']['totalSize'])}"
    out.lines([f"{before} {would}replaced by {after}"])


def _define_optimize(parser: Parser) -> None:
    add_table(parser)
    _add_common(parser)
    parser.add_argument(
        "--purge",
        action="store_true",
        help="rewrite only files that still contain deleted rows or dropped columns, like REORG in SQL",
    )


def _optimize(arguments: Arguments, out: Output) -> None:
    optimizer = open_table(arguments).optimize
    act = optimizer.purge if arguments.purge else optimizer.compact
    _report(act(arguments.where, **_common(arguments)), arguments, out)


def _define_zorder(parser: Parser) -> None:
    add_table(parser)
    parser.add_argument(
        "columns", metavar="COLUMNS", nargs="+", help="the columns by which rows are sorted, such as city,km"
    )
    _add_common(parser)


def _zorder(arguments: Arguments, out: Output) -> None:
    columns = columns_of(arguments.columns)
    if not columns:
        raise UsageError("name at least one column")
    optimizer = open_table(arguments).optimize
    _report(optimizer.z_order(columns, arguments.where, **_common(arguments)), arguments, out)


def _define_cluster(parser: Parser) -> None:
    add_table(parser)
    parser.add_argument(
        "--full",
        action="store_true",
        help="rewrite all files, for example after the clustering columns were changed",
    )
    _add_common(parser, with_filter=False)


def _cluster(arguments: Arguments, out: Output) -> None:
    optimizer = open_table(arguments).optimize
    _report(optimizer.cluster(full=arguments.full, **_common(arguments)), arguments, out)


_ROWS = "Rows are moved to other files, and never changed. With --json, all metrics are printed."

VERBS: dict[str, Verb] = {
    "optimize": Verb(
        _define_optimize,
        _optimize,
        ("deltalog optimize trips --dry-run", "deltalog optimize trips --where \"city = 'Oslo'\""),
        _ROWS,
    ),
    "zorder": Verb(
        _define_zorder,
        _zorder,
        ("deltalog zorder orders id,price",),
        f"All files of the table are rewritten, or all files of the partitions that --where selects. {_ROWS}",
    ),
    "cluster": Verb(
        _define_cluster,
        _cluster,
        ("deltalog alter events --cluster-by day", "deltalog cluster events"),
        f"Files that are already clustered are not rewritten. {_ROWS}",
    ),
}
