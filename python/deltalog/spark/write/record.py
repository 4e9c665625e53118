"""The data that a write records with its commit: the version of an application, and a comment of the user.

| option | session setting | recorded as |
| --- | --- | --- |
| `txnAppId`, `txnVersion` | `spark.databricks.delta.write.txnAppId`, `….txnVersion` | `txn` |
| `userMetadata` | `spark.databricks.delta.commitInfo.userMetadata` | `commitInfo.userMetadata` |

Names and precedence are the same as in the JVM connector: an option takes precedence over the setting. A write is
skipped if the table has already recorded this version of the application or a higher one (protocol: "Transaction
Identifiers"). A Python data source does not see the session's settings, so only the options apply there.
"""

import logging
from typing import Any, NamedTuple

from deltalog._internal import AlreadyApplied, SparkWrite
from deltalog.spark.errors import InvalidArgumentError
from deltalog.spark.options import Options
from deltalog.spark.write.settings import Settings

_APP_ID = "spark.databricks.delta.write.txnAppId"
_VERSION = "spark.databricks.delta.write.txnVersion"
_AUTO_RESET = "spark.databricks.delta.write.txnVersion.autoReset.enabled"
USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"

_log = logging.getLogger("deltalog.spark")


class Record(NamedTuple):
    """The data to record with a commit."""

    app_transaction: tuple[str, int] | None
    user_metadata: str | None
    is_version_of_session: bool = False
    """Whether the application's version comes from the session's setting."""

    @classmethod
    def of_options(cls, options: Options) -> "Record":
        """Returns the record that the options of a write request."""
        app_id, version = (options.values.get(name) for name in ("txnappid", "txnversion"))
        pair = _pair(app_id, version, ("txnAppId", "txnVersion"))
        return cls(pair, options.values.get("usermetadata"))

    @classmethod
    def of_session(cls, options: Options, settings: Settings) -> "Record":
        """Returns the record that the options of a write request, or else the settings of the session."""
        record = cls.of_options(options)._replace(user_metadata=_user_metadata(options, settings))
        if record.app_transaction is None:
            pair = _pair(settings.delta.get(_APP_ID), settings.delta.get(_VERSION), (_APP_ID, _VERSION))
            record = record._replace(app_transaction=pair, is_version_of_session=pair is not None)
        return record

    @classmethod
    def of_batch(cls, options: Options, settings: Settings, batch: tuple[str, int]) -> "Record":
        """Returns the record of a batch of a stream. The session's settings for an application do not apply to
        batches.
        """
        return cls(batch, _user_metadata(options, settings))

    @classmethod
    def of_client(cls, spark: Any) -> "Record":
        """Returns the record that the settings of a Connect session request."""
        app_id, version = (spark.conf.get(name, None) for name in (_APP_ID, _VERSION))
        pair = _pair(app_id, version, (_APP_ID, _VERSION))
        return cls(pair, spark.conf.get(USER_METADATA, None), pair is not None)

    def forget(self, spark: Any) -> None:
        """Unsets the version that a Connect session has set for one write, if the session requests that."""
        resets = str(spark.conf.get(_AUTO_RESET, "false")).strip().lower() == "true"
        if self.is_version_of_session and resets:
            spark.conf.unset(_VERSION)

    def finish(self, session: Any) -> None:
        """Unsets the version that a session of the JVM has set for one write, if the session requests that."""
        if not self.is_version_of_session:
            return
        if str(session.conf().get(_AUTO_RESET, "false")).strip().lower() == "true":
            session.conf().unset(_VERSION)


def started(begun: SparkWrite | AlreadyApplied | None, uri: str) -> SparkWrite | None:
    """Returns the write, or None if it is skipped. Logs a message if the table has already recorded it."""
    if not isinstance(begun, AlreadyApplied):
        return begun
    log_applied(begun, uri)
    return None


def log_applied(applied: AlreadyApplied, uri: str) -> None:
    _log.info(
        "nothing was written to the table %s: the application '%s' has already recorded version %d, so that "
        "version %d is not written again",
        uri,
        applied.app_id,
        applied.recorded,
        applied.version,
    )


def _pair(app_id: str | None, version: str | None, names: tuple[str, str]) -> tuple[str, int] | None:
    if app_id is None and version is None:
        return None
    if app_id is None or version is None:
        present, absent = names if version is None else names[::-1]
        raise InvalidArgumentError(
            f"{present} is set without {absent}: a write is recognized by both, so set both or none"
        )
    try:
        number = int(version.strip())
    except ValueError:
        number = None
    if number is None or not -(2**63) <= number < 2**63:
        raise InvalidArgumentError(f"{names[1]} must be a 64-bit integer, not {version!r}")
    return app_id, number


def change_metadata(settings: Settings) -> str | None:
    """Returns the user's comment for a commit that is not a write of an application."""
    return _user_metadata(Options({}), settings)


def _user_metadata(options: Options, settings: Settings) -> str | None:
    text = options.values.get("usermetadata")
    return settings.delta.get(USER_METADATA) if text is None else text
