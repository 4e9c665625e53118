"""Plots: figures are not blank, charts are valid, and wrong arguments raise errors."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import deltalog.plot
from deltalog import DeltaTable, InvalidArgumentError, NotATableError
from deltalog.extras import ExtraRequiredError
from tests.python.plotted import add, bounds, info, table

LONG_NAME = "a $very$ long name of a table \x1b[31m with <b>marks</b> and 数据 " * 3

PLOTS: dict[str, Any] = {
    "files": deltalog.plot.files,
    "overlap": lambda table, **others: deltalog.plot.overlap(table, "x", **others),
    "growth": deltalog.plot.growth,
    "commits": deltalog.plot.commits,
}


def many(path: Path, files: int) -> DeltaTable:
    """Writes the log of a table with many files in a few commits, and with long names."""
    at = range(files)
    adds = [
        add(
            f"{n}",
            1000 + n,
            partitionValues={"p": f"{LONG_NAME}{n % 30}"},
            **bounds(n * 10, n * 10 + n % 400),
        )
        for n in at
    ]
    commits = [[info(0, "WRITE", 0), *adds[::2]], [info(1, LONG_NAME, 9000, readVersion=0), *adds[1::2]]]
    commits.append([info(2, "MERGE", 9500, readVersion=0)])
    return table(path, commits, {"p": "string", "x": "long"}, ["p"])


def image_of(figure: Any) -> Any:
    """Returns the pixels of a figure."""
    from matplotlib.image import imread

    written = io.BytesIO()
    figure.savefig(written, format="png", dpi=50)
    written.seek(0)
    return imread(written)


def share(image: Any, color: str) -> float:
    """Returns the share of pixels that have about this color."""
    from matplotlib.colors import to_rgb

    return float((abs(image[:, :, :3] - to_rgb(color)).max(axis=2) < 0.1).mean())


@pytest.mark.parametrize("kind", PLOTS)
@pytest.mark.parametrize("files", [0, 1, 300])
@pytest.mark.filterwarnings("ignore:Glyph")
def test_figures(tmp_path: Path, kind: str, files: int) -> None:
    pytest.importorskip("matplotlib")
    from deltalog.plot.figure import COLORS

    figure = PLOTS[kind](many(tmp_path / "t", files))
    image = image_of(figure)
    assert image.std() > 0.01
    if files or kind == "commits":
        assert max(share(image, color) for color in COLORS) > 0.001
    assert figure._repr_png_().startswith(b"\x89PNG")
    assert "matplotlib.pyplot" not in sys.modules or not __import__("matplotlib.pyplot").pyplot.get_fignums()


def test_figures_have_the_style_of_the_program(tmp_path: Path) -> None:
    style = pytest.importorskip("matplotlib.style")
    found = many(tmp_path / "t", 10)
    assert share(image_of(deltalog.plot.overlap(found, "x")), "white") > 0.5
    with style.context("dark_background"):
        dark = image_of(deltalog.plot.overlap(found, "x"))
    assert share(dark, "black") > 0.5
    assert share(dark, "white") > 0.001


def test_the_texts_of_a_figure(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    figure = deltalog.plot.overlap(table(tmp_path / "t", [[add("a", **bounds(1, 2))]], {"x": "long"}), "x")
    texts = [text.get_text() for axes in figure.axes for text in axes.texts]
    assert texts == ["A filter on one value reads 1.0 of 1 file on average, and 1 at most."]
    assert figure.get_suptitle() == "Overlap of files of t in x"


@pytest.mark.parametrize("kind", PLOTS)
@pytest.mark.parametrize("files", [0, 1, 10_000])
def test_charts(tmp_path: Path, kind: str, files: int) -> None:
    pytest.importorskip("altair")
    # `to_dict` checks the chart against the schema of Vega-Lite.
    chart = PLOTS[kind](many(tmp_path / "t", files), library="altair").to_dict()
    assert [part["mark"] for part in chart["vconcat"]]
    assert chart["title"]["text"].startswith(("Files of", "Overlap of", "Growth of", "Commits of"))


@pytest.mark.parametrize(("library", "name"), [("matplotlib", "plot"), ("altair", "altair")])
def test_a_library_that_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, library: Any, name: str
) -> None:
    found = many(tmp_path / "t", 1)
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.setitem(sys.modules, f"{library}.figure", None)
    with pytest.raises(ExtraRequiredError, match=rf"pip install 'deltalog\[{name}\]'"):
        deltalog.plot.files(found, library=library)


def test_wrong_arguments(tmp_path: Path) -> None:
    found = many(tmp_path / "t", 1)
    plot: Any = deltalog.plot
    calls: list[tuple[Callable[[], object], str]] = [
        (
            lambda: plot.files(found, library="gnuplot"),
            "library cannot be 'gnuplot'; pass 'matplotlib' or 'altair'",
        ),
        (
            lambda: plot.files(found, storage_options={"a": "b"}),
            "storage_options cannot be passed with a table",
        ),
        (lambda: plot.growth(found, -1), "limit cannot be -1"),
        (lambda: plot.commits(found, "x"), "limit cannot be 'x'"),
        (lambda: plot.overlap(found, "nope"), "there is no column 'nope'"),
        (lambda: plot.overlap(found, None), "column cannot be None"),
        (lambda: plot.files(3), "table"),
    ]
    for call, message in calls:
        with pytest.raises(InvalidArgumentError, match=message):
            call()
    with pytest.raises(NotATableError):
        plot.files(tmp_path / "nothing")
