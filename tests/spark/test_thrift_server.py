"""The Thrift server, which uses deltalog through settings alone, serves the clients PyHive and beeline."""

import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import deltalog
from deltalog.spark.configuration import jar
from tests.conftest import missing
from tests.spark.servers import HOME, free_port, running, thrift_command

pytestmark = [pytest.mark.newest, pytest.mark.thorough, pytest.mark.timeout(600)]

try:
    from pyhive import hive
    from TCLIService import ttypes
except ImportError:
    hive = None


class Server:
    """A running server, with its port and its directory."""

    def __init__(self, port: int, directory: Path) -> None:
        self.port, self.directory = port, directory

    def session(self, **named: Any) -> Any:
        if hive is None:
            missing("no PyHive: pip install 'PyHive[hive-pure-sasl]'")
        return hive.connect(host="127.0.0.1", port=self.port, username="somebody", auth="NONE", **named)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    directory, port = tmp_path_factory.mktemp("thrift"), free_port()
    command = thrift_command(port, directory, "--driver-class-path", jar())
    with running(command, port, directory, directory / "server.log"):
        yield Server(port, directory)


def sql(session: Any, text: str) -> list[Any]:
    with session.cursor() as cursor:
        cursor.execute(text)
        return list(cursor.fetchall()) if cursor.description else []


def failure(session: Any, text: str) -> tuple[str, str]:
    """Runs a statement that must fail, and returns the SQLSTATE and the message."""
    with pytest.raises(hive.OperationalError) as raised:
        sql(session, text)
    status = raised.value.args[0].status
    return status.sqlState, status.errorMessage


def columns(session: Any, table: str) -> list[tuple[str, str, str]]:
    """Returns the names, types and comments of a table's columns, through the request that JDBC's `getColumns`
    makes.
    """
    request = ttypes.TGetColumnsReq(session.sessionHandle, schemaName="default", tableName=table)
    answered = session.client.GetColumns(request)
    request = ttypes.TFetchResultsReq(answered.operationHandle, ttypes.TFetchOrientation.FETCH_NEXT, 100)
    found = [column.stringVal for column in session.client.FetchResults(request).results.columns]
    return list(zip(*(found[at].values for at in (3, 5, 11)), strict=True))


def test_sessions_share_tables_and_keep_the_rest(server: Server) -> None:
    """Sessions share tables, but not settings. The end of a session does not affect other sessions, although Hive
    closes the class loader of jars in `spark.jars`.
    """
    one, other = server.session(), server.session()
    sql(one, "CREATE TABLE shared (id INT, p STRING) USING deltalog")
    sql(one, "CREATE TEMP VIEW mine AS SELECT 0 AS id, 'view' AS p")
    sql(one, "MERGE INTO shared t USING mine s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *")
    assert sql(other, "SELECT * FROM shared") == [(0, "view")]
    assert failure(other, "SELECT * FROM mine")[0] == "42P01"

    def insert(number: int) -> None:
        session = server.session()
        for row in range(3):
            sql(session, f"INSERT INTO shared VALUES ({number * 10 + row}, 'w{number}')")
        session.close()

    threads = [threading.Thread(target=insert, args=(number,)) for number in (1, 2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sql(one, "SELECT count(*) FROM shared") == [(10,)]
    one.close()
    sql(other, "CREATE TABLE later USING deltalog AS SELECT * FROM shared WHERE id >= 10")
    sql(other, "CREATE OR REPLACE TABLE later USING deltalog AS SELECT 1 AS a")
    sql(other, "UPDATE shared SET p = 'u' WHERE id = 11")
    assert sql(server.session(), "SELECT * FROM later") == [(1,)]
    other.close()


def test_errors_have_a_sqlstate(server: Server) -> None:
    session = server.session()
    sql(
        session,
        "CREATE TABLE strict (id INT) USING deltalog TBLPROPERTIES ('delta.constraints.c' = 'id > 0')",
    )
    state, text = failure(session, "INSERT INTO strict VALUES (-1)")
    assert (state, "the constraint 'c' (id > 0) is not met" in text) == ("22023", True)
    assert "py4j" not in text
    assert failure(session, "SELECT nothing FROM strict")[0] == "42703"
    assert failure(session, "RESTORE strict TO VERSION AS OF 7")[0] == "42815"
    assert failure(session, "VACUUM strict RETAIN 0 HOURS")[0] == "22023"
    session.close()


def test_get_columns_shows_the_columns_of_the_newest_version(server: Server) -> None:
    session = server.session()
    sql(session, "CREATE TABLE seen (id INT COMMENT 'the key', s STRUCT<a: INT>, p CHAR(3)) USING deltalog")
    assert columns(session, "seen") == [
        ("id", "INT", "the key"),
        ("s", "STRUCT<a: INT>", ""),
        ("p", "CHAR(3)", ""),
    ]
    sql(session, "ALTER TABLE seen ADD COLUMN more DOUBLE")
    assert [name for name, *_ in columns(session, "seen")] == ["id", "s", "p", "more"]
    sql(
        session,
        "MERGE WITH SCHEMA EVOLUTION INTO seen t USING (SELECT 1 AS id, 2 AS wide) s ON t.id = s.id "
        "WHEN NOT MATCHED THEN INSERT *",
    )
    assert [name for name, *_ in columns(session, "seen")] == ["id", "s", "p", "more", "wide"]
    sql(session, "RESTORE seen TO VERSION AS OF 0")
    assert [name for name, *_ in columns(session, "seen")] == ["id", "s", "p"]
    sql(session, "CREATE TABLE copied DEEP CLONE seen")
    assert [name for name, *_ in columns(session, "copied")] == ["id", "s", "p"]
    sql(session, "CREATE OR REPLACE TABLE seen USING deltalog AS SELECT 1L AS other")
    assert columns(session, "seen") == [("other", "BIGINT", "")]
    session.close()


def test_a_cancelled_statement_and_a_closed_session_commit_nothing(server: Server) -> None:
    session = server.session()
    sql(session, "CREATE TABLE slow (id INT, s STRING) USING deltalog")
    slept = "CAST(java_method('java.lang.Thread', 'sleep', 1500L) AS STRING)"
    for ends_session in (False, True):
        writer = server.session()
        cursor = writer.cursor()
        cursor.execute(f"INSERT INTO slow SELECT id, {slept} FROM range(0, 40, 1, 20)", async_=True)
        deadline = time.monotonic() + 60
        while not list((server.directory / "warehouse" / "slow").glob("*.parquet")):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        if ends_session:
            writer.close()
        else:
            cursor.cancel()
            assert cursor.poll().operationState == ttypes.TOperationState.CANCELED_STATE
        while list((server.directory / "warehouse" / "slow").glob("*.parquet")):
            assert time.monotonic() < deadline  # The files of the statement must be deleted by then.
            time.sleep(0.1)
    assert deltalog.DeltaTable(server.directory / "warehouse" / "slow").version() == 0
    session.close()


def test_beeline(server: Server) -> None:
    statements = (
        "CREATE TABLE b (id INT, p STRING) USING deltalog",
        "INSERT INTO b VALUES (1, 'one'), (2, 'two')",
        "DELETE FROM b WHERE id = 1",
        "DESCRIBE HISTORY b LIMIT 1",
        "SELECT * FROM b",
    )
    command = [
        str(HOME / "bin" / "beeline"),
        "-u",
        f"jdbc:hive2://127.0.0.1:{server.port}/default",
        "-n",
        "me",
    ]
    command += ["--outputformat=csv2", "--silent=true"]
    for statement in statements:
        command += ["-e", statement]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    assert "DELETE" in done.stdout
    assert done.stdout.splitlines()[-1] == "2,two"


def test_a_server_that_has_the_jar_in_spark_jars_alone_does_not_start(tmp_path: Path) -> None:
    command = thrift_command(free_port(), tmp_path, "--jars", jar())
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False, cwd=tmp_path)
    assert done.returncode != 0
    assert "name it in spark.driver.extraClassPath" in done.stderr
