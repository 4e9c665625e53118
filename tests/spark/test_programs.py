"""Programs in which no Python code calls `enable`. They use deltalog through Spark's settings alone."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pyspark
import pytest

from deltalog.spark.configuration import OF_CONNECTOR, OURS
from tests.spark.jar_copies import changed, of_this_spark, without_groups

HOME = Path(str(pyspark.__file__)).parent
EXCEPTION = "io.deltalog.spark.DeltalogException"


def run(
    program: str, directory: Path, *arguments: str, master: str = "local[2]", stdin: str = "", **settings: str
) -> subprocess.CompletedProcess[str]:
    """Runs a Spark program with deltalog's jar and extensions in its settings, and waits until it ends."""
    names = {
        "spark.jars": str(of_this_spark()),
        "spark.sql.extensions": OURS,
        "spark.deltalog.python": sys.executable,
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
        "spark.sql.shuffle.partitions": "1",
        "spark.ui.enabled": "false",
        "spark.log.level": "WARN",
        **{name.replace("_", "."): value for name, value in settings.items()},
    }
    command = [str(HOME / "bin" / program), "--master", master]
    for name, value in names.items():
        command += ["--conf", f"{name}={value}"]
    environment = {"SPARK_HOME": str(HOME), "SPARK_LOCAL_IP": "127.0.0.1"}
    return subprocess.run(
        [*command, *arguments],
        cwd=directory,
        input=stdin,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )


STATEMENTS = """
CREATE TABLE t (id INT, p STRING) USING deltalog;
INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c');
DELETE FROM t WHERE id = 1;
SELECT 'rows', count(*), max(id) FROM t;
DESCRIBE HISTORY t;
"""


@pytest.mark.newest
@pytest.mark.thorough
def test_spark_sql_executes_a_file(tmp_path: Path) -> None:
    file = tmp_path / "statements.sql"
    file.write_text(STATEMENTS)
    done = run("spark-sql", tmp_path, "-f", str(file))
    assert done.returncode == 0, done.stderr
    assert "rows\t2\t3" in done.stdout.splitlines()
    assert "CREATE TABLE" in done.stdout


@pytest.mark.newest
@pytest.mark.thorough
def test_spark_sql_shows_errors_without_a_trace_of_python(tmp_path: Path) -> None:
    statements = "CREATE TABLE t (id INT) USING deltalog; SELECT * FROM deltalog.`/nowhere`"
    done = run("spark-sql", tmp_path, "-e", statements)
    assert done.returncode != 0
    assert "there is no Delta table here" in done.stderr
    assert "py4j" not in done.stderr
    assert "Traceback" not in done.stderr


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compiles a job in Java, and returns its jar."""
    directory = tmp_path_factory.mktemp("job")
    source = Path(__file__).parent / "programs" / "Job.java"
    command = ["javac", "-cp", f"{HOME}/jars/*", "-d", str(directory), str(source)]
    subprocess.run(command, check=True, timeout=200)
    jar = directory / "job.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        for file in directory.glob("*.class"):
            archive.write(file, file.name)
    return jar


def steps(job: Path, directory: Path, *parts: str, **options: Any) -> dict[str, str]:
    """Runs some steps of the job, and returns the output of each step."""
    done = run("spark-submit", directory, "--class", "Job", str(job), *parts, **options)
    assert done.returncode == 0, done.stderr
    assert "made-up-secret" not in done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert lines[-1] == "end"
    found = {}
    for line in lines:
        for separator in (" = ", " ! "):
            name, separated, value = line.partition(separator)
            if separated:
                found[name] = value
                break
    return found


@pytest.mark.newest
def test_a_java_job_has_all_features_and_ends(job: Path, tmp_path: Path) -> None:
    found = steps(job, tmp_path, "others", "statements", "streams", "sinks")
    assert found["sidecars of others"] == "0", "statements without deltalog start no Python process"
    assert found["select"] == "[[1,a], [2,b], [3,c]]"
    assert found["merge"] == "[[1,1,0,0]]"
    assert (found["append"], found["mergeInto"]) == ("7", "3")
    assert found["in a new session"] == "[1]"
    assert found["history"] == "[[DELETE], [MERGE], [WRITE], [MERGE], [WRITE], [CREATE TABLE]]"
    assert found["rows of the clone"] == "[[1,a], [2,z]]"
    assert found["default session"] == "true"
    assert found["sidecars"] == "1"
    assert (found["stream"], found["sidecars after the stream"]) == ("[[0], [1], [2]]", "1")
    assert found["sink"] == "[[0], [1], [2]]"
    assert found["history of the sink"] == f"[{'[STREAMING UPDATE], ' * 3}[CREATE TABLE]]"
    assert found["update"].startswith(f"{EXCEPTION} 0AKDD deltalog does not support the output mode update")
    assert found["stopped"] == "None, table false"
    assert found["sidecars after the sinks"] == "1"


@pytest.mark.newest
@pytest.mark.thorough
def test_errors_keep_their_class_their_state_and_their_text(job: Path, tmp_path: Path) -> None:
    found = steps(job, tmp_path, "statements", "errors")
    assert found["no table"].startswith(f"{EXCEPTION} 42P01 there is no Delta table here")
    assert found["no name"].startswith("org.apache.spark.sql.catalyst.ExtendedAnalysisException 42P01 ")
    assert found["division"].startswith("org.apache.spark.SparkArithmeticException 22003 ")
    assert found["job"].startswith("org.apache.spark.SparkRuntimeException P0001 ")
    assert "own text" in found["job"]
    assert found["inventory without a view"].startswith(f"{EXCEPTION} 42P01 [TABLE_OR_VIEW_NOT_FOUND] ")
    assert found["conflict"].startswith(f"{EXCEPTION} 2D521 ")
    assert "py4j" not in " ".join(found.values()).lower()


@pytest.mark.newest
@pytest.mark.thorough
def test_a_python_process_that_died_is_replaced(job: Path, tmp_path: Path) -> None:
    found = steps(job, tmp_path, "deaths")
    assert found["insert after"] == "[]"
    assert (found["planned before"], found["sidecars after"]) == ("0", "1")
    ended = f"{EXCEPTION} 08007 Python has ended before it answered"
    assert found["killed in INSERT"].startswith(ended)
    assert found["killed with secrets"].startswith(ended)
    assert "DESCRIBE HISTORY" in found["killed in INSERT"]
    assert found["killed in a job"].startswith(ended)
    assert (found["waited in vain"], found["active jobs"]) == ("false", "0"), "the job is cancelled at once"
    assert found["rows after"] == "[[1]]"


@pytest.mark.newest
@pytest.mark.thorough
def test_a_python_process_that_does_not_answer_is_replaced(job: Path, tmp_path: Path) -> None:
    found = steps(job, tmp_path, "silence", spark_deltalog_python_timeout="2s")
    silent = f"{EXCEPTION} 08007 Python has not answered for 2.0 s (spark.deltalog.python.timeout)"
    assert found["stopped in a job"].startswith(silent)
    assert (found["waited in vain"], found["active jobs"]) == ("false", "0"), "the job is cancelled at once"
    assert found["insert after"] == "[]"
    assert found["stopped before"].startswith(silent)
    assert found["rows after"] == "[[2]]"
    assert found["sidecars after"] == "1"


def script(directory: Path, name: str, *lines: str) -> str:
    """Creates a shell script that programs use as their Python interpreter."""
    path = directory / name
    path.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    path.chmod(0o755)
    return str(path)


def patched(directory: Path, name: str, statement: str) -> str:
    """Creates an interpreter that first runs a statement, which changes the module `jars`, and then serves the JVM."""
    module = 'runpy.run_module("deltalog.spark.sidecar", run_name="__main__")'
    imports = "import runpy; from pathlib import Path; from deltalog.spark.jvm import jars"
    return script(directory, name, f"exec {sys.executable} -c '{imports}; {statement}; {module}'")


@pytest.mark.newest
@pytest.mark.thorough
def test_an_interpreter_that_cannot_serve_is_named(
    job: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = tmp_path / "old" / "pyspark"
    old.mkdir(parents=True)
    (old / "__init__.py").write_text('__version__ = "3.5.1"\n')
    imported = f"PYTHONPATH={old.parent}:$PYTHONPATH"
    wanted = {
        "/nowhere/python": "cannot be started",
        script(tmp_path, "bare", f'exec {sys.executable} -E -S "$@"'): "No module named 'deltalog'",
        script(tmp_path, "older", f'{imported} exec {sys.executable} "$@"'): "but 3.5.1 is installed",
        patched(
            tmp_path, "other", 'jars.own_version = lambda: "0.0.1 (other)"'
        ): "has deltalog 0.0.1 (other)",
        patched(tmp_path, "without", f'jars._DIRECTORY = Path("{tmp_path}")'): "lacks its Java classes",
    }
    monkeypatch.setenv("INTERPRETERS", os.pathsep.join(wanted))
    found = steps(job, tmp_path, "interpreters")
    for interpreter, reason in wanted.items():
        assert found[interpreter].startswith(f"{EXCEPTION} 08001 "), found[interpreter]
        assert f"`{interpreter} -m deltalog.spark.sidecar`" in found[interpreter]
        assert reason in found[interpreter]
        assert "spark.deltalog.python" in found[interpreter]
    assert not (tmp_path / "warehouse" / "i").exists()


@pytest.mark.newest
@pytest.mark.thorough
def test_statements_that_wait_for_python_fail_with_one_error(job: Path, tmp_path: Path) -> None:
    """If the Python process cannot start, all statements that wait for it fail with the same error. Otherwise, each of
    them would start another process after the statement before it has failed.
    """
    lines = ("echo started >> starts", "while [ ! -e go ]; do sleep 0.1; done", "echo of no use", "exit 3")
    interpreter = script(tmp_path, "slow", *lines)
    found = steps(job, tmp_path, "waiters", spark_deltalog_python=interpreter)
    assert "has ended with the exit status 3: of no use" in found["first"]
    assert found["first"] == found["second"]
    assert (tmp_path / "starts").read_text() == "started\n"


@pytest.mark.newest
@pytest.mark.thorough
def test_executors_in_other_processes_have_the_jar(job: Path, tmp_path: Path) -> None:
    found = steps(job, tmp_path, "statements", master="local-cluster[2,1,1024]", spark_executor_memory="512m")
    assert (found["append"], found["mergeInto"]) == ("7", "3")
    assert found["rows of the clone"] == "[[1,a], [2,z]]"


@pytest.mark.newest
@pytest.mark.thorough
def test_spark_shell_has_all_features_and_ends(tmp_path: Path) -> None:
    statements = """
        spark.sql("CREATE TABLE t (id INT, p STRING) USING deltalog")
        case class R(id: Int, p: String)
        Seq(R(1, "a"), R(2, "b")).toDS().write.format("deltalog").mode("append").saveAsTable("t")
        spark.sql("DELETE FROM t WHERE id = 1")
        println("rows " + spark.table("t").as[R].map(r => r.p + "!").collect().mkString)
    """
    done = run("spark-shell", tmp_path, stdin=statements)
    assert done.returncode == 0, done.stderr
    assert "rows b!" in done.stdout


@pytest.mark.newest
@pytest.mark.thorough
def test_the_pyspark_shell_has_all_features_before_and_after_enable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("PYSPARK_DRIVER_PYTHON_OPTS", "-i")  # The shell gets its input as from a terminal.
    statements = """
spark.sql("CREATE TABLE t (id INT) USING deltalog").collect()
spark.sql("INSERT INTO t VALUES (1), (2)").collect()
children = spark._jvm.java.lang.ProcessHandle.current().children
commands = lambda: [child.info().commandLine().orElse("") for child in children().toArray()]
print("sidecars", sum("deltalog" in command for command in commands()))
import deltalog.spark
deltalog.spark.enable(spark)
spark.sql("DELETE FROM t WHERE id = 1").collect()
planner = spark._jsparkSession.sessionState().planner()
strategies = [planner.strategies().apply(i).getClass().getName() for i in range(3)]
print("sidecars then", sum("deltalog" in command for command in commands()))
print("found", spark.table("t").count(), sum("Deltalog" in name for name in strategies))
"""
    done = run("pyspark", tmp_path, stdin=statements)
    assert "sidecars 1" in done.stdout, done.stdout + done.stderr
    assert "sidecars then 0" in done.stdout
    assert "found 1 1" in done.stdout


WRONG: dict[str, tuple[dict[str, str], str, str]] = {
    "jar of another release": (
        {"BUILD": "another", "SYMBOLS": "class org.apache.spark.Gone\n"},
        OURS,
        "was built for another release than Spark",
    ),
    "two versions": ({"MARKER": "0.0.1 (other)"}, OURS, "there are jars of different versions"),
    "connector": (
        {},
        f"{OF_CONNECTOR},{OURS}",
        "the extension of the JVM connector, beside deltalog's",
    ),
}


@pytest.mark.newest
@pytest.mark.thorough
@pytest.mark.parametrize("name", WRONG)
def test_what_does_not_fit_is_named_before_a_table_is_touched(tmp_path: Path, name: str) -> None:
    texts, extensions, reason = WRONG[name]
    jars = [str(changed(tmp_path, "other.jar", **texts))]
    if name == "two versions":
        jars.append(str(of_this_spark()))
    statement = "CREATE TABLE t (id INT) USING deltalog"
    done = run(
        "spark-sql", tmp_path, "-e", statement, spark_jars=",".join(jars), spark_sql_extensions=extensions
    )
    assert done.returncode != 0
    assert reason in done.stderr
    assert not (tmp_path / "warehouse" / "t").exists()


@pytest.mark.newest
@pytest.mark.thorough
def test_a_build_of_spark_that_lacks_something_costs_its_group(tmp_path: Path) -> None:
    jar = without_groups(tmp_path / "jars", {"statements": "org.apache.spark.Gone"})
    create = "CREATE TABLE t USING deltalog AS SELECT 1 AS id"
    done = run("spark-sql", tmp_path, "-e", f"{create}; SELECT id FROM t; DELETE FROM t", spark_jars=str(jar))
    reason = "the feature group statements of deltalog cannot be used with this build of Spark"
    [warned] = [line for line in done.stderr.splitlines() if "WARN Installation" in line]
    assert reason in warned
    assert "which lacks org.apache.spark.Gone; their statements are refused" in warned
    assert done.returncode != 0
    assert done.stdout.split() == ["1"]
    assert reason in done.stderr.replace(warned, "")


@pytest.mark.newest
@pytest.mark.thorough
def test_the_extensions_without_the_jar_touch_no_table(tmp_path: Path) -> None:
    done = run("spark-sql", tmp_path, "-e", "CREATE TABLE t (id INT) USING deltalog", spark_jars="")
    assert done.returncode != 0
    assert f"Cannot use {OURS} to configure session extensions" in done.stdout + done.stderr
    assert "DATA_SOURCE_NOT_FOUND" in done.stderr
    assert not (tmp_path / "warehouse" / "t").exists()
