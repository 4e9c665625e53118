"""If a build of Spark lacks classes that a group of features needs, all other features still work."""

import json
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

from tests.spark.jar_copies import without_groups
from tests.spark.processes import run_python

PROGRAM = """
    import json
    import warnings
    from pathlib import Path

    from pyspark.sql import SparkSession

    import deltalog.spark
    from deltalog.spark.jvm import jars
    from deltalog.tables import DeltaTable

    jars._DIRECTORY = Path({directory!r})
    path = {path!r}
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.warehouse.dir", {warehouse!r}).getOrCreate()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            deltalog.spark.enable(spark)
    seen = {{"warned": [str(each.message) for each in caught if issubclass(each.category, RuntimeWarning)]}}

    def ids(found):
        return sorted(row.id for row in found.collect())

    def table():
        return spark.read.format("deltalog").load(path)

    def sql(text):
        return lambda: spark.sql(text)

    def refusal(step):
        try:
            return f"done: {{step()}}"
        except Exception as error:
            return f"{{type(error).__name__}}: {{error}}"

    {steps}
    print(json.dumps(seen))
"""
MERGE = "MERGE INTO t USING (SELECT 9L AS id) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *"


def seen(tmp_path: Path, lost: dict[str, str], steps: str) -> dict[str, Any]:
    """Runs code in a process with a jar in which the feature groups in `lost` need classes that do not exist. Returns
    the results that the code collects.
    """
    jar = without_groups(tmp_path / "jars", lost)
    places = {"path": str(tmp_path / "by path"), "warehouse": str(tmp_path / "warehouse")}
    done = run_python(PROGRAM.format(directory=str(jar.parent), steps=steps.strip(), **places))
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def refused(found: str, group: str, symbol: str) -> bool:
    return (
        found.startswith("UnsupportedFeatureError: ")
        and f"the feature group {group} of deltalog cannot be used" in found
        and f"lacks {symbol}" in found
    )


@pytest.mark.newest
@pytest.mark.thorough
def test_rows_are_read_and_written_without_statements_and_own_sql(tmp_path: Path) -> None:
    lost = {"statements": "org.apache.spark.NoStatements", "own SQL": "org.apache.spark.NoProcedures"}
    found = seen(
        tmp_path,
        lost,
        f"""
    spark.range(3).write.format("deltalog").save(path)
    spark.range(2).write.format("deltalog").saveAsTable("t")
    spark.sql("INSERT INTO t VALUES (5)")
    spark.range(3, 4).writeTo("t").append()
    seen["statements"] = [
        refusal(sql("DELETE FROM t WHERE id = 0")),
        refusal(sql("UPDATE t SET id = 7")),
        refusal(sql({MERGE!r})),
        refusal(lambda: spark.newSession().sql("DELETE FROM t")),
        refusal(lambda: DeltaTable.forPath(spark, path).delete("id = 0")),
        refusal(lambda: DeltaTable.forName(spark, "t").update("id = 1", {{"id": "8"}})),
    ]
    seen["own SQL"] = [
        refusal(sql("DESCRIBE HISTORY t")),
        refusal(sql("VACUUM t")),
        refusal(sql("CALL deltalog.history('t')")),
        refusal(sql("BEGIN VACUUM t; END")),
    ]
    seen["syntax"] = refusal(sql("NO STATEMENT"))
    seen["history"] = len(DeltaTable.forName(spark, "t").history().collect())
    seen["rows"] = [ids(table()), ids(spark.table("t"))]
        """,
    )
    for group, symbol in lost.items():
        assert [refused(each, group, symbol) for each in found[group]] == [True] * len(found[group]), found[
            group
        ]
        assert f"{group}, for which {symbol} is missing" in found["warned"][0]
    assert len(found["warned"]) == 1
    assert found["syntax"].startswith("ParseException")
    assert (found["history"], found["rows"]) == (3, [[0, 1, 2], [0, 1, 3, 5]])


@pytest.mark.newest
def test_tables_are_read_without_writes(tmp_path: Path) -> None:
    """If the classes for writes are missing, tables can be read, and writes are refused before anything is created."""
    symbol = "org.apache.spark.NoWrites"
    deltalake.write_deltalake(tmp_path / "by path", pa.table({"id": pa.array(range(3), pa.int64())}))
    found = seen(
        tmp_path,
        {"write": symbol, "statements": symbol},
        """
    spark.sql(f"CREATE TABLE t USING deltalog LOCATION '{path}'")
    rows = spark.range(9)
    seen["write"] = [
        refusal(lambda: rows.write.format("deltalog").mode("overwrite").save(path)),
        refusal(lambda: rows.write.format("deltalog").save(path + " new")),
        refusal(lambda: rows.write.format("deltalog").saveAsTable("new")),
        refusal(lambda: rows.write.format("deltalog").mode("overwrite").saveAsTable("t")),
        refusal(lambda: rows.writeTo("t").overwritePartitions()),
        refusal(sql("INSERT INTO t VALUES (5)")),
        refusal(sql("INSERT OVERWRITE t VALUES (5)")),
        refusal(sql("CREATE OR REPLACE TABLE new USING deltalog AS SELECT 1 AS id")),
    ]
    seen["statements"] = [refusal(sql("DELETE FROM t WHERE id = 0"))]
    seen["history"] = spark.sql("DESCRIBE HISTORY t").count()
    seen["rows"] = [ids(table()), ids(spark.table("t").where("id > 0"))]
    seen["tables"] = [row.tableName for row in spark.sql("SHOW TABLES").collect()]
        """,
    )
    for group in ("write", "statements"):
        assert [refused(each, group, symbol) for each in found[group]] == [True] * len(found[group]), found[
            group
        ]
    assert (found["history"], found["rows"]) == (1, [[0, 1, 2], [1, 2]])
    assert found["tables"] == ["t"]
    assert len(found["warned"]) == 1
    assert not (tmp_path / "by path new").exists()
    assert not (tmp_path / "warehouse" / "new").exists()
