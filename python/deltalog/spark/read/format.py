"""Describes the file format with which Spark reads a table: its own Parquet reader, with extensions that the table's
features require.

`RelationDescription.java` creates the format from the description.
"""

import json
from typing import Any

from deltalog._internal import Snapshot
from deltalog.spark.errors import UnsupportedFeatureError

_CHANGES = "delta.typeChanges"
# Integers shorter than 32 bits are stored as 32 bits. Spark's vectorized reader converts 32-bit integers only to
# decimals with at least this number of digits before the decimal point.
_DIGITS_OF_INTEGERS = 10
_MOST_DIGITS = 38


def file_format(
    session: Any,
    snapshot: Snapshot,
    is_change_feed: bool = False,
    is_for_statement: bool = False,
    is_stream: bool = False,
) -> dict[str, Any] | None:
    """Describes the format that reads the files. Returns None if Spark's own Parquet format is enough.

    With `is_for_statement`, the format adds the number of each file to `_metadata`, and skips deleted rows even if the
    table does not have the feature `deletionVectors`.
    """
    _check_variants(session, snapshot)
    mapping = snapshot.column_mapping_mode
    # Any version of a change data feed or of a stream may have deletion vectors.
    has_vectors = (
        is_change_feed
        or is_for_statement
        or is_stream
        or "deletionVectors" in (snapshot.reader_features or ())
    )
    read_as = _read_as(snapshot)
    row_tracking = None if is_change_feed else snapshot.row_tracking_columns
    if mapping == "none" and not has_vectors and not read_as and row_tracking is None:
        return None
    row_ids, row_commit_versions = row_tracking or (None, None)
    is_mapped = mapping != "none"
    return {
        "names": {"logical": snapshot.schema_json, "physical": snapshot.physical_schema_json}
        if is_mapped
        else None,
        "byId": mapping == "id",
        "omitsRows": has_vectors,
        "readAs": json.dumps({"type": "struct", "fields": read_as}),
        "isChangeFeed": is_change_feed,
        "rowIds": row_ids,
        "rowCommitVersions": row_commit_versions,
        "numbersFiles": is_for_statement,
    }


def _check_variants(session: Any, snapshot: Snapshot) -> None:
    """Raises an error for shredded variants on Spark 4.0, whose Parquet reader cannot read their columns."""
    shredded = [
        feature for feature in snapshot.reader_features or () if feature.startswith("variantShredding")
    ]
    if shredded and str(session.version()).startswith("4.0."):
        raise UnsupportedFeatureError(
            f"cannot read the table with Spark's own reader: the table feature '{shredded[0]}' requires Spark 4.1 or "
            f"newer (table {snapshot.uri}, version {snapshot.version}); read it with Spark Connect or from Python"
        )


def _read_as(snapshot: Snapshot) -> list[dict[str, Any]]:
    """Returns the columns that Spark must read in a type that differs from the table's."""
    columns = []
    for field in json.loads(snapshot.schema_json)["fields"]:
        if field["name"] in snapshot.partition_columns:
            continue
        kind = _kind_read(field)
        if kind is None:
            raise UnsupportedFeatureError(
                f"cannot read the table with Spark's own reader: the column {field['name']} was changed from short "
                "integers to a decimal with too many digits after the point (table feature 'typeWidening') "
                f"(table {snapshot.uri}, version {snapshot.version}); read it with Spark Connect or from Python"
            )
        if kind != field["type"]:
            columns.append({**field, "type": kind, "metadata": {}})
    return columns


def _kind_read(field: dict[str, Any]) -> Any:
    """Returns the type in which Spark must read the column, which may be its own type; None if there is none."""
    changes = field.get("metadata", {}).get(_CHANGES, [])
    narrow = {
        change.get("fieldPath", "")
        for change in changes
        if change["fromType"] in ("byte", "short") and change["toType"].startswith("decimal")
    }
    return _read_within(field["type"], "", narrow)


def _read_within(kind: Any, path: str, narrow: set[str]) -> Any:
    """Does the same as `_kind_read` for the part of the column at `path`, which is empty for the whole column.

    `kind` is the type of this part. `narrow` contains the paths of decimals that were short integers.
    """
    if isinstance(kind, str):
        return _decimal_read(kind) if path in narrow and kind.startswith("decimal") else kind
    if kind["type"] == "struct":
        parts = {"fields": [{**field, "type": _kind_read(field)} for field in kind["fields"]]}
        return None if any(field["type"] is None for field in parts["fields"]) else {**kind, **parts}
    names = (
        {"elementType": "element"} if kind["type"] == "array" else {"keyType": "key", "valueType": "value"}
    )
    parts = {
        name: _read_within(kind[name], f"{path}.{step}".lstrip("."), narrow) for name, step in names.items()
    }
    return None if None in parts.values() else {**kind, **parts}


def _decimal_read(decimal: str) -> str | None:
    """Returns a decimal type to which Spark's reader converts short integers; None if there is none."""
    precision, scale = _digits(decimal)
    if precision - scale >= _DIGITS_OF_INTEGERS:
        return decimal
    return (
        f"decimal({scale + _DIGITS_OF_INTEGERS},{scale})"
        if scale + _DIGITS_OF_INTEGERS <= _MOST_DIGITS
        else None
    )


def _digits(decimal: str) -> tuple[int, int]:
    precision, scale = decimal.removeprefix("decimal(").removesuffix(")").split(",")
    return int(precision), int(scale)
