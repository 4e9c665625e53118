"""The page of procedures, from `PROCEDURES` of `deltalog.spark.sql.procedures`."""

from __future__ import annotations

from deltalog.spark.sql.procedures import NAMESPACE, PROCEDURES, Procedure
from scripts.reference.tables import markdown, wrapped

__all__ = ["page"]

START = """\
# Procedures

In classic Spark sessions, and on servers with deltalog in their settings: `CALL deltalog.vacuum('trips', dry_run =>
true)`. Arguments come in the order of the table below, or by name. `SHOW PROCEDURES IN deltalog` lists them (from Spark
4.1), and `DESCRIBE PROCEDURE deltalog.vacuum` describes one. The first argument of each is the table: its name, its
path, or ``deltalog.`/path` ``. [Statements](statements.md) have a syntax of their own for most of them.

This page is written by `python -m scripts.reference`, from the procedures themselves.
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
            "must be given" if parameter.default is None else f"`{parameter.default}`",
        )
        for parameter in procedure.parameters
    ]
    arguments = markdown(("argument", "type", "what it is", "default"), rows) if rows else ""
    columns = ", ".join(f"`{field.name}`" for field in procedure.output.fields)
    result = wrapped(f"Result: {columns}.")
    return f"## {procedure.name}\n\n{wrapped(procedure.description)}\n\n{arguments}{result}\n"


if not PROCEDURES or NAMESPACE != "deltalog":
    raise ValueError("the page names the procedures deltalog.<name>")
