"""File systems without hard links, such as FAT, many FUSE file systems, and network shares.

A system call filter simulates such a file system, because tests do not have the permission to mount one.
"""

from __future__ import annotations

import platform
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from deltalog import DeltaTable

# The numbers of the system calls `link`, `linkat` and `renameat2`.
CALLS = {"x86_64": (86, 265, 316), "aarch64": (-1, 37, 276)}

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() not in CALLS,
    reason="filters of system calls exist on Linux only",
)

FILTER = """
    import ctypes, errno, struct

    def refuse(calls):
        "Makes the kernel answer these calls of this process with an error, each with its own."
        code = [(0x20, 0, 0, 0)]  # Load the number of the call.
        for number, error in calls:
            code += [(0x15, 0, 1, number), (0x06, 0, 0, 0x00050000 | error)]
        code.append((0x06, 0, 0, 0x7FFF0000))
        program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *one) for one in code))
        header = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(code), ctypes.addressof(program)))
        libc = ctypes.CDLL(None, use_errno=True)
        assert libc.prctl(38, 1, 0, 0, 0) == 0, ctypes.get_errno()
        assert libc.prctl(22, 2, ctypes.byref(header), 0, 0) == 0, ctypes.get_errno()
"""


def run(script: str, *arguments: object) -> str:
    code = textwrap.dedent(FILTER) + textwrap.dedent(script)
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_tables_on_a_file_system_without_hard_links(tmp_path: Path) -> None:
    """Without hard links, a commit is a rename that does not replace a file. If two writers want the same version, one
    of them gets the next version.
    """
    script = """
        import sys, os
        import pyarrow as pa
        from deltalog import DeltaTable, storage, upkeep, write_deltalake

        path, *links = sys.argv[1:]
        row = pa.table({"id": [1]})
        write_deltalake(path, row, configuration={"delta.checkpointInterval": "4"})
        behind = DeltaTable(path)
        # Hard links still work here, as for a writer on another machine. `behind` does not see this commit.
        write_deltalake(path, row, mode="append")
        refuse([(int(link), errno.EPERM) for link in links if int(link) >= 0])
        try:
            os.link(path, path + "-2")
        except PermissionError:
            print("no links")
        storage.check(path)
        write_deltalake(behind, row, mode="append")
        for _ in range(3):
            write_deltalake(path, row, mode="append")
        upkeep.wait()
    """
    assert run(script, tmp_path / "t", *CALLS[platform.machine()][:2]) == "no links\n"
    table = DeltaTable(tmp_path / "t")
    assert (table.version(), table.count()) == (5, 6)
    names = [file.name for file in (tmp_path / "t").rglob("*") if file.is_file()]
    assert not [name for name in names if name.startswith(".")], names
    assert sum(name.endswith(".checkpoint.parquet") for name in names) == 1, names


def test_a_file_system_that_can_do_neither_is_refused_with_the_first_commit(tmp_path: Path) -> None:
    script = """
        import sys
        import pyarrow as pa
        import deltalog

        path, *calls = sys.argv[1:]
        refuse([(int(call), errno.EINVAL) for call in calls if int(call) >= 0])
        for attempt in (
            lambda: deltalog.storage.check(path),
            lambda: deltalog.write_deltalake(path, pa.table({"id": [1]})),
        ):
            try:
                attempt()
            except deltalog.UnsupportedFeatureError as error:
                print(error, "|", error.hint)
    """
    told = run(script, tmp_path / "t", *CALLS[platform.machine()]).splitlines()
    assert len(told) == 2, told
    for one in told:
        assert "supports neither hard links nor renames that never replace a file" in one, one
        assert "| put the table on a file system such as ext4" in one, one
    assert not [file for file in tmp_path.rglob("*") if file.is_file()], "nothing is left"
