"""Writes the current results of both engines into the case files, with `?` for differences that have no reason yet.

python -m tests.interop.side_by_side.record [GROUP…]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.interop.side_by_side.cases import STATEMENTS, Case, cases, groups
from tests.interop.side_by_side.comparison import lines
from tests.interop.side_by_side.engines import Observed, observations


def recorded(text: str, found: dict[str, list[str]]) -> str:
    """Returns the text of a group after replacing its lines for errors and differences with the current results."""
    blocks = []
    for block in text.strip("\n").split("\n\n"):
        name = block.splitlines()[0].removeprefix("# ")
        kept = [line for line in block.splitlines() if not line.startswith(("! ", "~ "))]
        blocks.append("\n".join(kept + found[name]))
    return "\n\n".join(blocks) + "\n"


def main(chosen: list[str]) -> None:
    wanted = [case for case in cases() if case.group in chosen]
    with tempfile.TemporaryDirectory() as directory:
        found = observations(wanted, Path(directory))
    by_group: dict[str, dict[str, list[str]]] = {group: {} for group in chosen}
    for case, (theirs, ours) in zip(wanted, found, strict=True):
        by_group[case.group][case.name] = lines(case, theirs, ours)
        _tell(case, theirs, ours)
    for group, of_group in by_group.items():
        file = STATEMENTS / f"{group}.txt"
        file.write_text(recorded(file.read_text(), of_group))


def _tell(case: Case, theirs: Observed, ours: Observed) -> None:
    for name, side in (("connector", theirs), ("deltalog", ours)):
        for what in ("set-up", "message"):
            if what in side:
                sys.stdout.write(f"{case.key} [{name}]: {side[what][:300]}\n")


if __name__ == "__main__":
    main(sys.argv[1:] or groups())
