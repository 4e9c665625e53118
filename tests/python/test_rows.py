"""Compares filters of `to_arrow` with pyarrow's own filters, for random tables and predicates."""

from __future__ import annotations

import tempfile
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import deltalog
from deltalog import DeltaTable, write_deltalake
from tests.golden.canonical import rows

# A few similar values, so that comparisons are true about half of the time.
VALUES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "i": (pa.int32(), st.integers(-3, 3)),
    "f": (pa.float64(), st.sampled_from([-1.5, -0.0, 0.0, 2.0, float("inf"), float("nan")])),
    "t": (pa.string(), st.sampled_from(["", "a", "ab", "b", "\u00e9", "it's"])),
    "b": (pa.bool_(), st.booleans()),
    "p": (pa.string(), st.sampled_from(["", "x", "y z", "%2F/"])),
}
COMPARISONS = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}

# A condition as SQL and as a pyarrow expression.
Pair = tuple[str, pc.Expression]


def literal(value: Any) -> str:
    return (
        str(value).upper()
        if isinstance(value, bool)
        else "'" + value.replace("'", "''") + "'"
        if isinstance(value, str)
        else repr(value)
    )


@st.composite
def leaves(draw: st.DrawFn) -> Pair:
    # In SQL, NaN is greater than all other values; in pyarrow, it is unordered. Neither distinguishes 0.0 and -0.0.
    # See test_nan.
    name = draw(st.sampled_from(["i", "t", "b", "p"]))
    field = pc.field(name)
    kind = draw(st.sampled_from(["compare", "null", "not null", "in"]))
    if kind == "null":
        return f"{name} IS NULL", field.is_null()
    if kind == "not null":
        return f"{name} IS NOT NULL", ~field.is_null()
    arrow, strategy = VALUES[name]
    if kind == "in":
        values = draw(st.lists(strategy, min_size=1, max_size=3))
        # In SQL, NULL IN (…) is NULL, but pyarrow's `isin` returns false.
        is_in = pc.if_else(field.is_null(), pa.scalar(None, pa.bool_()), field.isin(pa.array(values, arrow)))
        return f"{name} IN ({', '.join(map(literal, values))})", is_in
    operator = draw(st.sampled_from(sorted(COMPARISONS)))
    value = draw(strategy)
    compare = COMPARISONS[operator](field, pa.scalar(value, arrow))
    return f"{name} {operator} {literal(value)}", compare


def combined(inner: st.SearchStrategy[Pair]) -> st.SearchStrategy[Pair]:
    return st.one_of(
        st.tuples(inner, inner).map(
            lambda both: (f"({both[0][0]} AND {both[1][0]})", both[0][1] & both[1][1])
        ),
        st.tuples(inner, inner).map(
            lambda both: (f"({both[0][0]} OR {both[1][0]})", both[0][1] | both[1][1])
        ),
        inner.map(lambda one: (f"NOT ({one[0]})", ~one[1])),
    )


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    length = draw(st.integers(1, 12))
    column = {
        name: st.lists(st.none() | values, min_size=length, max_size=length)
        for name, (_, values) in VALUES.items()
    }
    # '' in a partition column is NULL: protocol, "Partition Value Serialization".
    made = {name: draw(values) for name, values in column.items()}
    made["p"] = [value or None for value in made["p"]]
    return pa.table({name: pa.array(made[name], arrow) for name, (arrow, _) in VALUES.items()})


@given(
    tables(),
    tables(),
    st.booleans(),
    st.recursive(leaves(), combined, max_leaves=5),
    st.permutations(sorted(VALUES)),
    st.integers(0, 5),
)
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
def test_rows_match_the_filter_of_pyarrow(
    first: pa.Table, second: pa.Table, partitioned: bool, predicate: Pair, order: list[str], count: int
) -> None:
    sql, expression = predicate
    with tempfile.TemporaryDirectory() as path:
        for data in (first, second):
            write_deltalake(path, data, mode="append", partition_by=["p"] if partitioned else None)
        table = DeltaTable(path)
        wanted = pa.concat_tables([first, second]).filter(expression)
        assert rows(pa.table(table.to_arrow(predicate=sql))) == rows(wanted), sql
        chosen = pa.table(table.to_arrow(order[:count], sql))
        assert chosen.schema.names == order[:count]
        assert chosen.num_rows == wanted.num_rows
        assert rows(chosen) == rows(wanted.select(order[:count]))


def test_nan(tmp_path: Any) -> None:
    """NaN has Spark's order: it equals itself and is greater than everything."""
    values = [float("nan"), float("inf"), 0.0, -0.0, -1.0, None]
    write_deltalake(tmp_path, pa.table({"f": values}))
    table = DeltaTable(tmp_path)

    def found(predicate: str) -> list[str]:
        return [repr(value) for value in pa.table(table.to_arrow(predicate=predicate))["f"].to_pylist()]

    assert found("f > 1.0") == ["nan", "inf"]
    assert found("f = 0.0") == ["0.0", "-0.0"]
    assert found("f <= 0.0") == ["0.0", "-0.0", "-1.0"]
    assert found("f IS NULL") == ["None"]


def test_names_of_columns(tmp_path: Any) -> None:
    write_deltalake(
        tmp_path,
        pa.table({"Id": [1, 2], "select": ["a", "b"], "a.b": [1.0, 2.0], "\u00e9`\U0001f600": [True, None]}),
    )
    table = DeltaTable(tmp_path)
    assert pa.table(table.to_arrow(["select"], "id = 2"))["select"].to_pylist() == ["b"]
    assert pa.table(table.to_arrow(["Id"], "`select` = 'a' AND `a.b` = 1"))["Id"].to_pylist() == [1]
    assert pa.table(table.to_arrow(["Id"], "`\u00e9``\U0001f600`"))["Id"].to_pylist() == [1]
    assert pa.table(table.to_arrow(["id"])).num_rows == 2
    for columns in (["nothing"], ["Id", "Id"], ["Id", "id"]):
        with pytest.raises(deltalog.InvalidArgumentError, match=columns[-1]):
            table.to_arrow(columns)


def test_no_columns_give_a_row_count(tmp_path: Any) -> None:
    write_deltalake(tmp_path, pa.table({"a": [1, 2, 3]}))
    reader = pa.RecordBatchReader.from_stream(DeltaTable(tmp_path).to_arrow([], "a > 1"))
    assert sum(batch.num_rows for batch in reader) == 2


def test_a_stream_can_be_consumed_once(tmp_path: Any) -> None:
    write_deltalake(tmp_path, pa.table({"a": [1]}))
    stream = DeltaTable(tmp_path).to_arrow()
    assert pa.schema(stream).names == ["a"]
    assert repr(stream) == "ArrowStream(a: Int64): pass it once to pyarrow.table, polars.DataFrame or similar"
    assert pa.table(stream).num_rows == 1
    with pytest.raises(ValueError, match="already read"):
        pa.table(stream)
    assert pa.schema(stream).names == ["a"]
