"""OPTIMIZE ZORDER BY orders rows by several columns. Protocol: "Add File and Remove File", "Per-file Statistics"."""

from __future__ import annotations

import math
import random
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from threading import Thread
from typing import Any

import deltalake
import pyarrow as pa
import pytest

from deltalog import CommitProperties, DeltaTable, InvalidArgumentError, write_deltalake

Row = dict[str, Any]


def seen(rows: pa.Table) -> list[str]:
    """Returns the rows as sorted strings, so that NaN equals NaN."""
    return sorted(repr(sorted(row.items())) for row in rows.to_pylist())


def of_deltalake(path: Path) -> list[str]:
    rows = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(str(path))).execute("select * from t")
    return seen(pa.table(rows))


def of_deltalog(table: DeltaTable, **options: Any) -> list[str]:
    return seen(pa.table(table.to_arrow(**options)))


def files_of(table: DeltaTable, condition: str) -> int:
    return int(pa.table(table.files(predicate=condition)).num_rows)


def size_of(table: DeltaTable) -> int:
    return int(sum(pa.table(table.files())["size"].to_pylist()))


def every_type(count: int, seed: int) -> pa.Table:
    """Returns rows in random order, with columns of every type, whose values may be null."""
    numbers = random.Random(seed)  # noqa: S311
    start = datetime(2026, 11, 24, tzinfo=timezone.utc)

    def row() -> Row:
        whole = numbers.randrange(-100, 100)
        values: Row = {
            "boolean": whole % 2 == 0,
            "byte": whole,
            "short": whole * 300,
            "int": whole * 20_000_000,
            "long": whole * 2**55,
            "float": numbers.choice([math.nan, math.inf, -math.inf, 0.0, -0.0, whole / 8]),
            "double": numbers.choice([math.nan, math.inf, -math.inf, 0.0, -0.0, whole / 3]),
            "decimal": Decimal(whole) * Decimal("12345678901234567890.12"),
            "string": numbers.choice(["", "é", "x" * 40 + str(whole), "text %" + str(whole)]),
            "binary": bytes([abs(whole), 0, 255]),
            "date": date(1970, 1, 1) + timedelta(days=whole * 400),
            "timestamp": start + timedelta(microseconds=whole * 10**13),
            "timestamp_ntz": (start + timedelta(seconds=whole)).replace(tzinfo=None),
            "struct": {"inner": whole, "odd.name": str(whole)},
            "list": [whole, None] if whole % 3 else [],
            "map": [(str(whole), whole)],
        }
        return {name: None if numbers.random() < 0.1 else value for name, value in values.items()}

    schema = pa.schema(
        [
            ("boolean", pa.bool_()),
            ("byte", pa.int8()),
            ("short", pa.int16()),
            ("int", pa.int32()),
            ("long", pa.int64()),
            ("float", pa.float32()),
            ("double", pa.float64()),
            ("decimal", pa.decimal128(38, 2)),
            ("string", pa.string()),
            ("binary", pa.binary()),
            ("date", pa.date32()),
            ("timestamp", pa.timestamp("us", "UTC")),
            ("timestamp_ntz", pa.timestamp("us")),
            ("struct", pa.struct([("inner", pa.int64()), ("odd.name", pa.string())])),
            ("list", pa.list_(pa.int64())),
            ("map", pa.map_(pa.string(), pa.int64())),
        ]
    )
    return pa.Table.from_pylist([row() for _ in range(count)], schema=schema)


ORDERABLE = [
    "byte",
    "short",
    "int",
    "long",
    "float",
    "double",
    "decimal",
    "string",
    "date",
    "timestamp",
    "timestamp_ntz",
    "struct.inner",
    "struct.`odd.name`",
]


@pytest.mark.parametrize("mode", ["none", "name"])
def test_rows_of_every_type_stay_the_same(tmp_path: Path, mode: str) -> None:
    """Rows, ids and commit versions do not change. Protocol: "Column Mapping", "Row Tracking", "Deletion Vectors"."""
    path = tmp_path / "t"
    configuration = {
        "delta.enableDeletionVectors": "true",
        "delta.enableRowTracking": "true",
        "delta.enableChangeDataFeed": "true",
        "delta.columnMapping.mode": mode,
    }
    for seed in range(3):
        options: Row = {"configuration": configuration} if seed == 0 else {}
        write_deltalake(str(path), every_type(200, seed), mode="append", **options)
    table = DeltaTable(str(path))
    table.delete("int % 7 = 3 or byte = 5")
    before, version = of_deltalog(table, row_ids=True), table.version()
    assert 300 < len(before) < 600
    for columns in (ORDERABLE, ["double"], ["float", "string"], ["decimal", "timestamp", "struct.inner"]):
        metrics = table.optimize.z_order(columns, target_size=size_of(table) // 6)
        assert metrics["numFilesAdded"] >= 6, metrics
        assert of_deltalog(table, row_ids=True) == before, columns
    if mode == "none":
        assert of_deltalake(path) == of_deltalog(table)
    assert pa.table(table.load_cdf(version + 1, table.version())).num_rows == 0


def test_partitions_are_ordered_each(tmp_path: Path) -> None:
    path = tmp_path / "t"
    rows = pa.table(
        {
            "a": [number * 7919 % 1000 for number in range(1000)],
            "part": [["a", None, "x=/ %ü"][number % 3] for number in range(1000)],
        }
    )
    write_deltalake(str(path), rows, partition_by=["part"])
    table = DeltaTable(str(path))
    before = of_deltalog(table)
    one = table.optimize.z_order("a", "part = 'a'", size_of(table) // 3 // 4)
    assert (one["numFilesRemoved"], one["partitionsOptimized"]) == (1, 1)
    assert 4 <= files_of(table, "part = 'a'") <= 5
    assert files_of(table, "part IS NULL") == 1
    assert files_of(table, "part = 'a' and a = 500") == 1
    others = table.optimize.z_order(["a"], [("part", "!=", "a")])
    assert (others["numFilesAdded"], others["numFilesRemoved"]) == (1, 1)
    assert of_deltalog(table) == before == of_deltalake(path)


def test_each_column_skips_files(tmp_path: Path) -> None:
    numbers = random.Random(5)  # noqa: S311
    columns: Row = {name: [numbers.randrange(10**6) for _ in range(20_000)] for name in ("a", "b")}
    columns["text"] = [f"{numbers.randrange(10**6):06}" for _ in range(20_000)]
    write_deltalake(str(tmp_path / "t"), pa.table(columns))
    table = DeltaTable(str(tmp_path / "t"))
    skipped: dict[str, float] = {}
    for curve in ("hilbert", "ZORDER"):
        table.optimize.z_order(list(columns), target_size=-(-size_of(table) // 64), curve=curve)  # type: ignore[arg-type]
        count = len(table.file_uris())
        assert 63 <= count <= 66
        for column, value in (("a", "500000"), ("b", "250000"), ("text", "'750000'")):
            skipped[f"{curve} {column}"] = 1 - files_of(table, f"{column} = {value}") / count
    assert min(skipped.values()) > 0.45, skipped


def test_what_is_recorded(tmp_path: Path) -> None:
    path = tmp_path / "t"
    for number in range(2):
        write_deltalake(str(path), pa.table({"a": [number], "s": [{"b": number}]}), mode="append")
    table = DeltaTable(str(path))
    planned = table.optimize.z_order(["a", "s.b"], dry_run=True)
    assert (planned["numFilesAdded"], planned["numFilesRemoved"], table.version()) == (1, 2, 1)
    size = size_of(table)
    metrics = table.optimize.z_order(
        ["a", "s.b"], commit_properties=CommitProperties(custom_metadata={"by": "me"})
    )
    newest = table.history(1)[0]
    assert (newest["operation"], newest["by"]) == ("OPTIMIZE", "me")
    assert newest["operationParameters"]["zOrderBy"] == '["a","s.b"]'
    assert metrics["preserveInsertionOrder"] is False
    assert metrics["zOrderStats"] == {
        "strategyName": "all",
        "inputCubeFiles": {"num": 0, "size": 0},
        "inputOtherFiles": {"num": 2, "size": size},
        "inputNumCubes": 0,
        "mergedFiles": {"num": 2, "size": size},
        "numOutputCubes": 1,
        "mergedNumCubes": None,
    }
    compacted = table.optimize.compact()
    assert (compacted["zOrderStats"], compacted["preserveInsertionOrder"]) == (None, True)


def test_what_cannot_be_ordered(tmp_path: Path) -> None:
    path = tmp_path / "t"
    write_deltalake(
        str(path),
        pa.table({"a": [1], "bytes": [b"x"], "list": [[1]], "s": [{"b": 1}], "yes": [True], "p": ["x"]}),
        partition_by=["p"],
        configuration={"delta.dataSkippingNumIndexedCols": "4"},
    )
    table = DeltaTable(str(path))
    for columns, message, hint in (
        (["none"], "by 'none': it has no such column", "the columns are a, bytes, list, s, yes, p"),
        (["p"], "'p', which is a partition column", "differ within a partition"),
        (["a", "a"], "ordered by 'a' twice", "once"),
        (["bytes"], "'bytes', whose type has no bounds", "numbers, strings, dates or timestamps"),
        (["list"], "'list', whose type has no bounds", "numbers, strings, dates or timestamps"),
        (["s"], "'s', whose type has no bounds", "fields of structs"),
        (["yes"], "'yes', whose type has no bounds", "numbers"),
    ):
        with pytest.raises(InvalidArgumentError, match=message) as refused:
            table.optimize.z_order(columns)
        assert hint in str(refused.value.hint)
    with pytest.raises(InvalidArgumentError, match="columns that are not partition columns"):
        table.optimize.z_order("a", "a > 3")
    table.alter.set_table_properties({"delta.dataSkippingNumIndexedCols": "0"})
    with pytest.raises(InvalidArgumentError, match="'a', which has no statistics") as refused:
        table.optimize.z_order("a")
    assert "delta.dataSkippingNumIndexedCols" in str(refused.value.hint)
    for wrong in ([], [1], [None], ["a", 1]):
        with pytest.raises(InvalidArgumentError, match="name"):
            table.optimize.z_order(wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="curve cannot be 'peano'"):
        table.optimize.z_order("a", curve="peano")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="curve cannot be"):
        table.optimize.z_order("a", curve=1)  # type: ignore[arg-type]
    assert table.version() == 1


def test_statements_run_concurrently(tmp_path: Path) -> None:
    """While rows are ordered, appends and deletes in another thread neither fail nor are lost, whether or not the
    ordering is committed.
    """
    path = tmp_path / "t"
    for start in range(0, 200, 10):
        options: Row = {"configuration": {"delta.enableDeletionVectors": "true"}} if start == 0 else {}
        rows = pa.table(
            {"id": list(range(start, start + 10)), "a": [number * 37 % 101 for number in range(10)]}
        )
        write_deltalake(str(path), rows, mode="append", **options)
    failures: list[BaseException] = []

    def others() -> None:
        try:
            for at in range(0, 200, 10):
                write_deltalake(str(path), pa.table({"id": [1000 + at], "a": [at]}), mode="append")
                other = DeltaTable(str(path))
                while True:
                    try:
                        other.delete(f"id = {at + 3}")
                        break
                    except Exception as error:
                        # The statement failed because its rows have just been moved.
                        if getattr(error, "reason", None) not in (
                            "concurrent_delete_read",
                            "concurrent_delete_delete",
                        ):
                            raise
                        other.update_incremental()
        except BaseException as error:  # noqa: BLE001 - the other thread raises it
            failures.append(error)

    thread = Thread(target=others)
    thread.start()
    while thread.is_alive():
        table = DeltaTable(str(path))
        table.optimize.z_order(["a", "id"], target_size=max(size_of(table) // 4, 1))
    thread.join()
    assert not failures
    expected = {number for number in range(200) if number % 10 != 3} | {1000 + at for at in range(0, 200, 10)}
    found = pa.table(DeltaTable(str(path)).to_arrow())["id"].to_pylist()
    assert (len(found), set(found)) == (len(expected), expected)
