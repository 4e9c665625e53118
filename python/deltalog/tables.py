"""Spark's `DeltaTable`: replace `from delta.tables import DeltaTable` with `from deltalog.tables import DeltaTable`.

The table class for Python without Spark is `deltalog.DeltaTable`.
"""

from deltalog.spark.tables import DeltaMergeBuilder, DeltaTable, DeltaTableBuilder, IdentityGenerator

__all__ = ["DeltaMergeBuilder", "DeltaTable", "DeltaTableBuilder", "IdentityGenerator"]
