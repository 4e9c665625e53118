"""Tests writes to golden tables with V2 checkpoints.

Existing data is kept, and deltalog and `deltalake` read the same rows, even if the log has no other checkpoint than
ours, and no commits before it.

Protocol: "V2 Checkpoint Table Feature", "V2 Spec", "UUID-named checkpoint", "Classic checkpoint".
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deltalog
from tests.conftest import missing
from tests.golden.canonical import rows
from tests.golden.expected import Golden, load

V2 = [golden for golden in load() if "v2Checkpoint" in golden.features and golden.outcome == "read"]


def test_there_are_some() -> None:
    if not load():
        missing("no golden tables")
    assert len(V2) >= 5


def theirs(table: Path) -> pa.Table:
    """Returns the rows as `deltalake` reads them. It uses the query engine, because the pyarrow dataset refuses the
    feature.
    """
    return pa.table(deltalake.DeltaTable(table).scan())


def checkpoint_of(table: Path, version: int) -> Path:
    """Returns the file of the checkpoint of `version`."""
    (found,) = (table / "_delta_log").glob(f"{version:020}.checkpoint.*")
    return found


def leave_only(table: Path, version: int) -> None:
    """Removes the commits that the checkpoint of `version` covers, and all other checkpoints up to this version. The
    log must have a commit after the checkpoint.
    """
    checkpoint = checkpoint_of(table, version)
    for file in checkpoint.parent.iterdir():
        if (
            file.is_file()
            and file.name[:20].isdigit()
            and file != checkpoint
            and int(file.name[:20]) <= version
        ):
            file.unlink()


@pytest.mark.parametrize("golden", V2, ids=lambda golden: golden.name)
def test_appends_a_checkpoint_and_an_overwrite(golden: Golden, tmp_path: Path) -> None:
    table = tmp_path / "t"
    shutil.copytree(golden.table, table)
    opened = deltalog.DeltaTable(table)
    # The values of identity columns are generated and follow the existing values.
    generated = [
        column["name"]
        for column in json.loads(opened.schema().to_json())["fields"]
        if any(key.startswith("delta.identity.") for key in column["metadata"])
    ]
    before, start, configuration = (
        pa.table(opened.to_arrow()).drop_columns(generated),
        opened.version(),
        opened.metadata().configuration,
    )

    def compared(found: pa.Table) -> object:
        for name in generated:
            assert len(set(found[name].to_pylist())) == len(found)
        return rows(found.drop_columns(generated))

    interval = int(configuration.get("delta.checkpointInterval", 10))
    checkpoint = (start // interval + 1) * interval
    for version in range(start + 1, checkpoint + 2):
        assert deltalog.write_deltalake(table, before.slice(0, 2), mode="append") == version
    leave_only(table, checkpoint)
    expected = rows(pa.concat_tables([before, *[before.slice(0, 2)] * (checkpoint + 1 - start)]))
    assert compared(pa.table(deltalog.DeltaTable(table).to_arrow())) == expected
    assert compared(theirs(table)) == expected
    deltalog.write_deltalake(table, before.slice(0, 1), mode="overwrite")
    assert compared(pa.table(deltalog.DeltaTable(table).to_arrow())) == rows(before.slice(0, 1))
    assert compared(theirs(table)) == rows(before.slice(0, 1))


@pytest.mark.parametrize(("policy", "versions"), [("v2", [2]), ("classic", None)])
def test_a_table_gets_the_checkpoints_of_its_policy(
    policy: str, versions: list[int] | None, tmp_path: Path
) -> None:
    configuration = {
        "delta.checkpointPolicy": policy,
        "delta.feature.v2Checkpoint": "supported",
        "delta.checkpointInterval": "2",
    }
    for number in range(4):
        deltalog.write_deltalake(
            tmp_path, pa.table({"id": [number]}), mode="append", configuration=configuration
        )
    protocol = deltalog.DeltaTable(tmp_path).protocol()
    assert (protocol.min_reader_version, protocol.min_writer_version) == (3, 7)
    assert "v2Checkpoint" in (protocol.reader_features or ())
    checkpoint = pq.read_table(checkpoint_of(tmp_path, 2))
    found = (
        [entry["version"] for entry in checkpoint["checkpointMetadata"].to_pylist() if entry]
        if versions
        else None
    )
    assert found == versions
    assert versions or "checkpointMetadata" not in checkpoint.column_names
    leave_only(tmp_path, 2)
    assert rows(pa.table(deltalog.DeltaTable(tmp_path).to_arrow())) == rows(theirs(tmp_path))
    assert deltalog.DeltaTable(tmp_path).count() == 4
