"""What the golden tables are and what each of them expects; see the README that comes with them."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(os.environ.get("DELTALOG_GOLDEN", Path(__file__).parents[3] / "shared" / "golden"))


@dataclass(frozen=True)
class Golden:
    """One golden table."""

    name: str
    expected: dict[str, Any]

    @property
    def outcome(self) -> str:
        return str(self.expected["outcome"])

    @property
    def table(self) -> Path:
        return ROOT / self.name / "table"

    @property
    def features(self) -> set[str]:
        """The table features that the table uses, also those that an older protocol version implies."""
        protocol = self.expected.get("protocol") or {}
        used = {*protocol.get("readerFeatures", ()), *protocol.get("writerFeatures", ())}
        configuration = (self.expected.get("metadata") or {}).get("configuration") or {}
        if (
            protocol.get("minReaderVersion") == 2
            or configuration.get("delta.columnMapping.mode", "none") != "none"
        ):
            used.add("columnMapping")
        return used


def load() -> list[Golden]:
    """All golden tables in the manifest's order; none when the folder is absent."""
    manifest = ROOT / "manifest.jsonl"
    if not manifest.is_file():
        return []
    names = [json.loads(line)["name"] for line in manifest.read_text().splitlines()]
    return [Golden(name, json.loads((ROOT / name / "expected.json").read_text())) for name in names]
