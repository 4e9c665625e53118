"""Checks a CREATE TABLE whose location is not empty.

- If there is a table, everything in the statement must match the table. The statement need not repeat everything, such
  as the table's properties.
- If there are files without a table, the statement is refused, as by the JVM connector: the files would be in the
  directory of a table that does not contain them, and its VACUUM would delete them. Hidden files (`_…`, `.…`), such as
  a log without a commit, are ignored. A CREATE TABLE AS SELECT that fails deletes its files, but one that was
  interrupted may have left files with some of the rows.
"""

import json
from collections.abc import Iterator
from typing import Any

from deltalog._internal import Snapshot, table_exists
from deltalog.spark.errors import InvalidArgumentError
from deltalog.spark.jvm import Jvm
from deltalog.spark.location import Location
from deltalog.spark.protocol_properties import FEATURE
from deltalog.spark.read.relation import check_expected_schema
from deltalog.spark.sql.definition import Definition

# EXISTS_DEFAULT, the value for old rows, is set when a column is added to a table, and is not part of its definition.
_OF_OLD_ROWS = "EXISTS_DEFAULT"


def check_vacant(jvm: Jvm, session: Any, location: Location, name: str) -> None:
    """Raises an error if there are files at the location of a new table. Does nothing if there is already a Delta table
    at the location.
    """
    if location.obstacle is not None:
        return  # Hadoop cannot list this location.
    found = jvm.static("Locations", "anyFile", session, location.uri)
    if found is None or table_exists(location.uri, location.storage_options):
        return
    raise InvalidArgumentError(
        f"the table {name} cannot be created at {location.uri}, which is not a Delta table but contains "
        f"files, such as {found!r}: choose an empty directory, or turn Parquet files into a table with CONVERT TO "
        "DELTA; if a statement that was interrupted left these files, delete them"
    )


def check_same(jvm: Jvm, definition: Definition, existing: Snapshot) -> None:
    """Raises an error if CREATE TABLE does not describe the existing Delta table."""
    if definition.has_columns:
        check_expected_schema(existing, jvm.struct(definition.schema_json))
        if definition.partition_by != list(existing.partition_columns):
            raise InvalidArgumentError(
                f"the Delta table {existing.uri} is partitioned by ({', '.join(existing.partition_columns)}), "
                f"not by ({', '.join(definition.partition_by)})"
            )
        _check_rules(definition, existing)
    if definition.cluster_by is not None and definition.cluster_by != existing.clustering_columns():
        raise _lacks(existing, f"clustering by ({', '.join(definition.clustering or [])})")
    if definition.comment is not None and definition.comment != existing.description:
        raise _lacks(existing, f"comment {definition.comment!r}")
    for name, value in definition.configuration.items():
        is_feature = name.startswith(FEATURE)
        if is_feature and name.removeprefix(FEATURE) in existing.table_features:
            continue
        if is_feature or existing.configuration.get(name) != value:
            raise _lacks(existing, f"property {name}={value}")


def _check_rules(definition: Definition, existing: Snapshot) -> None:
    """Raises an error if NOT NULL, comments, default values or other rules of the columns differ."""
    known = dict(_fields(json.loads(existing.schema_json), ""))
    for name, field in _fields(json.loads(definition.schema_json), ""):
        found = known[name]
        if found["nullable"] and not field["nullable"]:
            raise _lacks(existing, f"rule {name} NOT NULL")
        metadata = found.get("metadata", {})
        for key, value in field.get("metadata", {}).items():
            if key != _OF_OLD_ROWS and metadata.get(key) != value:
                raise _lacks(existing, f"{key} of the column {name}, {value!r},")


def _fields(kind: Any, place: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields all fields of a type, also the fields of structs in arrays and maps, with their paths."""
    if not isinstance(kind, dict):
        return
    for field in kind.get("fields", []):
        name = f"{place}{field['name']}"
        yield name, field
        yield from _fields(field["type"], f"{name}.")
    for part in ("elementType", "keyType", "valueType"):
        if part in kind:
            yield from _fields(kind[part], f"{place}{part.removesuffix('Type')}.")


def _lacks(existing: Snapshot, what: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"the Delta table {existing.uri} does not have the {what} of CREATE TABLE")
