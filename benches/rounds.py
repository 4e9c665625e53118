"""Runs a case: all contenders take turns, round after round, on one table.

- Contenders alternate (A B A B, never A A B B), so that other load on the machine affects all of them.
- All files of the table are read before each measurement, so that every contender finds them in the page cache.
- A contender that fails once is not measured again, and the reason is recorded. The other contenders continue.
- All contenders must return the same answer to an operation. Otherwise they did not do the same work.
"""

from __future__ import annotations

import math
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benches.case import Case
from benches.contender import Contender
from benches.processes import CouldNotRun, Places, Pool
from benches.tables import build


@dataclass
class Outcome:
    """The measurements of a contender in order, or the reason why there are none."""

    contender: Contender
    samples: list[dict[str, Any]] = field(default_factory=list)
    failure: str | None = None

    def series(self, measure: str, quantity: str) -> list[float]:
        """Returns the values of a quantity (`seconds`, `peak_bytes`, `heap_bytes`) of a lap, one per round. The list
        is empty if the lap does not have this quantity.
        """
        laps = [] if self.failure else [sample["laps"].get(measure, {}) for sample in self.samples]
        return [lap[quantity] for lap in laps if quantity in lap]

    def takes_part(self, measure: str) -> bool:
        """Returns False if the contender's results show that it does not have this measure."""
        return self.failure is not None or all(measure in sample["laps"] for sample in self.samples)


@dataclass(frozen=True)
class Settings:
    scale: str
    rounds: int
    cache: Path
    seconds: float
    """Time limit of one measurement."""
    contenders: Sequence[str]
    """Names; empty means all."""
    places: Places


def run(case: Case, settings: Settings, tell: Callable[[str], None]) -> list[Outcome]:
    """Runs the rounds of a case and reports progress to `tell`."""
    spec = case.table(settings.scale)
    tell(f"{case.name}: table {spec.name}")
    settings.cache.mkdir(parents=True, exist_ok=True)
    table = build(settings.cache, spec)
    outcomes = [
        Outcome(each)
        for each in case.contenders
        if not settings.contenders or each.name in settings.contenders
    ]
    # The temporary directory is on the same file system as the tables, so that a log can be copied as hard links.
    with (
        tempfile.TemporaryDirectory(
            dir=settings.cache, prefix=".run-", ignore_cleanup_errors=True
        ) as directory,
        Pool(settings.places, Path(directory), settings.seconds) as pool,
    ):
        for number in range(-case.warm_up, settings.rounds):
            for outcome in outcomes:
                if outcome.failure is not None:
                    continue
                which = f"round {number + 1} of {settings.rounds}" if number >= 0 else "warm-up"
                tell(f"{case.name}: {which}, {outcome.contender.name}")
                scratch = Path(directory, "scratch")
                scratch.mkdir()
                _measure(pool, case, outcome, case.setup(spec, table, scratch), keep=number >= 0)
                shutil.rmtree(scratch)
    _compare_answers(outcomes)
    return outcomes


def _measure(pool: Pool, case: Case, outcome: Outcome, arguments: Mapping[str, Any], *, keep: bool) -> None:
    _warm(Path(arguments["table"]))
    try:
        sample = pool.ask(outcome.contender, case.operation, arguments)
    except CouldNotRun as error:
        outcome.failure = str(error)
    else:
        if keep:
            outcome.samples.append(sample)


def _warm(table: Path) -> None:
    for path in table.rglob("*"):
        if path.is_file():
            with path.open("rb", buffering=0) as file:
                while file.read(1 << 20):
                    pass


def _compare_answers(outcomes: Sequence[Outcome]) -> None:
    """Marks contenders as failed if their answers differ from the last contender's, which is a peer if the case has
    one.
    """
    able = [outcome for outcome in outcomes if outcome.failure is None]
    for outcome in able:
        expected = able[-1].samples[0]["answer"]
        for sample in outcome.samples:
            if not _equal(sample["answer"], expected):
                outcome.failure = f"answered {sample['answer']}, {able[-1].contender.name} {expected}"


def _equal(answer: Mapping[str, Any], expected: Mapping[str, Any]) -> bool:
    """Returns whether two answers are equal. Sums of floats may differ slightly, because the order of addition
    differs.
    """
    # Some contenders do only a part of the work, so only the values that both answers have are compared.
    shared = answer.keys() & expected.keys()
    return bool(shared) and all(math.isclose(answer[key], expected[key], rel_tol=1e-9) for key in shared)
