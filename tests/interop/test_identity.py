"""The JVM connector and deltalog generate values of the same identity columns (PROTOCOL, "Identity Columns")."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from deltalog import DeltaTable, write_deltalake
from tests.interop.conftest import Jvm


@pytest.mark.parametrize(("start", "step"), [(5, -3), (1, 1)])
def test_both_continue_identity_values_of_the_other(tmp_path: Path, jvm: Jvm, start: int, step: int) -> None:
    path = tmp_path / "t"
    identity = f"GENERATED ALWAYS AS IDENTITY (START WITH {start} INCREMENT BY {step})"
    jvm.run(f"CREATE TABLE delta.`{path}` (id BIGINT {identity}, n BIGINT) USING delta")
    known: list[int] = []
    for turn in range(4):
        if turn % 2:
            jvm.run(f"INSERT INTO delta.`{path}` (n) SELECT id FROM range(3)")
        else:
            write_deltalake(path, pa.table({"n": [1, 2, 3]}), mode="append")
        found = DeltaTable(path).to_pyarrow_table(columns=["id"])["id"].to_pylist()
        assert len(set(found)) == len(found) == 3 * (turn + 1)
        new = sorted(set(found) - set(known), reverse=step < 0)
        assert all((value - start) % step == 0 and (value - start) // step >= 0 for value in new)
        assert all((new[0] - value) * step > 0 for value in known)
        known = found
