"""Clones of a table."""

import json
import uuid
from collections.abc import Mapping
from typing import TypeVar

from deltalog.spark.connect.copies import CloneCommand
from deltalog.spark.connect.server import has_our_catalog
from deltalog.spark.errors import InvalidArgumentError, UnsupportedFeatureError
from deltalog.spark.exceptions import raises_pyspark_errors
from deltalog.spark.jvm import Jvm
from deltalog.spark.options import Options
from deltalog.spark.sql.clone import CloneRequest, clone_properties, cloned, path_in
from deltalog.spark.sql.names import is_connect, place_of_name
from deltalog.spark.tables.handle import TableHandle
from deltalog.spark.write.record import USER_METADATA

_Table = TypeVar("_Table", bound="Clones")


class Clones(TableHandle):
    """The methods of `DeltaTable` that clone the table."""

    @raises_pyspark_errors
    def clone(
        self: _Table,
        target: str,
        isShallow: bool = False,  # noqa: N803
        replace: bool = False,
        properties: Mapping[str, str] | None = None,
    ) -> _Table:
        """Clones the newest version to another location, as Python's `DeltaTable.clone` does, and returns the new
        table.

        Args:
            target: the path of the clone, deltalog.`/path`, or a name in the session catalog. Under Spark Connect, a
                name requires a server that uses deltalog's catalog.
            isShallow: whether the clone refers to the files of this table instead of copying them.
            replace: whether an existing table at the clone's location is replaced.
            properties: properties of the clone, which take precedence over the properties of this table.
        """
        return self._cloned(target, isShallow, replace, properties)

    @raises_pyspark_errors
    def cloneAtVersion(  # noqa: N802
        self: _Table,
        version: int,
        target: str,
        isShallow: bool = False,  # noqa: N803
        replace: bool = False,
        properties: Mapping[str, str] | None = None,
    ) -> _Table:
        """Clones a version to another location, as `clone` does."""
        if not isinstance(version, int) or isinstance(version, bool):
            raise InvalidArgumentError(f"the version must be a whole number, not {version!r}")
        return self._cloned(target, isShallow, replace, properties, version=version)

    @raises_pyspark_errors
    def cloneAtTimestamp(  # noqa: N802
        self: _Table,
        timestamp: str,
        target: str,
        isShallow: bool = False,  # noqa: N803
        replace: bool = False,
        properties: Mapping[str, str] | None = None,
    ) -> _Table:
        """Clones the version that was the newest at the given time, as `clone` does."""
        if timestamp is None:
            raise InvalidArgumentError("the time must be a string such as '2025-01-31 12:00:00'")
        return self._cloned(target, isShallow, replace, properties, timestamp=timestamp)

    def _cloned(
        self: _Table,
        target: str,
        is_shallow: bool,
        replaces: bool,
        properties: Mapping[str, str] | None,
        version: int | None = None,
        timestamp: str | None = None,
    ) -> _Table:
        if is_connect(self._spark):
            return self._cloned_by_server(target, is_shallow, replaces, properties, version, timestamp)
        path = path_in(target)
        if path is None:
            self._check_nameable(target)
        source = self._newest()
        if version is not None or timestamp is not None:
            source = source.at(version, None if timestamp is None else self._millis(timestamp))
        mode = "create or replace" if replaces else "create"
        text = None if properties is None else json.dumps(dict(properties))
        request = CloneRequest(target, bool(is_shallow), mode, None, text, self._reached_by())
        jvm, session = Jvm.of(self._spark), self._spark._jsparkSession
        cloned(jvm, session, source, request, self._spark.conf.get(USER_METADATA, None))
        return self._clone_at(place_of_name(self._spark, target)[0] if path is None else path, is_shallow)

    def _cloned_by_server(
        self: _Table,
        target: str,
        is_shallow: bool,
        replaces: bool,
        properties: Mapping[str, str] | None,
        version: int | None,
        timestamp: str | None,
    ) -> _Table:
        path = path_in(target)
        if path is None and not has_our_catalog(self._spark):
            raise UnsupportedFeatureError(
                f"under Spark Connect, a clone needs a path instead of a name such as {target}, because the catalog of "
                "the server is not deltalog's"
            )
        if path is None:
            self._check_nameable(target)
        command = CloneCommand(
            target=target if path is None else path,
            shallow=bool(is_shallow),
            mode="overwrite" if replaces else "error",
            version=version,
            timestamp_ms=None if timestamp is None else self._millis(timestamp),
            properties=clone_properties(None if properties is None else json.dumps(dict(properties))),
            request=str(uuid.uuid4()),
            user_metadata=self._spark.conf.get(USER_METADATA, None),
        )
        self._ask("clone", **command._asdict())
        return self._clone_at(place_of_name(self._spark, target)[0] if path is None else path, is_shallow)

    def _check_nameable(self, target: str) -> None:
        """Raises an error if this table was opened with options for its store, because the catalog entry of a clone
        cannot record them.
        """
        if self._reached_by():
            raise UnsupportedFeatureError(
                f"the clone {target} needs a path instead of a name, because the table was opened with storage "
                "options, which an entry in the catalog cannot store: use a path, or set the options in the session"
            )

    def _clone_at(self: _Table, path: str, is_shallow: bool) -> _Table:
        """Returns a clone of this table, which is accessed with this table's options."""
        is_local = path.startswith(("/", "file:"))
        store = {} if is_local else self._reached_by()
        if is_shallow:
            store["allowedRoots"] = json.dumps([self._path, *Options(self._store).allowed_roots])
        return type(self)(self._spark, path, store=store)
