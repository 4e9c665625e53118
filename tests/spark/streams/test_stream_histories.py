"""Streams read each row exactly once, for random histories of tables, with random limits and restarts."""

import random
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from deltalog import DeltaTable, Field, write_deltalake
from tests.spark.streams.queries import batches, stream


class History:
    """A table that changes at random, and the rows that a stream must read from it."""

    def __init__(self, path: Path, chance: random.Random) -> None:
        self.path, self.chance = str(path), chance
        self.is_partitioned = chance.random() < 0.5
        self.has_more = False
        self.next_id = 0
        self.live: set[int] = set()
        self.appended: set[int] = set()
        self.configuration = {"delta.enableDeletionVectors": str(chance.random() < 0.5).lower()}
        if chance.random() < 0.5:
            self.configuration["delta.columnMapping.mode"] = chance.choice(["name", "id"])
        self.append()

    def append(self) -> None:
        ids = list(range(self.next_id, self.next_id + self.chance.randint(1, 6)))
        self.next_id = ids[-1] + 1
        columns = {"id": pa.array(ids, pa.int64()), "p": pa.array([i % 3 for i in ids], pa.int32())}
        if self.has_more:
            columns["more"] = pa.array([i if i % 2 else None for i in ids], pa.int64())
        write_deltalake(
            self.path,
            pa.table(columns),
            mode="append",
            partition_by=["p"] if self.is_partitioned else None,
            configuration=self.configuration if self.next_id == len(ids) else None,
        )
        self.live.update(ids)
        self.appended.update(ids)

    def delete(self) -> None:
        kept = self.chance.randint(2, 4)
        DeltaTable(self.path).delete(f"id % {kept} = 1")
        self.live = {i for i in self.live if i % kept != 1}

    def optimize(self) -> None:
        DeltaTable(self.path).optimize.compact()

    def add_column(self) -> None:
        if not self.has_more:
            DeltaTable(self.path).alter.add_columns([Field("more", "long")])
            self.has_more = True

    def change(self) -> None:
        steps = [self.append] * 5 + [self.delete, self.optimize, self.add_column]
        self.chance.choice(steps)()


def check(spark: SparkSession, directory: Path, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 (no secrets)
    history = History(directory / "table", chance)
    for _ in range(chance.randint(0, 4)):
        history.change()
    wanted, seen = set(history.live), []
    history.appended.clear()
    for _ in range(chance.randint(2, 3)):
        options = {"skipChangeCommits": "true"}
        if chance.random() < 0.7:
            options["maxFilesPerTrigger"] = str(chance.randint(1, 3))
        if chance.random() < 0.3:
            options["maxBytesPerTrigger"] = str(chance.randint(1, 3000))
        for rows in batches(stream(spark, history.path, **options), directory / "checkpoint"):
            seen += [row[0] for row in rows]
        assert sorted(seen) == sorted(wanted | history.appended), f"seed {seed}"
        for _ in range(chance.randint(0, 5)):
            history.change()
    for rows in batches(stream(spark, history.path, skipChangeCommits="true"), directory / "checkpoint"):
        seen += [row[0] for row in rows]
    assert sorted(seen) == sorted(wanted | history.appended), f"seed {seed}"


@pytest.mark.newest
@pytest.mark.parametrize("seed", range(2))
def test_each_row_is_read_once(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    check(spark, tmp_path, seed)


@pytest.mark.newest
@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(2, 40))
def test_each_row_is_read_once_in_more_histories(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    check(spark, tmp_path, seed)
