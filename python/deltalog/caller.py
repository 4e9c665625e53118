"""Warnings that name the line of the user's code."""

import os
import sys
import warnings
from pathlib import Path

__all__ = ["warn_caller"]

_PACKAGE = str(Path(__file__).parent) + os.sep


def warn_caller(message: str, category: type[Warning]) -> None:
    """Warns at the innermost line outside of this package, no matter how many decorators and helpers are in between."""
    level = 1
    frame = sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
