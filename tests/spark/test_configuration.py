"""Tests `deltalog.spark.configure`, and the command that prints the path of the jar."""

import subprocess
import sys
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

import deltalog.spark
from deltalog.errors import InvalidArgumentError, UnsupportedFeatureError
from deltalog.spark import configuration
from deltalog.spark.configuration import EXTENSIONS, JARS, OF_CONNECTOR, OURS, jar
from deltalog.spark.jvm import jars
from tests.spark.jar_copies import of_this_spark, release
from tests.spark.processes import run_python

pytestmark = pytest.mark.newest


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))


def assert_is_copy(jar: str) -> None:
    """Asserts that a jar is a copy of the installed jar. A copy is used, because an upgrade removes the installed
    file.
    """
    own = of_this_spark()
    assert (Path(jar).name, Path(jar).read_bytes()) == (own.name, own.read_bytes())
    assert not Path(jar).samefile(own)


def test_the_copy_of_the_jar_ends_with_the_process() -> None:
    done = run_python(
        """
        import os
        from pyspark.sql import SparkSession
        import deltalog.spark
        builders = SparkSession.Builder(), SparkSession.Builder()
        [jar] = {deltalog.spark.configure(builder)._options["spark.jars"] for builder in builders}
        print(jar)
        child = os.fork()
        if child == 0:
            raise SystemExit
        os.waitpid(child, 0)
        print(os.path.isfile(jar))
        """
    )
    jar, is_kept = done.stdout.split()
    assert is_kept == "True", done.stderr
    assert not Path(jar).parent.exists()


def test_what_the_user_has_set_is_kept() -> None:
    builder = SparkSession.builder.config(JARS, "a.jar, b.jar").config(EXTENSIONS, "theirs.Extensions")
    configured = deltalog.spark.configure(deltalog.spark.configure(builder))
    assert configured is builder
    *theirs, ours = builder._options[JARS].split(",")
    assert theirs == ["a.jar", "b.jar"]
    assert_is_copy(ours)
    assert builder._options[EXTENSIONS] == f"theirs.Extensions,{OURS}"


def test_what_the_defaults_of_spark_have_is_kept(tmp_path: Path) -> None:
    """Values in Spark's defaults file are kept. Spark itself ignores the file for settings that a program makes."""
    lines = ["# a comment", "spark.jars  their.jar", f"{EXTENSIONS}=theirs.Extensions", "spark.lonely"]
    (tmp_path / "spark-defaults.conf").write_text("\n".join(lines))
    builder = deltalog.spark.configure(SparkSession.builder)
    theirs, ours = builder._options[JARS].split(",")
    assert theirs == "their.jar"
    assert_is_copy(ours)
    assert builder._options[EXTENSIONS] == f"theirs.Extensions,{OURS}"


@pytest.mark.parametrize(
    ("line", "name", "value"),
    [
        ("a.b c", "a.b", "c"),
        ("  a.b =c ", "a.b", "c"),
        ("a.b: /x.jar,/y=1/z.jar", "a.b", "/x.jar,/y=1/z.jar"),
        ("a.b /p=1/x.jar", "a.b", "/p=1/x.jar"),
        ("a.b\tc d", "a.b", "c d"),
        ("a.b c,\\\n    d", "a.b", "c,d"),
        ("a\\:b c\\\\d", "a:b", "c\\d"),
    ],
)
def test_the_defaults_are_java_properties(line: str, name: str, value: str) -> None:
    text = f"# no = entry\n! nor: this\nlonely\n{line}\nlast = 1"
    assert configuration._properties(text) == {name: value, "last": "1"}


def test_ours_is_not_set_twice() -> None:
    builder = SparkSession.builder.config(JARS, str(of_this_spark())).config(EXTENSIONS, OURS)
    deltalog.spark.configure(builder)
    assert (builder._options[JARS], builder._options[EXTENSIONS]) == (str(of_this_spark()), OURS)


def test_a_builder_of_connect_gets_no_settings() -> None:
    builder = deltalog.spark.configure(SparkSession.builder.remote("sc://nowhere"))
    assert JARS not in builder._options


def test_the_extension_of_the_jvm_connector_is_refused_besides_ours() -> None:
    builder = SparkSession.builder.config(EXTENSIONS, f"theirs.Extensions, {OF_CONNECTOR}")
    with pytest.raises(InvalidArgumentError, match="the extension of the JVM connector"):
        deltalog.spark.configure(builder)
    assert JARS not in builder._options


def test_a_release_without_a_jar_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"no jar for Spark 3\.5, only for .*4\.3"):
        jar("3.5")
    monkeypatch.setattr(pyspark, "__version__", "9.9.1")
    with pytest.raises(UnsupportedFeatureError, match=r"no jar for Spark 9\.9\.1"):
        deltalog.spark.configure(SparkSession.builder)


def test_an_installation_without_jars_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(jars, "_DIRECTORY", tmp_path)
    with pytest.raises(UnsupportedFeatureError, match="lacks its Java classes"):
        deltalog.spark.configure(SparkSession.builder)


def test_the_command_prints_the_path_of_the_jar() -> None:
    command = [sys.executable, "-m", "deltalog.spark", "jar"]
    done = subprocess.run([*command, "--spark", release()], capture_output=True, text=True, check=True)
    assert done.stdout == f"{of_this_spark()}\n"
    done = subprocess.run([*command, "--spark", "3.5"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: this installation of deltalog has no jar for Spark 3.5")


def test_a_configured_session_needs_no_enable(path: str) -> None:
    done = run_python(
        f"""
        from pyspark.sql import SparkSession
        import deltalog.spark

        builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
        spark = deltalog.spark.configure(builder).getOrCreate()
        spark.range(3).write.format("deltalog").save({path!r})
        print(spark.sql("DELETE FROM deltalog.`{path}` WHERE id = 1").head()[0])
        try:
            spark.read.format("deltalog").load("/nowhere")
        except deltalog.NotATableError as error:
            print("an error of Python")
        deltalog.spark.enable(spark)
        state = spark._jsparkSession.sessionState()
        strategies = state.planner().strategies()
        names = [strategies.apply(i).getClass().getName() for i in range(strategies.size())]
        print("strategies", sum("Deltalog" in name for name in names))
        jars = spark.sparkContext._jsc.sc().listJars()
        print("jars", jars.size())
        # A child without a command line is the rest of the shell that has become this JVM.
        children = spark._jvm.java.lang.ProcessHandle.current().children().toArray()
        print("sidecars", sum("deltalog" in child.info().commandLine().orElse("") for child in children))
        """
    )
    assert done.stdout.splitlines() == ["1", "an error of Python", "strategies 1", "jars 1", "sidecars 0"], (
        done.stderr
    )
