"""The jars with this package's Java classes: one for each minor release of Spark, made when the wheel was built.

The driver loads the classes through a class loader that all its threads share (`DriverClasses.java`). The executors
of each Spark context receive the jar through `addJar` (`ExecutorJar.java`).
"""

import functools
import re
import zipfile
from pathlib import Path
from typing import Any

from deltalog._internal import UnsupportedFeatureError
from deltalog.caller import warn_caller

# The package has the same name in every version, because settings of sessions contain names of its classes.
PACKAGE = "io.deltalog.spark"
SOURCE = f"{PACKAGE}.DeltalogSource"
_MARKER = "META-INF/deltalog-spark-version"
# The feature group that all others need (`FeatureGroup.java`).
_READ = "read"
_DIRECTORY = Path(__file__).parent.parent / "jars"


class ClassesError(Exception):
    """Raised if no jar fits this build of Spark."""


def _releases() -> dict[tuple[int, int], Path]:
    """Returns the jars by the minor releases of Spark, the oldest first."""
    found = {}
    for jar in _DIRECTORY.glob("deltalog-spark-*.jar"):
        major, minor = jar.stem.removeprefix("deltalog-spark-").split(".")
        found[int(major), int(minor)] = jar
    if not found:
        raise ClassesError(
            "this installation of deltalog lacks its Java classes, as one from a checkout does; install a wheel, "
            "which `make wheel` builds"
        )
    return dict(sorted(found.items()))


def _newest() -> Path:
    *_, newest = _releases().values()
    return newest


@functools.lru_cache(maxsize=1)
def driver_classes(gateway: Any) -> Any:
    """Returns the `DriverClasses` object of a JVM. Python uses it to find classes in the driver, and to add a jar.

    Each JVM has only one such object, because py4j confuses classes with the same name. If the driver has already
    loaded this package's classes, its copy is used, because a sidecar may have used that copy in the same thread.
    Raises `ClassesError` if there are no jars.
    """
    own_version()
    jvm = gateway.jvm
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    if loader is None or loader.getResource(_MARKER) is None:
        jars = gateway.new_array(jvm.java.net.URL, 1)
        jars[0] = jvm.java.io.File(str(_newest())).toURI().toURL()
        loader = jvm.java.net.URLClassLoader(jars, None)
    return loader.loadClass(f"{PACKAGE}.DriverClasses").newInstance()


@functools.cache
def own_version() -> str:
    """Returns the version of the jars when this process first read it. An upgrade may have replaced the jars since."""
    with zipfile.ZipFile(_newest()) as jar:
        return jar.read(_MARKER).decode()


def load(classes: Any, spark_version: str) -> str:
    """Loads the classes into the driver if necessary, and returns the path of their jar.

    Raises `ClassesError` if no jar fits this Spark, and `UnsupportedFeatureError` if the JVM has the classes of another
    version of this package.
    """
    found, own = classes.version(), own_version()
    if found is None:
        if not classes.canBeAdded():
            raise ClassesError("a class loader of the driver to which jars can be added is missing")
        return str(classes.add(_fitting(classes, spark_version)))
    if found != own:
        raise UnsupportedFeatureError(
            f"the JVM of this session has the Java classes of deltalog {found}, but Python has deltalog {own}: "
            "restart the JVM (end the application or restart the notebook's cluster), and then call enable again"
        )
    jar = str(classes.jar())
    if classes.type("DeltalogSource") is None:  # `DriverClasses` knows which feature groups are incomplete.
        raise ClassesError(f"missing: {_lost(classes, jar)[_READ]}")
    return jar


def _lost(classes: Any, jar: str) -> dict[str, str]:
    """Returns, for each feature group that cannot be used, the symbols that this build of Spark lacks."""
    return dict(line.split(": ", 1) for line in str(classes.missing(jar)).splitlines())


def _fitting(classes: Any, spark_version: str) -> str:
    """Returns the jar for the minor release of Spark if it fits, or else the newest jar if it fits.

    The JVM checks whether a jar fits, because this build of Spark, such as a newer patch release, may differ from the
    one for which the jar was compiled. If neither jar fits completely, a jar that supports reading is accepted, and a
    warning names the missing symbols.
    """
    jars, newest = _releases(), _newest()
    own = jars.get(_minor(spark_version), newest)
    lost: dict[Path, dict[str, str]] = {}
    for jar in dict.fromkeys((own, newest)):
        lost[jar] = _lost(classes, str(jar))
        if not lost[jar]:
            return str(jar)
    for jar, groups in lost.items():
        if _READ not in groups:
            _warn(spark_version, groups)
            return str(jar)
    raise ClassesError(f"missing: {lost[own][_READ]}")


def _warn(spark_version: str, lost: dict[str, str]) -> None:
    """Warns that the statements of some feature groups are refused, and names the symbols that are missing."""
    named = "; ".join(f"{group}, for which {symbols} is missing" for group, symbols in lost.items())
    warn_caller(
        f"this build of Spark {spark_version} lacks symbols that some feature groups of deltalog need; their "
        f"statements are refused: {named}",
        RuntimeWarning,
    )


def jar_of(spark_version: str) -> Path:
    """Returns the jar for a version of Spark. Raises `ClassesError` if there is none for its minor release."""
    jars = _releases()
    found = jars.get(_minor(spark_version))
    if found is None:
        known = ", ".join(f"{major}.{minor}" for major, minor in jars)
        raise ClassesError(
            f"this installation of deltalog has no jar for Spark {spark_version}, only for {known}"
        )
    return found


def _minor(version: str) -> tuple[int, int]:
    """Returns the two numbers of a minor release, such as (4, 2); zeros if the string is not a version."""
    numbers = re.match(r"(\d+)\.(\d+)", version)
    return (int(numbers[1]), int(numbers[2])) if numbers else (0, 0)
