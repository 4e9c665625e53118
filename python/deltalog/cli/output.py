"""Prints the results of commands: tables for people, JSON lines and Arrow for programs."""

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, BinaryIO

from deltalog.cli.failures import UsageError
from deltalog.cli.layout import Style, listed, tabular

if TYPE_CHECKING:
    from deltalog._internal import ArrowBatch, ArrowStream

__all__ = ["Output", "first_rows", "style_of_terminal"]


def style_of_terminal() -> Style:
    """Returns the style that suits standard output. Only a terminal has a width and colors; the ellipsis depends on the
    encoding.
    """
    is_terminal = sys.stdout.isatty()
    encoding = (sys.stdout.encoding or "ascii").lower().replace("-", "")
    return Style(
        _terminal_width() if is_terminal else None,
        color=is_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb",
        ellipsis="…" if encoding.startswith("utf") else "~",
    )


def _terminal_width() -> int:
    chosen = os.environ.get("COLUMNS", "")
    if chosen.isdecimal() and int(chosen) > 0:
        return int(chosen)
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


class Output:
    """Standard output in one of three formats: `table`, `json` (one object per line) or `arrow` (an Arrow IPC
    stream).
    """

    def __init__(self, form: str = "table") -> None:
        self.form = form
        self.style = style_of_terminal()
        if form == "arrow":
            self.ensure_no_terminal("--arrow")

    def ensure_no_terminal(self, option: str) -> None:
        """Raises an error if standard output is a terminal, because `option` writes bytes."""
        if sys.stdout.isatty():
            raise UsageError(
                f"{option} writes bytes, and standard output is a terminal; redirect it to a file or a pipe"
            )

    @property
    def is_for_people(self) -> bool:
        """Whether the format is `table`."""
        return self.form == "table"

    def _bytes(self) -> BinaryIO:
        sys.stdout.flush()
        return sys.stdout.buffer

    def lines(self, lines: Iterable[str]) -> None:
        """Prints lines for people. The caller must have escaped strings that come from a table."""
        for line in lines:
            sys.stdout.write(line + "\n")

    def object(self, value: Mapping[str, Any]) -> None:
        """Prints an object as one line of JSON."""
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
        self._bytes().write(text.encode("utf-8", "backslashreplace") + b"\n")

    def flush(self) -> None:
        """Flushes the output, so that the reader of a pipe gets everything that was printed."""
        sys.stdout.flush()
        sys.stdout.buffer.flush()

    def result(self, value: Mapping[str, Any], pairs: Sequence[tuple[str, str]]) -> None:
        """Prints one result: `value` as JSON, or `pairs` of names and texts for people."""
        if self.is_for_people:
            self.lines(listed(pairs, self.style))
        else:
            self.object(value)

    def table(
        self, names: Sequence[str], rows: Iterable[Sequence[str | None]], values: Iterable[Mapping[str, Any]]
    ) -> None:
        """Prints several results: `values` as JSON, or `rows` as a table for people."""
        if self.is_for_people:
            self.lines(tabular(names, rows, self.style))
        else:
            for value in values:
                self.object(value)

    def rows(self, stream: "ArrowStream", most: int | None = None, *, has_empty_head: bool = True) -> int:
        """Prints at most `most` rows of a stream. Returns how many rows were printed.

        If the stream has no rows and the format is `table`, the names of the columns are only printed if
        `has_empty_head` is true.
        """
        counted = Counted(first_rows(stream, most))
        if self.is_for_people:
            lines = tabular(stream.column_names, _texts(counted), self.style)
            first = next(lines, None)
            if first is not None and (counted.rows or has_empty_head):
                self.lines(chain([first], lines))
            return counted.rows
        from deltalog._internal import Encoder

        encoder, out = Encoder("arrow" if self.form == "arrow" else "json", stream), self._bytes()
        for batch in counted:
            out.write(encoder.encode(batch))
        out.write(encoder.finish())
        return counted.rows


class Counted:
    """An iterable of batches that counts the rows that were read from it."""

    def __init__(self, batches: Iterable["ArrowBatch"]) -> None:
        self._batches = batches
        self.rows = 0

    def __iter__(self) -> Iterator["ArrowBatch"]:
        for batch in self._batches:
            self.rows += batch.num_rows
            yield batch


def first_rows(stream: "ArrowStream", most: int | None) -> Iterator["ArrowBatch"]:
    """Yields the first `most` rows of a stream, or all rows if `most` is None. The other rows are not read."""
    for batch in stream:
        if most is not None and batch.num_rows >= most:
            yield batch.slice(0, most)
            return
        if most is not None:
            most -= batch.num_rows
        yield batch


def _texts(batches: Iterable["ArrowBatch"]) -> Iterator[Sequence[str | None]]:
    for batch in batches:
        # A batch may have a million rows. Converting all of them to strings at once would need much memory.
        for start in range(0, batch.num_rows, _AT_ONCE):
            part = batch.slice(start, _AT_ONCE)
            columns = part.texts()
            yield from zip(*columns, strict=True) if columns else ([] for _ in range(part.num_rows))


_AT_ONCE = 4096
