"""Refuses unknown options of streams.

Otherwise a stream could run for weeks before a user notices that a misspelled option has no effect.
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
"""The options of a stream that writes to a table. `queryName` is among them because Spark passes it to the sink."""


def ensure_known(options: Options, names: Iterable[str]) -> None:
    """Raises an error if an option is not one of `names`, which are spelled as in the documentation."""
    known = {name.lower(): name for name in names}
    for name in sorted(options.values):
        # Names with a dot are accepted, because they are settings of Hadoop, Parquet or Spark, or table properties.
        if name in known or name in options.storage or "." in name or name.startswith("__"):
            continue
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.7)
        hint = f"did you mean {known[near[0]]}?" if near else f"known are {', '.join(known.values())}"
        raise InvalidArgumentError(
            f"the option {name} is not known for streams (table {options.path}); {hint}"
        )
