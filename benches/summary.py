"""Summarizes rounds: medians with their ranges, ratios within a round, and whether targets are met."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from benches.case import Case, Limit, Ratio
from benches.rounds import Outcome


@dataclass(frozen=True)
class Spread:
    median: float
    least: float
    most: float

    @classmethod
    def of(cls, numbers: Sequence[float]) -> Spread | None:
        return cls(median(numbers), min(numbers), max(numbers)) if numbers else None


@dataclass(frozen=True)
class Measured:
    measure: str
    contender: str
    seconds: Spread | None
    peak_bytes: Spread | None
    heap_bytes: Spread | None
    cpu_seconds: Spread | None
    failure: str | None


@dataclass(frozen=True)
class Compared:
    """The measured value for a ratio or a limit, with the upper limit.

    A ratio is the median of the ratios within each round.
    """

    what: str
    measure: str
    quantity: str
    found: Spread | None
    at_most: float | None

    @property
    def reached(self) -> bool | None:
        return None if self.found is None or self.at_most is None else self.found.median <= self.at_most


@dataclass(frozen=True)
class Summary:
    case: Case
    table: str
    scale: str
    rounds: int
    measured: tuple[Measured, ...]
    compared: tuple[Compared, ...]
    failures: dict[str, str]

    def as_json(self) -> dict[str, Any]:
        compared = [{**asdict(each), "reached": each.reached} for each in self.compared]
        measured = [asdict(each) for each in self.measured]
        own = {
            "case": self.case.name,
            "about": self.case.about,
            "table": self.table,
            "scale": self.scale,
            "rounds": self.rounds,
        }
        return {**own, "measured": measured, "compared": compared, "failures": self.failures}


def summarise(case: Case, scale: str, rounds: int, outcomes: Sequence[Outcome]) -> Summary:
    by_name = {outcome.contender.name: outcome for outcome in outcomes}
    of_peers = [ratio.peer_measure for ratio in case.ratios if ratio.peer_measure]
    measures = dict.fromkeys(
        [ratio.measure for ratio in case.ratios] + of_peers + [limit.measure for limit in case.limits]
    )
    measured = [
        Measured(
            measure,
            outcome.contender.name,
            Spread.of(outcome.series(measure, "seconds")),
            Spread.of(outcome.series(measure, "peak_bytes")),
            Spread.of(outcome.series(measure, "heap_bytes")),
            Spread.of(outcome.series(measure, "cpu_seconds")),
            outcome.failure,
        )
        for measure in measures
        for outcome in outcomes
        if outcome.takes_part(measure)
    ]
    compared = [each for ratio in case.ratios for each in _ratio(ratio, by_name)]
    compared += [each for limit in case.limits for each in _limit(limit, by_name)]
    failures = {outcome.contender.name: outcome.failure for outcome in outcomes if outcome.failure}
    return Summary(case, case.table(scale).name, scale, rounds, tuple(measured), tuple(compared), failures)


def _ratio(ratio: Ratio, by_name: dict[str, Outcome]) -> list[Compared]:
    if not {ratio.subject, ratio.peer} <= by_name.keys():
        return []
    found = []
    peer_measure = ratio.peer_measure or ratio.measure
    what = f"{ratio.subject} / {ratio.peer}" + (f", {ratio.peer_measure}" if ratio.peer_measure else "")
    quantities = (
        ("seconds", "time", ratio.time),
        ("cpu_seconds", "processor", None),
        ("peak_bytes", "memory", ratio.memory),
    )
    for quantity, title, at_most in quantities:
        subject, peer = (
            by_name[ratio.subject].series(ratio.measure, quantity),
            by_name[ratio.peer].series(peer_measure, quantity),
        )
        spread = Spread.of([one / two for one, two in zip(subject, peer, strict=False)])
        found.append(Compared(what, ratio.measure, title, spread, at_most))
    return found


def _limit(limit: Limit, by_name: dict[str, Outcome]) -> list[Compared]:
    if limit.contender not in by_name:
        return []
    outcome = by_name[limit.contender]
    quantities = (
        ("seconds", limit.seconds),
        ("peak_bytes", limit.peak_bytes),
        ("heap_bytes", limit.heap_bytes),
    )
    return [
        Compared(
            limit.contender,
            limit.measure,
            quantity,
            Spread.of(outcome.series(limit.measure, quantity)),
            at_most,
        )
        for quantity, at_most in quantities
        if at_most is not None
    ]
