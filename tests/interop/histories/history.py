"""Plays one history: a seed determines the table, its writers and their actions. All readers read every version, and
the results are compared.
"""

from __future__ import annotations

import random
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from pathlib import Path

import deltalog
from deltalog import DeltaTable
from tests.golden.canonical import rows
from tests.interop.conftest import Jvm
from tests.interop.histories.choices import draw_action, start
from tests.interop.histories.model import Model
from tests.interop.histories.players import Connector, Ours, Player, Rust
from tests.interop.histories.readers import Seen, diff, read_connector, read_deltalake, read_ours

# All three engines can write tables with the properties in `PLAIN`.
# `deltalake` can only read tables with some properties in `RICH`, and cannot open tables with others.
PLAIN: list[dict[str, str]] = [{}, {"delta.enableChangeDataFeed": "true"}]
RICH: list[dict[str, str]] = [
    {},
    {"delta.enableDeletionVectors": "true"},
    {"delta.enableDeletionVectors": "true", "delta.checkpointPolicy": "v2"},
    {"delta.columnMapping.mode": "name", "delta.enableDeletionVectors": "true"},
    {"delta.columnMapping.mode": "id", "delta.checkpoint.writeStatsAsStruct": "true"},
    {"delta.enableTypeWidening": "true", "delta.columnMapping.mode": "name"},
    {"delta.enableTypeWidening": "true", "delta.enableDeletionVectors": "true"},
    {"delta.enableRowTracking": "true", "delta.enableDeletionVectors": "true"},
    {"delta.enableInCommitTimestamps": "true", "delta.enableChangeDataFeed": "true"},
]


# The number of recent versions from which a RESTORE chooses.
MOST_RETAINED = 3


def seeded(text: str) -> random.Random:
    return random.Random(text)  # noqa: S311 (no secret)


@dataclass
class History:
    """A history, and the steps that were executed."""

    seed: int
    skipped: frozenset[int] = frozenset()
    steps: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return "-".join(
            [str(self.seed), *(["without", *map(str, sorted(self.skipped))] if self.skipped else [])]
        )

    @property
    def reads_deltalake(self) -> bool:
        """Returns whether `deltalake` can read the table, and so may write it."""
        return self.seed % 3 != 0

    def play(self, directory: Path, jvm: Jvm | None, length: int) -> int:
        """Plays the steps, and compares what the readers return for every version. Returns the number of versions.

        Histories in which the connector writes are skipped if there is no JVM. Each step has its own random numbers,
        so that leaving out one step hardly changes the others.
        """
        rng = seeded(str(self.seed))
        path = directory / f"history {self.name}"
        players = self._cast(rng, jvm, directory)
        model = start(rng, self._properties(rng, players), has_partitions=not _mix_paths(players))
        # `deltalake` cannot write clustered tables, and a table cannot have both partitions and clustering.
        can_cluster = not any(isinstance(player, Rust) for player in players)
        model = replace(model, may_cluster=can_cluster and not model.partition_by)
        rng.choice(players).create(path, model)
        expected, last = {0: model}, 0
        for number in range(length):
            rng = seeded(f"{self.seed} {number}")
            player = rng.choice(players)
            action = draw_action(rng, model, player.plays)
            if number in self.skipped:
                continue
            self.steps.append(f"{number}: {player.name}: {action}")
            player.play(path, model, action)
            before, model = model, action.apply(model)
            newest = DeltaTable(path).version()
            expected[newest] = model
            if newest > last:
                known = replace(before, retained=())
                model = replace(model, retained=(*model.retained, (last, known))[-MOST_RETAINED:])
                last = newest
        return self._compare(path, expected, jvm)

    def _cast(self, rng: random.Random, jvm: Jvm | None, directory: Path) -> list[Player]:
        if jvm is None:
            return rng.choice([[Ours()], [Ours(), Rust()], [Rust()]])
        ours, connector = Ours(), Connector(jvm, directory, stores_int96=not self.reads_deltalake)
        casts: list[list[Player]] = [[ours], [connector], [ours, connector], [ours, connector]]
        return rng.choice([*casts, [ours, connector, Rust()]] if self.reads_deltalake else casts)

    def _properties(self, rng: random.Random, players: Collection[Player]) -> dict[str, str]:
        plain = any(isinstance(player, Rust) for player in players)
        found = dict(rng.choice(PLAIN if plain else RICH))
        if rng.random() < 0.7:
            found["delta.checkpointInterval"] = str(rng.randrange(2, 6))
        return found

    def _compare(self, path: Path, expected: dict[int, Model], jvm: Jvm | None) -> int:
        newest = DeltaTable(path).version()
        seen: dict[int, Seen] = {}
        for version in range(newest, -1, -1):
            try:
                seen[version] = read_ours(path, version)
            except deltalog.VersionNotFoundError:
                assert expected[max(expected)].is_aged, f"version {version} is not readable"
                break
        for version, ours in seen.items():
            if version in expected:
                assert_expected(version, expected[version], ours)
        versions = sorted(seen)
        if jvm is not None:
            for version, theirs in zip(versions, read_connector(jvm, path, versions), strict=True):
                assert_equal("the connector", version, seen[version], theirs)
        if self.reads_deltalake and opened_by_deltalake(seen[newest]):
            for version in versions:
                theirs = read_deltalake(path, version, seen[version])
                assert_equal("deltalake", version, seen[version], theirs)
        return len(versions)


def _mix_paths(players: Collection[Player]) -> bool:
    """Returns whether both the connector and `deltalake` write the table.

    The connector keeps non-ASCII characters in paths, but `deltalake` encodes them when it removes a file. Neither
    treats the two spellings as the same path, so the connector would still read the removed file.
    """
    return {Connector, Rust} <= {type(player) for player in players}


def opened_by_deltalake(seen: Seen) -> bool:
    return "typeWidening" not in seen.protocol[3]


def assert_expected(version: int, model: Model, seen: Seen) -> None:
    wanted = rows(model.table)
    assert seen.rows == wanted, f"version {version}: not what was written:\n{diff(seen.rows, wanted)}"
    assert seen.applications == model.applications, f"version {version}: {seen.applications}"
    # When `deltalake` adds a column, it moves the partition columns to the end.
    names = sorted(column["name"] for column in seen.schema["fields"])
    assert names == sorted(model.table.column_names), f"version {version}: columns {names}"
    assert seen.clustered_by == list(model.clustered_by), f"version {version}: {seen.clustered_by}"
    lost = model.properties.items() - seen.properties.items()
    assert not lost, f"version {version}: properties {lost} are not set"


def assert_equal(reader: str, version: int, ours: Seen, theirs: Seen) -> None:
    differences = ours.differences(theirs)
    assert not differences, f"version {version}, which {reader} reads otherwise:\n" + "\n".join(differences)
