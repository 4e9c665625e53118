"""Archives the classes that Spark loads, so that starting the JVM of a test takes 9 seconds of processor time, not 15.

    python -m scripts.class_archive

The archive fits the PySpark and the Java of this interpreter, and is stored in its environment. A JVM with different
classes ignores the archive.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ARCHIVE = Path(sys.prefix) / "spark-classes.jsa"

# A test's driver lives for minutes and runs most of its code once, so optimizing it would cost more than it gains.
# Without the optimizing compiler, the code cache would by default be a fifth of this size, and sweeping it would take a
# fifth of the processor time.
OPTIONS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:ReservedCodeCacheSize=240m")

# This program does what most tests do.
PROGRAM = """
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
frame = spark.range(1000).selectExpr("id", "id % 7 AS k", "CAST(id AS STRING) AS s", "DATE '2020-01-01' AS d")
frame.write.partitionBy("k").parquet(sys.argv[1])
spark.read.parquet(sys.argv[1]).createOrReplaceTempView("t")
spark.sql("SELECT k, count(*), max(s) FROM t WHERE id > 5 GROUP BY k ORDER BY k").collect()
spark.sql("SELECT * FROM t JOIN t AS u USING (id) WHERE u.s LIKE '1%' LIMIT 3").collect()
spark.createDataFrame([(1, "a")], "a int, b string").collect()
"""


def java_options(archive: Path = ARCHIVE) -> str:
    """Returns the options with which tests start JVMs."""
    # Without this option, a JVM that cannot use the archive would print a warning into the test's output.
    shared = (f"-XX:SharedArchiveFile={archive}", "-Xlog:disable") if archive.is_file() else ()
    return " ".join((*OPTIONS, *shared))


def make(archive: Path) -> None:
    """Runs the program in a JVM that writes its classes into `archive` when it ends."""
    import pyspark

    with tempfile.TemporaryDirectory() as directory:
        program = Path(directory, "program.py")
        program.write_text(PROGRAM)
        made = Path(directory, "classes.jsa")
        options = " ".join((*OPTIONS, f"-XX:ArchiveClassesAtExit={made}", "-Xlog:disable"))
        submit = Path(str(pyspark.__file__)).parent / "bin" / "spark-submit"
        settings = ("spark.ui.enabled=false", "spark.sql.shuffle.partitions=1")
        command = [
            str(submit),
            "--master",
            "local[2]",
            *(part for text in settings for part in ("--conf", text)),
        ]
        ran = subprocess.run(
            [*command, str(program), str(Path(directory, "table"))],
            cwd=directory,
            env=os.environ
            | {"SPARK_SUBMIT_OPTS": options, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
            check=False,
        )
        if ran.returncode != 0 or not made.is_file():
            raise SystemExit(f"{ran.stdout}\nclass_archive: the JVM did not write an archive")
        archive.unlink(missing_ok=True)
        # The archive is written to a temporary file first, so that it is never found incomplete.
        beside = archive.with_suffix(".new")
        beside.write_bytes(made.read_bytes())
        beside.rename(archive)


if __name__ == "__main__":
    make(ARCHIVE)
