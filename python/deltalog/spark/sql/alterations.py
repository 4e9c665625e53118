"""Executes `ALTER TABLE` and `COMMENT ON`: converts Spark's table changes to one `TableChange`, and commits it.

A statement that mixes several kinds of changes is refused, because it would need several commits. Spark passes
`REPLACE COLUMNS` as a removal of all columns followed by an addition of new ones, but it counts as one change: columns
that have the same name before and after are the same columns.
"""

import functools
import json
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

from deltalog._internal import TableChange, alter_table
from deltalog.commit import commit_arguments
from deltalog.spark.errors import SchemaMismatchError, UnsupportedFeatureError
from deltalog.spark.jvm import Jvm
from deltalog.spark.location import path_of
from deltalog.spark.options import Options
from deltalog.spark.read.relation import open_snapshot
from deltalog.spark.schema import of_query
from deltalog.spark.write.caches import refresh
from deltalog.spark.write.record import change_metadata
from deltalog.spark.write.settings import Settings


def alter(jvm: Jvm, session: Any, options: Options, changes: Sequence[Any]) -> None:
    """Carries out the changes of one statement. The list is empty if `IF EXISTS` or `IF NOT EXISTS` has removed all of
    them.
    """
    if not changes:
        return
    kinds = [(kind, list(group)) for kind, group in groupby(changes, key=_kind)]
    if [kind for kind, _ in kinds] == ["DeleteColumn", "AddColumn"]:
        kinds = [("ReplaceColumns", kinds[1][1])]
    if len(kinds) != 1:
        names = ", ".join(kind for kind, _ in kinds)
        raise UnsupportedFeatureError(
            f"ALTER TABLE with changes of several kinds ({names}) is not supported yet by deltalog: use a "
            "statement for each, or CREATE OR REPLACE TABLE"
        )
    [(kind, group)] = kinds
    planned = _CHANGES.get(kind)
    if kind in ("AddColumn", "ReplaceColumns"):
        planned = functools.partial(_add_columns if kind == "AddColumn" else _replace_columns, jvm)
    if planned is None:
        raise UnsupportedFeatureError(f"ALTER TABLE ({kind}) is not supported yet by deltalog")
    change = planned(group)
    snapshot = open_snapshot(jvm, session, options)
    arguments = commit_arguments(None, change_metadata(Settings.of(jvm, session)))
    version = alter_table(snapshot, change, arguments)
    refresh(jvm, session, snapshot.uri, None if version == snapshot.version else version)


def relocated(jvm: Jvm, session: Any, options: Options, location: str) -> str:
    """Checks the new location of a table in the catalog, and returns the path of the table there.

    Raises an error if there is no table at the new location, or if its columns or partitions differ.
    """
    old = open_snapshot(jvm, session, options)
    new = open_snapshot(jvm, session, Options({**options.values, "path": location}))
    if of_query(old) != of_query(new) or old.partition_columns != new.partition_columns:
        raise SchemaMismatchError(
            f"the columns or partitions of the table {new.uri} differ from {old.uri}: drop the table, and create it "
            "with the new location"
        )
    return path_of(jvm, session, new.uri)


def _kind(change: Any) -> str:
    return str(change.getClass().getSimpleName())


def _path(names: Sequence[str]) -> str:
    return ".".join(f"`{name.replace('`', '``')}`" for name in names)


def _one(changes: list[Any]) -> Any:
    if len(changes) != 1:
        raise UnsupportedFeatureError(
            "ALTER TABLE that changes several columns is not supported yet by deltalog: use a statement for each"
        )
    return changes[0]


def _set_properties(changes: list[Any]) -> TableChange:
    values = {str(change.property()): str(change.value()) for change in changes}
    for name in ("location", "provider"):
        if name in values:
            raise UnsupportedFeatureError(
                f"the {name} of a table cannot be changed by deltalog, apart from the location of a table in the "
                "catalog: drop the table and create another one"
            )
    return TableChange.set_properties(values)


def _remove_properties(changes: list[Any]) -> TableChange:
    return TableChange.unset_properties([str(change.property()) for change in changes], True)


def _add_columns(jvm: Jvm, changes: list[Any]) -> TableChange:
    return TableChange.add_columns_at([_new_column(jvm, change) for change in changes])


def _replace_columns(jvm: Jvm, changes: list[Any]) -> TableChange:
    schemas = [json.loads(_new_column(jvm, change)[0]) for change in changes]
    fields = [field for schema in schemas for field in schema["fields"]]
    return TableChange.replace_columns(json.dumps({"type": "struct", "fields": fields}))


def _new_column(jvm: Jvm, change: Any) -> tuple[str, str | None, bool, str | None]:
    *parent, name = change.fieldNames()
    metadata = {} if change.comment() is None else {"comment": str(change.comment())}
    if change.defaultValue() is not None:
        metadata["CURRENT_DEFAULT"] = str(change.defaultValue().getSql())
    # CHAR and VARCHAR columns are stored as strings; their length is a rule in the metadata.
    stored = json.loads(jvm.static("TableDefinition", "stored", change.dataType()).json())["fields"][0]
    if parent and stored["metadata"]:
        raise UnsupportedFeatureError(
            f"a field of a struct with the type {change.dataType().simpleString()} cannot be added yet by deltalog: "
            "add it as a string"
        )
    field = {
        "name": name,
        "type": stored["type"],
        "nullable": bool(change.isNullable()),
        "metadata": {**stored["metadata"], **metadata},
    }
    after = None if change.position() is None else _after(change.position())
    schema = json.dumps({"type": "struct", "fields": [field]})
    return schema, _path(parent) if parent else None, after == "", after or None


def _after(position: Any) -> str:
    """Returns the name of the column after which the new column is placed; empty for the first position."""
    return str(position.column()) if _kind(position) == "After" else ""


def _drop_columns(changes: list[Any]) -> TableChange:
    return TableChange.drop_columns([_path(change.fieldNames()) for change in changes])


def _rename_column(changes: list[Any]) -> TableChange:
    change = _one(changes)
    return TableChange.rename_column(_path(change.fieldNames()), str(change.newName()))


def _move_column(changes: list[Any]) -> TableChange:
    change = _one(changes)
    return TableChange.move_column(_path(change.fieldNames()), _after(change.position()) or None)


def _set_nullable(changes: list[Any]) -> TableChange:
    change = _one(changes)
    return TableChange.set_nullable(_path(change.fieldNames()), bool(change.nullable()))


def _widen_column(changes: list[Any]) -> TableChange:
    change = _one(changes)
    kind = json.loads(change.newDataType().json())
    if not isinstance(kind, str):
        raise UnsupportedFeatureError(
            "the type of a nested column cannot be changed as a whole: change its fields one by one"
        )
    return TableChange.widen_column(_path(change.fieldNames()), kind)


def _set_comment(changes: list[Any]) -> TableChange:
    change = _one(changes)
    return TableChange.set_column_metadata(_path(change.fieldNames()), {"comment": change.newComment()})


def _set_default(changes: list[Any]) -> TableChange:
    change = _one(changes)
    column, default = _path(change.fieldNames()), change.newDefaultValue()
    return TableChange.set_default(column, str(default)) if default else TableChange.drop_default(column)


def _cluster_by(changes: list[Any]) -> TableChange:
    columns = _one(changes).clusteringColumns()
    return TableChange.cluster_by([_path(column.fieldNames()) for column in columns])


def _add_constraint(changes: list[Any]) -> TableChange:
    constraint = _one(changes).constraint()
    if _kind(constraint) != "Check":
        raise UnsupportedFeatureError(
            f"a constraint of the kind {_kind(constraint)} is not supported by deltalog: Delta tables only have CHECK "
            "constraints"
        )
    return TableChange.add_constraints([(str(constraint.name()), str(constraint.predicateSql()))])


def _drop_constraint(changes: list[Any]) -> TableChange:
    change = _one(changes)
    return TableChange.drop_constraint(str(change.name()), bool(change.ifExists()))


_CHANGES: dict[str, Callable[[list[Any]], TableChange]] = {
    "SetProperty": _set_properties,
    "RemoveProperty": _remove_properties,
    "DeleteColumn": _drop_columns,
    "RenameColumn": _rename_column,
    "UpdateColumnPosition": _move_column,
    "UpdateColumnNullability": _set_nullable,
    "UpdateColumnType": _widen_column,
    "UpdateColumnComment": _set_comment,
    "UpdateColumnDefaultValue": _set_default,
    "ClusterBy": _cluster_by,
    "AddConstraint": _add_constraint,
    "DropConstraint": _drop_constraint,
}
