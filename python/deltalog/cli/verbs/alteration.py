"""`alter`, `drop-feature`: change the definition of a table."""

from collections.abc import Callable
from typing import Any

from deltalog.cli.columns import field_of, fields_of, name_and_rest
from deltalog.cli.failures import UsageError
from deltalog.cli.output import Output
from deltalog.cli.verb import Arguments, Parser, Verb, add_table, columns_of, open_table, pair

__all__ = ["VERBS"]


def _define_alter(parser: Parser) -> None:
    add_table(parser)
    for option, metavar, help_text in (
        ("--unset", "KEY", "remove a property"),
        ("--add-column", "DEFINITION", "add a column, such as 'note string'"),
        ("--drop-column", "COLUMN", "drop a column of a table with column mapping"),
        ("--drop-not-null", "COLUMN", "allow NULL in a column"),
        ("--set-not-null", "COLUMN", "forbid NULL in a column"),
        ("--drop-default", "COLUMN", "remove the default value of a column"),
        ("--drop-constraint", "NAME", "drop a CHECK constraint"),
        ("--add-feature", "NAME", "add a table feature to the protocol"),
        ("--cluster-by", "NAMES", "set the clustering columns; '' removes them"),
        ("--name", "NAME", "set the name of the table"),
        ("--description", "TEXT", "set the description of the table"),
        ("--widen", "DEFINITION", "give a column a wider type, such as 'id bigint'"),
    ):
        parser.add_argument(option, metavar=metavar, action="append", help=help_text)
    for option, metavar, help_text in (
        ("--set", "KEY=VALUE", "set a property"),
        ("--rename-column", "OLD=NEW", "rename a column of a table with column mapping"),
        ("--set-default", "COLUMN=SQL", "set the default value of a column"),
        ("--comment", "COLUMN=TEXT", "set the comment of a column"),
        ("--add-constraint", "NAME=SQL", "add a CHECK constraint, such as 'positive=price > 0'"),
    ):
        parser.add_argument(option, metavar=metavar, action="append", type=pair, help=help_text)
    parser.add_argument(
        "--after",
        metavar="COLUMN",
        help="with --add-column: add the column after this one; by default as the last one",
    )


def _cluster(alter: Any, given: list[str]) -> int:
    columns = columns_of([text for text in given if text.strip()])
    return int(alter.cluster_by(columns))


def _widen(alter: Any, given: list[str]) -> int:
    name, kind = name_and_rest(_one(given, "--widen"))
    return int(alter.widen_column(name, field_of(f"column {kind}").type))


def _one(given: list[Any], option: str) -> Any:
    if len(given) > 1:
        raise UsageError(f"each call makes one change: pass {option} only once")
    return given[0]


_CHANGES: dict[str, Callable[[Any, list[Any]], int]] = {
    "set": lambda alter, given: alter.set_table_properties(dict(given)),
    "unset": lambda alter, given: alter.unset_table_properties(given),
    "drop_column": lambda alter, given: alter.drop_columns(given),
    "rename_column": lambda alter, given: alter.rename_column(*_one(given, "--rename-column")),
    "widen": _widen,
    "drop_not_null": lambda alter, given: alter.drop_column_not_null(_one(given, "--drop-not-null")),
    "set_not_null": lambda alter, given: alter.set_column_not_null(_one(given, "--set-not-null")),
    "set_default": lambda alter, given: alter.set_column_default(*_one(given, "--set-default")),
    "drop_default": lambda alter, given: alter.drop_column_default(_one(given, "--drop-default")),
    "comment": lambda alter, given: _comment(alter, _one(given, "--comment")),
    "add_constraint": lambda alter, given: alter.add_constraint(dict(given)),
    "drop_constraint": lambda alter, given: alter.drop_constraint(_one(given, "--drop-constraint")),
    "add_feature": lambda alter, given: alter.add_feature(given),
    "cluster_by": _cluster,
    "name": lambda alter, given: alter.set_table_name(_one(given, "--name")),
    "description": lambda alter, given: alter.set_table_description(_one(given, "--description")),
}
"""For each option, a function that applies the values of the option. `--add-column` is handled separately."""


def _comment(alter: Any, given: tuple[str, str]) -> int:
    column, text = given
    return int(alter.set_column_metadata(column, {"comment": text}))


def _alter(arguments: Arguments, out: Output) -> None:
    asked = [name for name in ("add_column", *_CHANGES) if getattr(arguments, name) is not None]
    if len(asked) != 1:
        options = " and ".join("--" + name.replace("_", "-") for name in asked) or "none"
        raise UsageError(f"each call makes one change, not {options}; see deltalog alter --help")
    if arguments.after is not None and asked != ["add_column"]:
        raise UsageError("--after can only be used with --add-column")
    table = open_table(arguments)
    before = table.version()
    if asked == ["add_column"]:
        fields = [field for text in arguments.add_column for field in fields_of(text)]
        version = table.alter.add_columns(fields, after=arguments.after)
    else:
        version = _CHANGES[asked[0]](table.alter, getattr(arguments, asked[0]))
    said = f"{version}" if version > before else f"{version}: there was nothing to change"
    out.result({"version": version}, [("version", said)])


def _define_drop(parser: Parser) -> None:
    add_table(parser)
    parser.add_argument("feature", metavar="FEATURE", help="the name of the feature, such as deletionVectors")
    parser.add_argument(
        "--truncate-history",
        action="store_true",
        help="delete all versions that use the feature, instead of protecting checkpoints (the table feature "
        "checkpointProtection); the message says when to run the command again",
    )


def _drop(arguments: Arguments, out: Output) -> None:
    table = open_table(arguments)
    version = table.alter.drop_feature(arguments.feature, truncate_history=arguments.truncate_history)
    out.result({"version": version}, [("version", str(version))])


VERBS: dict[str, Verb] = {
    "alter": Verb(
        _define_alter,
        _alter,
        (
            "deltalog alter trips --set delta.enableDeletionVectors=true --set delta.appendOnly=false",
            "deltalog alter trips --add-column 'note string' --after city",
            "deltalog alter trips --add-constraint 'positive=km > 0'",
        ),
        "Each call makes one change, by a commit that rewrites no data files. A change is refused if the protocol or "
        "the rows of the table do not allow it.",
    ),
    "drop-feature": Verb(
        _define_drop,
        _drop,
        (
            "deltalog alter orders --set delta.enableChangeDataFeed=false",
            "deltalog drop-feature orders changeDataFeed",
        ),
        "Before the commit that drops the feature, other commits remove everything that uses it. If properties of the "
        "table still need it, the command fails and names them.",
    ),
}
