"""Parses options with versions and times, in a process without a Spark session."""

from deltalog.arguments import iso_time, timestamp_argument
from deltalog.spark.errors import InvalidArgumentError
from deltalog.spark.options import Options, whole_number


def version_or_time(
    options: Options, version_name: str, timestamp_name: str
) -> tuple[int | None, int | None]:
    """Returns the version and the time that the options name; at least one of them is None."""
    version = options.values.get(version_name.lower())
    timestamp = options.values.get(timestamp_name.lower())
    if version is not None and timestamp is not None:
        raise InvalidArgumentError(f"{version_name} and {timestamp_name} cannot be used together")
    number = None if version is None else whole_number(version)
    if version is not None and number is None:
        raise InvalidArgumentError(f"{version_name} must be a version number, not {version!r}")
    return (
        number,
        None if timestamp is None else _milliseconds(timestamp_name, timestamp),
    )


def _milliseconds(name: str, text: str) -> int | None:
    """Parses a timestamp, which must have a time zone, because the session's time zone is not known here."""
    try:
        moment = iso_time(text.strip())
    except ValueError:
        raise InvalidArgumentError(
            f"{name} must be a timestamp such as '2025-01-31 12:00:00', not {text!r}"
        ) from None
    if moment.tzinfo is None:
        raise InvalidArgumentError(
            f"{name} {text!r} has no time zone, and the Python data source does not know the session's time zone: "
            f"add an offset, as in '{moment.isoformat(' ')}+00:00'"
        )
    return timestamp_argument(moment, round_up=name == "startingTimestamp")
