"""Expressions in an untrusted table can read nothing but the table's rows. If an expression asks for more, the write
fails.

PROTOCOL, "Generated Columns", "Default Columns", "CHECK Constraints", "Column Invariants": each of these is a SQL
expression that Spark evaluates. Its value or its error may become visible to the person who defined the table.
"""

import os
from base64 import b64encode
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import deltalog.spark
import deltalog.tables
from deltalog import DeltaTable, _internal
from deltalog.errors import InvalidArgumentError
from deltalog.spark.jvm import Jvm
from scripts import functions
from tests.crafted import CraftedTable, field

SECRETS = {
    "environment": "made-up-environment",
    "setting": "made-up-setting",
    "file": "made-up-file",
    "variable": "made-up-variable",
    "function": "made-up-function",
}
FEATURES = ["appendOnly", "invariants", "checkConstraints", "generatedColumns", "allowColumnDefaults"]
ROWS = pa.table({"n": [1], "g": ["a"]})


@pytest.fixture(scope="module")
def secrets(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Creates a file with a secret, and puts another secret into the environment."""
    file = tmp_path_factory.mktemp("secrets") / "secret.txt"
    file.write_text(SECRETS["file"])
    os.environ["MADE_UP_SECRET"] = SECRETS["environment"]
    yield file
    del os.environ["MADE_UP_SECRET"]


@pytest.fixture(scope="module")
def spark(spark: SparkSession) -> SparkSession:
    """Returns a separate session with secrets in its settings, variables and functions."""
    session = deltalog.spark.enable(spark.newSession())
    session.conf.set("spark.made.up.secret", SECRETS["setting"])
    session.sql(f"DECLARE VARIABLE made_up STRING DEFAULT '{SECRETS['variable']}'")
    for name in ("leak", "upper"):  # In some releases, the second function replaces a built-in function.
        session.udf.register(name, lambda x: f"{SECRETS['function']}{x}")
    return session


def foreign(path: Path, **rules: str) -> str:
    """Creates a table with the columns `n` and `g`, the given rule, and one row."""
    metadata: dict[str, Any] = {}
    configuration = {}
    for kind, sql in rules.items():
        if kind == "generated":
            metadata["delta.generationExpression"] = sql
        elif kind == "default":
            metadata["CURRENT_DEFAULT"] = sql
        elif kind == "invariant":
            quoted = sql.replace("\\", "\\\\").replace('"', '\\"')
            metadata["delta.invariants"] = f'{{"expression": {{"expression": "{quoted}"}}}}'
        else:
            configuration["delta.constraints.c"] = sql
    fields = [field("n", "long"), field("g", "string", metadata)]
    table = CraftedTable(path, fields, writer_features=FEATURES, configuration=configuration)
    table.write("0.parquet", ROWS)
    table.add("0.parquet")
    table.commit()
    return str(path)


def append(spark: SparkSession, uri: str) -> None:
    spark.range(1).selectExpr("id AS n").write.format("deltalog").mode("append").save(uri)


def append_by_name(spark: SparkSession, uri: str) -> None:
    spark.range(1).selectExpr("id AS n", "'x' AS g").writeTo(f"deltalog.`{uri}`").append()


def overwrite(spark: SparkSession, uri: str) -> None:
    rows = spark.range(1).selectExpr("id AS n", "'x' AS g")
    rows.write.format("deltalog").mode("overwrite").option("replaceWhere", "n < 9").save(uri)


def insert(spark: SparkSession, uri: str) -> None:
    spark.sql(f"INSERT INTO deltalog.`{uri}` (n) VALUES (2)")


def insert_default(spark: SparkSession, uri: str) -> None:
    spark.sql(f"INSERT INTO deltalog.`{uri}` VALUES (2, DEFAULT)")


def update(spark: SparkSession, uri: str) -> None:
    spark.sql(f"UPDATE deltalog.`{uri}` SET n = 7")


def update_default(spark: SparkSession, uri: str) -> None:
    spark.sql(f"UPDATE deltalog.`{uri}` SET g = DEFAULT")


def merge(spark: SparkSession, uri: str) -> None:
    spark.sql(
        f"MERGE INTO deltalog.`{uri}` t USING (SELECT 3L AS n) s ON t.n = s.n WHEN NOT MATCHED THEN INSERT (n) "
        "VALUES (s.n)"
    )


def files(uri: str) -> bytes:
    return b"".join(file.read_bytes() for file in Path(uri).rglob("*") if file.is_file())


def check_refused(
    spark: SparkSession, uri: str, write: Callable[[SparkSession, str], None], *words: str
) -> None:
    before = files(uri)
    with pytest.raises(InvalidArgumentError) as error:
        write(spark, uri)
    message = str(error.value)
    for word in (*words, uri, "cannot be evaluated"):
        assert word in message, message
    assert not any(secret in message for secret in SECRETS.values())
    assert files(uri) == before, "something was written"


EXPRESSIONS = {
    "(SELECT max(value) FROM text.`{file}`)": "ScalarSubquery",
    "CAST(EXISTS(SELECT * FROM text.`{file}`) AS STRING)": "Exists",
    "made_up": "the table has no column made_up",
    "session.made_up": "the table has no column session.made_up",
    "leak(g)": "the function leak",
    "system.session.leak('a')": "the function system.session.leak",
    "reflect('java.lang.System', 'getenv', 'MADE_UP_SECRET')": "the function reflect",
    "java_method('java.lang.System', 'getenv', 'MADE_UP_SECRET')": "the function java_method",
    "input_file_name()": "the function input_file_name",
    "current_user()": "the function current_user",
    "current_user": "the table has no column current_user",
    "concat('a', version())": "the function version",
    "current_timezone()": "the function current_timezone",
    "CAST(rand() AS STRING)": "the function rand",
    "max(CAST(n AS STRING))": "the function max",
    "CAST(row_number() OVER (ORDER BY n) AS STRING)": "WindowExpression",
    "explode(array('a', 'b'))": "the function explode",
    "xpath_string('<a>b</a>', 'a')": "the function xpath_string",
    "transform(array('a'), x -> concat(x, made_up))[0]": "the table has no column made_up",
    "IDENTIFIER('made_up')": "ExpressionWithUnresolvedIdentifier",
    "_metadata.file_path": "the table has no column _metadata.file_path",
    "CAST(current_timestamp() AS STRING)": "the function current_timestamp",
    "CAST(unix_timestamp() AS STRING)": "depends on the current time",
    "n +": "it is not an expression",
    "n.x": "n",
}


@pytest.mark.parametrize("sql", EXPRESSIONS)
def test_an_expression_that_needs_more_than_the_row_is_refused(
    spark: SparkSession, secrets: Path, tmp_path: Path, sql: str
) -> None:
    text = sql.format(file=secrets)
    uri = foreign(tmp_path / "t", generated=text)
    check_refused(spark, uri, append, "the generated column 'g'", text, EXPRESSIONS[sql])


@pytest.mark.parametrize("write", [append_by_name, overwrite, insert, update, merge])
@pytest.mark.parametrize("kind", ["generated", "constraint", "invariant"])
def test_every_write_refuses_it(
    spark: SparkSession, secrets: Path, tmp_path: Path, kind: str, write: Callable[[SparkSession, str], None]
) -> None:
    sql = "leak(g)" if kind == "generated" else "leak(g) > 'a'"
    uri = foreign(tmp_path / "t", **{kind: sql})
    check_refused(spark, uri, write, sql, "the function leak")


def merge_default(spark: SparkSession, uri: str) -> None:
    target = deltalog.tables.DeltaTable.forPath(spark, uri).alias("t")
    source = spark.sql("SELECT 1L AS n").alias("s")
    target.merge(source, "t.n = s.n").whenMatchedUpdate(set={"g": "DEFAULT"}).execute()


@pytest.mark.parametrize("write", [append, insert, insert_default, update_default, merge, merge_default])
def test_a_default_value_that_is_needed_is_refused(
    spark: SparkSession, secrets: Path, tmp_path: Path, write: Callable[[SparkSession, str], None]
) -> None:
    uri = foreign(tmp_path / "t", default="concat('a', current_user())")
    check_refused(spark, uri, write, "the default value of the column 'g'", "the function current_user")


def test_a_default_value_that_is_not_needed_does_not_matter(
    spark: SparkSession, secrets: Path, tmp_path: Path
) -> None:
    uri = foreign(tmp_path / "t", default="concat('a', current_user())")
    append_by_name(spark, uri)
    update(spark, uri)
    assert DeltaTable(uri).to_pyarrow_table().num_rows == 2
    [shown] = [row[0] for row in spark.sql(f"SHOW CREATE TABLE deltalog.`{uri}`").collect()]
    assert "DEFAULT concat('a', current_user())" in shown


def test_old_rows_have_no_values_of_a_new_column(spark: SparkSession, tmp_path: Path) -> None:
    """PROTOCOL, "Reader Requirements": a column that old files lack is NULL, even if the field's metadata has a
    default for Spark.
    """
    later = field("g", "string", {"CURRENT_DEFAULT": "'x'", "EXISTS_DEFAULT": "current_user()"})
    table = CraftedTable(tmp_path, [field("n", "long"), later], writer_features=FEATURES)
    table.write("0.parquet", ROWS.select(["n"]))
    table.add("0.parquet")
    table.commit()
    rows = spark.read.format("deltalog").load(str(tmp_path))
    assert [row.g for row in rows.collect()] == [None]
    assert [row.g for row in spark.sql(f"SELECT g FROM deltalog.`{tmp_path}`").collect()] == [None]


def test_strings_that_look_like_settings_are_not_replaced(
    spark: SparkSession, secrets: Path, tmp_path: Path
) -> None:
    """Strings such as `${name}` stay as they are. Spark's own parser would replace them with values from the
    environment and the settings.
    """
    texts = ["${env:MADE_UP_SECRET}", "${spark.made.up.secret}", "${system:user.home}"]
    uri = foreign(tmp_path / "t", generated="concat(" + ", ".join(f"'{text}'" for text in texts) + ")")
    append(spark, uri)
    insert(spark, uri)
    update(spark, uri)
    assert set(DeltaTable(uri).to_pyarrow_table()["g"].to_pylist()) == {"".join(texts)}
    assert not any(secret.encode() in files(uri) for secret in SECRETS.values())


def test_a_function_of_the_session_does_not_take_the_place_of_a_built_in_one(
    spark: SparkSession, secrets: Path, tmp_path: Path
) -> None:
    uri = foreign(tmp_path / "t", generated="upper(concat('a', n))", constraint="upper(g) <> 'x'")
    append(spark, uri)
    assert sorted(DeltaTable(uri).to_pyarrow_table()["g"].to_pylist()) == ["A0", "a"]


def test_expressions_of_the_row_alone_are_computed(
    spark: SparkSession, secrets: Path, tmp_path: Path
) -> None:
    parts = [
        "hash(n)",
        "xxhash64(n, 'a')",
        "transform(array(n, 2), x -> x * n)[0]",
        "aggregate(array(n), 0L, (total, x) -> total + x)",
        "CASE WHEN n BETWEEN 1 AND 2 OR n IN (5) THEN 'one' ELSE to_json(named_struct('n', n)) END",
        "CASE n WHEN 0 THEN date_format(DATE '2024-02-29', 'yyyy') END",
        "struct(n AS m, 'b').m",
        "map('k', n)['k']",
        "if('abc' LIKE ANY ('a%', 'b') AND NOT 'x' RLIKE 'y' AND n IS NOT NULL, trim(BOTH 'x' FROM 'xax'), NULL)",
        "overlay('abc' PLACING 'x' FROM 2) || position('b' IN 'abc') || substring('abc' FROM 2 FOR 1)",
        "extract(YEAR FROM TIMESTAMP '2024-02-29 00:00:00' + INTERVAL 1 DAY) + (n & 7 | 8 ^ ~n) DIV 2 % 5 - -n",
        "timestampdiff(DAY, DATE '2024-01-01', timestampadd(HOUR, 30, DATE '2024-01-01'))",
        "try_cast('x' AS INT) <=> NULL IS TRUE",
        "mask('Ab1', upperChar => 'Q')",
        "convert_timezone('UTC', TIMESTAMP_NTZ '2024-02-29 12:00:00')",
    ]
    uri = foreign(
        tmp_path / "t",
        generated="concat_ws('/', " + ", ".join(f"CAST({part} AS STRING)" for part in parts) + ")",
        constraint="current_timestamp > TIMESTAMP '2020-01-01' AND now() IS NOT NULL",
    )
    append(spark, uri)
    [row] = (
        spark.range(1)
        .selectExpr("id AS n")
        .selectExpr(*(f"CAST({part} AS STRING)" for part in parts))
        .collect()
    )
    expected = "/".join(value for value in row if value is not None)
    assert expected in DeltaTable(uri).to_pyarrow_table()["g"].to_pylist()


def test_settings_of_the_writing_session_apply(spark: SparkSession, tmp_path: Path) -> None:
    """The settings of the session that writes apply, even if another session is the active one of the thread. They
    determine times without a zone, ANSI mode and the case of names.
    """
    other = deltalog.spark.enable(spark.newSession())
    other.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    other.conf.set("spark.sql.ansi.enabled", "false")
    spark.range(1).collect()  # This makes the other session the active one.
    computed = {
        "g": ("string", "date_format(t, 'yyyy-MM-dd HH:mm')"),
        "h": ("integer", "CAST(concat('x', n) AS INT)"),
    }
    fields = [field("n", "long"), field("t", "timestamp")]
    fields += [
        field(name, kind, {"delta.generationExpression": sql}) for name, (kind, sql) in computed.items()
    ]
    constraint = {"delta.constraints.c": "t = TIMESTAMP '2024-02-29 21:00:00'"}
    table = CraftedTable(tmp_path / "t", fields, writer_features=FEATURES, configuration=constraint)
    noon = pa.array([datetime(2024, 2, 29, 12, tzinfo=timezone.utc)])
    table.write(
        "0.parquet",
        pa.table({"n": [1], "t": noon, "g": ["2024-02-29 21:00"], "h": pa.array([None], pa.int32())}),
    )
    table.add("0.parquet")
    table.commit()
    uri = str(tmp_path / "t")
    target = deltalog.tables.DeltaTable.forPath(other, uri)
    target.update(set={"n": "n + 1"})
    source = other.sql("SELECT 7L AS n, TIMESTAMP '2024-02-29 21:00:00' AS t")
    values = {"n": "s.n", "t": "s.t"}
    target.alias("t").merge(source.alias("s"), "t.n = s.n").whenNotMatchedInsert(values=values).execute()
    source.write.format("deltalog").mode("append").save(uri)
    rows = DeltaTable(uri).to_pyarrow_table().to_pylist()
    assert [row["n"] for row in rows].count(7) == 2
    assert {(row["g"], row["h"]) for row in rows} == {("2024-02-29 21:00", None)}


def test_errors_that_only_look_like_refusals_stay_as_they_are(spark: SparkSession) -> None:
    """An error whose text only looks like a refusal is reported as it is. Spark's errors show data, and data may
    contain such a text.
    """
    for text in ("AAAA", "e30=", "WzFd", "MQ==", b64encode(b'["a", "b", "c", "d", "e"]').decode()):
        with pytest.raises(PySparkException, match="CAST_INVALID_INPUT"):
            spark.sql(f"SELECT CAST(\"raise_error('deltalog refuses {text}')\" AS INT)").collect()


def test_reserved_words_are_still_functions_of_the_moment(spark: SparkSession, tmp_path: Path) -> None:
    """Words such as CURRENT_DATE are still functions if a setting makes Spark reserve the keywords of the SQL
    standard, which its grammar then treats separately.
    """
    strict = deltalog.spark.enable(spark.newSession())
    strict.conf.set("spark.sql.ansi.enforceReservedKeywords", "true")
    uri = foreign(
        tmp_path / "t",
        default="CAST(current_date AS STRING)",
        constraint="current_timestamp > TIMESTAMP '2020-01-01'",
    )
    insert(strict, uri)
    update(strict, uri)
    assert DeltaTable(uri).to_pyarrow_table().num_rows == 2
    uri = foreign(tmp_path / "u", default="concat('a', user)")
    check_refused(strict, uri, insert, "the default value of the column 'g'", "CurrentUser")
    uri = foreign(tmp_path / "v", generated="CAST(current_date AS STRING)")
    check_refused(strict, uri, append, "the generated column 'g'", "CurrentDate")


@pytest.mark.newest
def test_spark_has_the_functions_of_the_list_as_deterministic_scalars(spark: SparkSession) -> None:
    """Spark resolves each function on the list to a deterministic scalar function. Otherwise unsafe expressions would
    be accepted.
    """
    jvm: Any = spark._jvm
    registry = jvm.org.apache.spark.sql.catalyst.analysis.FunctionRegistry
    groups = {}
    always, by_statement = _internal.rule_functions()
    for name in always + by_statement:
        found = registry.builtin().lookupFunction(jvm.org.apache.spark.sql.catalyst.FunctionIdentifier(name))
        groups[name] = found.get().getGroup() if found.isDefined() else None
    assert {name for name, group in groups.items() if group is None} <= {"iff"}
    wrong = {"agg_funcs", "window_funcs", "generator_funcs", "xml_funcs", "protobuf_funcs", "avro_funcs"}
    assert not {name for name, group in groups.items() if group in wrong}


# Spark's scalar functions that expressions of a table must not call, by reason (see `constraints/functions.rs`).
LEFT_OUT = {
    "reveals the session, the files or the machine": "current_catalog current_database current_path current_schema "
    "current_timezone input_file_block_length input_file_block_start input_file_name session_user spark_partition_id "
    "user current_user version",
    "runs any code": "java_method reflect try_reflect",
    "has another value each time": "aes_encrypt monotonically_increasing_id rand randn random randstr shuffle uniform "
    "uuid",
    "returns the current time with a type that no table can have": "current_time localtime",
    "a type that no table has": "st_asbinary st_geogfromwkb st_geomfromwkb st_setsrid st_srid",
    "is an aggregate": "schema_of_variant_agg vector_avg vector_sum",
    "makes several rows": "json_tuple",
    "is meant to fail": "assert_true raise_error",
    "is for streams and partitions": "bucket days hours months session_window window window_time years",
}
# Prefixes of functions whose native parsers may read beyond the end of their input.
SKETCHES = ("hll_", "kll_", "theta_", "tuple_", "approx_top_k_")


@pytest.mark.newest
def test_every_other_scalar_function_of_spark_is_left_out_for_a_reason(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    registry = jvm.org.apache.spark.sql.catalyst.analysis.FunctionRegistry.builtin()
    always, by_statement = _internal.rule_functions()
    known = {*always, *by_statement, *" ".join(LEFT_OUT.values()).split()}
    elsewhere = {"agg_funcs", "window_funcs", "generator_funcs", "xml_funcs", "protobuf_funcs", "avro_funcs"}
    unknown = {}
    names = registry.listFunction().iterator()
    while names.hasNext():
        name = names.next()
        group = registry.lookupFunction(name).get().getGroup()
        word = name.funcName()
        is_sketch = word.startswith(SKETCHES)
        if word.isidentifier() and word not in known and group not in elsewhere and not is_sketch:
            unknown[word] = group
    assert set(unknown) <= {"and", "or", "not", "in", "case", "cast"}, unknown


def test_all_that_deltalog_evaluates_passes_in_spark(spark: SparkSession) -> None:
    """Spark can write every table that deltalog has defined, because Spark accepts all functions of FUNCTIONS.md."""
    jvm = Jvm(spark.sparkContext._gateway)
    no_columns = jvm.gateway.new_array(jvm.java("org.apache.spark.sql.catalyst.expressions.Attribute"), 0)
    refused = {}
    for _, _, rows in functions.SECTIONS:
        for _, example in rows:
            try:
                jvm.static("RuleExpression", "ofConstraint", "t", "c", example).resolved(no_columns)
            except InvalidArgumentError as error:
                refused[example] = str(error)
    assert {example for example in refused if "rand" not in example and "uuid" not in example} == set(), (
        refused
    )


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE {other} (n LONG, g STRING GENERATED ALWAYS AS (concat('a', current_user()))) USING deltalog",
        "CREATE TABLE {other} (n LONG, g STRING GENERATED ALWAYS AS (made_up)) USING deltalog",
        "CREATE TABLE {other} (n LONG, g STRING DEFAULT current_user()) USING deltalog",
        "CREATE TABLE {other} (n LONG) USING deltalog TBLPROPERTIES ('delta.constraints.c' = 'leak(n) > 1')",
        "ALTER TABLE {table} SET TBLPROPERTIES ('delta.constraints.c' = 'current_user() > g')",
        "ALTER TABLE {table} ADD CONSTRAINT c CHECK (leak(g) > 'a')",
        "ALTER TABLE {table} ALTER COLUMN g SET DEFAULT current_user()",
        "CALL deltalog.add_constraint(table => '{path}', name => 'c', expression => 'leak(g) > ''a''')",
    ],
)
def test_tables_that_cannot_be_written_are_not_created(
    spark: SparkSession, secrets: Path, tmp_path: Path, statement: str
) -> None:
    uri = foreign(tmp_path / "t")
    before = files(uri)
    names = {"other": f"deltalog.`{tmp_path}/other`", "table": f"deltalog.`{uri}`", "path": uri}
    with pytest.raises(PySparkException):
        spark.sql(statement.format(**names))
    assert files(uri) == before
    assert not (tmp_path / "other").exists()
