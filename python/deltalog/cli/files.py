"""Opens the files for `append` and `export`, and determines their format.

A written file appears under its name only when it is complete. The name `-` is standard input or output.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from deltalog.cli.failures import UsageError

__all__ = ["FORMATS", "format_of", "opened", "written"]

FORMATS = ("csv", "jsonl", "parquet", "arrow")

_SUFFIXES = {
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".csv": "csv",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".json": "jsonl",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
}


def format_of(name: str, chosen: str | None) -> str:
    """Returns the format `chosen`, or else the format for the extension of the file's name."""
    if chosen is not None:
        return chosen
    path = Path(name)
    suffix = Path(path.stem).suffix if path.suffix == ".gz" else path.suffix
    if suffix.lower() not in _SUFFIXES:
        shown = "a pipe" if name == "-" else f"the name {name!r}"
        raise UsageError(f"{shown} does not show the format; pass --format")
    return _SUFFIXES[suffix.lower()]


@contextmanager
def opened(name: str) -> Iterator[IO[bytes]]:
    """Opens a file for reading. If its name ends with `.gz`, its content is decompressed."""
    if name == "-":
        yield sys.stdin.buffer
        return
    with open(name, "rb") as file:  # noqa: PTH123 (`Path` would take `.` for the empty name)
        if name.endswith(".gz"):
            import gzip

            with gzip.open(file) as content:
                yield cast(IO[bytes], content)
        else:
            yield file


@contextmanager
def written(name: str, *, replaces: bool) -> Iterator[IO[bytes]]:
    """Opens a file for writing. If writing fails, the file is deleted."""
    if name == "-":
        sys.stdout.flush()
        yield sys.stdout.buffer
        return
    target = Path(name)
    if not replaces and os.path.lexists(target):
        raise UsageError(f"the file {name!r} exists; pass --replace to replace it")
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with part.open("xb") as file:
            if name.endswith(".gz"):
                import gzip

                with gzip.GzipFile(target.stem, "wb", fileobj=file) as content:
                    yield cast(IO[bytes], content)
            else:
                yield file
            file.flush()
            os.fsync(file.fileno())
        if replaces:
            part.replace(target)
        else:
            _publish(part, target)
    finally:
        part.unlink(missing_ok=True)


def _publish(part: Path, target: Path) -> None:
    """Renames the complete file to its final name. Raises an error if a file with this name was created after the
    check.
    """
    try:
        os.link(part, target)
    except FileExistsError:
        raise UsageError(f"the file {str(target)!r} exists; pass --replace to replace it") from None
