"""An untrusted table may have short expressions with huge values. They make a write fail, but do not crash the process.

Spark computes default values on the driver, and all other values on executors.
"""

from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from deltalog.errors import InvalidArgumentError
from tests.crafted import CraftedTable, field

FEATURES = ["appendOnly", "invariants", "checkConstraints", "generatedColumns", "allowColumnDefaults"]
LONG = "s" * 1000

# If it were computed, the value of each of these expressions would have gigabytes.
LARGE = {
    "repeat": "repeat('x', 2000000000)",
    "repeat of repeat": "repeat(repeat('x', 40000), 40000)",
    "space": "space(2000000000)",
    "lpad": "lpad('x', 2000000000, 'yz')",
    "rpad": "rpad('x', 2000000000)",
    "binary pads": "hex(lpad(X'00', 2000000000, X'01'))",
    "array_repeat": "array_repeat(repeat('x', 1000000), 1000000)[0]",
    "array_repeat of NULL": "array_repeat(CAST(NULL AS STRING), 2000000000)[0]",
    "sequence": "sequence(1, 2000000000)[0]",
    "sequence of days": "sequence(DATE '0001-01-01', TIMESTAMP '9999-01-01 00:00:00', INTERVAL 1 SECOND)[0]",
    "sequence by intervals": (
        "sequence(TIMESTAMP '0001-01-01 00:00:00', TIMESTAMP '9999-01-01 00:00:00', "
        "INTERVAL '0 00:00:01' DAY TO SECOND)[0]"
    ),
    "array_insert": "array_insert(array('x'), 2000000000, 'y')[0]",
    "format_string": "format_string('%2000000000s', 'x')",
    "printf": "printf('%1$1000000000d', 1)",
    "format_number": "format_number(1, 2000000000)",
    "replace": "replace(" * 5 + "'s'" + f", 's', '{LONG}')" * 5,
    "regexp_replace": f"regexp_replace(repeat('s', 1000000), 's', '{LONG}{LONG}')",
    "hex": "hex(" * 40 + "'s'" + ")" * 40,
    "concat in aggregate": "aggregate(sequence(1, 40), 's', (all, one) -> concat(all, all))",
    "concat in transform": "transform(" * 30 + "array('s')" + ", x -> concat(x, x))" * 30 + "[0]",
    "transform": "transform(sequence(1, 100000), x -> repeat('s', 100000))[0]",
    "concat_ws": "concat_ws(repeat('s', 1000000), split(repeat('s', 100000), ''))",
    "array_join": "array_join(sequence(1, 1000000), repeat('s', 1000000))",
    "to_json": "to_json(array(" * 40 + "'\"'" + "))" * 40,
    "in an error that is hidden": "try_url_decode(repeat('x', 2000000000))",
    "in a branch": "if(length(repeat('x', 2000000000)) > 1, 'a', 'b')",
}


def foreign(path: Path, kind: str, sql: str) -> str:
    metadata = {}
    configuration = {}
    if kind == "generated":
        metadata["delta.generationExpression"] = sql
    elif kind == "default":
        metadata["CURRENT_DEFAULT"] = sql
    else:
        configuration["delta.constraints.c"] = sql
    fields = [field("n", "long"), field("s", "string"), field("g", "string", metadata)]
    table = CraftedTable(path, fields, writer_features=FEATURES, configuration=configuration)
    table.commit()
    return str(path)


def insert(spark: SparkSession, uri: str) -> None:
    spark.sql(f"INSERT INTO deltalog.`{uri}` (n, s) VALUES (1, 's')")


def check_refused(spark: SparkSession, uri: str) -> None:
    before = sorted(Path(uri).rglob("*"))
    with pytest.raises((InvalidArgumentError, PySparkException)) as raised:
        insert(spark, uri)
    assert isinstance(raised.value, InvalidArgumentError), str(raised.value)[:2000]
    assert "its values would have more than 33554432 bytes" in str(raised.value)
    assert sorted(Path(uri).rglob("*.json")) == [path for path in before if path.suffix == ".json"]


@pytest.mark.newest
@pytest.mark.parametrize("name", LARGE)
def test_a_default_value_is_refused(spark: SparkSession, tmp_path: Path, name: str) -> None:
    check_refused(spark, foreign(tmp_path / "t", "default", f"CAST({LARGE[name]} AS STRING)"))


QUICK = ("repeat", "sequence", "hex", "transform", "concat in aggregate", "in an error that is hidden")


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.thorough) for name in LARGE]
)
def test_a_constraint_is_refused(spark: SparkSession, tmp_path: Path, name: str) -> None:
    """The expressions of the constraints contain columns, so Spark cannot compute them in advance."""
    sql = LARGE[name].replace("'s'", "s").replace("'x'", "s")
    check_refused(
        spark, foreign(tmp_path / "t", "constraint", f"coalesce(CAST({sql} AS STRING), 'a') <> '?'")
    )


@pytest.mark.parametrize("name", ["repeat", "replace", "concat in aggregate"])
def test_a_generated_column_is_refused(spark: SparkSession, tmp_path: Path, name: str) -> None:
    check_refused(spark, foreign(tmp_path / "t", "generated", LARGE[name].replace("'s'", "s")))


def test_a_default_value_of_unknown_size_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """If the size of a default value depends on the time, it could be small when it is checked, and large a second
    later, so it is refused.
    """
    uri = foreign(tmp_path / "t", "default", "repeat('x', 1000000000 * second(current_timestamp()))")
    with pytest.raises(InvalidArgumentError, match="size of its value cannot be computed"):
        insert(spark, uri)


def test_small_values_equal_sparks(spark: SparkSession, tmp_path: Path) -> None:
    parts = [
        "repeat(s, 3)",
        "repeat(CAST(NULL AS STRING), 3)",
        "space(2)",
        "lpad(s, 5, 'ab')",
        "rpad(s, 5)",
        "hex(rpad(X'00', 3, X'01'))",
        "array_repeat(s, 2)",
        "sequence(n, n + 4, 2)",
        "sequence(DATE '2024-01-31', DATE '2024-05-31', INTERVAL 1 MONTH)",
        "sequence(DATE '2024-01-31', DATE '2024-01-01', INTERVAL '-10' DAY)",
        "sequence(TIMESTAMP '2024-01-01 00:00:00', TIMESTAMP '2024-01-03 00:00:00')",
        "array_insert(array(s), 3, 'y')",
        "array_append(array(s), 'y')",
        "format_string('%5s|%-5s|%03d|%.2f', s, 'x', n, 1.5D)",
        "replace(replace(s, 's', 'tt'), 't', 'uu')",
        "regexp_replace('a1b2', '([a-z])([0-9])', '$2$1')",
        "hex(hex(s))",
        "aggregate(array(1, 2, 3), s, (all, one) -> concat(all, one))",
        "transform(array(s, 'b'), (x, i) -> concat(x, n, i))",
        "filter(array(s, 'b'), x -> x <> 'b')",
        "transform_values(map('k', s), (k, v) -> concat(k, v))",
        "array_sort(array('b', s, 'a'))",
        "concat_ws('-', s, array('x', 'y'))",
        "array_join(array(s, NULL), '-', '?')",
        "to_json(named_struct('n', n, 's', s))",
        "from_json('{\"a\": 1}', concat('a', ' INT')).a",
        "if(n = 1, base64(encode(s, 'UTF-8')), repeat('x', 2000000000))",
        "CASE WHEN n = 1 THEN url_encode('a b') ELSE CAST(1 / 0 AS STRING) END",
        "nullif(repeat(s, 2), 's')",
        "split(s, '')",
        "str_to_map('a:1,b:2')",
        "substring_index('a.b.c', '.', 2)",
        "try_url_decode('%')",
        "format_number(12345.678D, 2)",
        "mask('Ab1')",
    ]
    values = [f"coalesce(CAST({part} AS STRING), 'NULL')" for part in parts]
    fields = [field("n", "long"), field("s", "string")]
    fields += [field(f"g{i}", "string", {"delta.generationExpression": sql}) for i, sql in enumerate(values)]
    CraftedTable(tmp_path / "t", fields, writer_features=FEATURES).commit()
    insert(spark, str(tmp_path / "t"))
    [row] = spark.read.format("deltalog").load(str(tmp_path / "t")).drop("n", "s").collect()
    rows = spark.sql("SELECT 1L AS n, 's' AS s")
    assert dict(zip(parts, row, strict=True)) == dict(
        zip(parts, rows.selectExpr(*values).collect()[0], strict=True)
    )


def test_default_values_that_are_not_large_are_used(spark: SparkSession, tmp_path: Path) -> None:
    uri = foreign(tmp_path / "t", "default", "lpad(hex(replace('a', 'a', 'bc')), 10, '0')")
    insert(spark, uri)
    [row] = spark.read.format("deltalog").load(uri).collect()
    assert row.g == "0000006263"
