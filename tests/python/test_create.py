"""Tables are created with rules, and replaced."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deltalog import (
    ArrayType,
    CommitConflictError,
    CommitProperties,
    DeltaTable,
    Field,
    Identity,
    InvalidArgumentError,
    Schema,
    SchemaMismatchError,
    StructType,
    TableAlreadyExistsError,
    Transaction,
    write_deltalake,
)
from tests.python.alter_support import action, refused, rows
from tests.python.interfering import Interfering, overtaken
from tests.python.place import actions, tree

INNER = StructType([Field("x", "integer", nullable=False), Field("y", "integer")])
COLUMNS = [
    Field("id", "long", identity=Identity(10, 5)),
    Field("a", "integer", nullable=False, comment="key"),
    Field("b", "integer", generated_as="a + 1"),
    Field("d", "integer", default="3"),
    Field("s", INNER),
]
EVERYTHING: dict[str, Any] = {
    "cluster_by": ["a", "s.x"],
    "constraints": {"Positive": "a > 0"},
    "name": "n",
    "description": "text",
    "configuration": {
        "delta.columnMapping.mode": "name",
        "delta.enableRowTracking": "true",
        "delta.enableInCommitTimestamps": "true",
        "delta.enableDeletionVectors": "true",
        "delta.enableChangeDataFeed": "true",
        "mine": "1",
    },
}
ROWS = pa.table(
    {
        "a": pa.array([1, 2], pa.int32()),
        "s": pa.array([{"x": 1, "y": None}, None], pa.struct([("x", pa.int32()), ("y", pa.int32())])),
    }
)


def domain(path: Path, version: int) -> dict[str, Any]:
    return action(path, version, "domainMetadata")


def test_a_table_with_every_rule(tmp_path: Path) -> None:
    """PROTOCOL, "Table Features for New and Existing Tables": the protocol of a new table lists the features that its
    rules use.
    """
    table = DeltaTable.create(tmp_path, Schema(COLUMNS), **EVERYTHING)
    assert set(table.protocol().writer_features or []) == {
        *(
            "appendOnly",
            "invariants",
            "checkConstraints",
            "changeDataFeed",
            "generatedColumns",
            "columnMapping",
        ),
        *("identityColumns", "allowColumnDefaults", "deletionVectors", "rowTracking", "domainMetadata"),
        *("inCommitTimestamp", "clustering"),
    }
    assert set(table.protocol().reader_features or []) == {"columnMapping", "deletionVectors"}
    assert table.clustering_columns() == ["a", "s.x"]
    assert table.metadata().configuration["delta.constraints.positive"] == "a > 0"
    assert [field.metadata.get("comment") for field in table.schema().fields][1] == "key"
    (info,) = [line["commitInfo"] for line in actions(tmp_path, 0) if "commitInfo" in line]
    assert (info["operation"], info["operationParameters"]["clusterBy"]) == ("CREATE TABLE", '["a","s.x"]')
    write_deltalake(tmp_path, ROWS, mode="append")
    assert rows(table) == [
        {"id": 10, "a": 1, "b": 2, "d": 3, "s": {"x": 1, "y": None}},
        {"id": 15, "a": 2, "b": 3, "d": 3, "s": None},
    ]
    for column, value in (("a", 0), ("a", None), ("b", 7)):
        bad = ROWS.slice(0, 1).to_pylist()[0] | {column: value}
        data = pa.Table.from_pylist(
            [bad], pa.schema([*ROWS.schema, ("b", pa.int32())][: 2 + (column == "b")])
        )
        with refused(tmp_path, (InvalidArgumentError, SchemaMismatchError), column):
            write_deltalake(tmp_path, data, mode="append")


def test_rows_are_written_in_the_same_commit(tmp_path: Path) -> None:
    """PROTOCOL, "Identity Columns": "the high water mark should be updated … when the write operation commits"."""
    table = DeltaTable.create(tmp_path, Schema(COLUMNS), data=ROWS, **EVERYTHING)
    assert table.version() == 0
    assert [row["id"] for row in rows(table)] == [10, 15]
    assert table.schema().fields[0].metadata["delta.identity.highWaterMark"] == 15
    write_deltalake(tmp_path, ROWS, mode="append")
    assert sorted(row["id"] for row in rows(table)) == [10, 15, 20, 25]
    without_schema = DeltaTable.create(tmp_path / "b", data=ROWS, partition_by="a")
    assert sorted(rows(without_schema), key=lambda row: row["a"]) == ROWS.to_pylist()
    assert without_schema.history()[0]["operation"] == "CREATE TABLE AS SELECT"
    with pytest.raises(InvalidArgumentError, match="needs a schema"):
        DeltaTable.create(tmp_path / "c")


def _column(field: Field) -> dict[str, Any]:
    return {"schema": Schema([Field("a", "integer"), field])}


@pytest.mark.parametrize(
    ("definition", "message"),
    [
        # "Generated Columns"
        (_column(Field("b", "long", generated_as="a + 1")), "'b' has the type long"),
        (_column(Field("b", "integer", generated_as="b + 1")), "depends on itself"),
        (_column(Field("b", "integer", generated_as="missing + 1")), "missing"),
        (
            {"schema": Schema([*COLUMNS, Field("c", "integer", generated_as="b + 1")])},
            "depends on 'b', which is also a generated column",
        ),
        (_column(Field("b", StructType([Field("x", "integer", generated_as="1")]))), "'b' contains a field"),
        # "Default Columns"
        (_column(Field("b", "integer", default="'x'")), "'b' cannot have the default value"),
        (_column(Field("b", "integer", default="a")), "'b' cannot have the default value"),
        (_column(Field("b", "integer", nullable=False, default="NULL")), "it is NULL"),
        (_column(Field("b", "integer", default="1", generated_as="a")), "which exclude each other"),
        # "Identity Columns"
        (_column(Field("b", "integer", identity=Identity())), "its type is not long"),
        (
            _column(
                Field(
                    "b",
                    "long",
                    metadata=Field("i", "long", identity=Identity()).metadata | {"delta.identity.step": 0},
                )
            ),
            "step 0",
        ),
        ({**_column(Field("b", "long", identity=Identity())), "partition_by": "b"}, "cannot be partitioned"),
        # "CHECK Constraints"
        ({"constraints": {"c": "a > missing"}}, "missing"),
        ({"constraints": {"c": "a + 1"}}, "c"),
        ({"constraints": {"c": "a > 0", "C": "a > 1"}}, "two constraints"),
        ({"constraints": {"": "a > 0"}}, "is empty"),
        # "Clustered Table"
        ({"cluster_by": ["a"], "partition_by": ["d"]}, "partitioned"),
        ({"cluster_by": ["s"]}, "whose type has no bounds"),
        ({"cluster_by": ["missing"]}, "by 'missing': it has no such column"),
        ({"cluster_by": ["a", "A"]}, "twice"),
        ({"cluster_by": ["a", "b", "d", "s.x", "s.y"]}, "at most 4"),
        ({"cluster_by": "d", "configuration": {"delta.dataSkippingStatsColumns": "a"}}, "no statistics"),
        # These properties are computed, so they cannot be set.
        ({"configuration": {"delta.columnMapping.maxColumnId": "7"}}, "follows from other properties"),
        ({"configuration": {"delta.inCommitTimestampEnablementVersion": "7"}}, "follows from other"),
    ],
)
def test_what_no_table_can_be_is_refused(tmp_path: Path, definition: dict[str, Any], message: str) -> None:
    """Invalid definitions are refused for new tables and for replacements, and nothing is written."""
    arguments = {"schema": Schema(COLUMNS), **definition}
    with refused(tmp_path, InvalidArgumentError, message):
        DeltaTable.create(tmp_path, **arguments)
    write_deltalake(tmp_path, ROWS)
    with refused(tmp_path, InvalidArgumentError, message):
        DeltaTable.create(tmp_path, **arguments, mode="overwrite")


def test_schemas_of_other_tables_lose_metadata_about_files(tmp_path: Path) -> None:
    """PROTOCOL, "Writer Requirements for Column Mapping": the ids and physical names of columns belong to one table,
    so they are not taken over with a schema.
    """
    model = DeltaTable.create(tmp_path / "a", Schema(COLUMNS), data=ROWS, **EVERYTHING)
    plain = DeltaTable.create(tmp_path / "b", model.schema())
    assert plain.schema() == Schema(COLUMNS)
    mapped = DeltaTable.create(
        tmp_path / "c", model.schema(), configuration={"delta.columnMapping.mode": "id"}
    )
    names = [
        {field.metadata["delta.columnMapping.physicalName"] for field in table.schema().fields}
        for table in (model, mapped)
    ]
    assert not names[0] & names[1]


def test_not_null_inside_of_arrays(tmp_path: Path) -> None:
    """PROTOCOL, "Array Type": "containsNull", and "Struct Field": "nullable"."""
    table = DeltaTable.create(tmp_path, Schema([Field("a", ArrayType(INNER, contains_null=False))]))
    inner = pa.struct([("x", pa.int32()), ("y", pa.int32())])
    for bad in ([None], [{"x": None, "y": 1}]):
        with refused(tmp_path, SchemaMismatchError, "a.element"):
            write_deltalake(tmp_path, pa.table({"a": pa.array([bad], pa.list_(inner))}), mode="append")
    write_deltalake(
        tmp_path, pa.table({"a": pa.array([None, [{"x": 1, "y": None}]], pa.list_(inner))}), mode="append"
    )
    assert len(rows(table)) == 2


def test_modes(tmp_path: Path) -> None:
    first = DeltaTable.create(tmp_path, Schema(COLUMNS))
    with refused(tmp_path, TableAlreadyExistsError, "already exists"):
        DeltaTable.create(tmp_path, Schema(COLUMNS))
    assert DeltaTable.create(tmp_path, Schema([Field("z", "long")]), mode="ignore").schema() == first.schema()
    with refused(tmp_path, InvalidArgumentError, "mode cannot be 'append'"):
        DeltaTable.create(tmp_path, Schema(COLUMNS), mode="append")  # type: ignore[arg-type]
    assert DeltaTable.create(tmp_path / "new", Schema(COLUMNS), mode="overwrite").version() == 0


def test_a_replacement_is_one_commit(tmp_path: Path) -> None:
    """PROTOCOL, "Change Metadata", "Supported Features": a replacement keeps the features of the old table, and
    everything else is new.
    """
    old = DeltaTable.create(tmp_path, Schema(COLUMNS), data=ROWS, **EVERYTHING)
    data = pa.table({"z": ["x", "y"]})
    new = DeltaTable.create(tmp_path, data=data, mode="overwrite", configuration={"mine": "2"})
    assert new.version() == 1
    assert rows(new) == data.to_pylist()
    assert new.metadata().id != old.metadata().id
    assert new.metadata().name is None
    kept = {key for key in old.metadata().configuration if "owTracking" in key or "DeletionVectors" in key}
    assert new.metadata().configuration == {key: old.metadata().configuration[key] for key in kept} | {
        "mine": "2"
    }
    assert new.clustering_columns() == []
    assert set(new.protocol().writer_features or []) == set(old.protocol().writer_features or [])
    info = new.history()[0]
    assert info["operation"] == "CREATE OR REPLACE TABLE AS SELECT"
    removed = [line["remove"] for line in actions(tmp_path, 1) if "remove" in line]
    assert len(removed) == 1
    assert removed[0]["dataChange"]
    # The history is kept, and row ids are not used again.
    assert pa.table(DeltaTable(tmp_path, version=0).to_arrow()).num_rows == 2
    again = DeltaTable.create(tmp_path, Schema(COLUMNS), data=ROWS, mode="overwrite", **EVERYTHING)
    assert [row["id"] for row in rows(again)] == [10, 15]
    ids = pa.table(again.to_arrow(columns=["a"], row_ids=True))["_row_id"].to_pylist()
    assert min(ids) >= 4, "ids of rows of the tables before"
    versions = again.metadata().configuration["delta.inCommitTimestampEnablementVersion"]
    assert versions == "2", "the second table had no in-commit timestamps"
    assert [entry["version"] for entry in again.history()] == [2, 1, 0]
    last = DeltaTable.create(tmp_path, Schema(COLUMNS), mode="overwrite", **EVERYTHING)
    assert last.metadata().configuration["delta.inCommitTimestampEnablementVersion"] == versions


def test_columns_of_a_replacement_have_ids_that_no_column_had(tmp_path: Path) -> None:
    """PROTOCOL, "Writer Requirements for Column Mapping"."""
    mapping = {"delta.columnMapping.mode": "name"}
    old = DeltaTable.create(tmp_path, Schema(COLUMNS), configuration=mapping)
    new = DeltaTable.create(
        tmp_path, Schema([Field("a", "integer")]), configuration=mapping, mode="overwrite"
    )
    ids = [field.metadata["delta.columnMapping.id"] for field in old.schema().fields]
    (field,) = new.schema().fields
    assert field.metadata["delta.columnMapping.id"] > max(ids)
    assert new.metadata().configuration["delta.columnMapping.maxColumnId"] == str(
        field.metadata["delta.columnMapping.id"]
    )
    plain = DeltaTable.create(
        tmp_path, Schema([Field("a", "integer")]), mode="overwrite", data=ROWS.select(["a"])
    )
    assert (plain.metadata().configuration, rows(plain)) == ({}, ROWS.select(["a"]).to_pylist())


def test_tables_that_cannot_be_replaced(tmp_path: Path) -> None:
    """PROTOCOL, "Append-only Tables", "Clustered Table"."""
    DeltaTable.create(tmp_path / "a", Schema(COLUMNS), configuration={"delta.appendOnly": "true"})
    with refused(tmp_path / "a", InvalidArgumentError, "append-only"):
        DeltaTable.create(tmp_path / "a", Schema(COLUMNS), mode="overwrite")
    DeltaTable.create(tmp_path / "b", Schema(COLUMNS), cluster_by=[])
    with refused(tmp_path / "b", InvalidArgumentError, "feature 'clustering'"):
        DeltaTable.create(tmp_path / "b", Schema(COLUMNS), mode="overwrite", partition_by="a")


def test_writers_of_the_old_table_conflict(tmp_path: Path) -> None:
    old = DeltaTable.create(tmp_path, Schema(COLUMNS), data=ROWS)

    class Late:
        """An iterator that replaces the table before it yields the first row."""

        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            def batches() -> Any:
                DeltaTable.create(tmp_path, Schema(COLUMNS), mode="overwrite")
                yield from ROWS.to_batches()

            return pa.RecordBatchReader.from_batches(ROWS.schema, batches()).__arrow_c_stream__(
                requested_schema
            )

    before = old.version()
    with pytest.raises(CommitConflictError) as failure:
        write_deltalake(tmp_path, Late(), mode="append")
    assert failure.value.reason == "metadata_changed"
    with pytest.raises(CommitConflictError):
        overtaken(old).alter.set_table_properties({"mine": "1"})
    with pytest.raises(CommitConflictError):
        DeltaTable.create(tmp_path, data=Late(), mode="overwrite")
    assert DeltaTable(tmp_path).version() == before + 2
    assert not [name for name in tree(tmp_path) if name.endswith(".tmp")]


def test_rows_that_fail_leave_the_table(tmp_path: Path) -> None:
    DeltaTable.create(tmp_path, Schema(COLUMNS), data=ROWS)
    with refused(tmp_path, InvalidArgumentError, "positive"):
        DeltaTable.create(tmp_path, data=ROWS, mode="overwrite", constraints={"positive": "a > 1"})


def test_a_repeated_creation_has_no_effect(tmp_path: Path) -> None:
    """PROTOCOL, "Transaction Identifiers"."""
    done = CommitProperties(app_transactions=[Transaction("job", 3)])
    for mode in ("error", "overwrite", "error"):
        table = DeltaTable.create(tmp_path, data=ROWS, mode=mode, commit_properties=done)
        assert (table.version(), table.transaction_version("job")) == (0, 3)


def test_a_handle_replaces_exactly_its_version(tmp_path: Path) -> None:
    """A replacement through a table object conflicts with commits after its version, so rows of other writers are not
    lost.
    """
    old = DeltaTable.create(tmp_path, Schema(COLUMNS), data=ROWS)
    write_deltalake(tmp_path, ROWS, mode="append")
    with refused(tmp_path, CommitConflictError, "version 1"):
        DeltaTable.create(old, data=ROWS, mode="overwrite")
    with refused(tmp_path, TableAlreadyExistsError, "already exists"):
        DeltaTable.create(old, data=ROWS)
    assert DeltaTable.create(old, data=ROWS, mode="ignore").version() == 1
    with refused(tmp_path, InvalidArgumentError, "storage_options"):
        DeltaTable.create(old, data=ROWS, mode="overwrite", storage_options={"a": "b"})
    old.update_incremental()
    new = DeltaTable.create(old, data=ROWS, mode="overwrite")
    assert (old.version(), new.version()) == (2, 2)
    assert rows(new) == ROWS.to_pylist()


@pytest.mark.parametrize("mode", ["error", "ignore", "overwrite"])
def test_two_creations_at_once(tmp_path: Path, mode: Any) -> None:
    """If two calls create a table at the same time, one of them does so. In the mode `ignore`, the other call opens
    the table without changing it.
    """
    data = Interfering(ROWS, lambda: DeltaTable.create(tmp_path, pa.schema([("z", pa.int64())])))
    if mode == "ignore":
        table = DeltaTable.create(tmp_path, data=data, mode=mode)
        assert [field.name for field in table.schema().fields] == ["z"]
        assert write_deltalake(tmp_path, ROWS, mode=mode) is None
    else:
        with pytest.raises(TableAlreadyExistsError if mode == "error" else CommitConflictError):
            DeltaTable.create(tmp_path, data=data, mode=mode)
    assert DeltaTable(tmp_path).version() == 0
    assert not list(tmp_path.glob("*.parquet"))


def test_two_runs_of_a_job_create_the_table_at_once(tmp_path: Path) -> None:
    """PROTOCOL, "Transaction Identifiers"."""
    done = CommitProperties(app_transactions=[Transaction("job", 3)])
    data = Interfering(ROWS, lambda: DeltaTable.create(tmp_path, data=ROWS, commit_properties=done))
    table = DeltaTable.create(tmp_path, data=data, commit_properties=done)
    assert (table.version(), table.transaction_version("job"), len(rows(table))) == (0, 3, 2)
