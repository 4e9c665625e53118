"""Directories of Parquet files are converted to tables. Protocol: "Add File and Remove File"."""

from __future__ import annotations

import json
import shutil
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from deltalog import (
    CommitProperties,
    CorruptDataError,
    DeltaTable,
    Field,
    InvalidArgumentError,
    NotATableError,
    Schema,
    SchemaMismatchError,
    TableAlreadyExistsError,
    UnsupportedFeatureError,
    convert_to_delta,
    plan_conversion,
)


def rows_of(table: Any) -> list[dict[str, Any]]:
    return sorted(pa.table(table).to_pylist(), key=lambda row: row["id"])


ROWS = pa.table(
    {
        "id": range(8),
        "price": [0.5, None, 2.5, float("nan"), 4.5, 5.5, 6.5, 7.5],
        "city": ["a/b", "a/b", "é %", "é %", None, None, "x=y", "x=y"],
        "day": [date(2024, 1, 31), date(2024, 2, 1)] * 4,
    }
)


@pytest.fixture
def partitioned(tmp_path: Path) -> Path:
    """Writes a partitioned directory with pyarrow."""
    path = tmp_path / "rows"
    partitioning = ds.partitioning(pa.schema([("city", pa.string()), ("day", pa.date32())]), flavor="hive")
    ds.write_dataset(ROWS, path, format="parquet", partitioning=partitioning)
    return path


def test_what_pyarrow_has_written_becomes_a_table(partitioned: Path) -> None:
    plan = plan_conversion(partitioned)
    assert plan is not None
    assert (plan.num_files, plan.partition_columns) == (8, ["city", "day"])
    assert plan.schema().names == ["id", "price", "city", "day"]
    files = pa.table(plan.files())
    assert sum(files["size"].to_pylist()) == plan.size_in_bytes
    assert sum(json.loads(stats)["numRecords"] for stats in files["stats"].to_pylist()) == 8
    assert not DeltaTable.is_deltatable(partitioned)
    assert plan.commit() == 0
    found = DeltaTable(partitioned)
    expected = [{**row, "price": str(row["price"])} for row in ROWS.to_pylist()]
    for table in (found.to_arrow(), deltalake.DeltaTable(str(partitioned)).to_pyarrow_table()):
        assert [{**row, "price": str(row["price"])} for row in rows_of(table)] == expected
    assert found.count("day = '2024-02-01'") == 4
    assert found.count("city = 'a/b'") == 2
    # The converted table can be changed like any other table.
    found.delete("id = 0")
    found.vacuum(0, dry_run=False, enforce_retention_duration=False)
    assert len(rows_of(found.to_arrow())) == 7


def test_the_table_is_as_that_of_deltalake(tmp_path: Path) -> None:
    """The table equals the one that `deltalake` makes. The rows avoid what `deltalake` does not support: escaped
    partition values, and types for which it cannot write statistics.
    """
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    table = pa.table({"id": range(6), "s": list("abcdef"), "p": [1, 1, 2, 2, None, None]})
    partitioning = ds.partitioning(pa.schema([("p", pa.int32())]), flavor="hive")
    ds.write_dataset(table, ours, format="parquet", partitioning=partitioning)
    shutil.copytree(ours, theirs)
    columns = pa.schema([("p", pa.int32())])
    convert_to_delta(ours, partition_by=columns, partition_strategy="hive", name="n", description="d")
    deltalake.convert_to_deltalake(
        str(theirs),
        partition_by=deltalake.Schema.from_arrow(columns),
        partition_strategy="hive",
        name="n",
        description="d",
    )
    a, b = DeltaTable(ours), DeltaTable(theirs)
    assert rows_of(a.to_arrow()) == rows_of(b.to_arrow())
    assert (a.metadata().partition_columns, a.metadata().name, a.metadata().description) == (["p"], "n", "d")
    assert [(f.name, str(f.type)) for f in a.schema().fields] == [
        (f.name, str(f.type)) for f in b.schema().fields
    ]
    names = [sorted(path.rpartition("/")[2] for path in table.file_uris()) for table in (a, b)]
    assert names[0] == names[1]


def test_the_commit_has_the_metrics_of_the_jvm_connector(partitioned: Path) -> None:
    properties = CommitProperties(custom_metadata={"userMetadata": "mine"})
    table = convert_to_delta(
        partitioned,
        collect_stats=False,
        configuration={"delta.enableChangeDataFeed": "true"},
        commit_properties=properties,
    )
    [commit] = table.history()
    assert commit["operation"] == "CONVERT"
    assert commit["operationParameters"] == {
        "numFiles": 8,
        "partitionedBy": '["city","day"]',
        "collectStats": False,
        "sourceFormat": "parquet",
    }
    assert (commit["operationMetrics"], commit["userMetadata"]) == ({"numConvertedFiles": "8"}, "mine")
    assert table.metadata().configuration == {"delta.enableChangeDataFeed": "true"}
    assert table.count() == 8


def test_a_list_of_files_is_the_table(tmp_path: Path) -> None:
    for name in ("one", "two", "other"):
        pq.write_table(pa.table({"id": [len(name)]}), tmp_path / f"{name}.parquet")
    listed = pa.table(
        {
            "path": ["one.parquet", str(tmp_path / "two.parquet")],
            "size": [(tmp_path / f"{name}.parquet").stat().st_size for name in ("one", "two")],
            "modification_time": pa.array([1000, 2000], pa.timestamp("ms", "UTC")),
            "partition_values": [{"p": date(2024, 1, 1)}, {"p": None}],
        }
    )
    table = convert_to_delta(tmp_path, files=listed, partition_by=Schema([Field("p", "date")]))
    rows = sorted(pa.table(table.to_arrow()).to_pylist(), key=str)
    assert rows == [{"id": 3, "p": None}, {"id": 3, "p": date(2024, 1, 1)}]
    assert sorted(pa.table(table.files())["path"].to_pylist()) == ["one.parquet", "two.parquet"]


def test_the_columns_may_be_given(tmp_path: Path) -> None:
    """Columns can be given. Files may lack some of them, but must not have other columns."""
    pq.write_table(pa.table({"b": ["x"], "a": pa.array([1], pa.int16())}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"a": pa.array([2], pa.int32())}), tmp_path / "2.parquet")
    columns = pa.schema([("a", pa.int32()), ("b", pa.string()), ("c", pa.date32())])
    with pytest.raises(
        SchemaMismatchError, match="the files have the column 'b', which the table does not have"
    ):
        convert_to_delta(tmp_path, schema=columns.remove(1))
    with pytest.raises(InvalidArgumentError, match="schema cannot be"):
        convert_to_delta(tmp_path, schema=["a"])  # type: ignore[arg-type]
    plan = plan_conversion(tmp_path, schema=columns)
    assert plan is not None
    assert plan.schema() == Schema.from_arrow(columns)
    plan.commit()
    rows = DeltaTable(tmp_path).to_pyarrow_table().sort_by("a").to_pylist()
    assert rows == [{"a": 1, "b": "x", "c": None}, {"a": 2, "b": None, "c": None}]


@pytest.mark.parametrize(("zone", "hour"), [("+02:00", 8), ("GMT-5", 15), ("Europe/Berlin", 9)])
def test_times_in_names_of_directories_have_a_time_zone(tmp_path: Path, zone: str, hour: int) -> None:
    place = tmp_path / "at=2024-01-01 10%3A00%3A00"
    place.mkdir()
    pq.write_table(pa.table({"a": [1]}), place / "1.parquet")
    [row] = convert_to_delta(tmp_path, time_zone=zone).to_pyarrow_table().to_pylist()
    assert row["at"] == datetime(2024, 1, 1, hour, tzinfo=timezone.utc)


def test_a_table_stays_as_it_is(partitioned: Path) -> None:
    convert_to_delta(partitioned)
    with pytest.raises(TableAlreadyExistsError, match="the directory is already a Delta table"):
        convert_to_delta(partitioned)
    assert plan_conversion(partitioned, mode="ignore") is None
    assert convert_to_delta(partitioned, mode="ignore").version() == 0


def test_wrong_input_is_refused_with_the_paths(partitioned: Path, tmp_path: Path) -> None:
    for arguments, error, text in [
        (
            {"partition_by": pa.schema([("city", pa.int32()), ("day", pa.date32())])},
            InvalidArgumentError,
            "'é %' is not of",
        ),
        (
            {"partition_by": pa.schema([("city", pa.string())])},
            InvalidArgumentError,
            "that is not given, 'day'",
        ),
        ({"partition_by": ["city"]}, InvalidArgumentError, "partition_by cannot be"),
        ({"partition_strategy": "other"}, InvalidArgumentError, "partition_strategy cannot be 'other'"),
        ({"mode": "overwrite"}, InvalidArgumentError, "mode cannot be 'overwrite'"),
        ({"time_zone": 1}, InvalidArgumentError, "time_zone cannot be 1"),
        ({"files": [1]}, InvalidArgumentError, "__arrow_c_stream__"),
        (
            {"configuration": {"delta.columnMapping.mode": "id"}},
            UnsupportedFeatureError,
            "cannot map columns",
        ),
        ({"configuration": {"delta.none": "1"}}, InvalidArgumentError, "delta.none"),
        (
            {"configuration": {"delta.dataSkippingNumIndexedCols": "x"}},
            InvalidArgumentError,
            "delta.dataSkippingNumIndexedCols",
        ),
    ]:
        with pytest.raises(error, match=text):
            convert_to_delta(partitioned, **arguments)
    other = tmp_path / "other"
    other.mkdir()
    pq.write_table(pa.table({"id": [1]}), other / "a.parquet")
    pq.write_table(pa.table({"id": ["text"]}), other / "b.parquet")
    with pytest.raises(
        SchemaMismatchError, match=r"'id' is of type long in a\.parquet, and of type string in b"
    ):
        convert_to_delta(other)
    (other / "b.parquet").write_text("text")
    with pytest.raises(CorruptDataError, match=r"b\.parquet"):
        convert_to_delta(other)
    with pytest.raises(NotATableError):
        DeltaTable(other)
    with pytest.raises(InvalidArgumentError, match="there are no Parquet files to convert"):
        convert_to_delta(tmp_path / "nowhere")


def test_the_output_of_a_stream_of_spark_is_refused(partitioned: Path) -> None:
    """The output directory of a Spark stream is refused, because only the stream's own log tells which files are
    valid. Repeated batches leave other files behind.
    """
    (partitioned / "_spark_metadata").mkdir()
    (partitioned / "_spark_metadata" / "0").write_text("v1")
    with pytest.raises(
        InvalidArgumentError, match=r"its log \(_spark_metadata\) shows which files are valid"
    ):
        convert_to_delta(partitioned)
