"""The JVM of a classic session: the classes of this package in it, and calls in both directions."""

from deltalog.spark.jvm.gateway import Jvm

__all__ = ["Jvm"]
