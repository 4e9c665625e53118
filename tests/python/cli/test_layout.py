"""The layout of printed tables: column widths, cut-off values, escapes and colors."""

from __future__ import annotations

import pytest

from deltalog.cli.layout import Style, listed, tabular, width_of
from deltalog.escape import visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("größer 数据 👩\u200d🚀", "größer 数据 👩\u200d🚀"),
        ("\x1b[2J\x1b]0;title\x07", "\\x1b[2J\\x1b]0;title\\x07"),
        ("a\nb\tc\rd", "a\\nb\\tc\\rd"),
        ("\x9b31m\x7f", "\\x9b31m\\x7f"),
        ("\u202egnp.exe\u2066", "\\u202egnp.exe\\u2066"),
        ("zero\u200bwidth\ufeff\u2028", "zero\\u200bwidth\\ufeff\\u2028"),
        ("\U000e0041", "\\U000e0041"),
        ("\ud800", "\\ud800"),
    ],
)
def test_text_that_a_terminal_would_obey_or_hide(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_widths() -> None:
    assert [width_of(text) for text in ("abc", "数据", "e\u0301", "👩")] == [3, 4, 1, 2]


ROWS: list[list[str | None]] = [["Oslo", "4.5"], ["a very long name of a place", "12.0"], [None, None]]


def test_output_to_a_pipe_is_not_cut_off() -> None:
    lines = list(tabular(["city", "km"], ROWS, Style()))
    assert lines == [
        "city                           km",
        "---------------------------  ----",
        "Oslo                          4.5",
        "a very long name of a place  12.0",
        "NULL                         NULL",
    ]


def test_a_terminal_gets_what_fits() -> None:
    lines = list(tabular(["city", "km"], ROWS, Style(20)))
    assert lines[3] == "a very long n…  12.0"
    assert max(map(width_of, lines)) == 20
    assert list(tabular(["city", "km"], ROWS, Style(20, ellipsis="~")))[3] == "a very long n~  12.0"


def test_wide_characters_are_cut_where_they_end() -> None:
    lines = list(tabular(["数"], [["数据数据数据数据"]], Style(10)))
    assert lines[2] == "数据数据…"


@pytest.mark.parametrize("width", [1, 12, 40])
def test_a_table_of_many_columns_is_a_list_in_a_narrow_terminal(width: int) -> None:
    names = [f"column {number}" for number in range(8)]
    lines = list(tabular(names, [["some words of text" + "!" * 60] * 8] * 2, Style(width)))
    assert lines[0] == "-- 1"
    assert "-- 2" in lines
    assert max(map(width_of, lines)) <= max(width, 4)
    assert sum(line.count("!") for line in lines) == 2 * 8 * 60


def test_rows_that_are_wider_than_the_first_ones() -> None:
    rows = [["1"]] * 1000 + [["a long text"]]
    assert list(tabular(["n"], rows, Style()))[-1] == "a long text"
    assert list(tabular(["n"], rows, Style(40)))[-1] == "…"


def test_no_columns_and_no_rows() -> None:
    assert list(tabular([], [[], []], Style(40))) == []
    assert list(tabular(["a"], [], Style(40))) == ["a", "-"]


def test_rows_are_printed_as_they_arrive() -> None:
    taken = []

    def rows() -> object:
        for number in range(5000):
            taken.append(number)
            yield [str(number)]

    lines = tabular(["n"], rows(), Style())  # type: ignore[arg-type]
    next(lines)
    assert len(taken) == 1000


def test_named_values() -> None:
    pairs = [("location", "s3://bucket/a/path/which/is/long"), ("rows", "7")]
    assert list(listed(pairs, Style())) == ["location  s3://bucket/a/path/which/is/long", "rows      7"]
    lines = list(listed(pairs, Style(24)))
    assert lines == ["location  s3://bucket/a/", "          path/which/is/", "          long", "rows      7"]


def test_colors_do_not_change_widths() -> None:
    plain = list(tabular(["city", "km"], ROWS, Style(20)))
    colored = list(tabular(["city", "km"], ROWS, Style(20, color=True)))
    assert colored[0].startswith("\x1b[1m")
    assert "\x1b[2m" in colored[-1]
    assert [strip(line) for line in colored] == plain


def strip(line: str) -> str:
    for code in ("\x1b[1m", "\x1b[2m", "\x1b[0m"):
        line = line.replace(code, "")
    return line.rstrip()
