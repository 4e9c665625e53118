"""Rows can come from any object with Arrow's C interface, and from lists of such objects."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltalog
from deltalog import DeltaTable, InvalidArgumentError, write_deltalake

FIRST = pa.record_batch({"id": [1, 2], "s": pa.array([{"x": [1]}, None])})
SECOND = pa.record_batch({"id": [3, None], "s": pa.array([{"x": [3]}, {"x": None}])})
EXPECTED = [*FIRST.to_pylist(), *SECOND.to_pylist()]


class OnlyArray:
    """An object that has only `__arrow_c_array__`, like an array of `nanoarrow`."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self.batch = batch

    def __arrow_c_array__(self, requested_schema: object = None) -> Any:
        return self.batch.__arrow_c_array__(requested_schema)


def generated() -> Iterator[Any]:
    yield FIRST
    yield pa.table(SECOND.slice(0, 1))
    yield pa.table(SECOND.slice(1))


SOURCES: dict[str, Any] = {
    "list": lambda: [FIRST, SECOND],
    "tuple of tables": lambda: (pa.table(FIRST), pa.table(SECOND)),
    "generator": generated,
    "array": lambda: OnlyArray(pa.Table.from_batches([FIRST, SECOND]).combine_chunks().to_batches()[0]),
    "arrays": lambda: [OnlyArray(FIRST), OnlyArray(SECOND)],
    "reader": lambda: pa.RecordBatchReader.from_batches(FIRST.schema, [FIRST, SECOND]),
}


@pytest.mark.parametrize("source", SOURCES)
def test_every_source_is_written_and_merged(tmp_path: Path, source: str) -> None:
    write_deltalake(tmp_path, SOURCES[source]())
    table = DeltaTable(tmp_path)
    assert pa.table(table.to_arrow()).to_pylist() == EXPECTED
    merge = table.merge(SOURCES[source](), "target.id = source.id")
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    assert table.count() == 5
    write_deltalake(tmp_path, SOURCES[source](), mode="append")
    assert DeltaTable(tmp_path).count() == 9
    made = DeltaTable.create(tmp_path / "made", data=SOURCES[source]())
    assert made.count() == 4


def failing(kind: type[BaseException]) -> Iterator[pa.RecordBatch]:
    yield FIRST
    raise kind("the source is gone")


def test_what_a_generator_raises_is_the_cause(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="data stream failed") as caught:
        write_deltalake(tmp_path, failing(RuntimeError))
    assert isinstance(caught.value.__cause__, RuntimeError)
    with pytest.raises(KeyboardInterrupt):
        write_deltalake(tmp_path, failing(KeyboardInterrupt))
    assert not DeltaTable.is_deltatable(tmp_path)
    assert list(tmp_path.rglob("*.parquet")) == []


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ([], "empty list"),
        (iter([]), "empty list"),
        ([FIRST, 3], "an item of data.*int.*__arrow_c_stream__"),
        (iter([FIRST, "x"]), "item 2 of the data has the type str"),
        ([FIRST, SECOND.select(["s", "id"])], "item 2 of the data does not have the columns"),
        ([FIRST, SECOND.select(["id"])], "item 2 of the data does not have the columns"),
        ({"id": [1]}, "data cannot be an object of type dict"),
        (pa.array([1, 2]), "not an Arrow stream of rows"),
    ],
    ids=str,
)
def test_invalid_sources_are_refused(tmp_path: Path, data: Any, words: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        write_deltalake(tmp_path, data)
    told = f"{caught.value} {caught.value.__cause__}"
    assert re.search(words, told), told
    assert not DeltaTable.is_deltatable(tmp_path)


def test_the_home_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In every location, `~` is the home directory, as in pandas and polars. `./~` is a directory with the name `~`."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(tmp_path)
    write_deltalake("~/table", FIRST)
    write_deltalake(Path("~/table"), FIRST, mode="append")
    assert DeltaTable(home / "table").count() == 4
    assert DeltaTable("~/table").clone("~/clone", shallow=True).version == 0
    assert DeltaTable("~/clone", allowed_roots=["~/table"]).count() == 4
    assert DeltaTable.is_deltatable("~/clone")
    write_deltalake("./~/table", FIRST)
    assert deltalog.DeltaTable(tmp_path / "~" / "table").count() == 2
