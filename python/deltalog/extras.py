"""Imports optional libraries, and names the commands that install them."""

import importlib
from types import ModuleType

from deltalog.errors import DeltaError

__all__ = ["ExtraRequiredError", "required"]


class ExtraRequiredError(DeltaError, ImportError):
    """An optional library that a function needs is not installed, or is too old."""


def required(module: str, what: str, install: str) -> ModuleType:
    """Imports an optional library, which the function `what` needs.

    Raises:
        ExtraRequiredError: it is not installed; the message has the command that installs it.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != module.partition(".")[0]:
            raise
        missing = ExtraRequiredError(
            f"{what} needs {module.partition('.')[0]}, which is not installed: {install}"
        )
        missing.hint = install
        raise missing from error
