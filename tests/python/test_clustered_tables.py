"""Files that are written to clustered tables (PROTOCOL, "Writer Requirements for Clustered Table")."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa

from deltalog import DeltaTable, write_deltalake
from tests.crafted import CraftedTable, field


def last_commit(path: Path) -> list[dict[str, Any]]:
    log = sorted((path / "_delta_log").glob("*.json"))
    return [json.loads(line) for line in log[-1].read_text().splitlines()]


def test_files_have_statistics_of_the_clustering_columns(tmp_path: Path) -> None:
    physical = {"delta.columnMapping.id": 2, "delta.columnMapping.physicalName": "col-b"}
    fields = [
        field("a", "long", {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "col-a"}),
        field("b", "string", physical),
    ]
    table = CraftedTable(
        tmp_path / "t",
        fields,
        features=["columnMapping"],
        writer_features=["clustering", "domainMetadata"],
        configuration={"delta.columnMapping.mode": "name", "delta.dataSkippingNumIndexedCols": "0"},
    )
    table.commit()
    (tmp_path / "t" / "_delta_log" / f"{1:020}.json").write_text(
        json.dumps(
            {
                "domainMetadata": {
                    "domain": "delta.clustering",
                    "configuration": json.dumps({"clusteringColumns": [["col-b"]]}),
                    "removed": False,
                }
            }
        )
    )
    for mode in ("append", "overwrite"):
        write_deltalake(str(tmp_path / "t"), pa.table({"a": [1, 2], "b": ["x", "y"]}), mode=mode)
        (add,) = [action["add"] for action in last_commit(tmp_path / "t") if "add" in action]
        stats = json.loads(add["stats"])
        assert (stats["minValues"], stats["maxValues"]) == ({"col-b": "x"}, {"col-b": "y"})
        assert stats["nullCount"] == {"col-b": 0}
        # Writes do not cluster rows; OPTIMIZE does.
        assert add.get("clusteringProvider") is None
    newest = DeltaTable(tmp_path / "t")
    assert newest.clustering_columns() == ["b"]
    assert pa.table(newest.to_arrow()).num_rows == 2
