"""What the roles have in common."""

from deltalog.spark.jvm import Jvm


class Role:
    """A role: it has the public methods of the Java interface of the same name."""

    def __init__(self, jvm: Jvm) -> None:
        self._jvm = jvm
