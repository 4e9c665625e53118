"""The settings that a Spark session needs to start with deltalog: the jar and the extensions."""

import atexit
import functools
import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any, TypeVar

import pyspark

from deltalog.spark.errors import InvalidArgumentError, UnsupportedFeatureError
from deltalog.spark.exceptions import raises_pyspark_errors
from deltalog.spark.jvm import alias
from deltalog.spark.jvm.jars import PACKAGE, ClassesError, jar_of
from deltalog.spark.session import enable

JARS = "spark.jars"
EXTENSIONS = "spark.sql.extensions"
OURS = f"{PACKAGE}.DeltalogExtensions"
OF_CONNECTOR = "io.delta.sql.DeltaSparkSessionExtension"

# A line of a Java properties file that is not a comment. Its groups are the name and the value.
_ENTRY = re.compile(r"\s*(?![#!])((?:\\.|[^\\\s=:])+)(?:\s*[=:]\s*|\s+)(.*)")

_Builder = TypeVar("_Builder")


@raises_pyspark_errors
def configure(builder: _Builder, *, alias_delta: bool | None = None) -> _Builder:
    """Adds deltalog to the session that `builder` creates, and to all sessions of its application; returns `builder`.

    Adds a copy of the jar to `spark.jars`, and the extensions to `spark.sql.extensions`, in addition to the values from
    the builder and `spark-defaults.conf`. There is no need to call `enable` as well. Later calls have no effect. If the
    builder creates a Spark Connect session, no settings are added, because the server has its own settings; instead,
    `enable` is called for the session. `alias_delta` has the same meaning as in `enable`: whether the format is also
    called `delta`.

    ```python
    spark = deltalog.spark.configure(SparkSession.builder).getOrCreate()
    ```

    Raises:
        UnsupportedFeatureError: there is no jar for this release of Spark.
        InvalidArgumentError: `spark.sql.extensions` has the extension of the JVM connector.
    """
    chosen: Any = builder
    if getattr(chosen.getOrCreate, "_deltalog", False):
        return builder
    if not _is_connect(chosen._options):
        defaults = _defaults()
        given = {name: str(chosen._options.get(name, defaults.get(name, ""))) for name in (JARS, EXTENSIONS)}
        _check_extensions(given[EXTENSIONS])
        chosen.config(JARS, _with_jar(given[JARS]))
        chosen.config(EXTENSIONS, _with(given[EXTENSIONS], OURS))
        if alias_delta is not None:
            chosen.config(alias.SETTING, str(alias_delta).lower())
    chosen.getOrCreate = _enabling(chosen.getOrCreate, alias_delta)
    return builder


@raises_pyspark_errors
def jar(spark: str | None = None) -> str:
    """Returns the path of the jar for a minor release of Spark, such as `4.2`; by default for PySpark's release.

    Raises `UnsupportedFeatureError` if there is none.
    """
    try:
        return str(jar_of(pyspark.__version__ if spark is None else spark))
    except ClassesError as error:
        raise UnsupportedFeatureError(str(error)) from None


def _enabling(make: Any, alias_delta: bool | None) -> Any:
    """Wraps the builder's method that creates the session, so that it also calls `enable` for the session."""

    @functools.wraps(make)
    def made() -> Any:
        return enable(make(), alias_delta=alias_delta)

    made._deltalog = True  # type: ignore[attr-defined]
    return made


def _items(given: str) -> list[str]:
    return [item for item in map(str.strip, given.split(",")) if item]


def _with(given: str, ours: str) -> str:
    """Adds `ours` to the end of a comma-separated list, unless the list contains it."""
    items = _items(given)
    return ",".join(items if ours in items else [*items, ours])


def _with_jar(given: str) -> str:
    """Adds a copy of deltalog's jar to a comma-separated list of jars, unless the list contains the jar itself."""
    wheel = jar()
    return _with(given, wheel if wheel in _items(given) else _copy(wheel))


@functools.cache
def _copy(wheel: str) -> str:
    """Returns the path of a copy of the jar, which is kept until this process ends.

    The JVM needs the jar as long as it runs, and new executors can request it at any time. The copy is still there
    after an upgrade of deltalog has removed the original jar.
    """
    directory = tempfile.mkdtemp(prefix="deltalog-")
    atexit.register(_remove, directory, os.getpid())
    return shutil.copy(wheel, directory)


def _remove(directory: str, owner: int) -> None:
    """Removes the copy of the jar, unless this process was forked from the process that made the copy."""
    if os.getpid() == owner:
        shutil.rmtree(directory, ignore_errors=True)


def _check_extensions(given: str) -> None:
    if OF_CONNECTOR in map(str.strip, given.split(",")):
        raise InvalidArgumentError(
            f"{EXTENSIONS} has {OF_CONNECTOR}, the extension of the JVM connector, which cannot be in one session "
            "with deltalog's: remove one of them"
        )


def _is_connect(options: dict[str, Any]) -> bool:
    mode = str(options.get("spark.api.mode", os.environ.get("SPARK_API_MODE", "classic"))).lower()
    return mode == "connect" or "spark.remote" in options or "SPARK_REMOTE" in os.environ


def _defaults() -> dict[str, str]:
    """Returns the settings of `spark-defaults.conf`. Spark ignores the file for settings that the builder has."""
    home = os.environ.get("SPARK_HOME", str(Path(pyspark.__file__).parent))
    file = Path(os.environ.get("SPARK_CONF_DIR", Path(home, "conf")), "spark-defaults.conf")
    return _properties(file.read_text("utf-8")) if file.is_file() else {}


def _properties(text: str) -> dict[str, str]:
    """Returns the entries of a file of Java properties, with values trimmed as Spark trims them.

    A name ends at the first white space, equals sign or colon. A backslash at the end of a line continues the line;
    elsewhere it escapes the next character.
    """
    joined = re.sub(r"(?<!\\)((?:\\\\)*)\\\n[ \t]*", r"\1", text)
    entries = {}
    for line in joined.splitlines():
        found = _ENTRY.fullmatch(line)
        if found is not None:
            name, value = (re.sub(r"\\(.)", r"\1", part) for part in found.groups())
            entries[name] = value.strip()
    return entries
