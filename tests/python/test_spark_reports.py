"""The reports of Spark's tasks are checked before their files are committed. If there is no commit, the reported files
are deleted.
"""

import struct
from pathlib import Path

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deltalog import CorruptDataError, DeltaError, MissingFileError
from deltalog._internal import SparkWrite
from deltalog.arguments import TableOptions

SCHEMA = (
    '{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}},'
    '{"name":"p","type":"string","nullable":true,"metadata":{}}]}'
)


def begun(path: Path, mode: str = "append") -> SparkWrite:
    write = SparkWrite.begin(str(path), SCHEMA, mode, TableOptions(["p"]))
    assert isinstance(write, SparkWrite)
    return write


def block(content: bytes) -> bytes:
    return struct.pack(">i", len(content)) + content


def report(path: Path, name: str, value: str | None = "a", rows: int = 3) -> bytes:
    """Writes a file, and returns the report of the task that has written it."""
    file = path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"id": range(3)}), file)
    (file.parent / f".{file.name}.crc").write_bytes(b"crc")  # Hadoop also writes a checksum file.
    content = file.read_bytes()
    footer = content[-8 - int.from_bytes(content[-8:-4], "little") :]
    partition = b"\x00" if value is None else b"\x01" + block(value.encode())
    record = block(name.encode()) + struct.pack(">qqqi", len(content), 1, rows, 1) + partition + footer
    return block(b"\x01" + b"\x01" + block(record))


def files(path: Path) -> list[str]:
    found = (file.relative_to(path) for file in path.rglob("*") if file.is_file())
    return sorted(str(file) for file in found if "_delta_log" not in file.parts)


def test_reported_files_are_committed_and_no_others(tmp_path: Path) -> None:
    write = begun(tmp_path)
    write.add_reports(report(tmp_path, "p=a/one.parquet") + report(tmp_path, "two.parquet", None))
    report(tmp_path, "p=a/of a task that was repeated.parquet")
    assert write.commit("WRITE", {}, "") == 0
    table = deltalake.DeltaTable(tmp_path)
    assert sorted(table.to_pyarrow_dataset().files) == ["p=a/one.parquet", "two.parquet"]
    assert sorted(table.to_pyarrow_table()["p"].to_pylist(), key=str) == [None] * 3 + ["a"] * 3


def test_an_abort_deletes_exactly_what_was_reported(tmp_path: Path) -> None:
    report(tmp_path, "p=a/of others.parquet")
    before = files(tmp_path)
    write = begun(tmp_path)
    write.add_reports(report(tmp_path, "p=a/one.parquet"))
    write.add_reports(report(tmp_path, "two.parquet"))
    write.abort()
    assert files(tmp_path) == before
    assert not (tmp_path / "_delta_log").exists()


@pytest.mark.parametrize("fault", ["missing", "rows", "outside", "form"])
def test_a_report_that_is_not_true_is_not_committed(tmp_path: Path, fault: str) -> None:
    path = tmp_path / "table"
    write = begun(path)
    write.add_reports(report(path, "p=a/good.parquet"))
    expected: tuple[type[DeltaError], str] = (CorruptDataError, "4 rows")
    if fault == "missing":
        write.add_reports(report(path, "p=a/missing.parquet"))
        (path / "p=a" / "missing.parquet").unlink()
        expected = MissingFileError, r"missing\.parquet.*same place for the driver and all executors"
    elif fault == "rows":
        write.add_reports(report(path, "p=a/bad.parquet", rows=4))
    elif fault == "outside":
        report(tmp_path, "outside.parquet")
        write.add_reports(report(path, "../outside.parquet"))
        expected = CorruptDataError, "not a data file of the table"
    else:
        write.add_reports(block(b"\x09"))
        expected = CorruptDataError, "in version 9 of the format"
    with pytest.raises(expected[0], match=expected[1]):
        write.commit("WRITE", {}, "")
    assert not (path / "_delta_log").exists()
    # A report that cannot be read does not show which files to delete.
    assert (files(path) == []) == (fault in ("missing", "rows"))
    assert fault != "outside" or (tmp_path / "outside.parquet").exists()


def test_the_files_of_a_conflict_are_deleted(tmp_path: Path) -> None:
    first = begun(tmp_path)
    first.add_reports(report(tmp_path, "first.parquet"))
    first.commit("WRITE", {}, "")
    overwrite, other = begun(tmp_path, "overwrite"), begun(tmp_path)
    other.add_reports(report(tmp_path, "other.parquet"))
    other.commit("WRITE", {}, "")
    before = files(tmp_path)
    overwrite.add_reports(report(tmp_path, "p=a/late.parquet"))
    with pytest.raises(DeltaError, match="other"):
        overwrite.commit("WRITE", {}, "")
    assert files(tmp_path) == before
