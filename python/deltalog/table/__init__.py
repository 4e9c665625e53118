"""A table at a version, and what can be asked of it.

`DeltaTable` (`delta_table`) opens, creates and copies tables. What it can do otherwise is in a file for each part:

- `rows` and `dataset`: reading rows, and handing them to pyarrow;
- `stream`: rows as a sequence of batches, each once;
- `log`: history, checkpoints, actions;
- `statements`: DELETE, UPDATE, MERGE (`merge`), and appends;
- `alter`, `optimize`: `table.alter` and `table.optimize`;
- `maintenance`: VACUUM (`vacuum`), statistics, FSCK and manifests.

All of them stand on `handle`, the snapshot that is open.
"""

from deltalog.table.alter import TableAlterer
from deltalog.table.delta_table import DeltaTable, Metadata, Protocol
from deltalog.table.merge import TableMerger
from deltalog.table.optimize import TableOptimizer

__all__ = ["DeltaTable", "Metadata", "Protocol", "TableAlterer", "TableMerger", "TableOptimizer"]
