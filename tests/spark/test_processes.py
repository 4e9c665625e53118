"""A Python program or its Spark application ends in the middle of a statement, or two programs use the same JVM."""

import sys
from pathlib import Path

import pytest

from tests.spark.processes import run_python

pytestmark = [pytest.mark.newest, pytest.mark.timeout(600)]

# This program attaches itself to the JVM of another program, as interpreters of some notebook servers do.
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


@pytest.mark.thorough
def test_a_process_does_not_take_the_sessions_of_another_one_that_runs(path: str, tmp_path: Path) -> None:
    """A second Python process cannot take over sessions while the first one runs. If the first process has ended, the
    second replaces it.
    """
    attached = tmp_path / "attached.py"
    attached.write_text(ATTACHED)
    done = run_python(STARTED.format(path=path, attached=str(attached)), PYSPARK_PYTHON=sys.executable)
    lines = done.stdout.splitlines()
    assert len(lines) == 5, done.stdout + done.stderr
    assert lines[:2] == ["enabled", "2"]
    assert "the Python process PID has enabled deltalog in the JVM of this session" in lines[2]
    assert lines[3:] == ["2", "1"]


INTERRUPTED = """
    import os, signal, sys, threading, time
    import deltalog.spark
    from deltalog.spark.write import interrupts
    from deltalog.tables import DeltaTable
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    deltalog.spark.enable(spark)
    spark.range(2).write.format("deltalog").save({path!r})
    table = DeltaTable.forPath(spark, {path!r})
    running = spark.sparkContext.statusTracker().getActiveJobsIds

    def when_running(act):
        def wait():
            while not running():
                time.sleep(0.05)
            act()

        threading.Thread(target=wait, daemon=True).start()

    # The thread that cancels the jobs may be slower than the interrupted thread.
    run = interrupts.RunningWrite._cancel

    def late(write):
        while write in interrupts._running:
            time.sleep(0.05)
        run(write)

    interrupts.RunningWrite._cancel = late
    when_running(lambda: os.kill(os.getpid(), signal.SIGINT))
    try:
        table.update("(SELECT count(*) FROM range(1000000000000)) > 0", {{"id": "id + 1"}})
    except KeyboardInterrupt:
        print("interrupted")
    end = time.monotonic() + 60
    while running() and time.monotonic() < end:
        time.sleep(0.1)
    print(running())
    print(table.delete("id = 1").collect()[0].num_affected_rows)

    when_running(spark.stop)
    source = spark.sql("SELECT id AS key FROM range(1000000000000) WHERE hash(id) = 1")
    try:
        table.merge(source, "key = id").whenMatchedDelete().execute()
    except Exception as error:
        print(str(error).splitlines()[0])
"""


def test_a_statement_that_is_cancelled_leaves_no_job_and_reports_why(path: str) -> None:
    done = run_python(INTERRUPTED.format(path=path))
    lines = done.stdout.splitlines()
    assert lines[:3] == ["interrupted", "[]", "1"], done.stderr
    assert lines[3].endswith(".measure.")  # The statement must not fail because its source has ended.
