"""Tests scripts/spark_jars.py: which classes it compiles, what it refuses, and which problems it finds in jars before
publication.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from scripts import spark_jars
from scripts.class_symbols import symbols
from scripts.feature_groups import UngroupedError, grouped
from tests.conftest import missing

Program = Callable[[str], Path]


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """Creates a fake JDK, whose compiler is a shell script, and returns its directory."""

    def make(text: str) -> Path:
        compiler = tmp_path / "jdk" / "bin" / "javac"
        compiler.parent.mkdir(parents=True)
        compiler.write_text(f"#!/bin/sh\n{text}\n")
        compiler.chmod(0o755)
        return tmp_path / "jdk"

    return make


def test_a_release_takes_each_class_from_the_newest_folder() -> None:
    def folders(release: str) -> dict[str, str]:
        files = spark_jars.sources(release)
        return {file.name: file.relative_to(spark_jars.SOURCES).parts[0] for file in files}

    oldest, newest = folders("4.0"), folders("4.3")
    assert oldest["DeltalogCatalog.java"] == "4.0"
    assert folders("4.1")["DeltalogCatalog.java"] == "4.1"
    assert folders("4.2")["DeltalogCatalog.java"] == newest["DeltalogCatalog.java"] == "4.2"
    assert folders("4.10") == newest
    assert set(newest) - set(oldest) == {"TableInfoCatalog.java"}
    assert oldest["Bridge.java"] == newest["Bridge.java"] == "common"


def test_names_of_classes_are_unique() -> None:
    """All classes belong to one package, so two files with the same name would be the same class."""
    names = [file.name for file in (spark_jars.SOURCES / "common").rglob("*.java")]
    assert len(names) == len(set(names))


def test_another_pyspark_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"this environment has PySpark \d.*, not 3\.9"):
        spark_jars.build("3.9", tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_missing_compiler_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SystemExit, match=rf"no Java compiler \({tmp_path}.*apt-get install openjdk-17-jdk"):
        spark_jars.javac()
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemExit, match=r"no Java compiler \(javac\)"):
        spark_jars.javac()


def test_an_old_compiler_is_refused(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(program("echo javac 11.0.2")))
    with pytest.raises(SystemExit, match="is of version 11: install a JDK 17"):
        spark_jars.javac()


def test_a_failed_compilation_leaves_no_jar(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(program('[ "$1" = -version ] && echo javac 17.0.1 || exit 1')))
    import pyspark

    with pytest.raises(SystemExit, match="do not compile for Spark"):
        spark_jars.build(".".join(pyspark.__version__.split(".")[:2]), tmp_path / "jars")
    assert not (tmp_path / "jars").exists()


def made(jar: Path, stamp: str, jdk: int) -> None:
    manifest = f"Manifest-Version: 1.0\r\nBuild-Jdk-Spec: {jdk}\r\n\r\n"
    files = {spark_jars.MANIFEST: manifest.encode(), spark_jars.MARKER: stamp.encode(), "b": b"1", "a": b"2"}
    spark_jars.write_jar(jar, files)


def test_the_bytes_of_a_jar_depend_on_its_files_alone(tmp_path: Path) -> None:
    for name in ("one.jar", "other.jar"):
        made(tmp_path / "jars" / name, "1", 17)
    one, other = (tmp_path / "jars" / name for name in ("one.jar", "other.jar"))
    os.utime(one, (0, 0))
    assert one.read_bytes() == other.read_bytes()
    with zipfile.ZipFile(one) as jar:
        assert jar.namelist() == [spark_jars.MANIFEST, spark_jars.MARKER, "a", "b"]


def test_a_wheel_to_publish_has_a_current_jar_for_each_release(tmp_path: Path) -> None:
    jars = tmp_path / "jars"
    made(jars / "deltalog-spark-4.0.jar", spark_jars.stamp(), 17)
    made(jars / "deltalog-spark-4.1.jar", "0.0.1 (other sources)", 17)
    made(jars / "deltalog-spark-4.2.jar", spark_jars.stamp(), 21)
    assert spark_jars.check(jars, ["4.0"]) == (wrong := spark_jars.check(jars, ["4.0", "4.2"]))
    assert len(wrong) == 2
    assert "deltalog-spark-4.1.jar is of 0.0.1 (other sources), not of" in wrong[0]
    assert "deltalog-spark-4.2.jar was not compiled with a JDK 17" in wrong[1]
    wheel = tmp_path / "deltalog.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.write(jars / "deltalog-spark-4.0.jar", "deltalog/spark/jars/deltalog-spark-4.0.jar")
    assert spark_jars.check(wheel, ["4.0"]) == []
    source = tmp_path / "deltalog.tar.gz"
    with tarfile.open(source, "w:gz") as files:
        files.add(
            jars / "deltalog-spark-4.1.jar",
            "deltalog-0.1.0/python/deltalog/spark/jars/deltalog-spark-4.1.jar",
        )
    assert spark_jars.check(source, ["4.0"]) == ["there is no deltalog-spark-4.0.jar", wrong[0]]
    command = [sys.executable, "-m", "scripts.spark_jars", "--check", str(wheel), "4.0", "4.1"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, cwd=spark_jars.ROOT)
    assert (ran.returncode, ran.stderr) == (1, f"{wheel}: there is no deltalog-spark-4.1.jar\n")


CLASS = """
package own;
public class Sample implements Runnable {
  static final long BIG = 1L << 40;
  public void run() {
    java.util.List<String> items = new java.util.ArrayList<>();
    items.add("text" + BIG);
    their.Things things = new their.Things();
    things.count += things.change(new int[1], new Sample());
    their.Named named = things;
    named.name();
    Object other = their.Mark.class;
  }
}
"""


def test_symbols_of_other_packages_are_listed(tmp_path: Path) -> None:
    if shutil.which("javac") is None:
        missing("no javac")
    sources = {
        "own/Sample.java": CLASS,
        "their/Things.java": "package their; public class Things implements Named { public int count; "
        "public int change(int[] numbers, Runnable task) { return 1; } public void name() {} }",
        "their/Named.java": "package their; public interface Named { void name(); }",
        "their/Mark.java": "package their; public class Mark {}",
    }
    for name, text in sources.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    subprocess.run(["javac", "--release", "17", *sources], cwd=tmp_path, check=True)
    entries = {"read": ["Sample"]}
    listed = symbols([(tmp_path / "own" / "Sample.class").read_bytes()], "own", entries, {}).splitlines()
    assert listed == [
        "group read",
        "own own.Sample",
        "type their.Mark",
        "interface their.Named",
        "method name ()V",
        "class their.Things",
        "field count I",
        "method <init> ()V",
        "method change ([ILjava/lang/Runnable;)I",
    ]


def test_a_class_belongs_to_the_groups_whose_entries_lead_to_it() -> None:
    references = {
        "Source": {"Common", "Gate", "Other"},
        "Common": {"Source"},
        "Gate": {"Common", "Behind", "Shared"},
        "Behind": set(),
        "Other": {"Shared", "Deep"},
        "Shared": set(),
        "Deep": {"Gate"},
    }
    entries = {"read": ["Source"], "write": ["Gate"], "statements": ["Other"]}
    uses = {"Source": ["Gate", "Other"]}
    assert grouped(references, entries, uses) == {
        "read": {"Source", "Common"},
        "write": {"Gate", "Behind", "Shared"},
        "statements": {"Other", "Shared", "Deep", "Gate", "Behind"},
    }
    with pytest.raises(UngroupedError, match="lacks one for \\['Alone'\\]"):
        grouped({**references, "Alone": set()}, entries, uses)
    with pytest.raises(UngroupedError, match="not classes: \\['Gone'\\]"):
        grouped(references, {**entries, "own SQL": ["Gone"]}, uses)


def test_a_use_of_a_group_by_what_works_without_it_is_listed() -> None:
    references = {"Source": {"Common", "Gate"}, "Common": {"Gate"}, "Gate": {"Behind"}, "Behind": {"Gate"}}
    entries = {"read": ["Source"], "write": ["Gate"]}
    with pytest.raises(
        UngroupedError, match=r"new are \[\('Common', 'Gate'\)\], gone are \[\('Source', 'Behind'\)\]"
    ):
        grouped(references, entries, {"Source": ["Gate", "Behind"]})
