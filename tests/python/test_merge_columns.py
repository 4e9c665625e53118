"""MERGE whose source has columns that the table does not have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltalog
from deltalog import CommitConflictError, DeltaTable, Field, InvalidArgumentError, SchemaMismatchError
from tests.python.interfering import Interfering
from tests.python.place import data_files, tree
from tests.python.statement_support import FEED, TRACKED, VECTORS, Row, created, metrics

FILES: list[list[Row]] = [[(1, "a", 1), (2, "a", None), (3, None, 3)], [(4, "b", 4), (None, "b", 5)]]
BOTH = pytest.mark.parametrize("properties", [{}, VECTORS], ids=["copied", "vectors"])
MAPPED = {"delta.columnMapping.mode": "name"}
WIDENED = {"delta.enableTypeWidening": "true"}


@pytest.mark.parametrize(
    "properties",
    [{}, VECTORS, {**FEED, **MAPPED}, {**VECTORS, **FEED, **TRACKED, **MAPPED}, {**WIDENED, **FEED}],
)
def test_a_merge_commits_new_columns_with_its_rows(tmp_path: Path, properties: dict[str, str]) -> None:
    """A MERGE commits new columns together with its rows. These may be nested fields, or wider types if the table
    allows them.
    """
    nested = pa.struct([pa.field("x", pa.int64())])
    schema = pa.schema(
        [
            ("id", pa.int64()),
            ("n", pa.int32()),
            ("s", nested),
            pa.field("twice", pa.int64(), metadata={"delta.generationExpression": "id * 2"}),
        ]
    )
    table = DeltaTable.create(tmp_path, schema=schema, configuration=properties)
    old = pa.table({"id": [1, 2], "n": pa.array([1, 2], pa.int32()), "s": pa.array([{"x": 1}, None], nested)})
    deltalog.write_deltalake(table, old, mode="append")
    before = table.version()
    wider = pa.struct([pa.field("x", pa.int64()), pa.field("y", pa.string())])
    number = 2**40 if properties.get("delta.enableTypeWidening") else 7
    source = pa.table(
        {
            "id": [2, 3],
            "n": pa.array([number, 3], pa.int64()),
            "s": pa.array([{"x": 2, "y": "b"}, None], wider),
            "more": [20, 30],
        }
    )
    merge = table.merge(
        source, "target.id = source.id AND coalesce(target.more, 0) < source.more", merge_schema=True
    )
    merge = merge.when_matched_update_all().when_not_matched_insert_all()
    assert metrics(merge.execute())["numTargetRowsUpdated"] == 1
    assert (table.version(), DeltaTable(tmp_path).version()) == (before + 1, before + 1)
    [info, *_] = table.history()
    assert (info["version"], info["operation"]) == (before + 1, "MERGE")
    expected = [
        {"id": 1, "n": 1, "s": {"x": 1, "y": None}, "twice": 2, "more": None},
        {"id": 2, "n": number, "s": {"x": 2, "y": "b"}, "twice": 4, "more": 20},
        {"id": 3, "n": 3, "s": None, "twice": 6, "more": 30},
    ]
    assert (
        sorted(pa.table(DeltaTable(tmp_path).to_arrow()).to_pylist(), key=lambda row: row["id"]) == expected
    )
    fields = DeltaTable(tmp_path).schema().fields
    assert [field.name for field in fields] == ["id", "n", "s", "twice", "more"]
    wanted = "long" if properties.get("delta.enableTypeWidening") else "integer"
    assert fields[1].type == Field("n", wanted).type
    if "delta.columnMapping.mode" in properties:
        ids = [field.metadata["delta.columnMapping.id"] for field in fields]
        assert len(set(ids)) == 5
        assert DeltaTable(tmp_path).metadata().configuration["delta.columnMapping.maxColumnId"] == "7"
    if "delta.enableChangeDataFeed" in properties:
        changes = pa.table(DeltaTable(tmp_path).load_cdf(before + 1, before + 1)).to_pylist()
        assert Counter((row["_change_type"], row["id"], row["more"]) for row in changes) == Counter(
            [("update_preimage", 2, None), ("update_postimage", 2, 20), ("insert", 3, 30)]
        )
    # The next MERGE finds the columns.
    merge = DeltaTable(tmp_path).merge(source, "target.id = source.id", merge_schema=True)
    merge.when_matched_update({"more": "source.more + target.more"}).execute()
    assert sorted(filter(None, pa.table(DeltaTable(tmp_path).to_arrow())["more"].to_pylist())) == [40, 60]


@BOTH
@pytest.mark.parametrize(
    ("source", "error"),
    [
        ({"id": [1, 1], "more": [1, 2]}, "MERGE_CARDINALITY_VIOLATION"),
        ({"id": [1, -9], "more": [1, 2]}, "positive"),
        ({"id": [1], "ID2": [1], "k": ["a"], "K": ["b"]}, "K"),
    ],
)
def test_a_merge_that_fails_adds_no_column(
    tmp_path: Path, properties: dict[str, str], source: dict[str, list[Any]], error: str
) -> None:
    table = created(tmp_path, FILES, properties)
    table.alter.add_constraint({"positive": "coalesce(id, 0) > -5"})
    before = tree(tmp_path)
    merge = DeltaTable(tmp_path).merge(pa.table(source), "target.id = source.id", merge_schema=True)
    with pytest.raises((InvalidArgumentError, SchemaMismatchError), match=error):
        merge.when_matched_update_all().when_not_matched_insert_all().execute()
    assert tree(tmp_path) == before


CHANGES: dict[str, Callable[[DeltaTable], object]] = {
    "comment": lambda table: table.alter.set_column_metadata("id", {"comment": "the key"}),
    "column": lambda table: table.alter.add_columns(Field("more", "string")),
    "property": lambda table: table.alter.set_table_properties({"mine": "1"}),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_concurrent_change_of_the_metadata_is_a_conflict(tmp_path: Path, change: str) -> None:
    """If another writer changes the metadata during a MERGE that adds columns, there is a conflict, because the new
    columns were added to the earlier metadata.
    """
    table = created(tmp_path, FILES, {})
    source = Interfering(pa.table({"id": [1], "more": [1]}), lambda: CHANGES[change](DeltaTable(tmp_path)))
    merge = table.merge(source, "target.id = source.id", merge_schema=True)
    with pytest.raises(CommitConflictError, match="metadata"):
        merge.when_matched_update_all().execute()
    found = DeltaTable(tmp_path)
    assert found.history(1)[0]["operation"] != "MERGE"
    assert data_files(tmp_path) == sorted(pa.table(found.files(columns=["path"]))["path"].to_pylist())
