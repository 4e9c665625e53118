"""Tests docs/figures.json and the pages that are made from it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benches import figures
from benches.cases import named


@pytest.fixture
def held(root: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((root / figures.FIGURES).read_text("utf-8"))
    return loaded


def test_the_pages_show_the_figures(root: Path, held: dict[str, Any]) -> None:
    for name, text in figures.pages(root, held).items():
        assert (root / name).read_text("utf-8") == text, "run python -m benches.figures"


def test_every_row_is_of_a_case(held: dict[str, Any]) -> None:
    for row in held["rows"]:
        [case] = named(row["case"])
        measures = {limit.measure for limit in case.limits} | {ratio.measure for ratio in case.ratios}
        measures |= {ratio.peer_measure or ratio.measure for ratio in case.ratios}
        for figure in row["figures"]:
            assert figure.get("measure", row["measure"]) in measures, row["work"]
            assert figure["of"] in {contender.name for contender in case.contenders}, row["work"]


def results(case: str, measure: str) -> dict[str, Any]:
    measured = [
        {
            "contender": who,
            "measure": measure,
            "failure": None,
            "seconds": {"median": 0.04},
            "peak_bytes": None,
        }
        for who in ("ours", "jvm")
    ]
    machine = {"system": "Linux-6.1-x86_64", "cores": 2, "memory_bytes": 25276510208}
    found = {"case": case, "scale": "full", "at": "2027-01-02T03:04:05+00:00", "machine": machine}
    return {**found, "measured": measured}


def test_results_replace_the_figures_of_their_rows(root: Path, held: dict[str, Any]) -> None:
    assert figures.take(held, results("spark-stream", "tiny batch")) == [
        "Spark: a batch of ten rows of a stream"
    ]
    page = figures.pages(root, held)[figures.PAGE]
    assert (
        "| Spark: a batch of ten rows of a stream | 40\u00a0ms | JVM connector: 40\u00a0ms | 2027-01-02 |"
        in page
    )
    assert page.count("2027-01-02") == 2  # The date is in the row, and in the range of all dates.


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"scale": "small"}, "the results have the scale small, but the figures need full"),
        ({"case": "spark-vacuum"}, "no row is for these figures of spark-vacuum"),
        ({"machine": {"system": "Linux-6", "cores": 64, "memory_bytes": 1 << 40}}, "another machine"),
    ],
)
def test_other_results_are_refused(held: dict[str, Any], changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        figures.take(held, results("spark-stream", "tiny batch") | changed)


def test_a_contender_that_failed_leaves_the_row_as_it_is(held: dict[str, Any]) -> None:
    failed = results("spark-stream", "tiny batch")
    failed["measured"][1]["failure"] = "timed out"
    with pytest.raises(ValueError, match="no row is for these figures"):
        figures.take(held, failed)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(27.46, "27.5 s"), (1.0, "1.0 s"), (0.187, "0.19 s"), (0.0033, "3.3 ms"), (0.00017, "0.17 ms")],
)
def test_times_have_two_digits(seconds: float, text: str) -> None:
    assert figures._seconds(seconds).replace(figures.SPACE, " ") == text
