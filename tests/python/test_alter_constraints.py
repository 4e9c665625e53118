"""Constraints are added and dropped (PROTOCOL, "CHECK Constraints")."""

from __future__ import annotations

from pathlib import Path

import deltalake
import pyarrow as pa
import pytest

from deltalog import DeltaTable, write_deltalake
from deltalog.errors import CommitConflictError, InvalidArgumentError
from tests.python.alter_support import action, created, refused
from tests.python.interfering import overtaken


def numbers(*values: int | None) -> pa.Table:
    return pa.table({"id": pa.array(values, pa.int64())})


def test_a_constraint_binds_all_rows(tmp_path: Path) -> None:
    table = created(tmp_path, numbers(1, 2))
    assert table.alter.add_constraint({"Positive": "id > 0"}) == 1
    assert table.metadata().configuration == {"delta.constraints.positive": "id > 0"}
    protocol = table.protocol()
    assert (protocol.min_reader_version, protocol.min_writer_version) == (1, 7)
    assert set(protocol.writer_features or []) == {"appendOnly", "invariants", "checkConstraints"}
    info = action(tmp_path, 1, "commitInfo")
    assert (info["operation"], info["isolationLevel"]) == ("ADD CONSTRAINT", "Serializable")
    assert info["operationParameters"] == {"name": "Positive", "expr": "id > 0"}
    with refused(tmp_path, InvalidArgumentError, r"violates the constraint 'positive' \(id > 0\): id = 0"):
        write_deltalake(tmp_path, numbers(0), mode="append")
    with pytest.raises(Exception, match="validation check"):
        deltalake.write_deltalake(tmp_path, numbers(0), mode="append")
    write_deltalake(tmp_path, numbers(3), mode="append")
    table.update_incremental()
    with refused(tmp_path, InvalidArgumentError, r"has a constraint 'POSITIVE' already \(id > 0\)"):
        table.alter.add_constraint({"POSITIVE": "id > 1"})
    assert table.alter.drop_constraint("POSITIVE") == 3
    assert action(tmp_path, 3, "commitInfo")["operationParameters"] == {
        "name": "POSITIVE",
        "expr": "id > 0",
        "existed": "true",
    }
    write_deltalake(tmp_path, numbers(0), mode="append")
    with refused(tmp_path, InvalidArgumentError, "no constraint 'positive'"):
        table.alter.drop_constraint("positive")
    assert table.alter.drop_constraint("positive", raise_if_not_exists=False) == 4, "nothing is committed"


@pytest.mark.parametrize(
    ("condition", "match"),
    [
        ("id > 1", r"violates the constraint 'c' \(id > 1\): id = 1 .*WHERE \(id > 1\) IS NOT TRUE"),
        ("id <> 2", "id = 2"),
        ("id % 2", "not boolean"),
        ("nope > 1", "nope"),
        ("id >", "'c'"),
        ("soundex(id) = 'X'", "soundex.*; use the operators and functions of FUNCTIONS.md"),
        ("NULL", "violates"),
    ],
)
def test_rows_and_conditions_that_do_not_fit_are_refused(tmp_path: Path, condition: str, match: str) -> None:
    """ "a writer must validate the existing data in the table" """
    table = created(tmp_path, numbers(1, 2))
    with refused(tmp_path, InvalidArgumentError, match):
        table.alter.add_constraint({"c": condition})


def test_null_violates_a_constraint(tmp_path: Path) -> None:
    table = created(tmp_path, numbers(1, None))
    with refused(tmp_path, InvalidArgumentError, "id = NULL"):
        table.alter.add_constraint({"c": "id > 0"})


def test_a_constraint_of_partition_columns_and_of_many_files(tmp_path: Path) -> None:
    data = pa.table({"p": ["a", "b"], "id": [1, 2]})
    table = created(tmp_path, data, partition_by=["p"], configuration={"delta.columnMapping.mode": "id"})
    write_deltalake(tmp_path, data, mode="append")
    table.update_incremental()
    with refused(tmp_path, InvalidArgumentError, "p = b"):
        table.alter.add_constraint({"c": "p = 'a'"})
    assert table.alter.add_constraint({"c": "p IN ('a', 'b') AND id < 3"}) == 2


def test_a_constraint_conflicts_with_rows_that_were_not_checked(tmp_path: Path) -> None:
    table = overtaken(created(tmp_path, numbers(1)))
    write_deltalake(tmp_path, numbers(-1), mode="append")
    with refused(tmp_path, CommitConflictError, "version 1"):
        table.alter.add_constraint({"c": "id > 0"})


def test_rows_that_were_not_checked_conflict_with_a_constraint(tmp_path: Path) -> None:
    stale = created(tmp_path, numbers(1))
    DeltaTable(tmp_path).alter.add_constraint({"c": "id > 0"})
    with pytest.raises(InvalidArgumentError, match="violates the constraint 'c'"):
        write_deltalake(stale, numbers(-1), mode="append")
    assert DeltaTable(tmp_path).count() == 1
