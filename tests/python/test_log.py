"""Functions that use the log: actions, history, checksums, clean-up, staged commits, and unreadable checkpoints."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltalog
from deltalog import DeltaTable, Verification, write_deltalake
from tests.python.place import actions, commit_file


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Creates a table of twelve versions with one row each, and a checkpoint at version 10."""
    path = tmp_path / "my table"
    for version in range(12):
        write_deltalake(path, pa.table({"id": [version]}), mode="append")
    return path


def ids(table: DeltaTable) -> list[int]:
    return sorted(pa.table(table.to_arrow())["id"].to_pylist())


def rewritten(table: Path, version: int, change: Any) -> None:
    """Replaces the actions of a commit with the result of `change`."""
    lines = [json.dumps(action) for action in change(actions(table, version))]
    commit_file(table, version).write_text("\n".join(lines) + "\n")


def test_every_version_has_a_checksum_however_many_files_an_optimize_removes(tmp_path: Path) -> None:
    """If a table has more than twenty files, checksums do not list them, and are computed from the files that commits
    add and remove.
    """
    for version in range(25):
        configuration = {"delta.checkpointInterval": "1000"} if version == 0 else None
        write_deltalake(tmp_path, pa.table({"id": [version]}), mode="append", configuration=configuration)
    DeltaTable(tmp_path).optimize()
    write_deltalake(tmp_path, pa.table({"id": [25]}), mode="append")
    deltalog.upkeep.wait()
    checksums = [tmp_path / "_delta_log" / f"{version:020}.crc" for version in range(27)]
    assert all(file.exists() for file in checksums)
    assert [json.loads(file.read_text())["numFiles"] for file in checksums[23:]] == [24, 25, 1, 2]


def test_the_history_begins_with_the_log(table: Path) -> None:
    """A clean-up has kept versions 10 and 11, and has failed to delete one earlier commit. The history begins with
    version 10.
    """
    for version in range(10):
        if version != 3:
            commit_file(table, version).unlink()
    opened = DeltaTable(table)
    assert [entry["version"] for entry in opened.history()] == [11, 10]
    with pytest.raises(deltalog.VersionNotFoundError, match="readable versions are 10 to 11"):
        DeltaTable(table, version=5)


@pytest.fixture
def late(table: Path) -> Path:
    """A clean-up has kept versions 10 and later. Afterwards a slow writer has written a checkpoint of version 3, whose
    commit still exists.
    """
    DeltaTable(table, version=3).create_checkpoint()
    for version in range(10):
        if version != 3:
            commit_file(table, version).unlink()
    return table


def test_versions_below_a_late_checkpoint_are_not_found(late: Path) -> None:
    """PROTOCOL, "Metadata Cleanup": commits may be missing before a checkpoint, so the log is not damaged."""
    ranges = "the readable versions are 3 and 10 to 11"
    opened = DeltaTable(late)
    assert [ids(DeltaTable(late, version=version)) for version in (3, 10)] == [
        list(range(4)),
        list(range(11)),
    ]
    for version in (2, 5, 9):
        with pytest.raises(deltalog.VersionNotFoundError, match=ranges) as caught:
            DeltaTable(late, version=version)
        assert "choose one of these versions" in str(caught.value.hint)
        with pytest.raises(deltalog.VersionNotFoundError, match=ranges):
            opened.restore(version)
    with pytest.raises(deltalog.VersionNotFoundError, match=r"not exist yet: .* are 3 and 10 to 11"):
        DeltaTable(late, version=12)
    # The newest version needs this commit, so its absence is an error.
    commit_file(late, 11).rename(commit_file(late, 12))
    with pytest.raises(deltalog.CorruptLogError, match="version 11 is missing"):
        DeltaTable(late)
    with pytest.raises(deltalog.VersionNotFoundError, match="3 and 10"):
        DeltaTable(late, version=5)


def test_times_and_changes_below_a_late_checkpoint_are_not_found(late: Path) -> None:
    ages(late, {3: 30, 10: 2, 11: 1})
    opened = DeltaTable(late)
    assert [entry["version"] for entry in opened.history()] == [11, 10]
    assert DeltaTable(late, version=3).history()[0]["version"] == 3
    seconds = {version: commit_file(late, version).stat().st_mtime for version in (3, 10)}
    at = {version: datetime.fromtimestamp(int(time), tz=UTC) for version, time in seconds.items()}
    for version, time in at.items():
        os.utime(commit_file(late, version), (time.timestamp(), time.timestamp()))
    assert [DeltaTable(late, timestamp=time).version() for time in at.values()] == [3, 10]
    between = at[3] + timedelta(hours=1)
    with pytest.raises(deltalog.VersionNotFoundError, match="the readable versions are 3 and 10 to 11"):
        DeltaTable(late, timestamp=between)
    for start in (3, 5):
        with pytest.raises(deltalog.VersionNotFoundError, match="the commits of versions 3 and 10 to 11"):
            opened.load_cdf(starting_version=start, ending_version=11)
    with pytest.raises(deltalog.VersionNotFoundError, match="3 and 10 to 11"):
        opened.load_cdf(starting_timestamp=between)
    with pytest.raises(deltalog.VersionNotFoundError, match="the commits of versions 3 and 10 to 11"):
        opened.commit_actions(5)
    assert set(pa.table(opened.commit_actions(10))["version"].to_pylist()) == {10, 11}


def test_a_checksum_without_a_version_changes_nothing(table: Path) -> None:
    """PROTOCOL, "Version Checksum File": if a commit is removed by hand, its checksum remains without a version. It is
    not used, and no later checksum is derived from it.
    """
    checksum = (table / "_delta_log" / f"{11:020}.crc").read_text()
    (table / "_delta_log" / f"{13:020}.crc").write_text(checksum.replace('"numFiles":12', '"numFiles":99'))
    found = DeltaTable(table).verify()
    assert (found.version, found.file, found.ok) == (11, f"_delta_log/{11:020}.crc", True)
    with pytest.raises(deltalog.VersionNotFoundError, match="0 to 11"):
        DeltaTable(table, version=13)
    for version in range(12, 15):
        write_deltalake(table, pa.table({"id": [version]}), mode="append")
    deltalog.upkeep.wait()
    assert DeltaTable(table, version=12).verify().file == f"_delta_log/{12:020}.crc"
    assert DeltaTable(table, version=12).verify().ok
    assert DeltaTable(table, version=14).verify().ok


def test_commit_actions_are_those_of_each_version(table: Path) -> None:
    opened = DeltaTable(table)
    changes = pa.table(opened.commit_actions(3, 5))
    rows = changes.to_pylist()
    expected = [
        (version, name) for version in (3, 4, 5) for action in actions(table, version) for name in action
    ]
    assert [(row["version"], row["action"]) for row in rows] == expected
    for row in rows:
        (action,) = (
            action[row["action"]] for action in actions(table, row["version"]) if row["action"] in action
        )
        assert json.loads(row["json"]) == action
        if row["action"] == "add":
            assert (row["path"], row["size"], row["data_change"]) == (action["path"], action["size"], True)
    assert set(pa.table(opened.commit_actions(11))["version"].to_pylist()) == {11}


@pytest.mark.parametrize(
    ("start", "end", "error", "words"),
    [
        (12, None, deltalog.InvalidArgumentError, "from 12 to 11"),
        (3, 40, deltalog.VersionNotFoundError, "version 12"),
    ],
)
def test_commit_actions_of_absent_versions(
    table: Path, start: int, end: int | None, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        DeltaTable(table).commit_actions(start, end)
    with pytest.raises(deltalog.InvalidArgumentError, match="start cannot be None"):
        DeltaTable(table).commit_actions(None)  # type: ignore[arg-type]


def test_the_history_as_arrow(table: Path) -> None:
    opened = DeltaTable(table)
    history, rows = opened.history(), pa.table(opened.history_arrow()).to_pylist()
    assert (
        [entry["version"] for entry in history] == [row["version"] for row in rows] == list(range(11, -1, -1))
    )
    for entry, row in zip(history, rows, strict=True):
        assert (entry["operation"], entry["txnId"]) == (row["operation"], row["txn_id"])
        assert entry["timestamp"] == row["timestamp"].timestamp() * 1000
    assert pa.table(opened.history_arrow(2)).num_rows == 2


def test_domains_and_transactions(table: Path) -> None:
    def add(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
        domain = {"domain": "mine", "configuration": '{"a": 1}', "removed": False}
        return [*lines, {"domainMetadata": domain}, {"txn": {"appId": "stream", "version": 7}}]

    assert (DeltaTable(table).domain_metadata(), DeltaTable(table).transaction_versions()) == ({}, {})
    rewritten(table, 11, add)
    assert DeltaTable(table).domain_metadata() == {"mine": '{"a": 1}'}
    assert DeltaTable(table).transaction_versions() == {"stream": 7}


def test_every_version_has_a_checksum_that_agrees_with_it(table: Path) -> None:
    write_deltalake(table, pa.table({"id": [12]}), mode="overwrite")
    for version in range(13):
        found = DeltaTable(table, version=version).verify()
        assert found.ok, found
        assert found.file == f"_delta_log/{version:020}.crc"
        assert {"numFiles", "tableSizeBytes", "metadata", "protocol", "fileSizeHistogram", "allFiles"} <= set(
            found.checked
        )


def test_a_version_is_compared_with_its_checksum(table: Path) -> None:
    (table / "_delta_log" / f"{11:020}.crc").unlink()
    opened = DeltaTable(table)
    assert opened.verify() == Verification(11, None, [], [])
    size = sum(
        action["add"]["size"]
        for version in range(12)
        for action in actions(table, version)
        if "add" in action
    )
    checksum = {
        "tableSizeBytes": size,
        "numFiles": 12,
        "numMetadata": 1,
        "numProtocol": 1,
        "setTransactions": [],
    }
    file = table / "_delta_log" / f"{11:020}.crc"
    file.write_text(json.dumps(checksum))
    found = DeltaTable(table).verify()
    assert found.ok
    assert found.file == f"_delta_log/{11:020}.crc"
    assert set(found.checked) == {"tableSizeBytes", "numFiles", "setTransactions"}
    file.write_text(json.dumps(checksum | {"numFiles": 11}))
    found = DeltaTable(table).verify()
    assert not found.ok
    (difference,) = found.differences
    assert (difference.field, difference.checksum, difference.replay) == ("numFiles", 11, 12)


def test_the_order_of_features_does_not_matter(tmp_path: Path) -> None:
    """Protocol, "Protocol Evolution": the order of features does not matter. The JVM connector orders them by their
    hashes.
    """
    properties = {"delta.enableDeletionVectors": "true", "delta.columnMapping.mode": "name"}
    write_deltalake(tmp_path, pa.table({"id": [1]}), configuration=properties)
    file = tmp_path / "_delta_log" / f"{0:020}.crc"
    checksum = json.loads(file.read_text())
    features = checksum["protocol"]["writerFeatures"]
    assert len(features) > 1
    checksum["protocol"]["writerFeatures"] = features[::-1]
    file.write_text(json.dumps(checksum))
    found = DeltaTable(tmp_path).verify()
    assert found.ok
    assert "protocol" in found.checked
    checksum["protocol"]["writerFeatures"] = features[1:]
    file.write_text(json.dumps(checksum))
    (difference,) = DeltaTable(tmp_path).verify().differences
    assert difference.field == "protocol"


def test_a_checkpoint_of_the_open_version(table: Path) -> None:
    opened = DeltaTable(table, version=5)
    opened.create_checkpoint()
    for version in range(6):
        commit_file(table, version).unlink()
    assert ids(DeltaTable(table, version=5)) == list(range(6))
    assert ids(DeltaTable(table, version=7)) == list(range(8))
    # The hint still names the newer checkpoint.
    assert json.loads((table / "_delta_log" / "_last_checkpoint").read_text())["version"] == 10


@pytest.mark.parametrize("damage", [b"", b"PAR1", b"x" * 5000])
def test_an_unreadable_checkpoint_is_replaced_by_the_commits(table: Path, damage: bytes) -> None:
    (table / "_delta_log" / f"{10:020}.checkpoint.parquet").write_bytes(damage)
    # The checksum is removed. It has protocol and metadata, so opening the table would not read the checkpoint.
    (table / "_delta_log" / f"{11:020}.crc").unlink()
    assert ids(DeltaTable(table)) == list(range(12))
    for version in range(10):
        commit_file(table, version).unlink()
    # The table is opened by version, because this process has already read the newest version.
    with pytest.raises(deltalog.CorruptLogError, match="version 0" if not damage else "version 10"):
        ids(DeltaTable(table, version=11 if damage else None))


def test_a_table_that_a_catalog_manages(table: Path) -> None:
    """Table feature `catalogManaged`: the table can only be read if the commits that the catalog has staged are
    passed.
    """

    def managed(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
        features = ["catalogManaged"]
        protocol = {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": features,
            "writerFeatures": features,
        }
        return [*lines, {"protocol": protocol}]

    rewritten(table, 11, managed)
    with pytest.raises(deltalog.UnsupportedFeatureError, match="catalogManaged"):
        DeltaTable(table)
    with pytest.raises(deltalog.UnsupportedFeatureError, match="catalogManaged"):
        write_deltalake(table, pa.table({"id": [1]}), mode="append")
    opened = DeltaTable(table, staged_commits=[])
    assert opened.version() == 11
    staged = table / "_delta_log" / "_staged_commits" / f"{12:020}.00000000-0000-0000-0000-00000000000c.json"
    staged.parent.mkdir()
    text = json.dumps({"commitInfo": {}}).encode()
    staged.write_bytes(text)
    opened.update_incremental(staged_commits=[staged, (13, text)])
    assert (opened.version(), ids(opened)) == (13, list(range(12)))
    assert DeltaTable(table, 12, staged_commits=[staged.name]).version() == 12
    for wrong in (str(staged), [b"x"], [(1, "x")], ["x.json"], [(12, text), staged]):
        with pytest.raises(deltalog.InvalidArgumentError, match=r"staged[_ ]commits"):
            DeltaTable(table, staged_commits=wrong)  # type: ignore[arg-type]


def test_a_cleaned_up_log_reports_the_readable_versions(table: Path) -> None:
    for version in range(10):
        commit_file(table, version).unlink()
    with pytest.raises(deltalog.VersionNotFoundError, match="10 to 11"):
        DeltaTable(table, version=3)
    with pytest.raises(deltalog.VersionNotFoundError, match=r"10 to 11.*cleaned up"):
        DeltaTable(table, timestamp="2001-01-01")
    with pytest.raises(deltalog.VersionNotFoundError, match="10 to 11"):
        DeltaTable(table).commit_actions(3)
    shutil.copy(commit_file(table, 11), commit_file(table, 13))
    with pytest.raises(deltalog.CorruptLogError, match="version 12 is missing"):
        DeltaTable(table)


def ages(table: Path, days: dict[int, float]) -> None:
    """Sets the times of commits to this many days in the past."""
    for version, age in days.items():
        time = datetime.now(tz=UTC).timestamp() - age * 24 * 3600
        os.utime(commit_file(table, version), (time, time))


def test_the_expired_part_of_a_log_is_deleted_up_to_a_checkpoint(table: Path) -> None:
    opened = DeltaTable(table)
    assert opened.cleanup_metadata() == []
    ages(table, dict.fromkeys(range(12), 100))
    expired = opened.cleanup_metadata(dry_run=True)
    assert {f"_delta_log/{version:020}.json" for version in range(10)} <= set(expired)
    assert ids(DeltaTable(table, version=3)) == [0, 1, 2, 3]
    assert opened.cleanup_metadata() == expired
    assert not any((table / path).exists() for path in expired)
    assert ids(DeltaTable(table)) == list(range(12))
    assert ids(DeltaTable(table, version=10)) == list(range(11))
    with pytest.raises(deltalog.VersionNotFoundError, match="10 to 11"):
        DeltaTable(table, version=9)
    assert opened.cleanup_metadata() == []


def test_a_commit_deletes_the_expired_part_of_the_log(tmp_path: Path) -> None:
    properties = {"delta.checkpointInterval": "2", "delta.logRetentionDuration": "interval 7 days"}
    for version in range(5):
        write_deltalake(tmp_path, pa.table({"id": [version]}), mode="append", configuration=properties)
    ages(tmp_path, {0: 30, 1: 20, 2: 10, 3: 9, 4: 1})
    # A clean-up follows only the first checkpoint of an hour, so the previous checkpoint is made older.
    os.utime(tmp_path / "_delta_log" / f"{4:020}.checkpoint.parquet", (0, 0))
    for version in range(5, 7):
        write_deltalake(tmp_path, pa.table({"id": [version]}), mode="append")
    assert not commit_file(tmp_path, 1).exists()
    assert ids(DeltaTable(tmp_path, version=2)) == [0, 1, 2]
    assert ids(DeltaTable(tmp_path)) == list(range(7))


def test_a_retention_that_is_not_understood_is_refused(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1]}))
    rewritten(
        tmp_path,
        0,
        lambda lines: [
            line | {"metaData": line["metaData"] | {"configuration": {"delta.logRetentionDuration": "long"}}}
            if "metaData" in line
            else line
            for line in lines
        ],
    )
    with pytest.raises(deltalog.UnsupportedFeatureError, match="'long'"):
        DeltaTable(tmp_path).cleanup_metadata()


def test_logs_are_compacted(table: Path) -> None:
    opened = DeltaTable(table)
    opened.compact_logs(2, 5)
    opened.compact_logs(2, 5)
    compacted = table / "_delta_log" / f"{2:020}.{5:020}.compacted.json"
    names = [next(iter(json.loads(line))) for line in compacted.read_text().splitlines()]
    assert names == ["add"] * 4
    assert ids(DeltaTable(table, version=7)) == list(range(8))
    with pytest.raises(deltalog.InvalidArgumentError, match="up to 11"):
        opened.compact_logs(10, 12)


@pytest.mark.parametrize("has_commit", [True, False])
def test_in_commit_timestamps_increase_although_the_previous_commit_is_missing(
    tmp_path: Path, has_commit: bool
) -> None:
    """PROTOCOL, "Writer Requirements for In-Commit Timestamps". The previous commit was made with a clock that was
    ahead, and then removed. Its checksum still has its time, so the next timestamp is later.
    """
    ahead = 4_102_444_800_000
    rows = pa.table({"id": [1]})
    write_deltalake(tmp_path, rows, configuration={"delta.enableInCommitTimestamps": "true"})
    assert deltalog.upkeep.wait(60)
    log = tmp_path / "_delta_log"
    for name, field in [("json", "inCommitTimestamp"), ("crc", "inCommitTimestampOpt")]:
        file = log / f"{0:020}.{name}"
        text, found = re.subn(rf'"{field}":\d+', f'"{field}":{ahead}', file.read_text())
        assert found == 1
        file.write_text(text)
    DeltaTable(tmp_path).create_checkpoint()
    if not has_commit:
        (log / f"{0:020}.json").unlink()
    for version in (1, 2):
        write_deltalake(tmp_path, rows, mode="append")
        first = (log / f"{version:020}.json").read_text().splitlines()[0]
        assert json.loads(first)["commitInfo"]["inCommitTimestamp"] == ahead + version


def test_errors_say_one_version_or_several(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [0]}))
    table, time = DeltaTable(tmp_path), r"20\d\d-\S*Z"
    calls: list[tuple[Callable[[], object], str, str]] = [
        (
            lambda: DeltaTable(tmp_path, version=9),
            "the readable version is 0 ",
            "the readable versions are 0 to 1 ",
        ),
        (
            lambda: DeltaTable(tmp_path).load_as_version("2200-01-01"),
            f"the readable version 0 was committed at {time} ",
            f"the readable versions 0 to 1 were committed from {time} to {time} ",
        ),
        (
            lambda: table.load_cdf(starting_version=9),
            "the log has the commit of version 0 ",
            "the log has the commits of versions 0 to 1 ",
        ),
        (
            lambda: table.load_cdf(starting_timestamp="2200-01-01"),
            f": version 0 was committed at {time} ",
            f": versions 0 to 1 were committed from {time} to {time} ",
        ),
    ]
    for call, one, _ in calls:
        with pytest.raises(deltalog.VersionNotFoundError, match=one):
            call()
    table.delete()
    for call, _, several in calls:
        with pytest.raises(deltalog.VersionNotFoundError, match=several):
            call()
