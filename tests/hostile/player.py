"""Plays seeds in a process of its own, because a fault may end it: `python -m tests.hostile.player FIRST LAST`.

Prints a line for each seed when it begins, and one for each fault.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
import traceback
from pathlib import Path
from random import Random

import pyarrow as pa

from benches.watch import peak_bytes
from deltalog import DeltaError, InternalError, upkeep
from tests.hostile.mutations import mutate, write
from tests.hostile.place import CANARY, Place
from tests.hostile.tables import Files, base_tables
from tests.hostile.verbs import VERBS

CALLS = 5
MOST_SECONDS = 20
MOST_MEMORY = 1 << 30


def play(seed: int, tables: list[Files], directory: Path) -> list[str]:
    """Makes a table that belongs to `seed`, calls some verbs on it, and returns what went wrong."""
    random = Random(seed)
    place = Place(directory)
    write(place, random.choice(tables))
    steps = mutate(random, place)
    faults = []
    for name in random.sample(sorted(VERBS), CALLS):
        steps.append(name)
        began = time.monotonic()
        fault = call(name, place)
        if fault is None and time.monotonic() - began > MOST_SECONDS:
            fault = f"took {time.monotonic() - began:.0f} s"
        # `ru_maxrss` would not do: on Linux a process begins with that of its parent.
        if fault is None and peak_bytes() > MOST_MEMORY:
            fault = "took too much memory"
        faults += [fault] if fault else place.faults()
        if faults:
            break
    return [f"{' -> '.join(steps)}: {fault}" for fault in faults]


def call(name: str, place: Place) -> str | None:
    try:
        shown = repr(VERBS[name](place))
    except InternalError:
        return traceback.format_exc()
    except (DeltaError, pa.ArrowException, OSError) as error:
        shown = "".join(traceback.format_exception(error))
        # An error of a stream is one of pyarrow.
        is_ours = isinstance(error, (DeltaError, pa.ArrowException)) or str(error).startswith("Io error")
        if "panicked" in shown or not is_ours:
            return shown
    except BaseException:  # noqa: BLE001 - a panic is none of the others
        return traceback.format_exc()
    return f"shows a secret: {shown[:2000]}" if CANARY.decode() in shown else None


def main() -> None:
    first, last = map(int, sys.argv[1:])
    os.environ["CANARY"] = os.environ["AWS_SECRET_ACCESS_KEY"] = CANARY.decode()
    upkeep.run_in_background(False)
    tables = base_tables()
    for seed in range(first, last):
        print("seed", seed, flush=True)  # noqa: T201
        with tempfile.TemporaryDirectory() as directory:
            for fault in play(seed, tables, Path(directory)):
                print("fault", json.dumps(fault), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
