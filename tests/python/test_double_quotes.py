"""In Spark's SQL, a column name in double quotes is a string, so `"id" != '1'` would be true for every row.

Every call that takes SQL refuses such a string, suggests backticks, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deltalog import DeltaTable, Field, InvalidArgumentError, Schema, begin_write, write_deltalake

ROWS = pa.table({"id": ["1", "2"], "part": ["a", "b"], "n": [1, 2]})
SOURCE = pa.table({"id": ["1", "9"], "part": ["a", "b"], "n": [1, 2], "more": ["x", "y"]})
CONDITION = "\"id\" != '1'"
PARTITIONS = "\"part\" != 'a'"
SAME = "target.id = source.id"

Call = Callable[[DeltaTable], Any]


def merged(build: Callable[[Any], Any], predicate: str = SAME) -> Call:
    return lambda table: build(table.merge(SOURCE, predicate)).execute()


def read(name: str, *arguments: Any, **named: Any) -> Call:
    return lambda table: getattr(table, name)(*arguments, **named)


READS = {
    "to_arrow": read("to_arrow", predicate=CONDITION),
    "scan": read("scan", predicate=CONDITION),
    "to_pyarrow_table.filters": read("to_pyarrow_table", filters=CONDITION),
    "to_pyarrow_table.partitions": read("to_pyarrow_table", partitions=PARTITIONS),
    "to_pandas": read("to_pandas", filters=CONDITION),
    "to_pyarrow_dataset.partitions": read("to_pyarrow_dataset", PARTITIONS),
    "to_pyarrow_dataset.file_pruning_predicate": read("to_pyarrow_dataset", file_pruning_predicate=CONDITION),
    "count": read("count", CONDITION),
    "count_by_partition": read("count_by_partition", PARTITIONS),
    "min_max": read("min_max", "n", PARTITIONS),
    "files": read("files", CONDITION),
    "file_uris": read("file_uris", CONDITION),
    "partitions": read("partitions", PARTITIONS),
    "load_cdf": read("load_cdf", predicate=CONDITION),
}
STATEMENTS = {
    "delete": read("delete", CONDITION),
    "update.predicate": read("update", {"n": "0"}, predicate=CONDITION),
    "update.updates": read("update", {"id": 'upper("part")'}),
    "merge": merged(lambda merge: merge.when_matched_delete(), '"id" = source.id'),
    "merge, of the source": merged(lambda merge: merge.when_matched_delete(), 'target.id = "more"'),
    "merge, with an alias": merged(lambda merge: merge.when_matched_delete(), '"target.id" = source.id'),
    "merge, with an alias apart": merged(
        lambda merge: merge.when_matched_delete(), '"target"."id" = source.id'
    ),
    "merge, with an alias outside": merged(
        lambda merge: merge.when_matched_delete(), 'target."id" = source.id'
    ),
    "when_matched_update.predicate": merged(lambda merge: merge.when_matched_update({"n": "0"}, CONDITION)),
    "when_matched_update.updates": merged(lambda merge: merge.when_matched_update({"id": '"more"'})),
    "when_matched_update_all": merged(lambda merge: merge.when_matched_update_all(CONDITION)),
    "when_matched_delete": merged(lambda merge: merge.when_matched_delete(CONDITION)),
    "when_not_matched_insert.predicate": merged(
        lambda merge: merge.when_not_matched_insert({"id": "source.id"}, CONDITION)
    ),
    "when_not_matched_insert.updates": merged(lambda merge: merge.when_not_matched_insert({"id": '"more"'})),
    "when_not_matched_insert_all": merged(lambda merge: merge.when_not_matched_insert_all(CONDITION)),
    "when_not_matched_by_source_update.predicate": merged(
        lambda merge: merge.when_not_matched_by_source_update({"n": "0"}, CONDITION)
    ),
    "when_not_matched_by_source_update.updates": merged(
        lambda merge: merge.when_not_matched_by_source_update({"id": '"part"'})
    ),
    "when_not_matched_by_source_delete": merged(
        lambda merge: merge.when_not_matched_by_source_delete(CONDITION)
    ),
    "write_deltalake": lambda table: write_deltalake(table, ROWS, mode="overwrite", predicate=CONDITION),
    "begin_write": lambda table: begin_write(table, ROWS.schema, mode="overwrite", predicate=CONDITION),
}
MAINTENANCE = {
    "compact": lambda table: table.optimize.compact(PARTITIONS),
    "optimize": lambda table: table.optimize(PARTITIONS),
    "z_order": lambda table: table.optimize.z_order("n", PARTITIONS),
    "purge": lambda table: table.optimize.purge(PARTITIONS),
    "recompute_statistics": read("recompute_statistics", PARTITIONS),
}
DEFINITIONS = {
    "add_constraint": lambda table: table.alter.add_constraint({"some": CONDITION}),
    "create.constraints": lambda table: DeltaTable.create(
        table, ROWS.schema, mode="overwrite", constraints={"some": CONDITION}
    ),
    "create, of a generated column": lambda table: DeltaTable.create(
        table,
        Schema([Field("id", "string"), Field("upper", "string", generated_as='upper("id")')]),
        mode="overwrite",
    ),
}
CALLS: dict[str, Call] = {**READS, **STATEMENTS, **MAINTENANCE, **DEFINITIONS}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> DeltaTable:
    path = tmp_path_factory.mktemp("quotes")
    write_deltalake(path, ROWS, partition_by="part", configuration={"delta.enableChangeDataFeed": "true"})
    return DeltaTable(path)


@pytest.mark.parametrize("name", CALLS)
def test_a_column_in_double_quotes_is_refused(table: DeltaTable, name: str) -> None:
    with pytest.raises(InvalidArgumentError, match="is a string, because it is in double quotes") as caught:
        CALLS[name](table)
    assert "in backticks, `" in str(caught.value.hint)
    assert str(caught.value).endswith(str(caught.value.hint))
    assert caught.value.table == table.table_uri
    newest = DeltaTable(table.table_uri)
    assert (newest.version(), newest.count()) == (0, 2)


def test_a_constraint_that_another_writer_has_stored_in_double_quotes(tmp_path: Path) -> None:
    """`deltalake` stores constraints as the user writes them, so they may have double quotes (PROTOCOL, "CHECK
    Constraints").
    """
    rows = pa.table({"High": [1, 2]})
    write_deltalake(tmp_path, rows)
    version = DeltaTable(tmp_path).alter.add_constraint({"high": "`High` >= 0"})
    commit = tmp_path / "_delta_log" / f"{version:020}.json"
    commit.with_suffix(".crc").unlink(missing_ok=True)
    commit.write_text(commit.read_text().replace("`High`", r"\"High\""))
    table = DeltaTable(tmp_path)
    for change in (
        lambda: write_deltalake(tmp_path, rows, mode="append"),
        lambda: table.update({"High": "7"}),
        lambda: table.merge(rows, "false").when_not_matched_insert_all().execute(),
    ):
        with pytest.raises(InvalidArgumentError, match=r"constraint 'high' \(\"High\" >= 0\)") as caught:
            change()
        assert "backticks, `High`" in str(caught.value.hint)
    assert sorted(table.to_pyarrow_table()["High"].to_pylist()) == [1, 2]
    table.alter.drop_constraint("high")
    table.alter.add_constraint({"high": "`High` >= 0"})
    table.update({"High": "7"})
    assert table.to_pyarrow_table()["High"].to_pylist() == [7, 7]
