"""Tests the scripts that check prerequisites, run stages of tests, and repeat tests."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from scripts.class_archive import java_options


def prerequisites(root: Path, directory: Path, **programs: str) -> subprocess.CompletedProcess[str]:
    """Runs scripts/prerequisites.sh with a PATH that has only basic system tools and `programs`, a mapping of names to
    shell scripts.
    """
    for name in ("bash", "cut", "dirname", "head", "sed", "sort", "uname"):
        found = next(
            path for path in (Path(folder, name) for folder in ("/usr/bin", "/bin")) if path.exists()
        )
        (directory / name).symlink_to(found)
    for name, text in programs.items():
        program = directory / name
        program.write_text(f"#!{directory}/bash\n{text}\n")
        program.chmod(0o755)
    environment = {"PATH": str(directory), "PYTHON": "python3"}
    return subprocess.run(
        [directory / "bash", root / "scripts" / "prerequisites.sh"],
        capture_output=True,
        text=True,
        env=environment,
        timeout=60,
        check=False,
    )


GOOD = {
    "cc": "exit 0",
    "cargo": "echo 'cargo 9.1.0 (abc 2030-01-01)'",
    "python3": f'exec {sys.executable} "$@"',
    "java": "echo 'openjdk version \"21.0.2\" 2024-01-16' >&2",
    "javac": "echo 'javac 21.0.2'",
}


def test_nothing_is_missing(root: Path, tmp_path: Path) -> None:
    ran = prerequisites(root, tmp_path, **GOOD)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_names_everything_missing_and_the_command_that_installs_it(root: Path, tmp_path: Path) -> None:
    ran = prerequisites(root, tmp_path)
    assert ran.returncode == 1
    said = ran.stderr.splitlines()
    assert [line.split()[1] for line in said if line.startswith("missing:")] == [
        "a",
        "cargo,",
        "Python",
        "Java",
        "the",
    ]
    assert len([line for line in said if line.startswith("    install: ")]) == 5


@pytest.mark.parametrize(
    ("program", "text", "said"),
    [
        ("cargo", "echo 'cargo 1.70.0 (abc)'", "this is 1.70.0"),
        ("java", "echo 'java version \"1.8.0_401\"' >&2", "is 1)"),
        ("java", "exit 1", "missing: Java 17 or newer"),
        ("javac", "echo 'javac 1.8.0_401'", "JDK 17 or newer (javac is 1)"),
        ("javac", "exit 1", "missing: the compiler of a JDK 17 or newer (javac)"),
        ("python3", "echo 3.9", "python3 is 3.9"),
    ],
)
def test_outdated_programs_are_named(root: Path, tmp_path: Path, program: str, text: str, said: str) -> None:
    ran = prerequisites(root, tmp_path, **{**GOOD, program: text})
    assert ran.returncode == 1
    assert said in ran.stderr


def test_the_connector_names_missing_pyspark(root: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-S", "-I", str(root / "scripts" / "jvm_connector.py"), str(tmp_path / "jars")]
    ran = subprocess.run(
        command, capture_output=True, text=True, env=dict(os.environ), timeout=60, check=False
    )
    assert ran.returncode != 0
    assert "no PySpark" in ran.stderr
    assert not (tmp_path / "jars").exists()


def stages(root: Path, directory: Path, script: str) -> subprocess.CompletedProcess[str]:
    """Runs the stages `first` and `second`. `script` replaces make, and gets the target as its last argument."""
    (directory / "scripts").mkdir()
    shutil.copy(root / "scripts" / "stages.sh", directory / "scripts")
    make = directory / "make"
    make.write_text(f"#!/bin/bash\ntarget=${{@: -1}}\n{script}\n")
    make.chmod(0o755)
    return subprocess.run(
        [directory / "scripts" / "stages.sh", "first", "second"],
        env={**os.environ, "MAKE": str(make)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_stages_add_up_what_ran(root: Path, tmp_path: Path) -> None:
    ran = stages(
        root,
        tmp_path,
        "echo 'test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out'\n"
        "echo '==== 3 passed, 2 skipped, 1 warning in 2.22s ===='",
    )
    assert ran.returncode == 0, ran.stderr
    first, second, total = ran.stdout.splitlines()[-3:]
    assert first.split()[0] == "first"
    assert first.endswith("15 passed, 3 skipped")
    assert second.endswith("15 passed, 3 skipped")
    assert total.endswith("all stages passed")
    assert "3 passed" in (tmp_path / ".cache" / "stages" / "first.log").read_text()


def test_stages_list_slow_tests_with_their_seconds(root: Path, tmp_path: Path) -> None:
    """The output names the Spark release before the tests in tests/spark that ran with it."""
    script = """
if [[ $target = first ]]; then
    echo 'test seeds::the_promises has been running for over 60 seconds'
else
    echo '12.50s call     tests/python/test_a.py::test_b[c d]'
    echo '== Spark 4.0.5'
    echo '100.25s setup    tests/spark/test_e.py::test_f'
fi"""
    lines = stages(root, tmp_path, script).stdout.splitlines()
    at = lines.index("== slow tests")
    assert lines[at + 1 : at + 4] == [
        "   100.2 s  setup    tests/spark/test_e.py::test_f  (Spark 4.0.5)",
        "    60.0 s  or more  seeds::the_promises",
        "    12.5 s  call     tests/python/test_a.py::test_b[c d]",
    ]


def test_stages_stop_at_the_first_failure(root: Path, tmp_path: Path) -> None:
    ran = stages(root, tmp_path, "echo '= 1 failed, 2 passed in 0.10s ='; exit 3")
    assert ran.returncode == 3
    assert "== second" not in ran.stdout
    first, total = ran.stdout.splitlines()[-2:]
    assert first.endswith("2 passed, 1 failed   FAILED")
    assert total.endswith("exit 3")


JAR = "python/deltalog/spark/jars/deltalog-spark-4.3.jar"
STAMPS = (".venv/.deps", ".venvs/4.3/.deps", JAR, "dist/.wheel-dev", ".venv/.wheel", ".venvs/4.3/.wheel")
Steps = Callable[..., str]


@pytest.fixture
def steps(root: Path, tmp_path: Path) -> Steps:
    """Returns the commands that make would run in a directory in which everything in `STAMPS` is up to date."""
    shutil.copy(root / "Makefile", tmp_path)
    sources = [
        "Cargo.toml",
        "Cargo.lock",
        "pyproject.toml",
        "README.md",
        "LICENSE",
        "python/deltalog/spark/java/common/sql/Some.java",
        "scripts/prerequisites.sh",
        "scripts/hadoop_aws.py",
        "scripts/jvm_connector.py",
        "scripts/mini_hdfs.py",
        "scripts/spark_jars.py",
        "scripts/class_archive.py",
        "scripts/class_symbols.py",
        "scripts/feature_groups.py",
    ]
    (tmp_path / "crates").mkdir()
    for seconds, name in enumerate([*sources, *STAMPS]):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True, parents=True)
        file.touch()
        os.utime(file, (1_000_000 + seconds, 1_000_000 + seconds))

    def run(*arguments: str) -> str:
        # The tests may run inside of another make, whose profile must not be inherited.
        inherited = ("WHEEL_PROFILE", "MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES")
        environment = {name: value for name, value in os.environ.items() if name not in inherited}
        command = ["make", "--dry-run", *arguments]
        ran = subprocess.run(
            command, cwd=tmp_path, env=environment, check=True, capture_output=True, text=True
        )
        return ran.stdout

    return run


def test_a_wheel_of_another_profile_is_built_again(steps: Steps) -> None:
    """A wheel of a different profile is built again, so benchmarks after a CI run do not use CI's debug build."""
    for target in ("build", "test-spark-4.3"):
        assert "--profile release" in steps(target)
        assert "maturin" not in steps(target, "WHEEL_PROFILE=dev")


def test_a_wheel_has_classes_for_the_sparks_that_are_here_or_for_all(steps: Steps, tmp_path: Path) -> None:
    def compiled(*arguments: str) -> list[str]:
        found = re.findall(r"-m scripts\.spark_jars (4\.\d)", steps(*arguments, "WHEEL_PROFILE=dev"))
        return sorted(set(found))  # The inner make would print the same commands again.

    assert compiled("build") == []
    assert compiled("test-spark-4.1") == ["4.1"]
    assert compiled("wheel") == compiled("test-wheel") == ["4.0", "4.1", "4.2"]
    assert re.search(r"spark_jars --check dist/\S* 4\.0 4\.1 4\.2 4\.3\n", steps("wheel"))
    (tmp_path / ".venvs" / "4.0").mkdir()
    (tmp_path / ".venvs" / "4.0" / ".deps").touch()
    assert compiled("build") == compiled("develop") == ["4.0"]
    (tmp_path / "python/deltalog/spark/java/common/sql/Some.java").touch()
    assert compiled("build") == compiled("develop") == ["4.0", "4.3"]
    outdated = tmp_path / "python/deltalog/spark/jars/deltalog-spark-4.1.jar"
    outdated.touch()
    assert f"rm -rf dist {outdated.relative_to(tmp_path)} &&" in steps("build")


def test_the_wheel_for_datafusion_has_its_own_folder(steps: Steps) -> None:
    """The wheel for DataFusion is not in `dist`, because make checks and installs `dist/*.whl` as the wheel of
    deltalog.
    """
    assert "--out dist/datafusion " in steps("wheel-datafusion")
    assert "dist/*.whl" in steps("wheel")


@pytest.mark.parametrize(
    ("bench", "is_needed"),
    [
        ("", True),
        ("all", True),
        ("--scale small --rounds 2", True),
        ("open-list datafusion-join", True),
        ("open-list all", True),
        ("open-list --rounds 2", False),
        ("list", False),
        ("curve --largest 10000000", False),
    ],
)
def test_benches_have_datafusion_if_they_need_it(
    steps: Steps, tmp_path: Path, bench: str, is_needed: bool
) -> None:
    for name in ("Cargo.toml", "Cargo.lock", "src/main.rs"):
        file = tmp_path / "benches/kernel" / name
        file.parent.mkdir(exist_ok=True, parents=True)
        file.touch()
    said = steps("bench", f"BENCH={bench}")
    assert f"benches/run.py {bench}\n" in said
    assert ("--python .cache/datafusion 'datafusion>=" in said) == is_needed


def test_a_release_has_all_environments_and_tools_of_its_own(steps: Steps) -> None:
    for targets, command in {
        ("release", "VERSION=0.2.0", "RELEASE_ARGS=--dry-run"): "scripts.release 0.2.0 --dry-run",
        (
            "test-release",
            "TARGETS=one other",
        ): "scripts.release --rehearse --unsigned --target one --target other",
    }.items():
        said = steps(*targets)
        assert re.search(r"--python \.cache/release/venv .*--group release\n", said)
        assert re.findall(r"--group spark-(\S+)", said) == ["4.0", "4.1", "4.2"]
        assert f"-m {command}\n" in said


def test_stress_lists_what_has_failed_and_how_often(root: Path, tmp_path: Path) -> None:
    """In this test, the second command fails in the first of two rounds, and the third command always fails without
    output.
    """
    flaky = tmp_path / "flaky"
    said = "test a::b ... FAILED\\ntest a::c ... ok\\nFAILED tests/t.py::d[e f] - AssertionError"
    commands = ["true", f"test -e {flaky} || {{ touch {flaky}; printf '{said}\\n'; false; }}", "exit 3"]
    ran = stress(root, tmp_path / "logs", "--load", "1", *commands)
    assert ran.returncode == 1, ran.stderr
    listed = [line.strip() for line in ran.stdout.splitlines() if " of 2  " in line]
    assert listed[0] == "2 of 2  exit 3"
    assert sorted(listed[1:]) == ["1 of 2  a::b", "1 of 2  tests/t.py::d[e f]"]


def test_stress_runs_rounds_at_once(root: Path, tmp_path: Path) -> None:
    """Each round waits until both have begun. Each has a directory of its own for the tables of crashed operations."""
    both = f"[ $(ls {tmp_path}/begun.* | wc -l) = 2 ]"
    waits = f"timeout 30 bash -c 'until {both}; do sleep 0.05; done'"
    command = f"mkdir $DELTALOG_CRASHED_TABLES && mktemp {tmp_path}/begun.XXXX && {waits}"
    ran = stress(root, tmp_path / "logs", "--at-once", "2", command)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert sorted(re.findall(r"(?m)^round (.) of 2: \d+ s, 0 failed$", ran.stdout)) == ["1", "2"]


def stress(root: Path, logs: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    script = str(root / "scripts" / "stress.py")
    return subprocess.run(
        [sys.executable, script, "--rounds", "2", "--logs", str(logs), *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_jvms_use_an_archive_of_classes_if_there_is_one(tmp_path: Path) -> None:
    archive = tmp_path / "classes.jsa"
    assert "Archive" not in java_options(archive)
    archive.touch()
    assert java_options(archive).endswith(f"-XX:SharedArchiveFile={archive} -Xlog:disable")
