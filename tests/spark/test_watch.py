"""`PythonWatch` decides when the JVM treats the Python process as silent. A stub in Java replaces Python."""

import os
import subprocess
from pathlib import Path

import pyspark
import pytest

from tests.spark.jar_copies import of_this_spark

pytestmark = [pytest.mark.newest, pytest.mark.thorough]

JARS = f"{of_this_spark()}{os.pathsep}{Path(str(pyspark.__file__)).parent}/jars/*"
SILENT = "Python has not answered for 1.5 s (spark.deltalog.python.timeout)"


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("watch")
    source = Path(__file__).parent / "programs" / "Watch.java"
    subprocess.run(["javac", "-cp", JARS, "-d", str(directory), str(source)], check=True, timeout=200)
    return directory


def outcomes(classes: Path, step: str, *options: str) -> dict[str, str]:
    """Runs a step of the Java program, and returns the outcome of each of its calls."""
    java = ["java", "-XX:-MaxFDLimit", "-Dspark.deltalog.python.timeout=1500ms", *options]
    program = ["-cp", f"{classes}{os.pathsep}{JARS}", "io.deltalog.spark.Watch", step]
    done = subprocess.run(
        ["sh", "-c", 'ulimit -n 1000; exec "$@"', "sh", *java, *program],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return dict(line.split(" = ", 1) for line in done.stdout.splitlines() if " = " in line)


def test_a_jvm_without_descriptors_does_not_take_python_for_silent(classes: Path) -> None:
    assert outcomes(classes, "descriptors") == {"call": "late answered null", "silences": "0"}


def test_python_is_not_silent_if_it_has_answered_another_call(classes: Path) -> None:
    found = outcomes(classes, "answered")
    assert found["other"].endswith("answered null")
    assert found["call"].endswith("answered null")
    assert found["silences"] == "0"


def test_a_call_that_began_during_a_ping_has_its_own_time_out(classes: Path) -> None:
    found = outcomes(classes, "begun")
    assert found["first"].startswith(f"late {SILENT}: the process has stopped or ended")
    assert found["second"].startswith(f"late {SILENT}")
    assert found["silences"] == "2"


def test_pings_that_fail_for_the_whole_time_out_mean_silence_with_a_reason(classes: Path) -> None:
    found = outcomes(classes, "closed")
    assert found["call"].startswith(
        f"late {SILENT}: it could not be asked (py4j.Py4JException: Received empty"
    )
    assert found["silences"] == "1"


def test_a_closed_port_is_silence_after_the_time_out(classes: Path) -> None:
    found = outcomes(classes, "gone")
    assert found["call"].startswith(f"late {SILENT}: the process has stopped or ended")
    assert found["silences"] == "1"


def test_a_process_that_has_ended_is_silent_at_once(classes: Path) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    found = outcomes(classes, "gone", f"-Dprocess={ended.pid}")
    assert "Python has ended before it answered" in found["call"]
    assert found["silences"] == "1"
