"""FUNCTIONS.md: all operators and functions, each with an example that was run."""

from __future__ import annotations

import re

from deltalog import _internal
from scripts import functions

CODE = re.compile(r"`([^`]+)`")


def test_the_page_is_that_of_the_package() -> None:
    assert functions.PAGE.read_text("utf-8") == functions.page(), "run scripts/functions.py"


def test_the_page_has_every_function() -> None:
    code = "\n".join(
        code for _, _, rows in functions.SECTIONS for what, _ in rows for code in CODE.findall(what)
    )
    called, all_names = (
        set(re.findall(r"^([a-z0-9_]+)\(", code, re.M)),
        set(re.findall(r"^[a-z0-9_]+", code, re.M)),
    )
    known = set(_internal.function_names())
    assert not known - all_names, "without a line"
    assert not called - known, "no function"
