"""Changes of a table's definition: properties, features, columns and constraints."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from deltalog import _internal
from deltalog._internal import TableChange
from deltalog.arguments import Names, names_argument, options_argument
from deltalog.checked import checks_arguments, is_text
from deltalog.commit import CommitProperties, commit_arguments
from deltalog.errors import InvalidArgumentError, UnsupportedFeatureError, hinted, wrong_argument
from deltalog.schema import Field, PrimitiveType, Schema, primitive_argument

if TYPE_CHECKING:
    from deltalog.table import DeltaTable

__all__ = ["TableAlterer"]


@checks_arguments
class TableAlterer:
    """The changes of a table, as `DeltaTable.alter`.

    Each method makes one commit (`drop_feature` may make several) and returns its version. The table is then at that
    version. If the change would have no effect, nothing is committed. Each method first reads the log, and changes the
    newest version. A table that is pinned to a version refuses changes. If a concurrent commit has changed the
    metadata, or rows that the change depends on, the method raises `CommitConflictError`.

    A column is given by its path: `name`, or `struct.field`. Put a name that contains a dot in backticks. The elements
    of an array are called `element`, and the keys and values of a map `key` and `value`.

    All methods take `commit_properties`, whose `app_transactions` must be empty.

    Raises:
        InvalidArgumentError: the change is not possible; the message names the rule, and the table is unchanged.
        SchemaMismatchError: the schema, or rows of the table, do not allow the change.
        UnsupportedFeatureError: the change needs a table feature that cannot be written, or one that the table
            does not have.
        CommitConflictError: another writer has changed what the change depends on.
    """

    def __init__(self, table: "DeltaTable") -> None:
        self._table = table

    def set_table_properties(
        self, properties: Mapping[str, str], *, commit_properties: CommitProperties | None = None
    ) -> int:
        """Sets table properties (protocol: "Change Metadata").

        A name that begins with `delta.` must be a known property, and its value must be one that the property allows.
        If a property needs a table feature, the feature is added to the protocol.

        - `delta.columnMapping.mode`: from `none` to `name`; each column gets an id.
        - `delta.enableRowTracking`: the rows of all files get ids.
        - `delta.enableIcebergCompatV1`, `…V2`, `…V3`: elements of arrays, and keys and values of maps, get ids. The
          existing files of the table must already meet the rules that these properties set for new files.
        - `delta.enableMaterializePartitionColumnsFeature`: new files also contain the partition columns.
        - `delta.feature.<name>` = `supported`: does the same as `add_feature`.
        - `comment`: the description of the table.

        Args:
            properties: the properties to set; others are not changed.
            commit_properties: what to record with the commit.
        """
        pairs = options_argument(properties, "properties")
        return self._commit(TableChange.set_properties(pairs), commit_properties)

    def unset_table_properties(
        self,
        names: Names,
        *,
        raise_if_not_exists: bool = True,
        commit_properties: CommitProperties | None = None,
    ) -> int:
        """Removes table properties, so that their defaults apply. Table features are not removed from the protocol.

        Args:
            names: the names of the properties.
            raise_if_not_exists: refuse properties that are not set.
            commit_properties: what to record with the commit.
        """
        change = TableChange.unset_properties(names_argument(names, "names"), not raise_if_not_exists)
        return self._commit(change, commit_properties)

    def set_table_name(self, name: str, *, commit_properties: CommitProperties | None = None) -> int:
        """Sets the name of the table in its log. A catalog may use a different name."""
        return self._commit(TableChange.set_name(name), commit_properties)

    def set_table_description(
        self, description: str, *, commit_properties: CommitProperties | None = None
    ) -> int:
        """Sets the description of the table, which SQL calls its comment."""
        return self._commit(TableChange.set_description(description), commit_properties)

    def add_feature(
        self,
        feature: str | Names,
        allow_protocol_versions_increase: bool = True,
        *,
        commit_properties: CommitProperties | None = None,
    ) -> int:
        """Adds table features to the protocol (protocol: "Supported Features").

        A protocol without feature lists is replaced by one that lists all features of the old protocol. Protocol
        versions are never lowered.

        Args:
            feature: the name of a feature, such as `deletionVectors`, or several.
            allow_protocol_versions_increase: accepted for compatibility with `deltalake`. False is refused: a feature
                needs a protocol with feature lists.
            commit_properties: what to record with the commit.

        Raises:
            InvalidArgumentError: there is no such feature.
            UnsupportedFeatureError: the feature cannot be written, or `allow_protocol_versions_increase` is False.
        """
        names = names_argument(feature, "feature", one=True)
        if not allow_protocol_versions_increase:
            refused = UnsupportedFeatureError("allow_protocol_versions_increase cannot be False")
            raise hinted(refused, "if the protocol versions must not change, look at protocol() first")
        return self._commit(TableChange.add_features(names), commit_properties)

    def drop_feature(
        self,
        feature: str,
        *,
        truncate_history: bool = False,
        commit_properties: CommitProperties | None = None,
    ) -> int:
        """Drops a table feature, so that clients without it can work with the table (protocol: "Supported Features").

        Before the commit that drops the feature, other commits remove whatever only affects how the table is stored:

        - `deletionVectors`: files with deletion vectors are rewritten without the deleted rows.
        - `typeWidening`: files with older types are rewritten with the types of the schema.
        - `columnMapping`: all files are rewritten with the column names of the schema. If a name is not allowed
          without the feature, such as one with a space, you have to change it first.
        - `v2Checkpoint`, `rowTracking`, `clustering`, `inCommitTimestamp`, `materializePartitionColumns`: properties,
          row ids and domains.

        Rewritten files contain the same rows, with their row ids, and the change data feed does not show the rewrite.
        Before the call, you have to remove rules for your data that need the feature, such as constraints, default
        values or columns with a type that needs it.

        If readers must support the feature, earlier versions that use it stay readable for clients that support it.
        Other clients start from later checkpoints and do not see these versions. The table gets the feature
        `checkpointProtection`, so that writers do not delete these checkpoints.

        With `truncate_history`, the part of the log that uses the feature is deleted instead, as in `ALTER TABLE ...
        DROP FEATURE ... TRUNCATE HISTORY`. It must be older than `delta.dropFeatureTruncateHistory.retentionDuration`,
        which is 24 hours by default and at least one hour. So the first call removes the feature's traces from the
        table, writes a checkpoint, and raises an error that states when to call again. Until then the log is not
        deleted. `checkpointProtection` itself can only be dropped in this way.

        Other writers may write to the table while this method runs. Files that they add are rewritten as well if
        necessary. If a writer sets the property again that turns on the feature, the method fails.

        The protocol gets the lowest versions that support exactly the remaining features.

        Args:
            feature: the name of the feature.
            truncate_history: delete the versions that use the feature, instead of protecting checkpoints.
            commit_properties: what to record with the last commit.

        Raises:
            InvalidArgumentError: the table does not support the feature, or has another feature that needs it, or
                something is left that only you can remove, or the history is not old enough; the message names it.
            UnsupportedFeatureError: the feature cannot be dropped.
            CommitConflictError: another writer has changed the metadata, or rows that the drop depends on.
        """
        arguments = commit_arguments(commit_properties)
        newest = self._table._newest_to_change()
        try:
            versions = _internal.drop_feature(newest, feature, truncate_history, arguments)
        except InvalidArgumentError:
            # The call may have made commits that remove the feature's traces, before it raised this error because the
            # history is not old enough to delete. So the table moves to the newest version.
            if truncate_history:
                self._table._newest_to_change()
            raise
        self._table._has_committed(*versions)
        return versions[-1]

    def add_columns(
        self,
        fields: Field | Sequence[Field] | Schema,
        *,
        parent: str | None = None,
        first: bool = False,
        after: str | None = None,
        commit_properties: CommitProperties | None = None,
    ) -> int:
        """Adds columns, or fields of a struct. They must be nullable, because they are NULL in existing rows.

        Args:
            fields: the new fields, in order. Their metadata may have a `comment`.
            parent: the path of the struct that gets the fields; None for columns of the table.
            first: put the new fields before all other fields.
            after: put the new fields after the field with this name.
            commit_properties: what to record with the commit.
        """
        schema = (
            fields
            if isinstance(fields, Schema)
            else Schema([fields] if isinstance(fields, Field) else fields)
        )
        change = TableChange.add_columns(schema.to_json(), parent, first, after)
        return self._commit(change, commit_properties)

    def drop_columns(self, columns: str | Names, *, commit_properties: CommitProperties | None = None) -> int:
        """Drops columns, or fields of structs, of a table with column mapping. Its files are not rewritten.

        Columns that the table is partitioned or clustered by, and those that a constraint or a generated column
        refers to, cannot be dropped.
        """
        names = names_argument(columns, "columns", one=True)
        return self._commit(TableChange.drop_columns(names), commit_properties)

    def rename_column(
        self, column: str, name: str, *, commit_properties: CommitProperties | None = None
    ) -> int:
        """Renames a column, or a field of a struct, of a table with column mapping. Its files are not rewritten.

        Columns that a constraint or a generated column refers to cannot be renamed. As in the JVM connector, files
        record the names of the columns by which they were clustered. After a rename, `optimize.cluster(full=True)`
        therefore clusters these files again; and if another column gets the old name, clustering wrongly treats the
        files as clustered by that column.

        Args:
            column: the path of the column.
            name: the new name of its last part.
            commit_properties: what to record with the commit.
        """
        return self._commit(TableChange.rename_column(column, name), commit_properties)

    def move_column(
        self, column: str, *, after: str | None = None, commit_properties: CommitProperties | None = None
    ) -> int:
        """Moves a column, or a field of a struct, to the place after the field `after` of the same struct, or to the
        first place.
        """
        return self._commit(TableChange.move_column(column, after), commit_properties)

    def drop_column_not_null(self, column: str, *, commit_properties: CommitProperties | None = None) -> int:
        """Allows NULL in a column, or a field of a struct."""
        return self._commit(TableChange.set_nullable(column, True), commit_properties)

    def set_column_not_null(self, column: str, *, commit_properties: CommitProperties | None = None) -> int:
        """Forbids NULL in a column, or a field of a struct.

        The method checks that no row has NULL in the column, by the statistics of the files, or by reading files that
        have no such statistics.

        Raises:
            SchemaMismatchError: a row has NULL in the column.
        """
        return self._commit(TableChange.set_nullable(column, False), commit_properties)

    def widen_column(
        self,
        column: str,
        data_type: PrimitiveType | str,
        *,
        commit_properties: CommitProperties | None = None,
    ) -> int:
        """Changes the type of a column, or of a nested field, element, key or value, to a wider type. The files are not
        rewritten.

        The table property `delta.enableTypeWidening` must be `true`, except for a void column, which gets any type.
        Columns that a constraint or a generated column refers to keep their type.

        Args:
            column: the path of the column; it may lead into arrays and maps.
            data_type: the new type, such as `long` or `decimal(20,2)`.
            commit_properties: what to record with the commit.

        Raises:
            SchemaMismatchError: the new type cannot represent all values of the old type.
        """
        if isinstance(data_type, PrimitiveType):
            data_type = data_type.type
        name = primitive_argument(data_type, "data_type")
        return self._commit(TableChange.widen_column(column, name), commit_properties)

    def set_column_metadata(
        self,
        column: str,
        metadata: Mapping[str, str | None],
        *,
        commit_properties: CommitProperties | None = None,
    ) -> int:
        """Sets entries in the metadata of a column, such as `comment`. The value None removes an entry. Other entries
        are not changed.

        Entries that readers or writers act on, such as those that begin with `delta.`, cannot be set.
        """
        expected = "a dictionary of strings to strings or None"
        if not isinstance(metadata, Mapping):
            raise wrong_argument("metadata", metadata, expected)
        for key, value in metadata.items():
            if not is_text(key) or not (value is None or is_text(value)):
                raise wrong_argument(f"metadata[{key!r}]", value, expected)
        return self._commit(TableChange.set_column_metadata(column, dict(metadata)), commit_properties)

    def set_column_default(
        self, column: str, default: str, *, commit_properties: CommitProperties | None = None
    ) -> int:
        """Sets the default value of a column, which new rows get if a write does not include the column (protocol:
        "Default Columns").

        Existing rows are not changed.

        Args:
            column: the name of the column.
            default: an expression without columns in Spark's SQL, such as `0` or `current_date()`.
            commit_properties: what to record with the commit.

        Raises:
            InvalidArgumentError: the value of the expression does not have the column's type, or the column is
                generated.
        """
        return self._commit(TableChange.set_default(column, default), commit_properties)

    def drop_column_default(self, column: str, *, commit_properties: CommitProperties | None = None) -> int:
        """Removes the default value of a column."""
        return self._commit(TableChange.drop_default(column), commit_properties)

    def cluster_by(
        self, columns: Names | str | None, *, commit_properties: CommitProperties | None = None
    ) -> int:
        """Sets the columns by which the table is clustered, or turns clustering off (protocol: "Clustered Table"). No
        file is rewritten.

        Args:
            columns: at most four columns, which may be fields of structs (`struct.field`); None for no clustering.
            commit_properties: what to record with the commit.

        Raises:
            InvalidArgumentError: the table is partitioned, or a column has no statistics: because of its type, because
                the table's properties exclude it, or because a file lacks them. `recompute_statistics` adds them to
                the files.
        """
        names = [] if columns is None else names_argument(columns, "columns", one=True)
        return self._commit(TableChange.cluster_by(names), commit_properties)

    def add_constraint(
        self, constraints: Mapping[str, str], *, commit_properties: CommitProperties | None = None
    ) -> int:
        """Adds a CHECK constraint (protocol: "CHECK Constraints"). All rows of the table are read and checked.

        Args:
            constraints: one name with its condition in Spark's SQL: `{"positive": "price > 0"}`.
            commit_properties: what to record with the commit.

        Raises:
            InvalidArgumentError: there is already a constraint with this name, the condition cannot be evaluated, or it
                is not true for a row of the table.
        """
        pairs = options_argument(constraints, "constraints")
        return self._commit(TableChange.add_constraints(list(pairs.items())), commit_properties)

    def drop_constraint(
        self,
        name: str,
        raise_if_not_exists: bool = True,
        *,
        commit_properties: CommitProperties | None = None,
    ) -> int:
        """Drops a CHECK constraint.

        Args:
            name: the name of the constraint, ignoring case.
            raise_if_not_exists: raise an error if there is none.
            commit_properties: what to record with the commit.
        """
        return self._commit(TableChange.drop_constraint(name, not raise_if_not_exists), commit_properties)

    def _commit(self, change: TableChange, properties: CommitProperties | None) -> int:
        """Commits a change of the newest version."""
        arguments = commit_arguments(properties)
        version = _internal.alter_table(self._table._newest_to_change(), change, arguments)
        self._table._has_committed(version)
        return version
