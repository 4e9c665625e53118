"""The JVM connector and deltalog execute the same statements, and the effects are the same apart from known
differences.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import missing
from tests.interop.conftest import JARS, PYTHON
from tests.interop.side_by_side import comparison
from tests.interop.side_by_side.cases import Case, cases
from tests.interop.side_by_side.engines import Observed, observations
from tests.interop.side_by_side.page import PAGE, page

PARAMETERS = [
    pytest.param(case, id=case.key, marks=[] if case.is_quick else [pytest.mark.thorough]) for case in cases()
]


@pytest.fixture(scope="module")
def observed(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> dict[str, tuple[Observed, Observed]]:
    """Returns the results of both engines for all cases of this run."""
    if not (PYTHON.exists() and any(JARS.glob("*.jar"))):
        missing("the JVM connector is not set up; `make test-python` does it")
    calls = [item.callspec for item in request.session.items if _is_case(item)]  # type: ignore[attr-defined]
    chosen = [call.params["case"] for call in calls]
    found = observations(chosen, tmp_path_factory.mktemp("side_by_side"))
    return {case.key: pair for case, pair in zip(chosen, found, strict=True)}


def _is_case(item: pytest.Item) -> bool:
    return item.path == Path(__file__) and hasattr(item, "callspec")


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("case", PARAMETERS)
def test_both_do_the_same_but_for_the_known_differences(
    observed: dict[str, tuple[Observed, Observed]], case: Case
) -> None:
    theirs, ours = observed[case.key]
    assert "set-up" not in theirs, theirs["set-up"]
    assert "set-up" not in ours, ours["set-up"]
    should_be = "\n".join(comparison.lines(case, theirs, ours))
    assert comparison.found_errors(theirs, ours) == case.errors, should_be
    assert comparison.found_differences(theirs, ours) == comparison.expected_differences(case), should_be


def test_each_difference_has_its_reason_and_each_case_its_name() -> None:
    every = cases()
    assert len({case.key for case in every}) == len(every) >= 150
    without = [case.key for case in every for known in case.differences if known.reason in ("", "?")]
    assert without == []


def test_the_page_of_the_differences_is_current() -> None:
    assert PAGE.read_text() == page(), "python -m tests.interop.side_by_side.page writes it"
