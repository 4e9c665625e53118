"""Executes CONVERT on Spark. The driver lists the directory and reads the footers with the core's own client for the
store.

For a table of the session catalog, the catalog defines its columns and partitions, and Spark lists its files. The Delta
table either has exactly the rows that Spark has read before, or the conversion fails. Then the catalog entry becomes
the entry of a Delta table. If the directory already is a Delta table, the entry then refers to this table, as in the
JVM connector, and the log determines its rows.
"""

import json
import logging
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from pyspark.sql.types import LongType, StringType, StructField, StructType

from deltalog._internal import plan_conversion
from deltalog.arguments import TableOptions
from deltalog.commit import commit_arguments
from deltalog.convert import ConvertArguments
from deltalog.spark.errors import InvalidArgumentError, UnsupportedFeatureError
from deltalog.spark.jvm import Jvm
from deltalog.spark.options import Options
from deltalog.spark.sql.definition import RESERVED
from deltalog.spark.write.defaults import with_defaults
from deltalog.spark.write.outcome import after_commit

CONVERTED = StructType(
    [
        StructField("path", StringType()),
        StructField("version", LongType()),
        StructField("num_converted_files", LongType()),
        StructField("size_in_bytes", LongType()),
    ]
)

_DIRECTORY = re.compile(r"(?:parquet|deltalog|delta)\.`((?:[^`]|``)+)`", re.IGNORECASE)
_NAMED = 10
# Options that do not affect how the files of a table are read.
_HARMLESS = ("compression", "mergeschema", "parquet.compression", "path", "serialization.format")
_HIVE = "spark.sql.hive.convertMetastoreParquet"
# Matches an escaped byte that is not ASCII. Spark decodes each of these bytes as a separate character, while the core
# decodes them as UTF-8.
_NOT_ASCII = re.compile("%[89A-Fa-f][0-9A-Fa-f]")
_log = logging.getLogger("deltalog.spark")


class Directory(NamedTuple):
    """The source and the options of a conversion."""

    uri: str
    storage_options: Mapping[str, str] | None
    partition_by: str | None
    """The partition columns with their types, as a schema in JSON; inferred if None."""
    user_metadata: str | None
    """The user's text that the commit records."""
    time_zone: str
    """The session's time zone."""


class Entry(NamedTuple):
    """A table of Parquet files in the session catalog."""

    jvm: Jvm
    session: Any
    entry: Any
    """The JVM's object."""
    name: str
    is_ours: bool
    """Whether the entry has already been converted."""
    is_bucketed: bool
    columns: str
    """The schema of the columns other than the partition columns."""
    partition_by: str
    properties: dict[str, str]
    comment: str | None
    elsewhere: list[str]
    """The partitions whose directories do not have the usual names."""
    options: dict[str, str]
    """The options by which Spark reads the files."""
    is_of_hive: bool

    @classmethod
    def of(cls, jvm: Jvm, session: Any, name: str) -> "Entry | None":
        """Returns the entry with this name; None for the path of a directory."""
        if jvm.static("TableNames", "pathOf", session, name) is not None:
            return None
        entry = jvm.static("ParquetEntries", "find", session, name)
        known = json.loads(jvm.static("ParquetEntries", "describe", session, entry))
        properties = {key: value for key, value in known["properties"].items() if key not in RESERVED}
        return cls(
            jvm,
            session,
            entry,
            known["name"],
            known["isOurs"],
            known["isBucketed"],
            known["columns"],
            known["partitionBy"],
            properties,
            known["comment"],
            known["elsewhere"],
            known["options"],
            known["isOfHive"],
        )

    def check(self, partition_by: str | None) -> None:
        """Raises an error if the table would have other rows, or another layout, as a Delta table."""
        if self.is_bucketed:
            raise UnsupportedFeatureError(
                f"the table {self.name} is bucketed, but Delta tables cannot be bucketed: write its rows to a new table"
            )
        known = {*_HARMLESS, *Options(self.options).hadoop}
        others = sorted(name for name in self.options if name.lower() not in known)
        if others:
            raise UnsupportedFeatureError(
                f"Spark reads the table {self.name} with the option {others[0]}, which a Delta table does not have: "
                "write its rows to a new table"
            )
        if self.is_of_hive and not _reads_parquet(self.session):
            raise UnsupportedFeatureError(
                f"Hive reads the table {self.name}, and may return other rows than Spark: set {_HIVE} to true, and "
                "check its rows, before it is converted"
            )
        if self.elsewhere:
            raise UnsupportedFeatureError(
                f"partitions of the table {self.name} are not in the directories of their names: "
                f"{_some(self.elsewhere)}; move their files, or write the rows of the table to a new one"
            )
        if partition_by is not None and _types(partition_by) != _types(self.partition_by):
            raise InvalidArgumentError(
                f"the table {self.name} is partitioned by {_types(self.partition_by)} in the catalog, not by "
                f"{_types(partition_by)}: leave the partition columns out"
            )

    def check_files(self, found: list[str]) -> None:
        """Raises an error unless the files to convert are exactly those that Spark reads as the table."""
        read = set(json.loads(self.jvm.static("ParquetEntries", "files", self.session, self.entry)))
        more = sorted(set(found) - read)
        if more:
            raise InvalidArgumentError(
                f"there are files that Spark does not read as rows of the table {self.name}: {_some(more)}; move them "
                f"elsewhere, or add their partitions with ALTER TABLE {self.name} RECOVER PARTITIONS"
            )
        less = json.dumps(sorted(read - set(found)), ensure_ascii=False)
        lost = json.loads(self.jvm.static("ParquetEntries", "withRows", self.session, self.entry, less))
        if lost:
            raise UnsupportedFeatureError(
                f"there are files of the table {self.name} that no conversion finds, such as those behind links to "
                f"directories: {_some(lost)}; write the rows of the table to a new one"
            )
        odd = [path for path in found if _NOT_ASCII.search(path.rpartition("/")[0])]
        if odd:
            raise UnsupportedFeatureError(
                f"the names of directories have bytes that Spark reads as other characters: {_some(odd)}; write the "
                f"rows of the table {self.name} to a new one"
            )

    def convert(self, uri: str, version: int | None) -> None:
        """Turns the entry into an entry of a deltalog table, after `version` was committed."""
        hint = f"call CONVERT TO DELTA {self.name} once more"
        with after_commit(uri, version, f"changing the entry {self.name} of the session catalog", hint):
            reaching = self.jvm.scala_map(Options(self.options).hadoop)
            self.jvm.static("ParquetEntries", "convert", self.session, self.entry, reaching)
        self.jvm.static("EntryColumns", "update", self.session, self.name)


def converted(
    directory: Directory,
    entry: Entry | None,
    defaults: dict[str, str],
    *,
    statistics: bool = True,
    dry_run: bool = False,
) -> list[Any]:
    """Converts a directory of Parquet files to a table. Returns a row of `CONVERTED`.

    If the directory is already a Delta table, no file is converted and a message is logged, as in the JVM connector;
    `entry` becomes the entry of this table.

    Args:
        directory: the directory.
        entry: the directory's entry in the session catalog, which defines the columns, and becomes the entry of a Delta
            table.
        defaults: the default properties of the table. The properties of the entry take precedence.
        statistics: whether minima, maxima and NULL counts are collected in addition to row counts.
        dry_run: whether nothing is committed.
    """
    uri, store, partition_by, user_metadata, time_zone = directory
    options, columns = TableOptions(configuration=defaults), None
    if entry is not None and not entry.is_ours:
        entry.check(partition_by)
        partition_by, columns = entry.partition_by, entry.columns
        options = TableOptions(
            configuration=with_defaults(entry.properties, defaults), description=entry.comment
        )
    arguments = ConvertArguments("ignore", options, partition_by, time_zone, statistics, columns)
    plan = plan_conversion(uri, arguments, commit_arguments(None, user_metadata), store)
    version = None
    if plan is not None:
        if entry is not None:
            entry.check_files(plan.paths())
        version = None if dry_run else plan.commit()
    is_table = plan is None or (version is None and not dry_run)
    if is_table:
        _log.warning(
            "%s is already a Delta table, and its log determines its rows: no file is converted", uri
        )
    if entry is not None and not entry.is_ours and not dry_run:
        entry.convert(uri, version)
    return [uri, version, *((0, 0) if plan is None or is_table else (plan.num_files, plan.size_in_bytes))]


def _reads_parquet(session: Any) -> bool:
    return str(session.sessionState().conf().getConfString(_HIVE, "true")).lower() == "true"


def _types(schema: str) -> str:
    return (
        ", ".join(f"{field['name']} {field['type']}" for field in json.loads(schema)["fields"]) or "no column"
    )


def _some(names: list[str]) -> str:
    more = "" if len(names) <= _NAMED else f", … ({len(names)} in all)"
    return ", ".join(names[:_NAMED]) + more


def partition_schema(jvm: Jvm, text: str) -> str:
    """Returns the schema, as JSON, of columns that are given as SQL text."""
    schema = json.loads(jvm.java("org.apache.spark.sql.types.StructType").fromDDL(text).json())
    return json.dumps(schema)


def sql_of(partition_schema: str | StructType | None) -> str | None:
    """Returns the partition columns that a user of `DeltaTable.convertToDelta` gives, as SQL."""
    if partition_schema is None or isinstance(partition_schema, str):
        return partition_schema
    columns = (
        f"`{field.name.replace('`', '``')}` {field.dataType.simpleString()}" for field in partition_schema
    )
    return ", ".join(columns)


def directory_in(identifier: str) -> str | None:
    """Returns the path in parquet.`/path`; None for the name of a table."""
    found = _DIRECTORY.fullmatch(identifier.strip())
    return found[1].replace("``", "`") if found else None
