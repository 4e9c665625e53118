"""In an application with a Hive metastore, tables of Hive's formats may be located in the directory of a Delta table.
No statement on them damages the Delta table.
"""

from pathlib import Path

import pytest

from tests.spark.processes import run_python

pytestmark = [pytest.mark.newest, pytest.mark.thorough]

STATEMENTS = {
    "INSERT OVERWRITE DIRECTORY '{path}' STORED AS PARQUET SELECT 1 AS id": "belongs to the Delta table",
    "INSERT OVERWRITE LOCAL DIRECTORY '{path}' STORED AS TEXTFILE SELECT 1 AS id": "belongs to the Delta table",
    "INSERT OVERWRITE TABLE texts SELECT 1": "belongs to the Delta table",
    "INSERT INTO TABLE parquets SELECT 1": "belongs to the Delta table",
    "LOAD DATA LOCAL INPATH '{other}' OVERWRITE INTO TABLE texts": "belongs to the Delta table",
    "CREATE TABLE third STORED AS PARQUET LOCATION '{path}' AS SELECT 1 AS id": "non-empty directory",
    "TRUNCATE TABLE texts": "CANNOT_TRUNCATE_EXTERNAL_TABLE",
    "saveAsTable": "ours is a Delta table, and this write would replace it with a table of the format hive",
}


def test_no_statement_of_hive_loses_a_table(tmp_path: Path) -> None:
    path, other = tmp_path / "warehouse" / "ours", tmp_path / "other.txt"
    other.write_text("7\n")
    statements = [text.format(path=path, other=other) for text in STATEMENTS]
    done = run_python(
        f"""
        import os
        os.chdir({str(tmp_path)!r})  # For the metastore.
        from pathlib import Path
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
        import deltalog.spark
        builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
        builder = builder.config("spark.sql.warehouse.dir", {str(tmp_path / "warehouse")!r})
        spark = deltalog.spark.enable(builder.enableHiveSupport().getOrCreate())
        spark.sql("CREATE TABLE ours (id INT) USING deltalog")
        spark.newSession().sql("INSERT INTO ours VALUES (1)")
        spark.sql("CREATE TABLE texts (id INT) STORED AS TEXTFILE LOCATION '{path}'")
        spark.sql("CREATE TABLE parquets (id INT) STORED AS PARQUET LOCATION '{path}'")
        contents = lambda: {{file: file.read_bytes() for file in Path("{path}").rglob("*") if file.is_file()}}
        before = contents()
        for statement in {statements!r}:
            error = "none"
            try:
                if statement == "saveAsTable":
                    spark.sql("SELECT 1 AS id").write.format("hive").mode("overwrite").saveAsTable("ours")
                else:
                    spark.sql(statement)
            except (PySparkException, Py4JError, deltalog.DeltaError) as problem:
                error = str(problem)
            print("same" if contents() == before else "changed", " ".join(error.split()))
        print([row.id for row in spark.table("ours").collect()])
        """
    )
    *found, rows = done.stdout.splitlines()
    assert len(found) == len(STATEMENTS), done.stderr
    for line, (statement, error) in zip(found, STATEMENTS.items(), strict=True):
        assert line.startswith("same "), (statement, line)
        assert error in line, (statement, line)
    assert rows == "[1]"
