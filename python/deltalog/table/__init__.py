"""A table at a version, and its operations.

`DeltaTable` (`delta_table`) opens, creates and copies tables. Its other methods are in one file per topic:

- `rows` and `dataset`: reading rows, and passing them to pyarrow;
- `stream`: rows as a sequence of batches, each once;
- `log`: history, checkpoints, actions;
- `statements`: DELETE, UPDATE, MERGE (`merge`), and appends;
- `alter`, `optimize`: `table.alter` and `table.optimize`;
- `maintenance`: VACUUM (`vacuum`), statistics, FSCK and manifests.

All of them build on `handle`, which holds the open snapshot.
"""

from deltalog.table.alter import TableAlterer
from deltalog.table.delta_table import DeltaTable, Metadata, Protocol
from deltalog.table.merge import TableMerger
from deltalog.table.optimize import TableOptimizer

__all__ = ["DeltaTable", "Metadata", "Protocol", "TableAlterer", "TableMerger", "TableOptimizer"]
