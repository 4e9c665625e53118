"""Changes tables that have a property but lack the table feature that it needs. Other clients may leave such tables.

PROTOCOL, "Table Features": a property has no effect without its feature.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

from deltalog import DeltaTable, write_deltalake
from deltalog.errors import InvalidArgumentError
from tests.python.alter_support import action

ROWS = pa.table({"id": pa.array([1, 2], pa.int32())})


def table(path: Path, **properties: str) -> DeltaTable:
    """Creates a table with rows, and then sets properties like a client that does not know them, without adding
    features.
    """
    write_deltalake(path, ROWS)
    log = path / "_delta_log"
    lines = [json.loads(line) for line in (log / f"{0:020}.json").read_text().splitlines()]
    (metadata,) = (line["metaData"] for line in lines if "metaData" in line)
    metadata["configuration"].update({name.replace("_", "."): value for name, value in properties.items()})
    (log / f"{1:020}.json").write_text(json.dumps({"metaData": metadata}) + "\n")
    opened = DeltaTable(path)
    assert opened.protocol().min_writer_version == 2
    return opened


def features(path: Path) -> set[str]:
    protocol: Any = DeltaTable(path).protocol()
    return set(protocol.writer_features or ())


def test_a_widened_column_has_its_feature(tmp_path: Path) -> None:
    opened = table(tmp_path, delta_enableTypeWidening="true")
    opened.alter.widen_column("id", "long")
    assert "typeWidening" in features(tmp_path)
    assert pa.table(DeltaTable(tmp_path).to_arrow())["id"].to_pylist() == [1, 2]


def test_a_new_constraint_is_in_force(tmp_path: Path) -> None:
    opened = table(tmp_path, delta_constraints_old="id < 100")
    opened.alter.add_constraint({"new": "id > 0"})
    assert deltalake.DeltaTable(tmp_path).protocol().min_writer_version >= 3
    with pytest.raises(InvalidArgumentError, match="'new'"):
        write_deltalake(tmp_path, pa.table({"id": pa.array([0], pa.int32())}), mode="append")


@pytest.mark.parametrize("feature", [None, "rowTracking", "icebergCompatV3"])
def test_row_tracking_that_begins_gives_ids_to_all_rows(tmp_path: Path, feature: str | None) -> None:
    """When row tracking takes effect, all rows get ids, even if it takes effect only because another feature requires
    it.
    """
    opened = table(tmp_path, delta_enableRowTracking="true")
    opened.alter.set_table_properties({"mine": "1"})
    assert "rowTracking" not in features(tmp_path)
    if feature:
        opened.alter.add_feature(feature)
    else:
        opened.alter.set_table_properties({"delta.enableRowTracking": "true"})
    ids = pa.table(DeltaTable(tmp_path).to_arrow(row_ids=True))["_row_id"].to_pylist()
    assert sorted(ids) == [0, 1]
    configuration = DeltaTable(tmp_path).metadata().configuration
    assert "delta.rowTracking.materializedRowIdColumnName" in configuration
    # Copied rows keep their ids in these hidden columns.
    write_deltalake(tmp_path, ROWS.slice(0, 0), mode="overwrite", predicate="id = 1")
    kept = pa.table(DeltaTable(tmp_path).to_arrow(row_ids=True)).to_pylist()
    assert [(row["id"], row["_row_id"]) for row in kept] == [(2, 1)]


def test_in_commit_timestamps_that_begin_are_noted(tmp_path: Path) -> None:
    opened = table(tmp_path, delta_enableInCommitTimestamps="true")
    version = opened.alter.set_table_properties({"delta.enableInCommitTimestamps": "true"})
    configuration = action(tmp_path, version, "metaData")["configuration"]
    assert configuration["delta.inCommitTimestampEnablementVersion"] == str(version)
    assert len(DeltaTable(tmp_path).history()) == version + 1


@pytest.mark.parametrize("by_property", [False, True])
def test_a_feature_that_requires_row_tracking_and_mapping_begins_both(
    tmp_path: Path, by_property: bool
) -> None:
    """Protocol RFC "Iceberg Compatibility V3": "Require that Column Mapping … Row Tracking"."""
    opened = table(tmp_path, delta_columnMapping_mode="name", delta_enableRowTracking="true")
    if by_property:
        opened.alter.set_table_properties({"delta.feature.icebergCompatV3": "supported"})
    else:
        opened.alter.add_feature("icebergCompatV3")
    found = json.loads(DeltaTable(tmp_path).schema().to_json())["fields"][0]["metadata"]
    assert found == {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "id"}
    assert pa.table(DeltaTable(tmp_path).to_arrow(row_ids=True))["_row_id"].to_pylist() == [0, 1]
    DeltaTable(tmp_path).alter.rename_column("id", "key")
    assert pa.table(DeltaTable(tmp_path).to_arrow())["key"].to_pylist() == [1, 2]


def test_version_3_that_begins_with_its_property_needs_files_with_ids(tmp_path: Path) -> None:
    """Iceberg Compatibility V3 lets properties take effect that had no effect before, such as column mapping. This is
    refused, because the files have no field ids.
    """
    opened = table(tmp_path, delta_columnMapping_mode="name", delta_enableRowTracking="true")
    with pytest.raises(InvalidArgumentError, match="'id' has no field id in the file, but 1"):
        opened.alter.set_table_properties({"delta.enableIcebergCompatV3": "true"})
    assert DeltaTable(tmp_path).version() == 1


@pytest.mark.parametrize("feature", ["icebergCompatV1", "icebergCompatV2"])
def test_a_feature_that_requires_the_mapping_gives_ids_to_columns(tmp_path: Path, feature: str) -> None:
    opened = table(tmp_path, delta_columnMapping_mode="name")
    opened.alter.add_feature(feature)
    opened.alter.rename_column("id", "key")
    assert pa.table(DeltaTable(tmp_path).to_arrow())["key"].to_pylist() == [1, 2]


def test_columns_are_mapped_only_on_request(tmp_path: Path) -> None:
    opened = table(tmp_path, delta_columnMapping_mode="name")
    opened.alter.set_table_properties({"mine": "1"})
    assert DeltaTable(tmp_path).protocol().min_reader_version == 1
    opened.alter.set_table_properties({"delta.columnMapping.mode": "name"})
    opened.alter.rename_column("id", "key")
    assert pa.table(DeltaTable(tmp_path).to_arrow())["key"].to_pylist() == [1, 2]
