"""Changes of a table's properties, name, description and features (PROTOCOL, "Change Metadata", "Protocol Evolution",
"Table Features").
"""

from __future__ import annotations

import json
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest

from deltalog import CommitProperties, DeltaTable, write_deltalake
from deltalog.errors import CommitConflictError, InvalidArgumentError, UnsupportedFeatureError
from tests.python.alter_support import action, created, refused, rows
from tests.python.interfering import overtaken


def test_properties_are_set_and_removed(tmp_path: Path) -> None:
    table = created(tmp_path, configuration={"mine": "1"})
    version = table.alter.set_table_properties(
        {"delta.appendOnly": "true", "yours": "2"},
        commit_properties=CommitProperties(custom_metadata={"why": "test"}),
    )
    assert version == table.version() == 1
    assert table.metadata().configuration == {"delta.appendOnly": "true", "mine": "1", "yours": "2"}
    info = action(tmp_path, 1, "commitInfo")
    assert (info["operation"], info["why"]) == ("SET TBLPROPERTIES", "test")
    assert json.loads(info["operationParameters"]["properties"]) == {"delta.appendOnly": "true", "yours": "2"}
    # The commit counts as a blind append, as in the JVM connector, because no rows were read or removed.
    assert info["isBlindAppend"] is True
    assert table.alter.unset_table_properties(["mine", "delta.appendOnly"]) == 2
    assert table.metadata().configuration == {"yours": "2"}
    info = action(tmp_path, 2, "commitInfo")
    assert info["operation"] == "UNSET TBLPROPERTIES"
    assert info["operationParameters"] == {"properties": '["mine","delta.appendOnly"]', "ifExists": False}
    with refused(tmp_path, InvalidArgumentError, "'mine' is not set"):
        table.alter.unset_table_properties(["mine"])
    # An operation that changes nothing commits nothing.
    assert table.alter.unset_table_properties(["mine"], raise_if_not_exists=False) == 2
    assert table.alter.set_table_properties({"yours": "2"}) == 2
    assert deltalake.DeltaTable(tmp_path).metadata().configuration == {"yours": "2"}


@pytest.mark.parametrize(
    ("name", "value", "match"),
    [
        ("delta.appendonly", "true", "'delta.appendOnly'"),
        ("delta.enableDeletionVector", "true", "'delta.enableDeletionVectors'"),
        ("delta.checkpointInterval", "0", "at least 1"),
        ("delta.columnMapping.maxColumnId", "7", "follows from other properties"),
        ("delta.constraints.c", "id > 0", "add or drop the constraint"),
        ("delta.inCommitTimestampEnablementVersion", "0", "follows from other properties"),
        ("delta.minWriterVersion", "7", "cannot be set"),
        ("delta.columnMapping.mode", "id", "from none to id"),
    ],
)
def test_properties_that_cannot_be_set_are_refused(tmp_path: Path, name: str, value: str, match: str) -> None:
    table = created(tmp_path)
    with refused(tmp_path, InvalidArgumentError, match):
        table.alter.set_table_properties({name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("delta.feature.geospatial", "supported"),
        ("delta.universalFormat.enabledFormats", "iceberg"),
        ("delta.feature.catalogManaged", "supported"),
    ],
)
def test_properties_that_need_what_cannot_be_written_are_refused(
    tmp_path: Path, name: str, value: str
) -> None:
    table = created(tmp_path)
    with refused(tmp_path, UnsupportedFeatureError, "not implemented"):
        table.alter.set_table_properties({name: value})


def test_name_and_description(tmp_path: Path) -> None:
    table = created(tmp_path)
    assert table.alter.set_table_name("flights") == 1
    assert table.alter.set_table_description("of last year") == 2
    for found in (table.metadata(), deltalake.DeltaTable(tmp_path).metadata()):
        assert (found.name, found.description) == ("flights", "of last year")


@pytest.mark.parametrize(
    ("properties", "reader", "writer", "features"),
    [
        ({"delta.enableDeletionVectors": "true"}, 3, 7, {"deletionVectors"}),
        ({"delta.enableChangeDataFeed": "true"}, 1, 7, {"changeDataFeed"}),
        ({"delta.checkpointPolicy": "v2"}, 3, 7, {"v2Checkpoint"}),
        ({"delta.enableRowTracking": "true"}, 1, 7, {"rowTracking", "domainMetadata"}),
        ({"delta.enableTypeWidening": "true"}, 3, 7, {"typeWidening"}),
        ({"delta.enableMaterializePartitionColumnsFeature": "true"}, 1, 7, {"materializePartitionColumns"}),
        ({"delta.feature.timestampNtz": "supported"}, 3, 7, {"timestampNtz"}),
        ({"delta.appendOnly": "true"}, 1, 2, set()),
    ],
)
def test_a_property_adds_the_feature_that_it_needs(
    tmp_path: Path, properties: dict[str, str], reader: int, writer: int, features: set[str]
) -> None:
    table = created(tmp_path)
    before = rows(table)
    table.alter.set_table_properties(properties)
    protocol = table.protocol()
    assert (protocol.min_reader_version, protocol.min_writer_version) == (reader, writer)
    assert set(protocol.writer_features or []) == (
        features | {"appendOnly", "invariants"} if features else set()
    )
    assert not any(key.startswith("delta.feature.") for key in table.metadata().configuration)
    write_deltalake(tmp_path, pa.table({"id": pa.array([3], pa.int64())}), mode="append")
    assert len(rows(table)) == len(before) + 1


def test_features_are_added_and_never_removed(tmp_path: Path) -> None:
    """PROTOCOL, "Supported Features": when the first feature is added, the lists also get the features that writer
    version 2 implies.
    """
    table = created(tmp_path)
    assert table.alter.add_feature("rowTracking") == 1
    assert table.protocol().writer_features == ["appendOnly", "invariants", "rowTracking", "domainMetadata"]
    assert table.alter.add_feature(["DELETIONVECTORS", "checkConstraints"]) == 2
    protocol = table.protocol()
    assert protocol.reader_features == ["deletionVectors"]
    assert set(protocol.writer_features or []) >= {"rowTracking", "deletionVectors", "checkConstraints"}
    operation = action(tmp_path, 2, "commitInfo")
    assert operation["operation"] == "UPGRADE PROTOCOL"
    assert json.loads(operation["operationParameters"]["newProtocol"]) == {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": protocol.reader_features,
        "writerFeatures": protocol.writer_features,
    }
    assert table.alter.add_feature("rowTracking") == 2
    with refused(tmp_path, InvalidArgumentError, "no table feature 'frobnicate'"):
        table.alter.add_feature("frobnicate")
    with refused(tmp_path, UnsupportedFeatureError, "geospatial"):
        table.alter.add_feature("geospatial")


def test_column_mapping_begins_with_the_names_of_the_files(tmp_path: Path) -> None:
    """PROTOCOL, "Writer Requirements for Column Mapping"."""
    inner = pa.struct([("x", pa.int64()), ("y", pa.list_(pa.struct([("z", pa.string())])))])
    data = pa.table(
        {
            "p": ["a", "b"],
            "s": pa.array([{"x": 1, "y": [{"z": "q"}]}, None], inner),
            "m": pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64())),
        }
    )
    table = created(tmp_path, data, partition_by=["p"])
    table.alter.set_table_properties({"delta.columnMapping.mode": "name"})
    assert table.metadata().configuration["delta.columnMapping.maxColumnId"] == "6"
    ids: list[int] = []
    stack = json.loads(table.schema().to_json())["fields"]
    while stack:
        field = stack.pop(0)
        ids.append(field["metadata"]["delta.columnMapping.id"])
        assert field["metadata"]["delta.columnMapping.physicalName"] == field["name"]
        kind = field["type"]
        if isinstance(kind, dict):
            kind = kind.get("elementType", kind)
        if isinstance(kind, dict):
            stack.extend(kind.get("fields", []))
    assert sorted(ids) == [1, 2, 3, 4, 5, 6]
    write_deltalake(tmp_path, data, mode="append")
    found = pa.table(DeltaTable(tmp_path).to_arrow()).sort_by("p").to_pylist()
    assert [row["p"] for row in found] == ["a", "a", "b", "b"]
    assert found[0] == found[1] == {"p": "a", "s": {"x": 1, "y": [{"z": "q"}]}, "m": [("k", 1)]}
    with refused(tmp_path, InvalidArgumentError, "from name to none"):
        table.alter.set_table_properties({"delta.columnMapping.mode": "none"})
    with refused(tmp_path, InvalidArgumentError, "from name to none"):
        table.alter.unset_table_properties(["delta.columnMapping.mode"])


def test_rows_get_ids_when_row_tracking_is_enabled(tmp_path: Path) -> None:
    """PROTOCOL, "Row Tracking": only then "Row IDs … can be relied upon to be present in the table for all rows"."""
    table = created(tmp_path)
    write_deltalake(tmp_path, pa.table({"id": pa.array([3, 4, 5], pa.int64())}), mode="append")
    table.update_incremental()
    table.alter.set_table_properties({"delta.enableRowTracking": "true"})
    found = pa.table(table.to_arrow(row_ids=True))
    assert sorted(found["_row_id"].to_pylist()) == [0, 1, 2, 3, 4]
    assert set(found["_row_commit_version"].to_pylist()) == {2}
    assert all(line["add"]["dataChange"] is False for line in _adds(tmp_path, 2))
    assert json.loads(action(tmp_path, 2, "domainMetadata")["configuration"]) == {"rowIdHighWaterMark": 4}
    write_deltalake(tmp_path, pa.table({"id": pa.array([6], pa.int64())}), mode="append")
    after = pa.table(DeltaTable(tmp_path).to_arrow(row_ids=True))
    assert sorted(after["_row_id"].to_pylist()) == [0, 1, 2, 3, 4, 5]
    assert DeltaTable(tmp_path).verify().ok
    assert DeltaTable(tmp_path).count() == 6
    # All rows have ids already, so enabling row tracking again does nothing.
    table.update_incremental()
    table.alter.set_table_properties({"delta.enableRowTracking": "false"})
    table.alter.set_table_properties({"delta.enableRowTracking": "true"})
    assert _adds(tmp_path, 5) == []


def _adds(path: Path, version: int) -> list[dict[str, dict[str, object]]]:
    lines = (path / "_delta_log" / f"{version:020}.json").read_text().splitlines()
    return [line for line in map(json.loads, lines) if "add" in line]


def test_row_tracking_conflicts_with_rows_that_would_get_no_ids(tmp_path: Path) -> None:
    table = overtaken(created(tmp_path))
    write_deltalake(tmp_path, pa.table({"id": pa.array([3], pa.int64())}), mode="append")
    with refused(tmp_path, CommitConflictError, "version 1"):
        table.alter.set_table_properties({"delta.enableRowTracking": "true"})


def test_in_commit_timestamps_begin_with_the_commit_that_enables_them(tmp_path: Path) -> None:
    """PROTOCOL, "Writer Requirements for In-Commit Timestamps", items 4 and 5. These requirements also hold for a
    commit that moves to a later version because another writer was faster.
    """
    table = created(tmp_path)
    append = pa.table({"id": pa.array([3], pa.int64())})
    write_deltalake(tmp_path, append, mode="append")
    assert table.alter.set_table_properties({"delta.enableInCommitTimestamps": "true"}) == 2
    info = action(tmp_path, 2, "commitInfo")
    configuration = table.metadata().configuration
    assert configuration["delta.inCommitTimestampEnablementVersion"] == "2"
    assert configuration["delta.inCommitTimestampEnablementTimestamp"] == str(info["inCommitTimestamp"])
    written = (tmp_path / "_delta_log" / f"{1:020}.json").stat().st_mtime_ns // 1_000_000
    assert info["inCommitTimestamp"] > written
    write_deltalake(tmp_path, append, mode="append")
    times = [entry["timestamp"] for entry in DeltaTable(tmp_path).history()]
    assert times == sorted(set(times), reverse=True)
    assert len(times) == 4
    table.update_incremental()
    table.alter.set_table_properties({"delta.enableInCommitTimestamps": "false"})
    assert not any("Enablement" in key for key in table.metadata().configuration)
    table.alter.set_table_properties({"delta.enableInCommitTimestamps": "true"})
    assert table.metadata().configuration["delta.inCommitTimestampEnablementVersion"] == "5"
    assert table.version() == 5


def test_changes_are_rebased_over_rows_but_not_over_changes(tmp_path: Path) -> None:
    table, stale = created(tmp_path), DeltaTable(tmp_path)
    write_deltalake(tmp_path, pa.table({"id": pa.array([3], pa.int64())}), mode="append")
    assert table.alter.set_table_properties({"mine": "1"}) == 2
    with refused(tmp_path, CommitConflictError, "version 2"):
        overtaken(DeltaTable(tmp_path, version=0)).alter.set_table_properties({"yours": "1"})
    assert stale.alter.set_table_properties({"yours": "1"}) == 3
    assert stale.metadata().configuration == {"mine": "1", "yours": "1"}


def test_columns_reserved_by_the_change_data_feed(tmp_path: Path) -> None:
    table = created(tmp_path, pa.table({"_change_type": ["x"]}))
    with refused(tmp_path, Exception, "reserved for the change data feed"):
        table.alter.set_table_properties({"delta.enableChangeDataFeed": "true"})


def test_features_without_traces_are_dropped(tmp_path: Path) -> None:
    """After the features were dropped, the protocol has the lowest versions that support exactly the remaining
    features.
    """
    table = created(tmp_path)
    table.alter.add_feature("vacuumProtocolCheck")
    table.alter.add_constraint({"c": "id > 0"})
    table.alter.set_table_properties({"delta.enableInCommitTimestamps": "true"})
    with refused(tmp_path, InvalidArgumentError, "has constraints"):
        table.alter.drop_feature("checkConstraints")
    assert table.alter.drop_feature("vacuumprotocolcheck") == 4
    assert (table.protocol().min_reader_version, table.protocol().reader_features) == (1, None)
    assert action(tmp_path, 4, "commitInfo")["operationParameters"] == {
        "featureName": "vacuumProtocolCheck",
        "truncateHistory": False,
    }
    assert table.alter.drop_feature("inCommitTimestamp") == 5
    assert "inCommitTimestamp" not in action(tmp_path, 5, "commitInfo")
    assert table.metadata().configuration == {"delta.constraints.c": "id > 0"}
    # Writer version 3 implies CHECK constraints.
    assert (table.protocol().min_writer_version, table.protocol().writer_features) == (3, None)
    table.alter.drop_constraint("c")
    assert table.alter.drop_feature("checkConstraints") == 7
    assert (table.protocol().min_reader_version, table.protocol().min_writer_version) == (1, 2)
    assert len(table.history()) == 8
    assert deltalake.DeltaTable(tmp_path).protocol().min_writer_version == 2
    write_deltalake(tmp_path, pa.table({"id": pa.array([-1], pa.int64())}), mode="append")
    assert DeltaTable(tmp_path).count() == 3
