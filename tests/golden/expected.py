"""Loads the golden tables with their expected results. The README beside the tables describes the format."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import deltalog

MUST_FAIL: dict[str, tuple[type[deltalog.DeltaError], str]] = {
    "dkrs-crc-malformed": (deltalog.CorruptLogError, "commit.*checkpoint"),
    "dkrs-table-with-geo": (deltalog.UnsupportedFeatureError, "'geospatial'"),
    "drserr-table_c": (deltalog.CorruptLogError, "version 12"),
    "drserr-table_e": (deltalog.UnsupportedFeatureError, "'catalogOwned'"),
    "drserr-table_h": (deltalog.UnsupportedFeatureError, "'catalogOwned'"),
    "golden-deltalog-state-reconstruction-from-checkpoint-missing-protocol": (
        deltalog.CorruptLogError,
        "'protocol'",
    ),
    "golden-deltalog-state-reconstruction-without-metadata": (deltalog.CorruptLogError, "'metaData'"),
    "goldenrs-no-delta-log-folder": (deltalog.NotATableError, "_delta_log"),
}
"""For each table that must be refused: the class of the error, and words of its message."""

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
        """Returns the table features in use, including column mapping if a reader version or a property implies it."""
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
    """Returns all golden tables in the order of the manifest. The list is empty if the folder does not exist."""
    manifest = ROOT / "manifest.jsonl"
    if not manifest.is_file():
        return []
    names = [json.loads(line)["name"] for line in manifest.read_text().splitlines()]
    return [Golden(name, json.loads((ROOT / name / "expected.json").read_text())) for name in names]
