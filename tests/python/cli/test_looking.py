"""Commands that show a table and its history."""

from __future__ import annotations

import io
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from deltalog import DeltaTable, write_deltalake
from deltalog.cli import main
from tests.python.cli.conftest import Command


def test_info(run: Command, place: Path) -> None:
    (info,) = run("info", "trips", "--json").objects
    assert info["location"] == (place / "trips").as_uri()
    assert (info["version"], info["files"], info["rows"]) == (1, 3, 4)
    assert info["partition_columns"] == ["city"]
    assert run("info", "trips", "--at", "0", "--json").objects[0]["rows"] == 3
    text = run("info", "orders").out
    assert "features" in text
    assert "delta.enableChangeDataFeed  true" in text


def test_a_table_can_be_a_url_and_a_version_a_time(run: Command, place: Path) -> None:
    committed = run("info", (place / "trips").as_uri(), "--at", "0", "--json").objects[0]["committed"]
    assert run("count", (place / "trips").as_uri(), "--at", committed, "--json").objects == [{"count": 3}]


def test_schema(run: Command, place: Path) -> None:
    table = DeltaTable("trips")
    assert run("schema", "trips", "--json").out.strip() == table.schema().to_json()
    assert run("schema", "trips").out.split() == [
        *("column", "type", "------", "------"),
        *("city", "string", "km", "double"),
    ]


def test_files_are_skipped_by_a_condition(run: Command) -> None:
    paths = [row["path"] for row in run("files", "trips", "--where", "city = 'Oslo'", "--json").objects]
    assert len(paths) == 1
    assert paths[0].startswith("city=Oslo/")
    ran = run("files", "trips", "--columns", "size,path", "-n", "1")
    assert ran.out.splitlines()[0].split() == ["size", "path"]
    assert len(ran.out.splitlines()) == 3


def test_rows(run: Command) -> None:
    ran = run("show", "trips", "--where", "km > 4", "--columns", "km,city", "--json")
    assert sorted(row["km"] for row in ran.objects) == [4.5, 7.5, 12.0]
    assert list(ran.objects[0]) == ["km", "city"]
    assert len(run("head", "trips", "-n", "2", "--json").objects) == 2
    assert run("head", "trips", "-n", "0", "--json").out == ""
    assert run("show", "trips", "--where", "km > 100").out.split() == ["city", "km", "----", "--"]


def test_the_first_rows_of_many_batches(run: Command, place: Path) -> None:
    write_deltalake(place / "many", pa.table({"i": range(200_000)}))
    for limit in (3, 65_536, 150_000):
        assert len(run("show", "many", "-n", str(limit), "--json").out.splitlines()) == limit
    assert len(run("head", "many").out.splitlines()) == 12


def test_count(run: Command) -> None:
    assert run("count", "trips").out == "4\n"
    assert run("count", "trips", "--where", "city = 'Rome'", "--json").objects == [{"count": 2}]
    rows = run("count", "trips", "--by-partition", "--json").objects
    assert rows == [{"city": "Oslo", "count": 2}, {"city": "Rome", "count": 2}]


def test_arrow(place: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["show", "trips", "--arrow", "--columns", "city,km"]) == 0
    rows = pa.ipc.open_stream(io.BytesIO(capsysbinary.readouterr().out)).read_all()
    assert rows.sort_by("km").to_pydict()["km"] == [1.5, 4.5, 7.5, 12.0]
    assert main(["show", "trips", "--arrow", "--where", "km > 100"]) == 0
    assert pa.ipc.open_stream(io.BytesIO(capsysbinary.readouterr().out)).read_all().num_rows == 0
    assert main(["history", "trips", "--arrow"]) == 0
    history = pa.ipc.open_stream(io.BytesIO(capsysbinary.readouterr().out)).read_all()
    assert history["version"].to_pylist() == [1, 0]


def test_json_is_exact(run: Command, place: Path) -> None:
    maps = pa.array([[(1, 0.1)], None, []], pa.map_(pa.int32(), pa.float32()))
    data = pa.table(
        {
            "double": [float("nan"), float("-inf"), 0.1],
            "decimal": pa.array([Decimal("12345678901234567890.10"), None, Decimal(0)], pa.decimal128(38, 2)),
            "long": [2**63 - 1, -(2**63), None],
            "text": ['"\\\n', "\u2028\x1b", ""],
            "map": maps,
        }
    )
    write_deltalake(place / "exact", data)
    first = '{"double":"NaN","decimal":12345678901234567890.10,"long":9223372036854775807,'
    lines = run("show", "exact", "--json").out.split("\n")
    assert lines == [
        first + '"text":"\\"\\\\\\n","map":{"1":0.1}}',
        '{"double":"-Infinity","decimal":null,"long":-9223372036854775808,"text":"\u2028\\u001b","map":null}',
        '{"double":0.1,"decimal":0.00,"long":null,"text":"","map":{}}',
        "",
    ]


def test_history(run: Command) -> None:
    lines = run("history", "trips").out.splitlines()
    assert [line.split()[0] for line in lines] == ["version", "-------", "1", "0"]
    assert "1 row written, 1 file added" in lines[2]
    assert "3 rows written, 2 files added" in lines[3]
    assert [commit["version"] for commit in run("history", "trips", "-n", "1", "--json").objects] == [1]


def test_log(run: Command) -> None:
    actions = run("log", "trips", "0", "--json").objects
    assert [kind for action in actions for kind in action if kind != "version"] == [
        *("commitInfo", "protocol", "metaData"),
        *("add", "add"),
    ]
    lines = run("log", "trips").out.splitlines()
    assert lines[0].startswith("version 1, of 20")
    assert lines[2].startswith("add            city=Rome/part-")
    assert run("log", "trips", "7").code == 3


def test_diff(run: Command, place: Path) -> None:
    table = DeltaTable(place / "trips")
    table.alter.set_table_properties({"delta.enableDeletionVectors": "true"})
    table.delete("km = 4.5")
    table.alter.add_constraint({"far": "km > 1"})
    (value,) = run("diff", "trips", "0", "--json", "--files").objects
    assert (value["versions"], value["rows"], value["files"]) == ([0, table.version()], [3, 3], [2, 3])
    assert (value["files_added"], value["files_removed"]) == (1, 0)
    assert value["files_with_other_deletion_vectors"] == 1
    assert value["properties"]["delta.constraints.far"] == [None, "km > 1"]
    assert "deletionVectors" in value["table"]["features"][1]
    assert len(value["added"]) == len(value["changed"]) == 1
    lines = run("diff", "trips", "1", "0").out.splitlines()
    assert lines[1:] == ["rows: 4 and 3 (-1)", lines[2]]
    assert lines[2].startswith("- 1 file removed, 1 row, ")


def test_columns_that_differ(run: Command, place: Path) -> None:
    run("alter", "trips", "--add-column", "note string")
    lines = run("diff", "trips", "1").out.splitlines()
    assert lines[1:] == ["rows: 4 and 4 (+0)", "+ column note: string"]


def test_tail(run: Command) -> None:
    assert [commit["version"] for commit in run("tail", "trips", "--json").objects] == [0, 1]
    lines = run("tail", "trips", "-n", "1").out.splitlines()
    assert len(lines) == 1
    assert lines[0].endswith(
        "WRITE; 1 row written, 1 file added; " + DeltaTable("trips").history(1)[0]["engineInfo"]
    )


def test_changes(run: Command) -> None:
    rows = run("changes", "orders", "1", "--json").objects
    kinds = [(row["_change_type"], row["id"], row["price"]) for row in rows]
    assert sorted(kinds) == [("delete", 1, 1.1), ("insert", 1, 1.1), ("insert", 2, 2.2)]
    assert [row["id"] for row in run("changes", "orders", "2", "2", "--json").objects] == [1]
    assert run("changes", "trips", "0").code == 3
