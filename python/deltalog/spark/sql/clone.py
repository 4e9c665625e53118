"""Executes CLONE on Spark.

```text
core: which files are copied ──► Spark: each task copies some of them ──► core: files of vectors, one commit
                           reported for each file: its number, the unique part of its new name, its size
```

- The driver copies small amounts of data itself, with the core's own clients for the stores (`division`).
- Files are copied byte by byte, so it does not matter whether Spark could read them.
"""

import contextlib
import json
import logging
import re
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote

from pyspark.sql.types import LongType, StructField, StructType

from deltalog._internal import DeltaError, Snapshot, SparkClone
from deltalog.clone import CloneArguments
from deltalog.commit import commit_arguments
from deltalog.errors import TableAlreadyExistsError
from deltalog.spark.errors import InvalidArgumentError, UnsupportedFeatureError
from deltalog.spark.jvm import Jvm
from deltalog.spark.jvm.py4j_errors import Py4JError
from deltalog.spark.jvm.python_session import python_session
from deltalog.spark.location import Location, last_location, location_of, unescaped, uri_of
from deltalog.spark.options import Options
from deltalog.spark.read import file_errors
from deltalog.spark.read.planner import packed
from deltalog.spark.read.table_version import TableVersion
from deltalog.spark.sql.division import reason_for_driver
from deltalog.spark.sql.entries import NewEntry, default_path, qualified
from deltalog.spark.sql.names import place_of_name
from deltalog.spark.write.caches import refresh
from deltalog.spark.write.interrupts import running_write

_log = logging.getLogger("deltalog.spark")
_COLUMNS = {
    "source_table_size": "sourceTableSize",
    "source_num_of_files": "sourceNumOfFiles",
    "num_removed_files": "numRemovedFiles",
    "num_copied_files": "numCopiedFiles",
    "removed_files_size": "removedFilesSize",
    "copied_files_size": "copiedFilesSize",
}
CLONED = StructType([StructField(name, LongType()) for name in _COLUMNS])
# The names that the core uses for the modes, by the first words of the statement.
_MODES = {"create": "error", "create if not exists": "ignore", "create or replace": "overwrite"}
_PATH = re.compile(r"/|\.\.?/|[A-Za-z][A-Za-z0-9+.-]*:/")
_QUOTED_PATH = re.compile(r"(?:deltalog|delta)\.`((?:[^`]|``)*/(?:[^`]|``)*)`", re.IGNORECASE)


class CloneRequest(NamedTuple):
    """The arguments of a CLONE."""

    target: str
    """The name of the clone, its path, or deltalog.`/path`."""
    shallow: bool
    mode: str
    """One of `create`, `create if not exists` and `create or replace`."""
    location: str | None
    """The path of a clone that has a name."""
    properties: str | None
    """Properties of the clone, as a JSON object."""
    store: Mapping[str, str] = {}
    """Options that determine how the store of the clone is accessed."""
    dry_run: bool = False
    """Whether the clone is only planned, so that nothing is copied or committed."""


def path_in(name: str) -> str | None:
    """Returns the path if the text is a path or deltalog.`/path`; None for the name of a table."""
    if _PATH.match(name):
        return name
    found = _QUOTED_PATH.fullmatch(name.strip())
    return found[1].replace("``", "`") if found else None


def cloned(
    jvm: Jvm, session: Any, source: Snapshot, request: CloneRequest, user_metadata: str | None
) -> list[int]:
    """Creates a clone of a version, and an entry in the catalog if it has a name. Returns a row of `CLONED`."""
    mode = _MODES.get(request.mode.strip().lower())
    if mode is None:
        raise InvalidArgumentError(f"the mode of a clone is one of {', '.join(_MODES)}, not {request.mode!r}")
    properties = clone_properties(request.properties)
    # This must run before another location is resolved, because a thread remembers only its last location and the
    # options with which that store is accessed.
    origin = last_location(source.uri)
    path = path_in(request.target)
    spark = python_session(session)
    identifier = None
    if path is not None:
        if request.location is not None:
            raise InvalidArgumentError(f"the clone {request.target} is a path, and has a location as well")
    elif spark.catalog.tableExists(request.target):
        if mode == "ignore":
            return [0] * len(_COLUMNS)
        if mode == "error":
            raise TableAlreadyExistsError(
                f"there is a table {request.target} already: choose another name, or replace it"
            )
        if request.shallow:
            raise UnsupportedFeatureError(
                f"a shallow clone cannot replace the table {request.target} of the catalog, whose entry would not let "
                "queries read the files of the source: drop the table first, or make a deep clone"
            )
        path, _ = place_of_name(spark, request.target)
        if request.location is not None:
            wanted, known = (uri_of(jvm, session, place) for place in (request.location, path))
            if unescaped(wanted).rstrip("/") != unescaped(known).rstrip("/"):
                raise InvalidArgumentError(f"the table {request.target} is at {known}, not at {wanted}")
    else:
        identifier = qualified(jvm, session, request.target)
        # `ignore` only applies to an existing entry: a table at the location without an entry is not the target.
        mode = "error" if mode == "ignore" else mode
        # This is called even if the result is not needed: if the database does not exist, it raises an error before any
        # files are copied.
        default = default_path(jvm, session, identifier)
        path = request.location or default
    location = location_of(jvm, session, Options({**request.store, "path": path}))
    location.ensure_in_reach()
    arguments = CloneArguments(
        request.shallow, mode, properties, request.dry_run, None, location.storage_options
    )
    plan = SparkClone.begin(source, location.uri, arguments, commit_arguments(None, user_metadata))
    metrics, version, roots = _copied(jvm, session, source, (origin, location), plan)
    if request.dry_run:
        return [metrics[name] for name in _COLUMNS.values()]
    if mode == "overwrite":
        refresh(jvm, session, location.uri, version)
        jvm.static("EntryColumns", "update", session, request.target)
    if identifier is not None:
        # With this option, queries that use the name may read the files of the source. Hadoop paths are not encoded.
        allowed = json.dumps([unquote(root) for root in roots], ensure_ascii=False)
        options = {"allowedRoots": allowed} if roots else {}
        is_managed = request.location is None
        NewEntry(identifier, location.uri, is_managed, "deltalog", options).create(jvm, session, version)
    return [metrics[name] for name in _COLUMNS.values()]


def _copied(
    jvm: Jvm, session: Any, source: Snapshot, places: tuple[Location, Location], plan: SparkClone
) -> tuple[dict[str, int], int | None, list[str]]:
    """Copies the data files of a clone, and commits it. Returns what the commit returns."""
    if plan.files == 0:
        return plan.execute()
    uri = places[1].uri
    reason = reason_for_driver(jvm, session, plan.bytes, places)
    if reason is not None:
        _log.info("%s: the driver copies the files of %s: %s", uri, source.uri, reason)
        return plan.execute()
    # If a task fails because of a file, the error can then name the source table.
    file_errors.remember(TableVersion.of(source))
    with running_write(session) as running, running.tagging():
        tasks = plan.tasks(session.sparkContext().defaultParallelism())
        job = jvm.new("CopyJob", session, source.uri, uri, packed(tasks))
        try:
            running.check()
            job.run()
            running.begin_commit()
        except BaseException:
            # The first error is raised, not a failure of the clean-up.
            with contextlib.suppress(Py4JError):
                running.wait_for_tasks()
            with contextlib.suppress(DeltaError):
                plan.abandon()
            raise
    return plan.commit(bytes(job.copied()))


def clone_properties(text: str | None) -> dict[str, str]:
    """Returns the properties in a JSON object."""
    found = {} if text is None else json.loads(text)
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        raise InvalidArgumentError(f"the properties of a clone are a JSON object of texts, not {text}")
    return found
