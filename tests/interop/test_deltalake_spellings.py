"""deltalog accepts the spellings of `deltalake` in addition to its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

import deltalog
from deltalog import DeltaTable, InvalidArgumentError, TableFeatures, WriterProperties, write_deltalake

ROWS = pa.table({"year": ["2020", "2021", "2021", None], "n": [1, 2, 3, 4]})


@pytest.fixture
def table(tmp_path: Path) -> DeltaTable:
    """Returns a table whose years are strings, as in many old tables."""
    configuration = {"delta.enableChangeDataFeed": "true"}
    write_deltalake(tmp_path, ROWS, partition_by=["year"], configuration=configuration)
    return DeltaTable(tmp_path)


def test_filters_of_files_have_both_names(table: DeltaTable) -> None:
    theirs = deltalake.DeltaTable(table.table_uri)
    filters: Any = [("year", "=", "2021")]
    assert table.partitions(partition_filters=filters) == theirs.partitions(partition_filters=filters)
    found = table.file_uris(partition_filters=filters)
    assert len(found) == len(theirs.file_uris(partition_filters=filters)) == 1
    assert table.file_uris("n > 2", file_pruning_predicate=filters) == found
    assert table.file_uris("n > 3", partition_filters=filters) == []
    assert table.partitions("n < 2", file_pruning_predicate="year IS NOT NULL") == [{"year": "2020"}]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (("year", "=", 2021), [2, 3]),
        (("year", "!=", 2021), [1]),
        (("year", "in", [2020, "2021"]), [1, 2, 3]),
        (("year", "not in", (2020,)), [2, 3, 4]),
    ],
)
def test_an_integer_equals_its_string(table: DeltaTable, condition: Any, expected: list[int]) -> None:
    rows = table.to_pyarrow_table(filters=[condition])
    assert sorted(rows["n"].to_pylist()) == expected


@pytest.mark.parametrize("condition", [("year", "<", 2021), ("year", "=", True), ("year", "=", 2021.0)])
def test_other_comparisons_of_texts_and_numbers_are_refused(table: DeltaTable, condition: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="year"):
        table.to_pyarrow_table(filters=[condition])


def test_a_stream_is_read_into_a_table(table: DeltaTable) -> None:
    feed = table.load_cdf()
    assert feed.schema.names[:2] == ["year", "n"]
    first = next(feed)
    rows = feed.read_all()
    assert (first.num_rows + rows.num_rows, rows.schema.names) == (4, feed.schema.names)
    assert feed.read_all().num_rows == 0


def test_features_have_names(table: DeltaTable) -> None:
    table.alter.add_feature(TableFeatures.DeletionVectors, allow_protocol_versions_increase=True)
    table.alter.add_feature([TableFeatures.RowTracking, "domainMetadata"])
    features = table.protocol().writer_features or []
    assert {"deletionVectors", "rowTracking", "domainMetadata"} <= set(features)
    with pytest.raises(deltalog.UnsupportedFeatureError, match="allow_protocol_versions_increase"):
        table.alter.add_feature("v2Checkpoint", allow_protocol_versions_increase=False)
    for feature in TableFeatures:
        assert hasattr(deltalake.TableFeatures, feature.name)


@pytest.mark.parametrize(("codec", "level"), [("GZIP", 10), ("gzip", -1), ("BROTLI", 12), ("ZSTD", 0)])
def test_levels_of_codecs_are_checked_at_once(codec: Any, level: int) -> None:
    with pytest.raises(InvalidArgumentError, match="compression_level"):
        WriterProperties(compression=codec, compression_level=level)
    assert WriterProperties(compression=codec, compression_level=5).compression_level == 5
