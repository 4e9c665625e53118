"""Changes of a table's definition."""

from collections.abc import Mapping, Sequence
from typing import final

from deltalog._internal.snapshot import Snapshot
from deltalog.commit import CommitArguments

@final
class TableChange:
    """A change of a table that writes no data. Columns are paths such as `struct.field`."""

    @staticmethod
    def set_properties(properties: Mapping[str, str]) -> TableChange: ...
    @staticmethod
    def unset_properties(names: Sequence[str], if_exists: bool) -> TableChange: ...
    @staticmethod
    def set_name(name: str) -> TableChange: ...
    @staticmethod
    def set_description(description: str) -> TableChange: ...
    @staticmethod
    def add_features(names: Sequence[str]) -> TableChange: ...
    @staticmethod
    def upgrade_protocol(reader: int, writer: int) -> TableChange: ...
    @staticmethod
    def add_columns(schema_json: str, parent: str | None, first: bool, after: str | None) -> TableChange:
        """Adds the fields of a schema, in order, to the struct at `parent`, or as columns of the table if that is None.

        The first field is placed first (`first`), or after the field `after`, and the others follow it. Without a
        position, all are added at the end.
        """
    @staticmethod
    def add_columns_at(columns: Sequence[tuple[str, str | None, bool, str | None]]) -> TableChange:
        """Adds columns. Each tuple contains the arguments of one call of `add_columns`."""
    @staticmethod
    def replace_columns(schema_json: str) -> TableChange:
        """Replaces the columns of the table with the fields of a schema, in order."""
    @staticmethod
    def drop_columns(columns: Sequence[str]) -> TableChange: ...
    @staticmethod
    def rename_column(column: str, name: str) -> TableChange: ...
    @staticmethod
    def move_column(column: str, after: str | None) -> TableChange:
        """Moves a column to the front, or after the field `after` of the same struct."""
    @staticmethod
    def set_nullable(column: str, nullable: bool) -> TableChange: ...
    @staticmethod
    def widen_column(column: str, data_type: str) -> TableChange: ...
    @staticmethod
    def set_column_metadata(column: str, entries: Mapping[str, str | None]) -> TableChange: ...
    @staticmethod
    def set_default(column: str, sql: str) -> TableChange: ...
    @staticmethod
    def drop_default(column: str) -> TableChange: ...
    @staticmethod
    def cluster_by(columns: Sequence[str]) -> TableChange: ...
    @staticmethod
    def add_constraints(constraints: Sequence[tuple[str, str]]) -> TableChange: ...
    @staticmethod
    def drop_constraint(name: str, if_exists: bool) -> TableChange: ...

def alter_table(snapshot: Snapshot, change: TableChange, commit: CommitArguments) -> int:
    """Changes a table, based on `snapshot`. Returns its new version."""

def drop_feature(snapshot: Snapshot, name: str, truncate_history: bool, commit: CommitArguments) -> list[int]:
    """Drops a table feature, based on `snapshot`. Returns the versions of its commits."""
