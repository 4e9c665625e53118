"""What a case is: an operation on a table, its contenders, and the ratios and limits to reach."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benches.contender import Contender
from benches.tables import TableSpec

SCALES = ("small", "medium", "full")
TARGET_SCALE = "full"

Setup = Callable[[TableSpec, Path, Path], Mapping[str, Any]]
"""Creates the arguments of one measurement. Its own arguments are the specification of the table, the table's
directory, and an empty directory for this measurement.
"""


@dataclass(frozen=True)
class Ratio:
    """The measurements of `subject` divided by the measurements of `peer`, computed for each round.

    `time` and `memory` are upper limits for the ratio; None means that the ratio is only shown.
    """

    measure: str
    subject: str
    peer: str
    time: float | None = None
    memory: float | None = None
    peer_measure: str | None = None
    """The lap of the peer, if its name differs from the subject's."""


@dataclass(frozen=True)
class Limit:
    """Absolute upper limits for one contender, which is not compared with a peer."""

    measure: str
    contender: str
    seconds: float | None = None
    peak_bytes: int | None = None
    heap_bytes: int | None = None
    """Limit for the growth of the driver's live heap or, if there is no driver, of the process's peak memory."""


@dataclass(frozen=True)
class Case:
    name: str
    about: str
    operation: str
    setup: Setup
    tables: Mapping[str, TableSpec]
    """The specification of the table for each scale. A scale without an entry uses the largest one."""
    contenders: tuple[Contender, ...]
    ratios: tuple[Ratio, ...]
    limits: tuple[Limit, ...] = field(default=())
    warm_up: int = 0
    """The number of rounds at the beginning whose results are discarded, because a session's compilers and caches are
    cold.
    """

    def table(self, scale: str) -> TableSpec:
        return self.tables.get(scale) or self.tables[max(self.tables, key=SCALES.index)]
