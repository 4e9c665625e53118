"""Calls from the JVM: one Python class for each of the Java interfaces in `java/common/bridge`.

A class and its interface have the same name, and so have their methods, in the spelling of each language:
`createAsSelect` is `create_as_select`. Parameters are passed by position. `tests/spark/test_bridge.py` compares the two
sides.
"""

from deltalog.spark.bridge.bridge import ROLES, Bridge, python_name

__all__ = ["ROLES", "Bridge", "python_name"]
