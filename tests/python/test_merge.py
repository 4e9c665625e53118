"""MERGE, with and without deletion vectors, is compared with a naive model of rows."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

import deltalog
from deltalog import (
    CommitConflictError,
    CommitProperties,
    DeltaTable,
    Field,
    Identity,
    InvalidArgumentError,
    Schema,
    SchemaMismatchError,
    Transaction,
    UnsupportedFeatureError,
)
from deltalog._internal import AlreadyApplied
from deltalog.table.merge import TableMerger
from tests.python.interfering import overtaken
from tests.python.place import data_files, tree
from tests.python.statement_support import (
    FEED,
    TRACKED,
    VECTORS,
    Row,
    content,
    created,
    feed,
    in_order,
    metrics,
    rows_of,
)

FILES: list[list[Row]] = [[(1, "a", 1), (2, "a", None), (3, None, 3)], [(4, "b", 4), (None, "b", 5)]]
ROWS = [row for rows in FILES for row in rows]
BOTH = pytest.mark.parametrize("properties", [{}, VECTORS], ids=["copied", "vectors"])


def merging(
    table: DeltaTable, source: list[Row], condition: str = "target.id = source.id"
) -> TableMerger[Any]:
    return table.merge(rows_of(source), condition)


@BOTH
def test_an_upsert(tmp_path: Path, properties: dict[str, str]) -> None:
    table = created(tmp_path, FILES, {**properties, **FEED})
    source: list[Row] = [(2, "z", 20), (9, "n", 90)]
    done = metrics(merging(table, source).when_matched_update_all().when_not_matched_insert_all().execute())
    assert content(table) == in_order([ROWS[0], *ROWS[2:], *source])
    counts = ("numSourceRows", "numTargetRowsUpdated", "numTargetRowsInserted", "numTargetRowsDeleted")
    assert [done[name] for name in counts] == [2, 1, 1, 0]
    assert feed(table, table.version()) == Counter(
        [("update_preimage", *ROWS[1]), ("update_postimage", *source[0]), ("insert", *source[1])]
    )
    info = table.history(1)[0]
    assert info["operation"] == "MERGE"
    assert info["operationParameters"]["predicate"] == '["target.id = source.id"]'
    assert info["operationParameters"]["matchedPredicates"] == '[{"actionType":"update"}]'
    assert {name: int(value) for name, value in info["operationMetrics"].items()} == done


@BOTH
def test_a_null_key_matches_nothing(tmp_path: Path, properties: dict[str, str]) -> None:
    table = created(tmp_path, FILES, properties)
    source: list[Row] = [(None, "x", 0), (1, "y", 0)]
    merging(table, source).when_matched_delete().when_not_matched_insert_all().execute()
    assert content(table) == in_order([*ROWS[1:], source[0]])
    # With <=>, NULL matches NULL.
    again = merging(table, [(None, "w", 7)], "target.id <=> source.id AND target.p = 'b'")
    assert metrics(again.when_matched_update({"n": "source.n"}).execute())["numTargetRowsUpdated"] == 1


@BOTH
def test_several_matches_are_refused_unless_rows_are_only_deleted(
    tmp_path: Path, properties: dict[str, str]
) -> None:
    table = created(tmp_path, FILES, properties)
    twice: list[Row] = [(1, "x", 0), (1, "y", 1), (8, "z", 2)]
    before = tree(tmp_path)
    for merge in [
        merging(table, twice).when_matched_update_all(),
        merging(table, twice).when_matched_delete("source.n = 0"),
        merging(table, twice).when_matched_delete("source.n = 0").when_matched_update_all(),
        merging(table, twice).when_matched_delete("true"),
        # A pair of rows counts as a match even if no clause applies to it.
        merging(table, twice).when_matched_update({"n": "1"}, "source.n = 77"),
        merging(table, twice).when_not_matched_by_source_delete(),
        merging(table, twice).when_not_matched_insert_all().when_not_matched_by_source_delete(),
    ]:
        with pytest.raises(InvalidArgumentError, match="MERGE_CARDINALITY_VIOLATION"):
            merge.execute()
    assert tree(tmp_path) == before
    done = metrics(merging(table, twice).when_matched_delete().when_not_matched_insert_all().execute())
    assert (done["numTargetRowsDeleted"], done["numTargetRowsInserted"]) == (1, 1)
    assert content(table) == in_order([*ROWS[1:], twice[2]])
    # Rows with a match are not changed.
    inserted = metrics(merging(table, [(2, "", 0), (2, "", 1)]).when_not_matched_insert_all().execute())
    assert inserted["numTargetRowsInserted"] == 0
    # One row of the source may match two rows of the table.
    deltalog.write_deltalake(tmp_path, rows_of([(2, "again", 5)]), mode="append")
    table.update_incremental()
    done = metrics(merging(table, [(2, "q", 1)]).when_matched_update({"p": "source.p"}).execute())
    assert done["numTargetRowsUpdated"] == 2


@BOTH
def test_an_empty_source(tmp_path: Path, properties: dict[str, str]) -> None:
    table = created(tmp_path, FILES, properties)
    before = tree(tmp_path)
    done = metrics(merging(table, []).when_matched_delete().when_not_matched_insert_all().execute())
    assert (done["numSourceRows"], tree(tmp_path)) == (0, before)
    done = metrics(merging(table, []).when_not_matched_by_source_delete("p = 'a'").execute())
    assert (done["numTargetRowsDeleted"], done["numTargetRowsNotMatchedBySourceDeleted"]) == (2, 2)
    assert content(table) == in_order(ROWS[2:])


@BOTH
def test_an_empty_table(tmp_path: Path, properties: dict[str, str]) -> None:
    table = created(tmp_path, [], properties)
    merging(table, FILES[0]).when_matched_delete().when_not_matched_insert_all("n IS NOT NULL").execute()
    assert content(table) == in_order([FILES[0][0], FILES[0][2]])


@BOTH
def test_the_table_itself_as_the_source(tmp_path: Path, properties: dict[str, str]) -> None:
    table = created(tmp_path, FILES, properties)
    source = table.to_arrow(predicate="n >= 3")
    merge = table.merge(source, "t.id = s.id", "s", "t")
    merge.when_matched_update({"n": "t.n + s.n"}).when_not_matched_by_source_delete("p = 'a'").execute()
    assert content(table) == in_order([(3, None, 6), (4, "b", 8), (None, "b", 5)])


def test_files_without_a_key_of_the_source_are_not_read(tmp_path: Path) -> None:
    files: list[list[Row]] = [[(10 * file, "a", file), (10 * file + 1, "b", file)] for file in range(6)]
    table = created(tmp_path, files, VECTORS)
    paths = table.file_uris("id >= 20")
    for path in table.file_uris():
        if path not in paths or path in table.file_uris("id >= 40"):
            Path(path.removeprefix("file://")).write_bytes(b"nothing that could be read")
    # Files are skipped by a list of the keys, and, if there are many, by their range.
    merging(table, [(20, "x", 0), (31, "y", 0)]).when_matched_update_all().execute()
    many: list[Row] = [(20 + key % 19, "z", key) for key in range(19)]
    merge = merging(table, many, "target.id = source.id AND target.id < 40").when_matched_update({"p": "'r'"})
    assert metrics(merge.execute())["numTargetRowsUpdated"] == 4
    with pytest.raises(deltalog.DeltaError):
        merging(table, [(0, "x", 0)]).when_matched_delete().execute()


def both(a: int | None, b: int | None, holds: Callable[[int, int], bool]) -> bool:
    """Returns whether neither of two values is NULL and `holds` is true for them."""
    return a is not None and b is not None and holds(a, b)


CONDITIONS: list[tuple[str, Callable[[Row, Row], bool]]] = [
    ("target.id = source.id", lambda t, s: both(t[0], s[0], lambda a, b: a == b)),
    (
        "source.id = target.id AND target.n < 3",
        lambda t, s: both(t[0], s[0], lambda a, b: a == b) and both(t[2], 3, lambda n, most: n < most),
    ),
    ("target.id <=> source.id", lambda t, s: t[0] == s[0]),
    (
        "target.id = source.id AND target.p = source.p",
        lambda t, s: None not in (t[0], t[1]) and t[:2] == s[:2],
    ),
    # These conditions have no equality between a value of the source and a value of the target.
    (
        "target.id + 1 < source.id AND source.id < target.id + 3",
        lambda t, s: both(t[0], s[0], lambda a, b: a + 1 < b < a + 3),
    ),
    ("target.id % 4 = source.n", lambda t, s: both(t[0], s[2], lambda a, b: a % 4 == b)),
]


class ModelClause(NamedTuple):
    """A clause of a MERGE, in SQL and in Python. `change` returns the new row, or None for a DELETE."""

    when: str
    predicate: str | None
    is_for: Callable[[Any, Any], bool]
    values: dict[str, str] | None
    change: Callable[[Any, Any], Row | None]


def summed(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a + b


CLAUSES = [
    ModelClause(
        "matched",
        "source.n = 1",
        lambda t, s: s[2] == 1,
        {"n": "target.n + source.n"},
        lambda t, s: (t[0], t[1], summed(t[2], 1)),
    ),
    ModelClause("matched", "target.n > 2", lambda t, s: (t[2] or 0) > 2, None, lambda t, s: None),
    ModelClause(
        "matched",
        None,
        lambda t, s: True,
        {"p": "source.p", "id": "coalesce(target.id, 0) + 100"},
        lambda t, s: ((t[0] or 0) + 100, s[1], t[2]),
    ),
    ModelClause("matched", None, lambda t, s: True, None, lambda t, s: None),
    ModelClause(
        "inserted",
        "source.p = 'a'",
        lambda t, s: s[1] == "a",
        {"id": "id", "n": "n + n"},
        lambda t, s: (s[0], None, summed(s[2], s[2])),
    ),
    ModelClause(
        "inserted",
        None,
        lambda t, s: True,
        {"id": "source.id", "p": "source.p", "n": "source.n"},
        lambda t, s: s,
    ),
    ModelClause("by source", "n IS NULL", lambda t, s: t[2] is None, None, lambda t, s: None),
    ModelClause(
        "by source",
        "target.p = 'b'",
        lambda t, s: t[1] == "b",
        {"p": "'gone'"},
        lambda t, s: (t[0], "gone", t[2]),
    ),
]


def played(
    target: list[Row],
    source: list[Row],
    matches: Callable[[Row, Row], bool],
    clauses: list[ModelClause],
) -> tuple[list[Row], Counter[tuple[Any, ...]]] | None:
    """Returns the rows and the changes that a MERGE should give; None if it must fail, because a clause applies to a
    row with several matches.
    """
    of_kind = {
        kind: [clause for clause in clauses if clause.when == kind]
        for kind in ("matched", "inserted", "by source")
    }
    rows: list[Row] = []
    changes: Counter[tuple[Any, ...]] = Counter()
    matched: set[int] = set()
    only_delete = len(of_kind["matched"]) == 1 and of_kind["matched"][0][1:4:2] == (None, None)
    for row in target:
        found = [index for index, one in enumerate(source) if matches(row, one)]
        if len(found) > 1 and (of_kind["matched"] or of_kind["by source"]) and not only_delete:
            return None
        matched.update(found)
        one = source[found[0]] if found else None
        chosen = next(
            (clause for clause in of_kind["matched" if found else "by source"] if clause.is_for(row, one)),
            None,
        )
        if chosen is None:
            rows.append(row)
            continue
        new = chosen.change(row, one)
        if new is None:
            changes[("delete", *row)] += 1
        else:
            rows.append(new)
            changes[("update_preimage", *row)] += 1
            changes[("update_postimage", *new)] += 1
    for index, one in enumerate(source):
        chosen = next((clause for clause in of_kind["inserted"] if clause.is_for(None, one)), None)
        if index not in matched and chosen is not None:
            new = chosen.change(None, one)
            assert new is not None
            rows.append(new)
            changes[("insert", *new)] += 1
    return rows, changes


@pytest.mark.parametrize("seed", range(60))
def test_a_merge_agrees_with_a_model(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)  # noqa: S311

    def row() -> Row:
        return dice.choice([None, *range(14)]), dice.choice(["a", "b", None]), dice.choice([None, *range(5)])

    properties = {
        **(VECTORS if dice.random() < 0.6 else {}),
        **(FEED if dice.random() < 0.6 else {}),
        **(TRACKED if dice.random() < 0.3 else {}),
    }
    files = [[row() for _ in range(dice.randint(1, 6))] for _ in range(3)]
    table = created(tmp_path, files, properties, ["p"] if dice.random() < 0.4 else None)
    if dice.random() < 0.5:
        table.delete("n = 0")
    rows = [tuple(row.values()) for row in pa.table(table.to_arrow()).to_pylist()]
    for _ in range(3):
        source = [row() for _ in range(dice.randint(0, 6))]
        if dice.random() < 0.7:
            source = list({one[0]: one for one in source}.values())
        condition, matches = dice.choice(CONDITIONS)
        clauses = [clause for clause in CLAUSES if dice.random() < 0.5]
        # Only the last clause of its kind can lack a predicate.
        clauses = [
            clause
            for place, clause in enumerate(clauses)
            if clause.predicate is not None
            or not any(other.when == clause.when for other in clauses[place + 1 :])
        ]
        if not clauses:
            continue
        merge = table.merge(rows_of(source), condition)
        for clause in clauses:
            add = {
                ("matched", True): merge.when_matched_update,
                ("inserted", True): merge.when_not_matched_insert,
                ("by source", True): merge.when_not_matched_by_source_update,
            }.get((clause.when, clause.values is not None))
            if add is not None:
                assert clause.values is not None
                add(clause.values, clause.predicate)
            elif clause.when == "matched":
                merge.when_matched_delete(clause.predicate)
            else:
                merge.when_not_matched_by_source_delete(clause.predicate)
        expected = played(rows, source, matches, clauses)
        before = table.version()
        if expected is None:
            with pytest.raises(InvalidArgumentError, match="CARDINALITY"):
                merge.execute()
            continue
        rows, changes = expected
        done = metrics(merge.execute())
        assert content(table) == in_order(rows), (condition, source, clauses)
        kinds = Counter(change[0] for change in changes.elements())
        assert done["numTargetRowsDeleted"] == kinds["delete"]
        assert done["numTargetRowsUpdated"] == kinds["update_preimage"]
        assert done["numTargetRowsInserted"] == kinds["insert"]
        assert table.version() == before + bool(changes)
        if changes and "delta.enableChangeDataFeed" in properties:
            assert feed(table, table.version()) == changes
        rows = [tuple(row.values()) for row in pa.table(table.to_arrow()).to_pylist()]


@BOTH
def test_rules_of_the_table_hold(tmp_path: Path, properties: dict[str, str]) -> None:
    schema = Schema(
        [
            Field("key", "long", identity=Identity()),
            Field("id", "long", nullable=False),
            Field("double", "long", generated_as="id * 2"),
            Field("kind", "string", default="'new'"),
        ]
    )
    table = DeltaTable.create(
        tmp_path, schema, configuration=dict(properties) or None, constraints={"positive": "id > 0"}
    )
    source = pa.table({"id": [1, 2], "other": ["x", "y"]})
    merge = table.merge(source, "target.id = source.id").when_not_matched_insert({"id": "source.id"})
    merge.execute()
    assert content(table) == in_order([(1, 1, 2, "new"), (2, 2, 4, "new")])
    more = pa.table({"id": [2, 3]})
    merge = table.merge(more, "target.id = source.id").when_matched_update({"id": "target.id + 10"})
    merge.when_not_matched_insert_all().execute()
    assert content(table) == in_order([(1, 1, 2, "new"), (2, 12, 24, "new"), (3, 3, 6, "new")])
    before = tree(tmp_path)
    for values, error, match in [
        ({"id": "-source.id"}, InvalidArgumentError, "positive"),
        ({"kind": "'x'"}, SchemaMismatchError, "id"),
        ({"id": "source.id", "key": "7"}, SchemaMismatchError, "identity column 'key'"),
    ]:
        with pytest.raises(error, match=match):
            table.merge(pa.table({"id": [50]}), "target.id = source.id").when_not_matched_insert(
                values
            ).execute()
    assert tree(tmp_path) == before


@BOTH
def test_changed_rows_keep_their_ids_and_new_rows_get_new_ids(
    tmp_path: Path, properties: dict[str, str]
) -> None:
    """Protocol, "Row Tracking"."""
    table = created(tmp_path, [[(1, "a", 1), (2, "b", 2)], [(3, "c", 3)]], {**TRACKED, **properties})

    def ids() -> dict[int, tuple[int, int]]:
        rows = pa.table(table.to_arrow(row_ids=True)).to_pylist()
        return {row["id"]: (row["_row_id"], row["_row_commit_version"]) for row in rows}

    before = ids()
    merging(
        table, [(2, "x", 0), (7, "y", 0)]
    ).when_matched_update_all().when_not_matched_insert_all().execute()
    after = ids()
    assert after[2] == (before[2][0], table.version())
    assert (after[1], after[3]) == (before[1], before[3])
    assert after[7][1] == table.version()
    assert len({row_id for row_id, _ in after.values()}) == 4


def test_sources_of_every_kind(tmp_path: Path) -> None:
    """The source can be any kind of data. A stream is read only once, and types are converted as for other writes."""
    table = created(tmp_path, FILES, VECTORS)
    schema = pa.schema([("ID", pa.int32()), ("p", pa.dictionary(pa.int8(), pa.string())), ("n", pa.uint8())])
    batches = [
        pa.record_batch([[1], ["x"], [200]], schema=schema),
        pa.record_batch([[77], [None], [0]], schema=schema),
    ]
    reader = pa.RecordBatchReader.from_batches(schema, iter(batches))
    table.merge(
        reader, "target.id = source.id"
    ).when_matched_update_all().when_not_matched_insert_all().execute()
    assert content(table) == in_order([(1, "x", 200), *ROWS[1:], (77, None, 0)])
    floats = pa.table({"id": [float("nan"), 4.0]})
    merge = table.merge(floats, "CAST(target.id AS DOUBLE) = source.id").when_matched_delete()
    assert metrics(merge.execute())["numTargetRowsDeleted"] == 1
    with pytest.raises(InvalidArgumentError, match="__arrow_c_stream__"):
        table.merge([1], "true")  # type: ignore[list-item]


def test_nested_columns_are_merged_as_they_are(tmp_path: Path) -> None:
    kind = pa.struct([("x", pa.int64()), ("y", pa.list_(pa.string()))])
    schema = pa.schema([("id", pa.int64()), ("s", kind)])
    deltalog.write_deltalake(tmp_path, pa.table([[1, 2], [{"x": 1, "y": ["a"]}, None]], schema=schema))
    table = DeltaTable(tmp_path)
    source = pa.table([[2, 3], [{"x": 5, "y": None}, {"x": 6, "y": ["b", None]}]], schema=schema)
    merge = table.merge(source, "target.id = source.id AND source.s.x > 4")
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    found = pa.table(table.to_arrow()).sort_by("id").to_pylist()
    assert [row["s"] for row in found] == [
        {"x": 1, "y": ["a"]},
        {"x": 5, "y": None},
        {"x": 6, "y": ["b", None]},
    ]


def test_clauses_leave_columns_of_the_source_out(tmp_path: Path) -> None:
    table = created(tmp_path, FILES, VECTORS)
    merge = merging(table, [(1, "x", 9), (6, "y", 9)])
    merge.when_matched_update_all(except_cols=["p"]).when_not_matched_insert_all(except_cols=["N"]).execute()
    assert content(table) == in_order([(1, "a", 9), *ROWS[1:], (6, "y", None)])


def test_a_merge_of_an_application_is_done_once(tmp_path: Path) -> None:
    table = created(tmp_path, FILES, VECTORS)
    once = CommitProperties(app_transactions=[Transaction("app", 1)])
    for _ in range(2):
        merge = table.merge(rows_of([(50, "x", 0)]), "false", commit_properties=once)
        done = merge.when_not_matched_insert_all().execute()
    assert isinstance(done, AlreadyApplied)
    assert len(content(tmp_path)) == 6


def test_merges_of_the_same_key_conflict(tmp_path: Path) -> None:
    created(tmp_path, FILES, VECTORS)
    first, second, third, fourth = (overtaken(DeltaTable(tmp_path)) for _ in range(4))

    def upsert(table: DeltaTable, row: Row) -> None:
        merging(table, [row]).when_matched_update_all().when_not_matched_insert_all().execute()

    upsert(first, (30, "new", 0))
    # These statements use a different key, or change a different row of the same file, so they do not conflict.
    upsert(second, (31, "new", 0))
    upsert(third, (1, "changed", 0))
    files = data_files(tmp_path)
    with pytest.raises(CommitConflictError) as caught:
        upsert(fourth, (30, "twice", 0))
    assert caught.value.reason == "concurrent_append"
    assert data_files(tmp_path) == files
    # A row that had a match, and therefore was not inserted, must still exist when the MERGE commits.
    stale = overtaken(DeltaTable(tmp_path))
    DeltaTable(tmp_path).delete("id = 3")
    with pytest.raises(CommitConflictError) as caught:
        merging(stale, [(3, "x", 0), (80, "y", 0)]).when_not_matched_insert_all().execute()
    assert caught.value.reason == "concurrent_delete_read"


@pytest.mark.parametrize(
    ("build", "match"),
    [
        (lambda merge: merge, "at least one WHEN"),
        (lambda merge: merge.when_matched_delete().when_matched_update_all(), "only the last WHEN MATCHED"),
        (lambda merge: merge.when_matched_update({}), "assigns no column"),
        (lambda merge: merge.when_matched_update({"nope": "1"}), "nope"),
        (lambda merge: merge.when_matched_update({"n": "id"}), "more than one table"),
        (lambda merge: merge.when_matched_update({"n": "other.id"}), "other.id"),
        (lambda merge: merge.when_not_matched_insert({"n": "target.n"}), "target.n"),
        (lambda merge: merge.when_not_matched_by_source_delete("source.n = 1"), "source.n"),
        (lambda merge: merge.when_matched_update({"n": "1 / (source.n - 1)"}), "has no value"),
        (lambda merge: merge.when_matched_update_all(except_cols=["nope"]), "nope"),
    ],
)
def test_merges_that_make_no_sense_are_refused(
    tmp_path: Path, build: Callable[[TableMerger[Any]], TableMerger[Any]], match: str
) -> None:
    table = created(tmp_path, FILES, VECTORS)
    before = tree(tmp_path)
    with pytest.raises((InvalidArgumentError, SchemaMismatchError), match=match):
        build(merging(table, [(1, "x", 1)])).execute()
    assert tree(tmp_path) == before


def test_what_is_not_implemented_is_refused_by_name(tmp_path: Path) -> None:
    table = created(tmp_path, FILES)
    with pytest.raises(UnsupportedFeatureError, match="error_on_type_mismatch"):
        table.merge(rows_of([]), "true", error_on_type_mismatch=False)
    with pytest.raises(InvalidArgumentError, match="same alias"):
        table.merge(rows_of([]), "true", "t", "T").when_matched_delete().execute()


def test_a_merge_is_executed_once(tmp_path: Path) -> None:
    """A MERGE cannot be executed twice. A source that was already read may have no rows left, so no row would match."""
    rows = pa.table({"id": [1, 2]})
    deltalog.write_deltalake(tmp_path, rows)
    table = DeltaTable(tmp_path)
    for source in (rows, rows.to_reader(), iter(rows.to_batches())):
        merge = table.merge(source, "target.id = source.id").when_not_matched_by_source_delete()
        merge.execute()
        with pytest.raises(InvalidArgumentError, match="executed twice") as caught:
            merge.execute()
        assert "begin a new one" in str(caught.value.hint)
    failing = table.merge(rows.to_reader(), "target.id = source.missing").when_not_matched_by_source_delete()
    for words in ("missing", "executed twice"):
        with pytest.raises(InvalidArgumentError, match=words):
            failing.execute()
    assert table.count() == 2
