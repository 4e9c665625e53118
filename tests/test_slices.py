"""Each thorough test runs in exactly one slice."""

from __future__ import annotations

import pytest

from tests.slices import FEW, Candidate, groups, taken

COUNT = 20
TESTS = [Candidate("quick.py", "quick")]
TESTS += [Candidate("few.py", f"few {number}", True) for number in range(FEW)]
TESTS += [Candidate("many.py", f"many {number}", True) for number in range(400)]
THOROUGH = {test.name for test in TESTS if test.is_thorough}


def test_each_thorough_test_is_in_one_slice_and_the_quick_ones_in_each() -> None:
    slices = [taken(TESTS, "quick", f"{number}/{COUNT}") for number in range(COUNT)]
    assert all("quick" in names for names in slices)
    found = sorted(name for names in slices for name in names - {"quick"})
    assert found == sorted(THOROUGH)
    assert taken(TESTS, "deep", f"3/{COUNT}") == slices[3] - {"quick"}


def test_without_a_slice_quick_has_no_thorough_tests_and_deep_has_all() -> None:
    assert taken(TESTS, "quick", "") == {"quick"}
    assert taken(TESTS, "deep", "") == THOROUGH
    assert taken(TESTS, "", "") == THOROUGH | {"quick"}
    with pytest.raises(ValueError, match="quick or deep"):
        taken(TESTS, "fast", "")


def test_few_tests_of_a_file_stay_together_and_many_are_divided() -> None:
    of = groups([test for test in TESTS if test.is_thorough])
    assert {of[f"few {number}"] for number in range(FEW)} == {"few.py"}
    sizes = [len(taken(TESTS, "deep", f"{number}/{COUNT}")) for number in range(COUNT)]
    assert max(sizes) < 400 / COUNT * 2 + FEW


def test_some_run_more_often() -> None:
    tests = [Candidate("often.py", f"often {number}", True, 4) for number in range(100)]
    for name in (test.name for test in tests):
        slices = [number for number in range(COUNT) if name in taken(tests, "quick", f"{number}/{COUNT}")]
        assert len(slices) == COUNT / 4


def test_some_are_in_no_slice() -> None:
    tests = [*TESTS, Candidate("installing.py", "installing", True, 0)]
    assert "installing" in taken(tests, "deep", "")
    assert not any("installing" in taken(tests, "quick", f"{number}/{COUNT}") for number in range(COUNT))
