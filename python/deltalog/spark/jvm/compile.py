"""Compilation of this package's Java sources in the driver, by Janino.

Spark contains this compiler for its generated code. The sources are compiled once per JVM, into a jar that the JVM
deletes when it exits. The driver loads the classes through a class loader that all its threads share. The
executors of each Spark context receive the jar through `addJar`.
"""

import functools
import hashlib
import re
import tempfile
import zipfile
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from deltalog._internal import UnsupportedFeatureError, __version__

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

_SOURCE_PACKAGE = "io.deltalog.spark"
# The name contains the version, so that classes of different versions are never confused.
PACKAGE = f"{_SOURCE_PACKAGE}.v{re.sub('[^0-9A-Za-z]', '_', __version__)}"
SOURCE = f"{PACKAGE}.DeltalogSource"
_EXTENSIONS = f"{PACKAGE}.DeltalogExtensions"
_EXTENSIONS_SERVICE = "META-INF/services/org.apache.spark.sql.SparkSessionExtensionsProvider"
SERVICE = "META-INF/services/org.apache.spark.sql.sources.DataSourceRegister"
# Sources that only some Spark releases can compile, and the method that these have, with its class.
_CATALOG = "org.apache.spark.sql.connector.catalog"
_NEEDS = {
    "TableInfoCatalog.java": (f"{_CATALOG}.TableInfo", "constraints"),
    "TableLikeCatalog.java": (f"{_CATALOG}.TableCatalog", "createTableLike"),
}
# The path is the same in every version, so that other versions are detected.
_MARKER = "META-INF/deltalog-spark-version"


class ClassesError(Exception):
    """The sources do not compile with this Spark release."""


def driver_loader(jvm: Any) -> Any:
    """Returns the outermost class loader to which jars can be added.

    `ADD JAR` gives the calling thread a child of this loader, which other threads do not use.
    """
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    outermost = loader
    while loader is not None:
        if takes_jars(loader):
            outermost = loader
        loader = loader.getParent()
    return outermost


def takes_jars(loader: Any) -> bool:
    """Returns whether jars can be added to a class loader."""
    # Most loaders are not of this kind, and to list the methods of one takes a round trip for each.
    if not loader.getClass().forName("java.net.URLClassLoader").isInstance(loader):
        return False
    return any(method.getName() == "addURL" for method in loader.getClass().getMethods())


def load(jvm: Any, gateway: Any) -> str:
    """Loads the classes into the driver if necessary, and returns the path of their jar.

    Raises `ClassesError` if they do not compile, and `UnsupportedFeatureError` if the JVM has the classes of another
    version of this package.
    """
    loader = driver_loader(jvm)
    marker = loader.getResource(_MARKER)
    if marker is not None:
        return _jar_of(marker)
    # The name of the temporary directory distinguishes the jar from those of other JVMs on the executors.
    directory = Path(tempfile.mkdtemp(prefix="deltalog-"))
    jar = directory / f"deltalog-spark-{__version__}-{directory.name.removeprefix('deltalog-')}.jar"
    for created in (directory, jar):  # The JVM deletes them in reverse order when it exits.
        jvm.java.io.File(str(created)).deleteOnExit()
    _write_jar(jar, _compile(jvm, gateway, loader))
    loader.addURL(jvm.java.io.File(str(jar)).toURI().toURL())
    return str(jar)


def give_to_executors(spark_context: Any, jar: str) -> None:
    """Adds the jar to a Spark context, unless it already has the jar."""
    jars = spark_context._jsc.sc().listJars()
    if not any(str(jars.apply(index)).endswith(f"/{Path(jar).name}") for index in range(jars.size())):
        spark_context._jsc.addJar(jar)


def _jar_of(marker: Any) -> str:
    """Returns the path of the jar with the marker.

    Raises `UnsupportedFeatureError` if the jar belongs to another version.
    """
    stream = marker.openStream()
    try:
        found = bytes(stream.readAllBytes()).decode()
    finally:
        stream.close()
    if found != stamp():
        raise UnsupportedFeatureError(
            f"the JVM of this session has the Java classes of deltalog {found}, but Python has deltalog {stamp()}: "
            "restart the JVM (end the application or restart the notebook's cluster), and then call enable again"
        )
    return unquote(urlsplit(str(marker.getPath())).path.partition("!")[0])


def _compile(jvm: Any, gateway: Any, loader: Any) -> dict[str, bytes]:
    """Compiles all sources together; returns the class files by their paths."""
    from py4j.protocol import Py4JJavaError

    resource = jvm.org.codehaus.commons.compiler.util.resource
    sources = {name: text for name, text in _sources().items() if _has(jvm, loader, _NEEDS.get(name))}
    units = gateway.new_array(resource.Resource, len(sources))
    for index, (name, text) in enumerate(sources.items()):
        units[index] = resource.StringResource(name, text)
    compiled = resource.MapResourceCreator()
    compiler = jvm.org.codehaus.janino.Compiler()
    compiler.setIClassLoader(jvm.org.codehaus.janino.ClassLoaderIClassLoader(loader))
    compiler.setClassFileCreator(compiled)
    try:
        compiler.compile(units)
    except Py4JJavaError as error:
        raise ClassesError(str(error.java_exception.getMessage())) from error
    return {str(entry.getKey()): bytes(entry.getValue()) for entry in compiled.getMap().entrySet()}


def _has(jvm: Any, loader: Any, need: tuple[str, str] | None) -> bool:
    """Returns whether there is a class with the method, or nothing is asked for."""
    if need is None:
        return True
    name, method = need
    if loader.getResource(f"{name.replace('.', '/')}.class") is None:
        return False
    found = jvm.java.lang.Class.forName(name, False, loader).getMethods()
    return any(candidate.getName() == method for candidate in found)


def _sources() -> dict[str, str]:
    """Returns the text of each Java file, with the package name of this version."""
    texts = {file.name: file.read_text("utf-8") for file in _files()}
    statement = f"package {_SOURCE_PACKAGE};"
    sources = {name: text.replace(statement, f"package {PACKAGE};", 1) for name, text in texts.items()}
    version = (
        f'package {PACKAGE};\npublic class Version {{ public static final String WHEEL = "{__version__}"; }}'
    )
    return {**sources, "Version.java": version}


def _files() -> "list[Traversable]":
    """Returns the Java files. They are grouped in folders, but all belong to one package."""
    folders = (resources.files("deltalog.spark") / "java").iterdir()
    files = [file for folder in folders if folder.is_dir() for file in folder.iterdir()]
    return sorted((file for file in files if file.name.endswith(".java")), key=lambda file: file.name)


@functools.cache
def stamp() -> str:
    """Returns the version, with a digest that distinguishes development versions."""
    digest = hashlib.sha256()
    for file in _files():
        digest.update(file.read_bytes())
    return f"{__version__} ({digest.hexdigest()[:12]})"


def _write_jar(jar: Path, classes: dict[str, bytes]) -> None:
    with zipfile.ZipFile(jar, "w") as archive:
        for path, content in classes.items():
            archive.writestr(path, content)
        archive.writestr(SERVICE, f"{SOURCE}\n")
        archive.writestr(_EXTENSIONS_SERVICE, f"{_EXTENSIONS}\n")
        archive.writestr(_MARKER, stamp())
