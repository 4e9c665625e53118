"""Wrong statistics of other writers never make a filter miss a row, or make a statement remove or change a row without
reading it.

Protocol: "Per-file Statistics".
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from datetime import date, datetime, timezone
from decimal import Decimal, localcontext
from itertools import pairwise
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet
import pytest

from deltalog import CorruptDataError, DeltaTable, SchemaMismatchError, write_deltalake
from tests.interop.conftest import Jvm
from tests.python.place import actions

OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: a == b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "!=": lambda a, b: a != b,
}


def decimals(scale: int, *texts: str) -> list[Decimal]:
    """Returns the given decimals and their negatives."""
    with localcontext(prec=50):
        return [
            sign * Decimal(text).quantize(Decimal(1).scaleb(-scale)) for text in texts for sign in (1, -1)
        ]


UTC = timezone.utc
INSTANTS = [
    datetime(1, 1, 1, tzinfo=UTC),
    datetime(1582, 10, 4, 23, 59, 59, 999_999, tzinfo=UTC),
    datetime(1893, 3, 31, 23, 6, 32, tzinfo=UTC),
    datetime(1900, 1, 1, 0, 0, 0, 1_999, tzinfo=UTC),
    datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    datetime(2024, 3, 31, 1, 0, 0, 123_456, tzinfo=UTC),
    datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
]

# For each type, values at its limits, and values that are hard to represent in JSON.
POOLS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "b": (pa.int8(), [-128, -1, 0, 127]),
    "s": (pa.int16(), [-(2**15), 0, 2**15 - 1]),
    "i": (pa.int32(), [-(2**31), 0, 2**31 - 1]),
    "l": (pa.int64(), [-(2**63), -(2**53) - 1, 0, 2**53 + 1, 2**63 - 1]),
    "d9": (pa.decimal128(9, 2), decimals(2, "9999999.99", "0.01", "1234567.89")),
    "d18": (pa.decimal128(18, 0), decimals(0, "9" * 18, "1", "123456789012345678")),
    "d19": (pa.decimal128(19, 0), decimals(0, "9" * 19, str(2**63 - 1), str(2**63), str(2**63 + 1))),
    "d38": (pa.decimal128(38, 0), decimals(0, "9" * 38, str(2**63), "12345678901234567890123", "5")),
    "d38_2": (
        pa.decimal128(38, 2),
        decimals(2, "9" * 36 + ".99", "92233720368547758.07", "123456789012345678901.23", f"{2**63}.01"),
    ),
    "d38_37": (pa.decimal128(38, 37), decimals(37, "9." + "9" * 37, "1E-37", "0.1", "0.12345678901234567")),
    "f": (
        pa.float32(),
        [-math.inf, -3.4028234663852886e38, -0.0, 1.401298464324817e-45, 1.5, math.inf, math.nan],
    ),
    "g": (pa.float64(), [-math.inf, -1e308, -0.0, 5e-324, 0.1, 1e16, math.inf, math.nan]),
    "day": (pa.date32(), [date(1, 1, 1), date(1582, 10, 4), date(1970, 1, 1), date(9999, 12, 31)]),
    "t": (pa.timestamp("us", "UTC"), INSTANTS),
    "n": (pa.timestamp("us"), [instant.replace(tzinfo=None) for instant in INSTANTS]),
    "text": (
        pa.string(),
        ["", "a" * 31 + "\u007f" * 3, "a" * 40, "a" * 40 + "b", "\uffff" * 33, "\U0010ffff" * 33, "é" * 32],
    ),
}


def key(value: Any) -> tuple[bool, Any]:
    """Returns a key that sorts values as Spark does."""
    if isinstance(value, float) and math.isnan(value):
        return (True, 0)
    return (False, value)


def pairs(name: str) -> list[tuple[Any, Any]]:
    """Returns the values of a column as one pair of values per file."""
    values = sorted(POOLS[name][1], key=key)
    several = list(pairwise(values))
    longest = max(len(values) for _, values in POOLS.values())
    return [several[number % len(several)] for number in range(longest)]


def edges() -> list[pa.Table]:
    """Returns one Arrow table per file. Each file has two rows: in each column, these are a value and the next greater
    value. Together, the files contain all values in `POOLS`.
    """
    files = zip(*(pairs(name) for name in POOLS), strict=True)
    types = [data_type for data_type, _ in POOLS.values()]
    return [
        pa.table([pa.array(pair, kind) for pair, kind in zip(file, types, strict=True)], names=list(POOLS))
        for file in files
    ]


def added(path: Path, version: int) -> dict[str, Any]:
    add: dict[str, Any]
    [add] = [action["add"] for action in actions(path, version) if "add" in action]
    return add


def assert_no_file_is_lost(path: Path, first_version: int) -> None:
    """Checks that no comparison with a value skips a file that has a matching row. The files of `edges` were added one
    per version, beginning with `first_version`.
    """
    table = DeltaTable(path)
    names = [added(path, first_version + number)["path"] for number in range(len(pairs("l")))]
    skipped = 0
    for name, (_, values) in POOLS.items():
        for value in values:
            if isinstance(value, float) and not math.isfinite(value):
                # SQL has no literal for this value.
                continue
            for symbol, operator in OPERATORS.items():
                kept = {uri.rsplit("/", 1)[-1] for uri in table.file_uris([(name, symbol, value)])}
                matching = {
                    names[number]
                    for number, pair in enumerate(pairs(name))
                    if any(operator(key(found), key(value)) for found in pair)
                }
                assert matching <= kept, f"{name} {symbol} {value!r} loses {sorted(matching - kept)}"
                skipped += len(names) - len(kept)
    assert skipped > 500


def test_no_comparison_loses_a_file_of_deltalake(tmp_path: Path) -> None:
    for file in edges():
        deltalake.write_deltalake(tmp_path, file, mode="append")
    assert_no_file_is_lost(tmp_path, 0)


def test_no_comparison_loses_a_file_of_ours(tmp_path: Path) -> None:
    for file in edges():
        write_deltalake(tmp_path, file, mode="append")
    assert_no_file_is_lost(tmp_path, 0)
    DeltaTable(tmp_path).alter.set_table_properties({"delta.checkpoint.writeStatsAsStruct": "true"})
    DeltaTable(tmp_path).create_checkpoint()
    assert_no_file_is_lost(tmp_path, 0)


def test_no_comparison_loses_a_file_of_the_connector(jvm: Jvm, tmp_path: Path) -> None:
    path, files = tmp_path / "table", tmp_path / "files"
    files.mkdir()
    jvm.run("SET spark.sql.session.timeZone = Europe/Berlin")
    try:
        for number, file in enumerate(edges()):
            pa.parquet.write_table(file, files / f"{number}.parquet", store_schema=False)
            source = f"SELECT /*+ COALESCE(1) */ * FROM parquet.`{files}/{number}.parquet`"
            if number == 0:
                jvm.run(
                    f"CREATE TABLE delta.`{path}` USING delta TBLPROPERTIES "
                    f"('delta.checkpoint.writeStatsAsStruct' = 'true') AS {source}"
                )
            else:
                jvm.run(f"INSERT INTO delta.`{path}` {source}")
    finally:
        jvm.run("SET spark.sql.session.timeZone = UTC")
    assert_no_file_is_lost(path, 0)
    DeltaTable(path).create_checkpoint()
    assert_no_file_is_lost(path, 0)


def test_decimals_beyond_64_bits_are_found_and_kept(tmp_path: Path) -> None:
    """If a decimal does not fit in 64 bits, `deltalake` writes 2^63 - 1 as the maximum of the file."""
    numbers = [Decimal("12345678901234567890123"), Decimal(5)]
    deltalake.write_deltalake(tmp_path, pa.table({"d": pa.array(numbers, pa.decimal128(38, 0))}))
    assert json.loads(added(tmp_path, 0)["stats"])["maxValues"]["d"] == 2**63 - 1
    table = DeltaTable(tmp_path)
    assert table.count("d = 12345678901234567890123BD") == 1
    assert table.delete("d < 1e20")["numDeletedRows"] == 1
    assert pa.table(DeltaTable(tmp_path).to_arrow())["d"].to_pylist() == numbers[:1]


def changed(path: Path, version: int, change: Callable[[dict[str, Any]], None]) -> None:
    """Changes the statistics in a commit."""
    file = path / "_delta_log" / f"{version:020}.json"
    lines = actions(path, version)
    for action in lines:
        if "add" in action:
            stats = json.loads(action["add"]["stats"])
            change(stats)
            action["add"]["stats"] = json.dumps(stats)
    file.write_text("\n".join(json.dumps(line) for line in lines))


def test_an_offset_without_its_seconds_loses_no_row(tmp_path: Path) -> None:
    """The JVM connector 3.2 and 3.3 write statistics without the seconds of a time zone's offset. Before April 1893,
    Berlin's offset was +00:53:28.
    """
    noon = datetime(1890, 1, 1, 12, tzinfo=UTC)
    write_deltalake(tmp_path, pa.table({"t": pa.array([noon], pa.timestamp("us", "UTC")), "n": [1]}))

    def cut(stats: dict[str, Any]) -> None:
        del stats["deltalog"]
        stats["minValues"]["t"] = stats["maxValues"]["t"] = "1890-01-01T12:53:28.000+00:53"

    changed(tmp_path, 0, cut)
    table = DeltaTable(tmp_path)
    condition = "t = TIMESTAMP '1890-01-01T12:00:00Z'"
    assert table.count(condition) == 1
    assert table.count("t > TIMESTAMP '1890-01-01T12:01:30Z'") == 0
    source = pa.table({"t": pa.array([noon], pa.timestamp("us", "UTC")), "n": [2]})
    merge = table.merge(source, "t.t = s.t", source_alias="s", target_alias="t")
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    assert pa.table(DeltaTable(tmp_path).to_arrow())["n"].to_pylist() == [2]
    # A checkpoint's struct statistics have no offset that would show the error, but the row must still be found.
    DeltaTable(tmp_path).alter.set_table_properties(
        {"delta.checkpoint.writeStatsAsStruct": "true", "delta.checkpoint.writeStatsAsJson": "false"}
    )
    DeltaTable(tmp_path).create_checkpoint()
    assert DeltaTable(tmp_path).count(condition) == 1


ROWS = [(1, 1), (2, 7), (3, 9)]


def foreign(path: Path, change: Callable[[dict[str, Any]], None], *, vectors: bool = False) -> DeltaTable:
    """Returns a table with one file, whose statistics look as if another writer had written them."""
    properties = {"delta.enableDeletionVectors": "true"} if vectors else {}
    data = pa.table({"id": [row[0] for row in ROWS], "n": [row[1] for row in ROWS], "p": ["a"] * 3})
    write_deltalake(path, data, partition_by=["p"], configuration=properties)

    def by_others(stats: dict[str, Any]) -> None:
        stats.pop("deltalog")
        change(stats)

    changed(path, 0, by_others)
    return DeltaTable(path)


def too_narrow(stats: dict[str, Any]) -> None:
    stats["minValues"]["n"] = 5


def too_few(stats: dict[str, Any]) -> None:
    stats["numRecords"] = 2


def content(path: Path) -> list[tuple[int, int]]:
    rows = pa.table(DeltaTable(path).to_arrow(["id", "n"])).to_pylist()
    return sorted((row["id"], row["n"]) for row in rows)


@pytest.mark.parametrize("vectors", [False, True])
def test_no_row_is_changed_unread_because_of_bounds_of_other_writers(tmp_path: Path, vectors: bool) -> None:
    table = foreign(tmp_path / "deleted", too_narrow, vectors=vectors)
    assert table.delete("n >= 5")["numDeletedRows"] == 2
    assert content(tmp_path / "deleted") == [(1, 1)]
    table = foreign(tmp_path / "updated", too_narrow, vectors=vectors)
    assert table.update({"n": "0"}, predicate="n >= 5")["numUpdatedRows"] == 2
    assert content(tmp_path / "updated") == [(1, 1), (2, 0), (3, 0)]
    foreign(tmp_path / "replaced", too_narrow, vectors=vectors)
    new = pa.table({"id": [4], "n": [8], "p": ["a"]})
    write_deltalake(tmp_path / "replaced", new, mode="overwrite", predicate="n >= 5")
    assert content(tmp_path / "replaced") == [(1, 1), (4, 8)]


def test_our_own_bounds_let_a_file_be_removed_unread(tmp_path: Path) -> None:
    """This is the counterpart of the tests with other writers' statistics: if the statistics have deltalog's mark, the
    same file is removed without being read.
    """
    foreign(tmp_path, lambda stats: None)
    changed(tmp_path, 0, lambda stats: stats.update(deltalog=1))
    (tmp_path / added(tmp_path, 0)["path"]).unlink()
    assert DeltaTable(tmp_path).delete("n >= 1")["numDeletedRows"] == 3


def test_a_mark_in_struct_statistics_does_not_count(tmp_path: Path) -> None:
    """If only a checkpoint's struct statistics have the mark, it does not count, because the checkpoint's writer may
    have changed the statistics.
    """
    data = pa.table({"id": [row[0] for row in ROWS], "n": [row[1] for row in ROWS]})
    structs = {"delta.checkpoint.writeStatsAsStruct": "true", "delta.checkpoint.writeStatsAsJson": "false"}
    write_deltalake(tmp_path, data, configuration=structs)
    DeltaTable(tmp_path).create_checkpoint()
    [checkpoint] = (tmp_path / "_delta_log").glob("*.checkpoint.parquet")
    written = pa.parquet.read_table(checkpoint)
    rows = written.to_pylist()
    for row in rows:
        if row["add"] is not None:
            row["add"]["stats_parsed"]["minValues"]["n"] = 5
            row["add"]["stats_parsed"]["deltalog"] = 1
    place = written.schema.get_field_index("add")
    fields = list(written.schema.field(place).type)
    [number] = [at for at, field in enumerate(fields) if field.name == "stats_parsed"]
    fields[number] = pa.field(
        "stats_parsed", pa.struct([*fields[number].type, pa.field("deltalog", pa.int64())])
    )
    schema = written.schema.set(place, pa.field("add", pa.struct(fields)))
    pa.parquet.write_table(pa.Table.from_pylist(rows, schema), checkpoint)
    (tmp_path / "_delta_log" / f"{0:020}.json").unlink()
    assert DeltaTable(tmp_path).delete("n >= 5")["numDeletedRows"] == 2
    assert content(tmp_path) == [(1, 1)]


def test_rows_in_files_of_other_writers_are_counted_from_footers(tmp_path: Path) -> None:
    table = foreign(tmp_path / "deleted", too_few)
    assert table.delete("p = 'a'")["numDeletedRows"] == 3
    assert content(tmp_path / "deleted") == []
    # With deletion vectors, the UPDATE needs the positions of all rows, so a wrong number of rows is an error.
    table = foreign(tmp_path / "updated", too_few, vectors=True)
    with pytest.raises(CorruptDataError, match="the statistics of the file have 2 rows, but the file has 3"):
        table.update({"n": "0"}, predicate="p = 'a'")
    assert content(tmp_path / "updated") == ROWS
    table = foreign(tmp_path / "gone", too_few)
    (tmp_path / "gone" / added(tmp_path / "gone", 0)["path"]).unlink()
    assert "numDeletedRows" not in table.delete("p = 'a'")


def no_nulls(stats: dict[str, Any]) -> None:
    stats.pop("deltalog")
    stats["nullCount"] = {"id": 0, "n": 0}


@pytest.mark.parametrize("checkpoint", [False, True])
def test_null_counts_of_other_writers_do_not_prove_a_rule(tmp_path: Path, checkpoint: bool) -> None:
    """The other writer did not count the NULLs, but its statistics say that there are none. Therefore, rows are read
    before a column becomes NOT NULL.
    """
    structs = {"delta.checkpoint.writeStatsAsStruct": "true", "delta.checkpoint.writeStatsAsJson": "false"}
    data = pa.table({"id": [1, 2], "n": [1, None], "p": ["a", "a"]})
    write_deltalake(tmp_path, data, partition_by=["p"], configuration=structs if checkpoint else {})
    changed(tmp_path, 0, no_nulls)
    table = DeltaTable(tmp_path)
    if checkpoint:
        table.create_checkpoint()
        table = DeltaTable(tmp_path)
    with pytest.raises(SchemaMismatchError, match="rows with NULL"):
        table.alter.set_column_not_null("n")
    assert DeltaTable(tmp_path).version() == 0
    # The column that really has no NULL is read as well.
    table.alter.set_column_not_null("id")
    table.alter.set_column_not_null("p")
    assert [field.nullable for field in DeltaTable(tmp_path).schema().fields] == [False, True, False]


def test_null_counts_of_ours_need_no_rows(tmp_path: Path) -> None:
    foreign(tmp_path, lambda stats: None)
    changed(tmp_path, 0, lambda stats: stats.update(deltalog=1))
    (tmp_path / added(tmp_path, 0)["path"]).unlink()
    DeltaTable(tmp_path).alter.set_column_not_null("n")


def test_wrong_row_counts_of_other_writers_do_not_make_row_ids_overlap(tmp_path: Path) -> None:
    enabled = {"delta.enableRowTracking": "true"}
    table = foreign(tmp_path / "wrong", too_few)
    with pytest.raises(CorruptDataError, match="the statistics of the file have 2 rows, but the file has 3"):
        table.alter.set_table_properties(enabled)
    assert DeltaTable(tmp_path / "wrong").version() == 0
    # Missing numbers of rows are taken from the Parquet footers.
    table = foreign(tmp_path / "none", lambda stats: stats.pop("numRecords"))
    table.alter.set_table_properties(enabled)
    data = pa.table({"id": [4], "n": [0], "p": ["a"]})
    write_deltalake(tmp_path / "none", data, mode="append")
    rows = pa.table(DeltaTable(tmp_path / "none").to_arrow(row_ids=True))
    assert sorted(rows["_row_id"].to_pylist()) == [0, 1, 2, 3]


def test_the_connector_continues_statistics_of_ours(jvm: Jvm, tmp_path: Path) -> None:
    """Statistics that the connector copies keep deltalog's mark. Statistics that it computes itself do not get the
    mark.
    """
    table = f"delta.`{tmp_path}`"
    vectors = {"delta.enableDeletionVectors": "true"}
    write_deltalake(
        tmp_path, pa.table({"id": range(5), "f": [float(n) for n in range(5)]}), configuration=vectors
    )
    assert json.loads(added(tmp_path, 0)["stats"])["deltalog"] == 1
    assert jvm.query(f"SELECT id FROM {table} WHERE f > 2.5")["id"].to_pylist() == [3, 4]
    jvm.run(f"DELETE FROM {table} WHERE id = 1")
    stats = json.loads(added(tmp_path, 1)["stats"])
    assert not stats["tightBounds"]
    assert "deltalog" not in stats or stats["maxValues"]["f"] == 4.0
    jvm.run(f"INSERT INTO {table} VALUES (9, double('NaN'))")
    assert "deltalog" not in json.loads(added(tmp_path, 2)["stats"])
    newest = DeltaTable(tmp_path)
    assert newest.count("f > 3") == 2
    newest.create_checkpoint()
    assert DeltaTable(tmp_path).delete("f >= 2")["numDeletedRows"] == 4
    assert jvm.query(f"SELECT id FROM {table}")["id"].to_pylist() == [0]
