"""The Java sources of this package, compiled in the driver by Janino, the compiler that Spark ships for its generated code.

Only done once per JVM. The class files go into a jar in a temporary directory, which the driver's class
loader and the executors get.
"""

import atexit
import shutil
import tempfile
import zipfile
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

PACKAGE = "io.deltalog.spark"
SOURCE = f"{PACKAGE}.DeltalogSource"
SERVICE = "META-INF/services/org.apache.spark.sql.sources.DataSourceRegister"


def driver_loader(jvm: Any) -> Any:
    """The class loader that Spark's driver looks up names with; one that takes jars at run time."""
    return jvm.java.lang.Thread.currentThread().getContextClassLoader()


def is_loaded(jvm: Any) -> bool:
    """Whether an earlier session of this JVM has the classes already."""
    return driver_loader(jvm).getResource(f"{SOURCE.replace('.', '/')}.class") is not None


def load(jvm: Any, gateway: Any, spark_context: Any) -> None:
    """Compiles the sources and makes them known to the driver and the executors."""
    if is_loaded(jvm):
        return
    directory = Path(tempfile.mkdtemp(prefix="deltalog-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    jar = directory / "deltalog-spark.jar"
    _write_jar(jar, _compile(jvm, gateway))
    driver_loader(jvm).addURL(jvm.java.io.File(str(jar)).toURI().toURL())
    spark_context._jsc.addJar(str(jar))


def _compile(jvm: Any, gateway: Any) -> dict[str, bytes]:
    """The class files of all sources, which may use each other, by their paths."""
    resource = jvm.org.codehaus.commons.compiler.util.resource
    sources = _sources()
    units = gateway.new_array(resource.Resource, len(sources))
    for index, source in enumerate(sources):
        units[index] = resource.StringResource(source.name, source.read_text("utf-8"))
    compiled = resource.MapResourceCreator()
    compiler = jvm.org.codehaus.janino.Compiler()
    compiler.setIClassLoader(jvm.org.codehaus.janino.ClassLoaderIClassLoader(driver_loader(jvm)))
    compiler.setClassFileCreator(compiled)
    compiler.compile(units)
    return {str(entry.getKey()): bytes(entry.getValue()) for entry in compiled.getMap().entrySet()}


def _sources() -> "list[Traversable]":
    """The Java files, which are grouped in folders; all are of one package."""
    folders = (resources.files("deltalog.spark") / "java").iterdir()
    return [
        source
        for folder in folders
        if folder.is_dir()
        for source in folder.iterdir()
        if source.name.endswith(".java")
    ]


def _write_jar(jar: Path, classes: dict[str, bytes]) -> None:
    with zipfile.ZipFile(jar, "w") as archive:
        for path, content in classes.items():
            archive.writestr(path, content)
        archive.writestr(SERVICE, f"{SOURCE}\n")
