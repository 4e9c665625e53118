"""The lints for floors and rooms (the layers of the code) find forbidden imports."""

from __future__ import annotations

import re
from pathlib import Path

from scripts import java_rooms, rooms
from scripts.floors import FLOORS, folder_imports, imports
from scripts.order import circles, upward


def core(directory: Path, **files: str) -> Path:
    """Writes the source files of a small core. `__` in a file's name stands for a slash."""
    for name, text in files.items():
        file = directory / f"{name.replace('__', '/')}.rs"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return directory


def test_an_import_from_a_floor_above_is_named(tmp_path: Path) -> None:
    down = "use crate::log::Segment;\nuse super::Snapshot;\n// crate::scan::TableScan\n"
    sources = core(tmp_path, snapshot__open=down, log__mod="\nuse crate::snapshot::{Snapshot, Totals};\n")
    assert list(upward(FLOORS, imports(sources))) == [
        "crates/deltalog/src/log/mod.rs:2: `crate::snapshot` belongs to snapshot, but log must not use snapshot"
    ]


def test_an_import_from_the_root_is_named(tmp_path: Path) -> None:
    sources = core(tmp_path, scan__files="use crate::{Error, Result};\nuse super::super::lib;\n")
    assert [message.split("`")[1] for message in upward(FLOORS, imports(sources))] == [
        "crate",
        "super::super::lib",
    ]


def test_what_only_tests_import_does_not_count(tmp_path: Path) -> None:
    inner = "#[cfg(test)]\nmod tests {\n    use crate::operations::insert::PendingWrite;\n}\n"
    sources = core(tmp_path, log__tests="use crate::scan::TableScan;\n", log__mod=inner)
    assert list(upward(FLOORS, imports(sources))) == []
    core(tmp_path, log__mod=inner + "use crate::scan::TableScan;\n")
    assert len(list(upward(FLOORS, imports(sources)))) == 1


def test_a_circle_of_folders_on_a_floor_is_named(tmp_path: Path) -> None:
    sources = core(
        tmp_path,
        upkeep__checkpoint__mod="use crate::upkeep::manifest::write;\n",
        upkeep__manifest__mod="use super::cleanup::plan;\n",
        upkeep__cleanup__mod="",
    )
    assert circles(folder_imports(imports(sources), sources)) == []
    core(tmp_path, upkeep__cleanup__plan="use super::super::checkpoint::parts;\n")
    assert len(circles(folder_imports(imports(sources), sources))) == 3


def test_the_floors_of_the_core_are_in_order() -> None:
    found = list(imports())
    assert [*upward(FLOORS, found), *circles(folder_imports(found))] == []


def test_an_import_of_a_room_above_is_named(tmp_path: Path) -> None:
    for name, text in {
        "spark/jvm/__init__.py": "import deltalog.spark.jvm.gateway\n",
        "spark/jvm/gateway.py": "from deltalog.errors import DeltaError\nfrom deltalog.spark import write\n",
        "spark/write/__init__.py": "from deltalog.spark.jvm import Jvm\n",
        "table.py": "\nfrom deltalog.spark import enable\n",
        "tables.py": "from deltalog.spark.tables import DeltaTable\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert list(upward(rooms.ROOMS, rooms.imports(tmp_path))) == [
        "spark/jvm/gateway.py:2: `deltalog.spark.write` belongs to write, but jvm must not use write"
    ]
    assert list(rooms.of_core(tmp_path)) == ["table.py:2: imports deltalog.spark.enable of Spark"]


def test_a_class_of_a_room_above_is_named(tmp_path: Path) -> None:
    for name, text in {
        "common/rows/Reader.java": "// Job\nimport io.deltalog.spark.Job;\nclass Reader {\n  Bridge a;\n  Job b;\n}\n",
        "common/write/Job.java": 'class Job {\n  Reader a;\n  String b = "Rule";\n}\n',
        "common/bridge/Bridge.java": "class Bridge {\n  x.Job a;\n}\n",
        "4.2/Leaf.java": "class Leaf extends Reader {\n  Job a;\n}\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert list(upward(java_rooms.ROOMS, java_rooms.imports(tmp_path))) == [
        "4.2/Leaf.java: `Job` belongs to write, but rows must not use write",
        "common/rows/Reader.java: `Job` belongs to write, but rows must not use write",
    ]


def test_the_rooms_of_the_spark_layer_are_in_order() -> None:
    found = [*upward(rooms.ROOMS, rooms.imports()), *upward(java_rooms.ROOMS, java_rooms.imports())]
    assert [*rooms.of_core(), *found] == []


def test_the_table_of_the_binding_has_every_file(root: Path) -> None:
    sources = root / "crates/deltalog-python/src"
    named = re.findall(r"^//! \| `(\w+)` \|", (sources / "lib.rs").read_text(), re.MULTILINE)
    assert named == sorted(path.stem for path in sources.iterdir() if path.name != "lib.rs")
