"""Draws the pictures of docs/plots.md, which show a table before and after its rows are ordered."""

import random
import tempfile
from pathlib import Path

import pyarrow as pa

import deltalog.plot
from deltalog import DeltaTable, write_deltalake

DOCS = Path(__file__).parents[1] / "docs"
FILES = 40
ROWS = 5_000


def main() -> None:
    chance = random.Random(1)  # noqa: S311 (the same picture each time)
    with tempfile.TemporaryDirectory() as place:
        rides = Path(place) / "rides"
        for day in range(FILES):
            most = chance.uniform(60, 100)
            km = [round(chance.uniform(0, most), 2) for _ in range(ROWS)]
            write_deltalake(rides, pa.table({"day": [day] * ROWS, "km": km}), mode="append")
        table = DeltaTable(rides)
        size = table._snapshot.size_in_bytes()
        for name in ("before", "after"):
            picture = DOCS / f"overlap-{name}.png"
            deltalog.plot.overlap(table, "km").savefig(picture, dpi=70)
            print(picture)
            table.optimize.z_order(["km", "day"], target_size=size // FILES)


if __name__ == "__main__":
    main()
