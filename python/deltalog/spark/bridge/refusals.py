"""Errors that Java finds."""

from typing import Any, NoReturn

from deltalog.spark.bridge.role import Role
from deltalog.spark.errors import InvalidArgumentError, SchemaMismatchError, UnsupportedFeatureError
from deltalog.spark.sql import procedures, statements
from deltalog.spark.write import rule_errors


class Refusals(Role):
    """Answers `Refusals.java`."""

    def statement(self, statement: Any) -> NoReturn:
        name = statements.describe(statement)
        if name in ("DELETE", "UPDATE", "MERGE"):
            raise UnsupportedFeatureError(
                f"{name} is not enabled in this session, which is a copy of another one, as in foreachBatch: call "
                "deltalog.spark.enable(session) for it, or use the methods of deltalog.tables.DeltaTable"
            )
        raise UnsupportedFeatureError(f"{name} is not supported yet by deltalog")

    def existing(self, session: Any, name: Any) -> NoReturn:
        statements.refuse_format(self._jvm, session, name)
        self.catalog()

    def catalog(self) -> NoReturn:
        raise UnsupportedFeatureError(
            "deltalog creates tables only in its own session catalog, but spark.sql.catalog.spark_catalog is set to "
            "another one: unset it and call deltalog.spark.enable(spark), or write to a path with save(path)"
        )

    def table(self, table: str, reason: str) -> NoReturn:
        raise InvalidArgumentError(f"{table} is not a Delta table: {reason}")

    def directory(self, name: str, reason: str) -> NoReturn:
        raise InvalidArgumentError(
            f"{name} cannot be converted, because {reason}: only a directory of Parquet files can, by its path, such "
            "as parquet.`/path`, or by the name of its table in the session catalog"
        )

    def no_table(self, procedure: str) -> NoReturn:
        raise InvalidArgumentError(
            f"the argument table of {procedures.NAMESPACE}.{procedure} must be the name or the path of a table"
        )

    def expression(self, refusal: str) -> NoReturn:
        raise rule_errors.of_json(refusal)

    def field(self, name: str, column_type: str) -> NoReturn:
        raise SchemaMismatchError(
            f"a value has the field {name}, which the column of the type {column_type} does not have: MERGE adds "
            "only columns and fields of its source"
        )
