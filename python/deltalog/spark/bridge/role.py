"""The common base of the roles."""

from deltalog.spark.jvm import Jvm


class Role:
    """A role, which has the public methods of the Java interface of the same name."""

    def __init__(self, jvm: Jvm) -> None:
        self._jvm = jvm
