"""Answers calls from the JVM. There is one Python class for each Java interface in `java/common/bridge`.

Each class has the same name as its interface. The methods also have the same names, in the spelling of each language:
`createAsSelect` is `create_as_select`. Parameters are passed by position. `tests/spark/test_bridge.py` compares the two
sides.
"""

from deltalog.spark.bridge.bridge import ROLES, Bridge, python_name

__all__ = ["ROLES", "Bridge", "python_name"]
