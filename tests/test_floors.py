"""The lint of the floors finds every violation."""

from __future__ import annotations

from pathlib import Path

from scripts.floors import circles, imports, upward


def core(directory: Path, **files: str) -> Path:
    """Writes the sources of a core. `__` in a name stands for a slash."""
    for name, text in files.items():
        file = directory / f"{name.replace('__', '/')}.rs"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return directory


def test_an_import_from_a_floor_above_is_named(tmp_path: Path) -> None:
    down = "use crate::log::Segment;\nuse super::Snapshot;\n// crate::scan::TableScan\n"
    sources = core(tmp_path, snapshot__open=down, log__mod="\nuse crate::snapshot::{Snapshot, Totals};\n")
    assert upward(imports(sources)) == [
        "crates/deltalog/src/log/mod.rs:2: `crate::snapshot` goes up from log to snapshot"
    ]


def test_an_import_from_the_root_is_named(tmp_path: Path) -> None:
    sources = core(tmp_path, scan__files="use crate::{Error, Result};\nuse super::super::lib;\n")
    assert [message.split("`")[1] for message in upward(imports(sources))] == ["crate", "super::super::lib"]


def test_what_only_tests_import_does_not_count(tmp_path: Path) -> None:
    inner = "#[cfg(test)]\nmod tests {\n    use crate::operations::insert::PendingWrite;\n}\n"
    sources = core(tmp_path, log__tests="use crate::scan::TableScan;\n", log__mod=inner)
    assert upward(imports(sources)) == []
    core(tmp_path, log__mod=inner + "use crate::scan::TableScan;\n")
    assert len(upward(imports(sources))) == 1


def test_a_circle_of_folders_on_a_floor_is_named(tmp_path: Path) -> None:
    sources = core(
        tmp_path,
        upkeep__checkpoint__mod="use crate::upkeep::manifest::write;\n",
        upkeep__manifest__mod="use super::cleanup::plan;\n",
        upkeep__cleanup__mod="",
    )
    assert circles(imports(sources), sources) == []
    core(tmp_path, upkeep__cleanup__plan="use super::super::checkpoint::parts;\n")
    assert len(circles(imports(sources), sources)) == 3


def test_the_floors_of_the_core_are_in_order() -> None:
    found = list(imports())
    assert (upward(found), circles(found)) == ([], [])
