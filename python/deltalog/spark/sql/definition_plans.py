"""Creates the plans of CREATE and REPLACE TABLE for the builders of tables (`DefinitionPlans.java`)."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from deltalog.spark.jvm import Jvm

# The command with which a client of Spark Connect makes the server define a table.
DEFINE = "define"

Mode = Literal["create", "createIfNotExists", "replace", "createOrReplace"]


class PlannedColumn(NamedTuple):
    """A column of a table that is to be defined."""

    name: str
    type: str
    """SQL text, or the type as JSON."""
    is_json: bool
    nullable: bool
    metadata: str
    """The metadata as JSON, with Spark's names for the keys."""


class TablePlan(NamedTuple):
    """A definition of a table that can be converted to JSON."""

    mode: Mode
    name: str
    location: str | None
    comment: str | None
    properties: Mapping[str, str]
    columns: Sequence[Sequence[Any]]
    """The fields of each `PlannedColumn`."""
    partition_by: Sequence[str]
    cluster_by: Sequence[str] | None


def parsed_type(jvm: Jvm, session: Any, text: str) -> str:
    """Parses a type that is given as SQL text, and returns it as JSON."""
    return str(jvm.new("DefinitionPlans", session).type(text))


def define(jvm: Jvm, session: Any, plan: TablePlan) -> None:
    """Creates or replaces a table in one commit."""
    plans = jvm.new("DefinitionPlans", session)
    for column in (PlannedColumn(*fields) for fields in plan.columns):
        kind = column.type if column.is_json else plans.type(column.type)
        plans.column(column.name, kind, column.nullable, column.metadata)
    for name in plan.partition_by:
        plans.partitionBy(name)
    if plan.cluster_by is not None:
        plans.clusterBy(jvm.seq(plan.cluster_by))
    run = plans.replace if plan.mode in ("replace", "createOrReplace") else plans.create
    is_lenient = plan.mode in ("createIfNotExists", "createOrReplace")
    properties = jvm.scala_map(plan.properties)
    run(plan.name, properties, jvm.some(plan.location), jvm.some(plan.comment), is_lenient)
