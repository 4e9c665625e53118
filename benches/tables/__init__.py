"""The tables that the benchmarks use. Each is created once by its own generator, and kept under a name that includes
its size.

- The same parameters give exactly the same log on every machine.
- A table exists completely or not at all: it is built in a temporary directory and renamed.
- A stamp file next to the table records the parameters. If they change, the table is made again.
"""

from benches.tables.broad import Broad
from benches.tables.cache import TableSpec, build
from benches.tables.checkpointed import Checkpointed
from benches.tables.commits import Commits
from benches.tables.data import Data
from benches.tables.littered import Littered
from benches.tables.plain import Plain
from benches.tables.streamed import Streamed

__all__ = ["Broad", "Checkpointed", "Commits", "Data", "Littered", "Plain", "Streamed", "TableSpec", "build"]
