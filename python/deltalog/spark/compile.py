"""The Java sources of this package, compiled in the driver by Janino, the compiler that Spark ships for its generated code.

Only done once per JVM. The class files go into a jar in a temporary directory, which the driver's class loader and the executors get.
"""

import atexit
import shutil
import tempfile
import zipfile
from importlib import resources
from pathlib import Path
from typing import Any

PACKAGE = "io.deltalog.spark"
# Janino compiles one unit at a time against what is already loaded: a class stands after those it uses.
ORDER = (
    "DeltalogException",
    "Bridge",
    "CaseClass",
    "TableRoot",
    "MalformedVector",
    "RoaringForm",
    "DeletionVector",
    "FileFault",
    "VectorPlace",
    "RowSelection",
    "FileFacts",
    "PartitionFilter",
    "PackedValues",
    "PackedRoot",
    "PackedFile",
    "PackedFiles",
    "PackedListing",
    "FilterText",
    "SelectedVector",
    "VectorView",
    "ScanColumn",
    "NarrowDecimal",
    "NarrowNested",
    "ChangeType",
    "RowTracking",
    "ScanRows",
    "ScanReader",
    "PhysicalNames",
    "SnapshotFormat",
    "Listings",
    "DeltalogFileIndex",
    "ScanFileIndex",
    "DeltalogRelation",
    "LogAnswers",
    "AnswersFromLog",
    "WriteTarget",
    "DeltalogSource",
    "TableParquetFormat",
    "TableDefinition",
    "CatalogEntry",
    "DeltalogCatalog",
    "DeltalogCommandExec",
    "ScanPlan",
    "DeltalogStrategy",
)
SERVICE = "META-INF/services/org.apache.spark.sql.sources.DataSourceRegister"


def driver_loader(jvm: Any) -> Any:
    """The class loader that Spark's driver looks up names with; one that takes jars at run time."""
    return jvm.java.lang.Thread.currentThread().getContextClassLoader()


def is_loaded(jvm: Any) -> bool:
    """Whether an earlier session of this JVM has the classes already."""
    return driver_loader(jvm).getResource(f"{PACKAGE.replace('.', '/')}/{ORDER[-1]}.class") is not None


def load(jvm: Any, gateway: Any, spark_context: Any) -> None:
    """Compiles the sources and makes them known to the driver and the executors."""
    if is_loaded(jvm):
        return
    directory = Path(tempfile.mkdtemp(prefix="deltalog-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    jar = directory / "deltalog-spark.jar"
    _write_jar(jar, _compile(jvm, gateway, directory))
    driver_loader(jvm).addURL(jvm.java.io.File(str(jar)).toURI().toURL())
    spark_context._jsc.addJar(str(jar))


def _compile(jvm: Any, gateway: Any, directory: Path) -> dict[str, bytes]:
    base = driver_loader(jvm)
    urls = gateway.new_array(jvm.java.net.URL, 1)
    urls[0] = jvm.java.io.File(str(directory)).toURI().toURL()
    classes: dict[str, bytes] = {}
    sources = resources.files(__package__) / "java"
    for name in ORDER:
        compiler = jvm.org.codehaus.janino.SimpleCompiler()
        # A fresh loader each time: it must see the classes written since, and load no class before its file is there.
        compiler.setParentClassLoader(jvm.java.net.URLClassLoader(urls, base))
        compiler.cook(f"{name}.java", (sources / f"{name}.java").read_text("utf-8"))
        for entry in compiler.getBytecodes().entrySet():
            path = f"{entry.getKey().replace('.', '/')}.class"
            classes[path] = bytes(entry.getValue())
            target = directory / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(classes[path])
    return classes


def _write_jar(jar: Path, classes: dict[str, bytes]) -> None:
    with zipfile.ZipFile(jar, "w") as archive:
        for path, content in classes.items():
            archive.writestr(path, content)
        archive.writestr(SERVICE, f"{PACKAGE}.DeltalogSource\n")
