"""CONVERT TO DELTA of tables of Parquet files in the session catalog."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, SparkRuntimeException
from pyspark.sql import Row, SparkSession

import deltalog
from deltalog import InvalidArgumentError, SchemaMismatchError
from deltalog.errors import AfterCommitError
from deltalog.spark.errors import UnsupportedFeatureError
from deltalog.spark.sql.convert import Entry
from deltalog.tables import DeltaTable


@pytest.fixture(autouse=True)
def without_tables(spark: SparkSession) -> Iterator[None]:
    yield
    for name in ("c", "n"):
        spark.sql(f"DROP TABLE IF EXISTS {name}")
    spark.sql("DROP VIEW IF EXISTS v")


def rows(spark: SparkSession, name: str = "c") -> list[Row]:
    return sorted(spark.table(name).collect(), key=str)


def location(spark: SparkSession, name: str = "c") -> Path:
    about = {
        row["col_name"]: row["data_type"] for row in spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
    }
    return Path(about["Location"].removeprefix("file:"))


def provider(spark: SparkSession, name: str = "c") -> str:
    about = {
        row["col_name"]: row["data_type"] for row in spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
    }
    return str(about["Provider"])


def create(spark: SparkSession, more: str = "") -> None:
    """Creates a Parquet table in the catalog. Its partition values include NULL, dates, and strings that must be
    escaped.
    """
    spark.sql(
        "CREATE TABLE c (a BIGINT COMMENT 'a number', t STRING, p STRING, d DATE) USING parquet "
        f"PARTITIONED BY (p, d) COMMENT 'of a city' TBLPROPERTIES ('mine' = 'x') {more}"
    )
    spark.sql(
        "INSERT INTO c VALUES (1, 'x', 'a/b %', DATE'2024-01-01'), (2, NULL, NULL, DATE'2024-01-02'), "
        "(3, 'z', '01', NULL)"
    )


@pytest.mark.every_spark
def test_a_table_keeps_its_rows_and_becomes_ours(spark: SparkSession) -> None:
    """A converted table keeps its rows. Columns that no file has are NULL, and the types of partition columns come
    from the catalog.
    """
    create(spark)
    spark.sql("ALTER TABLE c ADD COLUMNS (later INT COMMENT 'new')")
    spark.table("c").cache()
    before, schema = rows(spark), spark.table("c").schema
    path = location(spark)
    [planned] = spark.sql("CALL deltalog.convert(table => 'c', dry_run => true)").collect()
    assert (planned.num_converted_files, provider(spark)) == (3, "parquet")
    assert not deltalog.DeltaTable.is_deltatable(path)
    spark.sql("CONVERT TO DELTA c")
    assert provider(spark) == "deltalog"
    assert spark.table("c").schema == schema
    assert rows(spark) == before
    table = deltalog.DeltaTable(path)
    assert table.metadata().partition_columns == ["p", "d"]
    assert (table.metadata().configuration["mine"], table.metadata().description) == ("x", "of a city")
    spark.sql("INSERT INTO c (a, p) VALUES (4, 'q')")
    spark.sql("DELETE FROM c WHERE a = 1")
    assert sorted(row.a for row in rows(spark)) == [2, 3, 4]
    # A second conversion changes nothing.
    spark.sql("CONVERT TO DELTA c")
    assert deltalog.DeltaTable(path).version() == 2
    # The table is still a managed table, so dropping it deletes its files.
    spark.sql("DROP TABLE c")
    assert not path.exists()


@pytest.mark.newest
def test_the_verb_takes_a_name(spark: SparkSession, tmp_path: Path) -> None:
    spark.sql(f"CREATE TABLE c (a INT) USING parquet LOCATION '{tmp_path}/the files'")
    spark.sql("INSERT INTO c VALUES (1), (2)")
    spark.conf.set("spark.databricks.delta.properties.defaults.enableDeletionVectors", "true")
    try:
        table = DeltaTable.convertToDelta(spark, "spark_catalog.default.c")
    finally:
        spark.conf.unset("spark.databricks.delta.properties.defaults.enableDeletionVectors")
    assert sorted(row.a for row in table.toDF().collect()) == [1, 2]
    stored = deltalog.DeltaTable(tmp_path / "the files")
    assert stored.metadata().configuration["delta.enableDeletionVectors"] == "true"
    spark.sql("DROP TABLE c")
    assert stored.count() == 2


@pytest.mark.newest
def test_files_that_spark_does_not_read_are_refused(spark: SparkSession) -> None:
    """If there are files that Spark does not read as part of the table, the conversion is refused, because the table
    would get additional rows.
    """
    create(spark)
    path = location(spark)
    other = path / "p=other" / "d=2024-01-05"
    other.mkdir(parents=True)
    [file] = (path / "p=01" / "d=__HIVE_DEFAULT_PARTITION__").glob("*.parquet")
    (other / file.name).write_bytes(file.read_bytes())
    assert len(rows(spark)) == 3
    with pytest.raises(
        InvalidArgumentError, match=r"p=other/d=2024-01-05/part-.*parquet; move them elsewhere, or add"
    ):
        spark.sql("CONVERT TO DELTA c")
    assert not deltalog.DeltaTable.is_deltatable(path)
    spark.sql("ALTER TABLE c RECOVER PARTITIONS")
    spark.sql("CONVERT TO DELTA c PARTITIONED BY (p STRING, d DATE)")
    assert len(rows(spark)) == 4
    # In a table without partition columns, Spark reads only the table's own directory, not those below it.
    spark.sql("CREATE TABLE n (a BIGINT, t STRING) USING parquet")
    spark.sql("INSERT INTO n VALUES (1, 'x')")
    below = location(spark, "n") / "below"
    below.mkdir()
    (below / file.name).write_bytes(file.read_bytes())
    assert len(rows(spark, "n")) == 1
    with pytest.raises(InvalidArgumentError, match=r"does not read as rows of the table .*n: below/part-"):
        spark.sql("CONVERT TO DELTA n")


@pytest.mark.newest
def test_partitions_outside_of_the_table_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    create(spark)
    path = location(spark)
    spark.sql(f"ALTER TABLE c ADD PARTITION (p = 'far', d = DATE'2024-01-07') LOCATION '{tmp_path}/far'")
    with pytest.raises(UnsupportedFeatureError, match="p=far/d=2024-01-07 at file:"):
        spark.sql("CONVERT TO DELTA c")
    spark.sql("ALTER TABLE c DROP PARTITION (p = 'far', d = DATE'2024-01-07')")
    # The directory of this partition is below the table's, but has the name of a different partition.
    spark.sql(f"ALTER TABLE c ADD PARTITION (p = 'near', d = DATE'2024-01-07') LOCATION '{path}/p=01'")
    with pytest.raises(
        UnsupportedFeatureError, match="not in the directories of their names: p=near/d=2024-01-07"
    ):
        spark.sql("CONVERT TO DELTA c")
    assert not deltalog.DeltaTable.is_deltatable(path)


@pytest.mark.newest
def test_contradictions_to_the_catalog_are_refused(spark: SparkSession) -> None:
    create(spark)
    path = location(spark)
    with pytest.raises(
        InvalidArgumentError, match="partitioned by p string, d date in the catalog, not by p string"
    ):
        spark.sql("CONVERT TO DELTA c PARTITIONED BY (p STRING)")
    spark.sql(
        f"CREATE TABLE n (a INT, p STRING, d DATE) USING parquet PARTITIONED BY (p, d) LOCATION '{path}'"
    )
    spark.sql("ALTER TABLE n RECOVER PARTITIONS")
    with pytest.raises(
        SchemaMismatchError, match="the files have the column 't', which the table does not have"
    ):
        spark.sql("CONVERT TO DELTA n")
    spark.sql("DROP TABLE n")
    spark.sql("CREATE TABLE n (a INT) USING parquet CLUSTERED BY (a) INTO 2 BUCKETS")
    with pytest.raises(UnsupportedFeatureError, match="is bucketed"):
        spark.sql("CONVERT TO DELTA n")
    spark.sql("DROP TABLE n")
    spark.sql("CREATE TABLE n (a INT) USING json")
    spark.sql("CREATE TEMPORARY VIEW v AS SELECT 1 AS a")
    for name, reason in [("n", "its provider is json"), ("v", "it is a temporary view")]:
        with pytest.raises(InvalidArgumentError, match=f"cannot be converted, because {reason}"):
            spark.sql(f"CONVERT TO DELTA {name}")
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.sql("CONVERT TO DELTA nothing")
    assert not deltalog.DeltaTable.is_deltatable(path)


@pytest.mark.newest
def test_an_entry_that_could_not_be_changed_is_changed_later(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(spark)
    before = rows(spark)
    convert = Entry.convert

    def fails(entry: Entry, uri: str, version: int | None) -> None:
        convert(entry._replace(entry=None), uri, version)

    monkeypatch.setattr(Entry, "convert", fails)
    with pytest.raises(AfterCommitError, match=r"call CONVERT TO DELTA .*c once more"):
        spark.sql("CONVERT TO DELTA c")
    assert provider(spark) == "parquet"
    monkeypatch.undo()
    spark.sql("CONVERT TO DELTA c")
    assert (provider(spark), deltalog.DeltaTable(location(spark)).version()) == ("deltalog", 0)
    assert rows(spark) == before


@pytest.mark.newest
def test_directories_with_other_spellings_of_partition_values(spark: SparkSession, tmp_path: Path) -> None:
    """Other writers spell partition values differently: the directory month=01 belongs to the integer 1."""
    spark.range(2).coalesce(1).write.parquet(f"{tmp_path}/Month=01/q=x%2Fy")
    spark.range(3).coalesce(1).write.parquet(f"{tmp_path}/Month=2/q=__HIVE_DEFAULT_PARTITION__")
    spark.sql(
        f"CREATE TABLE c (id BIGINT, month INT, q STRING) USING parquet PARTITIONED BY (month, q) LOCATION '{tmp_path}'"
    )
    spark.sql("ALTER TABLE c RECOVER PARTITIONS")
    before = rows(spark)
    assert [(row.id, row.month, row.q) for row in before][:2] == [(0, 1, "x/y"), (0, 2, None)]
    spark.sql("CONVERT TO DELTA c")
    assert rows(spark) == before
    assert deltalog.DeltaTable(tmp_path).count("month = 1") == 2


@pytest.mark.newest
def test_every_type_keeps_its_values(spark: SparkSession) -> None:
    spark.sql(
        "CREATE TABLE c (a CHAR(5), v VARCHAR(3), d DECIMAL(10,2), t TIMESTAMP, n TIMESTAMP_NTZ, b BINARY, f FLOAT, "
        "s STRUCT<x: INT, y: ARRAY<STRING>>, m MAP<STRING, INT>, ti TINYINT, si SMALLINT) USING parquet"
    )
    spark.sql(
        "INSERT INTO c VALUES ('ab', 'xyz', 1.5, TIMESTAMP'1950-01-01 00:00:00', TIMESTAMP_NTZ'2024-01-01 00:00:00', "
        "X'0102', 1.5, named_struct('x', 1, 'y', array('q')), map('k', 1), 1, 2)"
    )
    before, schema = rows(spark), spark.table("c").schema
    spark.sql("CONVERT TO DELTA c")
    assert (rows(spark), spark.table("c").schema) == (before, schema)
    with pytest.raises(SparkRuntimeException, match="EXCEED_LIMIT_LENGTH"):
        spark.sql("INSERT INTO c (v) VALUES ('long')")


@pytest.mark.newest
def test_defaults(spark: SparkSession) -> None:
    """If a file lacks a column that has a default, Spark reads the default from a Parquet table, but NULL from a Delta
    table, so the conversion is refused.
    """
    spark.sql("CREATE TABLE c (a INT, b INT DEFAULT 7) USING parquet")
    spark.sql("INSERT INTO c (a) VALUES (1)")
    spark.sql("CREATE TABLE n (a INT) USING parquet")
    spark.sql("INSERT INTO n VALUES (1)")
    spark.sql("ALTER TABLE n ADD COLUMNS (z INT DEFAULT 9)")
    spark.sql("INSERT INTO n (a) VALUES (2)")
    with pytest.raises(UnsupportedFeatureError, match="not all files have the column 'z'"):
        spark.sql("CONVERT TO DELTA n")
    assert rows(spark, "n") == [Row(a=1, z=9), Row(a=2, z=9)]
    spark.sql("CONVERT TO DELTA c")
    spark.sql("INSERT INTO c (a) VALUES (2)")
    assert rows(spark) == [Row(a=1, b=7), Row(a=2, b=7)]


@pytest.mark.newest
def test_spark_determines_which_files_a_table_has(spark: SparkSession, tmp_path: Path) -> None:
    """Spark determines which files belong to a table. A conversion is refused if deltalog would find other files than
    Spark: unlike Spark, deltalog does not follow links, regards other file names as hidden, and reads non-ASCII bytes
    in directory names differently.
    """
    spark.range(2).coalesce(1).write.parquet(f"{tmp_path}/far")
    [far] = (tmp_path / "far").glob("*.parquet")

    def refused(text: str, more: str = "", partitions: str = "") -> None:
        place = tmp_path / "table"
        place.mkdir(exist_ok=True)
        spark.sql(f"CREATE TABLE c (id BIGINT{more}) USING parquet {partitions} LOCATION '{place}'")
        if partitions:
            spark.sql("ALTER TABLE c RECOVER PARTITIONS")
        before = rows(spark)
        with pytest.raises((InvalidArgumentError, UnsupportedFeatureError), match=text):
            spark.sql("CONVERT TO DELTA c")
        assert rows(spark) == before
        spark.sql("DROP TABLE c")
        shutil.rmtree(place)

    def put(name: str) -> None:
        file = tmp_path / "table" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(far.read_bytes())

    put("p=1/a.parquet")
    (tmp_path / "table" / "p=2").symlink_to(tmp_path / "far")
    refused("behind links to directories: p=2/part-", ", p INT", "PARTITIONED BY (p)")
    put("a.parquet")
    put("_k=1.parquet")
    refused("no conversion finds.*: _k=1.parquet")
    put("a.parquet")
    put("b.parquet._COPYING_")
    refused("Spark does not read as rows of the table .*c: b.parquet._COPYING_")
    put("p=%C3%A9/a.parquet")
    refused("reads as other characters: p=%C3%A9", ", p STRING", "PARTITIONED BY (p)")


@pytest.mark.newest
@pytest.mark.parametrize(
    "option", ["pathGlobFilter '*.parquet'", "timeZone 'UTC'", "datetimeRebaseMode 'LEGACY'"]
)
def test_options_of_the_reader_are_refused(spark: SparkSession, option: str) -> None:
    spark.sql(f"CREATE TABLE c (a INT) USING parquet OPTIONS ({option}, compression 'gzip')")
    spark.sql("INSERT INTO c VALUES (1)")
    with pytest.raises(
        UnsupportedFeatureError, match=f"with the option {option.split()[0]}, which a Delta table"
    ):
        spark.sql("CONVERT TO DELTA c")
    assert rows(spark) == [Row(a=1)]
