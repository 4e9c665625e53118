"""Reports errors of commands: an exit code for each kind of error, and one line that states what failed."""

import os
import sys

from deltalog.escape import visible

__all__ = ["CODES", "EXPLAINED", "UsageError", "code_of", "report"]

FOUND, USAGE, UNEXPECTED, INTERRUPTED, CLOSED = 1, 2, 70, 130, 141

EXPLAINED: dict[int, str] = {
    0: "the command succeeded",
    FOUND: "`check` found a problem",
    USAGE: "an argument is wrong",
    3: "there is no such table, version or file",
    4: "another writer changed the table at the same time, and nothing was committed",
    5: "the table or the command needs something that deltalog does not support, or that is not installed",
    6: "the log or a data file is damaged, or a file that the table needs is missing",
    7: "the store did not answer, or a local file could not be read or written",
    8: "the store refused access",
    9: "the table already exists",
    10: "rows or columns do not match the schema of the table",
    11: "it is unknown whether the commit was made, or a step after the commit failed: the message says what to check",
    UNEXPECTED: "an unexpected error, which is a defect of deltalog",
    INTERRUPTED: "the command was interrupted by Ctrl-C; the message says whether something was committed",
    CLOSED: "the program that reads the output closed the pipe",
}
"""What each exit code means."""

CODES: dict[str, int] = {
    "UsageError": USAGE,
    "InvalidArgumentError": USAGE,
    "NotATableError": 3,
    "VersionNotFoundError": 3,
    "CommitConflictError": 4,
    "TableReplacedError": 4,
    "UnsupportedFeatureError": 5,
    "ExtraRequiredError": 5,
    "CorruptLogError": 6,
    "CorruptDataError": 6,
    "MissingFileError": 6,
    "UnavailableError": 7,
    "AccessDeniedError": 8,
    "TableAlreadyExistsError": 9,
    "SchemaMismatchError": 10,
    "CommitStateUnknownError": 11,
    "AfterCommitError": 11,
    "InternalError": UNEXPECTED,
    "KeyboardInterrupt": INTERRUPTED,
    "BrokenPipeError": CLOSED,
    "FileNotFoundError": 3,
    "OSError": 7,
}
"""The exit codes for classes of errors and their subclasses. The classes are given by name, so that they need not be
imported.
"""


class UsageError(Exception):
    """The command line is wrong."""


def code_of(error: BaseException) -> int:
    """Returns the exit code of the error's class, or else of its nearest parent class that has one."""
    for kind in type(error).__mro__:
        if kind.__name__ in CODES:
            return CODES[kind.__name__]
    return UNEXPECTED


def report(error: BaseException) -> int:
    """Prints one line that states what failed, and returns the exit code."""
    code = code_of(error)
    if code == CLOSED:
        return code
    if os.environ.get("DELTALOG_TRACEBACK"):
        import traceback

        traceback.print_exception(error)
        return code
    text = " ".join(visible(line) for line in str(error).splitlines() if line.strip())
    if code == INTERRUPTED:
        text = text or "interrupted: nothing was committed"
    elif code == UNEXPECTED and type(error).__name__ != "InternalError":
        where = "please report it (DELTALOG_TRACEBACK=1 shows where it is)"
        text = f"a defect of deltalog, {type(error).__name__}: {text}; {where}"
    sys.stderr.write(f"error: {text or type(error).__name__}\n")
    return code
