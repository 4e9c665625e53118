"""The JVM of a classic session: our classes in it, and calls in both directions."""

from deltalog.spark.jvm.gateway import Jvm

__all__ = ["Jvm"]
