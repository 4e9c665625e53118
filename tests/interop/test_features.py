"""For each table feature that deltalog writes, the JVM connector reads a table with the feature. Protocol: "Table
Features".
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from deltalog import DeltaTable, UnsupportedFeatureError, write_deltalake
from tests.conftest import ROOT
from tests.crafted import CraftedTable, field
from tests.golden.canonical import rows
from tests.interop.checkpoints import leave_newest_checkpoint
from tests.interop.conftest import Jvm

NAMES = ROOT / "crates/deltalog/src/protocol/features/table_feature.rs"
DATA = pa.table({"id": pa.array(range(10), pa.int64()), "p": [f"p{number % 2}" for number in range(10)]})

# A function that creates a table with a certain feature at a path.
# The table has no rows yet, or rows such as `DATA` has.
Make = Callable[[Path, Jvm], object]


def _known() -> list[tuple[str, bool]]:
    """Returns the name of each feature that deltalog knows, and whether readers must also support the feature."""
    found = re.findall(r'^    \w+ = "([\w-]+)", (Writer|ReaderWriter)', NAMES.read_text(), re.MULTILINE)
    return [(name, kind == "ReaderWriter") for name, kind in found]


def _with(**properties: str) -> Make:
    """Returns a function that writes a table with these `delta` properties."""
    configuration = {f"delta.{name}": value for name, value in properties.items()}
    return lambda path, _: write_deltalake(path, DATA, configuration=configuration, partition_by=["p"])


def _declared(columns: str, more: str = "") -> Make:
    """Returns a function that lets the connector create an empty table with these columns."""
    return lambda path, jvm: jvm.run(f"CREATE TABLE delta.`{path}` ({columns}) USING delta {more}")


def _supported(feature: str) -> Make:
    return _declared("id BIGINT, p STRING", f"TBLPROPERTIES ('delta.feature.{feature}' = 'supported')")


def _altered(change: Callable[[DeltaTable], object], **properties: str) -> Make:
    def make(path: Path, jvm: Jvm) -> None:
        _with(**properties)(path, jvm)
        change(DeltaTable(path))

    return make


def _deleted_rows(path: Path, jvm: Jvm) -> None:
    _with(enableDeletionVectors="true")(path, jvm)
    write_deltalake(path, DATA.slice(0, 0), mode="overwrite", predicate="id % 3 = 1")
    vectors = pa.table(DeltaTable(path).files(columns=["deletion_vector"])).column("deletion_vector")
    assert vectors.null_count == 0


def _checkpoint_alone(path: Path, jvm: Jvm) -> None:
    _with(checkpointPolicy="v2")(path, jvm)
    write_deltalake(path, DATA, mode="append")
    DeltaTable(path).create_checkpoint()
    leave_newest_checkpoint(path)


def _widened(feature: str) -> Make:
    def make(path: Path, jvm: Jvm) -> None:
        narrow = pa.table({"id": pa.array([1], pa.int8()), "p": ["p0"]})
        write_deltalake(path, narrow)
        table = DeltaTable(path)
        table.alter.add_feature(feature)
        table.alter.set_table_properties({"delta.enableTypeWidening": "true"})
        table.alter.widen_column("id", "long")

    return make


def _times_without_zone(path: Path, jvm: Jvm) -> None:
    times = pa.array(range(10), pa.timestamp("us"))
    write_deltalake(path, DATA.append_column("t", times))


MADE: dict[str, Make] = {
    "appendOnly": _with(appendOnly="true"),
    "invariants": _altered(lambda table: table.alter.set_column_not_null("id")),
    "checkConstraints": _altered(lambda table: table.alter.add_constraint({"positive": "id >= 0"})),
    "changeDataFeed": _with(enableChangeDataFeed="true"),
    "generatedColumns": _declared("id BIGINT, p STRING, g BIGINT GENERATED ALWAYS AS (id * 2)"),
    "columnMapping": _altered(
        lambda table: table.alter.rename_column("id", "the id"), **{"columnMapping.mode": "name"}
    ),
    "identityColumns": _declared("id BIGINT, p STRING, number BIGINT GENERATED ALWAYS AS IDENTITY"),
    "allowColumnDefaults": _declared(
        "id BIGINT, p STRING, d STRING DEFAULT 'none'",
        "TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')",
    ),
    "deletionVectors": _deleted_rows,
    "rowTracking": _with(enableRowTracking="true"),
    "timestampNtz": _times_without_zone,
    "domainMetadata": _altered(lambda table: table.alter.add_feature("domainMetadata")),
    "v2Checkpoint": _checkpoint_alone,
    # The field ids in the files are compared in `test_iceberg`.
    "icebergCompatV1": _with(enableIcebergCompatV1="true"),
    "icebergCompatV2": _with(enableIcebergCompatV2="true"),
    "icebergCompatV3": _with(enableIcebergCompatV3="true"),
    "materializePartitionColumns": _with(enableMaterializePartitionColumnsFeature="true"),
    "clustering": _declared("id BIGINT, p STRING", "CLUSTER BY (id)"),
    "vacuumProtocolCheck": _altered(lambda table: table.alter.add_feature("vacuumProtocolCheck")),
    "inCommitTimestamp": _with(enableInCommitTimestamps="true"),
    "typeWidening": _widened("typeWidening"),
    "typeWidening-preview": _widened("typeWidening-preview"),
    # The values of variants are compared in `test_variants`.
    "variantType": _supported("variantType"),
    "variantType-preview": _supported("variantType-preview"),
    "variantShredding": _supported("variantShredding"),
    "variantShredding-preview": _supported("variantShredding-preview"),
    "checkpointProtection": _supported("checkpointProtection"),
}

# deltalog writes these features, but this version of the connector does not know them.
UNKNOWN_TO_THEM = {"collations", "collations-preview"}


def _is_written(path: Path, name: str, is_readers: bool) -> bool:
    """Returns whether deltalog can add rows to a table whose protocol has the feature."""
    of_both, of_writers = ([name], []) if is_readers else ([], [name])
    CraftedTable(path, [field("id", "long")], features=of_both, writer_features=of_writers).commit()
    try:
        write_deltalake(path, pa.table({"id": [1]}), mode="append")
    except UnsupportedFeatureError:
        return False
    return True


def test_each_feature_that_is_written_has_a_table_here(tmp_path: Path) -> None:
    known = _known()
    assert len(known) > 30
    written = {name for name, is_readers in known if _is_written(tmp_path / name, name, is_readers)}
    assert written == set(MADE) | UNKNOWN_TO_THEM


@pytest.mark.parametrize("feature", MADE)
def test_they_read_a_table_with_the_feature(jvm: Jvm, tmp_path: Path, feature: str) -> None:
    """deltalog adds rows to a table with the feature, and the connector reads the table. Then the connector adds a row,
    and deltalog reads the table.
    """
    MADE[feature](tmp_path, jvm)
    key = "the id" if feature == "columnMapping" else "id"
    more = pa.table({key: pa.array([100, 101], pa.int64()), "p": ["p0", None]})
    write_deltalake(tmp_path, more, mode="append")
    table = f"delta.`{tmp_path}`"
    ours = rows(pa.table(DeltaTable(tmp_path).to_arrow()))
    assert len(ours) >= 2
    ((_, state),) = jvm.versions(tmp_path, [DeltaTable(tmp_path).version()])
    assert rows(jvm.query(f"SELECT * FROM {table}")) == ours
    protocol = DeltaTable(tmp_path).protocol()
    assert protocol.writer_features is None or feature in protocol.writer_features
    assert state["protocol"]["protocol"]["minWriterVersion"] == protocol.min_writer_version
    jvm.run(f"INSERT INTO {table} (`{key}`, p) VALUES (200, 'theirs')")
    assert rows(pa.table(DeltaTable(tmp_path).to_arrow())) == rows(jvm.query(f"SELECT * FROM {table}"))
    assert DeltaTable(tmp_path).count() == len(ours) + 1
