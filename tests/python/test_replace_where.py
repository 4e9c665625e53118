"""Overwrites that replace the rows for which a predicate is true."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import deltalake
import pyarrow as pa
import pytest

import deltalog
from deltalog import DeltaTable, write_deltalake
from tests.python.interfering import Interfering
from tests.python.place import actions, data_files

VECTORS = {"delta.enableDeletionVectors": "true"}
Row = tuple[int | None, str | None, int | None]


def rows_of(rows: Sequence[Row]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) if rows else [(), (), ()]
    types = {"id": pa.int64(), "p": pa.string(), "n": pa.int64()}
    return pa.table(
        {name: pa.array(column, kind) for (name, kind), column in zip(types.items(), columns, strict=True)}
    )


def content(path: Path) -> list[Row]:
    """Checks that `deltalake` reads the same rows, and returns them."""
    ours = pa.table(DeltaTable(path).to_arrow()).to_pylist()
    found = sorted(((row["id"], row["p"], row["n"]) for row in ours), key=repr)
    if not DeltaTable(path).metadata().configuration.get("delta.enableDeletionVectors"):
        theirs = deltalake.DeltaTable(path).to_pyarrow_table().to_pylist()
        assert sorted(((row["id"], row["p"], row["n"]) for row in theirs), key=repr) == found
    return found


def sorted_rows(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=repr)


# Each predicate as SQL and as a Python function of a row, in which None stands for NULL.
PREDICATES: dict[str, Any] = {
    "p = 'a'": lambda key, p, n: None if p is None else p == "a",
    "p IS NULL": lambda key, p, n: p is None,
    "p <> 'a'": lambda key, p, n: None if p is None else p != "a",
    "upper(p) IN ('A', 'B')": lambda key, p, n: None if p is None else p in ("a", "b"),
    "n > 5": lambda key, p, n: None if n is None else n > 5,
    "NOT (n > 5)": lambda key, p, n: None if n is None else n <= 5,
    "n % 2 = 0": lambda key, p, n: None if n is None else n % 2 == 0,
    "n IS NULL OR id < 3": lambda key, p, n: n is None or key < 3,
    "p = 'a' AND n >= 0": lambda key, p, n: (
        False
        if p not in (None, "a") or (n is not None and n < 0)
        else (None if p is None or n is None else True)
    ),
    "id >= 0": lambda key, p, n: True,
    "id < 0": lambda key, p, n: False,
    "true": lambda key, p, n: True,
}


@pytest.mark.parametrize("partition_by", [None, ["p"]])
@pytest.mark.parametrize("configuration", [None, VECTORS])
@pytest.mark.parametrize("predicate", PREDICATES)
def test_only_rows_for_which_the_predicate_is_true_are_replaced(
    tmp_path: Path, predicate: str, configuration: dict[str, str] | None, partition_by: list[str] | None
) -> None:
    """The expected rows are computed with the same predicate in Python. Rows for which it is NULL are not replaced."""
    is_true = PREDICATES[predicate]
    dice = random.Random(predicate)  # noqa: S311
    expected: list[Row] = []
    for number in range(4):
        some: list[Row] = [
            (number * 10 + row, dice.choice(["a", "b", "c d", None]), dice.choice([*range(10), None]))
            for row in range(dice.choice([1, 8]))
        ]
        write_deltalake(
            tmp_path, rows_of(some), mode="append", partition_by=partition_by, configuration=configuration
        )
        expected += some
    new: list[Row] = [
        row for row in ((100 + n, p, n) for n in range(8) for p in ("a", "b", None)) if is_true(*row)
    ]
    for again in range(2):
        version = DeltaTable(tmp_path).version()
        write_deltalake(tmp_path, rows_of(new), mode="overwrite", predicate=predicate)
        expected = [row for row in expected if is_true(*row) is not True] + new
        table = DeltaTable(tmp_path)
        assert (table.version(), content(tmp_path)) == (version + 1, sorted_rows(expected)), again
        assert table.history()[0]["operationParameters"]["predicate"] == predicate
    assert DeltaTable(tmp_path).verify().ok
    write_deltalake(tmp_path, rows_of([]), mode="overwrite", predicate=predicate)
    assert content(tmp_path) == sorted_rows([row for row in expected if is_true(*row) is not True])


def test_files_are_removed_kept_or_changed(tmp_path: Path) -> None:
    for configuration, expected in ((None, (1, 0)), (VECTORS, (0, 1))):
        path = tmp_path / str(expected)
        for some in ([(1, "a", 1), (2, "a", 2)], [(3, "a", 1), (4, "a", 9)], [(5, "a", 8), (6, "a", 9)]):
            write_deltalake(path, rows_of(some), mode="append", configuration=configuration)
        before = data_files(path)
        write_deltalake(path, rows_of([(7, "a", 7)]), mode="overwrite", predicate="n > 5")
        vectors = len(list(path.glob("*.bin")))
        copied = len(data_files(path)) - len(before) - vectors - 1
        assert (copied, vectors) == expected
        commit = [line for line in actions(path, 3) if "remove" in line]
        assert len(commit) == 2, "the file without such rows is not touched"
        assert content(path) == [(1, "a", 1), (2, "a", 2), (3, "a", 1), (7, "a", 7)]


@pytest.mark.parametrize("partition_by", [None, ["p"]])
def test_every_row_must_meet_the_predicate(tmp_path: Path, partition_by: list[str] | None) -> None:
    write_deltalake(tmp_path, rows_of([(1, "a", 1)]), partition_by=partition_by)
    files = data_files(tmp_path)
    for wrong in ((2, "b", 1), (2, None, 1)):
        with pytest.raises(
            deltalog.InvalidArgumentError, match=r"row 1 violates .*replaceWhere.* \(p = 'a'\): p = "
        ):
            write_deltalake(tmp_path, rows_of([(1, "a", 1), wrong]), mode="overwrite", predicate="p = 'a'")
    assert (data_files(tmp_path), DeltaTable(tmp_path).version()) == (files, 0)
    with pytest.raises(deltalog.InvalidArgumentError, match="replaceWhere"):
        write_deltalake(tmp_path / "new", rows_of([(1, "b", 1)]), mode="overwrite", predicate="p = 'a'")
    write_deltalake(tmp_path / "new", rows_of([(1, "a", 1)]), mode="overwrite", predicate="p = 'a'")
    assert content(tmp_path / "new") == [(1, "a", 1)]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (
            {"mode": "append"},
            deltalog.InvalidArgumentError,
            "only in the mode overwrite, not in the mode append",
        ),
        ({"partition_overwrite": "dynamic"}, deltalog.InvalidArgumentError, "not both"),
        ({"predicate": "nothing = 1"}, deltalog.InvalidArgumentError, "nothing"),
        ({"predicate": "n >"}, deltalog.InvalidArgumentError, "cannot be parsed at its end"),
        ({"predicate": "n"}, deltalog.InvalidArgumentError, "n"),
    ],
)
def test_what_cannot_be_is_refused_before_a_row_is_read(
    tmp_path: Path, arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    write_deltalake(tmp_path, rows_of([(1, "a", 1)]), partition_by=["p"])
    files = data_files(tmp_path)
    wanted: dict[str, Any] = {"mode": "overwrite", "predicate": "p = 'a'", **arguments}
    with pytest.raises(error, match=message):
        write_deltalake(tmp_path, rows_of([(1, "a", 1)]), **wanted)
    assert data_files(tmp_path) == files


FEED = {"delta.enableChangeDataFeed": "true"}


def fed(table: Path, version: int) -> list[tuple[Any, ...]]:
    """Returns the changes of a version."""
    changes = pa.table(DeltaTable(table).load_cdf(version, version)).to_pylist()
    return sorted((row["id"], row["p"], row["n"], row["_change_type"]) for row in changes)


@pytest.mark.parametrize("mapping", ["none", "name"])
@pytest.mark.parametrize("partition_by", [None, ["p"]])
@pytest.mark.parametrize("vectors", ["false", "true"])
def test_the_feed_has_the_replaced_and_the_new_rows(
    tmp_path: Path, vectors: str, partition_by: list[str] | None, mapping: str
) -> None:
    """Rows that are only copied are not changes. Protocol: "Change Data Files"."""
    properties = {
        **FEED,
        "delta.enableDeletionVectors": vectors,
        "delta.columnMapping.mode": mapping,
        "delta.enableRowTracking": vectors,
    }
    old = [(1, "a", 1), (2, "a", 2), (3, "b", None)]
    write_deltalake(tmp_path, rows_of(old), partition_by=partition_by, configuration=properties)
    # One file loses all its rows, and one file keeps them all.
    write_deltalake(tmp_path, rows_of([(4, "c", 1), (5, "c", 1)]), mode="append")
    write_deltalake(tmp_path, rows_of([(6, "c", 6)]), mode="append")
    new = rows_of([(7, "b", 1), (8, "a", 1)])
    write_deltalake(tmp_path, new, mode="overwrite", predicate="n = 1")
    assert content(tmp_path) == [(2, "a", 2), (3, "b", None), (6, "c", 6), (7, "b", 1), (8, "a", 1)]
    gone = [(1, "a", 1, "delete"), (4, "c", 1, "delete"), (5, "c", 1, "delete")]
    assert fed(tmp_path, 3) == [*gone, (7, "b", 1, "insert"), (8, "a", 1, "insert")]
    cdc = [line["cdc"] for line in actions(tmp_path, 3) if "cdc" in line]
    assert bool(cdc) == (vectors == "false")
    for file in cdc:
        assert (tmp_path / unquote(file["path"])).stat().st_size == file["size"]
    # If whole files are added and removed, the changes are read from these files.
    write_deltalake(tmp_path, rows_of([(9, "c", 6)]), mode="overwrite", predicate="n = 6")
    assert fed(tmp_path, 4) == [(6, "c", 6, "delete"), (9, "c", 6, "insert")]
    assert not any("cdc" in line for line in actions(tmp_path, 4))


def test_the_feed_has_columns_that_the_overwrite_adds(tmp_path: Path) -> None:
    write_deltalake(tmp_path, rows_of([(1, "a", 1), (2, "a", 2)]), configuration=FEED)
    more = rows_of([(3, "a", 1)]).append_column("more", pa.array([30]))
    write_deltalake(tmp_path, more, mode="overwrite", predicate="n = 1", schema_mode="merge")
    changes = pa.table(DeltaTable(tmp_path).load_cdf(1, 1)).to_pylist()
    assert sorted((row["id"], row["more"], row["_change_type"]) for row in changes) == [
        (1, None, "delete"),
        (3, 30, "insert"),
    ]


def test_an_overwrite_that_fails_leaves_no_change_files(tmp_path: Path) -> None:
    write_deltalake(tmp_path, rows_of([(1, "a", 1), (2, "a", 2)]), configuration=FEED)
    before = data_files(tmp_path)
    base = DeltaTable(tmp_path)
    write_deltalake(tmp_path, rows_of([]), mode="overwrite", predicate="n = 2")
    between = data_files(tmp_path)
    with pytest.raises(deltalog.CommitConflictError):
        write_deltalake(base, rows_of([(3, "a", 1)]), mode="overwrite", predicate="n = 1")
    assert data_files(tmp_path) == between != before


def tracked(path: Path) -> dict[int, tuple[int, int]]:
    """Returns the row id and the row commit version of each row."""
    found = pa.table(DeltaTable(path).to_arrow(row_ids=True)).to_pylist()
    rows = {row["id"]: (row["_row_id"], row["_row_commit_version"]) for row in found}
    assert len(rows) == len(found) == len({row_id for row_id, _ in rows.values()})
    return rows


@pytest.mark.parametrize("partition_by", [None, ["p"]])
@pytest.mark.parametrize("mapping", ["none", "name"])
@pytest.mark.parametrize("vectors", ["false", "true"])
def test_rows_that_are_not_replaced_keep_their_ids(
    tmp_path: Path, mapping: str, vectors: str, partition_by: list[str] | None
) -> None:
    """PROTOCOL, "Row Tracking": "When a row is updated or copied, the stable Row ID for this row is preserved"."""
    configuration = {
        "delta.enableRowTracking": "true",
        "delta.columnMapping.mode": mapping,
        "delta.enableDeletionVectors": vectors,
    }
    dice = random.Random(f"{mapping} {vectors} {partition_by}")  # noqa: S311
    for start in (0, 10):
        some: list[Row] = [
            (start + row, dice.choice(["a", "b"]), dice.choice(range(10))) for row in range(10)
        ]
        write_deltalake(
            tmp_path, rows_of(some), mode="append", partition_by=partition_by, configuration=configuration
        )
    copies = 0
    for number in range(6):
        before, version = tracked(tmp_path), DeltaTable(tmp_path).version()
        bound = dice.choice(range(10))
        keys = [100 + 10 * number, 101 + 10 * number]
        new: list[Row] = [(key, p, bound) for key, p in zip(keys, "ab", strict=True)]
        write_deltalake(tmp_path, rows_of(new), mode="overwrite", predicate=f"n = {bound}")
        after = tracked(tmp_path)
        # A new row with the same content has a new id, and the version that wrote it.
        replaced = {
            row["id"]
            for row in pa.table(DeltaTable(tmp_path, version).to_arrow()).to_pylist()
            if row["n"] == bound
        }
        kept = {key: value for key, value in before.items() if key not in replaced}
        assert {key: after[key] for key in kept} == kept
        assert after.keys() - kept.keys() == set(keys)
        for key in keys:
            assert after[key][0] > max(row_id for row_id, _ in before.values())
            assert after[key][1] == version + 1
        lines = actions(tmp_path, version + 1)
        (info,) = [line["commitInfo"] for line in lines if "commitInfo" in line]
        assert info["tags"] == {"delta.rowTracking.preserved": "true"}
        stats = [line["add"]["stats"] for line in lines if "add" in line]
        assert not any("_row-id-col" in text for text in stats)
        copies += len(stats) - (2 if partition_by else 1)
    assert copies > 0
    assert DeltaTable(tmp_path).verify().ok
    # Rows that were already copied once are copied again.
    before = tracked(tmp_path)
    write_deltalake(tmp_path, rows_of([]), mode="overwrite", predicate="id >= 100")
    assert tracked(tmp_path) == {key: value for key, value in before.items() if key < 100}


def test_a_column_with_the_name_of_row_ids_is_refused(tmp_path: Path) -> None:
    data = pa.table({"_row_id": pa.array([1, 2], pa.int64())})
    write_deltalake(tmp_path, data, configuration={"delta.enableRowTracking": "true"})
    files = data_files(tmp_path)
    with pytest.raises(deltalog.InvalidArgumentError, match=r"'_row_id'[\s\S]*enableDeletionVectors"):
        write_deltalake(tmp_path, data.slice(0, 1), mode="overwrite", predicate="_row_id = 1")
    assert data_files(tmp_path) == files
    write_deltalake(tmp_path, data.slice(0, 0), mode="overwrite", predicate="true")


@pytest.mark.parametrize("configuration", [None, VECTORS])
def test_what_was_read_is_the_predicate(tmp_path: Path, configuration: dict[str, str] | None) -> None:
    """A concurrent append conflicts if and only if the overwrite would have replaced its rows."""

    def meanwhile(path: Path, row: Row, **arguments: Any) -> None:
        write_deltalake(path, rows_of([(1, "a", 1), (2, "a", 9)]), configuration=configuration)
        arguments = {"mode": "append", **arguments}
        source = Interfering(
            rows_of([(3, "a", 8)]), lambda: write_deltalake(path, rows_of([row]), **arguments)
        )
        write_deltalake(path, source, mode="overwrite", predicate="n > 5")

    with pytest.raises(deltalog.CommitConflictError, match="n > 5") as caught:
        meanwhile(tmp_path / "same", (4, "a", 7))
    assert caught.value.reason == "concurrent_append"
    assert content(tmp_path / "same") == [(1, "a", 1), (2, "a", 9), (4, "a", 7)]
    kept = {Path(uri).name for uri in DeltaTable(tmp_path / "same").file_uris()}
    assert {Path(file).name for file in data_files(tmp_path / "same")} == kept, "copied rows are deleted"
    meanwhile(tmp_path / "other", (4, "a", 5))
    assert content(tmp_path / "other") == [(1, "a", 1), (3, "a", 8), (4, "a", 5)]
    with pytest.raises(deltalog.CommitConflictError):
        meanwhile(tmp_path / "overwritten", (4, "a", 5), mode="overwrite")


def test_a_table_that_was_opened_before_is_the_base(tmp_path: Path) -> None:
    write_deltalake(tmp_path, rows_of([(1, "a", 1), (2, "b", 2)]), partition_by=["p"])
    old = DeltaTable(tmp_path)
    write_deltalake(tmp_path, rows_of([(3, "b", 3)]), mode="append")
    write_deltalake(old, rows_of([(4, "a", 4)]), mode="overwrite", predicate="p = 'a'")
    with pytest.raises(deltalog.CommitConflictError):
        write_deltalake(old, rows_of([(5, "b", 5)]), mode="overwrite", predicate="p = 'b'")
    assert content(tmp_path) == [(2, "b", 2), (3, "b", 3), (4, "a", 4)]


def test_columns_are_found_by_their_names_in_the_schema(tmp_path: Path) -> None:
    """Protocol: "Column Mapping"."""
    configuration = {"delta.columnMapping.mode": "name"}
    data = rows_of([(1, "a", 1), (2, "a", 9), (3, "b", 9)])
    write_deltalake(tmp_path, data, partition_by=["p"], configuration=configuration)
    write_deltalake(tmp_path, rows_of([(4, "a", 7)]), mode="overwrite", predicate="P = 'a' AND N > 5")
    found = pa.table(DeltaTable(tmp_path).to_arrow()).to_pylist()
    assert sorted(row["id"] for row in found) == [1, 3, 4]


def test_deleted_rows_are_not_evaluated(tmp_path: Path) -> None:
    """The predicate would fail for a row that was already deleted, so it must not be evaluated for this row."""
    write_deltalake(tmp_path, rows_of([(1, "a", 0), (2, "a", 5), (3, "a", 20)]), configuration=VECTORS)
    write_deltalake(tmp_path, rows_of([]), mode="overwrite", predicate="n = 0")
    write_deltalake(tmp_path, rows_of([(9, "b", 1)]), mode="overwrite", predicate="10 / n >= 1")
    assert content(tmp_path) == sorted_rows([(3, "a", 20), (9, "b", 1)])
