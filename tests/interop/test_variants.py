"""deltalog and the JVM connector read each other's variants."""

from __future__ import annotations

from pathlib import Path

from deltalog import DeltaTable, write_deltalake
from tests import variants
from tests.interop.conftest import Jvm


def test_variants_of_both_engines(tmp_path: Path, jvm: Jvm) -> None:
    path = tmp_path / "t"
    write_deltalake(path, variants.table())
    shown = "to_json(v) AS v, to_json(s.v) AS s, to_json(l[1]) AS l, to_json(m['k']) AS m"
    found = jvm.query(f"SELECT {shown} FROM delta.`{path}` ORDER BY id").to_pylist()
    assert [set(row.values()) for row in found] == [{text} for text in variants.TEXTS]
    jvm.run(
        f"INSERT INTO delta.`{path}` SELECT id + 10, v, named_struct('v', s.v), l, m FROM delta.`{path}` WHERE id < 3"
    )
    rows = DeltaTable(path).to_pyarrow_table().sort_by("id").to_pylist()
    assert [row["v"] for row in rows] == [*variants.VALUES, *variants.VALUES[:3]]
    assert [row["m"] for row in rows][-1] == [("k", variants.VALUES[2])]
