"""A handle of a table: the snapshot that is open, and how it goes on to another one."""

import os
import threading
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

from deltalog import _internal
from deltalog.arguments import (
    StagedCommit,
    required_version,
    span_argument,
    staged_argument,
    timestamp_argument,
)
from deltalog.checked import checks_arguments
from deltalog.errors import InvalidArgumentError
from deltalog.filters import Filter, filter_argument
from deltalog.schema import Schema

__all__ = ["TableHandle"]

# Held only while a table goes from one snapshot to another, never during I/O; a forked child gets it free.
_swap = threading.Lock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_swap.acquire, after_in_parent=_swap.release, after_in_child=_swap.release)


@checks_arguments
class TableHandle:
    """The snapshot of a table that is open, which threads may share."""

    _snapshot: _internal.Snapshot
    _recent: tuple[int, _internal.Recent] | None = None
    """What keeps the newest snapshot, and the process that it works for."""

    @property
    def table_uri(self) -> str:
        """The location of the table, as a URL."""
        return self._snapshot.uri

    def version(self) -> int:
        """Returns the version that is open."""
        return self._snapshot.version

    def schema(self) -> Schema:
        """Returns the table's schema."""
        return Schema._of(self._snapshot.schema_json)

    def update_incremental(
        self,
        *,
        staged_commits: Iterable[StagedCommit] | None = None,
        max_age: float | timedelta | None = None,
    ) -> None:
        """Goes to the newest version; reads only the commits that are new.

        Threads may call it at once: one that is slow never puts the table back to an older version than
        another has opened meanwhile.

        Args:
            staged_commits: what the table's catalog lists by now, if one manages the table.
            max_age: goes to a version that was the newest so many seconds ago, or later. If the last look at the log
                is not longer ago, the call returns at once, and the log is looked at behind it. Should that fail, a
                call raises the error as soon as what is known is older than this; if the table was replaced, the next
                one does.

        Raises:
            DeltaError: as opening the table; the version that is open stays open.
        """
        limit = span_argument(max_age, "max_age")
        if limit is None:
            staged = staged_argument(staged_commits)
            self._move(lambda snapshot: snapshot.refresh(staged))
            return
        if staged_commits is not None:
            raise InvalidArgumentError(
                "with staged_commits there is no max_age: the catalog names the newest version"
            )

        def newer(snapshot: _internal.Snapshot) -> _internal.Snapshot:
            found = self._keeper(snapshot).snapshot(limit)
            return found if found.version > snapshot.version else snapshot

        self._move(newer)

    def _keeper(self, snapshot: _internal.Snapshot) -> _internal.Recent:
        """Returns what keeps the newest snapshot. A forked child has its own, because threads of its parent may have
        been changing the other."""
        process, recent = os.getpid(), self._recent
        if recent is None or recent[0] != process:
            recent = self._recent = (process, _internal.Recent(snapshot))
        return recent[1]

    def load_as_version(self, version: int | str | datetime) -> None:
        """Goes to another version of the table, older or newer.

        Args:
            version: the version, or a time as in `DeltaTable(timestamp=...)`.

        Raises:
            VersionNotFoundError: there is no such version or time; the version that is open stays open.
        """
        if isinstance(version, (str, datetime)):
            timestamp = timestamp_argument(version, "version")
            self._move(lambda snapshot: snapshot.at(None, timestamp))
            return
        number = required_version(version)
        self._move(lambda snapshot: snapshot.at(number, None))

    def _filter(self, filters: Filter | None, name: str = "predicate") -> str | None:
        if filters is None or isinstance(filters, str):
            return filters
        return filter_argument(filters, self.schema(), name)

    def _move(self, to: Callable[[_internal.Snapshot], _internal.Snapshot]) -> None:
        """Opens what `to` makes of the open snapshot; again, if another thread has opened one meanwhile."""
        while True:
            before = self._snapshot
            after = to(before)
            with _swap:
                if self._snapshot is before:
                    self._snapshot = after
                    return
