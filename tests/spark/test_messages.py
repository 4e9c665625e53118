"""Counts the messages between Python and the JVM. Each message is a round trip between two processes.

Messages in both directions count, including PySpark's own, but not the messages with which Python releases
objects.
"""

import functools
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from py4j.clientserver import JavaClient
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from deltalog.spark.bridge import Bridge
from deltalog.tables import DeltaTable
from tests.spark.processes import run_python


class Message(NamedTuple):
    """A message, with the line of Python code that sends or receives it."""

    is_call_of_python: bool
    text: str
    place: str

    def __str__(self) -> str:
        direction = "JVM → Python" if self.is_call_of_python else "Python → JVM"
        return f"{direction}  {self.text}  {self.place}"


class Messages(list[Message]):
    """Records messages, and counts them."""

    def taken(self, execute: Callable[[], object]) -> int:
        """Returns the number of messages that are sent while a function runs."""
        self.clear()
        execute()
        return len(self)

    @property
    def profile(self) -> str:
        """Returns the recorded messages as text, one per line."""
        return "\n".join(map(str, self))


def _place() -> str:
    frames = [frame for frame in traceback.extract_stack() if "/py4j/" not in frame.filename]
    own = [
        frame for frame in frames if "/deltalog/" in frame.filename and "/jvm/gateway" not in frame.filename
    ]
    last = (own or frames[:-2])[-1]
    return f"{Path(last.filename).name}:{last.lineno}: {last.line}"


@pytest.fixture
def messages(monkeypatch: pytest.MonkeyPatch) -> Messages:
    """Records the messages of a test."""
    recorded = Messages()
    send, call = JavaClient.send_command, Bridge.call

    def sent(self: JavaClient, command: str, *arguments: Any, **options: Any) -> Any:
        if not command.startswith("m\n"):
            recorded.append(Message(False, command.replace("\n", " ")[:60], _place()))
        return send(self, command, *arguments, **options)

    def called(self: Bridge, role: str, method: str, *arguments: Any) -> Any:
        recorded.append(Message(True, f"{role}.{method}", ""))
        return call(self, role, method, *arguments)

    monkeypatch.setattr(JavaClient, "send_command", sent)
    monkeypatch.setattr(Bridge, "call", called)
    return recorded


# For each table of the test, the end of its CREATE TABLE statement. The statements below find rows in the tables, so
# Spark has to read and write files.
_TABLES = {
    "with vectors": "USING deltalog TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
    "with everything": "USING deltalog PARTITIONED BY (p) TBLPROPERTIES ('delta.enableDeletionVectors' = 'false', "
    "'delta.enableChangeDataFeed' = 'true', 'delta.columnMapping.mode' = 'name', "
    "'delta.constraints.positive' = 'id >= 0')",
}

# Statements with their maximum number of messages, including PySpark's own: five for `sql` and seven for `collect`.
# On the table with deletion vectors, a statement needs one job less.
_STATEMENTS = {
    "SELECT": ("SELECT max(v) FROM {table} WHERE id > {row}", 15),
    "INSERT VALUES": ("INSERT INTO {table} (id, p, v) VALUES ({new}, 0, 'a')", 13),
    "INSERT SELECT": ("INSERT INTO {table} (id, p, v) SELECT {new}, 0, v FROM {table} WHERE id = {row}", 16),
    "DELETE": ("DELETE FROM {table} WHERE id = {row}", 15),
    "UPDATE": ("UPDATE {table} SET v = 'u' WHERE id = {row}", 15),
    "UPDATE with a subquery": ("UPDATE {table} SET v = 'u' WHERE id IN (SELECT {row})", 16),
    "MERGE": (
        (
            "MERGE INTO {table} t USING (SELECT explode(array({row}, {new})) AS id) s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET v = 'm' WHEN NOT MATCHED THEN INSERT (id, p, v) VALUES (s.id, 0, 'm')"
        ),
        18,
    ),
    "MERGE with all clauses": (
        (
            "MERGE INTO {table} t USING (SELECT explode(array({row}, {new})) AS id) s ON t.id = s.id "
            "WHEN MATCHED AND t.p = 5 THEN DELETE WHEN MATCHED THEN UPDATE SET v = 'm' "
            "WHEN NOT MATCHED AND s.id = 5 THEN INSERT (id) VALUES (s.id) "
            "WHEN NOT MATCHED THEN INSERT (id, p, v) VALUES (s.id, 0, 'm') "
            "WHEN NOT MATCHED BY SOURCE AND t.p = 5 THEN DELETE "
            "WHEN NOT MATCHED BY SOURCE AND t.id = {row} + 100 THEN UPDATE SET v = 'b'"
        ),
        18,
    ),
}


def test_a_statement_takes_at_most_twenty_messages(
    spark: SparkSession, tmp_path: Path, messages: Messages
) -> None:
    profiles = []
    for name, definition in _TABLES.items():
        table = f"deltalog.`{tmp_path / name}`"
        columns = "id BIGINT, p BIGINT, v STRING"
        if name == "with everything":
            columns += (
                ", twice BIGINT GENERATED ALWAYS AS (id * 2), number BIGINT GENERATED ALWAYS AS IDENTITY"
            )
        spark.sql(f"CREATE TABLE {table} ({columns}) {definition}")
        spark.sql(f"INSERT INTO {table} (id, p, v) SELECT id, id % 2, 'x' FROM range(1000)")
        for number, (statement, (text, most)) in enumerate(_STATEMENTS.items()):

            def execute(row: int, text: str = text, table: str = table) -> None:
                answer = spark.sql(text.format(table=table, row=row, new=row + 2000))
                if text.startswith("SELECT"):
                    answer.collect()

            row = 200 + 10 * number
            execute(row)  # Classes and their members are looked up once.
            taken = messages.taken(functools.partial(execute, row + 1))
            if taken > most:
                profiles.append(f"{statement}, {name}: {taken} instead of {most}\n{messages.profile}")
    assert not profiles, "\n\n".join(profiles)


def test_relations_take_few_messages(spark: SparkSession, path: str, messages: Messages) -> None:
    rows = spark.range(100).selectExpr("id", "id % 2 AS p")
    writer = rows.write.format("deltalog").option("delta.enableDeletionVectors", "true")
    writer.partitionBy("p").save(path)

    def load() -> int:
        return messages.taken(lambda: spark.read.format("deltalog").load(path))

    def table() -> int:
        return messages.taken(lambda: spark.table(f"deltalog.`{path}`"))

    load(), table()  # Classes and their members are looked up once.
    assert load() <= 6, messages.profile
    assert table() <= 4, messages.profile


def test_writes_take_few_messages_whatever_the_number_of_columns(
    spark: SparkSession, tmp_path: Path, messages: Messages
) -> None:
    """Writes take few messages, whatever the number of columns. One table has no features that matter to a write, and
    the other table has partitions, physical names, and all kinds of rules.
    """
    constraint = "'delta.columnMapping.mode' = 'name', 'delta.constraints.positive' = 'id >= 0'"
    definitions = {
        "plain": "({}) USING deltalog",
        "ruled": "({}, twice BIGINT GENERATED ALWAYS AS (id * 2), number BIGINT GENERATED ALWAYS AS IDENTITY) "
        f"USING deltalog PARTITIONED BY (p) TBLPROPERTIES ({constraint})",
    }

    def counts(columns: int) -> dict[str, int]:
        names = ["id", "p", *(f"c{number}" for number in range(2, columns))]
        rows = spark.range(3).selectExpr(*(f"id + 1 AS {name}" for name in names))
        rows.createOrReplaceTempView("given")
        found = {}
        for name, definition in definitions.items():
            path = f"{tmp_path}/{name}_{columns}"
            spark.sql(
                f"CREATE TABLE deltalog.`{path}` {definition.format(' BIGINT, '.join(names) + ' BIGINT')}"
            )
            inserted = f"deltalog.`{path}` ({', '.join(names)}) SELECT * FROM given"
            writes: dict[str, Callable[[], object]] = {
                "save": functools.partial(rows.write.format("deltalog").mode("append").save, path),
                "insert": functools.partial(spark.sql, f"INSERT INTO {inserted}"),
                "overwrite": functools.partial(spark.sql, f"INSERT OVERWRITE {inserted}"),
            }
            for kind, write in writes.items():
                write()  # Classes and their members are looked up once.
                found[f"{kind} {name}"] = messages.taken(write)
        return found

    try:
        few = counts(4)
        assert counts(40) == few
    finally:
        spark.catalog.dropTempView("given")
    assert max(few.values()) <= 13, few


def test_verbs_take_few_messages_whatever_the_number_of_values(
    spark: SparkSession, tmp_path: Path, messages: Messages
) -> None:
    """Methods take few messages. Compared with a SQL statement, there is one more message for each clause, and for
    each value that is not a string.
    """

    def counts(columns: int) -> dict[str, int]:
        path = f"{tmp_path}/{columns}"
        names = [f"c{number}" for number in range(columns)]
        rows = spark.range(100).selectExpr("id", *(f"id AS {name}" for name in names))
        rows.write.format("deltalog").option("delta.enableDeletionVectors", "true").save(path)
        table = DeltaTable.forPath(spark, path)
        source = spark.range(95, 105).selectExpr("id", *(f"-id AS {name}" for name in names))
        aliased = table.alias("t"), source.alias("s")
        values = dict.fromkeys(names, "7")

        def merge(number: int) -> object:
            merging = aliased[0].merge(aliased[1], f"t.id = s.id AND s.id >= 90 + {number}")
            matched = merging.whenMatchedUpdate(f"t.id > {number}", values)
            return matched.whenNotMatchedInsertAll(f"s.id = 100 + {number}").execute()

        verbs: dict[str, Callable[[int], object]] = {
            "delete": lambda number: table.delete(f"id = {number}"),
            "update": lambda number: table.update(f"id = {number} + 10", values),
            "update by a column": lambda number: table.update(sf.col("id") == number + 20, {"id": sf.lit(0)}),
            "merge": merge,
        }
        found = {}
        for name, verb in verbs.items():
            verb(1)  # Classes and their members are looked up once.
            found[name] = messages.taken(functools.partial(verb, 2))
        return found

    few = counts(2)
    assert counts(20) == few
    assert few["delete"] <= 16, few
    assert few["update"] <= 16, few
    assert few["merge"] <= 20, few


@pytest.mark.newest
def test_enabling_takes_at_most_sixty_messages() -> None:
    done = run_python(
        """
        from py4j.clientserver import JavaClient
        from pyspark.sql import SparkSession
        import deltalog.spark
        spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
        spark.sql("SELECT 1").collect()
        sent, send = [], JavaClient.send_command

        def recorded(self, command, *arguments, **options):
            if not command.startswith("m\\n"):
                sent.append(command.replace("\\n", " "))
            return send(self, command, *arguments, **options)

        JavaClient.send_command = recorded
        deltalog.spark.enable(spark)
        print(len(sent), sent)
        """
    )
    assert done.returncode == 0, done.stderr
    count, _, profile = done.stdout.partition(" ")
    assert int(count) <= 60, profile
