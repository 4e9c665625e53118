"""Statements run in new threads, whose JVM threads have no active session yet."""

import functools
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from pyspark import InheritableThread
from pyspark.sql import SparkSession

from deltalog.tables import DeltaTable

pytestmark = pytest.mark.timeout(900)

Run = Callable[[Callable[[], object]], None]


def in_thread(kind: type[threading.Thread]) -> Run:
    """Returns a function that runs a given function in a new thread."""

    def run(work: Callable[[], object]) -> None:
        done: Future[None] = Future()

        def execute() -> None:
            try:
                work()
                done.set_result(None)
            except BaseException as error:  # noqa: BLE001 (the test's thread raises it)
                done.set_exception(error)

        thread = kind(target=execute)
        thread.start()
        done.result(600)
        thread.join()

    return run


def in_pool(work: Callable[[], object]) -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(work).result(600)


RUNS = {"thread": in_thread(threading.Thread), "inheritable": in_thread(InheritableThread), "pool": in_pool}


@pytest.fixture(
    params=[
        "thread",
        pytest.param("inheritable", marks=pytest.mark.thorough),
        pytest.param("pool", marks=pytest.mark.thorough),
    ]
)
def run(request: pytest.FixtureRequest) -> Run:
    return RUNS[request.param]


@pytest.fixture
def table(spark: SparkSession) -> Iterator[str]:
    yield "of_threads"
    spark.sql("DROP TABLE IF EXISTS of_threads")


def ids(spark: SparkSession, table: str) -> list[int]:
    return sorted(row.id for row in spark.table(table).collect())


def test_all_kinds_of_statements_run_in_any_thread(
    spark: SparkSession, table: str, path: str, run: Run
) -> None:
    """All kinds of statements work in any thread. Each runs in a new thread, so that it cannot depend on an earlier
    statement there.
    """
    rows = spark.range(2)
    steps: list[tuple[Callable[[], object], list[int]]] = [
        (lambda: rows.write.format("deltalog").saveAsTable(table), [0, 1]),
        (lambda: rows.write.format("deltalog").mode("append").saveAsTable(table), [0, 0, 1, 1]),
        (lambda: rows.write.format("deltalog").mode("overwrite").saveAsTable(table), [0, 1]),
        (lambda: spark.range(2, 4).write.insertInto(table), [0, 1, 2, 3]),
        (lambda: spark.range(4, 5).write.format("deltalog").insertInto(table), [0, 1, 2, 3, 4]),
        (lambda: rows.write.format("deltalog").insertInto(table, overwrite=True), [0, 1]),
        (lambda: spark.range(2, 3).writeTo(table).append(), [0, 1, 2]),
        (lambda: rows.writeTo(table).using("deltalog").createOrReplace(), [0, 1]),
        (lambda: spark.sql(f"INSERT INTO {table} VALUES (5)"), [0, 1, 5]),
        (lambda: spark.sql(f"UPDATE {table} SET id = 6 WHERE id = 5"), [0, 1, 6]),
        (lambda: DeltaTable.forName(spark, table).delete("id = 6"), [0, 1]),
        (
            lambda: spark.sql(
                f"MERGE INTO {table} t USING (VALUES (1L), (7L) AS v(id)) s ON t.id = s.id "
                "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *"
            ),
            [0, 7],
        ),
        (lambda: spark.table(table).write.format("deltalog").save(path), [0, 7]),
        (lambda: spark.sql(f"OPTIMIZE {table}"), [0, 7]),
    ]
    for number, (step, expected) in enumerate(steps):
        run(step)
        assert ids(spark, table) == expected, number
    run(lambda: [ids(spark, table), ids(spark, f"deltalog.`{path}`")])


def test_a_table_is_not_replaced_by_another_format_in_any_thread(
    spark: SparkSession, table: str, run: Run
) -> None:
    spark.range(2).write.format("deltalog").saveAsTable(table)
    with pytest.raises(Exception, match=f"{table} (is a Delta table|would be lost)"):
        run(lambda: spark.range(9).write.mode("overwrite").saveAsTable(table))
    assert ids(spark, table) == [0, 1]


def test_tables_of_other_formats_are_written_in_any_thread(spark: SparkSession, table: str, run: Run) -> None:
    for count in (2, 3):
        run(functools.partial(spark.range(count).write.mode("overwrite").saveAsTable, table))
        assert ids(spark, table) == list(range(count))


def test_a_session_has_its_own_catalog_in_a_thread_of_another_one(
    spark: SparkSession, table: str, run: Run
) -> None:
    """A session uses its own catalog even if another session, which uses Spark's catalog, is the active one of the
    thread.
    """
    other = spark.newSession()
    other.conf.set("spark.sql.catalog.spark_catalog", "builtin")

    def work() -> None:
        spark._jvm.SparkSession.setActiveSession(other._jsparkSession)  # type: ignore[union-attr]
        spark.range(2).write.format("deltalog").saveAsTable(table)
        spark.range(2).write.format("deltalog").mode("append").saveAsTable(table)

    run(work)
    assert ids(spark, table) == [0, 0, 1, 1]


def test_a_look_up_leaves_the_active_session_of_a_thread(spark: SparkSession, table: str, run: Run) -> None:
    """Looking up a table does not change the active session of a thread. Only writing a DataFrame has to change it,
    because the writer looks up the table before the session executes anything.
    """
    sessions = spark._jvm.SparkSession  # type: ignore[union-attr]
    other = spark.newSession()
    other.conf.set("spark.sql.catalog.spark_catalog", "builtin")
    spark.range(2).write.format("deltalog").saveAsTable(table)

    def work() -> None:
        sessions.clearActiveSession()
        look_up()
        assert not sessions.getActiveSession().isDefined()
        sessions.setActiveSession(other._jsparkSession)
        look_up()
        assert sessions.getActiveSession().get().equals(other._jsparkSession)

    def look_up() -> None:
        assert ids(spark, table) == [0, 1]
        assert spark.catalog.tableExists(table)
        assert spark.catalog.listColumns(table)[0].name == "id"
        DeltaTable.forName(spark, table).delete("id = 7")
        spark.sql(f"DELETE FROM {table} WHERE id = 7")

    run(work)
