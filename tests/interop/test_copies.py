"""Compares the tables that deltalog and the JVM connector create with CONVERT and CLONE. The connector must be able to
read ours.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from deltalog import DeltaTable, convert_to_delta, write_deltalake
from tests.golden.canonical import rows
from tests.interop.conftest import Jvm

COLUMNS = pa.schema([("day", pa.date32()), ("s", pa.string())])


@pytest.fixture
def parquet(tmp_path: Path) -> Path:
    """Writes a directory of Parquet files with partition values that are escaped, empty or NULL."""
    table = pa.table(
        {
            "id": pa.array(range(12), pa.int64()),
            "x": pa.array([None if number == 5 else number / 4 for number in range(12)]),
            "day": pa.array([19000, None, 19001] * 4, pa.date32()),
            "s": ["a/b", "c d", "x=y", None] * 3,
        }
    )
    path = tmp_path / "parquet"
    ds.write_dataset(table, path, format="parquet", partitioning=ds.partitioning(COLUMNS, flavor="hive"))
    return path


def test_the_same_table_as_the_jvm_connector_makes(jvm: Jvm, parquet: Path, tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    shutil.copytree(parquet, ours)
    shutil.copytree(parquet, theirs)
    jvm.run(f"CONVERT TO DELTA parquet.`{theirs}` PARTITIONED BY (day DATE, s STRING)")
    table, other = convert_to_delta(ours, partition_by=COLUMNS), DeltaTable(theirs)
    assert table.schema() == other.schema()
    assert table.metadata().partition_columns == other.metadata().partition_columns
    assert table.protocol() == other.protocol()
    files = [{row["path"]: row for row in pa.table(found.files()).to_pylist()} for found in (table, other)]
    assert files[0].keys() == files[1].keys()
    for path, file in files[0].items():
        for name in ("size", "modification_time", "partition_values"):
            assert file.get(name) == files[1][path].get(name), (path, name)
    [(found, _)] = jvm.versions(ours, [0])
    assert rows(found) == rows(pa.table(table.to_arrow())) == rows(pa.table(other.to_arrow()))
    commits = [found.history()[0] for found in (table, other)]
    assert commits[0]["operationParameters"] == commits[1]["operationParameters"]
    assert commits[0]["operationMetrics"].items() >= {"numConvertedFiles": str(len(files[0]))}.items()
    assert commits[0]["operationMetrics"] == commits[1]["operationMetrics"]
    # Neither engine changes an existing table.
    jvm.run(f"CONVERT TO DELTA parquet.`{ours}` PARTITIONED BY (day DATE, s STRING)")
    assert DeltaTable(ours).version() == 0


def test_the_jvm_connector_reads_clones_and_we_read_its(jvm: Jvm, tmp_path: Path) -> None:
    source = tmp_path / "source"
    table = pa.table({"id": range(10), "p": ["a b", "c/d"] * 5})
    write_deltalake(
        source, table, partition_by=["p"], configuration={"delta.enableDeletionVectors": "true", "mine": "x"}
    )
    DeltaTable(source).delete("id in (2, 3)")
    expected = rows(pa.table(DeltaTable(source).to_arrow()))
    opened = DeltaTable(source)
    for name, shallow in (("deep", False), ("shallow", True)):
        opened.clone(tmp_path / name, shallow=shallow)
        [(found, _)] = jvm.versions(tmp_path / name, [0])
        assert rows(found) == expected
    jvm.run(f"CREATE TABLE delta.`{tmp_path / 'theirs'}` SHALLOW CLONE delta.`{source}`")
    theirs = DeltaTable(tmp_path / "theirs", allowed_roots=[source])
    assert rows(pa.table(theirs.to_arrow())) == expected
    ours = DeltaTable(tmp_path / "shallow").history()[0]
    other = theirs.history()[0]
    assert ours["operationMetrics"] == other["operationMetrics"]
    assert (
        other["operationParameters"].items()
        <= {
            **ours["operationParameters"],
            "source": other["operationParameters"]["source"],
        }.items()
    )
    # Each engine continues the table that the other one has written.
    jvm.run(f"DELETE FROM delta.`{tmp_path / 'shallow'}` WHERE id = 5")
    jvm.run(f"DELETE FROM delta.`{tmp_path / 'deep'}` WHERE id = 7")
    assert DeltaTable(tmp_path / "shallow", allowed_roots=[source]).count("id = 5") == 0
    opened.clone(tmp_path / "theirs", shallow=False, mode="overwrite")
    opened.clone(tmp_path / "deep", shallow=False, mode="overwrite")
    for name in ("theirs", "deep"):
        [(found, _)] = jvm.versions(tmp_path / name, [DeltaTable(tmp_path / name).version()])
        assert rows(found) == expected
    # The deep clone does not need the source any more.
    shutil.rmtree(source)
    assert rows(pa.table(DeltaTable(tmp_path / "theirs").to_arrow())) == expected
