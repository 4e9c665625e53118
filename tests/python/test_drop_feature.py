"""Features are dropped from tables."""

from __future__ import annotations

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
from tests.python.interfering import overtaken
from tests.python.place import actions


def features(table: DeltaTable) -> list[str]:
    return table.protocol().writer_features or []


def test_row_tracking(tmp_path: Path) -> None:
    """PROTOCOL, "Row Tracking": after the drop, no file, property or domain has row ids."""
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
    # If row tracking is enabled again, row ids start from 0, and their columns have new names.
    table.alter.set_table_properties({"delta.enableRowTracking": "true"})
    found = pa.table(table.to_arrow(columns=["id"], row_ids=True))
    assert sorted(found["_row_id"].to_pylist()) == [0, 1, 2, 3]


def test_concurrently_added_rows_lose_their_row_ids(tmp_path: Path) -> None:
    """The drop continues if other writers add rows, and removes the row ids of their files as well."""
    table = created(tmp_path, configuration={"delta.enableRowTracking": "true"})
    write_deltalake(tmp_path, NUMBERS, mode="append")
    assert table.alter.drop_feature("rowTracking") == 2
    added = [line["add"] for line in actions(tmp_path, 2) if "add" in line]
    assert [add.get("baseRowId") for add in added] == [None] * 2
    assert len(rows(table)) == 3


def test_clustering(tmp_path: Path) -> None:
    """PROTOCOL, "Clustered Table": after the feature was dropped, the table can get partition columns."""
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
            {
                "schema": Schema([Field("a b", "long")]),
                "configuration": {"delta.columnMapping.mode": "name"},
            },
            "the column name 'a b' contains ' '",
        ),
        ("icebergCompatV1", {}, "does not support the feature 'icebergCompatV1'"),
    ],
)
def test_features_that_are_in_use(
    tmp_path: Path, feature: str, definition: dict[str, Any], message: str
) -> None:
    """A feature is not dropped while rules of the table use it. Users must remove the rules first."""
    table = DeltaTable.create(tmp_path, **{"schema": Schema([Field("a", "long")]), **definition})
    with refused(tmp_path, InvalidArgumentError, message):
        table.alter.drop_feature(feature)


def test_features_of_writers_that_are_not_in_use(tmp_path: Path) -> None:
    """Writer features can be dropped even if earlier versions of the table used them, because no trace is left in the
    newest version.
    """
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


def test_a_concurrently_added_column_is_a_conflict(tmp_path: Path) -> None:
    """A column that another writer adds during the drop is a conflict, because it may need the feature."""
    table = created(tmp_path, configuration={"delta.feature.allowColumnDefaults": "supported"})
    other = DeltaTable(tmp_path)
    other.alter.add_columns(Field("c", "long"))
    with pytest.raises(CommitConflictError):
        overtaken(table).alter.drop_feature("allowColumnDefaults")


def test_features_that_cannot_be_dropped(tmp_path: Path) -> None:
    table = created(tmp_path, pa.table({"id": [1]}))
    for feature, error, message in (
        ("frobnicate", InvalidArgumentError, "no table feature"),
        ("catalogManaged", InvalidArgumentError, "does not support"),
    ):
        with refused(tmp_path, error, message):
            table.alter.drop_feature(feature)
