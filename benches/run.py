"""The program that `make bench` runs; `python benches/run.py list` says what there is."""

from __future__ import annotations

import sys
from pathlib import Path

# Started as a file, Python looks for modules beside it; ours are found from the repository.
sys.path[0] = str(Path(__file__).parent.parent)

if __name__ == "__main__":
    from benches.command import main

    sys.exit(main())
