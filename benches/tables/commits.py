"""A table that consists of commits only, without a checkpoint and without data files (protocol: "Delta Log Entries").

Eight columns have statistics, so an `add` action takes about 560 bytes.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benches.tables.actions import NARROW, Files, commit_info, lines, partitioned_metadata, protocol

# `add` actions are generated in large batches, no matter how many belong to a commit.
BATCH = 50_000


@dataclass(frozen=True)
class Commits:
    """`commits` commits of `adds` files each; the first also has the protocol and the metadata."""

    commits: int
    adds: int

    @property
    def name(self) -> str:
        return f"commits-{self.commits}x{self.adds}"

    def parameters(self) -> dict[str, Any]:
        return asdict(self)

    def write(self, table: Path) -> None:
        log = table / "_delta_log"
        log.mkdir()
        start = lines({"protocol": protocol()}, {"metaData": partitioned_metadata(NARROW)})
        step = max(1, BATCH // self.adds)
        for first in range(0, self.commits, step):
            count = min(step, self.commits - first)
            adds = Files.make(NARROW, first * self.adds, count * self.adds).json_lines()
            for number in range(count):
                version = first + number
                own = adds[number * self.adds : (number + 1) * self.adds]
                text = lines(commit_info(version)) + (start if version == 0 else "") + "\n".join(own) + "\n"
                (log / f"{version:020}.json").write_text(text)
