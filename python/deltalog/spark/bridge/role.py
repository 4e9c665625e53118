"""The base class of the classes that answer Java's calls."""

from deltalog.spark.jvm import Jvm


class Role:
    """A class that answers the calls of the Java interface with the same name. It has the same public methods."""

    def __init__(self, jvm: Jvm) -> None:
        self._jvm = jvm
