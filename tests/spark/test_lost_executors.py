"""If executors die during DELETE, UPDATE or MERGE, the statement takes effect once or not at all."""

import sys
from pathlib import Path

import pytest

from tests.spark.processes import run_python

SCRIPT = """
    import os, signal, sys, time
    from pathlib import Path
    import pyarrow as pa
    from pyspark import TaskContext
    from pyspark.sql import SparkSession
    import deltalog.spark
    from deltalog import DeltaTable, UnavailableError, write_deltalake

    root = Path(os.environ["ROOT"])
    settings = {
        "spark.ui.enabled": "false",
        "spark.executor.memory": "1g",
        "spark.executorEnv.PYTHONPATH": os.pathsep.join(sys.path),
        # Less compilation makes new processes start sooner.
        "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1",
        "spark.sql.codegen.wholeStage": "false",
        # Each of the six files is read by its own task.
        "spark.sql.files.openCostInBytes": "1m",
        "spark.sql.files.minPartitionNum": "6",
    }
    builder = SparkSession.builder.master("local-cluster[2,1,1024]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = deltalog.spark.enable(builder.getOrCreate())
    spark.sparkContext.setLogLevel("OFF")
    # Finds out which executor holds the rows of the source.
    keeper = str(root / "keeper")

    def parent(process):
        return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])

    def executor():
        # The parent of a Python worker is the worker daemon, whose parent is the executor.
        return parent(os.getppid())

    def killer(marker, dies):
        # Returns a function that returns its argument. It kills an executor once before the job ends.
        def is_to_die():
            if dies == "any":
                return TaskContext.get().partitionId() >= 2
            return (str(executor()) == Path(keeper).read_text()) == (dies == "keeper")

        def work(value):
            if not os.path.exists(marker) and is_to_die():
                try:
                    os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
                except FileExistsError:
                    return value
                os.kill(executor(), signal.SIGKILL)
                time.sleep(60)
            for _ in range(0 if dies == "any" else 1200):
                if os.path.exists(marker):
                    return value
                time.sleep(0.1)
            return value

        return work

    def kept(batches):
        Path(keeper).write_text(str(executor()))
        yield from batches

    def rows(path):
        table = DeltaTable(path).to_pyarrow_table()
        return sorted(zip(table["id"].to_pylist(), table["v"].to_pylist()))

    def files(path, suffix):
        return {str(file) for file in Path(path).glob("*" + suffix)}

    old = [(i, "old") for i in range(1200)]
    merged = [row for row in old if row[0] < 200]
    merged += [(i, f"m{i}") for i in range(200, 1200) if i % 3 != 1] + [(i, "i") for i in range(1200, 1500)]
    merge = (
        "MERGE INTO {table} t USING given s ON t.id = s.id WHEN MATCHED AND t.id % 3 = 1 THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET v = concat('m', dies(t.id)) "
        "WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, 'i')"
    )
    update = "UPDATE {table} SET v = concat('u', dies(id)) WHERE id % 3 = 0"
    cases = [
        ("DELETE FROM {table} WHERE dies(id) % 3 = 0", "any", [row for row in old if row[0] % 3]),
        (update, "any", [(i, v if i % 3 else f"u{i}") for i, v in old]),
        (merge, "other", merged),
        (merge, "keeper", None),
    ]
    data = spark.range(200, 1500, numPartitions=1).mapInArrow(kept, "id long")
    data.createOrReplaceTempView("given")
    for vectors in ("true", "false"):
        # Which data is lost does not depend on how rows are deleted.
        for number, (sql, dies, expected) in enumerate(cases if vectors == "true" else cases[:3]):
            path = str(root / f"{vectors} {number}")
            for first in range(0, 1200, 200):
                rows_of_file = {"id": range(first, first + 200), "v": ["old"] * 200}
                configuration = {"delta.enableDeletionVectors": vectors}
                write_deltalake(path, pa.table(rows_of_file), mode="append", configuration=configuration)
            version, before = DeltaTable(path).version(), files(path, ".parquet")
            marker = str(root / f"{vectors} {number} marker")
            spark.udf.register("dies", killer(marker, dies), "long")
            try:
                spark.sql(sql.format(table=f"deltalog.`{path}`"))
                error = None
            except UnavailableError as raised:
                error = str(raised)
            assert os.path.exists(marker), sql
            committed = DeltaTable(path).version() - version
            new = files(path, ".parquet") - before
            if expected is None:
                assert error is not None and "the source of the MERGE was lost with the executor" in error, error
                assert committed == 0
                assert rows(path) == old
                assert files(path, ".bin") == set()
            else:
                assert error is None, (sql, error)
                assert committed == 1
                assert rows(path) == sorted(expected), sql
                assert len(files(path, ".bin")) <= (vectors == "true")
                new -= {uri.removeprefix("file://").replace("%20", " ") for uri in DeltaTable(path).file_uris()}
            # At most the files of the tasks that died remain.
            print(sql[:6], vectors, "orphans:", len(new), flush=True)
            assert len(new) <= 2, new
    print("done")
"""


@pytest.mark.newest
@pytest.mark.thorough
def test_a_statement_whose_executors_die_is_carried_out_once_or_not_at_all(tmp_path: Path) -> None:
    """A MERGE that loses the rows of its source fails, because the source could be different if it were evaluated
    again.
    """
    done = run_python(SCRIPT, ROOT=str(tmp_path), PYSPARK_PYTHON=sys.executable)
    assert done.stdout.endswith("done\n"), done.stdout + done.stderr
