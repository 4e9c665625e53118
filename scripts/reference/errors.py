"""Makes the page of errors from the error classes and their docstrings."""

from __future__ import annotations

import inspect
import re

from deltalog import errors
from deltalog.cli.failures import code_of
from deltalog.spark.sql_states import sql_state
from scripts.reference.tables import markdown

__all__ = ["page"]

START = """\
# Errors, and what to do

Every error is a subclass of `deltalog.DeltaError`; each class calls for one kind of reaction. An error has the
attributes `table`, `version`, `path` and `line`, as far as they are known, a `hint` with advice, and a `reason` for
programs. Where Python has a standard exception for the case, the class is also a subclass of it. The command line ends
with the exit code in the table, and in Spark the error has the SQLSTATE.

This page is generated from the classes by `python -m scripts.reference`.

"""

TODO = "What to do: "
BASES = {"DeltaError", "DeltaProtocolError"}
"""Base classes. Only their subclasses are raised."""


def page() -> str:
    """Returns the page.

    Raises:
        ValueError: the docstring of a class does not say what to do.
    """
    classes = [getattr(errors, name) for name in errors.__all__ if name not in BASES]
    failures = [kind for kind in classes if not issubclass(kind, KeyboardInterrupt)]
    rows = [_row(kind) for kind in failures if not _is_conflict(kind)]
    interrupts = [(f"`{kind.__name__}`", _meaning(kind)) for kind in classes if kind not in failures]
    conflicts = [(f"`{kind.__name__}`", *_reasons(kind)) for kind in failures if _is_conflict(kind)]
    return (
        START
        + markdown(("error", "also a", "what happened", "what to do", "exit code", "SQLSTATE"), rows)
        + "## Conflicts\n\nThese subclasses of `CommitConflictError` have the names that the JVM connector uses. "
        + "Programs can also check `reason`.\n\n"
        + markdown(("error", "reason"), conflicts)
        + "## Ctrl-C\n\nA plain `KeyboardInterrupt` means that nothing was committed. The others are "
        + "subclasses of it.\n\n"
        + markdown(("error", "what happened"), interrupts)
    ).rstrip("\n") + "\n"


def _is_conflict(kind: type[BaseException]) -> bool:
    return issubclass(kind, errors.CommitConflictError) and kind is not errors.CommitConflictError


def _row(kind: type[BaseException]) -> tuple[str, ...]:
    paragraphs = _paragraphs(kind)
    advice = [text.removeprefix(TODO) for text in paragraphs if text.startswith(TODO)]
    if not advice:
        raise ValueError(f"the docstring of {kind.__name__} has no paragraph '{TODO}'")
    standard = [base.__name__ for base in kind.__bases__ if base.__module__ == "builtins"]
    error = kind("")
    return (
        f"`{kind.__name__}`",
        ", ".join(f"`{name}`" for name in standard),
        _meaning(kind),
        f"{advice[0][0].upper()}{advice[0][1:]}",
        str(code_of(error)),
        f"`{sql_state(error)}`",
    )


def _meaning(kind: type[BaseException]) -> str:
    return _paragraphs(kind)[0]


def _reasons(kind: type[BaseException]) -> tuple[str]:
    return (", ".join(re.findall(r"`\w+`", _meaning(kind))),)


def _paragraphs(kind: type[BaseException]) -> list[str]:
    return [" ".join(text.split()) for text in (inspect.getdoc(kind) or "").split("\n\n")]
