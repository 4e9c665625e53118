"""Makes modified copies of deltalog's jars."""

import struct
import zipfile
from pathlib import Path

import pyspark

from deltalog.spark.jvm import jars
from scripts.class_symbols import constants, read

MARKER = "META-INF/deltalog-spark-version"
BUILD = "META-INF/deltalog-spark-build"
SYMBOLS = "META-INF/deltalog-spark-symbols"
_FINAL, _ABSTRACT = 0x0010, 0x0400  # Access flags of a class file.


def release() -> str:
    """Returns the minor release of the PySpark of these tests."""
    return ".".join(pyspark.__version__.split(".")[:2])


def of_this_spark() -> Path:
    """Returns deltalog's jar for the PySpark release of these tests."""
    return Path(jars.__file__).parent.parent / "jars" / f"deltalog-spark-{release()}.jar"


def changed(directory: Path, name: str, **texts: str) -> Path:
    """Returns a copy of the jar with new content for some of its files. Each keyword of `texts` is a constant of this
    module that names a file, such as `BUILD`.
    """
    copy = directory / name
    files = {globals()[constant]: text for constant, text in texts.items()}
    directory.mkdir(exist_ok=True)
    with zipfile.ZipFile(of_this_spark()) as given, zipfile.ZipFile(copy, "w") as made:
        for entry in given.namelist():
            made.writestr(entry, files.get(entry, given.read(entry)))
    return copy


def text(name: str) -> str:
    """Returns the text of a file in the jar."""
    with zipfile.ZipFile(of_this_spark()) as jar:
        return jar.read(name).decode()


def without_groups(directory: Path, lost: dict[str, str]) -> Path:
    """Returns a copy of the jar in which some groups of features need classes that do not exist.

    Classes that only these groups need are replaced with classes without members, so that any use of them fails.
    """
    listed, group = text(SYMBOLS), ""
    groups: dict[str, set[str]] = {}
    for line in listed.splitlines():
        kind, name = line.split(" ", 1)
        if kind == "group":
            group = name
        elif kind == "own":
            groups.setdefault(name, set()).add(group)
    added = "".join(f"group {name}\nclass {needed}\n" for name, needed in lost.items())
    jar = changed(directory, f"deltalog-spark-{release()}.jar", BUILD="another", SYMBOLS=f"{listed}{added}")
    with zipfile.ZipFile(jar) as given:
        files = {entry: given.read(entry) for entry in given.namelist()}
    with zipfile.ZipFile(jar, "w") as made:
        for entry, content in files.items():
            owners = groups.get(entry.removesuffix(".class").replace("/", "."), set())
            made.writestr(entry, _hollow(content) if owners and owners <= lost.keys() else content)
    return jar


def _hollow(content: bytes) -> bytes:
    """Returns an abstract class with the same name, superclass and interfaces, without fields and methods."""
    given = read(content, jars.PACKAGE)
    _, at = constants(content)
    names = [given.name, *given.supers]
    pool = b""
    for number, name in enumerate(names):
        encoded = name.replace(".", "/").encode()
        pool += struct.pack(">BH", 1, len(encoded)) + encoded + struct.pack(">BH", 7, 2 * number + 1)
    this, above, *interfaces = (2 * number + 2 for number in range(len(names)))
    header = content[:8] + struct.pack(">H", 2 * len(names) + 1) + pool
    [flags] = struct.unpack_from(">H", content, at)
    numbers = (flags & ~_FINAL | _ABSTRACT, this, above, len(interfaces), *interfaces, 0, 0, 0)
    return header + struct.pack(f">{len(numbers)}H", *numbers)
