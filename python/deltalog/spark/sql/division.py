"""Decides whether the driver or the executors move the data of statements such as OPTIMIZE and CLONE.

- A job takes about a second before its first row is written, and Spark's reader and writer take more time per row
  than the core. So the driver handles small amounts of data, and everything in local mode, where the tasks run in the
  driver. `spark.deltalog.minSizeForExecutors` changes the limit.
- The driver also handles data in stores that the tasks cannot access.
"""

from collections.abc import Iterable
from typing import Any

from deltalog._internal import InvalidArgumentError
from deltalog.spark.jvm import Jvm
from deltalog.spark.location import Location

MIN_SIZE = "spark.deltalog.minSizeForExecutors"
"""The setting of a session for the minimum size of data that executors move, such as 1g."""

_MIN_BYTES = 256 << 20


def reason_for_driver(jvm: Jvm, session: Any, size: int, places: Iterable[Location]) -> str | None:
    """Returns the reason why the driver moves `size` bytes of the tables at `places`; None if executors do.

    Raises `InvalidArgumentError` if the setting has an invalid value.
    """
    obstacle = next((place.obstacle for place in places if place.obstacle is not None), None)
    if obstacle is not None:
        return obstacle
    least = least_size(jvm, session)
    if least is None:
        return "the tasks of a local session run in the driver"
    if size < least:
        return f"the files have {size} bytes, and less than {least}"
    return None


def least_size(jvm: Jvm, session: Any) -> int | None:
    """Returns the minimum size of data that executors move; None in local mode, unless `MIN_SIZE` is set."""
    text = session.conf().get(MIN_SIZE, "")
    if not text.strip():
        return None if session.sparkContext().isLocal() else _MIN_BYTES
    try:
        return int(jvm.java("org.apache.spark.network.util.JavaUtils").byteStringAsBytes(text))
    except Exception as error:
        raise InvalidArgumentError(f"{MIN_SIZE} must be a size such as 256m, not {text!r}") from error
