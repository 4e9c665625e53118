"""A call from the JVM fails with an error if the Python process stops answering."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest

pytestmark = [pytest.mark.newest, pytest.mark.timeout(900)]

# The process suspends itself when the JVM calls `TableCalls.read` to open a table, until its parent resumes it.
CODE = """
    import os, signal, sys, time
    from pyspark.sql import SparkSession
    import deltalog.spark
    from deltalog.spark.bridge.tables import TableCalls
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    spark = deltalog.spark.enable(builder.config("spark.deltalog.python.timeout", "2s").getOrCreate())
    path = sys.argv[1]
    spark.range(3).write.format("deltalog").save(path)
    read, stops = TableCalls.read, [True]

    def slow(*arguments):
        if stops and stops.pop():
            os.kill(os.getpid(), signal.SIGSTOP)
            time.sleep(5)  # Another thread may receive the signal, a little later.
        return read(*arguments)

    TableCalls.read = slow
    try:
        spark.read.format("deltalog").load(path)
    except Exception as error:
        print("FAILED", " ".join(str(error).split()), flush=True)
    print("COUNT", spark.read.format("deltalog").load(path).count(), flush=True)
"""


@pytest.mark.thorough
def test_a_call_of_a_stopped_process_fails_after_the_time_out(path: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(CODE), path],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    output_pipe, errors_pipe = process.stdout, process.stderr
    assert output_pipe is not None
    assert errors_pipe is not None
    lines: list[str] = []
    reader = threading.Thread(target=lambda: lines.extend(errors_pipe), daemon=True)
    reader.start()
    os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
    end, before = time.monotonic() + 60, len(lines)
    while not any("has not answered" in line for line in lines[before:]) and time.monotonic() < end:
        time.sleep(0.05)
    # The process continues even if the message did not appear, so that a failure of the test can show its output.
    os.kill(process.pid, signal.SIGCONT)
    output = output_pipe.read()
    process.wait()
    reader.join()
    errors = "".join(lines)
    assert "FAILED" in output, errors
    assert "Python has not answered for 2.0 s (spark.deltalog.python.timeout)" in output
    assert "COUNT 3" in output, errors
