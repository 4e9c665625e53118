"""A data file that claims more than it contains causes an error that names the file. No executor and no driver
crashes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from deltalog import CorruptDataError, write_deltalake
from deltalog.spark.jvm import Jvm
from deltalog.spark.jvm.causes import causes
from tests.hostile import pages
from tests.spark.processes import run_python

FILES: dict[str, tuple[Callable[[Path], None], str]] = {
    "dictionary": (partial(pages.of_dictionary, claims=2**31 - 1), "claims 2147483647 bytes of values"),
    "gigabyte": (
        partial(pages.of_dictionary, claims=10**9, codec="zstd"),
        "claims 1000000000 bytes of values",
    ),
    "entries": (partial(pages.of_entries, claims=2**31 - 1), "claims 2147483647 entries"),
    "chunk": (partial(pages.of_chunk, claims=2**40), "claims 1099511627776 bytes for a column chunk"),
    "header": (pages.of_deep_header, "nested too deeply"),
}


@pytest.fixture(params=[True, False], ids=["batches", "rows"])
def reader(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[None]:
    """Selects one of Spark's two Parquet readers."""
    spark.conf.set("spark.sql.parquet.enableVectorizedReader", str(request.param).lower())
    yield
    spark.conf.unset("spark.sql.parquet.enableVectorizedReader")


def table(path: Path, make: Callable[[Path], None]) -> Path:
    """Creates a table, replaces its data file with one that `make` writes, and returns the file."""
    write_deltalake(path, pa.table({"id": range(1000)}))
    (file,) = path.glob("*.parquet")
    make(file)
    (commit,) = (path / "_delta_log").glob("*.json")
    size = file.stat().st_size
    text = commit.read_text()
    before = text.index('"size":') + len('"size":')
    after = before + len(text[before:]) - len(text[before:].lstrip("0123456789"))
    commit.write_text(text[:before] + str(size) + text[after:])
    return file


@pytest.mark.newest
@pytest.mark.parametrize("name", FILES)
@pytest.mark.usefixtures("reader")
def test_a_file_that_claims_too_much_ends_no_process(spark: SparkSession, tmp_path: Path, name: str) -> None:
    make, message = FILES[name]
    if spark.conf.get("spark.sql.parquet.enableVectorizedReader") == "false" and name != "header":
        message = "claims"  # The claim is in a page, so it cannot be checked before the page is read.
    file = table(tmp_path / "t", make)
    for statement in ("SELECT sum(id) FROM {t}", "DELETE FROM {t} WHERE id % 2 = 1"):
        with pytest.raises(CorruptDataError, match=message) as damaged:
            spark.sql(statement.replace("{t}", f"deltalog.`{tmp_path / 't'}`")).collect()
        assert file.name in str(damaged.value)
        assert f"table {tmp_path / 't'}" in str(damaged.value).replace("file://", "")
    assert spark.range(3).count() == 3


@pytest.mark.usefixtures("reader")
def test_a_block_that_claims_too_many_values_ends_no_process(spark: SparkSession, tmp_path: Path) -> None:
    """A page claims too many values in a block. Some Spark releases check this themselves."""
    table(tmp_path / "t", partial(pages.of_block, claims=2**30))
    with pytest.raises(
        (CorruptDataError, Py4JJavaError), match=r"claims|DELTA_BINARY_PACKED|ParquetDecoding"
    ):
        spark.sql(f"SELECT sum(id) FROM deltalog.`{tmp_path / 't'}`").collect()
    assert spark.range(3).count() == 3


def thrown(spark: SparkSession, message: str, *calls: tuple[str, str]) -> str:
    """Returns the class name of the error that deltalog raises for an OutOfMemoryError. `calls` is the stack trace of
    the OutOfMemoryError, innermost call first.
    """
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    jvm = gateway.jvm
    error = jvm.java.lang.OutOfMemoryError(message)
    trace = gateway.new_array(jvm.java.lang.StackTraceElement, len(calls))
    for at, (name, method) in enumerate(calls):
        trace[at] = jvm.java.lang.StackTraceElement(name, method, "File.java", 1)
    error.setStackTrace(trace)
    path = jvm.org.apache.hadoop.fs.Path("/file.parquet")
    with pytest.raises(Py4JJavaError) as found:
        Jvm(gateway).static("FatalFiles", "faultOf", error, path, None)
    innermost = [*causes(found.value.java_exception)][-1]
    return str(innermost.getClass().getSimpleName())


@pytest.mark.newest
def test_other_out_of_memory_errors_stay_errors_of_the_jvm(spark: SparkSession) -> None:
    """An OutOfMemoryError that is not due to a file's claims stays an error of the JVM. The memory for a batch's
    values is limited as well, because a small page may contain many values.
    """
    parquet = ("org.apache.parquet.hadoop.CodecFactory", "decompress")
    vectors = "org.apache.spark.sql.execution.vectorized."
    for calls in (
        [("org.apache.spark.util.collection.ExternalSorter", "insert"), parquet],
        [("java.util.Arrays", "copyOf"), ("scala.collection.mutable.ArrayBuffer", "addOne"), parquet],
        [
            (vectors + "OnHeapColumnVector", "reserveInternal"),
            (vectors + "WritableColumnVector", "reserve"),
            parquet,
        ],
    ):
        assert thrown(spark, "Java heap space", *calls) == "OutOfMemoryError"


SCRIPT = """
    import os
    from pathlib import Path
    from pyspark.sql import SparkSession
    import deltalog.spark
    from deltalog import CorruptDataError
    from tests.spark.test_strange_pages import FILES, table

    builder = SparkSession.builder.master("local-cluster[1,1,1024]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.executor.memory", "1g").config("spark.task.maxFailures", "1")
    spark = deltalog.spark.enable(builder.getOrCreate())
    spark.sparkContext.setLogLevel("OFF")
    for name, (make, message) in FILES.items():
        path = Path(os.environ["ROOT"], name)
        file = table(path, make)
        try:
            spark.sql(f"SELECT sum(id) FROM deltalog.`{path}`").collect()
        except CorruptDataError as error:
            assert message in str(error) and file.name in str(error) and str(path) in str(error), error
        else:
            raise AssertionError(name)
    executors = spark.sparkContext._jsc.sc().statusStore().executorList(False)
    print("executors that ended:", sum(not executors.apply(i).isActive() for i in range(executors.size())))
"""


@pytest.mark.newest
@pytest.mark.slow
@pytest.mark.thorough
def test_no_executor_ends(tmp_path: Path) -> None:
    done = run_python(SCRIPT, ROOT=str(tmp_path), PYSPARK_PYTHON=sys.executable)
    assert done.stdout.endswith("executors that ended: 0\n"), done.stdout + done.stderr
