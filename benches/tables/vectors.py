"""Writes deletion vectors. The code follows the protocol and shares nothing with deltalog.

Protocol: "Deletion Vector Format", "Deletion Vector File Storage Format", "Deletion Vector Descriptor
Schema".
"""

from __future__ import annotations

import struct
import uuid
import zlib
from pathlib import Path
from typing import Any

import numpy as np

_MAGIC = 1681511377
_NO_RUNS = 12346
_MOST_IN_ARRAY = 4096
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"

Rows = np.ndarray[Any, np.dtype[np.int64]]


def bitmap(rows: Rows) -> bytes:
    """Encodes ascending, distinct row numbers as the protocol's magic number followed by a portable 64-bit Roaring
    bitmap.
    """
    keys = np.unique(rows >> 32)
    buckets = [struct.pack("<I", key) + _roaring(rows[rows >> 32 == key] & 0xFFFFFFFF) for key in keys]
    return struct.pack("<iq", _MAGIC, len(keys)) + b"".join(buckets)


def write(table: Path, vectors: list[Rows]) -> list[dict[str, Any]]:
    """Writes one file with a deletion vector for each entry, and returns the descriptors of the vectors."""
    name = uuid.UUID("7d1c6e2a-0000-4000-8000-0000000000d7")
    content = bytearray(b"\x01")
    descriptors = []
    for rows in vectors:
        bytes_ = bitmap(rows)
        descriptors.append(
            {
                "storageType": "u",
                "pathOrInlineDv": z85(name.bytes),
                "offset": len(content),
                "sizeInBytes": len(bytes_),
                "cardinality": len(rows),
            }
        )
        content += struct.pack(">I", len(bytes_)) + bytes_ + struct.pack(">I", zlib.crc32(bytes_))
    (table / f"deletion_vector_{name}.bin").write_bytes(content)
    return descriptors


def z85(data: bytes) -> str:
    """Encodes bytes as the protocol's base 85. Their length must be a multiple of four."""
    words = (int.from_bytes(data[start : start + 4], "big") for start in range(0, len(data), 4))
    return "".join(_Z85[word // 85**power % 85] for word in words for power in (4, 3, 2, 1, 0))


def _roaring(rows: Rows) -> bytes:
    """Encodes a 32-bit bitmap without run containers."""
    keys, starts = np.unique(rows >> 16, return_index=True)
    parts = np.split(rows & 0xFFFF, starts[1:])
    containers = [_container(part) for part in parts]
    head = struct.pack("<II", _NO_RUNS, len(keys))
    head += b"".join(struct.pack("<HH", key, len(part) - 1) for key, part in zip(keys, parts, strict=True))
    first = len(head) + 4 * len(keys)
    offsets = np.cumsum([first, *(len(container) for container in containers[:-1])])
    return head + offsets.astype("<u4").tobytes() + b"".join(containers)


def _container(low: Rows) -> bytes:
    if len(low) <= _MOST_IN_ARRAY:
        return low.astype("<u2").tobytes()
    bits = np.zeros(1 << 16, np.uint8)
    bits[low] = 1
    return np.packbits(bits, bitorder="little").tobytes()
