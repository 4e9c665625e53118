"""Copies of the jars of this installation, changed on purpose."""

import zipfile
from pathlib import Path

import pyspark

from deltalog.spark.jvm import jars

MARKER = "META-INF/deltalog-spark-version"
BUILD = "META-INF/deltalog-spark-build"
SYMBOLS = "META-INF/deltalog-spark-symbols"


def release() -> str:
    """Returns the minor release of the PySpark of these tests."""
    return ".".join(pyspark.__version__.split(".")[:2])


def of_this_spark() -> Path:
    """Returns the jar for the PySpark of these tests."""
    return Path(jars.__file__).parent.parent / "jars" / f"deltalog-spark-{release()}.jar"


def changed(directory: Path, name: str, **texts: str) -> Path:
    """Returns a copy of that jar with other texts in the files that the constants of this module name."""
    copy = directory / name
    files = {globals()[constant]: text for constant, text in texts.items()}
    directory.mkdir(exist_ok=True)
    with zipfile.ZipFile(of_this_spark()) as given, zipfile.ZipFile(copy, "w") as made:
        for entry in given.namelist():
            made.writestr(entry, files.get(entry, given.read(entry)))
    return copy


def text(name: str) -> str:
    """Returns the text of a file in that jar."""
    with zipfile.ZipFile(of_this_spark()) as jar:
        return jar.read(name).decode()
