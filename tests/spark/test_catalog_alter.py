"""ALTER TABLE and COMMENT ON statements. Each of them makes one commit."""

from collections.abc import Iterator

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from deltalog import DeltaTable


@pytest.fixture(params=["a", "deltalog.`{path}`"])
def name(spark: SparkSession, path: str, request: pytest.FixtureRequest) -> Iterator[str]:
    """Creates a table, and returns its name in the catalog or its path as a SQL name."""
    spark.sql(
        f"CREATE TABLE a (id BIGINT, v STRING, s STRUCT<x: INT>, l ARRAY<STRUCT<y: INT>>, p INT, "
        f"required INT NOT NULL) USING deltalog PARTITIONED BY (p) LOCATION '{path}' "
        "TBLPROPERTIES ('delta.columnMapping.mode' = 'name', "
        "'delta.enableTypeWidening' = 'true')"
    )
    spark.sql("INSERT INTO a VALUES (1, 'x', named_struct('x', 1), array(named_struct('y', 2)), 0, 5)")
    yield str(request.param).format(path=path)
    spark.sql("DROP TABLE a")


def test_columns(spark: SparkSession, path: str, name: str) -> None:
    statements = {
        "ADD COLUMNS (n INT COMMENT 'new' AFTER id, t STRING)": [
            "id",
            "n",
            "v",
            "s",
            "l",
            "p",
            "required",
            "t",
        ],
        "ADD COLUMN s.z STRING": None,
        "ADD COLUMN l.element.w INT": None,
        "RENAME COLUMN v TO u": ["id", "n", "u", "s", "l", "p", "required", "t"],
        "ALTER COLUMN n TYPE BIGINT": None,
        "ALTER COLUMN n COMMENT 'wide'": None,
        "ALTER COLUMN n FIRST": ["n", "id", "u", "s", "l", "p", "required", "t"],
        "ALTER COLUMN n AFTER u": ["id", "u", "n", "s", "l", "p", "required", "t"],
        "DROP COLUMNS (t, s.x)": ["id", "u", "n", "s", "l", "p", "required"],
        "DROP COLUMN IF EXISTS nothing": None,
        "ALTER COLUMN required DROP NOT NULL": None,
    }
    columns = ["id", "v", "s", "l", "p", "required"]
    for statement, expected in statements.items():
        version = DeltaTable(path).version()
        spark.sql(f"ALTER TABLE {name} {statement}")
        columns = expected or columns
        assert spark.table(name).columns == columns, statement
        assert DeltaTable(path).version() == version + (statement != "DROP COLUMN IF EXISTS nothing"), (
            statement
        )
    spark.sql(f"INSERT INTO {name} (id, n) VALUES (2, 5000000000)")
    assert spark.sql(f"SELECT id, u, n, s.z, l[0].w, p FROM {name} ORDER BY id").collect() == [
        (1, "x", None, None, None, 0),
        (2, None, 5000000000, None, None, None),
    ]
    assert spark.table(name).schema["n"].metadata["comment"] == "wide"


def test_columns_are_replaced(spark: SparkSession, path: str, name: str) -> None:
    """As in the JVM connector, REPLACE COLUMNS keeps the values of columns whose names are in the new list."""
    nested = "s STRUCT<x: INT>, l ARRAY<STRUCT<y: INT>>"
    version = DeltaTable(path).version()
    spark.sql(
        f"ALTER TABLE {name} REPLACE COLUMNS "
        f"(v STRING COMMENT 'text', ID BIGINT, p INT, {nested}, required BIGINT, n INT)"
    )
    found = spark.table(name)
    assert found.columns == ["v", "id", "p", "s", "l", "required", "n"]
    assert found.schema["v"].metadata["comment"] == "text"
    assert found.schema["required"].nullable
    assert [(row.v, row.id, row.s.x, row.l[0].y, row.required, row.n) for row in found.collect()] == [
        ("x", 1, 1, 2, 5, None)
    ]
    commit = DeltaTable(path).history(1)[0]
    assert (commit["operation"], commit["version"]) == ("REPLACE COLUMNS", version + 1)
    spark.sql(f"INSERT INTO {name} VALUES ('y', 2, 0, NULL, NULL, 5000000000, 7)")
    spark.sql(f"ALTER TABLE {name} REPLACE COLUMNS (v STRING, id BIGINT, p INT, {nested}, required BIGINT)")
    assert spark.sql(f"SELECT required FROM {name} ORDER BY id").collect() == [(5,), (5000000000,)]
    for columns, error in {
        f"v STRING, id BIGINT, p INT, {nested}, renamed BIGINT": "not clear whether the column 'required'",
        f"v STRING, id BIGINT, {nested}, required BIGINT": "partitioned by it",
        f"v STRING, id INT, p INT, {nested}, required BIGINT": "not a wider type",
        f"v INT, id BIGINT, p INT, {nested}, required BIGINT": "not a wider type",
        "v STRING, id BIGINT, p INT, s STRUCT<x: INT, z: INT>, l ARRAY<STRUCT<y: INT>>, required BIGINT": "one by one",
        f"v VARCHAR(5), id BIGINT, p INT, {nested}, required BIGINT": "another length",
        f"v STRING NOT NULL, id BIGINT, p INT, {nested}, required BIGINT": "(?i)NULL",
    }.items():
        with pytest.raises(PySparkException, match=error):
            spark.sql(f"ALTER TABLE {name} REPLACE COLUMNS ({columns})")
    assert DeltaTable(path).version() == version + 3


def test_an_entry_is_moved_to_another_table_with_the_same_columns(spark: SparkSession, path: str) -> None:
    spark.sql(f"CREATE TABLE a (id BIGINT) USING deltalog LOCATION '{path}'")
    try:
        spark.sql("INSERT INTO a VALUES (1)")
        spark.sql("CACHE TABLE a")
        spark.range(2).write.format("deltalog").save(f"{path} 2")
        spark.sql("SELECT 'x' AS id").write.format("deltalog").save(f"{path} 3")
        spark.sql(f"ALTER TABLE a SET LOCATION '{path} 2'")
        assert sorted(spark.table("a").collect()) == [(0,), (1,)]
        spark.sql("INSERT INTO a VALUES (5)")
        assert (DeltaTable(path).version(), DeltaTable(f"{path} 2").version()) == (1, 1)
        for place, error in (
            (f"{path} 3", "columns or partitions of the table .* differ"),
            (f"{path} 4", "(?i)there is no Delta table|is not a Delta table"),
        ):
            with pytest.raises(PySparkException, match=error):
                spark.sql(f"ALTER TABLE a SET LOCATION '{place}'")
        assert spark.table("a").count() == 3
        with pytest.raises(PySparkException, match="drop the table"):
            spark.sql(f"ALTER TABLE deltalog.`{path}` SET LOCATION '{path} 2'")
    finally:
        spark.sql("DROP TABLE a")


def test_dropping_a_moved_entry_leaves_the_files(spark: SparkSession, path: str) -> None:
    spark.sql("CREATE TABLE moved (id BIGINT) USING deltalog")
    try:
        spark.range(2).write.format("deltalog").save(path)
        assert spark.catalog.getTable("moved").tableType == "MANAGED"
        spark.sql(f"ALTER TABLE moved SET LOCATION '{path}'")
        assert spark.catalog.getTable("moved").tableType == "EXTERNAL"
    finally:
        spark.sql("DROP TABLE moved")
    assert DeltaTable(path).to_pyarrow_table().num_rows == 2


def test_defaults(spark: SparkSession, path: str, name: str) -> None:
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')")
    spark.sql(f"ALTER TABLE {name} ALTER COLUMN v SET DEFAULT 'none'")
    spark.sql(f"INSERT INTO {name} (id, required) VALUES (2, 0)")
    spark.sql(f"ALTER TABLE {name} ALTER COLUMN v DROP DEFAULT")
    spark.sql(f"INSERT INTO {name} (id, required) VALUES (3, 0)")
    found = spark.sql(f"SELECT id, v FROM {name} ORDER BY id").collect()
    assert found == [(1, "x"), (2, "none"), (3, None)]


def test_properties_and_comments(spark: SparkSession, path: str, name: str) -> None:
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('one' = '1', 'two' = '2')")
    spark.sql(f"ALTER TABLE {name} UNSET TBLPROPERTIES ('two')")
    spark.sql(f"COMMENT ON TABLE {name} IS 'about it'")
    metadata = DeltaTable(path).metadata()
    assert (metadata.configuration["one"], "two" in metadata.configuration) == ("1", False)
    assert metadata.description == "about it"
    operations = [commit["operation"] for commit in DeltaTable(path).history(3)]
    assert "UNSET TBLPROPERTIES" in operations
    version = DeltaTable(path).version()
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('comment' = 'more', 'two' = '2')")
    metadata = DeltaTable(path).metadata()
    assert (metadata.description, metadata.configuration["two"]) == ("more", "2")
    assert ("comment" in metadata.configuration, DeltaTable(path).version()) == (False, version + 1)
    spark.sql(f"ALTER TABLE {name} UNSET TBLPROPERTIES ('comment', 'two')")
    assert DeltaTable(path).metadata().description is None


def test_clustering(spark: SparkSession, path: str) -> None:
    spark.sql(f"CREATE TABLE a (id BIGINT, s STRUCT<x: INT>) USING deltalog LOCATION '{path}'")
    try:
        spark.sql("ALTER TABLE a CLUSTER BY (s.x, id)")
        assert DeltaTable(path).clustering_columns() == ["s.x", "id"]
        spark.sql("ALTER TABLE a CLUSTER BY NONE")
        assert DeltaTable(path).clustering_columns() == []
    finally:
        spark.sql("DROP TABLE a")


def test_what_cannot_be_changed_is_refused(spark: SparkSession, path: str, name: str) -> None:
    version = DeltaTable(path).version()
    for statement, error in {
        "DROP COLUMN p": "partition",
        "ALTER COLUMN id TYPE INT": "(?i)cannot|not supported",
        "SET LOCATION '/elsewhere'": "location|there is no Delta table",
        "SET TBLPROPERTIES ('delta.nonsense' = '1')": "nonsense",
        "REPLACE COLUMNS (z INT)": "not clear whether the column 'id' is renamed",
        "ADD COLUMN z INT NOT NULL": "(?i)null",
        "RENAME COLUMN nothing TO something": "nothing",
        "ALTER COLUMN id SET NOT NULL": "(?i)null",
    }.items():
        with pytest.raises(PySparkException, match=error):
            spark.sql(f"ALTER TABLE {name} {statement}")
        assert DeltaTable(path).version() == version, statement
