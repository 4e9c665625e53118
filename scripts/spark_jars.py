"""Compiles the Java classes of the Spark layer for the PySpark of this interpreter, and writes them into a jar for the
wheel.

    python -m scripts.spark_jars 4.3          writes python/deltalog/spark/jars/deltalog-spark-4.3.jar
    python -m scripts.spark_jars --check PLACE 4.0 4.1 4.2 4.3
                                              fails unless there is a jar of this version for each release

The bytes of a jar depend only on the sources and the versions of PySpark, the JDK and zlib. The classes in
`java/common` are compiled for all releases of Spark. Classes in the other folders replace or complement them. Each of
these folders is named after the first release for which it is used, and a class in it is used until the folder of a
newer release has a class of the same name.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from scripts.class_symbols import symbols

ROOT = Path(__file__).parent.parent
SOURCES = ROOT / "python" / "deltalog" / "spark" / "java"
JARS = ROOT / "python" / "deltalog" / "spark" / "jars"
PACKAGE = "io.deltalog.spark"
# The names of these files are also in `DriverClasses.java` and `LinkCheck.java`, which read them.
MARKER = "META-INF/deltalog-spark-version"
BUILD = "META-INF/deltalog-spark-build"
RELEASE = "META-INF/deltalog-spark-release"
SYMBOLS = "META-INF/deltalog-spark-symbols"
SERVICES = {
    "META-INF/services/org.apache.spark.sql.sources.DataSourceRegister": ("DeltalogSource", "DeltaAlias"),
    "META-INF/services/org.apache.spark.sql.SparkSessionExtensionsProvider": ("DeltalogExtensions",),
}
MANIFEST = "META-INF/MANIFEST.MF"
# Spark 4 runs on this version of Java and on newer ones.
JAVA = 17
# Warnings that are turned off. The sources still cause some of them, and others depend on Spark's release or jars.
NOT_CHECKED = "-serial,-deprecation,-path"
# All files in a jar have this fixed time, so that every build gives the same bytes.
# It is the earliest time that a jar can have.
TIME = (1980, 1, 1, 0, 0, 0)


def jar_name(release: str) -> str:
    return f"deltalog-spark-{release}.jar"


def version() -> str:
    """Returns the version of deltalog in the wheel."""
    [found] = re.findall(r'(?m)^\[workspace\.package\]\nversion = "(.*)"$', (ROOT / "Cargo.toml").read_text())
    return str(found)


def stamp() -> str:
    """Returns the version, followed by a digest that distinguishes development versions."""
    digest = hashlib.sha256()
    for file in sorted(SOURCES.rglob("*.java")):
        digest.update(f"{file.relative_to(SOURCES)}\n".encode() + file.read_bytes())
    for name in ("class_symbols.py", "feature_groups.py"):  # They make lists for the jar.
        digest.update(Path(__file__).with_name(name).read_bytes())
    return f"{version()} ({digest.hexdigest()[:12]})"


def number(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")))


def sources(release: str) -> list[Path]:
    """Returns the files to compile for a release, sorted by name."""
    folders = [folder for folder in SOURCES.iterdir() if re.fullmatch(r"\d+\.\d+", folder.name)]
    wanted = sorted(
        (folder for folder in folders if number(folder.name) <= number(release)), key=lambda f: number(f.name)
    )
    files = {file.name: file for folder in (SOURCES / "common", *wanted) for file in folder.rglob("*.java")}
    return [files[name] for name in sorted(files)]


def javac() -> tuple[str, int]:
    """Returns the compiler and the major version of its JDK."""
    home = os.environ.get("JAVA_HOME")
    command = str(Path(home, "bin", "javac")) if home else "javac"
    hint = f"install a JDK {JAVA} (apt-get install openjdk-{JAVA}-jdk-headless), or set JAVA_HOME to one"
    if shutil.which(command) is None:
        sys.exit(f"there is no Java compiler ({command}): {hint}")
    said = subprocess.run([command, "-version"], check=True, capture_output=True, text=True).stdout
    major = int(said.removeprefix("javac ").split(".")[0])
    if major < JAVA:
        sys.exit(f"the Java compiler {command} is of version {major}: {hint}")
    return command, major


def version_class(directory: Path) -> Path:
    """Writes the source of the Java class that contains the wheel's version, and returns the file."""
    directory.mkdir(exist_ok=True)
    written = directory / "Version.java"
    written.write_text(
        f'package {PACKAGE};\n\nfinal class Version {{\n  static final String WHEEL = "{version()}";\n\n'
        "  private Version() {}\n}\n"
    )
    return written


def compiled(command: str, major: int, release: str, class_path: Path) -> dict[str, bytes]:
    """Compiles the sources, and returns the class files by their paths in the jar."""
    with tempfile.TemporaryDirectory() as directory:
        written = version_class(Path(directory, "sources"))
        classes = Path(directory, "classes")
        options = [
            "--release",
            str(JAVA),
            "-proc:none",
            "-encoding",
            "UTF-8",
            f"-Xlint:all,{NOT_CHECKED}",
            "-XDsuppressNotes",
        ]
        if major == JAVA:
            options.append("-Werror")  # Newer compilers have additional warnings.
        files = [str(file) for file in (*sources(release), written)]
        arguments = [*options, "-cp", f"{class_path}/*", "-d", str(classes), *files]
        if subprocess.run([command, *arguments], check=False).returncode != 0:
            sys.exit(f"the Java classes of the Spark layer do not compile for Spark {release}")
        return {file.relative_to(classes).as_posix(): file.read_bytes() for file in classes.rglob("*.class")}


def build_of_spark(jars: Path) -> str:
    """Returns the revision that Spark was built from."""
    [jar] = jars.glob("spark-common-utils_*.jar")
    with zipfile.ZipFile(jar) as archive:
        properties = archive.read("spark-version-info.properties").decode()
    [revision] = re.findall(r"(?m)^revision=(\S+)$", properties)
    return str(revision)


def write_jar(jar: Path, files: dict[str, bytes]) -> None:
    """Writes a jar whose bytes depend only on the files."""
    jar.parent.mkdir(exist_ok=True)
    unfinished = jar.with_suffix(".unfinished")
    with zipfile.ZipFile(unfinished, "w") as archive:
        for name in sorted(files, key=lambda name: (name != MANIFEST, name)):
            entry = zipfile.ZipInfo(name, TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o100644 << 16
            archive.writestr(entry, files[name], compresslevel=9)
    unfinished.replace(jar)  # Does not overwrite a jar that a JVM has open.


def build(release: str, directory: Path) -> Path:
    """Builds the jar of a release, with the PySpark of this interpreter, which must be of that release."""
    import pyspark

    if number(release) != number(pyspark.__version__)[:2]:
        sys.exit(f"this environment has PySpark {pyspark.__version__}, not {release}")
    spark_jars = Path(pyspark.__file__).parent / "jars"
    command, major = javac()
    classes = compiled(command, major, release, spark_jars)
    manifest = f"Manifest-Version: 1.0\r\nBuild-Jdk-Spec: {major}\r\n\r\n"
    jar = directory / jar_name(release)
    texts = {
        MANIFEST: manifest,
        MARKER: stamp(),
        BUILD: build_of_spark(spark_jars),
        RELEASE: release,
        SYMBOLS: symbols(classes.values(), PACKAGE),
        **{service: "".join(f"{PACKAGE}.{name}\n" for name in names) for service, names in SERVICES.items()},
    }
    write_jar(jar, {**classes, **{name: text.encode() for name, text in texts.items()}})
    return jar


def read_jars(place: Path) -> dict[str, bytes]:
    """Returns the jars in a directory, a wheel or a source archive, by their names."""
    if place.is_dir():
        return {file.name: file.read_bytes() for file in place.glob("*.jar")}
    if tarfile.is_tarfile(place):
        with tarfile.open(place) as archive:
            files = {member.name: archive.extractfile(member) for member in archive}
            return {
                Path(name).name: file.read() for name, file in files.items() if file and name.endswith(".jar")
            }
    with zipfile.ZipFile(place) as wheel:
        return {Path(name).name: wheel.read(name) for name in wheel.namelist() if name.endswith(".jar")}


def check(place: Path, releases: list[str]) -> list[str]:
    """Checks the jars in a directory, or in a wheel or source archive before it is published, and returns the
    problems.
    """
    jars = read_jars(place)
    wrong = [f"there is no {jar_name(release)}" for release in releases if jar_name(release) not in jars]
    for name, content in sorted(jars.items()):
        with zipfile.ZipFile(io.BytesIO(content)) as jar:
            found = jar.read(MARKER).decode()
            manifest = jar.read(MANIFEST).decode()
        if found != stamp():
            wrong.append(f"{name} is of {found}, not of {stamp()}")
        if f"Build-Jdk-Spec: {JAVA}\r\n" not in manifest:
            wrong.append(f"{name} was not compiled with a JDK {JAVA}, for which all builds are identical")
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description="Compile the Java classes of the Spark layer.")
    parser.add_argument(
        "--check", type=Path, metavar="PLACE", help="a directory with jars, a wheel, or a source archive"
    )
    parser.add_argument("releases", nargs="+", metavar="RELEASE", help="minor releases of Spark, such as 4.3")
    arguments = parser.parse_args()
    if arguments.check is not None:
        wrong = check(arguments.check, arguments.releases)
        if wrong:
            sys.exit("\n".join(f"{arguments.check}: {message}" for message in wrong))
    else:
        for release in arguments.releases:
            build(release, JARS)


if __name__ == "__main__":
    main()
