"""Tables that other implementations wrote are read as expected, or refused with an error that names a feature.

A refusal is accepted only if the table uses the named feature and the feature is in `REFUSED`. When a feature is
implemented, remove its line from `REFUSED`.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltalog
from deltalog import _internal
from tests.conftest import missing
from tests.golden import canonical
from tests.golden.expected import MUST_FAIL, ROOT, Golden, load

REFUSED = {
    "geospatial",
}

TABLES = load()


class RefusedError(Exception):
    """The reader refused the table, because it does not implement one of its features."""


@contextmanager
def refusal(golden: Golden) -> Iterator[None]:
    """Turns an `UnsupportedFeatureError` with an accepted reason into `RefusedError`. Any other error is a failure."""
    try:
        yield
    except deltalog.UnsupportedFeatureError as error:
        named = [feature for feature in sorted(golden.features & REFUSED) if feature in str(error)]
        if not named:
            raise
        raise RefusedError(", ".join(named)) from error


def paths_sha256(table: deltalog.DeltaTable) -> tuple[int, str]:
    """Returns the number of live files and the hash over their paths and deletion vectors."""
    files = pa.table(table.files(columns=["path", "deletion_vector"])).to_pylist()
    lines = []
    for file in files:
        vector = file["deletion_vector"]
        unique_id = ""
        if vector is not None:
            unique_id = vector["storage_type"] + vector["path_or_inline_dv"]
            unique_id += "" if vector["offset"] is None else f"@{vector['offset']}"
        lines.append(f"{file['path']}|{unique_id}")
    return len(lines), canonical.sha256(sorted(lines))


def rows_sha256(table: deltalog.DeltaTable, *, view_types: bool = False) -> tuple[int, str]:
    lines = canonical.rows(pa.table(table.to_arrow(view_types=view_types)))
    return len(lines), canonical.sha256(lines)


def check_log(table: deltalog.DeltaTable, expected: dict[str, Any]) -> None:
    """Checks version, protocol, metadata and schema."""
    assert table.version() == expected["version"]
    protocol, wanted = table.protocol(), expected["protocol"]
    assert protocol.min_reader_version == wanted["minReaderVersion"]
    assert protocol.min_writer_version == wanted["minWriterVersion"]
    assert sorted(protocol.reader_features or []) == sorted(wanted.get("readerFeatures", []))
    assert sorted(protocol.writer_features or []) == sorted(wanted.get("writerFeatures", []))
    metadata, wanted = table.metadata(), expected["metadata"]
    assert metadata.id == wanted["id"]
    assert metadata.partition_columns == wanted["partitionColumns"]
    assert metadata.configuration == wanted.get("configuration", {})
    assert json.loads(table.schema().to_json()) == expected["schema"]
    assert table.transaction_versions() == {
        app: txn["version"] for app, txn in (expected.get("txns") or {}).items()
    }
    assert table.domain_metadata() == (expected.get("domain_metadata") or {})
    assert table.verify().ok
    stamps = {
        str(entry["version"]): entry["timestamp"] for entry in table.history() if "inCommitTimestamp" in entry
    }
    assert stamps == (expected.get("in_commit_timestamps") or {})


def check_state(table: deltalog.DeltaTable, expected: dict[str, Any]) -> None:
    """Checks the live files, and the rows if there are data files."""
    assert paths_sha256(table) == (expected["num_files"], expected["paths_sha256"])
    if "rows_sha256" in expected:
        assert rows_sha256(table) == (expected["num_rows"], expected["rows_sha256"])
        assert table.count() == expected["num_rows"]
        assert sum(pa.table(table.count_by_partition())["count"].to_pylist()) == expected["num_rows"]
    elif "FileNotFoundError" in expected.get("read_error", "") and expected["num_files"]:
        outside = "unqualified/" in expected["read_error"]
        error = deltalog.UnsupportedFeatureError if outside else deltalog.MissingFileError
        with pytest.raises(error, match="outside the table" if outside else "not there") as caught:
            rows_sha256(table)
        assert caught.value.version == table.version()


def check_readable(golden: Golden, path: Path) -> None:
    with refusal(golden):
        table = deltalog.DeltaTable(path)
        check_log(table, golden.expected)
        check_state(table, golden.expected)
        if "rows_sha256" in golden.expected:
            check_pieces(table, golden.expected)
            assert rows_sha256(table, view_types=True) == (
                golden.expected["num_rows"],
                golden.expected["rows_sha256"],
            )
        if "cdf" in golden.expected:
            check_changes(table, golden.expected["cdf"])
        for version in golden.expected.get("versions", ()):
            if version.get("must_fail"):
                # This version has a commit, but cannot be read, because earlier commits and a checkpoint are missing.
                with pytest.raises(deltalog.VersionNotFoundError, match="0 to 6 and 10 to 13"):
                    deltalog.DeltaTable(path, version=version["version"])
            else:
                check_state(deltalog.DeltaTable(path, version=version["version"]), version)


def check_pieces(table: deltalog.DeltaTable, expected: dict[str, Any]) -> None:
    """Reads the rows in pieces that are passed as bytes, as they would be between processes, and checks the rows."""
    pieces = table._snapshot.scan_partitions("", 3)
    parts = [pa.table(_internal.read_fragment(piece)) for piece in pieces]
    lines = canonical.rows(pa.concat_tables(parts)) if parts else []
    assert (len(lines), canonical.sha256(lines)) == (expected["num_rows"], expected["rows_sha256"])


def check_changes(table: deltalog.DeltaTable, expected: dict[str, Any]) -> None:
    """Checks the rows and counts of the change data feed. The expected rows do not have commit times."""
    changes = pa.table(table.load_cdf(expected["start_version"], expected["end_version"]))
    times = changes.column("_commit_timestamp")
    assert times.type == pa.timestamp("us", "UTC")
    assert times.null_count == 0
    found = changes.drop_columns(["_commit_timestamp"])
    assert Counter(found.column("_change_type").to_pylist()) == expected["by_change_type"]
    lines = canonical.rows(found)
    assert (len(lines), canonical.sha256(lines)) == (expected["num_rows"], expected["rows_sha256"])


def run(golden: Golden, path: Path) -> str:
    """Checks one table, and returns the kind of outcome, such as "read" or "refused"."""
    match golden.outcome:
        case "read" | "log-only":
            check_readable(golden, path)
            return "read" if golden.outcome == "read" else "log read (no data files)"
        case "must-fail":
            error, words = MUST_FAIL[golden.name]
            with pytest.raises(error, match=words):
                deltalog.DeltaTable(path)
            return "refused as required"
        case "catalog-managed":
            with pytest.raises(deltalog.UnsupportedFeatureError, match="catalogManaged"):
                deltalog.DeltaTable(path)
            staged = sorted((path / "_delta_log" / "_staged_commits").iterdir())
            for commits, state in ((staged, "with_staged_commits"), ([], "published_only")):
                table, wanted = (
                    deltalog.DeltaTable(path, staged_commits=commits),
                    golden.expected["catalog_managed"][state],
                )
                assert table.version() == wanted["version"]
                assert pa.table(table.files()).num_rows == wanted["num_files"]
                assert rows_sha256(table) == (wanted["num_rows"], wanted["rows_sha256"])
            return "read with staged commits, refused by path"
        case "lenient":
            assert paths_sha256(deltalog.DeltaTable(path)) == (
                golden.expected["num_files"],
                golden.expected["paths_sha256"],
            )
            return "broken table accepted, files as listed"
        case outcome:
            raise ValueError(f"unknown outcome {outcome}")


@pytest.mark.parametrize("golden", TABLES or [None], ids=lambda golden: golden.name if golden else "absent")
def test_golden(golden: Golden | None, tmp_path: Path, outcomes: Counter[str]) -> None:
    if golden is None:
        missing(f"no golden tables at {ROOT}; DELTALOG_GOLDEN names another folder")
    path = golden.table
    empty = golden.expected.get("empty_dirs", ())
    if empty:  # Git does not keep empty directories, so they are created here.
        path = tmp_path / "table"
        shutil.copytree(golden.table, path)
        for directory in empty:
            (tmp_path / directory).mkdir(parents=True, exist_ok=True)
    try:
        outcomes[run(golden, path)] += 1
    except RefusedError as refused:
        outcomes[f"refused ({refused})"] += 1
    except BaseException:
        outcomes["FAILED"] += 1
        raise


TRACKED = [
    golden for golden in TABLES if "rowTracking" in golden.features and golden.expected.get("num_rows")
]


@pytest.mark.parametrize("golden", TRACKED or [None], ids=lambda golden: golden.name if golden else "absent")
def test_row_ids_are_unique(golden: Golden | None) -> None:
    """PROTOCOL.md, "Row IDs": stable ids are unique within a version of the table."""
    if golden is None:
        missing(f"no golden tables at {ROOT}; DELTALOG_GOLDEN names another folder")
    table = deltalog.DeltaTable(golden.table)
    rows = pa.table(table.to_arrow(row_ids=True))
    assert len(set(rows["_row_id"].to_pylist()) - {None}) == rows.num_rows == golden.expected["num_rows"]
    assert all(0 <= version <= table.version() for version in rows["_row_commit_version"].to_pylist())
