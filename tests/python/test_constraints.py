"""Rows that break a rule of the table are refused (PROTOCOL, "CHECK Constraints", "Column Invariants", "Generated
Columns").
"""

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deltalog import DeltaTable, write_deltalake
from deltalog.errors import CommitConflictError, DeltaError, InvalidArgumentError
from tests.crafted import CraftedTable, field

INVARIANT = {"delta.invariants": '{"expression": {"expression": "length(name) > 1"}}'}
FIELDS = [
    field("id", "integer"),
    field("name", "string", INVARIANT),
    field("twice", "long", {"delta.generationExpression": "id * 2"}),
    field("at", "timestamp"),
    field("day", "date", {"delta.generationExpression": "CAST(at AS DATE)"}),
]
FEATURES = ["invariants", "checkConstraints", "generatedColumns", "appendOnly"]


def table(path: Path, **configuration: str) -> str:
    crafted = CraftedTable(
        path,
        FIELDS,
        partition_columns=["day"],
        writer_features=FEATURES,
        configuration={f"delta.constraints.{name}": sql for name, sql in configuration.items()},
    )
    crafted.commit()
    return str(path)


def data(**columns: Any) -> pa.Table:
    types = {"id": pa.int32(), "name": pa.string(), "twice": pa.int64(), "day": pa.date32()}
    types["at"] = pa.timestamp("us", "UTC")
    return pa.table({name: pa.array(values, types[name]) for name, values in columns.items()})


def test_generated_columns_are_computed_and_rows_checked(tmp_path: Path) -> None:
    uri = table(tmp_path / "t", positive="id > 0")
    at = [0, 86_400_000_000 - 1, 86_400_000_000]
    write_deltalake(uri, data(id=[1, 2, 3], name=["ab", "cd", "ef"], at=at), mode="append")
    found = pa.table(DeltaTable(uri).to_arrow()).sort_by("id").to_pylist()
    assert [(row["id"], row["twice"], str(row["day"])) for row in found] == [
        (1, 2, "1970-01-01"),
        (2, 4, "1970-01-01"),
        (3, 6, "1970-01-02"),
    ]
    before = DeltaTable(uri).version(), sorted(path.name for path in tmp_path.rglob("*.parquet"))
    for rows, message in [
        (data(id=[1, 0], name=["ab", "cd"]), r"row 1 violates the constraint 'positive' \(id > 0\): id = 0"),
        (data(id=[1, None], name=["ab", "cd"]), r"row 1 violates the constraint 'positive'.*id = NULL"),
        (data(id=[1], name=["a"]), r"row 0 violates the constraint 'name' \(length\(name\) > 1\): name = a"),
        (data(id=[1]), "name = NULL"),
        (data(id=[1], name=["ab"], twice=[3]), "the generated column 'twice'.*twice = 3, id = 1"),
        (data(id=[1], name=["ab"], twice=[None]), "twice = NULL"),
        (data(id=[1], name=["ab"], day=[1]), "the generated column 'day'"),
        (data(id=[2**31 - 1], name=["ab"]), r"\(id \* 2\) has no value for 2147483647, 2"),
    ]:
        with pytest.raises(InvalidArgumentError, match=message):
            write_deltalake(uri, rows, mode="append")
    # A refused write leaves no files behind.
    after = DeltaTable(uri).version(), sorted(path.name for path in tmp_path.rglob("*.parquet"))
    assert after == before
    write_deltalake(uri, data(id=[7], name=["ab"], twice=[14], day=[None]), mode="append")
    assert DeltaTable(uri).count("twice = 14 AND day IS NULL") == 1


def test_a_table_with_an_expression_that_cannot_be_evaluated_is_not_written(tmp_path: Path) -> None:
    uri = table(tmp_path / "t", odd="soundex(name) = 'X'")
    with pytest.raises(InvalidArgumentError, match=r"the constraint 'odd'.*soundex") as caught:
        write_deltalake(uri, data(id=[1], name=["ab"]), mode="append")
    assert "Spark" in str(caught.value) + str(getattr(caught.value, "hint", ""))
    assert DeltaTable(uri).count() == 0


def test_an_overwrite_is_checked_too(tmp_path: Path) -> None:
    uri = table(tmp_path / "t", small="id < 10 OR name IS NULL")
    with pytest.raises(InvalidArgumentError, match="'small'"):
        write_deltalake(uri, data(id=[10], name=["ab"]), mode="overwrite")
    write_deltalake(uri, data(id=[9], name=["ab"]), mode="overwrite")
    assert DeltaTable(uri).count("twice = 18") == 1


def test_default_values_fill_missing_columns_and_lengths_are_kept(tmp_path: Path) -> None:
    """PROTOCOL, "Default Columns": a column without an explicit value gets its default value. NULL is an explicit
    value.
    """
    fields = [
        field("id", "integer"),
        {**field("name", "string", {"CURRENT_DEFAULT": "'no' || 'body'"}), "nullable": False},
        field("code", "string", {"__CHAR_VARCHAR_TYPE_STRING": "varchar(2)"}),
        field("flag", "string", {"__CHAR_VARCHAR_TYPE_STRING": "char(2)", "CURRENT_DEFAULT": "'n'"}),
    ]
    CraftedTable(tmp_path / "t", fields, writer_features=["allowColumnDefaults"]).commit()
    uri = str(tmp_path / "t")
    write_deltalake(uri, pa.table({"id": pa.array([1], pa.int32()), "code": ["ab "]}), mode="append")
    write_deltalake(uri, pa.table({"name": ["x"], "flag": pa.array([None], pa.string())}), mode="append")
    found = pa.table(DeltaTable(uri).to_arrow()).to_pylist()
    assert sorted(map(str, found)) == sorted(
        map(
            str,
            [
                {"id": 1, "name": "nobody", "code": "ab", "flag": "n "},
                {"id": None, "name": "x", "code": None, "flag": None},
            ],
        )
    )
    for rows, message in [
        ({"name": pa.array([None], pa.string())}, "'name' contains NULL"),
        ({"code": ["abc"]}, r"'code' has the type varchar\(2\)"),
        ({"flag": ["a c"]}, r"'flag' has the type char\(2\)"),
    ]:
        with pytest.raises(DeltaError, match=message):
            write_deltalake(uri, pa.table(rows), mode="append")
    assert DeltaTable(uri).version() == 2


def identity_table(path: Path, **entries: Any) -> str:
    metadata = {f"delta.identity.{name}": value for name, value in entries.items()}
    fields = [{**field("id", "long", metadata), "nullable": False}, field("name", "string")]
    CraftedTable(path, fields, writer_features=["identityColumns"]).commit()
    return str(path)


def names(*values: str) -> pa.Table:
    return pa.table({"name": values})


def test_identity_columns_count_up_over_commits(tmp_path: Path) -> None:
    """PROTOCOL, "Identity Columns": values are start + k * step and continue after the high water mark, which the
    commit updates.
    """
    uri = identity_table(tmp_path / "t", start=10, step=-5, allowExplicitInsert=False)
    reader = pa.RecordBatchReader.from_batches(
        names("a").schema, names("a", "b", "c").to_batches(max_chunksize=1)
    )
    write_deltalake(uri, reader, mode="append")
    write_deltalake(uri, names(), mode="append")
    write_deltalake(uri, names("d"), mode="append")
    table = DeltaTable(uri)
    found = pa.table(table.to_arrow()).sort_by("name").to_pylist()
    assert [(row["name"], row["id"]) for row in found] == [("a", 10), ("b", 5), ("c", 0), ("d", -5)]
    # The append changes the metadata, but still counts as a blind append, as in the JVM connector.
    assert [entry["isBlindAppend"] for entry in table.history()[:3]] == [True] * 3
    marks = [
        json.loads(actions["metaData"]["schemaString"])["fields"][0]["metadata"][
            "delta.identity.highWaterMark"
        ]
        for version in (1, 3)
        for line in (tmp_path / "t" / "_delta_log" / f"{version:020}.json").read_text().splitlines()
        if "metaData" in (actions := json.loads(line))
    ]
    assert marks == [0, -5]
    with pytest.raises(DeltaError, match="'id' are always generated"):
        write_deltalake(uri, pa.table({"id": [7], "name": ["e"]}), mode="append")


def test_two_writers_never_generate_the_same_value(tmp_path: Path) -> None:
    uri = identity_table(tmp_path / "t", start=1, step=1, allowExplicitInsert=True)
    stale = DeltaTable(uri)
    started = threading.Event()
    released = threading.Event()

    def slow() -> Iterator[pa.RecordBatch]:
        yield from names("a").to_batches()
        started.set()
        assert released.wait(60)
        yield from names("b").to_batches()

    def write() -> None:
        reader = pa.RecordBatchReader.from_batches(names("a").schema, slow())
        write_deltalake(uri, reader, mode="append")

    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(write)
        assert started.wait(60)
        write_deltalake(uri, names("x"), mode="append")
        released.set()
        with pytest.raises(CommitConflictError) as error:
            first.result()
    assert error.value.reason == "metadata_changed"
    # A writer that generates no values does not depend on the high water mark.
    write_deltalake(stale, pa.table({"id": [100], "name": ["y"]}), mode="append")
    write_deltalake(uri, names("z"), mode="append")
    found = pa.table(DeltaTable(uri).to_arrow()).to_pylist()
    assert sorted((row["name"], row["id"]) for row in found) == [("x", 1), ("y", 100), ("z", 2)]


def test_rules_see_empty_partition_values_as_they_are_stored(tmp_path: Path) -> None:
    """PROTOCOL, "Partition Value Serialization": in a partition column, an empty string is stored as NULL, for which
    no constraint is true.
    """
    CraftedTable(
        tmp_path / "t",
        [field("id", "integer"), field("p", "string")],
        partition_columns=["p"],
        writer_features=["checkConstraints"],
        configuration={"delta.constraints.c": "p <> 'x'"},
    ).commit()
    uri = str(tmp_path / "t")
    rows = {"id": pa.array([1], pa.int32())}
    write_deltalake(uri, pa.table({**rows, "p": ["y"]}), mode="append")
    with pytest.raises(InvalidArgumentError, match=r"the constraint 'c'.*p = NULL"):
        write_deltalake(uri, pa.table({**rows, "p": [""]}), mode="append")


def test_generated_columns_are_computed_from_values_as_they_are_stored(tmp_path: Path) -> None:
    fields = [
        field("c", "string", {"__CHAR_VARCHAR_TYPE_STRING": "char(4)"}),
        field("v", "string", {"__CHAR_VARCHAR_TYPE_STRING": "varchar(2)"}),
        field("p", "string"),
        field("g", "string", {"delta.generationExpression": "concat(c, '|', v)"}),
        field("n", "boolean", {"delta.generationExpression": "p IS NULL"}),
    ]
    CraftedTable(
        tmp_path / "t", fields, partition_columns=["p"], writer_features=["generatedColumns"]
    ).commit()
    write_deltalake(str(tmp_path / "t"), pa.table({"c": ["ab"], "v": ["x   "], "p": [""]}), mode="append")
    (row,) = pa.table(DeltaTable(str(tmp_path / "t")).to_arrow()).to_pylist()
    assert row == {"c": "ab  ", "v": "x ", "p": None, "g": "ab  |x ", "n": True}
