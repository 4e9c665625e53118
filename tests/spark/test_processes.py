"""Two Python programs with one JVM."""

import sys
from pathlib import Path

import pytest

from tests.spark.processes import run_python

pytestmark = [pytest.mark.newest, pytest.mark.timeout(600)]

# Attaches itself to the JVM of another program, as interpreters of notebook servers do.
ATTACHED = """
import sys
from pyspark import SparkContext
import deltalog.spark
from deltalog.spark.jvm.python_session import python_session
SparkContext._ensure_initialized()
sessions = SparkContext._gateway.jvm.org.apache.spark.sql.classic.SparkSession
spark = python_session(sessions.getDefaultSession().get().newSession())
try:
    deltalog.spark.enable(spark)
    print("enabled")
except deltalog.errors.UnsupportedFeatureError as error:
    print(error)
print(spark.read.format("deltalog").load(sys.argv[1]).count())
"""

STARTED = """
    import os, subprocess, sys
    import pyarrow
    import deltalog.spark
    from pyspark.sql import SparkSession

    path, attached = {path!r}, {attached!r}
    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    gateway = spark.sparkContext._gateway.gateway_parameters
    names = {{"PYSPARK_GATEWAY_PORT": str(gateway.port), "PYSPARK_GATEWAY_SECRET": gateway.auth_token}}

    def attach():
        command = [sys.executable, attached, path]
        done = subprocess.run(command, env={{**os.environ, **names}}, capture_output=True, text=True, check=False)
        print(done.stdout.replace(str(os.getpid()), "PID"), end="", flush=True)
        sys.stderr.write(done.stderr)

    deltalog.write_deltalake(path, pyarrow.table({{"id": [1, 2]}}))
    attach()
    deltalog.spark.enable(spark)
    attach()
    spark.sql(f"DELETE FROM deltalog.`{{path}}` WHERE id = 1")
    print(spark.read.format("deltalog").load(path).count())
"""


def test_a_process_does_not_take_the_sessions_of_another_one_that_runs(path: str, tmp_path: Path) -> None:
    """A process that has ended is replaced."""
    attached = tmp_path / "attached.py"
    attached.write_text(ATTACHED)
    done = run_python(STARTED.format(path=path, attached=str(attached)), PYSPARK_PYTHON=sys.executable)
    lines = done.stdout.splitlines()
    assert len(lines) == 5, done.stdout + done.stderr
    assert lines[:2] == ["enabled", "2"]
    assert "the Python process PID has enabled deltalog in the JVM of this session" in lines[2]
    assert lines[3:] == ["2", "1"]
