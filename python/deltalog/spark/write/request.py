"""A write that Spark passes to deltalog: its rows, its options, and the settings of the session."""

import json
from typing import Any, NamedTuple

from deltalog.spark import schema
from deltalog.spark.jvm import Jvm
from deltalog.spark.location import Location, uri_of
from deltalog.spark.options import Options
from deltalog.spark.sources import Source
from deltalog.spark.write.record import Record
from deltalog.spark.write.settings import Settings


class WriteRequest(NamedTuple):
    """A write to the table at a location, before it begins."""

    jvm: Jvm
    session: Any
    location: Location
    options: Options
    rows: Any
    """A DataFrame of the JVM."""
    settings: Settings
    schema_json: str
    """The schema of the rows."""
    nulls: list[str]
    """The columns whose values are a constant NULL."""
    sources: list[Source]
    """All tables from which the rows are read."""
    record: Record

    @classmethod
    def of(
        cls,
        jvm: Jvm,
        session: Any,
        location: Location,
        options: Options,
        rows: Any,
        batch: tuple[str, int] | None = None,
    ) -> "WriteRequest":
        """Returns the request; one call to the JVM gets all its parts.

        Args:
            batch: the query and the number of a batch of a stream.
        """
        location.ensure_in_reach()
        parts = json.loads(jvm.static("WriteDescription", "json", session, rows))
        settings = Settings.of_parts(parts["settings"])
        return cls(
            jvm,
            session,
            location,
            options,
            rows,
            settings,
            parts["schema"],
            parts["nulls"],
            Source.of(parts["sources"]),
            Record.of_batch(options, settings, batch) if batch else Record.of_session(options, settings),
        )

    @property
    def uri(self) -> str:
        return self.location.uri

    @property
    def names(self) -> list[str]:
        """The names of the columns of the rows."""
        return schema.field_names(self.schema_json)

    @property
    def given(self) -> set[str]:
        """The names of the columns, in lower case, for which the rows have values.

        A constant NULL does not count as a value: in INSERT statements, Spark fills omitted columns with it.
        """
        return {name.lower() for name in self.names} - {name.lower() for name in self.nulls}

    @property
    def roots(self) -> list[str]:
        """The directories outside the table that may contain data files."""
        return [uri_of(self.jvm, self.session, root) for root in self.options.allowed_roots]
