"""The options of readers and writers.

An unsupported option is refused if ignoring it would change what is read or written.
"""

import difflib
import json
import re
from collections.abc import Mapping

from deltalog.caller import warn_caller
from deltalog.spark.errors import InvalidArgumentError, UnsupportedFeatureError
from deltalog.spark.sources import Source

_CHANGE_FEED = ("readchangefeed", "readchangedata")
_CHANGE_BOUNDS = ("startingversion", "startingtimestamp", "endingversion", "endingtimestamp")
_ENDS = ("endingversion", "endingtimestamp")
# Options that select a version. Users do not set the last one: Java sets it, for example for TIMESTAMP AS OF.
_VERSION = ("versionasof", "timestampasof", "timestampasofmicros")
# The spelling of options in the documentation.
_SPELLED = {
    name.lower(): name
    for name in (
        "readChangeFeed",
        "readChangeData",
        "startingVersion",
        "startingTimestamp",
        "endingVersion",
        "endingTimestamp",
        "rowIds",
    )
}
# Options of overwrites that are carried out as a MERGE.
_REPLACING = {name.lower(): name for name in ("replaceUsing", "replaceOn", "targetAlias")}
_ALLOWED_ROOTS = "allowedroots"
_ROW_IDS = "rowids"
_PARTITIONING = "__partition_columns"
_CLUSTERING = "__clustering_columns"
_COMMAND = "deltalog.command"
_SOURCES = "deltalog.sources"
_POSITIONS = "deltalog.positions"
_CONDITION = "deltalog.condition"
_STATEMENT = "deltalog.statement"
_WRITER = ("compression", "maxrecordsperfile")
BASE_VERSION = "baseVersion"
_NEWEST = "newest"
# Options of batch writes that do not apply to streams, each with the reason.
_NOT_OF_STREAMS = {
    BASE_VERSION: "each batch is based on the newest version",
    "replaceWhere": "a stream appends rows or replaces all of them",
    "replaceOn": "a stream appends rows or replaces all of them",
    "replaceUsing": "a stream appends rows or replaces all of them",
    "targetAlias": "a stream appends rows or replaces all of them",
    "txnAppId": "each batch records the id of its query",
    "txnVersion": "each batch records its number",
}
# The names of storage options, the same as in `storage_options` in Python.
_STORE_PREFIXES = ("aws_", "azure_", "google_", "dynamodb_", "hdfs_", "backoff_config.")
_STORE_NAMES = (
    "allow_http",
    "allow_invalid_certificates",
    "cache_dir",
    "cache_size",
    "connect_timeout",
    "io_concurrency",
    "log_store",
    "max_retries",
    "proxy_ca_certificate",
    "proxy_excludes",
    "proxy_url",
    "read_memory",
    "read_timeout",
    "retry_timeout",
    "timeout",
    "user_agent",
)
# The options of reads and writes, spelled as in the documentation.
_KNOWN = (
    *_SPELLED.values(),
    *_STORE_NAMES,
    "allowedRoots",
    "baseVersion",
    "compression",
    "maxRecordsPerFile",
    "mergeSchema",
    "optimizeWrite",
    "overwriteSchema",
    "partitionOverwriteMode",
    "path",
    "replaceOn",
    "replaceUsing",
    "replaceWhere",
    "targetAlias",
    "timestampAsOf",
    "txnAppId",
    "txnVersion",
    "userMetadata",
    "versionAsOf",
)
_HADOOP_PREFIXES = ("fs.", "google.cloud.", "dfs.", "hadoop.")


_WHOLE = re.compile(r"\s*([0-9]{1,19})\s*")
LARGEST_NUMBER = 2**63 - 1


def whole_number(text: str) -> int | None:
    """Parses an integer from 0 to 2**63 - 1, such as a version or a size. Returns None for any other string."""
    found = _WHOLE.fullmatch(text)
    return int(found[1]) if found and int(found[1]) <= LARGEST_NUMBER else None


def store_options(given: Mapping[str, str]) -> Mapping[str, str]:
    """Returns the options that determine how a store is accessed, and the directories outside of the table that may
    contain data files.

    Raises `InvalidArgumentError` for any other option.
    """
    options = Options(given)
    others = sorted(options.values.keys() - options.storage.keys() - options.hadoop.keys() - {_ALLOWED_ROOTS})
    if others:
        raise InvalidArgumentError(
            f"{others[0]} is not an option for accessing a store: pass settings of Hadoop for file systems (fs.…, "
            "dfs.…) or storage options; or allowedRoots for a shallow clone"
        )
    return given


class Options:
    """Options by name, ignoring case."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self.values = {name.lower(): value for name, value in values.items()}

    @classmethod
    def of_json(cls, text: str) -> "Options":
        """Parses the options that `TableOptions.java` has written."""
        return cls(json.loads(text))

    @property
    def path(self) -> str:
        path = self.values.get("path")
        if not path:
            raise InvalidArgumentError(
                "deltalog needs the path of a table: load(path), save(path) or a table name"
            )
        return path

    @property
    def storage(self) -> dict[str, str]:
        """The storage options, which determine how a store is accessed."""
        return {
            name: value
            for name, value in self.values.items()
            if name.startswith(_STORE_PREFIXES) or name in _STORE_NAMES
        }

    @property
    def hadoop(self) -> dict[str, str]:
        """Hadoop's settings for file systems."""
        return {name: value for name, value in self.values.items() if name.startswith(_HADOOP_PREFIXES)}

    @property
    def sources(self) -> list[Source] | None:
        """The tables from which the rows of a write are read; None if `DynamicOverwrites.java` did not record them."""
        text = self.values.get(_SOURCES)
        if text is None:
            return None
        return Source.of(json.loads(text))

    @property
    def allowed_roots(self) -> list[str]:
        """The directories outside the table that may contain data files."""
        text = self.values.get(_ALLOWED_ROOTS, "").strip()
        if not text.startswith("["):
            return [text] if text else []
        try:
            roots = json.loads(text)
        except ValueError:
            roots = None
        if not isinstance(roots, list) or not all(isinstance(root, str) for root in roots):
            raise InvalidArgumentError(f"allowedRoots must be a path or a JSON list of paths, not {text!r}")
        return roots

    @property
    def command(self) -> str | None:
        """Under Spark Connect, the command of `DeltaTable` to execute instead of reading rows."""
        return self.values.get(_COMMAND)

    def without_command(self) -> "Options":
        """Returns the options of the table for which a command is executed."""
        return Options(
            {name: value for name, value in self.values.items() if not name.startswith("deltalog.")}
        )

    @property
    def statement(self) -> str | None:
        """Under Spark Connect, the statement whose rows are written, as JSON."""
        return self.values.get(_STATEMENT)

    @property
    def wants_positions(self) -> bool:
        """Under Spark Connect, whether a statement also reads the positions of the rows."""
        return self.values.get(_POSITIONS) == "true"

    @property
    def condition(self) -> tuple[str, str] | None:
        """Under Spark Connect, the condition by which a statement skips files, and the time zone of the condition."""
        text = self.values.get(_CONDITION)
        if text is None:
            return None
        sql, time_zone = json.loads(text)
        return sql, time_zone

    @property
    def wants_changes(self) -> bool:
        """Whether the query reads the change data feed instead of the table's rows."""
        return any(self._is_true(name) for name in _CHANGE_FEED)

    @property
    def ends(self) -> bool:
        """Whether the options set the end of a change data feed, which streams do not allow."""
        return not self.values.keys().isdisjoint(_ENDS)

    @property
    def wants_version(self) -> bool:
        """Whether the options select a version of the table, which may be an older one."""
        return not self.values.keys().isdisjoint(_VERSION)

    @property
    def wants_row_ids(self) -> bool:
        """Whether the query reads the columns of row ids and row commit versions.

        The native scan provides them in `_metadata` instead.
        """
        return self._is_true(_ROW_IDS)

    def _is_true(self, name: str) -> bool:
        value = self.values.get(name, "false")
        if value.strip().lower() not in ("true", "false"):
            raise InvalidArgumentError(f"the option {_SPELLED[name]} must be true or false, not {value!r}")
        return value.strip().lower() == "true"

    def _warn_of_misspelled(self) -> None:
        """Warns about options whose names are similar to a known option. Like Spark and other data sources, deltalog
        ignores unknown options.
        """
        for name in sorted(self.values.keys() - {known.lower() for known in _KNOWN}):
            if "." in name or name.startswith(("__", *_STORE_PREFIXES)):
                continue
            near = difflib.get_close_matches(name, [known.lower() for known in _KNOWN], n=1, cutoff=0.85)
            if near:
                meant = next(known for known in _KNOWN if known.lower() == near[0])
                warn_caller(f"the option {name!r} has no effect: did you mean {meant!r}?", UserWarning)

    def check_read(self, under_connect: bool = False, may_stream: bool = False) -> None:
        """Raises an error if options contradict each other or do not apply, and warns of misspelled ones.

        If `may_stream` is true, the read may also be a stream, which has other options for its start.
        """
        if not may_stream:
            self._warn_of_misspelled()
        for name in (_COMMAND, _POSITIONS, _CONDITION):
            if name in self.values and not under_connect:
                raise InvalidArgumentError(
                    f"the option {name} only works under Spark Connect: use DeltaTable here"
                )
        for name in (*_CHANGE_FEED, _ROW_IDS):
            self._is_true(name)
        bounds = [name for name in _CHANGE_BOUNDS if name in self.values]
        if may_stream and not self.ends:
            return
        if not self.wants_changes and bounds:
            raise InvalidArgumentError(
                f"the option {_SPELLED[bounds[0]]} needs readChangeFeed: also set readChangeFeed to true"
            )
        if not self.wants_changes:
            return
        if self.wants_row_ids:
            raise InvalidArgumentError(
                "rowIds cannot be used with readChangeFeed: the change data feed has no row ids"
            )
        for name in _VERSION:
            if name in self.values:
                raise InvalidArgumentError(
                    f"the option {name} cannot be used with readChangeFeed: use startingVersion and endingVersion"
                )
        for end in ("starting", "ending"):
            if f"{end}version" in self.values and f"{end}timestamp" in self.values:
                raise InvalidArgumentError(f"{end}Version and {end}Timestamp cannot be used together")
        if not {"startingversion", "startingtimestamp"} & self.values.keys():
            raise InvalidArgumentError("readChangeFeed requires startingVersion or startingTimestamp")

    def check_write(self, replaces: bool = False, streams: bool = False) -> None:
        """Raises an error for options that do not apply to writes. `replaces` allows the options `replaceOn` and
        `replaceUsing`. `streams` allows the clustering columns of a stream.
        """
        if not streams:
            self._warn_of_misspelled()
        if _STATEMENT in self.values:
            raise InvalidArgumentError(
                f"the option {_STATEMENT} only works under Spark Connect: use DeltaTable here"
            )
        self._refuse(_CHANGE_FEED + _CHANGE_BOUNDS)
        for name in () if replaces else _REPLACING:
            if name in self.values:
                raise UnsupportedFeatureError(
                    f"the option {_REPLACING[name]} needs save, saveAsTable or insertInto with the mode overwrite, "
                    "in a classic session"
                )
        if _CLUSTERING in self.values and not streams:
            raise UnsupportedFeatureError("clusterBy is not supported yet by deltalog")
        for name in _VERSION:
            if name in self.values:
                raise InvalidArgumentError(
                    f"the option {name} only applies to reads; a write always changes the newest version"
                )

    def check_stream_write(self, is_complete: bool) -> None:
        """Raises an error for options that do not apply to the batches of a stream. The output mode of the stream is
        complete if `is_complete` is true, and otherwise append.
        """
        for name, reason in _NOT_OF_STREAMS.items():
            if name.lower() in self.values:
                raise InvalidArgumentError(
                    f"the option {name} does not apply to streams: {reason}; use foreachBatch for other writes"
                )
        self.check_write(streams=True)
        if self.is_true("overwriteSchema") and not is_complete:
            raise InvalidArgumentError(
                "overwriteSchema needs the output mode complete, which replaces all rows: use mergeSchema to add "
                "columns"
            )
        if is_complete and self.values.get("partitionoverwritemode", "static").strip().lower() != "static":
            raise InvalidArgumentError(
                "the output mode complete replaces all rows, so that partitionOverwriteMode cannot be "
                f"{self.values['partitionoverwritemode']!r}: leave it out"
            )

    def clustering(self) -> list[str] | None:
        """Returns the columns that the user passed to `clusterBy` of a stream, or None."""
        encoded = self.values.get(_CLUSTERING)
        columns: list[str] | None = json.loads(encoded) if encoded else None
        return columns or None

    def with_value(self, name: str, value: str) -> "Options":
        """Returns the options with a new value for one of them."""
        return Options({**self.values, name: value})

    def partition_by(self) -> list[str] | None:
        """Returns the columns that the user passed to `partitionBy`, or None."""
        encoded = self.values.get(_PARTITIONING)
        columns = json.loads(encoded) if encoded else None
        return columns or None

    def for_parquet_writer(self) -> dict[str, str]:
        return {
            name: value
            for name, value in self.values.items()
            if name in _WRITER or name.startswith("parquet.")
        }

    @property
    def base_version(self) -> int | str | None:
        """The version on which an overwrite is based, or `newest`; None if the option is not set."""
        text = self.values.get(BASE_VERSION.lower())
        if text is None:
            return None
        version = whole_number(text)
        if version is not None:
            return version
        if text.strip().lower() != _NEWEST:
            raise InvalidArgumentError(f"{BASE_VERSION} must be a version number or {_NEWEST}, not {text!r}")
        return _NEWEST

    def check_mode(self, mode: str) -> None:
        """Raises an error for options that do not apply to writes with this mode."""
        if mode != "overwrite" and self.base_version is not None:
            raise InvalidArgumentError(
                f"the option {BASE_VERSION} needs the mode overwrite, not {mode}: other writes do not replace rows"
            )

    def is_true(self, name: str) -> bool | None:
        """Returns the value of an option that is true or false; None if it is not set."""
        text = self.values.get(name.lower())
        if text is None:
            return None
        if text.strip().lower() not in ("true", "false"):
            raise InvalidArgumentError(f"{name} must be true or false, not {text!r}")
        return text.strip().lower() == "true"

    @property
    def replace_where(self) -> str | None:
        """The predicate that selects the rows that an overwrite replaces."""
        return self.values.get("replacewhere")

    @property
    def replace_on(self) -> str | None:
        """The condition by which a row of the table matches a row of the data. An overwrite replaces the rows of the
        table that match any row of the data.
        """
        return self.values.get("replaceon")

    @property
    def replace_using(self) -> str | None:
        """The names of columns, separated by commas. An overwrite replaces the rows of the table that have the same
        values in these columns as a row of the data.
        """
        text = self.values.get("replaceusing")
        if text is not None and not all(name.strip() for name in text.split(",")):
            raise InvalidArgumentError(
                f"replaceUsing must be names of columns, separated by commas, not {text!r}"
            )
        return text

    @property
    def target_alias(self) -> str | None:
        """The name of the table in the condition of `replaceOn`."""
        return self.values.get("targetalias")

    @property
    def replaces_rows(self) -> bool:
        """Whether an overwrite replaces rows that match a row of the data."""
        return any(name in self.values for name in _REPLACING)

    def without_replacing(self) -> "Options":
        """Returns the options without `replaceOn` and `replaceUsing`, for a write to a new table, which has no rows to
        replace.
        """
        return Options({name: value for name, value in self.values.items() if name not in _REPLACING})

    def table_configuration(self) -> dict[str, str]:
        """Returns the table properties (`delta.…`) among the options of a write that creates the table.

        Their names are in lower case, because Spark passes options in lower case.
        """
        return {name: value for name, value in self.values.items() if name.startswith("delta.")}

    def _refuse(self, names: tuple[str, ...]) -> None:
        for name in names:
            if name in self.values:
                raise UnsupportedFeatureError(f"the option {name} is not supported yet by deltalog")
