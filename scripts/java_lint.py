"""Checks the format of the Java sources, and looks for common mistakes in them.

    python -m scripts.java_lint TOOLS          checks: google-java-format, then Error Prone, whose warnings are errors
    python -m scripts.java_lint TOOLS --fix    formats the sources

TOOLS is a directory for the jars of both tools. They are fetched if they are missing.

The sources are checked for the Spark release of this interpreter. The sources for older releases are only compiled,
with javac's warnings, when the wheel is built.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pyspark

from scripts.jvm_connector import fetch, java, spark_jars
from scripts.spark_jars import JAVA, SOURCES, javac, sources, version_class

FORMATTER = ("com.google.googlejavaformat", "google-java-format", "1.28.0")
# Both are the newest versions that run on Java 17.
CHECKER = ("com.google.errorprone", "error_prone_core", "2.42.0")
# These warnings do not apply here: the strings that we split have no empty parts at their end (StringSplitter), errors
# while closing are not lost (Finally), and some methods override a Spark method that exists only in newer releases
# (MissingOverride).
NOT_CHECKED = ("StringSplitter", "Finally", "MissingOverride")
# The tools use internal classes of the compiler.
INTERNALS = ("api", "code", "comp", "file", "main", "model", "parser", "processing", "tree", "util")


def ivy_module() -> str:
    wanted = "\n".join(
        f'    <dependency org="{organisation}" name="{name}" rev="{version}" conf="default->default,runtime"/>'
        for organisation, name, version in (FORMATTER, CHECKER)
    )
    return f"""<ivy-module version="2.0">
  <info organisation="deltalog" module="java-lint"/>
  <configurations><conf name="default"/></configurations>
  <dependencies defaultconfmapping="default-&gt;default">
{wanted}
  </dependencies>
</ivy-module>
"""


def internals(prefix: str = "") -> list[str]:
    """Returns the options that let the tools use internal classes of the compiler."""
    return [
        f"{prefix}--add-{kind}=jdk.compiler/com.sun.tools.javac.{package}=ALL-UNNAMED"
        for package in INTERNALS
        for kind in ("exports", "opens")
    ]


def class_path(tools: Path) -> str:
    """Returns the jars of the tools, as a class path."""
    names = [f"{name}-{version}" for _, name, version in (FORMATTER, CHECKER)]
    if not all((tools / f"{name}.jar").is_file() for name in names):
        fetch(tools, "java_lint", ivy_module(), names)
    return os.pathsep.join(map(str, sorted(tools.glob("*.jar"))))


def format_sources(tools: str, *options: str) -> bool:
    """Formats the sources, or only checks their format. Returns whether they are formatted."""
    files = map(str, sorted(SOURCES.rglob("*.java")))
    command = [java(), *internals(), "-cp", tools, "com.google.googlejavaformat.java.Main"]
    return subprocess.run([*command, *options, *files], check=False).returncode == 0


def find_mistakes(tools: str) -> bool:
    """Runs Error Prone; returns whether it found no mistakes."""
    release = ".".join(pyspark.__version__.split(".")[:2])
    command, _ = javac()
    with tempfile.TemporaryDirectory() as directory:
        options = [
            *internals("-J"),
            "--release",
            str(JAVA),
            "-encoding",
            "UTF-8",
            "-XDcompilePolicy=simple",
            "--should-stop=ifError=FLOW",
            "-processorpath",
            tools,
            " ".join(["-Xplugin:ErrorProne", *(f"-Xep:{check}:OFF" for check in NOT_CHECKED)]),
            "-proc:none",
            "-XDsuppressNotes",
            "-Werror",
        ]
        files = [str(file) for file in (*sources(release), version_class(Path(directory)))]
        places = ["-cp", f"{spark_jars()}/*", "-d", str(Path(directory, "classes"))]
        return subprocess.run([command, *options, *places, *files], check=False).returncode == 0


def main() -> None:
    parser = argparse.ArgumentParser(description="Check the Java sources of the Spark layer.")
    parser.add_argument("tools", type=Path, help="directory for the jars of the tools")
    parser.add_argument("--fix", action="store_true", help="format the sources and check nothing")
    arguments = parser.parse_args()
    tools = class_path(arguments.tools.resolve())
    if arguments.fix:
        sys.exit(0 if format_sources(tools, "--replace") else 1)
    if not format_sources(tools, "--dry-run", "--set-exit-if-changed"):
        sys.exit("these Java sources are not formatted; run `make format`")
    if not find_mistakes(tools):
        sys.exit("Error Prone has found mistakes in the Java sources")


if __name__ == "__main__":
    main()
