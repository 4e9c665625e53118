"""`convert`, `clone`: make tables from Parquet files and from other tables."""

from deltalog.cli.columns import fields_of
from deltalog.cli.output import Output
from deltalog.cli.verb import (
    Arguments,
    Parser,
    Verb,
    add_pairs,
    add_table,
    add_version,
    open_table,
    options_of,
    pair,
)
from deltalog.words import counted, size

__all__ = ["VERBS"]


def _define_convert(parser: Parser) -> None:
    add_table(parser, "the path or URL of the directory")
    parser.add_argument(
        "--partition-by",
        metavar="COLUMNS",
        help="the partition columns with their types, such as 'day date'; by default they are found in the names of "
        "the directories",
    )
    add_pairs(parser, "--property", help_text="a property of the table")
    parser.add_argument("--name", metavar="NAME", help="the name of the table")
    parser.add_argument("--description", metavar="TEXT", help="the description of the table")
    parser.add_argument("--if-not-exists", action="store_true", help="do nothing if there is already a table")
    parser.add_argument("--dry-run", action="store_true", help="commit nothing, and print what would be done")


def _convert(arguments: Arguments, out: Output) -> None:
    from deltalog.convert import plan_conversion
    from deltalog.schema import Schema

    partition_by = None if arguments.partition_by is None else Schema(fields_of(arguments.partition_by))
    plan = plan_conversion(
        arguments.table,
        mode="ignore" if arguments.if_not_exists else "error",
        partition_by=partition_by,
        name=arguments.name,
        description=arguments.description,
        configuration=dict(arguments.property),
        storage_options=options_of(arguments),
    )
    version = None if plan is None or arguments.dry_run else plan.commit()
    if not out.is_for_people:
        files, in_bytes = (0, 0) if plan is None else (plan.num_files, plan.size_in_bytes)
        columns = [] if plan is None else plan.partition_columns
        out.object(
            {"version": version, "files": files, "size_in_bytes": in_bytes, "partition_columns": columns}
        )
        return
    if plan is None or (version is None and not arguments.dry_run):
        out.lines(["there is already a table"])
        return
    would = "would become" if arguments.dry_run else "have become"
    out.lines([f"{counted(plan.num_files, 'file')} of {size(plan.size_in_bytes)} {would} a table"])


def _define_clone(parser: Parser) -> None:
    add_table(parser)
    parser.add_argument("target", metavar="TARGET", help="the path or URL of the clone")
    add_version(parser)
    parser.add_argument(
        "--shallow", action="store_true", help="refer to the files of the table instead of copying them"
    )
    parser.add_argument(
        "--replace", action="store_true", help="if there is a table at TARGET, replace it, in one commit"
    )
    parser.add_argument(
        "--if-not-exists", action="store_true", help="do nothing if there is already a table at TARGET"
    )
    add_pairs(
        parser,
        "--property",
        help_text="a property to set in the clone, in addition to the properties of the table",
    )
    parser.add_argument(
        "--target-option",
        metavar="KEY=VALUE",
        action="append",
        default=None,
        type=pair,
        help="an option of the clone's store; by default the store has the options of the table's store",
    )
    parser.add_argument("--dry-run", action="store_true", help="copy nothing, and print what would be done")


def _clone(arguments: Arguments, out: Output) -> None:
    from deltalog.cli.failures import UsageError

    if arguments.replace and arguments.if_not_exists:
        raise UsageError("--replace and --if-not-exists cannot be used together")
    options = options_of(arguments) if arguments.target_option is None else dict(arguments.target_option)
    result = open_table(arguments).clone(
        arguments.target,
        shallow=arguments.shallow,
        mode="overwrite" if arguments.replace else "ignore" if arguments.if_not_exists else "error",
        configuration=dict(arguments.property),
        storage_options=options,
        dry_run=arguments.dry_run,
    )
    value = {"version": result.version, "allowed_roots": result.allowed_roots, **result.metrics}
    pairs = [(name, str(number)) for name, number in result.metrics.items()]
    version = "nothing was committed" if result.version is None else str(result.version)
    roots = [("readers pass", f"--allow-root {root}") for root in result.allowed_roots]
    out.result(value, [("version", version), *pairs, *roots])


VERBS: dict[str, Verb] = {
    "convert": Verb(
        _define_convert,
        _convert,
        ("deltalog convert logs --dry-run", "deltalog convert logs --partition-by 'day date'"),
        "The files become part of the table, and are not changed. No other program may write to the directory at the "
        "same time.",
    ),
    "clone": Verb(
        _define_clone,
        _clone,
        (
            "deltalog clone trips copy",
            "deltalog clone trips copy --replace",
            "deltalog clone trips view --shallow",
        ),
        "If a table is cloned again with --replace, only new files are copied. A shallow clone can no longer be read "
        "if a VACUUM of the original table deletes files to which the clone refers.",
    ),
}
