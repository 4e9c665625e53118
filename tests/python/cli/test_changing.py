"""Commands that change a table."""

from __future__ import annotations

from pathlib import Path

import pytest

from deltalog import DeltaTable
from deltalog.cli.columns import fields_of
from deltalog.cli.failures import UsageError
from tests.python.cli.conftest import Command
from tests.python.place import data_files


def test_check_finds_what_repair_removes(run: Command, place: Path) -> None:
    assert run("check", "trips") == (0, "version 1: no problem found\n", "")
    next((place / "trips").glob("city=Oslo/*.parquet")).unlink()
    ran = run("check", "trips")
    assert ran.code == 1
    assert ran.out.endswith("version 1: 1 problem found\n")
    assert [row["problem"] for row in run("check", "trips", "--json").objects] == ["missing file"]
    assert "1 file would be removed" in run("repair", "trips").out
    assert DeltaTable("trips").version() == 1
    assert "1 file removed" in run("repair", "trips", "--commit").out
    assert run("count", "trips").out == "2\n"
    assert run("repair", "trips", "--commit").out == "no file is missing\n"


def test_vacuum_deletes_on_request_only(run: Command, place: Path) -> None:
    DeltaTable("trips").delete("city = 'Oslo'")
    before = data_files(place / "trips")
    arguments = ("vacuum", "trips", "--retain", "0")
    refused = run(*arguments)
    assert refused.code == 2
    assert refused.err.count("\n") == 1
    ran = run(*arguments, "--allow-short-retention", "--json")
    assert ran.objects[0]["files"] == 1
    assert data_files(place / "trips") == before
    assert len(run(*arguments, "--allow-short-retention", "--files", "--json").objects) == 1
    assert "1 file deleted" in run(*arguments, "--allow-short-retention", "--delete").out
    assert len(data_files(place / "trips")) == len(before) - 1


def test_layout(run: Command, place: Path) -> None:
    assert "would be replaced by 1 file" in run("optimize", "trips", "--dry-run").out
    assert DeltaTable("trips").version() == 1
    assert run("optimize", "trips", "--json").objects[0]["numFilesAdded"] == 1
    assert run("optimize", "trips").out == "nothing to do\n"
    assert run("zorder", "events", "day", "what", "--json").objects[0]["numFilesAdded"] == 1
    refused = run("cluster", "events")
    assert refused.code == 2
    assert run("alter", "events", "--cluster-by", "day").code == 0
    assert run("cluster", "events", "--json").objects[0]["clusteringStats"]["numOutputZCubes"] == 1
    assert run("alter", "events", "--cluster-by", "").code == 0
    assert DeltaTable("events").clustering_columns() == []


def test_purge_removes_deleted_rows(run: Command) -> None:
    run("alter", "events", "--set", "delta.enableDeletionVectors=true")
    DeltaTable("events").delete("day = 1")
    assert "1 file" in run("optimize", "events", "--purge").out
    (file,) = run("files", "events", "--columns", "num_records,deletion_vector", "--json").objects
    assert file == {"num_records": 2, "deletion_vector": None}


def test_restore(run: Command) -> None:
    assert run("restore", "trips", "0", "--dry-run", "--json").objects[0]["version"] == 1
    assert run("restore", "trips", "0", "--json").objects[0]["version"] == 2
    assert run("count", "trips").out == "3\n"
    assert run("restore", "trips", "9").code == 3


def test_checkpoint(run: Command, place: Path) -> None:
    assert run("checkpoint", "trips").out == "checkpoint  version 1\n"
    assert list((place / "trips" / "_delta_log").glob("*1.checkpoint*"))


def test_convert(run: Command, place: Path) -> None:
    assert run("convert", "logs", "--dry-run", "--json").objects[0]["files"] == 1
    assert not DeltaTable.is_deltatable("logs")
    assert run("convert", "logs", "--partition-by", "day date", "--json").objects[0]["version"] == 0
    assert DeltaTable("logs").count("day = DATE'2026-11-24'") == 2
    assert run("convert", "logs").code == 9
    assert run("convert", "logs", "--if-not-exists").out == "there is already a table\n"


def test_clone(run: Command) -> None:
    assert run("clone", "trips", "copy", "--at", "0", "--json").objects[0]["numCopiedFiles"] == 2
    assert run("clone", "trips", "copy").code == 9
    assert run("clone", "trips", "copy", "--replace", "--json").objects[0]["numCopiedFiles"] == 1
    roots = run("clone", "trips", "view", "--shallow", "--json").objects[0]["allowed_roots"]
    assert run("head", "view").code == 5
    assert run("count", "view", "--allow-root", roots[0], "--where", "km > 0").out == "4\n"


def test_create(run: Command) -> None:
    columns = "id bigint not null, `a-b` decimal(10, 2), tags array<string>, m map<string, struct<x: int, y double>>"
    made = run(
        "create", "made", "--columns", columns, "--constraint", "known=id > 0", "--name", "made", "--json"
    )
    assert made.objects[0]["version"] == 0
    schema = DeltaTable("made").schema()
    assert [(field.name, str(field.type), field.nullable) for field in schema.fields] == [
        ("id", "long", False),
        ("a-b", "decimal(10,2)", True),
        ("tags", "array<string>", True),
        ("m", "map<string, struct<x: integer, y: double>>", True),
    ]
    assert run("create", "made", "--columns", "id bigint").code == 9
    assert run("create", "made", "--columns", "id bigint", "--if-not-exists").code == 0
    assert run("create", "made", "--columns", "id int", "--replace", "--cluster-by", "id").code == 0
    assert DeltaTable("made").clustering_columns() == ["id"]


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("id", "it ends too early"),
        ("id bigint,", "it ends too early"),
        ("id bigint nul", "near 'nul'"),
        ("id ; drop", "near ';"),
        ("t array<int", "it ends too early"),
        ("t array<int))", "near '\\)'"),
        ("t " + "array<" * 60 + "int" + ">" * 60, "nested too deeply"),
        ("", "it ends too early"),
        ("id decimal(", "it ends too early"),
        ("1 `unclosed", "near '`unclosed'"),
    ],
)
def test_invalid_definitions_of_columns(text: str, near: str) -> None:
    with pytest.raises(UsageError, match=near):
        fields_of(text)


def test_alter(run: Command) -> None:
    steps = [
        ("--set", "delta.columnMapping.mode=name", "--set", "delta.appendOnly=true"),
        ("--unset", "delta.appendOnly"),
        ("--add-column", "note string, n int", "--after", "city"),
        ("--rename-column", "note=remark"),
        ("--drop-column", "remark"),
        ("--set", "delta.enableTypeWidening=true"),
        ("--widen", "n bigint"),
        ("--set-not-null", "km"),
        ("--drop-not-null", "km"),
        ("--add-feature", "allowColumnDefaults"),
        ("--set-default", "n=7"),
        ("--drop-default", "n"),
        ("--comment", "n=a number"),
        ("--add-constraint", "far=km > 1"),
        ("--drop-constraint", "far"),
        ("--name", "trips"),
        ("--description", "what was travelled"),
    ]
    for number, step in enumerate(steps, 2):
        ran = run("alter", "trips", *step, "--json")
        assert (ran.code, ran.err, ran.out) == (0, "", f'{{"version":{number}}}\n'), step
    table = DeltaTable("trips")
    names = [(field.name, str(field.type)) for field in table.schema().fields]
    assert names == [("city", "string"), ("n", "long"), ("km", "double")]
    assert (table.metadata().name, table.metadata().description) == ("trips", "what was travelled")
    assert "nothing to change" in run("alter", "trips", "--name", "trips").out


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--name", "a", "--unset", "b"),
        ("--name", "a", "--name", "b"),
        ("--after", "city"),
        ("--widen", "km"),
    ],
)
def test_each_alter_is_one_change(run: Command, arguments: tuple[str, ...]) -> None:
    ran = run("alter", "trips", *arguments)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert DeltaTable("trips").version() == 1


def test_drop_feature(run: Command) -> None:
    refused = run("drop-feature", "orders", "changeDataFeed")
    assert refused.code == 2
    assert "unset the property first" in refused.err
    run("alter", "orders", "--set", "delta.enableChangeDataFeed=false")
    assert run("drop-feature", "orders", "changeDataFeed").code == 0
    assert "changeDataFeed" not in run("info", "orders", "--json").objects[0]["features"]


def test_a_table_that_is_append_only(run: Command) -> None:
    run("alter", "trips", "--set", "delta.appendOnly=true")
    refused = run("restore", "trips", "0")
    assert (refused.code, refused.err.count("\n")) == (2, 1)
