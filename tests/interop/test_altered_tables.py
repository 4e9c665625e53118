"""The JVM connector and `deltalake` read tables that deltalog has altered, and continue to write to them.

The connector makes the same changes to its own table, and the history and the metadata must be the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

from deltalog import DeltaTable, Field, write_deltalake
from tests.golden.canonical import rows
from tests.interop.conftest import Jvm
from tests.python.place import actions

MAPPED = "'delta.columnMapping.mode' = 'name'"
DATA = pa.table(
    {
        "id": pa.array([1, 2], pa.int32()),
        "name": ["a", "b"],
        "old": [1.5, 2.5],
        "s": pa.array([{"x": 1}, {"x": 2}], pa.struct([("x", pa.int32())])),
    }
)
COLUMNS = "id INT, name STRING, old DOUBLE, s STRUCT<x: INT>"

# Each change as SQL for the connector, and as a function for deltalog.
CHANGES: list[tuple[str, Callable[[DeltaTable], int]]] = [
    (
        "SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true', 'mine' = '1')",
        lambda t: t.alter.set_table_properties({"delta.enableDeletionVectors": "true", "mine": "1"}),
    ),
    # The connector ignores UNSET of properties that are not set, even without IF EXISTS.
    (
        "UNSET TBLPROPERTIES ('mine')",
        lambda t: t.alter.unset_table_properties(["mine"], raise_if_not_exists=False),
    ),
    (
        f"SET TBLPROPERTIES ({MAPPED})",
        lambda t: t.alter.set_table_properties({"delta.columnMapping.mode": "name"}),
    ),
    (
        "ADD COLUMNS (note STRING COMMENT 'new' AFTER id)",
        lambda t: t.alter.add_columns(Field("note", "string", metadata={"comment": "new"}), after="id"),
    ),
    (
        "ADD COLUMNS (s.y DATE FIRST)",
        lambda t: t.alter.add_columns(Field("y", "date"), parent="s", first=True),
    ),
    ("RENAME COLUMN s.x TO z", lambda t: t.alter.rename_column("s.x", "z")),
    ("RENAME COLUMN name TO `a name`", lambda t: t.alter.rename_column("name", "a name")),
    ("DROP COLUMNS (old)", lambda t: t.alter.drop_columns("old")),
    ("ALTER COLUMN id AFTER note", lambda t: t.alter.move_column("id", after="note")),
    ("ALTER COLUMN note COMMENT 'text'", lambda t: t.alter.set_column_metadata("note", {"comment": "text"})),
    ("ADD CONSTRAINT Positive CHECK (id > 0)", lambda t: t.alter.add_constraint({"Positive": "id > 0"})),
    ("ADD CONSTRAINT other CHECK (id < 100)", lambda t: t.alter.add_constraint({"other": "id < 100"})),
    ("DROP CONSTRAINT other", lambda t: t.alter.drop_constraint("other")),
    (
        "SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')",
        lambda t: t.alter.set_table_properties({"delta.enableTypeWidening": "true"}),
    ),
    ("ALTER COLUMN s.z TYPE BIGINT", lambda t: t.alter.widen_column("s.z", "long")),
    ("ALTER COLUMN id SET DEFAULT 6", lambda t: t.alter.set_column_default("id", "6")),
    ("ALTER COLUMN id DROP DEFAULT", lambda t: t.alter.drop_column_default("id")),
    ("CLUSTER BY (s.z, id)", lambda t: t.alter.cluster_by(["s.z", "id"])),
    ("CLUSTER BY NONE", lambda t: t.alter.cluster_by(None)),
]


def described(path: Path, version: int) -> dict[str, Any]:
    """Returns the part of a commit that does not depend on the writer."""
    lines = actions(path, version)
    (info,) = [line["commitInfo"] for line in lines if "commitInfo" in line]
    found: dict[str, Any] = {"operation": info["operation"], "parameters": info["operationParameters"]}
    for line in lines:
        if "metaData" in line:
            found["schema"] = json.loads(line["metaData"]["schemaString"])
            found["configuration"] = line["metaData"]["configuration"]
    # The physical names of new columns are random.
    text = re.sub(r"col-[0-9a-f]{8}-[0-9a-f-]{27}", "col", json.dumps(found))
    # The keys of nested JSON have no fixed order.
    without_order: dict[str, Any] = json.loads(text)
    for name, value in without_order["parameters"].items():
        if isinstance(value, str) and value[:1] in ("{", "["):
            without_order["parameters"][name] = json.loads(value)
    return without_order


def features(path: Path) -> set[str]:
    """Returns the writer features that the newest protocol lists."""
    return set(DeltaTable(path).protocol().writer_features or [])


def test_changes_are_recorded_as_the_connector_records_them(jvm: Jvm, tmp_path: Path) -> None:
    mine, theirs = tmp_path / "mine", tmp_path / "theirs"
    # If the table lacks the feature, the connector refuses default values, and deltalog adds the feature.
    feature = {"delta.feature.allowColumnDefaults": "supported"}
    write_deltalake(mine, DATA, configuration=feature)
    properties = "TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')"
    jvm.run(f"CREATE TABLE delta.`{theirs}` ({COLUMNS}) USING delta {properties}")
    values = "(1, 'a', 1.5D, struct(1)), (2, 'b', 2.5D, struct(2))"
    jvm.run(f"INSERT INTO delta.`{theirs}` VALUES {values}")
    table = DeltaTable(mine)
    differences: list[tuple[str, dict[str, Any], dict[str, Any]]] = []
    for sql, change in CHANGES:
        version = change(table)
        jvm.run(f"ALTER TABLE delta.`{theirs}` {sql}")
        last = DeltaTable(theirs).version()
        ours, of_connector = described(mine, version), described(theirs, last)
        if sql.startswith("CLUSTER BY"):
            # The connector also commits metadata that it does not change.
            of_connector = {name: of_connector[name] for name in ours}
        differences += [(sql, ours, of_connector)] if ours != of_connector else []
    assert differences == []
    assert features(mine) == features(theirs)
    expected = rows(pa.table(DeltaTable(theirs).to_arrow()))
    assert rows(pa.table(table.to_arrow())) == expected
    for path in (mine, theirs):
        assert rows(jvm.query(f"SELECT * FROM delta.`{path}`")) == expected
        jvm.run(f"INSERT INTO delta.`{path}` SELECT 'n', 7, 'x', named_struct('y', NULL, 'z', 5000000000)")
        jvm.run(f"DELETE FROM delta.`{path}` WHERE id = 1")
        with pytest.raises(AssertionError, match="CHECK constraint positive"):
            jvm.run(f"INSERT INTO delta.`{path}` SELECT 'n', 0, 'x', NULL")
        write_deltalake(path, pa.table({"id": pa.array([8], pa.int32())}), mode="append")
    newest = rows(jvm.query(f"SELECT * FROM delta.`{mine}`"))
    assert newest == rows(jvm.query(f"SELECT * FROM delta.`{theirs}`"))
    assert (
        newest == rows(pa.table(DeltaTable(mine).to_arrow())) == rows(pa.table(DeltaTable(theirs).to_arrow()))
    )
    assert len(newest) == 3


def test_they_continue_row_ids_and_timestamps_that_we_began(jvm: Jvm, tmp_path: Path) -> None:
    """PROTOCOL, "Row Tracking", "In-Commit Timestamps"."""
    write_deltalake(tmp_path, DATA)
    table = DeltaTable(tmp_path)
    table.alter.set_table_properties({"delta.enableInCommitTimestamps": "true"})
    table.alter.set_table_properties({"delta.enableRowTracking": "true"})
    table.alter.set_table_properties({"delta.enableChangeDataFeed": "true", "delta.checkpointPolicy": "v2"})
    name = f"delta.`{tmp_path}`"
    ids = f"SELECT id, _metadata.row_id AS row, _metadata.row_commit_version AS at FROM {name}"
    assert sorted(map(tuple, _values(jvm.query(ids)))) == [(1, 0, 2), (2, 1, 2)]
    jvm.run(f"UPDATE {name} SET name = 'c' WHERE id = 2")
    jvm.run(f"INSERT INTO {name} VALUES (3, 'd', 3.5D, NULL)")
    newest = DeltaTable(tmp_path)
    found = pa.table(newest.to_arrow(columns=["id"], row_ids=True))
    assert sorted(map(tuple, _values(found))) == sorted(map(tuple, _values(jvm.query(ids))))
    assert {row for _, row, _ in _values(found)} >= {0, 1}
    times = [entry["timestamp"] for entry in newest.history()]
    assert times == sorted(set(times), reverse=True)
    assert pa.table(newest.load_cdf(starting_version=4)).num_rows == 3


def _values(table: pa.Table) -> list[list[Any]]:
    return [list(row.values()) for row in table.to_pylist()]


def test_deltalake_writes_to_altered_tables(tmp_path: Path) -> None:
    write_deltalake(tmp_path, DATA)
    table = DeltaTable(tmp_path)
    table.alter.add_columns(Field("note", "string"), after="id")
    table.alter.set_column_metadata("id", {"comment": "key"})
    table.alter.add_constraint({"positive": "id > 0"})
    table.alter.set_table_properties({"delta.enableChangeDataFeed": "true"})
    table.alter.set_table_name("t")
    theirs = deltalake.DeltaTable(tmp_path)
    assert rows(pa.table(theirs.to_pyarrow_table())) == rows(pa.table(table.to_arrow()))
    assert theirs.metadata().name == "t"
    theirs.alter.add_columns([deltalake.Field("later", deltalake.schema.PrimitiveType("long"))])
    table.update_incremental()
    assert [field.name for field in table.schema().fields] == ["id", "note", "name", "old", "s", "later"]
    table.alter.drop_constraint("positive")
    assert deltalake.DeltaTable(tmp_path).metadata().configuration == {"delta.enableChangeDataFeed": "true"}


def test_they_write_to_tables_whose_features_we_dropped(jvm: Jvm, tmp_path: Path) -> None:
    """PROTOCOL, "Supported Features": the table has no traces of a dropped feature."""
    write_deltalake(tmp_path, DATA, configuration={"delta.enableRowTracking": "true"})
    table = DeltaTable(tmp_path)
    table.alter.cluster_by("id")
    for feature in ("clustering", "rowTracking", "domainMetadata"):
        table.alter.drop_feature(feature)
    name = f"delta.`{tmp_path}`"
    jvm.run(f"UPDATE {name} SET name = 'c' WHERE id = 2")
    jvm.run(f"INSERT INTO {name} VALUES (3, 'd', 3.5D, NULL)")
    expected = rows(jvm.query(f"SELECT * FROM {name}"))
    assert len(expected) == 3
    assert rows(pa.table(DeltaTable(tmp_path).to_arrow())) == expected
    assert rows(pa.table(deltalake.DeltaTable(tmp_path).to_pyarrow_table())) == expected
