"""DELETE, with and without deletion vectors. Protocol: "Deletion Vectors", "Add File and Remove File"."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

import deltalog
from deltalog import (
    CommitConflictError,
    CommitProperties,
    DeltaTable,
    InvalidArgumentError,
    Transaction,
    write_deltalake,
)
from deltalog._internal import AlreadyApplied
from tests.python.interfering import overtaken
from tests.python.place import actions, data_files, tree
from tests.python.statement_support import (
    FEED,
    TRACKED,
    VECTORS,
    Row,
    content,
    created,
    expected_feed,
    feed,
    in_order,
    metrics,
)

FILES: list[list[Row]] = [
    [(1, "a", 1), (2, "a", None), (3, None, 3)],
    [(4, "b", 4), (5, "b", 5)],
    [(6, None, None)],
]
ROWS = [row for rows in FILES for row in rows]

# Each predicate as SQL and as a Python function of a row, in which None stands for NULL.
PREDICATES: dict[str, Any] = {
    "id = 1": lambda key, p, n: key == 1,
    "n > 3": lambda key, p, n: None if n is None else n > 3,
    "NOT (n > 3)": lambda key, p, n: None if n is None else n <= 3,
    "n % 2 = 1": lambda key, p, n: None if n is None else n % 2 == 1,
    "p = 'a'": lambda key, p, n: None if p is None else p == "a",
    "p IS NULL OR id = 2": lambda key, p, n: p is None or key == 2,
    "upper(p) = 'B' AND n > 4": lambda key, p, n: p == "b" and n is not None and n > 4,
    "id IN (1, 4, 6)": lambda key, p, n: key in (1, 4, 6),
    "id > 0": lambda key, p, n: True,
    "id > 99": lambda key, p, n: False,
    "false": lambda key, p, n: False,
    "true": lambda key, p, n: True,
}


@pytest.mark.parametrize("properties", [{}, VECTORS, {**VECTORS, **FEED}, FEED], ids=repr)
@pytest.mark.parametrize("partition_by", [None, ["p"]], ids=["whole", "partitioned"])
@pytest.mark.parametrize("predicate", PREDICATES)
def test_rows_for_which_the_predicate_is_true_are_deleted(
    tmp_path: Path, predicate: str, partition_by: list[str] | None, properties: dict[str, str]
) -> None:
    table = created(tmp_path, FILES, properties, partition_by)
    before = table.version()
    done = metrics(table.delete(predicate))
    gone = [row for row in ROWS if PREDICATES[predicate](*row)]
    assert content(table) == in_order(row for row in ROWS if not PREDICATES[predicate](*row))
    assert done["numDeletedRows"] == len(gone)
    assert table.version() == before + bool(gone)
    assert content(tmp_path, before) == in_order(ROWS)
    if gone and "delta.enableChangeDataFeed" in properties:
        assert feed(table, table.version()) == Counter(("delete", *row) for row in gone)
    if not properties:
        theirs = deltalake.DeltaTable(tmp_path).to_pyarrow_table().to_pylist()
        assert in_order(row.values() for row in theirs) == content(table)


def test_all_rows_are_deleted_without_a_predicate(tmp_path: Path) -> None:
    table = created(tmp_path, FILES, VECTORS)
    done = metrics(table.delete())
    assert content(table) == []
    assert (done["numDeletedRows"], done["numRemovedFiles"], done["numAddedFiles"]) == (6, 3, 0)
    info = table.history(1)[0]
    assert info["operation"] == "DELETE"
    assert info["operationParameters"]["predicate"] == "[]"
    assert {name: int(value) for name, value in info["operationMetrics"].items()} == done


def test_a_file_all_of_whose_rows_match_is_not_read(tmp_path: Path) -> None:
    table = created(tmp_path, FILES, {}, ["p"])
    for file in data_files(tmp_path):
        (tmp_path / file).write_bytes(b"nothing that could be read")
    # For the first DELETE, whole files match by their partition values, and for the second one by their statistics.
    assert metrics(table.delete("p = 'b'"))["numDeletedRows"] == 2
    assert metrics(table.delete([("id", "<=", 2)]))["numDeletedRows"] == 2
    with pytest.raises(deltalog.DeltaError):
        table.delete("id % 2 = 0")


def test_a_file_is_read_if_the_predicate_may_have_no_value_for_a_row(tmp_path: Path) -> None:
    days = [date(1960, 1, 1), date(2000, 1, 1)]
    write_deltalake(tmp_path, pa.table({"day": days}))
    table = DeltaTable(tmp_path)
    for predicate in (
        "date_add(day, 2147483647) > DATE '2024-01-01'",
        "date_add(date_add(day, 1073741824), 1073741823) > DATE '2024-01-01'",
    ):
        with pytest.raises(InvalidArgumentError, match="no value for 2000-01-01"):
            table.delete(predicate)
    assert table.count("day IS NOT NULL") == 2


def test_vectors_leave_the_files_where_they_are(tmp_path: Path) -> None:
    table = created(tmp_path, FILES, VECTORS)
    files = list(tmp_path.rglob("*.parquet"))
    done = metrics(table.delete("n = 3 OR n = 4"))
    assert list(tmp_path.rglob("*.parquet")) == files
    assert (done["numDeletionVectorsAdded"], done["numAddedFiles"], done["numCopiedRows"]) == (2, 0, 0)
    done = metrics(table.delete("id = 1"))
    assert (done["numDeletionVectorsUpdated"], done["numDeletionVectorsRemoved"]) == (1, 1)
    # This deletes the last remaining row of a file.
    done = metrics(table.delete("id IN (2, 5)"))
    assert (done["numRemovedFiles"], done["numDeletionVectorsRemoved"]) == (2, 2)
    assert content(table) == [(6, None, None)]


def test_without_vectors_the_other_rows_are_copied(tmp_path: Path) -> None:
    table = created(tmp_path, FILES)
    done = metrics(table.delete("n = 3"))
    assert (done["numRemovedFiles"], done["numAddedFiles"], done["numCopiedRows"]) == (1, 1, 2)
    assert done["numRemovedBytes"] > 0 < done["numAddedBytes"]


def test_rows_that_are_deleted_are_not_evaluated(tmp_path: Path) -> None:
    table = created(tmp_path, [[(0, "a", 1), (1, "a", 2), (2, "b", 3)]], VECTORS)
    table.delete("id = 0")
    assert metrics(table.delete("n / id = 2"))["numDeletedRows"] == 1
    assert content(table) == [(2, "b", 3)]


def test_copied_rows_keep_their_ids(tmp_path: Path) -> None:
    table = created(tmp_path, FILES, TRACKED)

    def ids() -> dict[int, tuple[int, int]]:
        rows = pa.table(table.to_arrow(row_ids=True)).to_pylist()
        return {row["id"]: (row["_row_id"], row["_row_commit_version"]) for row in rows}

    before = ids()
    table.delete("n = 3 OR n = 4")
    assert ids() == {key: value for key, value in before.items() if key not in (3, 4)}


def test_nothing_to_delete_commits_nothing(tmp_path: Path) -> None:
    table = created(tmp_path, FILES, VECTORS)
    before = tree(tmp_path)
    assert metrics(table.delete("id = 77"))["numDeletedRows"] == 0
    assert tree(tmp_path) == before


def test_a_statement_of_an_application_is_done_once(tmp_path: Path) -> None:
    table = created(tmp_path, FILES, VECTORS)
    once = CommitProperties({"job": "x"}, app_transactions=[Transaction("app", 3)])
    table.delete("id = 1", commit_properties=once)
    assert table.history(1)[0]["job"] == "x"
    again = table.delete("id = 2", commit_properties=once)
    assert isinstance(again, AlreadyApplied)
    assert again.recorded == 3
    assert len(content(tmp_path)) == 5


def test_statements_on_common_rows_conflict(tmp_path: Path) -> None:
    created(tmp_path, FILES, VECTORS)
    first, second, third = (overtaken(DeltaTable(tmp_path)) for _ in range(3))
    first.delete("id = 1")
    second.delete("id = 2")
    files = tree(tmp_path)
    with pytest.raises(CommitConflictError, match="row 0") as caught:
        third.delete("id IN (1, 3)")
    assert caught.value.reason == "concurrent_delete_delete"
    assert tree(tmp_path) == files
    assert content(tmp_path) == in_order(row for row in ROWS if row[0] not in (1, 2))


@pytest.mark.parametrize(
    ("predicate", "match"),
    [
        ("nope = 1", "nope"),
        ("id", "not a condition"),
        ("id = 'x' AND", "parsed"),
        ("1 / (id - 4) > 0", "has no value"),
    ],
)
def test_predicates_that_cannot_be_evaluated_are_refused(tmp_path: Path, predicate: str, match: str) -> None:
    table = created(tmp_path, FILES)
    before = tree(tmp_path)
    with pytest.raises(InvalidArgumentError, match=match):
        table.delete(predicate)
    assert tree(tmp_path) == before


def test_an_append_only_table_keeps_its_rows(tmp_path: Path) -> None:
    table = created(tmp_path, FILES, {"delta.appendOnly": "true"})
    with pytest.raises(InvalidArgumentError, match="append-only"):
        table.delete("id = 1")
    with pytest.raises(InvalidArgumentError, match="append-only"):
        table.update({"n": "1"})


def test_columns_are_found_by_their_logical_names(tmp_path: Path) -> None:
    table = created(tmp_path, FILES, {"delta.columnMapping.mode": "name", **VECTORS}, ["p"])
    table.alter.rename_column("n", "number")
    table.alter.rename_column("p", "part")
    assert metrics(table.delete("number = 3 OR part = 'b'"))["numDeletedRows"] == 3
    assert (
        metrics(table.update({"part": "'z'", "number": "number + 1"}, predicate="id = 1"))["numUpdatedRows"]
        == 1
    )
    assert content(table) == in_order([(1, "z", 2), (2, "a", None), (6, None, None)])


def chosen(dice: random.Random) -> tuple[str, Callable[[Row], bool]]:
    """Returns a random condition: its SQL, and whether it is true for a row."""
    number = dice.randint(2, 5)
    conditions: list[tuple[str, Callable[[Row], bool]]] = [
        (f"n = {number}", lambda row: row[2] == number),
        (f"id % {number} = 0", lambda row: (row[0] or 0) % number == 0),
        ("p = 'a'", lambda row: row[1] == "a"),
        ("p IS NULL AND n >= 2", lambda row: row[1] is None and row[2] is not None and row[2] >= 2),
        (f"id >= {5 * number}", lambda row: (row[0] or 0) >= 5 * number),
    ]
    return dice.choice(conditions)


def updated(row: Row) -> Row:
    key, p, n = row
    return key, "c" if (n or 0) > 2 else p, (n or 0) + (key or 0)


@pytest.mark.parametrize("seed", range(40))
def test_random_statements_agree_with_a_model(tmp_path: Path, seed: int) -> None:
    """Random DELETEs and UPDATEs are applied to a table and to a list of rows. The resulting rows, the change data
    feed and the numbers of affected rows must agree.
    """
    dice = random.Random(seed)  # noqa: S311
    properties = {
        **(VECTORS if dice.random() < 0.6 else {}),
        **(FEED if dice.random() < 0.5 else {}),
        **(TRACKED if dice.random() < 0.3 else {}),
    }
    partition_by = ["p"] if dice.random() < 0.4 else None

    def row(key: int) -> Row:
        return key, dice.choice(["a", "b", None]), dice.choice([None, *range(5)])

    files = [[row(10 * file + key) for key in range(dice.randint(1, 8))] for file in range(3)]
    rows = [row for file in files for row in file]
    table = created(tmp_path, files, properties, partition_by)
    for _ in range(5):
        text, is_true = chosen(dice)
        hit = [row for row in rows if is_true(row)]
        before = table.version()
        if dice.random() < 0.4:
            done = metrics(table.delete(text))
            rows = [row for row in rows if not is_true(row)]
            changes: Counter[tuple[Any, ...]] = Counter(("delete", *row) for row in hit)
            assert done["numDeletedRows"] == len(hit), text
        else:
            values = {"n": "coalesce(n, 0) + id", "p": "CASE WHEN n > 2 THEN 'c' ELSE p END"}
            done = metrics(table.update(values, predicate=text))
            rows = [updated(row) if is_true(row) else row for row in rows]
            changes = expected_feed(hit, [updated(row) for row in hit])
            assert done["numUpdatedRows"] == len(hit), text
        assert content(table) == in_order(rows), text
        assert content(tmp_path) == in_order(rows), text
        if "delta.enableChangeDataFeed" in properties and table.version() > before:
            assert feed(table, table.version()) == changes, text


def test_change_data_files_are_named_in_the_commit(tmp_path: Path) -> None:
    """Protocol, "Add CDC File": a version has change data files only if its other actions do not show all changes."""
    table = created(tmp_path, FILES, {**FEED, **VECTORS})
    table.delete("id = 1")
    assert not [line for line in actions(tmp_path, table.version()) if "cdc" in line]
    plain = created(tmp_path / "plain", FILES, FEED)
    # One file is removed, and rows of the other file are copied, so all changes are in change data files.
    done = metrics(plain.delete("id IN (1, 6)"))
    files = [line["cdc"] for line in actions(tmp_path / "plain", plain.version()) if "cdc" in line]
    assert done["numAddedChangeFiles"] == len(files) == 1
    assert files[0]["path"].startswith("_change_data/")
    assert files[0]["dataChange"] is False
    assert feed(plain, plain.version()) == Counter([("delete", 1, "a", 1), ("delete", 6, None, None)])
    # Files that lose all rows need no change data files.
    plain.delete("id >= 4")
    assert not [line for line in actions(tmp_path / "plain", plain.version()) if "cdc" in line]
