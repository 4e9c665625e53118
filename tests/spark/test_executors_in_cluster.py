"""In a cluster, executors write the files of OPTIMIZE. Even if tasks fail or executors die, each row exists exactly
once.
"""

import sys
from pathlib import Path

import pytest

from tests.spark.processes import run_python

SCRIPT = """
    import os, signal, sys, threading, time
    from pathlib import Path
    import pyarrow as pa
    from pyspark.sql import SparkSession
    import deltalog.spark
    from deltalog import DeltaTable, MissingFileError, write_deltalake
    from deltalog.spark.sql.division import MIN_SIZE

    root = Path(os.environ["ROOT"])
    settings = {
        "spark.ui.enabled": "false",
        "spark.executor.memory": "1g",
        "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1",
        # A task attempt fails while one of its files is missing.
        "spark.task.maxFailures": "100",
        "spark.excludeOnFailure.enabled": "false",
    }
    builder = SparkSession.builder.master("local-cluster[2,1,1024]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = deltalog.spark.enable(builder.getOrCreate())
    spark.sparkContext.setLogLevel("OFF")
    store = spark.sparkContext._jsc.sc().statusStore()

    def tasks():
        # Returns the numbers of tasks of all live executors.
        found = {}
        each = store.executorList(True).iterator()
        while each.hasNext():
            executor = each.next()
            found[executor.id()] = executor.completedTasks()
        return found

    def files(path):
        return {str(file) for file in Path(path).rglob("*.parquet") if "_delta_log" not in str(file)}

    def rows(path):
        table = DeltaTable(path).to_pyarrow_table()
        return sorted(zip(table["id"].to_pylist(), table["p"].to_pylist(), table["v"].to_pylist()))

    def table(name, count):
        # Creates a table with small files in eight partitions.
        path = str(root / name)
        for first in range(3):
            ids = range(first * count, (first + 1) * count)
            data = {"id": ids, "p": [i % 8 for i in ids], "v": [f"value {i}" for i in ids]}
            configuration = {"delta.enableDeletionVectors": "true", "delta.enableRowTracking": "true"}
            write_deltalake(path, pa.table(data), mode="append", partition_by=["p"], configuration=configuration)
        DeltaTable(path).delete("id % 5 = 2")
        return path

    def executors():
        # Returns the executor processes, which are children of the driver's JVM.
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                command = (process / "cmdline").read_text()
                parent = int((process / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            if "CoarseGrainedExecutorBackend" in command and parent == spark.sparkContext._gateway.proc.pid:
                found.append(int(process.name))
        return found

    def optimize_while(path, work, order=""):
        # Runs OPTIMIZE, and calls `work` as soon as there is a new file.
        before, done = files(path), []

        def wait():
            while not files(path) - before:
                time.sleep(0.01)
            done.append(work())

        thread = threading.Thread(target=wait)
        thread.start()
        [row] = spark.sql(f"OPTIMIZE deltalog.`{path}` {order}").collect()
        thread.join()
        return row.metrics, done[0], before

    def check(path, expected, metrics, before, orphans, added=8):
        assert rows(path) == expected
        assert (metrics.numFilesAdded, metrics.numFilesRemoved) == (added, 24), metrics
        assert DeltaTable(path).verify().ok
        named = {uri.removeprefix("file://") for uri in DeltaTable(path).file_uris()}
        left = files(path) - before - named
        print("orphans:", len(left), flush=True)
        assert len(left) <= orphans, left

    # Without a setting, executors write only if the files are large enough, which is not the case here.
    path = table("small", 800)
    expected, version = rows(path), DeltaTable(path).version()
    ran = sum(tasks().values())
    spark.sql(f"OPTIMIZE deltalog.`{path}`").collect()
    assert (DeltaTable(path).version(), sum(tasks().values())) == (version + 1, ran)
    DeltaTable(path).restore(version)

    spark.conf.set(MIN_SIZE, "0")
    before = files(path)
    [row] = spark.sql(f"OPTIMIZE deltalog.`{path}`").collect()
    check(path, expected, row.metrics, before, 0)
    for _ in range(600):
        # Spark counts a task some time after its job has ended.
        ran = tasks()
        if sum(count for name, count in ran.items() if name != "driver") >= 8:
            break
        time.sleep(0.1)
    print(ran, flush=True)
    assert sum(count for name, count in ran.items() if name != "driver") == 8, ran
    assert sum(count > 0 for name, count in ran.items() if name != "driver") == 2, ran

    # A file is missing for a while, so its task fails and is repeated. Failed attempts leave no files.
    path = table("retried", 800)
    expected = rows(path)
    victim = Path(sorted(uri for uri in DeltaTable(path).file_uris() if "p=7" in uri)[-1].removeprefix("file://"))
    away = victim.with_suffix(".away")
    victim.rename(away)
    metrics, _, before = optimize_while(path, lambda: (time.sleep(0.5), away.rename(victim)))
    check(path, expected, metrics, before | {str(victim)}, 0)

    # The file stays missing: nothing is committed, and no new file is left behind.
    spark.conf.unset(MIN_SIZE)
    path = table("failed", 800)
    victim = Path(sorted(uri for uri in DeltaTable(path).file_uris() if "p=3" in uri)[-1].removeprefix("file://"))
    victim.unlink()
    version, before = DeltaTable(path).version(), files(path)
    spark.conf.set(MIN_SIZE, "0")
    try:
        spark.sql(f"OPTIMIZE deltalog.`{path}`").collect()
    except MissingFileError as error:
        assert victim.name in str(error), error
    else:
        raise AssertionError("the job must fail")
    for _ in range(100):
        if files(path) == before:
            break
        time.sleep(0.1)
    assert (DeltaTable(path).version(), files(path)) == (version, before)

    # An executor dies after the first file was written.
    path = table("killed", 400_000)
    expected = rows(path)

    def kill():
        victims = executors()
        assert len(victims) == 2, victims
        os.kill(victims[0], signal.SIGKILL)
        return victims

    metrics, victims, before = optimize_while(path, kill)
    # Tasks that died leave at most their own files behind.
    check(path, expected, metrics, before, 2)

    # While rows are ordered, another executor dies with shuffled rows, which are shuffled again.
    while len(executors()) < 2:
        time.sleep(0.1)
    path = table("ordered", 200_000)
    expected = rows(path)
    sizes = [Path(uri.removeprefix("file://")).stat().st_size for uri in DeltaTable(path).file_uris()]
    spark.conf.set("spark.databricks.delta.optimize.maxFileSize", str(sum(sizes) // 24))
    metrics, victims, before = optimize_while(path, kill, "ZORDER BY (v, id)")
    check(path, expected, metrics, before, 4, len(DeltaTable(path).file_uris()))
    assert metrics.numFilesAdded >= 24, metrics

    # All executors die while they copy. New executors copy the files again, under other names.
    while len(executors()) < 2:
        time.sleep(0.1)
    clone, died = str(root / "clone"), []

    def kill_all():
        while not files(clone):
            time.sleep(0.001)
        for victim in executors():
            os.kill(victim, signal.SIGKILL)
            died.append(victim)

    thread = threading.Thread(target=kill_all)
    thread.start()
    [row] = spark.sql(f"CREATE TABLE deltalog.`{clone}` DEEP CLONE deltalog.`{path}`").collect()
    thread.join()
    named = {uri.removeprefix("file://") for uri in DeltaTable(clone).file_uris()}
    assert (len(died), row.num_copied_files, len(named)) == (2, metrics.numFilesAdded, metrics.numFilesAdded), died
    assert rows(clone) == expected
    assert DeltaTable(clone).verify().ok
    left = files(clone) - named
    print("copies of tasks that died:", len(left), flush=True)
    assert 0 < len(left) <= len(named), left
    print("done")
"""


@pytest.mark.newest
@pytest.mark.slow
@pytest.mark.thorough
def test_executors_write_and_each_row_stays_once(tmp_path: Path) -> None:
    """Files of failed attempts are deleted or belong to no version."""
    done = run_python(SCRIPT, ROOT=str(tmp_path), PYSPARK_PYTHON=sys.executable)
    assert done.stdout.endswith("done\n"), done.stdout + done.stderr
