"""Values of every type and columns of every name are written and read back, by Spark and by an independent reader."""

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import deltalog
from deltalog import InvalidArgumentError, SchemaMismatchError

UTC = datetime.timezone.utc
# The first row has extreme values. Days before 1582 must not be converted to the hybrid calendar.
EDGES = """
    SELECT 1 AS n,
        true AS bool, -128Y AS tiny, -32768S AS small, 2147483647 AS int, -9223372036854775808L AS long,
        CAST('NaN' AS FLOAT) AS float, -0.0D AS double,
        CAST('-0.000000001' AS DECIMAL(9, 9)) AS dec9, CAST('-99999999.9999999999' AS DECIMAL(18, 10)) AS dec18,
        CAST('99999999999999999999.999999999999999999' AS DECIMAL(38, 18)) AS dec38,
        DATE '0001-01-01' AS old_day, DATE '1582-10-10' AS gap_day, DATE '9999-12-31' AS last_day,
        TIMESTAMP '1500-02-28 23:59:59.999999Z' AS old_time,
        TIMESTAMP '2024-11-03 06:30:00.000001Z' AS twice_in_new_york,
        TIMESTAMP_NTZ '2024-03-10 02:30:00.000001' AS never_in_new_york,
        TIMESTAMP_NTZ '0001-01-01 00:00:00' AS first_ntz,
        'é🙂\\u0000\\n' AS `a name, with; {odd} (characters)=🙂`, X'00FF80' AS bytes,
        named_struct('a', 1, 'b c', named_struct('deep', array(named_struct('x', DATE '1500-01-01'), NULL))) AS nested,
        map('k', array(1, NULL), '', NULL) AS map_of_arrays,
        map(named_struct('k', 1), map('inner', 2.50BD)) AS map_of_structs,
        CAST(array() AS ARRAY<INT>) AS no_items,
        array(array(TIMESTAMP '1969-12-31 23:59:59.999999Z'), array()) AS arrays
"""
EXPECTED: dict[str, Any] = {
    "n": 1,
    "bool": True,
    "tiny": -128,
    "small": -32768,
    "int": 2147483647,
    "long": -(2**63),
    "double": 0.0,
    "dec9": Decimal("-0.000000001"),
    "dec18": Decimal("-99999999.9999999999"),
    "dec38": Decimal("99999999999999999999.999999999999999999"),
    "old_day": datetime.date(1, 1, 1),
    "gap_day": datetime.date(1582, 10, 10),
    "last_day": datetime.date(9999, 12, 31),
    "old_time": datetime.datetime(1500, 2, 28, 23, 59, 59, 999999, tzinfo=UTC),
    "twice_in_new_york": datetime.datetime(2024, 11, 3, 6, 30, 0, 1, tzinfo=UTC),
    "never_in_new_york": datetime.datetime(2024, 3, 10, 2, 30, 0, 1),
    "first_ntz": datetime.datetime(1, 1, 1),
    "bytes": b"\x00\xff\x80",
    "nested": {"a": 1, "b c": {"deep": [{"x": datetime.date(1500, 1, 1)}, None]}},
    "map_of_arrays": [("k", [1, None]), ("", None)],
    "map_of_structs": [({"k": 1}, [("inner", Decimal("2.50"))])],
    "no_items": [],
    "arrays": [[datetime.datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)], []],
}
ODD_NAME = "a name, with; {odd} (characters)=🙂"
SIMPLE_NAMES = (
    f"SELECT * EXCEPT (`{ODD_NAME}`, nested), named_struct('a', nested.a, 'b', nested.`b c`) AS nested "
    f"FROM ({EDGES})"
)


def with_nulls(spark: SparkSession, query: str) -> DataFrame:
    row = spark.sql(query)
    nulls = [
        f"CAST(NULL AS {field.dataType.simpleString()}) AS `{field.name}`" for field in row.schema.fields[1:]
    ]
    return row.unionByName(spark.sql(f"SELECT 2 AS n, {', '.join(nulls)}")).coalesce(1)


def texts(frame: DataFrame) -> list[str]:
    """Returns the rows in Spark's text form, which is exact even for dates that Python does not support."""
    return sorted(row[0] for row in frame.selectExpr("CAST(struct(*) AS STRING)").collect())


def test_every_type_round_trips_in_spark_and_other_readers(spark: SparkSession, path: str) -> None:
    """PROTOCOL.md, "Primitive Types", "Struct Type", "Array Type", "Map Type"."""
    data = with_nulls(spark, SIMPLE_NAMES)
    data.write.format("deltalog").save(path)
    data.write.format("deltalog").mode("append").save(path)
    found = spark.read.format("deltalog").load(path)
    assert found.schema.simpleString() == data.schema.simpleString()
    assert texts(found) == sorted(texts(data) * 2)
    both = deltalake.DeltaTable(path).to_pyarrow_table().to_pylist()
    assert len(both) == 4
    first = next(row for row in both if row["n"] == 1)
    assert first["float"] != first["float"]
    expected = {**EXPECTED, "nested": {"a": 1, "b": EXPECTED["nested"]["b c"]}}
    assert {name: first[name] for name in expected} == expected
    second = next(row for row in both if row["n"] == 2)
    assert {value for name, value in second.items() if name != "n"} == {None}


def test_filters_on_days_before_1582_are_exact(spark: SparkSession, path: str) -> None:
    spark.sql(EDGES).select("n", "old_day", "old_time").write.format("deltalog").save(path)
    frame = spark.read.format("deltalog").load(path)
    assert (
        frame.where(
            "old_day = DATE '0001-01-01' AND old_time = TIMESTAMP '1500-02-28 23:59:59.999999Z'"
        ).count()
        == 1
    )
    assert (
        frame.where("old_day < DATE '0001-01-01' OR old_time >= TIMESTAMP '1500-03-01 00:00:00Z'").count()
        == 0
    )


def test_names_that_need_column_mapping_are_refused(spark: SparkSession, path: str) -> None:
    """PROTOCOL.md, "Column Mapping".

    Without column mapping, Parquet files have the table's column names, in which Delta does not allow the characters
    ` ,;{}()\\n\\t=`.
    """
    with pytest.raises(SchemaMismatchError, match="odd") as caught:
        spark.sql(EDGES).select("n", f"`{ODD_NAME}`").write.format("deltalog").save(path)
    assert "," in str(caught.value)
    assert not Path(path).exists()


ODD_PATHS = ["%41", "a#b", "a:b", "ü 🙂", "a+b&c?d=e", "p=1", "[a]{b}", "it's"]


@pytest.mark.parametrize("name", ODD_PATHS)
def test_tables_with_unusual_paths_are_read_and_written(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    path = str(tmp_path / name / "t")
    spark.sql("SELECT 1L AS n, 'a/%41 b#:🙂' AS p").write.format("deltalog").partitionBy("p").save(path)
    assert Path(path, "_delta_log", "00000000000000000000.json").is_file()
    quoted = path.replace("`", "``")
    spark.sql(f"INSERT INTO deltalog.`{quoted}` VALUES (2, '%41')")
    wanted = [(1, "a/%41 b#:🙂"), (2, "%41")]
    frame = spark.read.format("deltalog").load(path)
    assert [tuple(row) for row in frame.orderBy("n").collect()] == wanted
    assert [row.n for row in frame.where("p = '%41'").collect()] == [2]
    # The independent reader is left out, because it cannot open a path with a percent sign.
    other = (
        deltalog.DeltaTable(path).to_arrow()
        if "%" in name
        else deltalake.DeltaTable(Path(path).as_uri()).to_pyarrow_table()
    )
    assert sorted(zip(*pa.table(other).to_pydict().values(), strict=True)) == wanted


def test_binary_partition_values_must_be_utf_8(spark: SparkSession, path: str) -> None:
    """PROTOCOL.md, "Partition Value Serialization": the log stores the bytes as a string."""
    spark.sql("SELECT 1 AS n, X'0102C3A9' AS p UNION ALL SELECT 2, NULL").write.format(
        "deltalog"
    ).partitionBy("p").save(path)
    found = spark.read.format("deltalog").load(path).orderBy("n").collect()
    assert [row.p for row in found] == [bytearray(b"\x01\x02\xc3\xa9"), None]
    for query in ("SELECT 3 AS n, X'FF' AS p", "SELECT 3 AS n, X'80' AS p"):
        with pytest.raises(InvalidArgumentError, match="partition column 'p' are not UTF-8"):
            spark.sql(query).write.format("deltalog").mode("append").save(path)
    assert deltalake.DeltaTable(path).version() == 0


def test_an_empty_string_is_null_as_a_partition_value(spark: SparkSession, path: str) -> None:
    """PROTOCOL.md, "Partition Value Serialization": an empty string is null for every type."""
    spark.sql("SELECT 1 AS n, '' AS p UNION ALL SELECT 2, ' '").write.format("deltalog").partitionBy(
        "p"
    ).save(path)
    assert [row.p for row in spark.read.format("deltalog").load(path).orderBy("n").collect()] == [None, " "]


def test_empty_writes_create_no_data_files(spark: SparkSession, path: str) -> None:
    empty = with_nulls(spark, SIMPLE_NAMES).where("n > 2")
    empty.write.format("deltalog").partitionBy("int").save(path)
    found = spark.read.format("deltalog").load(path)
    assert found.schema.simpleString() == empty.schema.simpleString()
    assert found.count() == 0
    assert not list(Path(path).rglob("*.parquet"))
    independent = deltalake.DeltaTable(path)
    assert independent.file_uris() == []
    assert independent.metadata().partition_columns == ["int"]
    assert len(independent.schema().fields) == len(empty.columns)
    empty.write.format("deltalog").mode("append").save(path)
    empty.write.format("deltalog").mode("overwrite").save(path)
    assert spark.read.format("deltalog").load(path).collect() == []


def test_nested_data_of_another_writer_is_read(spark: SparkSession, path: str) -> None:
    deep = pa.struct([("x", pa.list_(pa.struct([("day", pa.date32()), ("at", pa.timestamp("us", "UTC"))])))])
    value = {"x": [{"day": datetime.date(1500, 1, 1), "at": datetime.datetime(1500, 1, 1, tzinfo=UTC)}, None]}
    data = pa.table(
        {
            "s": pa.array([value, None], deep),
            "m": pa.array([[("k", Decimal("-1.50"))], None], pa.map_(pa.string(), pa.decimal128(5, 2))),
        }
    )
    deltalake.write_deltalake(path, data)
    found = spark.read.format("deltalog").load(path)
    assert found.where("s IS NULL AND m IS NULL").count() == 1
    assert (
        found.where(
            "s.x[0].day = DATE '1500-01-01' AND s.x[0].at = TIMESTAMP '1500-01-01 00:00:00Z' AND s.x[1] IS NULL"
        ).count()
        == 1
    )
    assert found.where("m['k'] = -1.50").count() == 1
