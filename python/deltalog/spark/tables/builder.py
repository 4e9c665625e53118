"""The builders of tables: `DeltaTable.create`, `createIfNotExists`, `replace` and `createOrReplace`.

They build the same plans as Spark's parser for `CREATE TABLE` and `REPLACE TABLE` (`definition_plans.py`). Under Spark
Connect, the server builds the plans, if it uses deltalog's catalog.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession
from pyspark.sql.types import DataType, StructField, StructType

from deltalog.arguments import names_argument, whole_argument
from deltalog.errors import wrong_argument
from deltalog.spark.connect.server import has_our_catalog
from deltalog.spark.errors import InvalidArgumentError, UnsupportedFeatureError
from deltalog.spark.exceptions import raises_pyspark_errors
from deltalog.spark.jvm import Jvm
from deltalog.spark.sql.definition_plans import DEFINE, Mode, PlannedColumn, TablePlan, define, parsed_type
from deltalog.spark.sql.names import is_connect

if TYPE_CHECKING:
    from deltalog.spark.tables.delta_table import DeltaTable

# The keys in a column's metadata, as Spark names them.
_GENERATED = "GENERATION_EXPRESSION"
_START, _STEP, _EXPLICIT = "identity.start", "identity.step", "identity.allowExplicitInsert"


@dataclass
class IdentityGenerator:
    """The first value of an identity column, and the step between its values."""

    start: int = 1
    step: int = 1


class DeltaTableBuilder:
    """A table that is defined step by step and then created or replaced by `execute()`.

    `DeltaTable.create`, `createIfNotExists`, `replace` and `createOrReplace` return a builder. It needs a name or a
    location.
    """

    def __init__(self, spark: SparkSession, mode: Mode) -> None:
        if is_connect(spark) and not has_our_catalog(spark):
            raise UnsupportedFeatureError(
                f"DeltaTable.{mode} is not supported under Spark Connect: write a frame with the columns of the table "
                "by save(path), or use deltalog.DeltaTable.create where the table can be reached"
            )
        self._spark, self._mode = spark, mode
        self._name: str | None = None
        self._location: str | None = None
        self._comment: str | None = None
        self._properties: dict[str, str] = {}
        self._columns: list[PlannedColumn] = []
        self._partition_by: list[str] | None = None
        self._cluster_by: list[str] | None = None

    @raises_pyspark_errors
    def tableName(self, identifier: str) -> "DeltaTableBuilder":  # noqa: N802 (the names users know)
        """Sets the name of the table, in the session catalog or as deltalog.`/path`."""
        self._name = identifier
        return self

    @raises_pyspark_errors
    def location(self, location: str) -> "DeltaTableBuilder":
        """Sets the path of the table. Without a name, the table gets no entry in the catalog."""
        self._location = location
        return self

    @raises_pyspark_errors
    def comment(self, comment: str) -> "DeltaTableBuilder":
        """Sets the description of the table."""
        self._comment = comment
        return self

    @raises_pyspark_errors
    def addColumn(  # noqa: N802
        self,
        colName: str,  # noqa: N803
        dataType: str | DataType,  # noqa: N803
        nullable: bool = True,
        generatedAlwaysAs: str | IdentityGenerator | None = None,  # noqa: N803
        generatedByDefaultAs: IdentityGenerator | None = None,  # noqa: N803
        comment: str | None = None,
    ) -> "DeltaTableBuilder":
        """Adds a column.

        Args:
            colName: the name of the column.
            dataType: the type of the column, as SQL text or as a PySpark type.
            nullable: whether values may be NULL.
            generatedAlwaysAs: the expression by which values are computed, as SQL text; or an `IdentityGenerator` for
                an identity column whose values writers cannot set.
            generatedByDefaultAs: an `IdentityGenerator` for an identity column whose values writers may set.
            comment: a description of the column.
        """
        metadata: dict[str, Any] = {}
        if generatedAlwaysAs is not None and generatedByDefaultAs is not None:
            raise InvalidArgumentError(
                f"the column {colName} has both generatedAlwaysAs and generatedByDefaultAs: give one of them"
            )
        if isinstance(generatedAlwaysAs, str):
            metadata[_GENERATED] = generatedAlwaysAs
        elif generatedAlwaysAs is not None:
            metadata |= _identity(colName, generatedAlwaysAs, False)
        elif generatedByDefaultAs is not None:
            metadata |= _identity(colName, generatedByDefaultAs, True)
        if comment is not None:
            metadata["comment"] = comment
        self._column(colName, dataType, nullable, metadata)
        return self

    @raises_pyspark_errors
    def addColumns(self, cols: StructType | list[StructField]) -> "DeltaTableBuilder":  # noqa: N802
        """Adds the columns of a schema, with their comments."""
        is_list = isinstance(cols, list | tuple | StructType)
        if not is_list or not all(isinstance(field, StructField) for field in cols):
            raise wrong_argument("cols", cols, "a StructType, or a list of StructField")
        for field in cols:
            self._column(field.name, field.dataType, field.nullable, field.metadata or {})
        return self

    @raises_pyspark_errors
    def partitionedBy(self, *cols: str | Iterable[str]) -> "DeltaTableBuilder":  # noqa: N802
        """Sets the columns by which the table is partitioned."""
        self._check_layout(self._partition_by)
        self._partition_by = _names(cols)
        return self

    @raises_pyspark_errors
    def clusterBy(self, *cols: str | Iterable[str]) -> "DeltaTableBuilder":  # noqa: N802
        """Sets the columns by which the table is clustered. A field of a struct is given as `struct.field`."""
        self._check_layout(self._cluster_by)
        self._cluster_by = _names(cols)
        return self

    def _check_layout(self, same: list[str] | None) -> None:
        if same is not None:
            raise InvalidArgumentError("partitionedBy and clusterBy take all columns in one call")
        if self._partition_by is not None or self._cluster_by is not None:
            raise InvalidArgumentError(
                "a table is either partitioned or clustered: use partitionedBy or clusterBy, not both"
            )

    @raises_pyspark_errors
    def property(self, key: str, value: str) -> "DeltaTableBuilder":
        """Sets a table property."""
        self._properties[key] = value
        return self

    @raises_pyspark_errors
    def execute(self) -> "DeltaTable":
        """Creates or replaces the table in one commit, and returns it."""
        from deltalog.spark.tables.delta_table import DeltaTable

        location = self._location
        if self._name is None and location is None:
            raise InvalidArgumentError("a table needs a name or a location: call tableName or location")
        name = self._name
        if name is None:
            path = str(location) if "/" in str(location) else f"./{location}"
            name, location = f"deltalog.`{path.replace('`', '``')}`", None
        plan = TablePlan(
            self._mode,
            name,
            location,
            self._comment,
            self._properties,
            self._columns,
            self._partition_by or [],
            self._cluster_by,
        )
        if is_connect(self._spark):
            DeltaTable(self._spark, "")._ask(DEFINE, **plan._asdict())
        else:
            define(self._jvm(), self._spark._jsparkSession, plan)
        return DeltaTable.forName(self._spark, name)

    def _column(self, name: str, data_type: str | DataType, nullable: bool, metadata: dict[str, Any]) -> None:
        kind, is_json = (data_type, False) if isinstance(data_type, str) else (data_type.json(), True)
        if not is_json and not is_connect(self._spark):
            kind, is_json = parsed_type(self._jvm(), self._spark._jsparkSession, kind), True
        self._columns.append(PlannedColumn(name, kind, is_json, nullable, json.dumps(metadata)))

    def _jvm(self) -> Jvm:
        return Jvm.of(self._spark)


def _identity(column: str, generator: object, allows_values: bool) -> dict[str, Any]:
    if not isinstance(generator, IdentityGenerator):
        expected = "an IdentityGenerator"
        raise wrong_argument(
            "generatedByDefaultAs" if allows_values else "generatedAlwaysAs",
            generator,
            expected if allows_values else f"SQL text, or {expected}",
        )
    start = whole_argument(generator.start, "start", "a 64-bit integer")
    step = whole_argument(generator.step, "step", "a nonzero 64-bit integer")
    if step == 0:
        raise InvalidArgumentError(f"the step of the identity column {column} must not be 0")
    return {_START: start, _STEP: step, _EXPLICIT: allows_values}


def _names(columns: tuple[Any, ...]) -> list[str]:
    """Returns a list of names. The caller passes them one by one or as one list."""
    if len(columns) == 1 and isinstance(columns[0], list | tuple):
        columns = tuple(columns[0])
    return names_argument(columns, "cols")
