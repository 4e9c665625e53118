"""The actions of a history. An action knows its effect on the model of the table, and the players execute it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from tests.interop.histories.model import Model, Predicate


class Action:
    """One step of a history."""

    def apply(self, model: Model) -> Model:
        """Returns the model of the table after the action. Most actions that only change the log leave the model as it
        is.
        """
        return model

    def __str__(self) -> str:
        shown = [
            f"{name}={value.num_rows} rows" if isinstance(value, pa.Table) else f"{name}={value!r}"
            for name, value in vars(self).items()
        ]
        return f"{type(self).__name__}({', '.join(shown)})"


@dataclass(frozen=True)
class Append(Action):
    rows: pa.Table

    def apply(self, model: Model) -> Model:
        return model.with_rows(model.table, self.rows)


@dataclass(frozen=True)
class AppendOnce(Append):
    """An append that records a version of an application."""

    app: str
    app_version: int

    def apply(self, model: Model) -> Model:
        after = super().apply(model)
        return replace(after, applications={**model.applications, self.app: self.app_version})


@dataclass(frozen=True)
class Overwrite(Action):
    rows: pa.Table

    def apply(self, model: Model) -> Model:
        return model.with_rows(self.rows)


@dataclass(frozen=True)
class OverwritePartitions(Action):
    rows: pa.Table

    def apply(self, model: Model) -> Model:
        replaced = {model.partition_of(row) for row in self.rows.to_pylist()}
        return model.with_rows(model.without(lambda row: model.partition_of(row) in replaced), self.rows)


@dataclass(frozen=True)
class ReplaceWhere(Action):
    predicate: Predicate
    rows: pa.Table

    def apply(self, model: Model) -> Model:
        return model.with_rows(model.without(self.predicate.holds), self.rows)


@dataclass(frozen=True)
class Delete(Action):
    predicate: Predicate

    def apply(self, model: Model) -> Model:
        return model.with_rows(model.without(self.predicate.holds))


@dataclass(frozen=True)
class Update(Action):
    """Sets `column` to a value in the rows that match the predicate. `literal` is the value in SQL."""

    predicate: Predicate
    column: str
    value: Any
    literal: str

    def apply(self, model: Model) -> Model:
        rows = model.table.to_pylist()
        values = [self.value if self.predicate.holds(row) else row[self.column] for row in rows]
        place = model.schema.get_field_index(self.column)
        of_column = model.schema.field(place)
        table = model.table.set_column(place, of_column, pa.array(values, of_column.type))
        return replace(model, table=model.stored(table))


@dataclass(frozen=True)
class Merge(Action):
    """New rows replace the table's rows with the same ids. Rows with new ids are added."""

    rows: pa.Table

    def apply(self, model: Model) -> Model:
        ids = set(self.rows.column("id").to_pylist())
        return model.with_rows(model.without(lambda row: row["id"] in ids), self.rows)


@dataclass(frozen=True)
class AddColumn(Action):
    column: pa.Field

    def apply(self, model: Model) -> Model:
        nulls = pa.nulls(model.table.num_rows, self.column.type)
        return replace(model, table=model.table.append_column(self.column, nulls), names=model.names + 1)


@dataclass(frozen=True)
class AppendWithColumn(Action):
    """An append whose rows have a column that the table lacks."""

    column: pa.Field
    rows: pa.Table

    def apply(self, model: Model) -> Model:
        wider = AddColumn(self.column).apply(model)
        return wider.with_rows(wider.table, self.rows)


@dataclass(frozen=True)
class OverwriteSchema(Action):
    """An overwrite that gives the table the columns of the rows."""

    rows: pa.Table

    def apply(self, model: Model) -> Model:
        return replace(model.with_rows(self.rows), names=model.names + 1)


@dataclass(frozen=True)
class RenameColumn(Action):
    column: str
    name: str

    def apply(self, model: Model) -> Model:
        names = [self.name if name == self.column else name for name in model.table.column_names]
        parts, clustered = (
            tuple(self.name if name == self.column else name for name in columns)
            for columns in (model.partition_by, model.clustered_by)
        )
        table = model.table.rename_columns(names)
        return replace(model, table=table, partition_by=parts, clustered_by=clustered, names=model.names + 1)


@dataclass(frozen=True)
class DropColumn(Action):
    column: str

    def apply(self, model: Model) -> Model:
        return replace(model, table=model.table.drop_columns([self.column]))


@dataclass(frozen=True)
class WidenColumn(Action):
    column: str
    to: pa.DataType

    def apply(self, model: Model) -> Model:
        place = model.schema.get_field_index(self.column)
        wide = model.table.column(place).cast(self.to)
        return replace(model, table=model.table.set_column(place, pa.field(self.column, self.to), wide))


@dataclass(frozen=True)
class SetProperty(Action):
    name: str
    value: str

    def apply(self, model: Model) -> Model:
        return replace(model, properties={**model.properties, self.name: self.value})


@dataclass(frozen=True)
class UnsetProperty(Action):
    name: str

    def apply(self, model: Model) -> Model:
        left = {name: value for name, value in model.properties.items() if name != self.name}
        return replace(model, properties=left)


@dataclass(frozen=True)
class AddConstraint(Action):
    name: str
    sql: str

    def apply(self, model: Model) -> Model:
        return replace(model, constraints={**model.constraints, self.name: self.sql}, names=model.names + 1)


@dataclass(frozen=True)
class DropConstraint(Action):
    name: str

    def apply(self, model: Model) -> Model:
        left = {name: sql for name, sql in model.constraints.items() if name != self.name}
        return replace(model, constraints=left)


@dataclass(frozen=True)
class Optimize(Action):
    """Rewrites small files into larger ones."""


@dataclass(frozen=True)
class Purge(Action):
    """Rewrites the files that have deletion vectors."""


@dataclass(frozen=True)
class ZOrder(Action):
    """Orders the rows of each partition by `id`."""


@dataclass(frozen=True)
class ClusterBy(Action):
    """Sets the clustering columns; an empty list turns clustering off."""

    columns: tuple[str, ...]

    def apply(self, model: Model) -> Model:
        return replace(model, clustered_by=self.columns)


@dataclass(frozen=True)
class Cluster(Action):
    """Clusters the rows of new files, or of all files that are not clustered by the current columns."""

    full: bool


@dataclass(frozen=True)
class RecomputeStatistics(Action):
    """Recomputes the statistics of all files."""


@dataclass(frozen=True)
class Restore(Action):
    """Restores an earlier version as the newest one."""

    version: int
    earlier: Model

    def apply(self, model: Model) -> Model:
        # A RESTORE keeps the progress of applications.
        return replace(
            self.earlier,
            applications=model.applications,
            next_id=model.next_id,
            names=model.names,
            is_aged=model.is_aged,
            retained=model.retained,
        )

    def __str__(self) -> str:
        return f"Restore(version={self.version})"


@dataclass(frozen=True)
class Vacuum(Action):
    """Deletes files that no version of the last week needs, so all versions can still be read."""


@dataclass(frozen=True)
class Checkpoint(Action):
    pass


@dataclass(frozen=True)
class CompactLog(Action):
    """Writes a log compaction of some of the last versions."""

    length: int


@dataclass(frozen=True)
class CleanUp(Action):
    """Makes all log files except the last ones look so old that they have expired, and cleans up the log."""

    kept: int

    def apply(self, model: Model) -> Model:
        return replace(model, is_aged=True, retained=())
