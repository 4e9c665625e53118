"""A handle of a table: the open snapshot, and how it moves to another version."""

import os
import threading
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from deltalog import _internal
from deltalog._internal import AlreadyApplied
from deltalog.arguments import (
    StagedCommit,
    required_version,
    span_argument,
    staged_argument,
    timestamp_argument,
)
from deltalog.checked import checks_arguments, is_text
from deltalog.errors import InvalidArgumentError, hinted
from deltalog.filters import Filter, filter_argument
from deltalog.schema import Schema

__all__ = ["Opened", "TableHandle", "caught_up"]

_MOST_OWN_COMMITS = 100
"""The maximum number of own commits that a table remembers while other writers' commits lie between them. Beyond this
number, the table examines the other writers' commits.
"""

_MOST_COMMITS_BEHIND = 8
"""The maximum number of versions by which the open snapshot may be older than the table's last commit when the table
appends again.
"""

# Held only while a table switches from one snapshot to another, never during I/O. In a forked child it is always free.
_swap = threading.Lock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_swap.acquire, after_in_parent=_swap.release, after_in_child=_swap.release)


class Opened(NamedTuple):
    """The open state of a table. It is replaced as a whole."""

    snapshot: _internal.Snapshot
    seen: int
    """The version whose rows the caller has read, or a version that the caller has committed directly after it. An
    overwrite replaces this version.
    """
    is_pinned: bool = False
    """Whether the caller has chosen the version that is open."""
    committed: int | None = None
    """A later version that the table has committed but not opened yet."""
    own: tuple[int, ...] = ()
    """Versions after `seen` that this table has committed, with versions of other writers in between."""

    @staticmethod
    def at(snapshot: _internal.Snapshot, *, is_pinned: bool = False) -> "Opened":
        """Returns a table at `snapshot`, whose rows the caller reads."""
        return Opened(snapshot, snapshot.version, is_pinned)

    def moved(self, snapshot: _internal.Snapshot) -> "Opened":
        """Returns the table at a newer version, whose rows the caller has not read yet."""
        return self._replace(snapshot=snapshot, committed=None)


@checks_arguments
class TableHandle:
    """The snapshot of a table that is open, which threads may share.

    - A table that was opened without a version follows its location: operations that change it first read the log, and
      act on the newest version. A table at a version that the caller chose is pinned, and refuses changes.
    - An overwrite replaces the version that the caller has seen. When a change moves the table to a version that
      another writer has committed, this version does not count as seen until its rows are read.
    - A committed version is opened only when it is read; until then it costs nothing.
    """

    _opened: Opened
    _recent: tuple[int, _internal.Recent] | None = None
    """The object that keeps the newest snapshot, and the process that it belongs to."""

    @property
    def _snapshot(self) -> _internal.Snapshot:
        """The version that is open. It is never older than the last version that this table has committed."""
        opened = self._opened
        return opened.snapshot if opened.committed is None else self._move(caught_up).snapshot

    @property
    def _rows(self) -> _internal.Snapshot:
        """The version that is open, for a caller that reads its rows. Records that this version was seen."""
        opened = self._opened
        if opened.committed is None and opened.seen == opened.snapshot.version:
            return opened.snapshot
        return self._move(
            lambda opened: Opened.at(caught_up(opened).snapshot, is_pinned=opened.is_pinned)
        ).snapshot

    @property
    def table_uri(self) -> str:
        """The location of the table, as a URL."""
        return self._opened.snapshot.uri

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
        """Moves to the newest version, reading only the new commits. This removes the pin of a pinned table.

        Several threads may call it at the same time: a slow call never moves the table back behind a version that
        another call has opened.

        Args:
            staged_commits: if a catalog manages the table, the commits that the catalog lists now.
            max_age: a number of seconds. If the log was last read within that time, the call returns at once, and the
                log is read in the background. If reading in the background fails, calls raise the error once the last
                successful read is older than `max_age`. If the table was replaced, the next call raises an error.

        Raises:
            DeltaError: for the same reasons as when a table is opened. The version that is open stays open.
        """
        limit = span_argument(max_age, "max_age")
        if limit is None:
            staged = staged_argument(staged_commits)
            self._move(lambda opened: Opened.at(_newest(opened, staged)))
            return
        if staged_commits is not None:
            refused = InvalidArgumentError("staged_commits cannot be passed together with max_age")
            raise hinted(refused, "leave max_age out: the catalog names the newest version")

        def newer(opened: Opened) -> Opened:
            snapshot = caught_up(opened).snapshot
            found = self._keeper(snapshot).snapshot(limit)
            return Opened.at(found if found.version >= snapshot.version else snapshot)

        self._move(newer)

    def _keeper(self, snapshot: _internal.Snapshot) -> _internal.Recent:
        """Returns the object that keeps the newest snapshot. A forked child process uses its own object, because a
        thread of its parent may have been changing the parent's object during the fork.
        """
        process, recent = os.getpid(), self._recent
        if recent is None or recent[0] != process:
            recent = self._recent = (process, _internal.Recent(snapshot))
        return recent[1]

    def load_as_version(self, version: int | str | datetime) -> None:
        """Moves to another version of the table, older or newer, and pins the table to it.

        `update_incremental()` removes the pin. Until then, changes of the table are refused.

        Args:
            version: the version, or a time as in `DeltaTable(timestamp=...)`.

        Raises:
            VersionNotFoundError: there is no such version or time; the version that is open stays open.
        """
        if isinstance(version, (str, datetime)):
            timestamp = timestamp_argument(version, "version")
            self._move(lambda opened: Opened.at(opened.snapshot.at(None, timestamp), is_pinned=True))
            return
        number = required_version(version)
        self._move(lambda opened: Opened.at(opened.snapshot.at(number, None), is_pinned=True))

    def _newest_to_change(self) -> _internal.Snapshot:
        """Moves to the newest version, because the caller is about to change it, and returns it.

        Raises:
            InvalidArgumentError: the table is pinned to a version.
        """

        def newest(opened: Opened) -> Opened:
            _ensure_follows(opened)
            return opened.moved(_newest(opened))

        return self._move(newest).snapshot

    def _base_of_write(self, mode: str) -> _internal.Snapshot:
        """Returns the version that a write with this mode is based on.

        An overwrite replaces the version that the caller has seen. An append extends the newest version. Its commit
        finds that version itself, so it need not be opened first.

        Raises:
            InvalidArgumentError: the table is pinned to a version.
        """
        opened = self._opened
        _ensure_follows(opened)
        if str(mode).lower() == "append":
            behind = 0 if opened.committed is None else opened.committed - opened.snapshot.version
            if len(opened.own) > _MOST_OWN_COMMITS:
                opened = self._move(_settled)
            elif behind > _MOST_COMMITS_BEHIND:
                opened = self._move(caught_up)
            return opened.snapshot
        opened = self._move(_settled)
        return (
            opened.snapshot
            if opened.seen == opened.snapshot.version
            else opened.snapshot.as_base(opened.seen)
        )

    def _has_written(self, answer: int | AlreadyApplied | None) -> None:
        """Does the same as `_has_committed` for the outcome of a write. If the write was skipped because it had been
        committed before, the table is moved to a version that includes it.
        """
        if isinstance(answer, AlreadyApplied):
            self._has_committed(answer.table_version, is_own=False)
        else:
            self._has_committed(answer)

    def _has_committed(self, *versions: int | None, is_own: bool = True) -> None:
        """Records the `versions` that this table has committed, if any. They are opened when they are needed."""
        with _swap:
            opened = self._opened
            if opened.is_pinned:
                return
            for version in versions:
                if version is None:
                    continue
                if version > max(opened.snapshot.version, opened.committed or 0):
                    opened = opened._replace(committed=version)
                if is_own and version == opened.seen + 1:
                    opened = opened._replace(seen=version)
                elif is_own and version > opened.seen:
                    opened = opened._replace(own=(*opened.own, version))
            self._opened = opened

    def _filter(self, filters: Filter | None, name: str = "predicate") -> str | None:
        if filters is None or is_text(filters):
            return filters
        return filter_argument(filters, self.schema(), name)

    def _move(self, to: Callable[[Opened], Opened]) -> Opened:
        """Replaces the open state by the result of the function `to`, and returns the new state. Repeats this if
        another thread has replaced the state first.
        """
        while True:
            before = self._opened
            after = to(before)
            with _swap:
                if self._opened is before:
                    self._opened = after
                    return after


def caught_up(opened: Opened) -> Opened:
    """Returns the table at the version that it has committed last, if there is one."""
    if opened.committed is None:
        return opened
    return opened.moved(opened.snapshot.after_commit(opened.committed))


def _settled(opened: Opened) -> Opened:
    """Catches up like `caught_up`, and moves `seen` to the last version before another writer changed the table. The
    list of the table's own commits is then no longer needed.
    """
    opened = caught_up(opened)
    if opened.seen == opened.snapshot.version:
        return opened._replace(own=())
    return opened._replace(seen=opened.snapshot.unchanged_since(opened.seen, opened.own), own=())


def _newest(
    opened: Opened, staged_commits: "list[str | tuple[int, bytes]] | None" = None
) -> _internal.Snapshot:
    newest = opened.snapshot.refresh(staged_commits)
    # A listing of the log may not contain the newest commits yet.
    is_behind = opened.committed is not None and newest.version < opened.committed
    return caught_up(opened._replace(snapshot=newest)).snapshot if is_behind else newest


def _ensure_follows(opened: Opened) -> None:
    if opened.is_pinned:
        error = InvalidArgumentError(
            f"the table is pinned to version {opened.snapshot.version}, and only its newest version can be changed"
        )
        error.table, error.version = opened.snapshot.uri, opened.snapshot.version
        raise hinted(
            error,
            "call update_incremental() to go to the newest version, or open the table without a version",
        )
