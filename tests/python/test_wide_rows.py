"""Rows that are so large that 8,192 of them exceed 2 GiB, the maximum size of an Arrow string array."""

from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

import deltalog
from benches.watch import peak_bytes
from deltalog import DeltaTable, Field, Schema, _internal, write_deltalake

DOC = 320_000
"""The size of a document in bytes."""

ROWS = 7_000
"""The number of rows, whose documents together exceed 2 GiB."""


@pytest.fixture
def wide(tmp_path: Path) -> DeltaTable:
    """Creates a table with one small file, whose dictionary contains the document only once."""
    docs = pyarrow.DictionaryArray.from_arrays(np.zeros(ROWS, dtype=np.int32), ["x" * DOC])
    rows = pyarrow.table({"id": range(ROWS), "doc": docs})
    pyarrow.parquet.write_table(rows, tmp_path / "a.parquet")
    deltalog.convert_to_delta(str(tmp_path))
    return DeltaTable(tmp_path)


def test_a_file_of_more_than_two_gigabytes_of_text_is_read_in_small_batches(wide: DeltaTable) -> None:
    rows = 0
    for batch in pyarrow.RecordBatchReader.from_stream(wide.to_arrow(columns=["doc"])):
        rows += batch.num_rows
        assert batch.nbytes < 64 << 20
    assert rows == ROWS


def test_a_merge_pairs_many_rows_with_a_wide_one(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pyarrow.table({"id": range(ROWS)}))
    source = pyarrow.table({"key": [1], "doc": ["y" * DOC]})
    table = DeltaTable(tmp_path)
    condition = "s.key = 1 AND octet_length(s.doc) > t.id + 10"
    merge = table.merge(source, condition, source_alias="s", target_alias="t")
    merge.when_matched_delete("octet_length(s.doc) > t.id + 313006").execute()
    assert DeltaTable(tmp_path).count() == 6


def test_values_of_an_expression_may_have_more_than_two_gigabytes() -> None:
    rows = pyarrow.table({"id": range(2_200)})
    values = _internal.evaluate(rows, f"'{'z' * 1_000_000}'", "UTC")
    lengths = [batch.num_rows for batch in pyarrow.RecordBatchReader.from_stream(values)]
    assert sum(lengths) == 2_200
    assert max(lengths) < 100


@pytest.mark.parametrize("text", [True, False])
def test_a_slice_of_a_very_large_column_is_written(tmp_path: Path, text: bool) -> None:
    end = 3 << 30
    # The test only ever touches the end of this memory.
    values = np.zeros(end, dtype=np.uint8)
    values[-5:] = np.frombuffer(b"abcde", dtype=np.uint8)
    offsets = np.array([0, end - 5, end - 3, end - 3, end], dtype=np.int64)
    buffers = [None, pyarrow.py_buffer(offsets), pyarrow.py_buffer(values)]
    large = pyarrow.Array.from_buffers(pyarrow.large_string() if text else pyarrow.large_binary(), 4, buffers)
    write_deltalake(tmp_path, pyarrow.table({"value": large.slice(1)}))
    found = pyarrow.table(DeltaTable(tmp_path).to_arrow()).column("value").to_pylist()
    assert found == (["ab", "", "cde"] if text else [b"ab", b"", b"cde"])


def test_a_long_default_value_is_repeated_for_a_few_rows_at_once(tmp_path: Path) -> None:
    """The creator of a table determines how long a default value is. Here, 300 copies of it would take 300 MB, so only
    a few rows are filled at once.
    """
    schema = Schema([Field("id", "long"), Field("doc", "string")])
    feature = {"delta.feature.allowColumnDefaults": "supported", "delta.enableChangeDataFeed": "true"}
    table = DeltaTable.create(tmp_path, schema=schema, configuration=feature)
    table.alter.set_column_default("doc", f"'{'d' * 1_000_000}'")
    before = peak_bytes()
    write_deltalake(tmp_path, pyarrow.table({"id": range(300)}), mode="append")
    merge = DeltaTable(tmp_path).merge(
        pyarrow.table({"id": range(200, 600)}), "s.id = t.id", source_alias="s", target_alias="t"
    )
    merge.when_not_matched_insert({"id": "s.id"}).execute()
    table = DeltaTable(tmp_path)
    assert (table.count(), table.count("octet_length(doc) = 1000000")) == (600, 600)
    # At the same time, there is one batch in Arrow's memory, one in the encoder, and one in the pages of the file.
    assert peak_bytes() - before < 1 << 30
