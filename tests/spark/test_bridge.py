"""The two sides of the bridge: Java's interfaces, the Python classes that implement them, and how much they talk."""

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from py4j.clientserver import JavaClient
from pyspark.sql import SparkSession

from deltalog.spark.bridge import ROLES, python_name
from deltalog.spark.bridge.role import Role
from deltalog.spark.jvm import Jvm


def methods(role: type[Role]) -> dict[str, int]:
    """Returns the public methods of a Python class, with their numbers of parameters."""
    found = inspect.getmembers(role, inspect.isfunction)
    return {
        name: len(inspect.signature(function).parameters) - 1
        for name, function in found
        if not name.startswith("_")
    }


def interfaces(jvm: Jvm) -> dict[str, Any]:
    """Returns the interfaces that Java's `Bridge` returns, by their names."""
    returned = [method.getReturnType() for method in jvm.class_of("Bridge").getMethods()]
    return {str(kind.getSimpleName()): kind for kind in returned if kind.isInterface()}


def test_each_role_has_a_java_interface(spark: SparkSession) -> None:
    found = interfaces(Jvm(spark.sparkContext._gateway))
    assert sorted(found) == sorted(role.__name__ for role in ROLES)


@pytest.mark.parametrize("role", ROLES)
def test_a_role_has_the_methods_of_its_interface(spark: SparkSession, role: type[Role]) -> None:
    declared = list(Jvm(spark.sparkContext._gateway).class_of(role.__name__).getMethods())
    names = [str(method.getName()) for method in declared]
    assert len(set(names)) == len(names), "Python cannot tell methods of one name apart"
    parameters = [int(method.getParameterCount()) for method in declared]
    assert dict(zip(map(python_name, names), parameters, strict=True)) == methods(role)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The messages that Python sends to the JVM, apart from those by which it releases objects."""
    messages: list[str] = []
    send = JavaClient.send_command

    def recorded(self: JavaClient, command: str, *arguments: Any, **options: Any) -> Any:
        if not command.startswith("m\n"):
            messages.append(command)
        return send(self, command, *arguments, **options)

    monkeypatch.setattr(JavaClient, "send_command", recorded)
    return messages


def test_relations_and_statements_take_few_messages(spark: SparkSession, path: str, sent: list[str]) -> None:
    """Each message is a round trip between two processes. The limits include those of PySpark itself."""
    rows = spark.range(100).selectExpr("id", "id % 2 AS p")
    writer = rows.write.format("deltalog").option("delta.enableDeletionVectors", "true")
    writer.partitionBy("p").save(path)

    def count(execute: Callable[[], object]) -> int:
        sent.clear()
        execute()
        return len(sent)

    def load() -> int:
        return count(lambda: spark.read.format("deltalog").load(path))

    def table() -> int:
        return count(lambda: spark.table(f"deltalog.`{path}`"))

    def delete(number: int) -> int:
        return count(lambda: spark.sql(f"DELETE FROM deltalog.`{path}` WHERE id = {number}"))

    load(), table(), delete(0)  # Classes and their members are looked up once.
    assert load() <= 5
    assert table() <= 3
    assert delete(1) <= 40


def test_writes_take_few_messages_whatever_the_number_of_columns(
    spark: SparkSession, tmp_path: Path, sent: list[str]
) -> None:
    """One table has nothing that a write must care for; the other one has partitions, names of its own in files, and
    rules of all kinds.
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
                sent.clear()
                write()
                found[f"{kind} {name}"] = len(sent)
        return found

    try:
        few = counts(4)
        assert counts(40) == few
    finally:
        spark.catalog.dropTempView("given")
    assert max(few.values()) <= 16, few
