"""Imports optional libraries, and names the commands that install them."""

import importlib
from types import ModuleType

from deltalog.errors import DeltaError

__all__ = ["ExtraRequiredError", "missing_extra", "required"]


class ExtraRequiredError(DeltaError, ImportError):
    """An optional library that a function needs is not installed or is too old, or a package that the library itself
    needs is missing.
    """


def required(module: str, what: str, install: str) -> ModuleType:
    """Imports an optional library, which the function `what` needs.

    Raises:
        ExtraRequiredError: it cannot be imported; the message has the command that installs it.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        library = module.partition(".")[0]
        if error.name == library:
            problem = f"{library}, which is not installed"
        elif f"{module}.".startswith(f"{error.name}."):
            problem = f"{error.name}, which the installed {library} does not have"
        else:
            reason, *_ = str(error).splitlines()
            problem = f"{library}, which cannot be imported ({reason})"
        raise missing_extra(f"{what} needs {problem}", install) from error


def missing_extra(problem: str, install: str) -> ExtraRequiredError:
    """Returns an error whose message and hint have the command that installs what is missing."""
    missing = ExtraRequiredError(f"{problem}: {install}")
    missing.hint = install
    return missing
