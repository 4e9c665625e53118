"""The name `delta` for the format `deltalog`, in a JVM without the JVM connector."""

import tempfile
import zipfile
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError

from deltalog._internal import InvalidArgumentError
from deltalog.spark.jvm.gateway import Jvm
from deltalog.spark.jvm.jars import PACKAGE, SERVICE

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
        with tempfile.TemporaryDirectory(prefix="deltalog-") as directory:
            jar = Path(directory, "deltalog-alias.jar")
            with zipfile.ZipFile(jar, "w") as archive:
                archive.writestr(SERVICE, f"{_ALIAS}\n")
            jvm.classes.add(str(jar))
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
