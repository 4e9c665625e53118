"""The work after a commit runs in the background. Protocol: "Checkpoints", "Version Checksum File"."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pyarrow
import pytest

from deltalog import DeltaTable, InvalidArgumentError, upkeep, write_deltalake

ONE = pyarrow.table({"id": [1]})


def checkpoints(table: Path) -> list[int]:
    return sorted(int(file.name[:20]) for file in (table / "_delta_log").glob("*.checkpoint.parquet"))


def append(table: Path, times: int) -> None:
    for _ in range(times):
        write_deltalake(table, ONE, mode="append", configuration={"delta.checkpointInterval": "2"})


@pytest.mark.usefixtures("background")
def test_background_work_is_complete_after_a_wait(tmp_path: Path) -> None:
    append(tmp_path, 4)
    assert upkeep.wait()
    assert checkpoints(tmp_path) == [2]
    append(tmp_path, 1)
    assert upkeep.wait(60)
    assert checkpoints(tmp_path) == [2, 4]
    found = DeltaTable(tmp_path).verify()
    assert (found.ok, found.file is not None) == (True, True)


@pytest.mark.usefixtures("background")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_child_does_it_before_its_commit_returns(tmp_path: Path) -> None:
    append(tmp_path, 3)
    context = multiprocessing.get_context("fork")
    child = context.Process(target=append, args=(tmp_path, 2))
    child.start()
    child.join(60)
    assert child.exitcode == 0
    assert checkpoints(tmp_path)[-1] == 4


IN_CHILDREN = """
    import os
    import sys
    from pathlib import Path

    import pyarrow
    from deltalog import write_deltalake

    child = os.fork()
    if child == 0:
        code = 1
        try:
            for version in range(7):
                write_deltalake(sys.argv[1], pyarrow.table({"id": [version]}), mode="append",
                                configuration={"delta.checkpointInterval": "2"})
                checkpoint = Path(sys.argv[1], "_delta_log", f"{version:020}.checkpoint.parquet")
                assert checkpoint.exists() == (version in (2, 4, 6)), version
            code = 0
        finally:
            os._exit(code)
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_children_of_a_process_that_has_only_imported_the_package_do_it_themselves(tmp_path: Path) -> None:
    program = [sys.executable, "-c", textwrap.dedent(IN_CHILDREN), str(tmp_path)]
    ran = subprocess.run(program, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr


PROGRAM = """
    import sys
    import pyarrow
    from deltalog import write_deltalake, upkeep

    for number in range(3):
        write_deltalake(sys.argv[1], pyarrow.table({"id": [number]}), mode="append",
                        configuration={"delta.checkpointInterval": "2"})
    {ending}
"""


@pytest.mark.parametrize("ending", ["pass", "sys.exit(3)", "raise ValueError('as planned')"])
def test_a_process_that_ends_right_after_its_commit_has_its_checkpoint(tmp_path: Path, ending: str) -> None:
    program = textwrap.dedent(PROGRAM).replace("{ending}", ending)
    ran = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, timeout=60
    )
    assert ran.returncode == {"pass": 0, "sys.exit(3)": 3}.get(ending, 1), ran.stderr
    assert checkpoints(tmp_path) == [2], ran.stderr
    assert not list((tmp_path / "_delta_log").glob(".*")), "nothing is left half written"


def test_a_process_that_is_killed_leaves_no_half_checkpoint(tmp_path: Path) -> None:
    program = textwrap.dedent(PROGRAM).replace("{ending}", "import os; os._exit(0)")
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True, timeout=60)
    assert DeltaTable(tmp_path).version() == 2
    assert DeltaTable(tmp_path).count() == 3


def _append_as_worker(table: Path) -> None:
    append(table, 1)


def test_a_worker_of_multiprocessing_does_it_before_its_commit_returns(tmp_path: Path) -> None:
    append(tmp_path, 2)
    child = multiprocessing.get_context("spawn").Process(target=_append_as_worker, args=(tmp_path,))
    child.start()
    child.join(120)
    assert child.exitcode == 0
    assert checkpoints(tmp_path) == [2]


@pytest.mark.parametrize("timeout", [-1, "1", True, float("nan"), float("inf")])
def test_invalid_timeouts(timeout: object) -> None:
    with pytest.raises(InvalidArgumentError, match="timeout"):
        upkeep.wait(timeout)  # type: ignore[arg-type]


def test_invalid_settings() -> None:
    with pytest.raises(InvalidArgumentError, match="True or False"):
        upkeep.run_in_background(1)  # type: ignore[arg-type]
