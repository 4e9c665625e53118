"""The settings of a session on which changes of tables depend, read with one message to the JVM."""

import json
from typing import Any, NamedTuple

from deltalog.spark.errors import InvalidArgumentError
from deltalog.spark.jvm import Jvm


class Settings(NamedTuple):
    """Settings as `SessionSettings.java` describes them."""

    spark_version: str
    time_zone: str
    is_case_sensitive: bool
    partition_overwrite_mode: str
    store_assignment_policy: str
    rebase_mode: str
    """How the Parquet writer treats dates in the Julian calendar."""
    is_adaptive: bool
    """Whether Spark's adaptive execution is on."""
    ignores_missing_files: bool
    """Whether Spark skips missing files."""
    delta: dict[str, str]
    """The settings of the JVM connector, `spark.databricks.delta.…`, that have a value."""

    @classmethod
    def of(cls, jvm: Jvm, session: Any) -> "Settings":
        """Returns the settings of a session of the JVM."""
        return cls.of_parts(json.loads(jvm.static("SessionSettings", "json", session)))

    @classmethod
    def of_parts(cls, parts: dict[str, Any]) -> "Settings":
        return cls(
            parts["sparkVersion"],
            parts["timeZone"],
            parts["isCaseSensitive"],
            parts["partitionOverwriteMode"],
            parts["storeAssignmentPolicy"],
            parts["rebaseMode"],
            parts["isAdaptive"],
            parts["ignoresMissingFiles"],
            parts["delta"],
        )

    def boolean(self, name: str) -> bool | None:
        """Returns the boolean value of a setting of the JVM connector; None if it is not set, or is neither true nor
        false.
        """
        return {"true": True, "false": False}.get(self.delta.get(name, "").strip().lower())

    def size(self, name: str, least: int = 0) -> int | None:
        """Returns the value of a setting of the JVM connector, a whole number from `least`; None if it is not set.

        Raises `InvalidArgumentError` for another value.
        """
        text = self.delta.get(name)
        if text is None:
            return None
        number = int(text) if text.strip().isdecimal() else -1
        if not least <= number < 2**63:
            raise InvalidArgumentError(
                f"{name} cannot be {text!r}: set it to a whole number of at least {least}"
            )
        return number

    def check_calendar(self) -> None:
        """Raises an error if Spark is configured to write dates in the Julian calendar, which other readers would
        misinterpret.
        """
        if self.rebase_mode.upper() == "LEGACY":
            raise InvalidArgumentError(
                "a Delta table contains dates only in the Gregorian calendar: set "
                "spark.sql.parquet.datetimeRebaseModeInWrite to CORRECTED"
            )
