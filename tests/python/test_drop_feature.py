"""Features that a table supports no longer."""

from __future__ import annotations

import os
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deltalog import (
    CommitConflictError,
    DeltaTable,
    Field,
    Identity,
    InvalidArgumentError,
    Schema,
    write_deltalake,
)
from tests.python.alter_support import NUMBERS, action, created, refused, rows
from tests.python.place import actions, commit_file


def features(table: DeltaTable) -> list[str]:
    return table.protocol().writer_features or []


def expire(path: Path, before: int) -> None:
    """Makes the commits before a version a hundred days old, and cleans up."""
    time = datetime.now(tz=timezone.utc).timestamp() - 100 * 24 * 3600
    for version in range(before + 1):
        os.utime(commit_file(path, version), (time, time))
    assert DeltaTable(path).cleanup_metadata()


def test_row_tracking(tmp_path: Path) -> None:
    """PROTOCOL, "Row Tracking": no file, no property and no domain is left."""
    table = created(tmp_path, configuration={"delta.enableRowTracking": "true"})
    write_deltalake(tmp_path, NUMBERS, mode="append")
    table.update_incremental()
    with refused(tmp_path, InvalidArgumentError, "the feature 'rowTracking' needs it"):
        table.alter.drop_feature("domainMetadata")
    assert table.alter.drop_feature("rowTracking") == 2
    added = [line["add"] for line in actions(tmp_path, 2) if "add" in line]
    assert [(add.get("baseRowId"), add.get("defaultRowCommitVersion")) for add in added] == [(None, None)] * 2
    assert not any(add["dataChange"] for add in added)
    domain = action(tmp_path, 2, "domainMetadata")
    assert (domain["domain"], domain["removed"]) == ("delta.rowTracking", True)
    assert (table.metadata().configuration, table.domain_metadata()) == ({}, {})
    assert len(rows(table)) == 3
    assert table.alter.drop_feature("domainMetadata") == 3
    assert (table.protocol().min_writer_version, table.protocol().writer_features) == (2, None)
    write_deltalake(tmp_path, NUMBERS, mode="append")
    assert "baseRowId" not in action(tmp_path, 4, "add")
    table.update_incremental()
    assert not table.verify().differences
    # Ids begin anew, with other names.
    table.alter.set_table_properties({"delta.enableRowTracking": "true"})
    found = pa.table(table.to_arrow(columns=["id"], row_ids=True))
    assert sorted(found["_row_id"].to_pylist()) == [0, 1, 2, 3]


def test_rows_that_are_added_meanwhile_have_row_ids(tmp_path: Path) -> None:
    table = created(tmp_path, configuration={"delta.enableRowTracking": "true"})
    write_deltalake(tmp_path, NUMBERS, mode="append")
    with pytest.raises(CommitConflictError):
        table.alter.drop_feature("rowTracking")


def test_clustering(tmp_path: Path) -> None:
    """PROTOCOL, "Clustered Table": afterwards the table can have partition columns."""
    table = created(tmp_path)
    table.alter.cluster_by("id")
    assert table.alter.drop_feature("clustering") == 2
    assert (table.clustering_columns(), "clustering" in features(table)) == ([], False)
    assert action(tmp_path, 2, "domainMetadata")["removed"]
    replaced = DeltaTable.create(tmp_path, table.schema(), mode="overwrite", partition_by="name")
    assert replaced.metadata().partition_columns == ["name"]


@pytest.mark.parametrize(
    ("feature", "definition", "message"),
    [
        ("appendOnly", {"configuration": {"delta.appendOnly": "true"}}, "is append-only"),
        ("invariants", {"schema": Schema([Field("a", "long", nullable=False)])}, "must not be NULL"),
        ("changeDataFeed", {"configuration": {"delta.enableChangeDataFeed": "true"}}, "change data feed"),
        ("checkConstraints", {"constraints": {"c": "a > 0"}}, "has constraints"),
        ("allowColumnDefaults", {"schema": Schema([Field("a", "long", default="1")])}, "default values"),
        (
            "generatedColumns",
            {"schema": Schema([Field("a", "long"), Field("b", "long", generated_as="a")])},
            "generated columns",
        ),
        (
            "identityColumns",
            {"schema": Schema([Field("a", "long", identity=Identity())])},
            "identity columns",
        ),
        ("timestampNtz", {"schema": Schema([Field("a", "timestamp_ntz")])}, "type timestamp_ntz"),
        (
            "columnMapping",
            {"configuration": {"delta.columnMapping.mode": "name"}},
            "columns of the table are mapped",
        ),
        ("icebergCompatV1", {}, "does not support the feature 'icebergCompatV1'"),
    ],
)
def test_features_that_are_in_use(
    tmp_path: Path, feature: str, definition: dict[str, Any], message: str
) -> None:
    """What users have said about their data they take back themselves."""
    table = DeltaTable.create(tmp_path, **{"schema": Schema([Field("a", "long")]), **definition})
    with refused(tmp_path, InvalidArgumentError, message):
        table.alter.drop_feature(feature)


def test_features_of_writers_that_are_not_in_use(tmp_path: Path) -> None:
    """A property or a rule that is gone leaves nothing, whatever earlier versions have."""
    columns = Schema([Field("a", "long", default="1"), Field("b", "long")])
    table = DeltaTable.create(
        tmp_path,
        columns,
        constraints={"c": "a > 0"},
        configuration={"delta.enableChangeDataFeed": "true", "delta.appendOnly": "true"},
    )
    table.alter.drop_column_default("a")
    table.alter.drop_constraint("c")
    table.alter.unset_table_properties(["delta.enableChangeDataFeed", "delta.appendOnly"])
    for feature in ("allowColumnDefaults", "checkConstraints", "changeDataFeed", "appendOnly", "invariants"):
        table.alter.drop_feature(feature)
        assert feature not in features(table)
    assert features(table) == []
    write_deltalake(tmp_path, pa.table({"a": [-1]}), mode="append")
    table.update_incremental()
    assert table.count() == 1


def test_a_feature_of_readers_is_kept_while_a_version_needs_it(tmp_path: Path) -> None:
    """PROTOCOL, "Timestamp without timezone": each version that can be read must be readable without the feature."""
    table = DeltaTable.create(tmp_path, Schema([Field("a", "timestamp_ntz"), Field("b", "long")]))
    table = DeltaTable.create(tmp_path, Schema([Field("b", "long")]), mode="overwrite")
    write_deltalake(tmp_path, pa.table({"b": [1]}), mode="append")
    table.update_incremental()
    with refused(tmp_path, InvalidArgumentError, "version 0 of the table, which can still be read"):
        table.alter.drop_feature("timestampNtz")
    table.create_checkpoint()
    expire(tmp_path, 2)
    assert table.alter.drop_feature("timestampNtz") == 3
    assert (table.protocol().min_reader_version, table.protocol().min_writer_version) == (1, 2)
    assert table.count() == 1


def test_v2_checkpoints(tmp_path: Path) -> None:
    """PROTOCOL, "V2 Spec": no checkpoint of that form is left."""
    table = created(tmp_path, configuration={"delta.checkpointPolicy": "v2"})
    table.create_checkpoint()
    # Waiting is of no use before the property is unset, in a version of its own.
    with refused(tmp_path, InvalidArgumentError, "delta.checkpointPolicy.*unset the property first"):
        table.alter.drop_feature("v2Checkpoint")
    table.alter.set_table_properties({"delta.checkpointPolicy": "classic"})
    with refused(tmp_path, InvalidArgumentError, "version 0 of the table, which can still be read"):
        table.alter.drop_feature("v2Checkpoint")
    table.create_checkpoint()
    expire(tmp_path, 1)
    assert table.alter.drop_feature("v2Checkpoint") == 2
    assert table.protocol().min_reader_version == 1
    assert table.metadata().configuration == {}


def test_deletion_vectors(tmp_path: Path) -> None:
    """PROTOCOL, "Deletion Vectors": neither files nor tombstones have one."""
    tombstones = "delta.deletedFileRetentionDuration"
    properties = {"delta.enableDeletionVectors": "true", tombstones: "interval 0 days"}
    table = created(tmp_path, configuration=properties)
    write_deltalake(
        tmp_path, pa.table({"id": pa.array([1], pa.int64())}), mode="overwrite", predicate="id = 1"
    )
    table.update_incremental()
    with refused(tmp_path, InvalidArgumentError, "delta.enableDeletionVectors.*unset the property first"):
        table.alter.drop_feature("deletionVectors")
    table.alter.unset_table_properties(["delta.enableDeletionVectors"])
    with refused(tmp_path, InvalidArgumentError, "files of the table have deletion vectors"):
        table.alter.drop_feature("deletionVectors")
    write_deltalake(tmp_path, NUMBERS, mode="overwrite")
    table.update_incremental()
    # The newest version has tombstones with vectors, so its checkpoint may have them too.
    with refused(tmp_path, InvalidArgumentError, "version 3 of the table.*commit another version"):
        table.alter.drop_feature("deletionVectors")
    write_deltalake(tmp_path, NUMBERS, mode="append")
    table.update_incremental()
    with refused(tmp_path, InvalidArgumentError, f"version 3 of the table.*{tombstones}.*write a checkpoint"):
        table.alter.drop_feature("deletionVectors")
    table.create_checkpoint()
    expire(tmp_path, 4)
    assert table.alter.drop_feature("deletionVectors") == 5
    assert (table.protocol().min_reader_version, table.protocol().min_writer_version) == (1, 2)
    assert [row["id"] for row in rows(table)] == [3, 3]


def test_type_widening(tmp_path: Path) -> None:
    """PROTOCOL, "Type Widening": no change of a type is left, and none can come."""
    data = pa.table({"id": pa.array([1], pa.int32())})
    table = created(tmp_path, data, configuration={"delta.enableTypeWidening": "true"})
    table.alter.widen_column("id", "long")
    with refused(tmp_path, InvalidArgumentError, "delta.enableTypeWidening.*unset the property first"):
        table.alter.drop_feature("typeWidening")
    table.alter.set_table_properties({"delta.enableTypeWidening": "false"})
    with refused(tmp_path, InvalidArgumentError, "overwrite the schema together with all rows first"):
        table.alter.drop_feature("typeWidening")
    write_deltalake(tmp_path, NUMBERS, mode="overwrite", schema_mode="overwrite")
    table.update_incremental()
    with refused(tmp_path, InvalidArgumentError, "version 2 of the table.*write a checkpoint"):
        table.alter.drop_feature("typeWidening")
    table.create_checkpoint()
    expire(tmp_path, 3)
    assert table.alter.drop_feature("typeWidening") == 4
    assert (table.protocol().min_reader_version, table.protocol().min_writer_version) == (1, 2)
    assert (table.metadata().configuration, rows(table)) == ({}, [{"id": 3}])


def test_a_column_that_comes_meanwhile_is_a_conflict(tmp_path: Path) -> None:
    """A new nullable column concerns no other writer, but it may need the feature."""
    table = created(tmp_path, configuration={"delta.feature.allowColumnDefaults": "supported"})
    other = DeltaTable(tmp_path)
    other.alter.add_columns(Field("c", "long"))
    with pytest.raises(CommitConflictError):
        table.alter.drop_feature("allowColumnDefaults")


def test_features_that_cannot_be_dropped(tmp_path: Path) -> None:
    table = created(tmp_path, pa.table({"id": [1]}))
    for feature, error, message in (
        ("frobnicate", InvalidArgumentError, "no table feature"),
        ("catalogManaged", InvalidArgumentError, "does not support"),
    ):
        with refused(tmp_path, error, message):
            table.alter.drop_feature(feature)
