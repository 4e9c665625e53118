"""Information that a writer records in its commit in addition to the data."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from deltalog.arguments import TableOptions, limit_argument, whole_argument
from deltalog.checked import checks_arguments, is_text
from deltalog.errors import InvalidArgumentError, hinted, wrong_argument

__all__ = ["CommitArguments", "CommitProperties", "Transaction", "WriteArguments", "commit_arguments"]


@checks_arguments
@dataclass(frozen=True)
class Transaction:
    """The name and version number of an application, recorded with a commit (protocol: "Transaction Identifiers").

    `DeltaTable.transaction_version(app_id)` returns the version that was recorded last.
    """

    app_id: str
    version: int
    last_updated: int | None = None
    """The time of the update in milliseconds since the epoch; by default the time of the commit."""

    def __post_init__(self) -> None:
        whole_argument(self.version, "version", "a 64-bit integer")
        if self.last_updated is not None:
            whole_argument(self.last_updated, "last_updated", "milliseconds since the epoch")


@dataclass(frozen=True)
class CommitProperties:
    """What to record with a commit in addition to its data.

    Args:
        custom_metadata: additional fields of the commit's `commitInfo`, which `history()` shows. Values must be
            convertible to JSON; `userMetadata`, `userName` and `userId` must be strings. The fields that the commit
            sets itself (`timestamp`, `operation`, `operationParameters`, `operationMetrics`, `readVersion`,
            `isBlindAppend`, `isolationLevel`, `inCommitTimestamp`, `engineInfo`, `txnId`) are refused.
        max_commit_retries: accepted for compatibility with `deltalake`; has no effect. If another writer has committed
            first, the commit is retried until it succeeds or conflicts.
        app_transactions: names of applications with version numbers, recorded with the commit. If the table has already
            recorded the same or a later version for one of these applications, nothing is written and `write_deltalake`
            returns an `AlreadyApplied`, so a repeated write never adds its rows twice. (`deltalake` writes them again.)
            If another writer records a lower version of an application first, `CommitConflictError` is raised with the
            reason `app_transaction`.
    """

    custom_metadata: Mapping[str, Any] | None = None
    max_commit_retries: int | None = None
    app_transactions: Sequence[Transaction] | None = None

    def __post_init__(self) -> None:
        _metadata_json(self.custom_metadata)
        limit_argument(self.max_commit_retries, "max_commit_retries")
        given: object = self.app_transactions
        if given is None:
            return
        if isinstance(given, (str, bytes)) or not isinstance(given, Sequence):
            raise wrong_argument("app_transactions", given, "a list of Transaction")
        for one in given:
            if not isinstance(one, Transaction):
                raise wrong_argument("an item of app_transactions", one, "a Transaction")


class CommitArguments(NamedTuple):
    """The `CommitProperties` as the compiled module expects them."""

    custom_metadata: str | None = None
    """The fields of `commitInfo`, as a JSON object."""
    app_transactions: Sequence[tuple[str, int, int | None]] = ()


class WriteArguments(NamedTuple):
    """The arguments of `write_deltalake` except for the data and the location, as the compiled module expects them."""

    mode: str
    options: TableOptions
    commit: CommitArguments
    partition_overwrite: str = "static"
    predicate: str | None = None
    schema_mode: str | None = None
    target_file_size: int | None = None
    file_format: str | None = None
    """The JSON form of the core's `FileFormat`."""


def commit_arguments(
    properties: CommitProperties | None, user_metadata: str | None = None
) -> CommitArguments:
    """Returns commit properties as the compiled module expects them."""
    properties = CommitProperties() if properties is None else properties
    if not isinstance(properties, CommitProperties):
        raise wrong_argument("commit_properties", properties, "a CommitProperties, or None")
    metadata = dict(properties.custom_metadata or {})
    if user_metadata is not None:
        if "userMetadata" in metadata:
            refused = InvalidArgumentError(
                "userMetadata is given twice: as user_metadata and in custom_metadata"
            )
            raise hinted(refused, "pass it once")
        metadata["userMetadata"] = user_metadata
    transactions = [(one.app_id, one.version, one.last_updated) for one in properties.app_transactions or ()]
    return CommitArguments(_metadata_json(metadata), transactions)


def _metadata_json(metadata: Mapping[str, Any] | None) -> str | None:
    """Returns the additional fields of `commitInfo` as a JSON object; None if there are none."""
    if not metadata and isinstance(metadata, Mapping | None):
        return None
    expected = "a dictionary of strings to values that JSON can represent"
    if not isinstance(metadata, Mapping):
        raise wrong_argument("custom_metadata", metadata, expected)
    for key in metadata:
        if not isinstance(key, str):
            raise wrong_argument("a key of custom_metadata", key, "text")
    try:
        text = json.dumps(dict(metadata), allow_nan=False, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError) as error:
        refused = InvalidArgumentError(f"custom_metadata has no JSON form: {error}")
        raise hinted(refused, "pass numbers, text, lists and dictionaries") from error
    if not is_text(text):
        raise wrong_argument("custom_metadata", metadata, expected)
    return text
