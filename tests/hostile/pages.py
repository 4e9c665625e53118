"""Writes Parquet files with a single column whose footer or pages claim more data than they have.

The numbers in a page header are varints of Thrift's compact protocol, which may be longer than necessary. A page's
checksum is optional. It is left out to make room for longer numbers. The header keeps its length, so all offsets stay
correct.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.hostile.files import varint

COLUMN = pa.field("id", pa.int64(), nullable=False)


def of_dictionary(path: Path, *, claims: int, codec: str = "snappy") -> None:
    """Writes a file whose dictionary page claims to have `claims` bytes."""
    _write_with_header(path, lambda size, packed, entries: (_padded(claims), packed, entries), codec)


def of_entries(path: Path, *, claims: int) -> None:
    """Writes a file whose dictionary claims to have `claims` entries."""
    _write_with_header(path, lambda size, packed, entries: (size, packed, _padded(claims)), "none")


def of_chunk(path: Path, *, claims: int) -> None:
    """Writes a file whose footer claims that the column has `claims` bytes."""
    _write(path, 0, compression="none")
    content, chunk = path.read_bytes(), _chunk(path)
    sizes = [_number(chunk.total_uncompressed_size), _number(chunk.total_compressed_size)]
    known, claimed = (b"\x16" + sizes[0] + b"\x16" + size for size in (sizes[1], _number(claims)))
    start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    footer = content[start:-8]
    assert footer.count(known) == 1
    footer = footer.replace(known, claimed)
    path.write_bytes(content[:start] + footer + len(footer).to_bytes(4, "little") + b"PAR1")


def of_block(path: Path, *, claims: int) -> None:
    """Writes a file with a delta-encoded page in which a block claims to have `claims` values."""
    encoding = {"id": "DELTA_BINARY_PACKED"}
    _write(path, 0, compression="none", use_dictionary=False, column_encoding=encoding)
    content, chunk = bytearray(path.read_bytes()), _chunk(path)
    at = chunk.data_page_offset
    for _ in range(3):
        number, at = _read(content, at + 1)
    # The last number of the header is the size of the page, which is at the end of the chunk.
    # The page begins with the size of a block and the number of its parts.
    body = chunk.data_page_offset + chunk.total_compressed_size - (number >> 1)
    start = varint(claims) + b"\x01"
    content[body : body + len(start)] = start
    path.write_bytes(content)


def of_deep_header(path: Path) -> None:
    """Writes a file in which the header of the first page is nested deeply."""
    rows = pa.table({"id": pa.array(range(100_000), pa.int64())}, pa.schema([COLUMN]))
    pq.write_table(rows, path, use_dictionary=False, compression="none")
    content = bytearray(path.read_bytes())
    content[4:500_000] = b"\x1c" * (500_000 - 4)
    path.write_bytes(content)


def _write(path: Path, seed: int, **options: Any) -> None:
    rows = pa.table({"id": pa.array([(seed + i) % 16 for i in range(1000)], pa.int64())}, pa.schema([COLUMN]))
    pq.write_table(rows, path, **options)


def _write_with_header(
    path: Path, change: Callable[[bytes, bytes, bytes], tuple[bytes, ...]], codec: str
) -> None:
    """Writes a file and replaces both sizes and the number of entries in the header of its dictionary page."""
    for seed in count():
        _write(path, seed, compression=codec, write_page_checksum=True)
        content = path.read_bytes()
        # The fields, with the bytes before each of them: the kind (15), two sizes (15 and 15), the checksum (15), and
        # the number of entries in the dictionary's header (3c 15).
        fields, at = [], 4
        for key in (b"\x15", b"\x15", b"\x15", b"\x15", b"\x3c\x15"):
            assert content[at : at + len(key)] == key
            _, end = _read(content, at + len(key))
            fields.append(content[at + len(key) : end])
            at = end
        kind, size, packed, checksum, entries = fields
        if len(checksum) == 5:
            break
    size, packed, entries = change(size, packed, entries)
    header = b"\x15" + kind + b"\x15" + size + b"\x15" + packed + b"\x4c\x15" + entries
    longer = at - 4 - len(header)
    header = header.replace(b"\x15" + kind, b"\x15" + _padded(_value(kind), len(kind) + longer), 1)
    path.write_bytes(content[:4] + header + content[at:])


def _chunk(path: Path) -> Any:
    return pq.read_metadata(path).row_group(0).column(0)


def _number(number: int) -> bytes:
    return varint(number << 1)


def _value(number: bytes) -> int:
    return _read(number, 0)[0] >> 1


def _padded(number: int, length: int = 5) -> bytes:
    """Encodes a nonnegative number in exactly this many bytes."""
    short = _number(number)
    if len(short) == length:
        return short
    return short[:-1] + bytes([short[-1] | 0x80]) + b"\x80" * (length - len(short) - 1) + b"\0"


def _read(content: bytes | bytearray, at: int) -> tuple[int, int]:
    """Decodes a varint; returns the number, and the position after the varint."""
    number = shift = 0
    while True:
        number |= (content[at] & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if content[at - 1] < 0x80:
            return number, at
