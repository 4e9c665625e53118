"""Random statements have the same effect whether deltalog or the JVM connector executes them.

Both engines execute the same statements on their own copies of a table, and must refuse the same statements. The rows
must be equal after each step, and the change data feeds and metrics of all versions at the end.

`DELTALOG_STATEMENTS=100-199` plays these seeds instead of the few that CI plays. `12` is one seed, and `12-without-3-7`
is seed 12 without its steps 3 and 7.
"""

from __future__ import annotations

import os
import random
import re
import shutil
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from deltalog import DeltaTable
from tests.interop.conftest import Jvm
from tests.interop.random_statements.statements import draw_insert, draw_statement
from tests.interop.random_statements.tables import FEED, RandomTable, draw_table
from tests.interop.statements import ROW_METRICS, info
from tests.python.place import actions

LENGTH = 6
ASKED = os.environ.get("DELTALOG_STATEMENTS", "")
COMMAND = ".venv/bin/python -m pytest tests/interop/random_statements"

Rows = Counter[tuple[str, ...]]


def names(default: range) -> list[str]:
    """Returns the names of the sequences to play."""
    found = re.fullmatch(r"(\d+)-(\d+)", ASKED)
    if found:
        return [str(seed) for seed in range(int(found[1]), int(found[2]) + 1)]
    return [ASKED] if ASKED else [str(seed) for seed in default]


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.thorough] * (at > 0)) for at, name in enumerate(names(range(2)))],
)
def test_statements_do_what_the_connector_does(
    name: str, tmp_path: Path, spark: SparkSession, jvm: Jvm
) -> None:
    """If the seed was requested, a failing sequence is reduced to a few steps."""
    seed, _, skipped = name.partition("-without-")
    played = Sequence(int(seed), frozenset(int(number) for number in skipped.split("-") if number))
    try:
        played.play(tmp_path / "0", spark, jvm)
    except AssertionError as error:
        if ASKED:
            played, error = shrink(played, error, tmp_path, spark, jvm)
        told = f"{error}\n\n" + "\n".join(played.steps)
        raise AssertionError(
            f"{told}\n\nrun it again: DELTALOG_STATEMENTS={played.name} {COMMAND}"
        ) from error


def shrink(
    failed: Sequence, error: AssertionError, directory: Path, spark: SparkSession, jvm: Jvm
) -> tuple[Sequence, AssertionError]:
    """Leaves out every step without which the sequence still fails."""
    for number in reversed(range(LENGTH)):
        smaller = Sequence(failed.seed, failed.skipped | {number})
        try:
            smaller.play(directory / f"{number + 1}", spark, jvm)
        except AssertionError as found:
            failed, error = smaller, found
    return failed, error


@dataclass
class Sequence:
    """A table and a sequence of statements, which a seed determines."""

    seed: int
    skipped: frozenset[int] = frozenset()
    steps: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        skipped = ["without", *map(str, sorted(self.skipped))] if self.skipped else []
        return "-".join([str(self.seed), *skipped])

    def play(self, directory: Path, spark: SparkSession, jvm: Jvm) -> None:
        """Executes the steps on both engines. Each step has its own random numbers, so that leaving out one step does
        not change the others.
        """
        rng = _seeded(str(self.seed))
        table = draw_table(rng)
        ours, theirs = directory / "ours", directory / "theirs"
        directory.mkdir()
        self.steps.append(table.create("{table}"))
        spark.sql(table.create(f"deltalog.`{ours}`"))
        shutil.copytree(ours, theirs)
        versions = [(0, 0)]
        for number in range(-2, LENGTH):
            rng = _seeded(f"{self.seed} {number}")
            statement = draw_insert(rng, table) if number < 0 else draw_statement(rng, table)
            if number in self.skipped:
                continue
            self.steps.append(f"{number}: {statement}")
            ours_failed = _outcome(lambda sql=statement: spark.sql(sql.format(table=f"deltalog.`{ours}`")))
            theirs_failed = jvm.attempt(statement.format(table=f"delta.`{theirs}`"))
            assert (ours_failed is None) == (theirs_failed is None), f"{ours_failed}\n\n{theirs_failed}"
            _assert_equal("rows", rows(ours), rows(theirs))
            versions.append((DeltaTable(ours).version(), DeltaTable(theirs).version()))
        self._compare(table, ours, theirs, versions, jvm)

    def _compare(
        self, table: RandomTable, ours: Path, theirs: Path, versions: list[tuple[int, int]], jvm: Jvm
    ) -> None:
        read = jvm.query(f"SELECT * FROM delta.`{ours}`")
        _assert_equal("rows that the connector reads", as_rows(read), rows(theirs))
        for before, after in pairwise(versions):
            made = [now - then for then, now in zip(before, after, strict=True)]
            assert set(made) <= {0, 1}, f"{made} versions"
            if made != [1, 1]:
                # If a statement changes nothing, an engine may or may not create a version.
                for path, version in [(ours, after[0])] * made[0] + [(theirs, after[1])] * made[1]:
                    assert not {"add", "remove", "cdc"} & {
                        key for line in actions(path, version) for key in line
                    }
                continue
            if table.properties[FEED] == "true":
                found, wanted = changes(ours, after[0]), changes(theirs, after[1])
                _assert_equal(f"the feed of version {after[0]}", found, wanted)
            mine, other = info(ours, after[0]), info(theirs, after[1])
            for name in ROW_METRICS:
                found, wanted = mine["operationMetrics"].get(name), other["operationMetrics"].get(name)
                assert found == wanted, f"version {after[0]}: {name} is {found}, not {wanted}"


def _seeded(text: str) -> random.Random:
    return random.Random(text)  # noqa: S311 (no secret)


def _outcome(run: Any) -> str | None:
    """Executes a statement. Returns its error if it fails."""
    try:
        run()
    except Exception as error:  # noqa: BLE001 (compared)
        return str(error)
    return None


def rows(path: Path) -> Rows:
    return as_rows(pa.table(DeltaTable(path).to_arrow()))


def changes(path: Path, version: int) -> Rows:
    table = pa.table(DeltaTable(path).load_cdf(version, version))
    return as_rows(table.drop_columns(["_commit_version", "_commit_timestamp"]))


def as_rows(table: pa.Table) -> Rows:
    """Returns rows as text, because NaN does not equal itself."""
    return Counter(tuple(map(repr, row.values())) for row in table.to_pylist())


def _assert_equal(what: str, ours: Rows, theirs: Rows) -> None:
    if ours != theirs:
        raise AssertionError(
            f"{what} differ: only deltalog has {sorted((ours - theirs).elements())}, "
            f"only the connector {sorted((theirs - ours).elements())}"
        )
