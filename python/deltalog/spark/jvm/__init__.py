"""Connects Python with the JVM of a classic session: loads this package's Java classes, and makes calls in both
directions.
"""

from deltalog.spark.jvm.gateway import Jvm

__all__ = ["Jvm"]
