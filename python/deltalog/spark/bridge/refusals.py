"""Raises the errors for problems that Java code detects."""

from typing import Any, NoReturn

from deltalog.spark.bridge.role import Role
from deltalog.spark.errors import InvalidArgumentError, SchemaMismatchError, UnsupportedFeatureError
from deltalog.spark.sql import procedures, statements
from deltalog.spark.write import rule_errors


class Refusals(Role):
    """Answers the calls of `Refusals.java`."""

    def statement(self, statement: Any) -> NoReturn:
        name = statements.describe(statement)
        if name in ("DELETE", "UPDATE", "MERGE"):
            raise UnsupportedFeatureError(
                f"{name} is not enabled in this session: call deltalog.spark.enable(session) for it, or use the "
                "methods of deltalog.tables.DeltaTable"
            )
        raise UnsupportedFeatureError(f"{name} is not supported yet by deltalog")

    def existing(self, session: Any, definition: Any, catalog: str | None) -> NoReturn:
        statements.refuse_format(self._jvm, session, definition.identifier())
        if not self._jvm.static("CatalogEntries", "isEntry", definition):
            name = definition.identifier().unquotedString()
            raise InvalidArgumentError(
                f"{name} is a Delta table, and this write would replace it with a table of the format "
                f"{definition.provider().get()}: write with format('deltalog'), or drop the table first"
            )
        self.catalog(catalog)

    def catalog(self, catalog: str | None) -> NoReturn:
        if catalog is None:
            raise UnsupportedFeatureError(
                "this session was used before deltalog was enabled in another session, so it cannot find Delta tables "
                "by name: call deltalog.spark.enable(session) for it, or use paths with load(path) and save(path)"
            )
        raise UnsupportedFeatureError(
            "deltalog defines tables only in its own session catalog, but spark.sql.catalog.spark_catalog is set to "
            f"{catalog}: unset it and call deltalog.spark.enable(spark), or write to a path with save(path)"
        )

    def write(self, directory: str, table: str) -> NoReturn:
        raise InvalidArgumentError(
            f"the directory {directory} belongs to the Delta table {table}, whose files are only "
            "added by commits: write with format('deltalog'), or delete the table first"
        )

    def table(self, table: str, reason: str) -> NoReturn:
        raise InvalidArgumentError(f"{table} is not a Delta table: {reason}")

    def directory(self, name: str, reason: str) -> NoReturn:
        raise InvalidArgumentError(
            f"{name} cannot be converted, because {reason}: only a directory of Parquet files can be converted; "
            "name it by its path, such as parquet.`/path`, or by its table in the session catalog"
        )

    def arguments(self, function: str, reason: str) -> NoReturn:
        raise InvalidArgumentError(f"{function} cannot have these arguments: {reason}")

    def no_table(self, procedure: str) -> NoReturn:
        raise InvalidArgumentError(
            f"the argument table of {procedures.NAMESPACE}.{procedure} must be the name or the path of a table"
        )

    def expression(self, refusal: str) -> NoReturn:
        raise rule_errors.of_json(refusal)

    def feature(self, reason: str) -> NoReturn:
        raise UnsupportedFeatureError(reason)

    def field(self, name: str, column_type: str) -> NoReturn:
        raise SchemaMismatchError(
            f"a value has the field {name}, which the column of type {column_type} does not have: MERGE adds "
            "only columns and fields of its source"
        )
