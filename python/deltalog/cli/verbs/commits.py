"""`history`, `log`, `tail`: print the commits of a table."""

import json
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from deltalog.arrow_objects import objects
from deltalog.cli.output import Output
from deltalog.cli.verb import Arguments, Parser, Verb, add_limit, add_table, add_version, open_table, whole
from deltalog.escape import visible
from deltalog.words import moment, size

if TYPE_CHECKING:
    from deltalog.table import DeltaTable

__all__ = ["VERBS"]

_EFFECTS = {
    "numOutputRows": "row written",
    "numInsertedRows": "row inserted",
    "numTargetRowsInserted": "row inserted",
    "numUpdatedRows": "row updated",
    "numTargetRowsUpdated": "row updated",
    "numDeletedRows": "row deleted",
    "numTargetRowsDeleted": "row deleted",
    "numCopiedFiles": "file copied",
    "numRestoredFiles": "file restored",
    "numConvertedFiles": "file converted",
    "numFilesToDelete": "file to delete",
    "numDeletedFiles": "file deleted",
    "numFiles": "file added",
    "numAddedFiles": "file added",
    "numFilesAdded": "file added",
    "numTargetFilesAdded": "file added",
    "numRemovedFiles": "file removed",
    "numFilesRemoved": "file removed",
    "numTargetFilesRemoved": "file removed",
}
"""The nouns and verbs for the metrics of commits, in the order in which they are shown."""


def _effect(info: Mapping[str, Any]) -> str:
    """Returns a summary of a commit from its metrics, such as "3 rows written, 1 file added"."""
    metrics = info.get("operationMetrics")
    if not isinstance(metrics, dict):
        return ""
    counts = [(str(metrics.get(name, "0")), words.split(" ", 1)) for name, words in _EFFECTS.items()]
    return ", ".join(
        f"{number} {noun}{'' if number == '1' else 's'} {verb}"
        for number, (noun, verb) in counts
        if number != "0"
    )


_NAMES = ("version", "time", "operation", "effect", "engine")


def _line(info: Mapping[str, Any]) -> list[str | None]:
    stamp, operation = info.get("timestamp"), info.get("operation")
    engine = info.get("engineInfo")
    return [
        str(info.get("version")),
        moment(stamp if isinstance(stamp, int) else None),
        str(operation) if operation is not None else "",
        _effect(info),
        str(engine) if engine is not None else "",
    ]


def _define_history(parser: Parser) -> None:
    add_table(parser)
    add_version(parser)
    add_limit(parser, 20, "print at most N commits; by default 20")
    parser.add_argument("--all", action="store_true", help="print all commits in the log")


def _history(arguments: Arguments, out: Output) -> None:
    table = open_table(arguments)
    limit = None if arguments.all else arguments.limit
    if out.form == "arrow":
        out.rows(table.history_arrow(limit))
        return
    history = table.history(limit)
    out.table(_NAMES, map(_line, history), history)


def _define_log(parser: Parser) -> None:
    add_table(parser)
    parser.add_argument(
        "version",
        metavar="VERSION",
        type=whole,
        nargs="?",
        help="the version of the commit; by default the newest",
    )


def _log(arguments: Arguments, out: Output) -> None:
    table = open_table(arguments)
    version = table.version() if arguments.version is None else arguments.version
    stream = table.commit_actions(version, version)
    if out.form == "arrow":
        out.rows(stream)
        return
    for number, row in enumerate(objects(stream)):
        if out.is_for_people:
            head = [] if number else [out.style.bold(f"version {row['version']}, of {row['timestamp']}")]
            out.lines([*head, _action(row)])
        else:
            out.object({"version": row["version"], row["action"]: json.loads(row["json"])})


def _action(row: Mapping[str, Any]) -> str:
    """Returns a line that describes an action, for people."""
    kind = row["action"]
    if kind in ("add", "remove", "cdc"):
        parts = [row["path"]]
        if row["size"] is not None:
            parts.append(size(row["size"]))
        values = row["partition_values"] or {}
        parts += [f"{name}={'NULL' if value is None else value}" for name, value in values.items()]
        parts += ["with a deletion vector"] if row["deletion_vector"] else []
        parts += ["moves rows only"] if row["data_change"] is False else []
        return visible(f"{kind:<14} {', '.join(parts)}")
    return visible(f"{kind:<14} {row['json']}")


def _define_tail(parser: Parser) -> None:
    add_table(parser)
    add_limit(parser, 10, "print the last N commits; by default 10")
    parser.add_argument(
        "-f",
        "--follow",
        action="store_true",
        help="afterwards print new commits as they are made, until Ctrl-C",
    )
    parser.add_argument(
        "--interval",
        metavar="SECONDS",
        type=_seconds,
        default=1.0,
        help="with -f: the time between two checks for new commits; by default 1",
    )


def _seconds(text: str) -> float:
    from argparse import ArgumentTypeError

    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.01 <= seconds <= 86_400:
        raise ArgumentTypeError(f"expected a number of seconds from 0.01 to 86400, not {text!r}")
    return seconds


def _tail(arguments: Arguments, out: Output) -> None:
    table = open_table(arguments)
    _print(out, reversed(table.history(arguments.limit)) if arguments.limit else [])
    following = table.version() + 1
    while arguments.follow:
        out.flush()
        infos = _since(table, following)
        _print(out, infos)
        following += len(infos)
        if not infos:
            time.sleep(arguments.interval)


def _since(table: "DeltaTable", version: int) -> list[dict[str, Any]]:
    """Returns the `commitInfo` of all commits from `version` on."""
    return [
        {**commit.info, "version": commit.version, "timestamp": commit.timestamp}
        for commit in table.commits(version)
    ]


def _print(out: Output, infos: Iterable[Mapping[str, Any]]) -> None:
    """Prints a line for each commit. The lines are not aligned as a table, because a later commit might need wider
    columns.
    """
    for info in infos:
        if out.is_for_people:
            number, when, operation, effect, engine = (visible(part or "") for part in _line(info))
            parts = [part for part in (operation, effect, engine) if part]
            out.lines([f"{out.style.bold(number)}  {when}  {'; '.join(parts)}"])
        else:
            out.object(info)


VERBS: dict[str, Verb] = {
    "history": Verb(
        _define_history,
        _history,
        ("deltalog history trips", "deltalog history trips -n 1 --json"),
        "With --json, each commit has all fields that its writer recorded, and times are milliseconds since 1970, as "
        "in the log.",
        has_arrow=True,
    ),
    "log": Verb(
        _define_log,
        _log,
        ("deltalog log trips", "deltalog log trips 0 --json"),
        "With --json, the actions have the same form as in the log.",
        has_arrow=True,
    ),
    "tail": Verb(
        _define_tail,
        _tail,
        ("deltalog tail trips", "deltalog tail trips -n 1 --json"),
        "With -f, the command runs until Ctrl-C. It fails if the table is replaced by another one, or if commits are "
        "cleaned up before they were read.",
    ),
}
