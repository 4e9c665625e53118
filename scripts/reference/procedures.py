"""Makes the page of procedures from `PROCEDURES` in `deltalog.spark.sql.procedures`."""

from __future__ import annotations

from deltalog.spark.sql.procedures import NAMESPACE, PROCEDURES, Procedure
from scripts.reference.tables import markdown, wrapped

__all__ = ["page"]

START = """\
# Procedures

Procedures can be called in classic Spark sessions, and on servers with deltalog in their settings, for example `CALL
deltalog.vacuum('trips', dry_run => true)`. Arguments are given in the order of the tables below, or by name. The first
argument of each procedure is the table: its name, its path, or ``deltalog.`/path` ``. From Spark 4.1 on, `SHOW
PROCEDURES IN deltalog` lists all procedures, and `DESCRIBE PROCEDURE deltalog.vacuum` describes one. For most
procedures there is also a [statement](statements.md).

This page is generated from the procedures by `python -m scripts.reference`.
"""


def page() -> str:
    """Returns the page."""
    return (
        "\n".join([START, *(_described(procedure) for procedure in PROCEDURES.values())]).rstrip("\n") + "\n"
    )


def _described(procedure: Procedure) -> str:
    rows = [
        (
            f"`{parameter.name}`",
            parameter.type,
            f"{parameter.comment[0].upper()}{parameter.comment[1:]}",
            "required" if parameter.default is None else f"`{parameter.default}`",
        )
        for parameter in procedure.parameters
    ]
    arguments = markdown(("argument", "type", "what it is", "default"), rows) if rows else ""
    columns = ", ".join(f"`{field.name}`" for field in procedure.output.fields)
    result = wrapped(f"Result: {columns}.")
    return f"## {procedure.name}\n\n{wrapped(procedure.description)}\n\n{arguments}{result}\n"


if not PROCEDURES or NAMESPACE != "deltalog":
    raise ValueError("the page expects that the names of procedures begin with 'deltalog.'")
