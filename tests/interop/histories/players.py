"""Writers of a table: deltalog, `deltalake` and the JVM connector, each through its own API."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Protocol

import deltalake
import pyarrow as pa
import pyarrow.parquet

import deltalog
from deltalog import CommitProperties, DeltaTable, InvalidArgumentError, Transaction, write_deltalake
from tests.interop.conftest import Jvm
from tests.interop.histories import actions as does
from tests.interop.histories.model import Model

Actions = frozenset[type[does.Action]]

WRITES = frozenset({does.Append, does.AppendOnce, does.Overwrite, does.ReplaceWhere, does.AppendWithColumn})
CHANGES = frozenset({does.AddColumn, does.SetProperty, does.AddConstraint, does.DropConstraint})
MAPPED_CHANGES = frozenset({does.RenameColumn, does.DropColumn, does.WidenColumn, does.UnsetProperty})
STATEMENTS = frozenset({does.Delete, does.Update, does.Merge})
MAINTENANCE = frozenset({does.Optimize, does.ZOrder, does.Restore, does.Vacuum})
CLUSTERING = frozenset({does.ClusterBy, does.Cluster})
LOG = frozenset({does.Checkpoint, does.CleanUp})


class Player(Protocol):
    """A Delta implementation that performs actions on the table at a path."""

    name: str

    def plays(self, model: Model, action: does.Action) -> bool: ...
    def create(self, path: Path, model: Model) -> None: ...
    def play(self, path: Path, model: Model, action: does.Action) -> None: ...


def in_backticks(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def make_older(path: Path, kept: int) -> None:
    """Makes all log files forty days older, except for the last `kept` versions. The order of the files stays the
    same.
    """
    log = path / "_delta_log"
    newest = max(int(file.stem) for file in log.glob("*.json") if file.stem.isdigit())
    for file in log.iterdir():
        number = file.name[:20]
        if number.isdigit() and int(number) <= newest - kept:
            then = time.time() - 40 * 86400 - (newest - int(number)) * 60
            os.utime(file, (then, then))


class Ours:
    name = "deltalog"
    actions = (
        WRITES
        | CHANGES
        | MAPPED_CHANGES
        | STATEMENTS
        | MAINTENANCE
        | CLUSTERING
        | LOG
        | {does.OverwritePartitions, does.OverwriteSchema, does.CompactLog}
        | {does.Purge, does.RecomputeStatistics}
    )

    def plays(self, model: Model, action: does.Action) -> bool:
        return type(action) in self.actions

    def create(self, path: Path, model: Model) -> None:
        parts = list(model.partition_by)
        write_deltalake(path, model.table, partition_by=parts, configuration=model.properties)

    def play(self, path: Path, model: Model, action: does.Action) -> None:
        table = DeltaTable(path)
        alter = table.alter
        match action:
            case does.AppendOnce(rows, app, version):
                done = CommitProperties(app_transactions=[Transaction(app, version)])
                assert write_deltalake(path, rows, mode="append", commit_properties=done) is not None
            case does.Append(rows):
                write_deltalake(path, rows, mode="append")
            case does.AppendWithColumn(_, rows):
                write_deltalake(path, rows, mode="append", schema_mode="merge")
            case does.Overwrite(rows):
                write_deltalake(path, rows, mode="overwrite")
            case does.OverwriteSchema(rows):
                write_deltalake(path, rows, mode="overwrite", schema_mode="overwrite")
            case does.OverwritePartitions(rows):
                write_deltalake(path, rows, mode="overwrite", partition_overwrite="dynamic")
            case does.ReplaceWhere(predicate, rows):
                write_deltalake(path, rows, mode="overwrite", predicate=predicate.sql(in_backticks))
            case does.Delete(predicate):
                table.delete(predicate.sql(in_backticks))
            case does.Update(predicate, column, _, literal):
                table.update({in_backticks(column): literal}, predicate=predicate.sql(in_backticks))
            case does.Merge(rows):
                merge = table.merge(rows, "t.id = s.id", source_alias="s", target_alias="t")
                merge.when_matched_update_all().when_not_matched_insert_all().execute()
            case does.Optimize():
                table.optimize.compact(check_rows=True)
            case does.Purge():
                table.optimize.purge(check_rows=True)
            case does.ZOrder():
                table.optimize.z_order("id", check_rows=True)
            case does.ClusterBy(columns):
                by = [in_backticks(column) for column in columns] or None
                try:
                    alter.cluster_by(by)
                except InvalidArgumentError as error:
                    # Files that were written before a column was added have no statistics of it.
                    if "a file has no statistics of the column" not in str(error):
                        raise
                    table.recompute_statistics()
                    alter.cluster_by(by)
            case does.Cluster(full):
                table.optimize.cluster(full=full, check_rows=True)
            case does.RecomputeStatistics():
                table.recompute_statistics(all_files=True)
            case does.Restore(version):
                table.restore(version)
            case does.Vacuum():
                table.vacuum(dry_run=False)
            case does.AddColumn(column):
                alter.add_columns(deltalog.Schema.from_arrow(pa.schema([column])))
            case does.RenameColumn(column, name):
                alter.rename_column(in_backticks(column), name)
            case does.DropColumn(column):
                alter.drop_columns(in_backticks(column))
            case does.WidenColumn(column, to):
                (field,) = deltalog.Schema.from_arrow(pa.schema([("c", to)])).fields
                alter.widen_column(in_backticks(column), str(field.type))
            case does.SetProperty(name, value):
                alter.set_table_properties({name: value})
            case does.UnsetProperty(name):
                alter.unset_table_properties([name])
            case does.AddConstraint(name, sql):
                alter.add_constraint({name: sql})
            case does.DropConstraint(name):
                alter.drop_constraint(name)
            case does.Checkpoint():
                table.create_checkpoint()
            case does.CompactLog(length):
                # Earlier commits may have been removed by a clean-up.
                first = int(table.history()[-1]["version"])
                if table.version() - first >= length:
                    table.compact_logs(table.version() - length, table.version())
            case does.CleanUp(kept):
                make_older(path, kept)
                DeltaTable(path).cleanup_metadata()
            case _:
                raise NotImplementedError(str(action))


class Rust:
    """`deltalake`, which can only write tables with a few features.

    This player sets no table properties, because `deltalake` then adds the feature `variantType` to tables with
    feature lists.
    """

    name = "deltalake"
    actions = WRITES | CHANGES - {does.SetProperty} | STATEMENTS | MAINTENANCE | LOG

    def plays(self, model: Model, action: does.Action) -> bool:
        return type(action) in self.actions

    def create(self, path: Path, model: Model) -> None:
        parts = list(model.partition_by)
        deltalake.write_deltalake(path, model.table, partition_by=parts, configuration=model.properties)

    def play(self, path: Path, model: Model, action: does.Action) -> None:
        table = deltalake.DeltaTable(path)
        match action:
            case does.AppendOnce(rows, app, version):
                done = deltalake.CommitProperties(app_transactions=[deltalake.Transaction(app, version)])
                deltalake.write_deltalake(path, rows, mode="append", commit_properties=done)
            case does.Append(rows):
                deltalake.write_deltalake(path, rows, mode="append")
            case does.AppendWithColumn(_, rows):
                deltalake.write_deltalake(path, rows, mode="append", schema_mode="merge")
            case does.Overwrite(rows):
                deltalake.write_deltalake(path, rows, mode="overwrite")
            case does.ReplaceWhere(predicate, rows):
                sql = predicate.sql(_in_quotes)
                deltalake.write_deltalake(path, rows, mode="overwrite", predicate=sql)
            case does.Delete(predicate):
                table.delete(predicate.sql(_in_quotes))
            case does.Update(predicate, column, _, literal):
                table.update(updates={_in_quotes(column): literal}, predicate=predicate.sql(_in_quotes))
            case does.Merge(rows):
                merge = table.merge(rows, "t.id = s.id", source_alias="s", target_alias="t")
                merge.when_matched_update_all().when_not_matched_insert_all().execute()
            case does.Optimize():
                table.optimize.compact()
            case does.ZOrder():
                table.optimize.z_order(["id"])
            case does.Restore(version):
                table.restore(version)
            case does.Vacuum():
                table.vacuum(dry_run=False)
            case does.AddColumn(column):
                fields = deltalake.Schema.from_arrow(pa.schema([column])).fields
                table.alter.add_columns(fields)
            case does.AddConstraint(name, sql):
                table.alter.add_constraint({name: sql})
            case does.DropConstraint(name):
                table.alter.drop_constraint(name)
            case does.Checkpoint():
                table.create_checkpoint()
            case does.CleanUp(kept):
                make_older(path, kept)
                deltalake.DeltaTable(path).cleanup_metadata()
            case _:
                raise NotImplementedError(str(action))


class Connector:
    """The JVM connector, which is used through SQL. It reads new rows from a Parquet file.

    With `stores_int96`, it stores timestamps as INT96, as Spark does by default. `deltalake` reads such timestamps
    incorrectly if they are before 1677 or after 2262.
    """

    name = "connector"
    actions = (
        WRITES - {does.AppendWithColumn}
        | CHANGES
        | MAPPED_CHANGES
        | STATEMENTS
        | MAINTENANCE
        | CLUSTERING
        | {does.OverwritePartitions, does.Purge}
    )

    def __init__(self, jvm: Jvm, directory: Path, stores_int96: bool) -> None:
        self._jvm = jvm
        kind = "INT96" if stores_int96 else "TIMESTAMP_MICROS"
        jvm.run(f"SET spark.sql.parquet.outputTimestampType = {kind}")
        self._rows = directory / "rows.parquet"

    def plays(self, model: Model, action: does.Action) -> bool:
        match action:
            # The connector's REPLACE WHERE accepts only comparisons of columns.
            case does.ReplaceWhere(predicate, _):
                is_refused = "%" in predicate.template
            # An overwrite of the schema turns clustering off.
            case does.Overwrite():
                is_refused = bool(model.clustered_by)
            # The connector enables the feature `timestampNtz` only in a new table, or if all features are listed.
            case does.AddColumn(column):
                is_refused = column.type == pa.timestamp("us")
            case _:
                is_refused = False
        return type(action) in self.actions and not is_refused

    def create(self, path: Path, model: Model) -> None:
        columns = ", ".join(f"{in_backticks(field.name)} {spark_type(field.type)}" for field in model.schema)
        parts = ", ".join(map(in_backticks, model.partition_by))
        by = f"PARTITIONED BY ({parts})" if parts else ""
        properties = ", ".join(f"'{name}' = '{value}'" for name, value in model.properties.items())
        properties = f"TBLPROPERTIES ({properties})" if properties else ""
        self._jvm.run(f"CREATE TABLE delta.`{path}` ({columns}) USING delta {by} {properties}")

    def play(self, path: Path, model: Model, action: does.Action) -> None:
        table = f"delta.`{path}`"
        alter = f"ALTER TABLE {table}"
        match action:
            case does.AppendOnce(rows, app, version):
                settings = {
                    "spark.databricks.delta.write.txnAppId": app,
                    "spark.databricks.delta.write.txnVersion": str(version),
                }
                self._run_with(settings, f"INSERT INTO {table} {self._select(model, rows)}")
            case does.Append(rows):
                self._jvm.run(f"INSERT INTO {table} {self._select(model, rows)}")
            case does.Overwrite(rows):
                self._jvm.run(f"INSERT OVERWRITE {table} {self._select(model, rows)}")
            case does.OverwritePartitions(rows):
                settings = {"spark.sql.sources.partitionOverwriteMode": "dynamic"}
                self._run_with(settings, f"INSERT OVERWRITE {table} {self._select(model, rows)}")
            case does.ReplaceWhere(predicate, rows):
                where = predicate.sql(in_backticks)
                self._jvm.run(f"INSERT INTO {table} REPLACE WHERE {where} {self._select(model, rows)}")
            case does.Delete(predicate):
                self._jvm.run(f"DELETE FROM {table} WHERE {predicate.sql(in_backticks)}")
            case does.Update(predicate, column, _, literal):
                where, literal = predicate.sql(in_backticks), literal.replace("''", "\\'")
                self._jvm.run(f"UPDATE {table} SET {in_backticks(column)} = {literal} WHERE {where}")
            case does.Merge(rows):
                self._jvm.run(
                    f"""MERGE INTO {table} t USING ({self._select(model, rows)}) s ON t.id = s.id
                    WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"""
                )
            case does.Optimize():
                self._jvm.run(f"OPTIMIZE {table}")
            case does.ZOrder():
                self._jvm.run(f"OPTIMIZE {table} ZORDER BY (id)")
            case does.ClusterBy(columns):
                by = f"({', '.join(map(in_backticks, columns))})" if columns else "NONE"
                self._jvm.run(f"{alter} CLUSTER BY {by}")
            case does.Cluster(full):
                self._jvm.run(f"OPTIMIZE {table}{' FULL' if full else ''}")
            case does.Restore(version):
                self._jvm.run(f"RESTORE {table} TO VERSION AS OF {version}")
            case does.Vacuum():
                self._jvm.run(f"VACUUM {table}")
            case does.Purge():
                self._jvm.run(f"REORG TABLE {table} APPLY (PURGE)")
            case does.AddColumn(column):
                kind = spark_type(column.type)
                self._jvm.run(f"{alter} ADD COLUMNS ({in_backticks(column.name)} {kind})")
            case does.RenameColumn(column, name):
                self._jvm.run(f"{alter} RENAME COLUMN {in_backticks(column)} TO {in_backticks(name)}")
            case does.DropColumn(column):
                self._jvm.run(f"{alter} DROP COLUMNS ({in_backticks(column)})")
            case does.WidenColumn(column, to):
                self._jvm.run(f"{alter} ALTER COLUMN {in_backticks(column)} TYPE {spark_type(to)}")
            case does.SetProperty(name, value):
                self._jvm.run(f'{alter} SET TBLPROPERTIES ("{name}" = "{value}")')
            case does.UnsetProperty(name):
                self._jvm.run(f'{alter} UNSET TBLPROPERTIES ("{name}")')
            case does.AddConstraint(name, sql):
                self._jvm.run(f"{alter} ADD CONSTRAINT {name} CHECK ({sql})")
            case does.DropConstraint(name):
                self._jvm.run(f"{alter} DROP CONSTRAINT {name}")
            case _:
                raise NotImplementedError(str(action))

    def _select(self, model: Model, rows: pa.Table) -> str:
        """Writes the rows to a file, and returns a query that reads them with the table's column order."""
        names = model.table.column_names
        numbered = rows.select(names).rename_columns([f"_{number}" for number in range(len(names))])
        pyarrow.parquet.write_table(numbered, self._rows)
        columns = ", ".join(f"`_{number}` AS {in_backticks(name)}" for number, name in enumerate(names))
        return f"SELECT {columns} FROM parquet.`{self._rows}`"

    def _run_with(self, settings: dict[str, str], sql: str) -> None:
        for name, value in settings.items():
            self._jvm.run(f"SET {name} = {value}")
        try:
            self._jvm.run(sql)
        finally:
            for name in settings:
                self._jvm.run(f"RESET {name}")


def _in_quotes(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def spark_type(kind: pa.DataType) -> str:
    """Returns the name of a type in Spark's SQL."""
    if pa.types.is_struct(kind):
        return f"STRUCT<{', '.join(f'{in_backticks(f.name)}: {spark_type(f.type)}' for f in kind)}>"
    if pa.types.is_map(kind):
        return f"MAP<{spark_type(kind.key_type)}, {spark_type(kind.item_type)}>"
    if pa.types.is_list(kind):
        return f"ARRAY<{spark_type(kind.value_type)}>"
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    if pa.types.is_timestamp(kind):
        return "TIMESTAMP_NTZ" if kind.tz is None else "TIMESTAMP"
    return {
        "bool": "BOOLEAN",
        "int8": "TINYINT",
        "int16": "SMALLINT",
        "int32": "INT",
        "int64": "BIGINT",
        "float": "FLOAT",
        "double": "DOUBLE",
        "string": "STRING",
        "binary": "BINARY",
        "date32[day]": "DATE",
    }[str(kind)]
