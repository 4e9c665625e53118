"""Plays seeds in a process of its own, because a fault may crash it: `python -m tests.hostile.player FIRST LAST
[spark]`.

The program prints a line when a seed begins, and a line for each fault.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import pyarrow as pa

from benches.watch import peak_bytes
from deltalog import DeltaError, InternalError, upkeep
from tests.hostile.mutations import mutate, write
from tests.hostile.place import CANARY, Place
from tests.hostile.tables import Files, base_tables
from tests.hostile.verbs import VERBS, Verb

CALLS = 5
SPARK_CALLS = 3
MOST_SECONDS = 20
MOST_MEMORY = 1 << 30


@dataclass
class Game:
    """The operations (verbs) that are called, how many of them for each table, and the errors that they may raise."""

    verbs: Mapping[str, Verb]
    calls: int
    expected: tuple[type[Exception], ...] = (DeltaError, pa.ArrowException, OSError)
    crashes: tuple[str, ...] = ("panicked",)
    check: Callable[[], object] = bool


def play(game: Game, seed: int, tables: list[Files], directory: Path) -> list[str]:
    """Creates the table for `seed`, calls some verbs on it, and returns descriptions of the faults."""
    random = Random(seed)
    place = Place(directory)
    write(place, random.choice(tables))
    steps = mutate(random, place)
    faults = []
    for name in random.sample(sorted(game.verbs), game.calls):
        steps.append(name)
        began = time.monotonic()
        fault = call(game, name, place)
        if fault is None and time.monotonic() - began > MOST_SECONDS:
            fault = f"took {time.monotonic() - began:.0f} s"
        # `ru_maxrss` is not suitable: on Linux a process inherits its parent's value.
        if fault is None and peak_bytes() > MOST_MEMORY:
            fault = "took too much memory"
        faults += [fault] if fault else place.faults()
        if faults:
            break
    return [f"{' -> '.join(steps)}: {fault}" for fault in faults]


def call(game: Game, name: str, place: Place) -> str | None:
    try:
        shown = repr(game.verbs[name](place))
    except InternalError:
        return traceback.format_exc()
    except game.expected as error:
        shown = "".join(traceback.format_exception(error))
        # If a stream fails, pyarrow raises its own exception.
        is_ours = not isinstance(error, OSError) or isinstance(error, pa.ArrowException | DeltaError)
        if any(crash in shown for crash in game.crashes) or not (
            is_ours or str(error).startswith("Io error")
        ):
            return shown
    except BaseException:  # noqa: BLE001 - a panic is none of the others
        return traceback.format_exc()
    return f"shows a secret: {shown[:2000]}" if CANARY.decode() in shown else None


def in_spark(scratch: str) -> Game:
    from tests.hostile import spark_verbs

    spark = spark_verbs.session(scratch)
    plain = Game(spark_verbs.spark_verbs(spark), SPARK_CALLS, check=spark.range(1).collect)
    return replace(
        plain,
        expected=(*plain.expected, *spark_verbs.EXPECTED),
        crashes=(*plain.crashes, *spark_verbs.CRASHES),
    )


def main() -> None:
    first, last = map(int, sys.argv[1:3])
    os.environ["CANARY"] = os.environ["AWS_SECRET_ACCESS_KEY"] = CANARY.decode()
    upkeep.run_in_background(False)
    tables = base_tables()
    with tempfile.TemporaryDirectory() as scratch:
        game = in_spark(scratch) if "spark" in sys.argv[3:] else Game(VERBS, CALLS)
        for seed in range(first, last):
            print("seed", seed, flush=True)  # noqa: T201
            # A Spark task that was cancelled may still be running.
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
                for fault in play(game, seed, tables, Path(directory)):
                    print("fault", json.dumps(fault), flush=True)  # noqa: T201
                    # If the JVM has ended, all later calls would fail as well.
                    game.check()


if __name__ == "__main__":
    main()
