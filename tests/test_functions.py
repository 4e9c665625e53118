"""FUNCTIONS.md lists all operators and functions, each with an example that was run."""

from __future__ import annotations

import re

from deltalog import _internal
from scripts import functions

CODE = re.compile(r"`([^`]+)`")


def test_the_page_is_that_of_the_package() -> None:
    assert functions.PAGE.read_text("utf-8") == functions.page(), "run scripts/functions.py"


def test_expressions_of_tables_may_call_all_functions_but_random_ones() -> None:
    """An expression that is stored in a table may call every function that deltalog evaluates, except random ones. It
    may also call some functions that only Spark evaluates.
    """
    always, by_statement = _internal.rule_functions()
    assert set(_internal.function_names()) - {*always, *by_statement} == {"rand", "random", "uuid"}
    assert {"now", "current_date"} <= set(by_statement)
    assert "xxhash64" in always
    assert not {"reflect", "input_file_name", "current_user"} & {*always, *by_statement}


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
