"""`check`, `repair`, `vacuum`, `checkpoint`, `restore`: find and repair damage, delete files, and restore versions."""

import argparse
from typing import TYPE_CHECKING

from deltalog.cli.failures import FOUND
from deltalog.cli.output import Output
from deltalog.cli.verb import Arguments, Parser, Verb, add_table, add_version, open_table, version_or_time
from deltalog.escape import visible
from deltalog.words import counted, iso, moment, size

if TYPE_CHECKING:
    from deltalog.table.vacuum import VacuumPlan

__all__ = ["VERBS"]


def _define_check(parser: Parser) -> None:
    add_table(parser)
    add_version(parser)
    parser.add_argument(
        "--level",
        choices=("files", "footers", "rows"),
        default="footers",
        help="what to check: only the sizes of files; also footers and deletion vectors (the default); or also all "
        "rows",
    )


def _check(arguments: Arguments, out: Output) -> int:
    table = open_table(arguments)
    problems = out.rows(table.check(arguments.level), has_empty_head=False)
    verified = table.verify()
    for difference in verified.differences:
        text = (
            f"{difference.field}: {difference.checksum} in the checksum file, {difference.replay} in the log"
        )
        if out.is_for_people:
            out.lines([visible(text)])
        elif out.form == "json":
            out.object({"path": verified.file, "problem": "wrong checksum file", "detail": text})
    problems += len(verified.differences)
    if out.is_for_people:
        out.lines(
            [f"version {table.version()}: {counted(problems, 'problem') if problems else 'no problem'} found"]
        )
    return FOUND if problems else 0


def _define_repair(parser: Parser) -> None:
    add_table(parser)
    parser.add_argument(
        "--commit",
        action="store_true",
        help="remove the files from the log; by default they are only printed",
    )
    parser.add_argument(
        "--damaged", action="store_true", help="also remove files that exist, but are not valid Parquet"
    )
    parser.add_argument(
        "--without-vectors",
        action="store_true",
        help="also remove files whose deletion vectors are missing, with all their rows",
    )


def _repair(arguments: Arguments, out: Output) -> None:
    result = open_table(arguments).repair(
        dry_run=not arguments.commit,
        remove_damaged=arguments.damaged,
        drop_files_without_vectors=arguments.without_vectors,
    )
    if not out.is_for_people:
        out.object(result)
        return
    out.lines(visible(path) for path in result["files_removed"])
    files = counted(len(result["files_removed"]), "file")
    if not result["files_removed"]:
        out.lines(["no file is missing"])
    elif arguments.commit:
        out.lines([f"{files} removed from the table"])
    else:
        out.lines([f"{files} would be removed; restore them if there are copies, or pass --commit"])


def _define_vacuum(parser: Parser) -> None:
    add_table(parser)
    parser.add_argument(
        "--delete", action="store_true", help="delete the files; by default they are only counted"
    )
    parser.add_argument(
        "--retain",
        metavar="HOURS",
        type=_hours,
        help="keep files for this time after they were removed from the table; by default the table's retention, or "
        "7 days",
    )
    parser.add_argument(
        "--allow-short-retention",
        action="store_true",
        help="allow --retain to be shorter than the table's retention",
    )
    parser.add_argument(
        "--lite",
        action="store_true",
        help="find only files that commits have removed, by reading the log instead of listing all files",
    )
    parser.add_argument("--files", action="store_true", help="print the names of the files")


def _hours(text: str) -> float:
    try:
        hours = float(text)
    except ValueError:
        hours = -1.0
    if not 0 <= hours <= 1e7:
        raise argparse.ArgumentTypeError(f"expected a number of hours from 0 to 1e7, not {text!r}")
    return hours


def _vacuum(arguments: Arguments, out: Output) -> None:
    plan = open_table(arguments).vacuum_plan(
        arguments.retain, not arguments.allow_short_retention, full=not arguments.lite
    )
    if arguments.files or out.form == "arrow":
        out.rows(plan.files(), has_empty_head=False)
    if out.is_for_people or (out.form == "json" and not arguments.files):
        _summary(plan, out)
    if arguments.delete:
        plan.delete()
        if out.is_for_people:
            out.lines([f"{counted(plan.num_files, 'file')} deleted"])


def _summary(plan: "VacuumPlan", out: Output) -> None:
    milliseconds = int(plan.cutoff.timestamp() * 1000)
    if out.is_for_people:
        files = f"{counted(plan.num_files, 'file')}, {size(plan.size_in_bytes)}"
        out.lines([f"{files}, not needed since {moment(milliseconds)}"])
    else:
        out.object(
            {
                "version": plan.version,
                "files": plan.num_files,
                "size_in_bytes": plan.size_in_bytes,
                "cutoff": iso(milliseconds),
            }
        )


def _define_checkpoint(parser: Parser) -> None:
    add_table(parser)
    add_version(parser)


def _checkpoint(arguments: Arguments, out: Output) -> None:
    table = open_table(arguments)
    table.create_checkpoint()
    out.result({"version": table.version()}, [("checkpoint", f"version {table.version()}")])


def _define_restore(parser: Parser) -> None:
    add_table(parser)
    parser.add_argument(
        "target", metavar="VERSION", type=version_or_time, help="the version to restore, or a time"
    )
    parser.add_argument("--dry-run", action="store_true", help="commit nothing, and print what would be done")
    parser.add_argument(
        "--ignore-missing-files",
        action="store_true",
        help="leave out files that no longer exist, with their rows",
    )


def _restore(arguments: Arguments, out: Output) -> None:
    table = open_table(arguments)
    metrics = table.restore(
        arguments.target, dry_run=arguments.dry_run, ignore_missing_files=arguments.ignore_missing_files
    )
    pairs = [("version", str(table.version())), *((name, str(value)) for name, value in metrics.items())]
    out.result({"version": table.version(), **metrics}, pairs)


VERBS: dict[str, Verb] = {
    "check": Verb(
        _define_check,
        _check,
        ("deltalog check trips", "deltalog check trips --level rows --json"),
        "Nothing is changed. The exit code is 1 if a problem is found. Files to which no version refers count as "
        "problems; VACUUM deletes them.",
        has_arrow=True,
    ),
    "repair": Verb(
        _define_repair,
        _repair,
        ("deltalog repair trips", "deltalog repair trips --commit"),
        "The table loses the rows of the files that are removed. Without --commit nothing is changed. Files in the "
        "store are never deleted.",
    ),
    "vacuum": Verb(
        _define_vacuum,
        _vacuum,
        ("deltalog vacuum trips --files", "deltalog vacuum trips --retain 720 --delete"),
        "Nothing is deleted without --delete. After a deletion, older versions can no longer be read. Shallow clones "
        "of the table may also need its files: the table does not know which clones exist.",
        has_arrow=True,
    ),
    "checkpoint": Verb(
        _define_checkpoint,
        _checkpoint,
        ("deltalog checkpoint trips",),
        "Writers do this automatically, every delta.checkpointInterval versions.",
    ),
    "restore": Verb(
        _define_restore,
        _restore,
        ("deltalog restore trips 0 --dry-run", "deltalog restore trips 0"),
        "Restoring makes a new commit. To undo it, restore the version before that commit.",
    ),
}
