"""The JVM connector's MERGE gives the results that `tests/merge_cases.py` expects of ours."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.interop.conftest import Jvm
from tests.merge_cases import CASES, Case, content, statement

# These cases have obvious results, and each takes seconds, so they are skipped.
CLEAR = (
    "update",
    "delete",
    "insert",
    "the first clause counts",
    "names in another case",
    "several: two deletes",
    "several: delete and insert",
    "a condition without an equality",
    "a condition that is always true",
    "a key with another type",
    "a key that is computed",
    "two keys",
    "an empty target",
    "a range",
    "a list of values",
    "a common table expression",
    "ordered rows",
    "a nondeterministic ON",
    "only the last clause of a kind may lack a condition",
    "dates",
    "bytes",
    "booleans",
    "timestamps",
    "a struct by the names of its fields",
)
# The connector refuses these cases, although Spark's own parser and analyzer accept them.
REFUSED = (
    "a subquery as condition",
    "a correlated subquery as value",
    "a subquery in ON",
    "a subquery over the target",
    "by source: a subquery",
)


@pytest.fixture(scope="module")
def targets(jvm: Jvm, tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Path]:
    """Creates the target table of each case."""
    directory = tmp_path_factory.mktemp("targets")
    made: dict[tuple[str, str], Path] = {}
    for case in CASES.values():
        if (case.columns, case.rows) not in made:
            path = directory / str(len(made))
            jvm.run(f"CREATE TABLE delta.`{path}` ({case.columns}) USING delta")
            if case.rows:
                jvm.run(f"INSERT INTO delta.`{path}` VALUES {case.rows}")
            made[case.columns, case.rows] = path
    return made


def outcome(jvm: Jvm, case: Case, table: str) -> list[tuple[object, ...]]:
    jvm.run(statement(case, table))
    return [tuple(row.values()) for row in jvm.query(content(case, table)).to_pylist()]


@pytest.mark.parametrize("name", [name for name in CASES if name not in (*CLEAR, *REFUSED)])
def test_merge(jvm: Jvm, tmp_path: Path, targets: dict[tuple[str, str], Path], name: str) -> None:
    case = CASES[name]
    path = tmp_path / "table"
    shutil.copytree(targets[case.columns, case.rows], path)
    table = f"delta.`{path}`"
    if isinstance(case.expected, str):
        with pytest.raises(AssertionError, match=case.expected):
            outcome(jvm, case, table)
        return
    assert sorted(outcome(jvm, case, table), key=str) == sorted(case.expected, key=str)
