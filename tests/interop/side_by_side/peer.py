"""A process with a Spark session for one engine, which runs cases and reports their results.

    python -m tests.interop.side_by_side.peer connector JARS…
    python -m tests.interop.side_by_side.peer deltalog

Standard input has one case per line: `{"directory": PATH, "database": NAME, "statements": TEXTS}`. Standard output has
one answer per line: an object with the results to compare, by the names of the aspects. Output of Spark goes to
standard error.
"""

from __future__ import annotations

import ast
import importlib
import json
import os
import sys
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession, functions, types

from tests.interop.jvm_peer import builder, with_connector
from tests.interop.side_by_side.cases import PYTHON
from tests.interop.side_by_side.observed import Texts, columns_text, log_state


def connector_session(jars: list[str]) -> tuple[SparkSession, Any]:
    # The connector's jar also contains its Python API.
    sys.path.extend(jar for jar in jars if "delta-spark" in jar)
    table_class = importlib.import_module("delta.tables").DeltaTable

    return with_connector(builder(), jars).getOrCreate(), table_class


def deltalog_session() -> tuple[SparkSession, Any]:
    import deltalog.spark
    from deltalog.tables import DeltaTable

    return deltalog.spark.enable(builder().getOrCreate(), alias_delta=True), DeltaTable


class Engine:
    """Runs cases with one engine, each case in its own database."""

    def __init__(self, spark: SparkSession, table_class: Any) -> None:
        self._spark = spark
        self._table_class = table_class

    def run(self, directory: Path, database: str, statements: list[str]) -> dict[str, str]:
        self._spark.sql(f"CREATE DATABASE {database} LOCATION '{directory}/tables'")
        self._spark.sql(f"USE {database}")
        names = {
            "spark": self._spark,
            "DeltaTable": self._table_class,
            "F": functions,
            "T": types,
            "dir": str(directory),
        }
        texts = Texts(directory, database)
        settings = dict(self._spark.conf.getAll)
        try:
            *before, last = [statement.replace("{dir}", str(directory)) for statement in statements]
            for statement in before:
                self._execute(statement, names)
            return self._last(last, names, texts) | self._tables(directory, texts)
        finally:
            self._spark.sql("USE default")
            for name in set(self._spark.conf.getAll) - set(settings):
                self._spark.conf.unset(name)
            for name, value in settings.items():
                if self._spark.conf.get(name) != value:
                    self._spark.conf.set(name, value)

    def _last(self, statement: str, names: dict[str, Any], texts: Texts) -> dict[str, str]:
        try:
            result = self._execute(statement, names)
            if isinstance(result, DataFrame):
                return {"outcome": "done", "result": texts.rows(result)}
        except Exception as error:  # noqa: BLE001 (compared with the other engine's)
            return {"outcome": "refused", "error": error_name(error), "message": str(error)}
        else:
            return {"outcome": "done", "result": "" if result is None else texts.clean(repr(result))}

    def _execute(self, statement: str, names: dict[str, Any]) -> Any:
        if not statement.startswith(PYTHON):
            return self._spark.sql(statement)
        text = statement.removeprefix(PYTHON)
        if isinstance(ast.parse(text).body[-1], ast.Expr):
            return eval(text, names)  # noqa: S307 (the table is ours)
        exec(text, names)  # noqa: S102 (the table is ours)
        return None

    def _tables(self, directory: Path, texts: Texts) -> dict[str, str]:
        """Returns the content of all tables below the directory of the case."""
        found: dict[str, str] = {}
        for log in sorted(directory.rglob("_delta_log")):
            name, state = log.parent.name, log_state(log)
            found |= {f"{name} {aspect}": text for aspect, text in state.items()}
            if state:
                found |= self._content(log.parent, texts)
        return found

    def _content(self, path: Path, texts: Texts) -> dict[str, str]:
        name, error = path.name, None
        # A clone may use files of its source, so reading it by path must allow the source's directory.
        for read in (self._spark.read.format("delta").load, self._spark.table):
            try:
                frame = read(name if error else str(path))
                return {f"{name} columns": columns_text(frame.schema), f"{name} rows": texts.rows(frame)}
            except Exception as raised:  # noqa: BLE001 (compared with the other engine's)
                error = error or raised
        return {f"{name} rows": error_name(error)}


def error_name(error: Exception | None) -> str:
    condition = error.getCondition() if isinstance(error, PySparkException) else None
    state = error.getSqlState() if isinstance(error, PySparkException) else None
    return " ".join(filter(None, (condition or type(error).__name__, state)))


def main(kind: str, jars: list[str]) -> None:
    # Standard output must contain only answers.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    engine = Engine(*(connector_session(jars) if kind == "connector" else deltalog_session()))
    for line in sys.stdin:
        case = json.loads(line)
        directory = Path(case["directory"])
        directory.mkdir(parents=True)
        try:
            answer = engine.run(directory, case["database"], case["statements"])
        except Exception as error:  # noqa: BLE001 (the test fails with it)
            answer = {"set-up": f"{error_name(error)}: {error}"}
        answers.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
