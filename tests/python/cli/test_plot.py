"""`deltalog plot` prints text that fits a terminal, writes pictures, and reports wrong arguments."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from deltalog.cli.layout import Style, width_of
from deltalog.cli.plots import text_lines
from deltalog.escape import visible
from deltalog.plot import pictures
from deltalog.plot.numbers.commits import commits_of
from deltalog.plot.numbers.files import file_sizes
from deltalog.plot.numbers.growth import growth_of
from deltalog.plot.numbers.overlap import overlap_of
from deltalog.plot.picture import Bars, Curve, Panel, Picture, amount
from tests.python.cli.conftest import Command
from tests.python.plotted import add, bounds, table
from tests.python.test_plot import LONG_NAME, many


def test_text_of_hand_made_plots() -> None:
    panels: list[Panel] = [
        Bars("Sizes", ["a", "bc"], {"files": [1, 4]}, ["1", "4"]),
        Curve("Rows", "version", [7, 8], [1, 4]),
    ]
    picture = Picture("Title", "Summary.", panels)
    assert list(text_lines(picture, Style(20))) == [
        "Title",
        "Summary.",
        "",
        "Sizes",
        "a   ███▌ 1",
        "bc  ██████████████ 4",
        "",
        "Rows",
        "4          █████████",
        "           █████████",
        "           █████████",
        "           █████████",
        "  ▄▄▄▄▄▄▄▄▄█████████",
        "0 ██████████████████",
        "  7                8",
    ]


@pytest.mark.parametrize("width", [20, 40, 80, None])
@pytest.mark.parametrize("files", [0, 1, 300])
@pytest.mark.parametrize("ellipsis", ["…", "~"])
def test_text_fits(tmp_path: Path, width: int | None, files: int, ellipsis: str) -> None:
    found, name = many(tmp_path / "t", files), visible(LONG_NAME)
    for picture in (
        pictures.files_picture(file_sizes(found), name),
        pictures.overlap_picture(overlap_of(found, "x"), name, 16),
        pictures.growth_picture(growth_of(found), name),
        pictures.commits_picture(commits_of(found, most=16), name),
    ):
        lines = list(text_lines(picture, Style(width, ellipsis=ellipsis)))
        assert max(map(width_of, lines)) <= (width or 80)
        assert not any("\x1b" in line for line in lines)
        if files and width != 20:
            assert any(("█" if ellipsis == "…" else "#") in line for line in lines)
        if ellipsis == "~":
            assert not any(mark in line for line in lines for mark in "█▏▁▄")


def test_amounts() -> None:
    counts = [amount(number, "count") for number in (0, 999, 9999, 10_000, 2_500_000, 3e9)]
    assert counts == ["0", "999", "9999", "10 K", "2500 K", "3000 M"]
    assert [amount(number, "bytes") for number in (1, 1023, 1024, 1536, 1 << 20)] == [
        "1 B",
        "1023 B",
        "1 KiB",
        "1.5 KiB",
        "1 MiB",
    ]


def test_plots_of_a_table(run: Command) -> None:
    ran = run("plot", "trips")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("Files of trips\n3 files in 2 partitions, ")
    assert "\x1b" not in ran.out
    ran = run("plot", "trips", "overlap", "km", "--json")
    (value,) = ran.objects
    assert (value["files"], value["most_files_read"], value["files_without_bounds"]) == (3, 1, 0)
    assert [size["rows"] for size in run("plot", "trips", "growth", "--json").objects] == [3, 4]
    assert [size["rows"] for size in run("plot", "trips", "growth", "-n", "1", "--json").objects] == [4]
    assert (
        sum(sum(each["operations"].values()) for each in run("plot", "trips", "commits", "--json").objects)
        == 2
    )
    (value,) = run("plot", "trips", "--json", "--at", "0").objects
    assert (value["files"], len(value["partitions"])) == (2, 2)


def test_pictures(run: Command, place: Path) -> None:
    image = pytest.importorskip("matplotlib.image")
    light = run("plot", "trips", "overlap", "km", "--save", "a.png")
    assert (light.code, light.out, light.err) == (0, "a.png is written\n", "")
    assert run("plot", "trips", "overlap", "km", "--save", "dark.png", "--dark").code == 0
    assert image.imread("a.png").mean() > 0.8 > 0.5 > image.imread("dark.png")[:, :, :3].mean()
    assert run("plot", "trips", "growth", "--save", "g.svg").code == 0
    assert "<svg" in (place / "g.svg").read_text()
    again = run("plot", "trips", "--save", "a.png")
    assert (again.code, again.err.count("\n")) == (2, 1)
    assert "pass --replace" in again.err
    assert run("plot", "trips", "--save", "a.png", "--replace").code == 0
    assert not [file.name for file in place.iterdir() if file.name.endswith(".part")]


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (("plot", "trips", "overlap", "nope"), 2, "there is no column 'nope'; pass one of city, km"),
        (("plot", "trips", "overlap"), 2, "only overlap takes a column"),
        (("plot", "trips", "growth", "km"), 2, "only overlap takes a column"),
        (("plot", "trips", "pie"), 2, "invalid choice: 'pie'"),
        (("plot", "trips", "--save", "a.gif"), 2, ".png or .svg"),
        (("plot", "trips", "--save", "a.png", "--json"), 2, "cannot be used with --json"),
        (("plot", "trips", "--dark"), 2, "can only be used with --save"),
        (("plot", "trips", "--save", "nowhere/a.png"), 3, "nowhere"),
        (("plot", "trips", "--at", "9"), 3, "the readable versions are 0 to 1"),
    ],
)
def test_wrong_arguments(run: Command, arguments: tuple[str, ...], code: int, text: str) -> None:
    ran = run(*arguments)
    assert (ran.code, ran.out, ran.err.count("\n")) == (code, "", 1), ran
    assert text in ran.err


def test_matplotlib_is_missing(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.style", None)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    ran = run("plot", "trips", "--save", "a.png")
    assert (ran.code, ran.err.count("\n")) == (5, 1)
    assert "pip install 'deltalog[plot]'" in ran.err


def test_values_of_untrusted_tables_are_escaped(run: Command, place: Path) -> None:
    adds = [add(f"{at}", partitionValues={"p": "\x1b[2J"}, **bounds("a\x1b]0;", "b\x07")) for at in range(2)]
    table(place / "evil", [adds], {"p": "string", "x": "string"}, ["p"])
    for what in (["files"], ["overlap", "x"], ["overlap", "p"]):
        ran = run("plot", "evil", *what)
        assert ran.code == 0
        assert "\x1b" not in ran.out
        assert "\\x1b" in ran.out
