"""The process in which a contender runs: `python -m benches.worker`.

Standard input has one request per line: `{"contender": MODULE, "operation": FUNCTION, "arguments": {…}}`.
Standard output has one answer per line: `{"laps": …, "answer": …, "idle_bytes": …, "versions": …}` or
`{"error": …}`. Tracebacks and the output of libraries go to standard error.

The process ends when its input ends: after one request if each measurement needs a new process, or after many requests
for a Spark session.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import traceback
from importlib import import_module
from importlib.metadata import distributions
from typing import Any

from benches.watch import Watch, peak_bytes

PACKAGES = (
    "datafusion",
    "deltalake",
    "deltalog",
    "deltalog-datafusion",
    "duckdb",
    "polars",
    "pyarrow",
    "pyspark",
)


def versions() -> dict[str, str]:
    found = {
        name.lower(): each.version
        for each in distributions()
        if (name := each.metadata["Name"]) and name.lower() in PACKAGES
    }
    return {"python": platform.python_version(), **dict(sorted(found.items()))}


def carry_out(contender: str, operation: str, arguments: dict[str, Any]) -> dict[str, Any]:
    function = getattr(import_module(contender), operation)
    watch, idle = Watch(), peak_bytes()
    answer = function(watch, **arguments)
    return {"laps": watch.laps, "answer": answer, "idle_bytes": idle, "versions": versions()}


def main() -> None:
    # Answers are written to a separate descriptor, so that output of libraries cannot mix with them.
    with os.fdopen(os.dup(1), "w") as answers:
        os.dup2(2, 1)
        for line in sys.stdin:
            try:
                answer = carry_out(**json.loads(line))
            except Exception as error:  # noqa: BLE001 (the other side reports it)
                traceback.print_exc()
                answer = {"error": f"{type(error).__name__}: {error}"}
            answers.write(json.dumps(answer) + "\n")
            answers.flush()


if __name__ == "__main__":
    main()
