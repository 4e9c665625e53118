"""The compaction of small files after a write, if the settings of a session request it.

| session setting, `spark.databricks.delta.autoCompact.…` | if it is not set |
| --- | --- |
| `enabled` | the table's properties `delta.autoOptimize.autoCompact` and `delta.autoOptimize` decide |
| `maxFileSize`, in bytes | the table's target size |
| `minFileSize`, in bytes | half of `maxFileSize` |
| `minNumFiles` | 50 |
| `maxNumModifiedPartitions` | 128 |

Names and precedence are the same as in the JVM connector. The core compacts after the commit, on the driver.
"""

from typing import NamedTuple

from deltalog.spark.errors import InvalidArgumentError
from deltalog.spark.write.settings import Settings

_PREFIX = "spark.databricks.delta.autoCompact."
# The values of the setting. The first two are the JVM connector's, the others are Databricks' names for `true`.
_ENABLED = {"true": True, "false": False, "auto": True, "legacy": True}


class AutoCompaction(NamedTuple):
    """A session's settings for the compaction. A setting that is not set is None. Sizes are in bytes."""

    enabled: bool | None
    max_file_size: int | None
    min_file_size: int | None
    min_num_files: int | None
    max_num_partitions: int | None

    @classmethod
    def of(cls, settings: Settings) -> "AutoCompaction":
        """Reads the settings of a session. Raises `InvalidArgumentError` for an invalid value."""
        enabled = settings.delta.get(f"{_PREFIX}enabled")
        if enabled is not None and enabled.strip().lower() not in _ENABLED:
            raise InvalidArgumentError(
                f"{_PREFIX}enabled cannot be {enabled!r}: set it to true, false, auto or legacy"
            )
        return cls(
            None if enabled is None else _ENABLED[enabled.strip().lower()],
            settings.size(f"{_PREFIX}maxFileSize", least=1),
            settings.size(f"{_PREFIX}minFileSize"),
            settings.size(f"{_PREFIX}minNumFiles"),
            settings.size(f"{_PREFIX}maxNumModifiedPartitions", least=1),
        )
