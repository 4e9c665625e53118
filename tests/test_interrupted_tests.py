"""A test that exceeds its time is recognized, so that a run of Spark's tests ends with it."""

from __future__ import annotations

import pytest

from tests.conftest import is_interrupted


def test_an_exception_that_replaces_the_timeout_does_not_hide_it() -> None:
    def test() -> None:
        try:
            pytest.fail("Timeout (>1.0s) from pytest-timeout.")
        finally:
            raise ValueError("a stale answer of the JVM")

    with pytest.raises(ValueError, match="stale answer") as raised:
        test()
    assert is_interrupted(raised.value)


def test_other_failures_are_not_interruptions() -> None:
    assert not is_interrupted(None)
    assert not is_interrupted(AssertionError("1 == 2"))
