"""The software that this package requires, with the commands that install it."""

import functools
import importlib
import os
import shutil
from pathlib import Path
from typing import Any

from deltalog.errors import DeltaError

MINIMUM = (4, 0)
INSTALL = "pip install 'pyspark>=4'"
INSTALL_JAVA = (
    "apt-get install openjdk-17-jre-headless (Debian, Ubuntu), brew install openjdk@17 (macOS) or "
    "conda install openjdk=17"
)


class PySparkRequiredError(DeltaError, ImportError):
    """PySpark is not installed, or PySpark or the server is too old."""

    hint = INSTALL


class JavaRequiredError(DeltaError, RuntimeError):
    """Spark cannot start, because Java is not installed."""

    hint = INSTALL_JAVA


def require_pyspark() -> None:
    """Raises `PySparkRequiredError` unless PySpark 4 or newer can be imported."""
    try:
        from pyspark import __version__
    except ImportError as error:
        raise PySparkRequiredError(
            f"deltalog.spark needs PySpark, which is not installed: {INSTALL}"
        ) from error
    if _parts(__version__) < MINIMUM:
        raise PySparkRequiredError(
            f"deltalog.spark needs PySpark 4 or newer, but {__version__} is installed: {INSTALL}"
        )


def require_server(version: str) -> None:
    """Raises `PySparkRequiredError` unless the session's server is Spark 4 or newer.

    A Connect server may be older than its client.
    """
    if _parts(version) < MINIMUM:
        raise PySparkRequiredError(
            f"deltalog.spark needs Spark 4 or newer, but the session's server is {version}: {INSTALL} there"
        )


def explain_missing_java() -> None:
    """Makes PySpark raise `JavaRequiredError` if it cannot start because Java is missing.

    Otherwise, PySpark starts as before. Later calls have no effect.
    """
    try:
        context: Any = importlib.import_module("pyspark.core.context")
    except ImportError:  # The package is only the Connect client, which does not need Java.
        return
    launch = context.launch_gateway
    if hasattr(launch, "_deltalog"):
        return

    @functools.wraps(launch)
    def launch_gateway(*arguments: Any, **named: Any) -> Any:
        try:
            return launch(*arguments, **named)
        except Exception as error:
            problem = java_problem()
            if problem is None:
                raise
            raise JavaRequiredError(
                f"Spark cannot start: {problem}. Install Java 17 or newer: {INSTALL_JAVA}"
            ) from error

    launch_gateway._deltalog = True  # type: ignore[attr-defined]
    context.launch_gateway = launch_gateway


def java_problem() -> str | None:
    """Returns the reason why Spark's start script cannot find Java; None if it can."""
    home = os.environ.get("JAVA_HOME")
    if home and not Path(home, "bin", "java").is_file():
        return f"JAVA_HOME is {home}, which has no bin/java"
    return None if home or shutil.which("java") else "there is no java on the PATH, and JAVA_HOME is not set"


def _parts(version: str) -> tuple[int, int]:
    major, minor = [*version.split("."), "0"][:2]
    return int(major), int(minor)
