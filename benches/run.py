"""The program that `make bench` runs. `python benches/run.py list` lists the cases; `… curve` and `… skipping` draw
pictures; `… driver` measures the memory of a Spark driver, and `… lookups` the benefit of Bloom filters.
"""

from __future__ import annotations

import sys
from pathlib import Path

# Python looks for modules in the directory of the program, but ours are imported from the root of the repository.
sys.path[0] = str(Path(__file__).parent.parent)

if __name__ == "__main__":
    if sys.argv[1:2] == ["curve"]:
        from benches import curve

        sys.exit(curve.main(sys.argv[2:]))

    if sys.argv[1:2] == ["driver"]:
        from benches import driver

        sys.exit(driver.main(sys.argv[2:]))

    if sys.argv[1:2] == ["lookups"]:
        from benches import lookups

        sys.exit(lookups.main(sys.argv[2:]))

    if sys.argv[1:2] == ["skipping"]:
        from benches import skipping

        sys.exit(skipping.main(sys.argv[2:]))

    from benches import command

    sys.exit(command.main(sys.argv[1:]))
