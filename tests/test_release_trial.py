"""The steps of scripts/release/trial.py work with the current `deltalog` command, and it recognizes the wheels that
Linux builds.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.release import trial
from scripts.release.errors import RefusedError
from scripts.release.projects import DATAFUSION, DELTALOG, PROJECTS, Project
from scripts.release.targets import LINUX, Target
from scripts.release.version import Version


def test_the_steps_work_with_this_package(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in trial.ROWS))
    for arguments, output in trial.STEPS:
        here = [
            text.replace("/trips", f"{tmp_path}/trips").replace("/rows", f"{tmp_path}/rows")
            for text in arguments
        ]
        ran = subprocess.run([sys.executable, *here], capture_output=True, text=True, check=False)
        assert (ran.returncode, ran.stderr) == (0, ""), arguments
        assert output in ran.stdout


@pytest.mark.parametrize("target", LINUX.values(), ids=LINUX)
@pytest.mark.parametrize("project", PROJECTS, ids=lambda project: project.name)
def test_package_and_platform_of_a_wheel_are_recognised(project: Project, target: Target) -> None:
    assert trial.identified(Path(project.wheel_name(Version(1, 2, 3), target))) == (project, target)


def test_a_wheel_for_datafusion_is_tried_with_the_wheel_of_deltalog_beside_it(tmp_path: Path) -> None:
    [target, *_] = LINUX.values()
    version = Version(1, 2, 3, candidate=4)
    wheel = tmp_path / DATAFUSION.wheel_name(version, target)
    assert wheel.name.startswith("deltalog_datafusion-55.1.2.3rc4-cp310-abi3-manylinux2014_x86_64")
    with pytest.raises(
        RefusedError, match=r"needs deltalog-1\.2\.3rc4-.*, which is not in the same directory"
    ):
        trial.beside(wheel)
    other = tmp_path / DELTALOG.wheel_name(version, target)
    other.touch()
    assert trial.beside(wheel) == other


def test_a_wheel_of_another_platform_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "deltalog-1.2.3-cp310-abi3-win_amd64.whl"
    with pytest.raises(
        RefusedError, match=r"win_amd64\.whl is not one of the wheels that are built on Linux"
    ):
        trial.try_wheel(other)


def test_another_system_than_debian_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    [target, *_] = LINUX.values()
    with pytest.raises(RefusedError, match="run this on Debian, or pass --untried"):
        trial.try_on_glibc(DELTALOG, tmp_path / "a.whl", target, tmp_path)
