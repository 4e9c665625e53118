"""`python -m deltalog`, the same as the command `deltalog`."""

import sys

from deltalog.cli import main

if __name__ == "__main__":
    sys.exit(main())
