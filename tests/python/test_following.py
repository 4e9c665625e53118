"""A table object changes a table that other writers or the object itself have changed since it was opened. The tests
check on which version such a change is based.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import deltalog
from deltalog import CommitProperties, DeltaTable, Transaction, begin_write, write_deltalake

Change = Callable[[DeltaTable], object]


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def in_files(path: Path) -> list[int]:
    """Returns the rows in the data files of the newest version, which must not have deletion vectors."""
    files = [uri.removeprefix("file://") for uri in DeltaTable(path).file_uris()]
    return sorted(value for file in files for value in pq.ParquetFile(file).read()["id"].to_pylist())


def opened(table: DeltaTable) -> list[int]:
    return sorted(pa.table(table.to_arrow())["id"].to_pylist())


def merged(table: DeltaTable, source: Any, condition: str = "target.id = source.id") -> object:
    merge = table.merge(source, condition).when_matched_update({"id": "source.id + 100"})
    return merge.when_not_matched_insert_all().execute()


def repaired(table: DeltaTable) -> None:
    """Deletes two data files, including one with a row that another writer has added, and repairs the table."""
    for file in DeltaTable(table.table_uri).file_uris():
        if pq.ParquetFile(file.removeprefix("file://")).read()["id"].to_pylist() != [1]:
            Path(file.removeprefix("file://")).unlink()
    table.repair()


def with_progress(table: DeltaTable) -> None:
    properties = CommitProperties(app_transactions=[Transaction("job", 1)])
    for _ in range(2):
        write_deltalake(table, rows(3), mode="append", commit_properties=properties)


CHANGES: dict[str, tuple[Change, list[int]]] = {
    "delete all": (DeltaTable.delete, []),
    "delete": (lambda table: table.delete("id = 2"), [1]),
    "update": (lambda table: table.update({"id": "id + 10"}), [11, 12]),
    "update with a condition": (lambda table: table.update(new_values={"id": 7}, predicate="id = 2"), [1, 7]),
    "merge": (lambda table: merged(table, rows(2, 3)), [1, 3, 102]),
    "append": (lambda table: write_deltalake(table, rows(3), mode="append"), [1, 2, 3]),
    "append twice": (with_progress, [1, 2, 3]),
    "compact": (lambda table: table.optimize.compact(), [1, 2]),
    "z_order": (lambda table: table.optimize.z_order(["id"]), [1, 2]),
    "purge": (lambda table: table.optimize.purge(), [1, 2]),
    "restore": (lambda table: table.restore(0), [1]),
    "properties": (lambda table: table.alter.set_table_properties({"a": "b"}), [1, 2]),
    "add_columns": (lambda table: table.alter.add_columns(deltalog.Field("more", "long")), [1, 2]),
    "add_constraint": (lambda table: table.alter.add_constraint({"small": "id < 9"}), [1, 2]),
    "repair": (repaired, [1]),
    "statistics": (lambda table: table.recompute_statistics(all_files=True), [1, 2]),
    "vacuum": (lambda table: table.vacuum(0, dry_run=False, enforce_retention_duration=False), [1, 2]),
}
FURTHER_CHANGES: dict[str, Change] = {
    "overwrite": lambda table: write_deltalake(table, rows(3), mode="overwrite"),
    "overwrite some": lambda table: write_deltalake(table, rows(1), mode="overwrite", predicate="id = 1"),
    "create": lambda table: DeltaTable.create(table, data=rows(3), mode="overwrite"),
    "begin_write": lambda table: begin_write(table, mode="append"),
    "cluster_by": lambda table: table.alter.cluster_by("id"),
    "drop_feature": lambda table: table.alter.drop_feature("deletionVectors"),
    "cluster": lambda table: table.optimize.cluster(),
    "manifests": lambda table: table.generate(),
    "plan of a vacuum": lambda table: table.vacuum_plan(),
    "log": lambda table: table.cleanup_metadata(),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_applies_to_rows_of_other_writers(tmp_path: Path, name: str) -> None:
    """A change applies to the rows that other writers have committed. Afterwards the table object shows the change."""
    change, expected = CHANGES[name]
    write_deltalake(tmp_path, rows(1))
    table = DeltaTable(tmp_path)
    write_deltalake(tmp_path, rows(2), mode="append")
    assert opened(table) == [1], "reads are of the version that is open"
    change(table)
    assert in_files(tmp_path) == expected
    assert opened(table) == expected
    assert table.version() == DeltaTable(tmp_path).version()


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_acts_on_what_the_table_has_committed_itself(tmp_path: Path, name: str) -> None:
    change, expected = CHANGES[name]
    write_deltalake(tmp_path, rows(1))
    table = DeltaTable(tmp_path)
    version = write_deltalake(table, rows(2), mode="append")
    assert (table.version(), opened(table)) == (version, [1, 2])
    change(table)
    assert in_files(tmp_path) == opened(table) == expected


@pytest.mark.parametrize(
    ("name", "pinned"),
    [
        *((name, "version") for name in [*CHANGES, *FURTHER_CHANGES]),
        *(("delete", pinned) for pinned in ("timestamp", "load_as_version", "pickle")),
    ],
)
def test_a_pinned_table_changes_nothing(tmp_path: Path, name: str, pinned: str) -> None:
    change = FURTHER_CHANGES[name] if name in FURTHER_CHANGES else CHANGES[name][0]
    if name == "repair":
        change = DeltaTable.repair
    write_deltalake(tmp_path, rows(1))
    table = DeltaTable(tmp_path)
    write_deltalake(table, rows(2), mode="append")
    if pinned == "timestamp":
        table = DeltaTable(
            tmp_path, timestamp=str(pa.scalar(table.history()[0]["timestamp"], pa.timestamp("ms")))
        )
    elif pinned == "load_as_version":
        table.load_as_version(0)
    else:
        table = DeltaTable(tmp_path, version=0)
    if pinned == "pickle":
        table = pickle.loads(pickle.dumps(table))  # noqa: S301
    version, files = table.version(), sorted(tmp_path.rglob("*"))
    with pytest.raises(deltalog.InvalidArgumentError, match=f"pinned to version {version}") as caught:
        change(table)
    assert "update_incremental()" in str(caught.value.hint)
    assert (caught.value.table, caught.value.version) == (table.table_uri, version)
    assert (table.version(), sorted(tmp_path.rglob("*"))) == (version, files)


def test_a_pinned_table_follows_again_and_may_write_its_checkpoint(tmp_path: Path) -> None:
    for number in range(3):
        write_deltalake(tmp_path, rows(number), mode="append")
    table = DeltaTable(tmp_path, version=1)
    table.create_checkpoint()
    table.compact_logs(0, 1)
    table.update_incremental()
    table.delete("id > 0")
    assert in_files(tmp_path) == opened(table) == [0]
    table.load_as_version(0)
    table.update_incremental(max_age=3600)
    assert (table.version(), opened(table)) == (3, [0])
    table.delete()
    assert in_files(tmp_path) == []


def test_a_pickled_table_that_follows_is_at_its_version_and_changes_the_newest(tmp_path: Path) -> None:
    write_deltalake(tmp_path, rows(1))
    table = DeltaTable(tmp_path)
    pickled = pickle.dumps(table)
    write_deltalake(table, rows(2), mode="append")
    own = pickle.loads(pickle.dumps(table))  # noqa: S301
    assert (own.version(), opened(own)) == (1, [1, 2]), "what it had committed"
    copy = pickle.loads(pickled)  # noqa: S301
    assert (copy.version(), opened(copy)) == (0, [1])
    copy.update({"id": "id * 10"})
    assert in_files(tmp_path) == opened(copy) == [10, 20]


def test_an_overwrite_is_based_on_what_was_read(tmp_path: Path) -> None:
    """An overwrite must not remove rows of other writers that the table object has not read, even if the object has
    committed since.
    """
    write_deltalake(tmp_path, rows(1))
    table = DeltaTable(tmp_path)
    assert write_deltalake(table, rows(2), mode="append") == 1
    computed = pa.table(table.to_arrow())
    write_deltalake(tmp_path, rows(3), mode="append")
    for mode in ("static", "dynamic"):
        with pytest.raises(deltalog.CommitConflictError):
            write_deltalake(table, computed, mode="overwrite", partition_overwrite=mode)
    with pytest.raises(deltalog.CommitConflictError):
        DeltaTable.create(table, data=computed, mode="overwrite")
    assert in_files(tmp_path) == [1, 2, 3]
    table.update_incremental()
    assert write_deltalake(table, rows(4), mode="overwrite") == 3
    # The rows of an object's own overwrite count as read.
    assert write_deltalake(table, rows(5), mode="overwrite") == 4
    created = DeltaTable.create(table, data=rows(6), mode="overwrite")
    assert in_files(tmp_path) == opened(table) == opened(created) == [6]
    write_deltalake(table, rows(7), mode="append")
    write_deltalake(tmp_path, rows(8), mode="append")
    with pytest.raises(deltalog.CommitConflictError):
        write_deltalake(table, rows(9), mode="overwrite")
    assert (in_files(tmp_path), opened(table)) == ([6, 7, 8], [6, 7]), (
        "not what other writers have committed since"
    )


@pytest.mark.parametrize("change", ["append", "delete", "partition"])
def test_rows_of_other_writers_count_as_unread_after_a_change(tmp_path: Path, change: str) -> None:
    """If a change was applied to rows of other writers, these rows still count as not read, so an overwrite afterwards
    conflicts.
    """
    parts = pa.table({"id": [1, 2], "p": ["a", "b"]})
    write_deltalake(tmp_path, parts, partition_by=["p"])
    table = DeltaTable(tmp_path)
    computed = pa.table(table.to_arrow())
    write_deltalake(tmp_path, pa.table({"id": [3], "p": ["b"]}), mode="append")
    if change == "append":
        write_deltalake(table, pa.table({"id": [4], "p": ["a"]}), mode="append")
    elif change == "delete":
        table.delete("id = 1")
    else:
        write_deltalake(table, pa.table({"id": [4], "p": ["a"]}), mode="overwrite", predicate="p = 'a'")
    assert table.version() == 2
    late = pickle.loads(pickle.dumps(table))  # noqa: S301
    expected = in_files(tmp_path)
    for handle in (table, late):
        assert handle.schema().fields
        for predicate in ("p = 'b'", None):
            rest = computed.filter(pc.equal(computed["p"], "b")) if predicate else computed
            with pytest.raises(deltalog.CommitConflictError) as caught:
                write_deltalake(handle, rest, mode="overwrite", predicate=predicate)
            assert caught.value.version == 1
        with pytest.raises(deltalog.CommitConflictError):
            begin_write(handle, mode="overwrite")
        with pytest.raises(deltalog.CommitConflictError):
            DeltaTable.create(handle, data=computed, mode="overwrite")
    assert in_files(tmp_path) == expected
    assert 3 in opened(table)
    write_deltalake(table, computed, mode="overwrite", predicate=None)
    assert in_files(tmp_path) == [1, 2]


def test_an_overwrite_does_not_conflict_with_rows_that_were_only_moved(tmp_path: Path) -> None:
    """An overwrite does not conflict with rows that were only moved, for example by an automatic compaction."""
    configuration = {"delta.autoOptimize.autoCompact": "true"}
    write_deltalake(tmp_path, rows(0), configuration=configuration)
    table = DeltaTable(tmp_path)
    for number in range(1, 60):
        write_deltalake(table, rows(number), mode="append")
    assert "OPTIMIZE" in [entry["operation"] for entry in table.history()]
    write_deltalake(table, rows(60), mode="append")
    table.optimize.compact()
    DeltaTable(tmp_path).optimize.z_order(["id"])
    write_deltalake(table, rows(61), mode="append")
    DeltaTable(tmp_path).optimize.z_order(["id"])
    write_deltalake(table, rows(7), mode="overwrite")
    assert in_files(tmp_path) == opened(table) == [7]


@pytest.mark.parametrize("is_stream", [True, False])
def test_a_source_from_an_older_version_of_the_table_is_a_conflict(tmp_path: Path, is_stream: bool) -> None:
    write_deltalake(tmp_path, rows(1, 2))
    table, old = DeltaTable(tmp_path), DeltaTable(tmp_path, version=0)
    begun = table.merge(old.to_arrow(columns=["id"]) if is_stream else old, "target.id = source.id")
    begun.when_matched_update({"id": "source.id"})
    DeltaTable(tmp_path).update({"id": "3"}, predicate="id = 2")
    with pytest.raises(deltalog.CommitConflictError):
        begun.when_not_matched_insert_all().execute()
    assert in_files(tmp_path) == [1, 3]
    merged(table, table)
    assert in_files(tmp_path) == [101, 103]
    write_deltalake(tmp_path / "other", rows(101))
    merged(table, DeltaTable(tmp_path / "other").to_arrow())
    assert in_files(tmp_path) == opened(table) == [103, 201]


def test_a_blind_append_may_follow_a_merge_of_rows_that_were_read(tmp_path: Path) -> None:
    write_deltalake(tmp_path, rows(1))
    table = DeltaTable(tmp_path)
    begun = table.merge(table.to_arrow(), "target.id = source.id").when_matched_update(
        {"id": "source.id + 1"}
    )
    write_deltalake(tmp_path, rows(2), mode="append")
    begun.execute()
    assert in_files(tmp_path) == opened(table) == [2, 2]


def test_threads_share_a_table(tmp_path: Path) -> None:
    """Threads use the same table object. Each sees at least its own commits, and no row is lost or doubled."""
    write_deltalake(tmp_path, rows(-1))
    table = DeltaTable(tmp_path)

    def work(thread: int) -> None:
        for number in range(4):
            own = 10 * thread + number
            write_deltalake(table, rows(own), mode="append")
            assert own in opened(table)
            merge = table.merge(rows(own), "target.id = source.id")
            merge.when_not_matched_insert_all().execute()

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(work, thread) for thread in range(4)]:
            done.result(120)
    expected = sorted([-1, *(10 * thread + number for thread in range(4) for number in range(4))])
    assert in_files(tmp_path) == expected
    assert opened(table) == expected


def test_many_appends_of_one_table_and_a_change_of_its_columns(tmp_path: Path) -> None:
    """An append does not need to read earlier commits, but it must use the current schema."""
    write_deltalake(tmp_path, rows(0))
    table = DeltaTable(tmp_path)
    for number in range(1, 30):
        assert write_deltalake(table, rows(number), mode="append") == number
    table.alter.add_columns(deltalog.Field("more", "long"))
    write_deltalake(table, pa.table({"id": [30], "more": [1]}), mode="append")
    write_deltalake(table, rows(31), mode="append")
    assert opened(table) == list(range(32))
    table.delete("more IS NULL")
    assert in_files(tmp_path) == [30]


def widened(table: DeltaTable) -> None:
    source = pa.table({"id": [1, 5], "more": [1, 5]})
    merge = table.merge(source, "target.id = source.id", merge_schema=True)
    merge.when_matched_update_all().when_not_matched_insert_all().execute()


def without_vectors(table: DeltaTable) -> None:
    table.alter.set_table_properties({"delta.enableDeletionVectors": "true"})
    table.alter.drop_feature("deletionVectors")


@pytest.mark.parametrize("change", [widened, without_vectors])
def test_an_overwrite_does_not_conflict_with_any_commit_of_a_change_before(
    tmp_path: Path, change: Change
) -> None:
    """An overwrite does not conflict with an earlier change by the same object, even if that change made several
    commits or set the metadata.
    """
    write_deltalake(tmp_path, rows(1))
    table = DeltaTable(tmp_path)
    change(table)
    version = table.version()
    assert version > 0
    values = pa.table({field.name: [7] for field in table.schema().fields})
    assert write_deltalake(table, values, mode="overwrite") == version + 1
    assert in_files(tmp_path) == opened(table) == [7]


def test_an_overwrite_does_not_conflict_with_many_own_commits_after_a_compaction(tmp_path: Path) -> None:
    write_deltalake(tmp_path, rows(0), configuration={"delta.checkpointInterval": "1000"})
    table = DeltaTable(tmp_path)
    write_deltalake(table, rows(1), mode="append")
    DeltaTable(tmp_path).optimize.compact()
    for number in range(2, 120):
        write_deltalake(table, rows(number), mode="append")
    write_deltalake(table, rows(7), mode="overwrite")
    assert in_files(tmp_path) == opened(table) == [7]


def test_rows_of_the_table_itself_are_read_before_they_are_replaced(tmp_path: Path) -> None:
    write_deltalake(tmp_path, rows(1))
    table = DeltaTable(tmp_path)
    for data in (lambda: table, lambda: table.to_arrow()):
        write_deltalake(tmp_path, rows(2), mode="append")
        table.delete("id = 1")
        write_deltalake(table, data(), mode="overwrite")
        write_deltalake(tmp_path, rows(2), mode="append")
        table.delete("id = 1")
        DeltaTable.create(table, data=data(), mode="overwrite")
        assert set(in_files(tmp_path)) == {2}


def expired(path: Path, kept: int) -> None:
    """Deletes the log files before version `kept`, as a clean-up does."""
    DeltaTable(path, version=kept).create_checkpoint()
    for file in (path / "_delta_log").iterdir():
        if file.name[:20].isdigit() and int(file.name[:20]) < kept:
            file.unlink()


def test_a_table_object_works_after_its_commits_were_cleaned_up(tmp_path: Path) -> None:
    write_deltalake(tmp_path, rows(0), configuration={"delta.checkpointInterval": "1000"})
    table = DeltaTable(tmp_path)
    for number in range(1, 12):
        write_deltalake(table, rows(number), mode="append")
        write_deltalake(tmp_path, rows(-number), mode="append")
    late = pickle.loads(pickle.dumps(table))  # noqa: S301
    write_deltalake(table, rows(12), mode="append")
    for number in range(13, 20):
        write_deltalake(tmp_path, rows(number), mode="append")
    expired(tmp_path, 25)
    for handle in (table, late):
        with pytest.raises(deltalog.CommitConflictError) as caught:
            write_deltalake(handle, rows(99), mode="overwrite")
        assert caught.value.reason == "log_cleaned_up"
    newest = write_deltalake(table, rows(20), mode="append")
    assert table.version() == newest
    assert opened(table) == in_files(tmp_path) == list(range(-11, 21))
    assert write_deltalake(table, rows(99), mode="overwrite") == newest + 1
