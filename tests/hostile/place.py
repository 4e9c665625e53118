"""Creates a directory with a table and, around the table, files that must not be touched."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import pyarrow.parquet as pq

from tests.hostile.tables import rows

# Every file outside of the table contains this text.
CANARY = b"canary_7b1d"


class Place:
    """`table` is the only directory that calls may change, apart from `copy`, which is for clones."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.table = root / "t"
        self.copy = root / "copy"
        self.outside = root / "outside"
        self.canary = self.outside / "canary.parquet"
        self.outside.mkdir(parents=True)
        secret = rows(0).set_column(2, "s", [[CANARY.decode()] * 20])
        for file in (self.canary, root / "canary.parquet"):
            pq.write_table(secret, file, compression="none")
        (self.outside / "keys").write_bytes(CANARY)
        (self.outside / "p=0").mkdir()
        self._before = self._look()

    def canary_size(self) -> int:
        return self.canary.stat().st_size

    def paths_outside(self, random: Random) -> list[str]:
        """Returns different spellings of the path of a file outside of the table."""
        name = random.choice(("outside/canary.parquet", "canary.parquet", "outside/keys"))
        whole = f"{self.root}/{name}"
        return [
            f"../{name}",
            f"a/../../{name}",
            f"%2e%2e/{name}",
            f"..%2f{name}",
            f"p=0/../../{name}",
            whole,
            whole.replace("/outside", "/t/../outside"),
            f"file://{whole}",
            f"file:{whole}",
            f"//localhost{whole}",
            f"x%0Afile://{whole}",
            f"s3://bucket/{name}",
            f"link/{Path(name).name}",
            f"_delta_log/../../{name}",
        ]

    def faults(self) -> list[str]:
        """Describes what has changed outside of the table, and where the content of an outside file has appeared."""
        found = []
        now = self._look()
        for name in sorted(self._before.keys() | now.keys()):
            if self._before.get(name) != now.get(name):
                found.append(f"{name} outside of the table has changed")
        for directory in (self.table, self.copy):
            for path in directory.rglob("*"):
                # A link to an outside file is not a copy of it, and the log may contain its path.
                if (
                    not path.is_symlink()
                    and path.is_file()
                    and path.suffix != ".json"
                    and CANARY in path.read_bytes()
                ):
                    found.append(f"{path} has bytes of a file outside")
        return found

    def _look(self) -> dict[str, tuple[int, ...] | bytes]:
        found: dict[str, tuple[int, ...] | bytes] = {}
        for directory, names, files in os.walk(self.root):
            if directory == str(self.root):
                names[:] = [name for name in names if name not in ("t", "copy")]
            for name in (*names, *files):
                path = Path(directory, name)
                status = path.lstat()
                found[str(path.relative_to(self.root))] = (status.st_mode, status.st_ino, status.st_size)
                if name in files:
                    found[f"content of {path.relative_to(self.root)}"] = path.read_bytes()
        return found
