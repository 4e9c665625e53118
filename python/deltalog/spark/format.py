"""How the files of a snapshot are read: by Spark's own Parquet reader, and beneath it what the table's features ask for."""

import json
from typing import Any

from deltalog._internal import Snapshot
from deltalog.spark.errors import UnsupportedFeatureError
from deltalog.spark.jvm import Jvm

_CHANGES = "delta.typeChanges"
# Spark's vectorised reader takes 32-bit integers, as which all shorter ones are stored, for decimals with so many digits before the point.
_DIGITS_OF_INTEGERS = 10
_MOST_DIGITS = 38


def file_format(jvm: Jvm, session: Any, snapshot: Snapshot, schema: Any, is_change_feed: bool = False) -> Any:
    """A table that asks for nothing else is read by nothing but Spark's own class."""
    _check_variants(session, snapshot)
    mapping = snapshot.column_mapping_mode
    # Of the versions of a feed any may have had vectors.
    has_vectors = is_change_feed or "deletionVectors" in (snapshot.reader_features or ())
    read_as = _read_as(snapshot)
    row_tracking = None if is_change_feed else snapshot.row_tracking_columns
    if mapping == "none" and not has_vectors and not read_as and row_tracking is None:
        return jvm.root.org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat()
    names = None if mapping == "none" else jvm.new("PhysicalNames", schema, jvm.struct(snapshot.physical_schema_json))
    other_types = jvm.struct(json.dumps({"type": "struct", "fields": read_as}))
    return jvm.new("SnapshotFormat", names, mapping == "id", has_vectors, other_types, is_change_feed, *(row_tracking or (None, None)))


def _check_variants(session: Any, snapshot: Snapshot) -> None:
    """The Parquet reader of Spark 4.0 fails on the mark that the writers of shredded variants put on columns."""
    shredded = [feature for feature in snapshot.reader_features or () if feature.startswith("variantShredding")]
    if shredded and str(session.version()).startswith("4.0."):
        raise UnsupportedFeatureError(
            f"cannot read the table with Spark's own reader: the table feature '{shredded[0]}' needs Spark 4.1 or newer "
            f"(table {snapshot.uri}, version {snapshot.version}); read it with Spark Connect, or from Python"
        )


def _read_as(snapshot: Snapshot) -> list[dict[str, Any]]:
    """The columns that Spark must read in another type than the table's."""
    columns = []
    for field in json.loads(snapshot.schema_json)["fields"]:
        if field["name"] in snapshot.partition_columns:
            continue
        if _is_narrow(field) and isinstance(field["type"], str):
            _, scale = _digits(field["type"])
            if scale + _DIGITS_OF_INTEGERS > _MOST_DIGITS:
                raise _refusal(snapshot, field["name"])
            columns.append({**field, "type": f"decimal({scale + _DIGITS_OF_INTEGERS},{scale})", "metadata": {}})
        elif _is_narrow(field) or _holds_narrow(field["type"]):
            raise _refusal(snapshot, field["name"])
    return columns


def _refusal(snapshot: Snapshot, column: str) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(
        f"cannot read the table with Spark's own reader: the change of the column {column} from short integers to a decimal (table feature "
        f"'typeWidening') is not implemented there (table {snapshot.uri}, version {snapshot.version}); read it with Spark Connect, or from Python"
    )


def _is_narrow(field: dict[str, Any]) -> bool:
    """Whether the column was one of short integers, and is a decimal that Spark's reader does not take them for."""
    changes = field.get("metadata", {}).get(_CHANGES, [])
    if not any(change["fromType"] in ("byte", "short") and change["toType"].startswith("decimal") for change in changes):
        return False
    if not isinstance(field["type"], str):
        return True  # within an array or map
    precision, scale = _digits(field["type"])
    return precision - scale < _DIGITS_OF_INTEGERS


def _holds_narrow(kind: Any) -> bool:
    if isinstance(kind, dict):
        return (kind.get("type") == "struct" and any(map(_is_narrow, kind["fields"]))) or any(map(_holds_narrow, kind.values()))
    return isinstance(kind, list) and any(map(_holds_narrow, kind))


def _digits(decimal: str) -> tuple[int, int]:
    precision, scale = decimal.removeprefix("decimal(").removesuffix(")").split(",")
    return int(precision), int(scale)
