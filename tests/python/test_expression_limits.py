"""Short expressions with huge trees or huge values stay within limits, in every place where a user or the log can have
an expression.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deltalog import DeltaTable, write_deltalake
from deltalog.errors import InvalidArgumentError
from tests.crafted import CraftedTable, field


def nested(kind: str, inner: str, levels: int) -> str:
    for _ in range(levels):
        inner = kind.replace("{}", inner)
    return inner


# Each level uses its operand twice. If operands were copied, there would be 2^28 copies.
SHARED = [
    nested("nullif({}, -1)", "id", 28),
    nested("CASE {} WHEN -1 THEN 0 WHEN -2 THEN 1 ELSE id END", "id", 28),
    nested("if({} BETWEEN -9 AND 9, id, 0)", "id", 28),
    nested("if({} <=> id, id, 0)", "id", 28),
]
GROWN = nested(f"replace({{}}, 'a', '{'a' * 1000}')", "concat('a', {})", 6)
WIDE = "repeat(repeat('x', 30000), 30000)"
FEATURES = ["checkConstraints", "generatedColumns", "allowColumnDefaults", "appendOnly", "invariants"]


def table(path: Path, metadata: dict[str, str] | None = None, check: str | None = None) -> DeltaTable:
    fields = [field("id", "long"), field("x", "string", metadata)]
    configuration = {"delta.constraints.c": check} if check else {}
    CraftedTable(path, fields, writer_features=FEATURES, configuration=configuration).commit()
    return DeltaTable(path)


def check(path: Path, sql: str) -> Any:
    rows = pa.table({"id": [1, 2], "x": ["a", "b"]})
    write_deltalake(table(path, check=f"length(CAST({sql} AS STRING)) > 0"), rows, mode="append")


def default(path: Path, sql: str) -> Any:
    write_deltalake(
        table(path, {"CURRENT_DEFAULT": f"CAST({sql} AS STRING)"}), pa.table({"id": [1, 2]}), mode="append"
    )


def generated(path: Path, sql: str) -> Any:
    made = table(path, {"delta.generationExpression": f"CAST({sql} AS STRING)"})
    write_deltalake(made, pa.table({"id": [1, 2]}), mode="append")


def filtered(path: Path, sql: str) -> Any:
    write_deltalake(path, pa.table({"id": [1, 2]}))
    return pa.table(DeltaTable(path).to_arrow(predicate=f"length(CAST({sql} AS STRING)) > 0"))


PLACES = [check, default, generated, filtered]


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
def test_operands_are_shared(tmp_path: Path, place: Callable[[Path, str], Any]) -> None:
    for number, sql in enumerate(SHARED):
        sql = sql.replace("id", "1L") if place is default else sql
        place(tmp_path / str(number), sql)
        assert pa.table(DeltaTable(tmp_path / str(number)).to_arrow()).num_rows == 2


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
def test_values_have_a_limit(tmp_path: Path, place: Callable[[Path, str], Any]) -> None:
    text = "'b'" if place is default else "CAST(id AS STRING)"
    for number, (sql, function) in enumerate([(GROWN.replace("{}", text), "replace"), (WIDE, "repeat")]):
        with pytest.raises(
            InvalidArgumentError,
            match=rf"the values of {function} have \d+ bytes.* may have at most 134217728",
        ):
            place(tmp_path / str(number), sql)
