"""The command `deltalog`, for working with tables in a shell. `python -m deltalog` runs the same command.

- `catalog` lists the commands. `verbs` contains them, in one file for each group.
- `verb` defines what a command consists of. `output` and `layout` print results. `failures` has the exit codes.

Modules are imported only when they are needed, so that commands start fast. `deltalog --help` imports neither the
compiled module nor the rest of the package.
"""

import os
import sys
from collections.abc import Sequence

from deltalog.cli.catalog import GROUPS, SUMMARIES, verb_of
from deltalog.cli.failures import UsageError, report

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command, and returns its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = _run(given)
        sys.stdout.flush()
    except SystemExit as end:  # argparse has printed the help.
        return _closed() if not _flushed() else int(end.code or 0)
    except BrokenPipeError:
        return _closed()
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 (any error is reported as one line)
        _flushed()
        return report(error)
    return code


def _run(given: list[str]) -> int:
    # Names and values in a table may contain characters that the terminal's encoding cannot represent.
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
    if not given or given[0] in ("-h", "--help") or given == ["help"]:
        sys.stdout.write(overview())
        return 0
    if given[0] in ("-V", "--version"):
        from deltalog._internal import __version__

        sys.stdout.write(f"deltalog {__version__}\n")
        return 0
    name, *rest = given if given[0] != "help" else [given[1], "--help"]
    if name not in SUMMARIES:
        raise UsageError(f"there is no command {name!r}{_similar(name)}; see deltalog --help")
    from deltalog.cli.parsing import parser_of

    verb = verb_of(name)
    parsed = parser_of(name, verb).parse_args(rest)
    from deltalog.cli.output import Output
    from deltalog.cli.progress import messages

    with messages():
        return verb.run(parsed, Output(parsed.form)) or 0


def overview() -> str:
    """Returns the text that `deltalog --help` prints."""
    lines = ["usage: deltalog COMMAND [ARGUMENTS]", "", "Delta tables from the command line."]
    for title, verbs in GROUPS.items():
        lines += ["", f"{title}:", *(f"  {name:<13} {summary}" for name, (_, summary) in verbs.items())]
    lines += ["", "deltalog COMMAND --help explains a command, with examples.", ""]
    return "\n".join(lines)


def _similar(name: str) -> str:
    from difflib import get_close_matches

    found = get_close_matches(name, SUMMARIES, n=1)
    return f": did you mean {found[0]}?" if found else ""


def _flushed() -> bool:
    """Flushes standard output. Returns False if its reader has closed the pipe."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        return False
    return True


def _closed() -> int:
    """Returns the exit code for a closed pipe.

    Also redirects standard output to the null device. Otherwise Python would fail when it flushes the output at exit.
    """
    from deltalog.cli.failures import CLOSED

    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, sys.stdout.fileno())
    os.close(nothing)
    return CLOSED
