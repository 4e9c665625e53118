"""Plots of tables: sizes of files, overlap of files, growth, and commits over time.

`deltalog.plot.files(table)` returns a matplotlib figure (`pip install 'deltalog[plot]'`), or with `library="altair"` an
Altair chart (`pip install 'deltalog[altair]'`). All numbers come from the log: no data file is read. The command
`deltalog plot` draws the same plots in a terminal.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, overload
from urllib.parse import unquote

from deltalog.arguments import limit_argument
from deltalog.conditions import Location, opened_table
from deltalog.errors import wrong_argument
from deltalog.escape import visible
from deltalog.plot import pictures
from deltalog.plot.chart import chart_of
from deltalog.plot.figure import figure_of
from deltalog.plot.numbers.commits import commits_of
from deltalog.plot.numbers.files import file_sizes
from deltalog.plot.numbers.growth import growth_of
from deltalog.plot.numbers.overlap import overlap_of
from deltalog.plot.picture import Picture
from deltalog.table.delta_table import DeltaTable

if TYPE_CHECKING:
    from altair import VConcatChart
    from matplotlib.figure import Figure

__all__ = ["commits", "files", "growth", "overlap"]

_PARTS = 200
"""The number of parts into which the axis of an overlap plot is divided."""


@overload
def files(
    table: Location,
    *,
    library: Literal["matplotlib"] = "matplotlib",
    storage_options: Mapping[str, str] | None = None,
) -> "Figure": ...


@overload
def files(
    table: Location,
    *,
    library: Literal["altair"],
    storage_options: Mapping[str, str] | None = None,
) -> "VConcatChart": ...
def files(
    table: Location,
    *,
    library: Literal["matplotlib", "altair"] = "matplotlib",
    storage_options: Mapping[str, str] | None = None,
) -> Any:
    """Draws the sizes of a table's files, and the bytes of its partitions.

    Many small files take longer to read than a few large ones: `DeltaTable.optimize.compact` combines them.

    Args:
        table: a table, or its path or URL. A `DeltaTable` may be opened at any version.
        library: `matplotlib` for a figure, or `altair` for a chart.
        storage_options: the options of the store, for a path or URL.

    Raises:
        ExtraRequiredError: the library is not installed.
        InvalidArgumentError: an argument is wrong.
        NotATableError: there is no table.
    """
    opened = opened_table(table, storage_options)
    return _drawn(library, lambda: pictures.files_picture(file_sizes(opened), name_of(opened)))


@overload
def overlap(
    table: Location,
    column: str,
    *,
    library: Literal["matplotlib"] = "matplotlib",
    storage_options: Mapping[str, str] | None = None,
) -> "Figure": ...


@overload
def overlap(
    table: Location,
    column: str,
    *,
    library: Literal["altair"],
    storage_options: Mapping[str, str] | None = None,
) -> "VConcatChart": ...
def overlap(
    table: Location,
    column: str,
    *,
    library: Literal["matplotlib", "altair"] = "matplotlib",
    storage_options: Mapping[str, str] | None = None,
) -> Any:
    """Draws how the files of a table overlap in a column, that is, how well a filter on it can skip files.

    For each value of the column, the plot shows how many files have bounds that include the value. A filter on this
    value must read all of them. Ordering the rows reduces their number: use `DeltaTable.optimize.z_order`, or
    clustering.

    Args:
        table: a table, or its path or URL. A `DeltaTable` may be opened at any version.
        column: the column; fields of structs are separated by `.`.
        library: `matplotlib` for a figure, or `altair` for a chart.
        storage_options: the options of the store, for a path or URL.

    Raises:
        ExtraRequiredError: the library is not installed.
        InvalidArgumentError: there is no such column, its type has no order, or an argument is wrong.
        NotATableError: there is no table.
    """
    opened = opened_table(table, storage_options)
    return _drawn(
        library, lambda: pictures.overlap_picture(overlap_of(opened, column), name_of(opened), _PARTS)
    )


@overload
def growth(
    table: Location,
    limit: int | None = None,
    *,
    library: Literal["matplotlib"] = "matplotlib",
    storage_options: Mapping[str, str] | None = None,
) -> "Figure": ...


@overload
def growth(
    table: Location,
    limit: int | None = None,
    *,
    library: Literal["altair"],
    storage_options: Mapping[str, str] | None = None,
) -> "VConcatChart": ...
def growth(
    table: Location,
    limit: int | None = None,
    *,
    library: Literal["matplotlib", "altair"] = "matplotlib",
    storage_options: Mapping[str, str] | None = None,
) -> Any:
    """Draws the rows, files and bytes of each version of a table, and the bytes of the commits in its log.

    Args:
        table: a table, or its path or URL. A `DeltaTable` may be opened at any version.
        limit: draw only this number of the newest versions; by default, all versions that the log still has.
        library: `matplotlib` for a figure, or `altair` for a chart.
        storage_options: the options of the store, for a path or URL.

    Raises:
        ExtraRequiredError: the library is not installed.
        InvalidArgumentError: an argument is wrong.
        NotATableError: there is no table.
    """
    opened, last = opened_table(table, storage_options), limit_argument(limit)
    return _drawn(library, lambda: pictures.growth_picture(growth_of(opened, last), name_of(opened)))


@overload
def commits(
    table: Location,
    limit: int | None = None,
    *,
    library: Literal["matplotlib"] = "matplotlib",
    storage_options: Mapping[str, str] | None = None,
) -> "Figure": ...


@overload
def commits(
    table: Location,
    limit: int | None = None,
    *,
    library: Literal["altair"],
    storage_options: Mapping[str, str] | None = None,
) -> "VConcatChart": ...
def commits(
    table: Location,
    limit: int | None = None,
    *,
    library: Literal["matplotlib", "altair"] = "matplotlib",
    storage_options: Mapping[str, str] | None = None,
) -> Any:
    """Draws the commits of a table over time, by operation, and how many of them other writers have overtaken.

    A commit was overtaken if other commits were made between the version that its writer had read and the version that
    it committed. Its writer then had to check that they do not conflict. Attempts that failed with a conflict leave no
    trace in the log.

    Args:
        table: a table, or its path or URL. A `DeltaTable` may be opened at any version.
        limit: draw only this number of the newest commits; by default, all commits that the log still has.
        library: `matplotlib` for a figure, or `altair` for a chart.
        storage_options: the options of the store, for a path or URL.

    Raises:
        ExtraRequiredError: the library is not installed.
        InvalidArgumentError: an argument is wrong.
        NotATableError: there is no table.
    """
    opened, last = opened_table(table, storage_options), limit_argument(limit)
    return _drawn(library, lambda: pictures.commits_picture(commits_of(opened, last), name_of(opened)))


def name_of(table: DeltaTable) -> str:
    """Returns the name of a table, or the name of its directory if the table has no name."""
    return visible(table.metadata().name or unquote(table.table_uri.rsplit("/", 1)[-1]))


def _drawn(library: object, picture: Callable[[], Picture]) -> Any:
    if library == "matplotlib":
        return figure_of(picture())
    if library == "altair":
        return chart_of(picture())
    raise wrong_argument("library", library, "'matplotlib' or 'altair'")
