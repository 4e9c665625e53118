"""Changes data files, checkpoints and deletion vectors in ways that pass the first checks: the log, the footer and the
checksum still fit the file.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benches.tables.vectors import z85
from tests.hostile.place import Place

MAGIC = 1681511377
# Bytes that a reader may interpret as a size, a count or an offset.
EDGES = (0, 1, 2**15, 2**16, 2**24, 2**31 - 1, 2**31, 2**32 - 1)


def change_footer(random: Random, place: Place) -> None:
    """Changes bytes between the last page and the end of a Parquet file."""
    file = _parquet_file(random, place)
    content = bytearray(file.read_bytes()) if file else bytearray()
    if file is None or len(content) < 12:
        return
    start = max(4, len(content) - 8 - int.from_bytes(content[-8:-4], "little"))
    footer = content[start:-8]
    for _ in range(random.randint(1, 4)):
        _change_bytes(random, footer)
    _replace(random, place, file, bytes(content[:start] + footer) + struct.pack("<I", len(footer)) + b"PAR1")


def replace_data(random: Random, place: Place) -> None:
    """Replaces a data file or a checkpoint with a Parquet file of a different shape."""
    file = _parquet_file(random, place)
    if file is None:
        return
    options: dict[str, Any] = {
        "compression": random.choice(("none", "snappy", "zstd", "gzip")),
        "use_dictionary": random.randrange(2) == 0,
        "write_statistics": random.randrange(4) > 0,
        "data_page_version": random.choice(("1.0", "2.0")),
        "row_group_size": random.choice((1, 7, 1000)),
        "use_deprecated_int96_timestamps": random.randrange(4) == 0,
    }
    written = pa.BufferOutputStream()
    try:
        pq.write_table(_other_rows(random, file), written, **options)
    except pa.ArrowException:
        return  # a shape that pyarrow cannot write
    _replace(random, place, file, written.getvalue().to_pybytes())


def change_vector(random: Random, place: Place) -> None:
    """Replaces a deletion vector with other bytes that have the right size and checksum, in its file or in the log."""
    data = _vector(random)
    files = [
        file
        for file in sorted(place.table.rglob("deletion_vector_*.bin"))
        if file.is_file() and not file.is_symlink()
    ]
    if files and random.randrange(2):
        content = b"\x01" + struct.pack(">I", len(data)) + data + struct.pack(">I", zlib.crc32(data))
        random.choice(files).write_bytes(content)
        sizes: dict[str, Any] = {"sizeInBytes": len(data), "offset": 1}
    else:
        padded = data + b"\0" * (-len(data) % 4)
        sizes = {"storageType": "i", "pathOrInlineDv": z85(padded), "sizeInBytes": len(data)}

    def change(add: dict[str, Any]) -> None:
        if not isinstance(add.get("deletionVector"), dict) and "storageType" not in sizes:
            return
        former = add.get("deletionVector")
        vector = (
            dict(former) if isinstance(former, dict) else {"cardinality": random.choice((1, 3, 2**40, -1))}
        )
        if "storageType" in sizes:
            vector.pop("offset", None)
        add["deletionVector"] = {**vector, **sizes}

    _change_adds(place, change)


def _vector(random: Random) -> bytes:
    """Returns a serialized bitmap with one container per bucket, in which a few bytes may be wrong."""
    found = bytearray(struct.pack("<IQ", MAGIC, random.choice((0, 1, 2, 1, 1, 2**31, 2**63))))
    for key in range(random.choice((1, 2))):
        kind = random.randrange(3)
        rows = sorted(random.sample(range(30), random.randint(1, 10)))
        if kind == 0:
            found += struct.pack("<III", key, 12346, 1)
            found += struct.pack("<HHI", 0, len(rows) - 1, 16)
            found += struct.pack(f"<{len(rows)}H", *rows)
        elif kind == 1:
            found += struct.pack("<II", key, 12347)
            found += struct.pack("<BHH", 1, 0, 65535)
            found += struct.pack("<HHH", 1, random.choice((0, 65535)), random.choice((0, 65535)))
        else:
            found += struct.pack("<III", key, 12346, 1)
            found += struct.pack("<HHI", 0, 65535, 16) + b"\xff" * 8192
    for _ in range(random.choice((0, 0, 1, 3))):
        _change_bytes(random, found)
    return bytes(found)


def _change_bytes(random: Random, content: bytearray) -> None:
    at = random.randrange(len(content) + 1)
    kind = random.randrange(6)
    if kind == 0:
        content[at : at + 1] = bytes([random.randrange(256)])
    elif kind == 1:
        del content[at : at + random.randint(1, 30)]
    elif kind == 2:
        content[at:at] = content[at : at + random.randint(1, 60)] * random.randint(1, 20)
    elif kind == 3:
        content[at : at + 4] = random.choice(EDGES).to_bytes(4, random.choice(("little", "big")))
    elif kind == 4:
        # A number in Thrift's compact protocol, in zigzag encoding.
        content[at : at + 1] = varint(random.choice((*EDGES, 2**63, 2**64 - 1)))
    else:
        # These bytes are the first fields of nested structs.
        content[at:at] = bytes([random.choice((0x1C, 0x19, 0xFC, 0x15))]) * random.choice((1, 50, 5000))


def varint(number: int) -> bytes:
    """Encodes a number as in Thrift's compact protocol."""
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


def _other_rows(random: Random, file: Path) -> pa.Table:
    """Returns random rows with the columns of `file`, some with a different type. If the file cannot be read, the
    columns are invented.
    """
    try:
        rows = pq.read_table(file, partitioning=None)
        # An earlier mutation may have damaged a name, which is then not UTF-8.
        [field.name for field in rows.schema]
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        rows = pa.table({"n": pa.array(range(20), pa.int64())})
    for _ in range(random.randint(1, 3)):
        if rows.num_columns == 0:
            break
        at = random.randrange(rows.num_columns)
        kind = random.randrange(8)
        name, count = rows.column_names[at], rows.num_rows
        if kind == 0:
            rows = rows.remove_column(at)
        elif kind == 1:
            rows = rows.append_column(random.choice((name, name.upper(), "")), rows.column(at))
        elif kind == 2:
            rows = rows.slice(0, random.choice((0, 1)))
        elif kind == 3:
            rows = pa.concat_tables([rows] * 3)
        elif kind == 4 and pa.types.is_struct(rows.schema.field(at).type):
            parts = pa.array(
                [{"metadata": _bytes(random), "value": _bytes(random)} for _ in range(count)],
                pa.struct([("metadata", pa.binary()), ("value", pa.binary())]),
            )
            rows = rows.set_column(at, name, parts)
        else:
            rows = rows.set_column(at, name, random.choice(_COLUMNS)(random, count))
    return rows


def _bytes(random: Random) -> bytes:
    """Returns random bytes that begin like the parts of a variant (Parquet's `VariantEncoding.md`)."""
    start = random.choice(
        (b"\x01\x00\x00", b"\x01\x01\x00\x01a", b"\xc1\xff\xff\xff\xff", b"", b"\x03\xff", b"\x02\x01")
    )
    return start + random.randbytes(random.choice((0, 1, 30))) + b"\x03\x01\x00\x00" * random.choice((0, 200))


def _nested(depth: int, count: int) -> pa.Array:
    found = pa.array([1] * count, pa.int64())
    for _ in range(depth):
        found = pa.ListArray.from_arrays(pa.array(range(count + 1), pa.int32()), found)
    return found


_COLUMNS: tuple[Callable[[Random, int], pa.Array], ...] = (
    lambda random, count: pa.array([random.choice(("", "1", "é" * 9, "a" * 70_000))] * count),
    lambda random, count: pa.array([random.choice((-(2**63), 2**63 - 1, 0))] * count, pa.int64()),
    lambda random, count: pa.array([random.choice((-(2**31), 2**31 - 1))] * count, pa.int32()),
    lambda random, count: pa.array([random.choice((float("nan"), float("-inf"), 1e308))] * count),
    lambda random, count: pa.nulls(count, pa.int64()),
    lambda random, count: pa.array([random.randrange(2**62)] * count, pa.timestamp("us", "UTC")),
    lambda random, count: pa.array([random.randbytes(40)] * count),
    lambda random, count: pa.array(
        [random.choice((None, 10**37))] * count, pa.decimal128(38, random.choice((0, 38)))
    ),
    lambda random, count: _nested(random.choice((1, 3, 60)), count),
    lambda random, count: pa.array([{"a": {"b": None}}] * count),
    lambda random, count: pa.array([[("k", 1), ("k", 2)]] * count, pa.map_(pa.string(), pa.int64())),
)


def _parquet_file(random: Random, place: Place) -> Path | None:
    files = [
        file for file in sorted(place.table.rglob("*.parquet")) if file.is_file() and not file.is_symlink()
    ]
    return random.choice(files) if files else None


def _replace(random: Random, place: Place, file: Path, content: bytes) -> None:
    """Replaces a file, and usually also the size in the log, which a reader checks first."""
    file.write_bytes(content)
    if random.randrange(8) == 0:
        return

    def change(add: dict[str, Any]) -> None:
        if str(add.get("path", "")).rpartition("/")[2] == file.name:
            add["size"] = len(content)

    _change_adds(place, change)


def _change_adds(place: Place, change: Callable[[dict[str, Any]], None]) -> None:
    """Changes the `add` actions of all commits."""
    for commit in sorted((place.table / "_delta_log").glob("*.json")):
        if not commit.is_file() or commit.is_symlink() or ".checkpoint." in commit.name:
            continue
        lines = commit.read_text(errors="surrogateescape").splitlines()
        for at, line in enumerate(lines):
            try:
                action = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(action, dict) and isinstance(action.get("add"), dict):
                change(action["add"])
                lines[at] = json.dumps(action)
        commit.write_text("\n".join(lines), errors="surrogateescape")
