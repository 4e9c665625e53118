"""A table with rules for its rows is the same, whether deltalog or the JVM connector creates or replaces it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

from deltalog import ArrayType, DeltaTable, Field, Identity, Schema, StructType, write_deltalake
from tests.golden.canonical import rows
from tests.interop.conftest import Jvm
from tests.interop.test_altered_tables import described, features
from tests.python.place import actions

COLUMNS = [
    Field("id", "long", identity=Identity(5, -2)),
    Field("a", "integer", nullable=False, comment="key"),
    Field("b", "integer", generated_as="a + 1"),
    Field("d", "string", default="'x'"),
    Field("s", StructType([Field("x", "integer", nullable=False), Field("y", "date")])),
]
SQL = """
    (id BIGINT GENERATED ALWAYS AS IDENTITY (START WITH 5 INCREMENT BY -2), a INT NOT NULL COMMENT 'key',
     b INT GENERATED ALWAYS AS (a + 1), d STRING DEFAULT 'x', s STRUCT<x: INT NOT NULL, y: DATE>)
    USING delta CLUSTER BY (a, s.x) COMMENT 'text'
"""
PROPERTIES = {
    "delta.columnMapping.mode": "name",
    "delta.constraints.positive": "a > 0",
    "delta.enableChangeDataFeed": "true",
    "delta.enableDeletionVectors": "true",
    "delta.enableInCommitTimestamps": "true",
    "delta.enableRowTracking": "true",
    "delta.feature.allowColumnDefaults": "supported",
    "mine": "1",
}


def properties(given: dict[str, str]) -> str:
    return ", ".join(f"'{name}' = '{value}'" for name, value in given.items())


def without_random_names(found: dict[str, Any]) -> dict[str, Any]:
    """Returns a log without its random names, such as the names of hidden columns."""
    for configuration in (found["configuration"], found["parameters"]["properties"]):
        for name in [name for name in configuration if "materialized" in name]:
            configuration[name] = ""
    return found


def domains(path: Path, version: int) -> list[str]:
    return [line["domainMetadata"]["domain"] for line in actions(path, version) if "domainMetadata" in line]


def test_created_and_replaced_tables(jvm: Jvm, tmp_path: Path) -> None:
    mine, theirs = tmp_path / "mine", tmp_path / "theirs"
    jvm.run(f"CREATE TABLE delta.`{theirs}` {SQL} TBLPROPERTIES ({properties(PROPERTIES)})")
    DeltaTable.create(
        mine, Schema(COLUMNS), cluster_by=["a", "s.x"], description="text", configuration=PROPERTIES
    )
    assert without_random_names(described(mine, 0)) == without_random_names(described(theirs, 0))
    assert features(mine) == features(theirs)
    assert domains(mine, 0) == domains(theirs, 0) == ["delta.clustering"]

    # Both continue to write to the other engine's table.
    inner = pa.struct([("x", pa.int32()), ("y", pa.date32())])
    data = pa.table({"a": pa.array([7], pa.int32()), "s": pa.array([{"x": 4, "y": None}], inner)})
    for path in (mine, theirs):
        jvm.run(
            f"INSERT INTO delta.`{path}` (a, s) VALUES (1, struct(0, NULL)), (2, struct(1, DATE'2024-05-01'))"
        )
        write_deltalake(path, data, mode="append")
        jvm.run(f"INSERT INTO delta.`{path}` (a, s) VALUES (3, struct(2, NULL))")
        with pytest.raises(AssertionError, match="CHECK constraint positive"):
            jvm.run(f"INSERT INTO delta.`{path}` (a, s) VALUES (0, struct(2, NULL))")
        found = pa.table(DeltaTable(path).to_arrow()).to_pylist()
        assert len({row["id"] for row in found}) == 4
        assert all((row["id"] - 5) % 2 == 0 and row["id"] <= 5 for row in found)
        assert all((row["b"], row["d"]) == (row["a"] + 1, "x") for row in found)
        assert rows(jvm.query(f"SELECT * FROM delta.`{path}`")) == rows(pa.table(DeltaTable(path).to_arrow()))

    # Both engines replace the table with one that has rows. The properties include `enableDeletionVectors`, because the
    # connector's session has a default for it, which the connector stores in its table.
    given = {
        "delta.columnMapping.mode": "id",
        "delta.enableDeletionVectors": "false",
        "delta.enableInCommitTimestamps": "true",
    }
    select = "AS SELECT 1 AS a, 'p' AS p"
    jvm.run(
        f"CREATE OR REPLACE TABLE delta.`{theirs}` USING delta CLUSTER BY (p) "
        f"TBLPROPERTIES ({properties(given)}) {select}"
    )
    new = pa.table({"a": pa.array([1], pa.int32()), "p": ["p"]})
    before = DeltaTable(mine).metadata().id
    replaced = DeltaTable.create(mine, data=new, mode="overwrite", cluster_by="p", configuration=given)
    ours, of_connector = (
        without_random_names(described(path, DeltaTable(path).version())) for path in (mine, theirs)
    )
    # deltalog assigns ids that no column of the old table had.
    for found in (ours, of_connector):
        found["configuration"].pop("delta.columnMapping.maxColumnId")
        found["parameters"]["properties"].pop("delta.columnMapping.maxColumnId")
        for field in found["schema"]["fields"]:
            field["metadata"].pop("delta.columnMapping.id")
    assert ours == of_connector
    assert features(mine) == features(theirs)
    assert replaced.metadata().id != before
    assert set(domains(mine, replaced.version())) == {"delta.clustering", "delta.rowTracking"}
    jvm.run(f"INSERT INTO delta.`{mine}` VALUES (2, 'q')")
    jvm.run(f"DELETE FROM delta.`{mine}` WHERE a = 1")
    assert jvm.query(f"SELECT * FROM delta.`{mine}`").to_pylist() == [{"a": 2, "p": "q"}]
    detail = jvm.query(f"DESCRIBE DETAIL delta.`{mine}`").to_pylist()[0]
    assert list(detail["clusteringColumns"]) == ["p"]


def test_not_null_inside_of_arrays_is_read(jvm: Jvm, tmp_path: Path) -> None:
    """The connector refuses to define such columns, because it would not enforce NOT NULL there."""
    inner = StructType([Field("x", "integer", nullable=False)])

    DeltaTable.create(tmp_path, Schema([Field("a", ArrayType(inner))]))
    kind = pa.list_(pa.struct([("x", pa.int32())]))
    write_deltalake(tmp_path, pa.table({"a": pa.array([[{"x": 1}], None], kind)}), mode="append")
    found = rows(jvm.query(f"SELECT * FROM delta.`{tmp_path}`"))
    assert found == rows(pa.table(DeltaTable(tmp_path).to_arrow()))


def test_deltalake_reads_and_writes_tables_with_constraints(tmp_path: Path) -> None:
    columns = [Field("a", "integer", nullable=False), Field("b", "string", comment="text")]
    table = DeltaTable.create(tmp_path, Schema(columns), constraints={"positive": "a > 0"}, name="n")
    data = pa.table({"a": pa.array([1], pa.int32()), "b": ["x"]})
    deltalake.write_deltalake(tmp_path, data, mode="append")
    with pytest.raises(Exception, match="failed validation"):
        deltalake.write_deltalake(tmp_path, data.set_column(0, "a", pa.array([0], pa.int32())), mode="append")
    table = DeltaTable.create(tmp_path, data=data, mode="overwrite")
    theirs = deltalake.DeltaTable(tmp_path)
    assert pa.table(theirs.to_pyarrow_table()).to_pylist() == data.to_pylist()
    assert json.loads(theirs.schema().to_json())["fields"][0]["nullable"]
    assert theirs.version() == table.version()
