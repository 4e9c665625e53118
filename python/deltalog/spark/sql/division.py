"""How the driver and the executors divide the work of verbs that move data.

- A job costs about a second before its first row is written, and Spark's reader and writer take more time for a row
  than the core. So the driver does what is small, and everything in local mode, where the tasks run in the driver.
  `spark.deltalog.minSizeForExecutors` is another size.
- The driver also does what the tasks cannot reach.
"""

from collections.abc import Iterable
from typing import Any

from deltalog._internal import InvalidArgumentError
from deltalog.spark.jvm import Jvm
from deltalog.spark.location import Location

MIN_SIZE = "spark.deltalog.minSizeForExecutors"
"""The setting of a session: the size of the data from which on executors move it, such as 1g."""

_MIN_BYTES = 256 << 20


def reason_for_driver(jvm: Jvm, session: Any, size: int, places: Iterable[Location]) -> str | None:
    """Returns why the driver moves `size` bytes of the tables at `places`; None if executors do.

    Raises `InvalidArgumentError` for a setting that is none.
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
    """Returns the size from which on executors move data; None in local mode, unless a size is set."""
    text = session.conf().get(MIN_SIZE, "")
    if not text.strip():
        return None if session.sparkContext().isLocal() else _MIN_BYTES
    try:
        return int(jvm.java("org.apache.spark.network.util.JavaUtils").byteStringAsBytes(text))
    except Exception as error:
        raise InvalidArgumentError(f"{MIN_SIZE} must be a size such as 256m, not {text!r}") from error
