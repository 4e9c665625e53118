"""Compares a version with its checksum file."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from deltalog import _internal
from deltalog.html import Facts

__all__ = ["Difference", "Verification"]


@dataclass(frozen=True)
class Difference:
    """A field of the checksum file that differs from the log."""

    field: str
    """The name of the field."""
    checksum: Any
    """The value in the checksum file."""
    replay: Any
    """The value that results from replaying the log."""


@dataclass(frozen=True)
class Verification(Facts):
    """The result of comparing a version with its checksum file (protocol: "Version Checksum File")."""

    version: int
    file: str | None
    """The checksum file; None if the version has none that can be read, and nothing was compared."""
    checked: list[str]
    """The names of the fields that were compared."""
    differences: list[Difference]
    """The fields that differ."""

    @property
    def ok(self) -> bool:
        """Whether no difference was found."""
        return not self.differences

    def _facts(self) -> Iterator[tuple[str, object]]:
        yield "ok", self.ok
        yield "version", self.version
        yield "file", self.file
        yield "checked", self.checked
        for each in self.differences:
            yield each.field, f"{each.checksum} in the checksum, {each.replay} in the log"

    @classmethod
    def _of(cls, snapshot: _internal.Snapshot) -> "Verification":
        """Compares the version of `snapshot` with its checksum file."""
        file, checked, differences = snapshot.verify()
        parsed = [
            Difference(field, json.loads(checksum), json.loads(replay))
            for field, checksum, replay in differences
        ]
        return cls(snapshot.version, file, checked, parsed)
