"""The name `delta` for the format `deltalog`, in a JVM without the JVM connector."""

import tempfile
import zipfile
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError

from deltalog._internal import InvalidArgumentError
from deltalog.spark.jvm.compile import PACKAGE, SERVICE, driver_loader
from deltalog.spark.jvm.gateway import Jvm

NAME = "delta"
# The catalog that notebooks set for the JVM connector. The class exists only with the connector.
CONNECTORS_CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
_ALIAS = f"{PACKAGE}.DeltaAlias"


def check(jvm: Jvm, session: Any) -> None:
    """Raises an error if another source has the name."""
    registered = _registered(jvm, session)
    if registered not in (None, _ALIAS):
        raise taken(f"is {registered} in this session, from")


def taken(owner: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"alias_delta=True is not possible: the format delta {owner} the JVM connector or another package; "
        "omit alias_delta, or remove the jar of that package"
    )


def add(jvm: Jvm, session: Any) -> None:
    """Makes `delta` another name of the format `deltalog`, after `check`. Further calls have no effect."""
    if _registered(jvm, session) is None:
        directory = Path(tempfile.mkdtemp(prefix="deltalog-"))
        jar = directory / "deltalog-alias.jar"
        for created in (directory, jar):  # The JVM deletes them in reverse order when it exits.
            jvm.java("java.io.File")(str(created)).deleteOnExit()
        with zipfile.ZipFile(jar, "w") as archive:
            archive.writestr(SERVICE, f"{_ALIAS}\n")
        driver_loader(jvm.root).addURL(jvm.java("java.io.File")(str(jar)).toURI().toURL())
    jvm.static("DeltaAlias", "enable")


def _registered(jvm: Jvm, session: Any) -> str | None:
    """Returns the class that Spark finds for the name, or None."""
    sources = jvm.java("org.apache.spark.sql.execution.datasources.DataSource")
    try:
        return str(sources.lookupDataSource(NAME, session.sessionState().conf()).getName())
    except Py4JJavaError as error:
        if "DATA_SOURCE_NOT_FOUND" in str(error.java_exception.getMessage()):
            return None
        raise
