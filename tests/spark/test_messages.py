"""How much Python and the JVM talk: each message is a round trip between two processes.

Messages in both directions count, apart from those by which Python releases objects, and those of PySpark itself are
among them.
"""

import functools
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from py4j.clientserver import JavaClient
from pyspark.sql import SparkSession

from deltalog.spark.bridge import Bridge


class Message(NamedTuple):
    """A message, and the line of Python that sends or receives it."""

    is_call_of_python: bool
    text: str
    place: str

    def __str__(self) -> str:
        direction = "JVM → Python" if self.is_call_of_python else "Python → JVM"
        return f"{direction}  {self.text}  {self.place}"


class Messages(list[Message]):
    """The messages since the last count."""

    def count(self, execute: Callable[[], object]) -> int:  # type: ignore[override]
        """Returns how many messages something takes."""
        self.clear()
        execute()
        return len(self)

    @property
    def profile(self) -> str:
        """The messages as text, one a line."""
        return "\n".join(map(str, self))


def _place() -> str:
    frames = [frame for frame in traceback.extract_stack() if "/py4j/" not in frame.filename]
    own = [frame for frame in frames if "/deltalog/" in frame.filename and "/jvm/gateway" not in frame.filename]
    last = (own or frames[:-2])[-1]
    return f"{Path(last.filename).name}:{last.lineno}: {last.line}"


@pytest.fixture
def messages(monkeypatch: pytest.MonkeyPatch) -> Iterator[Messages]:
    """Records the messages."""
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


# What the statements find in the table, for whose rows Spark reads and writes files.
_TABLES = {
    "with vectors": "USING deltalog TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
    "without vectors": "USING deltalog TBLPROPERTIES ('delta.enableDeletionVectors' = 'false')",
    "with everything": "USING deltalog PARTITIONED BY (p) TBLPROPERTIES ('delta.enableDeletionVectors' = 'false', "
    "'delta.enableChangeDataFeed' = 'true', 'delta.columnMapping.mode' = 'name', "
    "'delta.constraints.positive' = 'id >= 0')",
}

# The messages of each kind of statement, those of PySpark among them: at most 20. They are the same for every table
# but where files are written again, which takes a job more.
_STATEMENTS = {
    "SELECT": ("SELECT max(v) FROM {table} WHERE id > {row}", 15),
    "INSERT VALUES": ("INSERT INTO {table} (id, p, v) VALUES ({new}, 0, 'a')", 13),
    "INSERT SELECT": ("INSERT INTO {table} (id, p, v) SELECT {new}, 0, v FROM {table} WHERE id = {row}", 14),
    "DELETE": ("DELETE FROM {table} WHERE id = {row}", 15),
    "UPDATE": ("UPDATE {table} SET v = 'u' WHERE id = {row}", 15),
    "UPDATE with a subquery": ("UPDATE {table} SET v = 'u' WHERE id IN (SELECT {row})", 15),
    "MERGE": (
        "MERGE INTO {table} t USING (SELECT explode(array({row}, {new})) AS id) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET v = 'm' WHEN NOT MATCHED THEN INSERT (id, p, v) VALUES (s.id, 0, 'm')",
        18,
    ),
    "MERGE with all clauses": (
        "MERGE INTO {table} t USING (SELECT explode(array({row}, {new})) AS id) s ON t.id = s.id "
        "WHEN MATCHED AND t.p = 5 THEN DELETE WHEN MATCHED THEN UPDATE SET v = 'm' "
        "WHEN NOT MATCHED AND s.id = 5 THEN INSERT (id) VALUES (s.id) "
        "WHEN NOT MATCHED THEN INSERT (id, p, v) VALUES (s.id, 0, 'm') "
        "WHEN NOT MATCHED BY SOURCE AND t.p = 5 THEN DELETE "
        "WHEN NOT MATCHED BY SOURCE AND t.id = {row} + 100 THEN UPDATE SET v = 'b'",
        18,
    ),
}


def test_a_statement_takes_at_most_twenty_messages(
    spark: SparkSession, tmp_path: Path, messages: Messages
) -> None:
    found: dict[tuple[str, str], int] = {}
    profiles = []
    for name, definition in _TABLES.items():
        table = f"deltalog.`{tmp_path / name}`"
        columns = "id BIGINT, p BIGINT, v STRING"
        if name == "with everything":
            columns += ", twice BIGINT GENERATED ALWAYS AS (id * 2), number BIGINT GENERATED ALWAYS AS IDENTITY"
        spark.sql(f"CREATE TABLE {table} ({columns}) {definition}")
        spark.sql(f"INSERT INTO {table} (id, p, v) SELECT id, id % 2, 'x' FROM range(1000)")
        for number, (statement, (text, most)) in enumerate(_STATEMENTS.items()):

            def execute(row: int, text: str = text, table: str = table) -> None:
                answer = spark.sql(text.format(table=table, row=row, new=row + 2000))
                if text.startswith("SELECT"):
                    answer.collect()

            row = 200 + 10 * number
            execute(row)  # Classes and their members are looked up once.
            taken = messages.count(functools.partial(execute, row + 1))
            found[name, statement] = taken
            if taken > most:
                profiles.append(f"{statement}, {name}: {taken} instead of {most}\n{messages.profile}")
    print(found)
    assert not profiles, "\n\n".join(profiles)
