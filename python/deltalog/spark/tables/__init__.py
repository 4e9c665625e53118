"""`DeltaTable` for Spark, with the names of `delta.tables`. Import it from `deltalog.tables`."""

from deltalog.spark.tables.builder import DeltaTableBuilder, IdentityGenerator
from deltalog.spark.tables.delta_table import DeltaTable
from deltalog.spark.tables.maintenance import DeltaOptimizeBuilder
from deltalog.spark.tables.verbs import DeltaMergeBuilder

__all__ = [
    "DeltaMergeBuilder",
    "DeltaOptimizeBuilder",
    "DeltaTable",
    "DeltaTableBuilder",
    "IdentityGenerator",
]
