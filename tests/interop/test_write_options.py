"""Write options have the same effects as with the JVM connector: records of applications, predicates of overwrites, and
schema changes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltalog
from deltalog import AlreadyApplied, CommitProperties, DeltaTable, Transaction, write_deltalake
from tests.golden.canonical import rows
from tests.interop.conftest import Jvm


def agree(jvm: Jvm, path: Path) -> list[str]:
    """Checks that both engines read the same rows, and returns them."""
    found = rows(pa.table(DeltaTable(path).to_arrow()))
    assert rows(jvm.query(f"SELECT * FROM delta.`{path}`")) == found
    assert DeltaTable(path).verify().ok
    return found


def test_each_recognizes_writes_of_applications_that_the_other_has_recorded(jvm: Jvm, tmp_path: Path) -> None:
    """Protocol: "Transaction Identifiers"."""
    data = pa.table({"id": pa.array([1], pa.int64())})

    def ours(version: int) -> Any:
        properties = CommitProperties(app_transactions=[Transaction("job", version)])
        return write_deltalake(tmp_path, data, mode="append", commit_properties=properties)

    def theirs(version: int) -> None:
        jvm.run("SET spark.databricks.delta.write.txnAppId = job")
        jvm.run(f"SET spark.databricks.delta.write.txnVersion = {version}")
        jvm.run(f"INSERT INTO delta.`{tmp_path}` SELECT 2L")
        jvm.run("RESET spark.databricks.delta.write.txnAppId")
        jvm.run("RESET spark.databricks.delta.write.txnVersion")

    assert ours(1) == 0
    theirs(1)
    theirs(2)
    assert isinstance(ours(2), AlreadyApplied)
    assert ours(3) == 2
    theirs(3)
    assert len(agree(jvm, tmp_path)) == 3


@pytest.mark.parametrize("vectors", ["false", "true"])
@pytest.mark.parametrize("predicate", ["p = 'a'", "n > 5", "p = 'b' AND n >= 4", "n IS NULL"])
def test_the_same_rows_are_replaced(jvm: Jvm, tmp_path: Path, predicate: str, vectors: str) -> None:
    """The connector's INSERT ... REPLACE WHERE gives the expected rows. Then the connector writes to our table."""
    old = pa.table({"n": [*range(10), None] * 3, "p": (["a", "b", None] * 11)})
    properties = {"delta.enableDeletionVectors": vectors}
    for name in ("ours", "theirs"):
        write_deltalake(tmp_path / name, old, configuration=properties)
    source = f"SELECT n, p FROM delta.`{tmp_path / 'new'}` WHERE {predicate}"
    write_deltalake(tmp_path / "new", old)
    jvm.run(f"INSERT INTO delta.`{tmp_path / 'theirs'}` REPLACE WHERE {predicate} {source}")
    new = pa.table(DeltaTable(tmp_path / "new").to_arrow(predicate=predicate))
    write_deltalake(tmp_path / "ours", new, mode="overwrite", predicate=predicate)
    assert agree(jvm, tmp_path / "ours") == agree(jvm, tmp_path / "theirs")
    jvm.run(f"DELETE FROM delta.`{tmp_path / 'ours'}` WHERE {predicate}")
    jvm.run(f"INSERT INTO delta.`{tmp_path / 'ours'}` {source}")
    assert agree(jvm, tmp_path / "ours") == agree(jvm, tmp_path / "theirs")


@pytest.mark.parametrize("mapping", ["none", "name"])
def test_copied_rows_keep_their_ids(jvm: Jvm, tmp_path: Path, mapping: str) -> None:
    """Protocol: "Row Tracking". Both engines take turns in replacing rows of one table, and see the same row ids and
    commit versions.
    """
    table = f"delta.`{tmp_path}`"
    properties = {"delta.enableRowTracking": "true", "delta.columnMapping.mode": mapping}
    data = pa.table({"n": pa.array(range(10), pa.int64()), "p": ["a", "b"] * 5})
    for start in (0, 5):
        write_deltalake(tmp_path, data.slice(start, 5), mode="append", configuration=properties)

    def tracked() -> dict[int, tuple[int, int]]:
        theirs = jvm.query(f"SELECT n, _metadata.row_id, _metadata.row_commit_version FROM {table}")
        ours = pa.table(DeltaTable(tmp_path).to_arrow(columns=["n"], row_ids=True))
        assert rows(ours.rename_columns(theirs.column_names)) == rows(theirs)
        return {row["n"]: (row["row_id"], row["row_commit_version"]) for row in theirs.to_pylist()}

    before = tracked()
    write_deltalake(tmp_path, data.slice(3, 1), mode="overwrite", predicate="n = 3")
    first = tracked()
    assert {key: value for key, value in first.items() if key != 3} == {
        key: value for key, value in before.items() if key != 3
    }
    assert first[3][0] > max(row_id for row_id, _ in before.values())
    assert first[3][1] == 2
    jvm.run(f"DELETE FROM {table} WHERE n = 1")
    second = tracked()
    assert second == {key: value for key, value in first.items() if key != 1}
    write_deltalake(tmp_path, data.slice(0, 0), mode="overwrite", predicate="n IN (0, 6)")
    assert tracked() == {key: value for key, value in second.items() if key not in (0, 6)}


@pytest.mark.parametrize("mapping", ["none", "name"])
def test_they_write_on_in_tables_whose_schema_we_have_changed(jvm: Jvm, tmp_path: Path, mapping: str) -> None:
    """Protocol: "Writer Requirements for Column Mapping", "Type Widening"."""
    table = f"delta.`{tmp_path}`"
    properties = {"delta.columnMapping.mode": mapping, "delta.enableTypeWidening": "true"}
    inner = pa.struct([("x", pa.int64())])
    first = pa.table({"id": pa.array([1], pa.int32()), "s": pa.array([{"x": 1}], inner)})
    write_deltalake(tmp_path, first, configuration=properties)
    wider = pa.struct([("y", pa.string()), ("x", pa.int64())])
    second = pa.table(
        {"n": ["new"], "id": pa.array([2**40], pa.int64()), "s": pa.array([{"y": "y", "x": 2}], wider)}
    )
    write_deltalake(tmp_path, second, mode="append", schema_mode="merge")
    assert len(agree(jvm, tmp_path)) == 2
    jvm.run(f"ALTER TABLE {table} ADD COLUMNS (s.z INT)")
    jvm.run(f"INSERT INTO {table} SELECT 3, named_struct('x', 3, 'y', 'y', 'z', 3), 'theirs'")
    assert len(agree(jvm, tmp_path)) == 3
    third = pa.table({"id": ["text"], "part": [1]})
    arguments: dict[str, Any] = {"mode": "overwrite", "schema_mode": "overwrite", "partition_by": ["part"]}
    write_deltalake(tmp_path, third, **arguments)
    jvm.run(f"INSERT INTO {table} SELECT 'theirs', 2")
    assert len(agree(jvm, tmp_path)) == 2
    assert deltalog.DeltaTable(tmp_path, version=1).count() == 2
