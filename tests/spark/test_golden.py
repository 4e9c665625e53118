"""Spark's native scan reads tables that other implementations wrote.

The rows are as expected, or the table is refused because of a feature. Only the newest version is compared;
tests/golden checks the log.
"""

from __future__ import annotations

import datetime as dt
import decimal
from collections import Counter
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.types import ArrayType, DataType, MapType, StructType, VariantType, VariantVal

import deltalog
from tests.conftest import missing
from tests.golden import canonical
from tests.golden.expected import MUST_FAIL, ROOT, Golden, load

TABLES = load()
# The Parquet reader of Spark 4.0 fails on the annotation of variants that newer releases write.
NOT_WITH_4_0 = {"variantShredding-preview", "variantShredding"}


def holds_variants(kind: DataType) -> bool:
    match kind:
        case StructType():
            return any(holds_variants(field.dataType) for field in kind)
        case ArrayType():
            return holds_variants(kind.elementType)
        case MapType():
            return holds_variants(kind.keyType) or holds_variants(kind.valueType)
    return isinstance(kind, VariantType)


def value(cell: Any) -> Any:
    """Returns the JSON form of a Python value from Spark.

    This form is used for tables with variants, because Spark does not mark all variants in its Arrow data.
    """
    match cell:
        case VariantVal():
            return {"__variant__": canonical.value(cell.toPython())}
        case Row():
            return {name: value(child) for name, child in cell.asDict().items()}
        case dict():
            return sorted(
                ([value(key), value(item)] for key, item in cell.items()),
                key=lambda entry: canonical.dumps(entry[0]).encode(),
            )
        case list():
            return [value(child) for child in cell]
        case None | bool() | int() | float() | str() | decimal.Decimal() | dt.date():
            return canonical.value(cell)
        case _:
            raise TypeError(f"no canonical form for {type(cell).__name__}")


def lines_of(frame: DataFrame) -> list[str]:
    if not holds_variants(frame.schema):
        return canonical.rows(frame.toArrow())
    return sorted((canonical.dumps(value(row)) for row in frame.collect()), key=str.encode)


def outcome(spark: SparkSession, golden: Golden) -> str:
    """Reads a table and returns the outcome. Raises an error if it is not the expected outcome."""
    frame = spark.read.format("deltalog")
    match golden.outcome:
        case "must-fail":
            error, words = MUST_FAIL[golden.name]
            with pytest.raises(error, match=words):
                frame.load(str(golden.table))
            return "refused as required"
        case "catalog-managed":
            with pytest.raises(deltalog.UnsupportedFeatureError, match="catalogManaged"):
                frame.load(str(golden.table))
            return "refused (catalogManaged)"
        case "log-only":
            assert frame.load(str(golden.table)).columns == [
                field["name"] for field in golden.expected["schema"]["fields"]
            ]
            return "schema read (no data files)"
        case "lenient":
            try:
                frame.load(str(golden.table)).collect()
            except deltalog.MissingFileError:
                return "broken table accepted, data files absent"
            return "broken table accepted"
    if spark.version.startswith("4.0") and golden.features & NOT_WITH_4_0:
        with pytest.raises(deltalog.UnsupportedFeatureError, match="variantShredding"):
            frame.load(str(golden.table))
        return "refused (variantShredding on Spark 4.0)"
    lines = lines_of(frame.load(str(golden.table)))
    assert (len(lines), canonical.sha256(lines)) == (
        golden.expected["num_rows"],
        golden.expected["rows_sha256"],
    )
    return "read"


def test_every_table_is_read_as_expected_or_refused(spark: SparkSession, outcomes: Counter[str]) -> None:
    """A single test reads all tables, because the first queries of a session are slow. The test reports every table
    with a wrong outcome.
    """
    if not TABLES:
        missing(f"no golden tables at {ROOT}; DELTALOG_GOLDEN names another folder")
    counts: Counter[str] = Counter()
    failures = []
    for golden in TABLES:
        try:
            counts[outcome(spark, golden)] += 1
        except BaseException as error:  # noqa: BLE001 (outcomes of pytest are also reported)
            failures.append(f"{golden.name}: {type(error).__name__}: {str(error)[:500]}")
    for name, count in counts.items():
        outcomes[f"Spark: {name}"] += count
    assert not failures, "\n".join(failures)
    assert counts["read"] > 0
