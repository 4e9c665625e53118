"""Unknown options of streams are refused: it would not be noticed that an option has no effect in a query that runs
for weeks.
"""

import difflib
from collections.abc import Iterable

from deltalog.spark.errors import InvalidArgumentError
from deltalog.spark.options import Options

WRITING = (
    "allowedRoots",
    "checkpointLocation",
    "compression",
    "maxRecordsPerFile",
    "mergeSchema",
    "optimizeWrite",
    "overwriteSchema",
    "partitionOverwriteMode",
    "path",
    "queryName",
    "userMetadata",
)
"""The options of a stream that writes. Spark passes the name of a query as one."""


def ensure_known(options: Options, names: Iterable[str]) -> None:
    """Raises an error for an option that is none of `names`, which are spelled as in the documentation."""
    known = {name.lower(): name for name in names}
    for name in sorted(options.values):
        # Names with dots are settings of Hadoop, of Parquet or of Spark's own, or properties of a table.
        if name in known or name in options.storage or "." in name or name.startswith("__"):
            continue
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.7)
        hint = f"did you mean {known[near[0]]}?" if near else f"known are {', '.join(known.values())}"
        raise InvalidArgumentError(
            f"the option {name} is not known for streams (table {options.path}); {hint}"
        )
