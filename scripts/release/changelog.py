"""Reads and dates the newest entry of CHANGELOG.md, which must describe the release.

Changes since the last release are listed below `## Unreleased`, and before the first release below `## 0.1.0 (not
released yet)`. A release replaces this heading with its version and date. A release candidate does not change the
heading.
"""

from __future__ import annotations

import datetime
import re
from pathlib import Path

from scripts.release.errors import RefusedError
from scripts.release.version import Version

FILE = "CHANGELOG.md"
HEADING = re.compile(r"(?m)^## (.*)$")
UNRELEASED = "Unreleased"


def _newest(root: Path) -> tuple[str, re.Match[str], str]:
    """Returns the text of the file, its newest heading, and the entry below that heading."""
    text = (root / FILE).read_text("utf-8")
    headings = list(HEADING.finditer(text))
    if not headings:
        raise RefusedError(f"{FILE} has no entry: describe the release below '## {UNRELEASED}'")
    end = headings[1].start() if len(headings) > 1 else len(text)
    return text, headings[0], text[headings[0].end() : end].strip()


def entry(root: Path, version: Version) -> str:
    """Returns the entry for a release that is about to be made, or that has been made."""
    _, heading, body = _newest(root)
    final = str(version).partition("-")[0]
    accepted = (UNRELEASED, f"{final} (not released yet)")
    if heading[1] not in accepted and not re.fullmatch(
        rf"{re.escape(final)} \(\d{{4}}-\d\d-\d\d\)", heading[1]
    ):
        raise RefusedError(
            f"the newest entry of {FILE} is '{heading[1]}': describe {version} below '## {UNRELEASED}' first"
        )
    if not body:
        raise RefusedError(f"the entry '{heading[1]}' of {FILE} is empty: say what is new")
    return body


def date_entry(root: Path, version: Version, today: datetime.date) -> None:
    """Replaces the heading of the newest entry with the version and the date."""
    entry(root, version)
    text, heading, _ = _newest(root)
    if version.candidate is None:
        new = f"## {version} ({today.isoformat()})"
        (root / FILE).write_text(text[: heading.start()] + new + text[heading.end() :], "utf-8")
