"""An environment variable limits the memory of expressions. A process reads it only once, so the test starts new
ones.
"""

import os
import subprocess
import sys

import pytest

SCRIPT = """
import pyarrow as pa
from deltalog import _internal
from deltalog.errors import InvalidArgumentError
rows = pa.table({"s": ["s"]})
try:
    print(pa.table(_internal.evaluate(rows, "repeat(s, 2000)", "UTC"))["value"][0].as_py() == "s" * 2000)
except InvalidArgumentError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("1MiB", "True"),
        ("1000", "the values of an expression may have at most 1000 bytes at once"),
        ("much", "the variable DELTALOG_EXPRESSION_BYTES is not a size: 'much'"),
    ],
)
def test_the_limit_can_be_set(value: str, expected: str) -> None:
    variables = {**os.environ, "DELTALOG_EXPRESSION_BYTES": value}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=variables, capture_output=True, text=True, check=True
    )
    assert expected in done.stdout
