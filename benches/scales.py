"""The tables of several cases, by scale."""

from __future__ import annotations

from collections.abc import Mapping

from benches.tables import Checkpointed, Data, Littered, Plain, TableSpec

MEBI = 1 << 20

MANY_FILES: Mapping[str, TableSpec] = {
    "small": Checkpointed(10_000),
    "medium": Checkpointed(100_000),
    "full": Checkpointed(1_000_000),
}
V2_FILES: Mapping[str, TableSpec] = {
    "small": Checkpointed(10_000, v2=True),
    "medium": Checkpointed(100_000, v2=True),
    "full": Checkpointed(1_000_000, v2=True),
}
LITTERED: Mapping[str, TableSpec] = {
    "small": Littered(10_000),
    "medium": Littered(100_000),
    "full": Littered(1_000_000),
}
PLAIN: Mapping[str, TableSpec] = {
    "small": Plain(1_000),
    "medium": Plain(10_000),
    "full": Plain(100_000),
}
ROWS: Mapping[str, TableSpec] = {"small": Data(400_000), "medium": Data(2_000_000), "full": Data(8_000_000)}
SMALL_FILES: Mapping[str, TableSpec] = {
    "small": Data(400_000, files=50),
    "medium": Data(2_000_000, files=250),
    "full": Data(8_000_000, files=1_000),
}
ROWS_OF_PARTITIONS: Mapping[str, TableSpec] = {
    "small": Data(40_000),
    "medium": Data(200_000),
    "full": Data(1_000_000),
}
DELETED_ROWS: Mapping[str, TableSpec] = {
    scale: Data(spec.rows, deleted_percent=10) for scale, spec in ROWS.items() if isinstance(spec, Data)
}
