"""Overwrites with the options `replaceOn` and `replaceUsing` replace the table's rows that match rows of the data."""

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import deltalog
from deltalog.spark.dml import replacing
from deltalog.spark.errors import InvalidArgumentError, UnsupportedFeatureError
from deltalog.spark.write.evolution import AUTO_MERGE

OLD = [(1, "old"), (2, "old"), (2, "older"), (3, "old")]
NEW = [(2, "new"), (2, "newer"), (4, "new")]


def rows(path: str) -> list[tuple[int, str]]:
    return sorted(tuple(row.values()) for row in deltalog.DeltaTable(path).to_pyarrow_table().to_pylist())


@pytest.fixture
def table(spark: SparkSession, path: str) -> str:
    spark.createDataFrame(OLD, "id INT, v STRING").write.format("deltalog").save(path)
    return path


@pytest.fixture(scope="module")
def new(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(NEW, "id INT, v STRING")


def overwrite(data: DataFrame, path: str, **options: str) -> None:
    data.write.format("deltalog").mode("overwrite").options(**options).save(path)


def test_rows_that_match_are_replaced_by_all_rows_of_the_data(new: DataFrame, table: str) -> None:
    overwrite(new, table, replaceUsing=" id ")
    assert rows(table) == sorted([(1, "old"), (3, "old"), *NEW])
    overwrite(new.alias("s"), table, replaceOn="t.id = s.id + 1 AND t.v = 'old'", targetAlias="t")
    assert rows(table) == sorted([(1, "old"), *NEW, *NEW])
    assert len(deltalog.DeltaTable(table).history()) == 3


def test_no_rows_replace_nothing_and_columns_are_matched_by_name(
    spark: SparkSession, new: DataFrame, table: str
) -> None:
    overwrite(new.where("false"), table, replaceUsing="id")
    assert rows(table) == sorted(OLD)
    overwrite(new.select("v", "id"), table, replaceUsing="id,v", userMetadata="mine")
    assert rows(table) == sorted([*OLD, *NEW])
    assert deltalog.DeltaTable(table).history()[0]["userMetadata"] == "mine"
    overwrite(new.selectExpr("id", "v", "id AS more"), table, replaceUsing="id", mergeSchema="true")
    assert deltalog.DeltaTable(table).schema().names == ["id", "v", "more"]


def test_rows_in_files_of_another_table_are_replaced(new: DataFrame, table: str, tmp_path: Path) -> None:
    cloned = str(tmp_path / "cloned")
    deltalog.DeltaTable(table).clone(cloned, shallow=True)
    overwrite(new, cloned, replaceUsing="id", allowedRoots=table)
    found = deltalog.DeltaTable(cloned, allowed_roots=[table]).to_pyarrow_table().to_pylist()
    assert sorted(tuple(row.values()) for row in found) == sorted([(1, "old"), (3, "old"), *NEW])
    assert rows(table) == sorted(OLD)


def test_a_table_that_does_not_exist_is_created(new: DataFrame, path: str) -> None:
    overwrite(new, path, replaceUsing="id")
    assert rows(path) == sorted(NEW)


@pytest.mark.parametrize("named", [False, True])
def test_a_table_that_is_created_before_the_write_stays(
    spark: SparkSession,
    new: DataFrame,
    path: str,
    monkeypatch: pytest.MonkeyPatch,
    named: bool,
) -> None:
    def create_after(*_: object) -> bool:
        deltalog.write_deltalake(path, pa.table({"id": pa.array([7], pa.int32()), "v": ["other"]}))
        return False

    monkeypatch.setattr(replacing, "table_exists", create_after)
    writer = new.write.format("deltalog").mode("overwrite").option("replaceUsing", "id")
    with pytest.raises(deltalog.TableAlreadyExistsError):
        writer.saveAsTable(f"deltalog.`{path}`") if named else writer.save(path)
    assert rows(path) == [(7, "other")]


def test_the_option_decides_about_new_columns_before_the_session(
    spark: SparkSession, new: DataFrame, table: str
) -> None:
    more = new.selectExpr("id", "v", "id AS more")
    spark.conf.set(AUTO_MERGE, "true")
    try:
        with pytest.raises(Exception, match="more"):
            overwrite(more, table, replaceUsing="id", mergeSchema="false")
        assert rows(table) == sorted(OLD)
        overwrite(more, table, replaceUsing="id")
        assert deltalog.DeltaTable(table).schema().names == ["id", "v", "more"]
    finally:
        spark.conf.unset(AUTO_MERGE)


def test_named_tables_have_the_options(spark: SparkSession, new: DataFrame, tmp_path: Path) -> None:
    spark.sql(f"CREATE TABLE replacing (id INT, v STRING) USING deltalog LOCATION '{tmp_path / 'named'}'")
    try:
        spark.createDataFrame(OLD, "id INT, v STRING").write.insertInto("replacing")
        inserting = new.write.format("deltalog").option("replaceUsing", "id")
        inserting.insertInto("replacing", overwrite=True)
        assert rows(str(tmp_path / "named")) == sorted([(1, "old"), (3, "old"), *NEW])
        writer = new.where("id = 4").write.format("deltalog").mode("overwrite")
        writer.option("replaceUsing", "id").saveAsTable("replacing")
        assert rows(str(tmp_path / "named")) == sorted([(1, "old"), (3, "old"), *NEW])
    finally:
        spark.sql("DROP TABLE replacing")


@pytest.mark.parametrize("write", ["save", "saveAsTable", "insertInto"])
def test_the_condition_sees_the_columns_that_the_data_have(new: DataFrame, table: str, write: str) -> None:
    renamed = new.toDF("key", "w").alias("s").selectExpr("key AS id", "w AS v")
    computed = new.alias("s").selectExpr("id + 1 AS id", "v")
    ambiguous, unresolved = "AMBIGUOUS_REFERENCE|targetAlias", "UNRESOLVED_COLUMN"
    for data, condition, message in [
        (renamed, "t.id = id", ambiguous),
        (renamed, "t.id = key", unresolved),
        (computed, "t.id = id", ambiguous),
        (computed, "t.id = s.id", unresolved),
    ]:
        writer = data.write.format("deltalog").mode("overwrite").option("replaceOn", condition)
        with pytest.raises(Exception, match=message):
            getattr(writer.option("targetAlias", "t"), write)(
                table if write == "save" else f"deltalog.`{table}`"
            )
        assert rows(table) == sorted(OLD)


def test_a_computed_column_replaces_by_its_new_value(spark: SparkSession, new: DataFrame, table: str) -> None:
    data = new.alias("s").selectExpr("id + 1 AS id", "v").alias("made")
    overwrite(data, table, replaceOn="t.id = made.id", targetAlias="t")
    assert rows(table) == sorted(
        [(1, "old"), (2, "old"), (2, "older"), *((number + 1, text) for number, text in NEW)]
    )


def test_data_by_position_keep_their_own_names_in_the_condition(
    spark: SparkSession, new: DataFrame, table: str
) -> None:
    name = f"deltalog.`{table}`"
    data = new.selectExpr("CAST(id AS BIGINT) AS key", "v AS w").alias("s")

    def insert(condition: str) -> None:
        writer = data.write.format("deltalog").option("replaceOn", condition).option("targetAlias", "t")
        writer.insertInto(name, overwrite=True)

    for condition in ("t.id = id", "t.v = v"):
        with pytest.raises(InvalidArgumentError, match="targetAlias"):
            insert(condition)
        assert rows(table) == sorted(OLD)
    insert("t.id = s.key AND t.v = 'old'")
    assert rows(table) == sorted([(1, "old"), (2, "older"), (3, "old"), *NEW])
    insert("t.id = key + 1 AND t.v = 'old'")
    assert rows(table) == sorted([(1, "old"), (2, "older"), *NEW, *NEW])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"replaceUsing": "id", "replaceOn": "true"}, "replaceOn and replaceUsing"),
        ({"replaceUsing": "id,"}, "separated by commas"),
        ({"replaceUsing": "nope"}, "nope is not in the table"),
        ({"replaceUsing": "id", "replaceWhere": "id = 1"}, "replaceWhere"),
        ({"replaceUsing": "id", "partitionOverwriteMode": "dynamic"}, "dynamic"),
        ({"replaceUsing": "id", "overwriteSchema": "true"}, "overwriteSchema"),
        ({"replaceUsing": "id", "targetAlias": "t"}, "targetAlias"),
        ({"replaceOn": "t.nope = 1"}, "UNRESOLVED_COLUMN"),
    ],
)
def test_options_that_contradict_each_other_are_refused(
    new: DataFrame, table: str, options: dict[str, str], message: str
) -> None:
    with pytest.raises(Exception, match=message):
        overwrite(new, table, **options)
    assert rows(table) == sorted(OLD)


def test_other_writes_refuse_the_options(new: DataFrame, table: str) -> None:
    with pytest.raises(InvalidArgumentError, match="mode overwrite"):
        new.write.format("deltalog").mode("append").option("replaceUsing", "id").save(table)
    with pytest.raises(UnsupportedFeatureError, match="replaceUsing"):
        new.writeTo(f"deltalog.`{table}`").using("deltalog").option("replaceUsing", "id").createOrReplace()
    assert rows(table) == sorted(OLD)
