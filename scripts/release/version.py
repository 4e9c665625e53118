"""Parses and orders versions, and replaces the current version everywhere in the repository.

- A version is `1.2.3` or `1.2.3-rc.1`, as Cargo spells it. Python packages and wheels spell the latter `1.2.3rc1`.
- It is an error if one of the places does not contain the version, or contains a different one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import total_ordering
from pathlib import Path

from scripts.release.errors import RefusedError

NUMBER = r"(?:0|[1-9][0-9]*)"
VERSION = re.compile(rf"({NUMBER})\.({NUMBER})\.({NUMBER})(?:-rc\.({NUMBER}))?")
# The version of the package for DataFusion begins with the major version of DataFusion that it works with.
DATAFUSION_MAJOR = 55
# `VERSION` stands for the version.
PLACES = {
    "Cargo.toml": (
        '[workspace.package]\nversion = "VERSION"\n',
        'deltalog = { path = "crates/deltalog", version = "VERSION" }\n',
    ),
    "Cargo.lock": tuple(
        f'[[package]]\nname = "{name}"\nversion = "VERSION"\n'
        for name in ("deltalog", "deltalog-python", "deltalog-testkit")
    ),
    "crates/deltalog-datafusion/Cargo.toml": (
        'name = "deltalog-datafusion"\nversion = "VERSION"\n',
        'deltalog = { path = "../deltalog", version = "=VERSION" }\n',
    ),
    "crates/deltalog-datafusion/Cargo.lock": tuple(
        f'[[package]]\nname = "{name}"\nversion = "VERSION"\n'
        for name in ("deltalog", "deltalog-datafusion", "deltalog-datafusion-python")
    ),
    "crates/deltalog-datafusion/python/Cargo.toml": (
        'name = "deltalog-datafusion-python"\nversion = "VERSION"\n',
        'deltalog = { path = "../../deltalog", version = "=VERSION"',
        'deltalog-datafusion = { path = "..", version = "=VERSION" }\n',
    ),
    "crates/deltalog-datafusion/python/pyproject.toml": (
        f'version = "{DATAFUSION_MAJOR}.VERSION"\n',
        'dependencies = ["deltalog==VERSION", ',
    ),
}
"""For each file, the texts that contain the version. pyproject.toml, the jars and the binary take the version from
Cargo.toml.
"""


@total_ordering
@dataclass(frozen=True)
class Version:
    """The version of a release, or of a candidate for it."""

    major: int
    minor: int
    patch: int
    candidate: int | None = None

    @classmethod
    def parse(cls, text: str) -> Version:
        found = VERSION.fullmatch(text)
        if found is None:
            raise RefusedError(f"{text!r} is not a version: write it as 1.2.3, or 1.2.3-rc.1 for a candidate")
        major, minor, patch, candidate = found.groups()
        return cls(int(major), int(minor), int(patch), None if candidate is None else int(candidate))

    def __str__(self) -> str:
        candidate = "" if self.candidate is None else f"-rc.{self.candidate}"
        return f"{self.major}.{self.minor}.{self.patch}{candidate}"

    def __lt__(self, other: Version) -> bool:
        return self._order() < other._order()

    def _order(self) -> tuple[int, int, int, bool, int]:
        return (self.major, self.minor, self.patch, self.candidate is None, self.candidate or 0)

    @property
    def tag(self) -> str:
        return f"v{self}"

    @property
    def of_python(self) -> str:
        """The version as Python packages spell it."""
        return str(self).replace("-rc.", "rc")


def current(root: Path) -> Version:
    """Returns the version of a working tree, which must be the same in all its files."""
    found: dict[str, list[str]] = {}
    for file, texts in PLACES.items():
        content = (root / file).read_text("utf-8")
        for text in texts:
            before, after = map(re.escape, text.split("VERSION"))
            versions = re.findall(rf"(?m)^{before}(.*?){after}", content)
            if len(versions) != 1:
                raise RefusedError(
                    f"{file} has {len(versions)} texts like {text!r}, and must have one (see PLACES)"
                )
            found.setdefault(versions[0], []).append(file)
    if len(found) != 1:
        listed = ", ".join(
            f"{version} in {' and '.join(sorted(set(files)))}" for version, files in found.items()
        )
        raise RefusedError(
            f"the files differ in the version: {listed}; set the same version in all of them first"
        )
    return Version.parse(next(iter(found)))


def set_version(root: Path, new: Version) -> list[str]:
    """Replaces the version in all places. Returns the changed files."""
    old = current(root)
    for file, texts in PLACES.items():
        content = (root / file).read_text("utf-8")
        for text in texts:
            content = content.replace(text.replace("VERSION", str(old)), text.replace("VERSION", str(new)))
        (root / file).write_text(content, "utf-8")
    if current(root) != new:
        raise RefusedError(f"the version is {current(root)} after it has been set to {new}")
    return list(PLACES)
