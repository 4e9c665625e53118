"""scripts/release finds problems in the wheels and archives of a release, and in their binaries."""

from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from scripts.release import builds, contents
from scripts.release.library import Library, problems
from scripts.release.projects import DATAFUSION, DELTALOG, PROJECTS, Project
from scripts.release.targets import ELSEWHERE, LINUX
from scripts.release.version import Version
from tests.conftest import missing

GNU = LINUX["x86_64-unknown-linux-gnu"]
MUSL = LINUX["aarch64-unknown-linux-musl"]
VERSION = Version(1, 2, 3)
GOOD = Library(
    machine=GNU.machine,
    needed=frozenset({"libc.so.6", "libm.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2"}),
    versions=frozenset({"GLIBC_2.2.5", "GLIBC_2.17", "GCC_3.3"}),
    sections=frozenset({".text", ".dynsym"}),
    undefined=frozenset({"PyModuleDef_Init", "memcpy"}),
)
GOOD_MUSL = replace(GOOD, machine=MUSL.machine, needed=frozenset({"libc.so"}), versions=frozenset())
MODULE = """
#include <pthread.h>
extern char *zlibVersion(void);
extern int PyModuleDef_Init(void *);
static void *nothing(void *given) { return given; }
void *PyInit__internal(void) {
    pthread_t thread;
    pthread_create(&thread, 0, nothing, 0);
    return (void *) (long) (PyModuleDef_Init(0) + (long) zlibVersion());
}
"""


def test_a_library_that_all_machines_can_load_has_no_problem() -> None:
    assert problems(GOOD, GNU) == []
    assert problems(GOOD_MUSL, MUSL) == []


BAD = {
    "a newer glibc": (
        replace(GOOD, versions=GOOD.versions | {"GLIBC_2.18"}),
        "it needs GLIBC_2.18, which is newer than 2.17",
    ),
    "a private symbol": (
        replace(GOOD, versions=GOOD.versions | {"GLIBC_PRIVATE"}),
        "it needs GLIBC_PRIVATE, which is private to glibc",
    ),
    "another library": (replace(GOOD, needed=GOOD.needed | {"libssl.so.3"}), "it needs libssl.so.3"),
    "another processor": (replace(GOOD, machine="AArch64"), f"it is for AArch64, not for {GNU.machine}"),
    "symbols": (replace(GOOD, sections=GOOD.sections | {".symtab"}), "it is not stripped"),
    "debug information": (replace(GOOD, sections=GOOD.sections | {".debug_info"}), "it is not stripped"),
    "no module": (replace(GOOD, undefined=frozenset()), "it is no module of Python"),
}


@pytest.mark.parametrize("what", BAD)
def test_what_a_machine_could_not_load_is_named(what: str) -> None:
    library, problem = BAD[what]
    assert problems(library, GNU) == [problem]


def test_a_library_for_musl_needs_nothing_of_glibc() -> None:
    other = replace(GOOD_MUSL, needed=frozenset({"libc.so.6"}), versions=frozenset({"GLIBC_2.17"}))
    assert problems(other, MUSL) == ["it needs libc.so.6", "it needs GLIBC_2.17, which musl does not have"]


def compiled(directory: Path, *options: str) -> Path:
    """Compiles a module with this machine's compiler, so it needs this machine's glibc."""
    if shutil.which("cc") is None or shutil.which("readelf") is None:
        missing("no C compiler, or no readelf")
    (directory / "module.c").write_text(MODULE)
    (directory / "other.c").write_text('char *zlibVersion(void) { return "1"; }')
    other = directory / "libother.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", other, directory / "other.c"], check=True)
    made = directory / "module.so"
    source = str(directory / "module.c")
    command = ["cc", "-shared", "-fPIC", *options, "-o", str(made), source, f"-L{directory}", "-lother"]
    subprocess.run(command, check=True)
    return made


def test_a_binary_is_read_as_it_is(tmp_path: Path) -> None:
    library = Library.read(compiled(tmp_path))
    assert library.needed >= {"libother.so", "libc.so.6"}
    assert any(re.fullmatch(r"GLIBC_2\.\d+(\.\d+)?", version) for version in library.versions)
    assert library.undefined >= {"PyModuleDef_Init", "pthread_create", "zlibVersion"}
    assert "PyInit__internal" not in library.undefined
    assert {".text", ".symtab"} <= library.sections
    assert ".symtab" not in Library.read(compiled(tmp_path, "-s")).sections
    with pytest.raises(ValueError, match="no shared library"):
        Library.read(tmp_path / "module.c")


def wheel(
    directory: Path, binary: bytes, changes: dict[str, str | None], project: Project = DELTALOG
) -> Path:
    version, information = project.version(VERSION), f"{project.stem(VERSION)}.dist-info"
    crates = {**dict.fromkeys(project.linked, "59"), "deltalog": "1.2.3"}
    components = [{"name": name, "version": version} for name, version in crates.items()]
    bill = {"bomFormat": "CycloneDX", "components": components}
    files: dict[str, str | None] = {
        f"{project.module}/py.typed": "",
        project.licenses: "".join(f"\n{name} 59" for name in project.linked),
        f"{information}/METADATA": f"Name: {project.name}\nVersion: {version}\nRequires-Python: >=3.10\n",
        f"{information}/licenses/LICENSE": "",
        f"{information}/sboms/{project.crate}.cyclonedx.json": json.dumps(bill),
        **changes,
    }
    file = directory / project.wheel_name(VERSION, GNU)
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(project.binary, binary)
        for name, text in files.items():
            if text is not None:
                archive.writestr(name, text)
    return file


SBOM = "deltalog-1.2.3.dist-info/sboms/deltalog-python.cyclonedx.json"
CHANGES: dict[str, tuple[dict[str, str | None], str]] = {
    "no types": ({"deltalog/py.typed": None}, "it lacks deltalog/py.typed"),
    "sources": ({"deltalog/Some.java": ""}, "it has deltalog/Some.java"),
    "no bill": ({SBOM: None}, "it has 0 bills of materials"),
    "an empty bill": ({SBOM: '{"bomFormat": "CycloneDX"}'}, "its bill of materials lacks arrow"),
    "another bill": ({SBOM: '{"bomFormat": "SPDX"}'}, "its bill of materials is not CycloneDX"),
    "no licenses": ({"deltalog/THIRD_PARTY_LICENSES.txt": ""}, "does not mention parquet"),
    "an old version": (
        {"deltalog-1.2.3.dist-info/METADATA": "Name: deltalog\nVersion: 1.2.2\nRequires-Python: >=3.10\n"},
        "its metadata has Version 1.2.2, not 1.2.3",
    ),
}


@pytest.mark.parametrize("what", [None, *CHANGES])
def test_what_a_wheel_lacks_is_named(
    tmp_path: Path, what: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contents, "problems", lambda library, target: [])
    changes, problem = ({}, None) if what is None else CHANGES[what]
    file = wheel(tmp_path, compiled(tmp_path).read_bytes(), changes)
    wrong = contents.check_wheel(DELTALOG, file, VERSION, GNU)
    assert all(line.startswith(f"{file.name}: ") for line in wrong)
    assert wrong == [] if problem is None else any(problem in line for line in wrong)


def test_the_binary_of_a_wheel_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    binary = compiled(tmp_path).read_bytes()
    file = wheel(tmp_path, binary, {})
    wrong = contents.check_wheel(DELTALOG, file, VERSION, GNU)
    assert f"{file.name}: it needs libother.so" in wrong
    assert f"{file.name}: it is not stripped" in wrong
    monkeypatch.setattr(contents, "problems", lambda library, target: [])
    file = wheel(tmp_path, binary + f"{Path.home()}/.cargo/registry".encode(), {})
    assert contents.check_wheel(DELTALOG, file, VERSION, GNU) == [
        f"{file.name}: its binary names paths in {Path.home()}"
    ]
    other = file.rename(tmp_path / "deltalog-1.2.3-cp310-abi3-linux_x86_64.whl")
    [named] = contents.check_wheel(DELTALOG, other, VERSION, GNU)
    assert named.startswith(
        f"{other.name} should be deltalog-1.2.3-cp310-abi3-manylinux2014_x86_64.manylinux_2_17_x86_64"
    )


def test_a_release_has_its_files_and_no_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contents, "problems", lambda library, target: [])
    out = tmp_path / "out"
    out.mkdir()
    for project in PROJECTS:
        wheel(out, compiled(tmp_path).read_bytes(), {}, project)
        with tarfile.open(out / project.sources_name(VERSION), "w:gz") as archive:
            for name in project.in_sources:
                archive.addfile(tarfile.TarInfo(f"{project.stem(VERSION)}/{name}"), io.BytesIO())
    (out / "deltalog-1.2.3.crate").touch()
    assert contents.check_all(out, VERSION, [GNU]) == []
    (out / "deltalog-1.2.2.tar.gz").touch()
    assert contents.check_all(out, VERSION, [GNU, MUSL]) == [
        "deltalog-1.2.3-cp310-abi3-musllinux_1_2_aarch64.whl is missing",
        "deltalog_datafusion-55.1.2.3-cp310-abi3-musllinux_1_2_aarch64.whl is missing",
        "deltalog-1.2.2.tar.gz does not belong to the release",
    ]
    for project, lacking in ((DELTALOG, "Cargo.lock"), (DATAFUSION, "deltalog-datafusion/Cargo.lock")):
        sources = out / project.sources_name(VERSION)
        with tarfile.open(sources, "w:gz") as archive:
            archive.addfile(tarfile.TarInfo(f"{project.stem(VERSION)}/README.md"), io.BytesIO())
        assert f"{sources.name}: it lacks {lacking}" in contents.check_all(out, VERSION, [GNU])


def test_what_the_builds_lack_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rustc").write_text("#!/bin/sh\necho /nowhere\n")
    (tmp_path / "rustc").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    lacking = "\n".join(builds.missing_tools(tmp_path))
    assert "maturin and zig: run `make .cache/release/venv/.deps`" in lacking
    assert all(f"run `rustup target add {triple}`" in lacking for triple in LINUX)
    assert "readelf: install" in lacking


def test_the_source_archive_for_datafusion_has_all_members_of_its_workspace(root: Path) -> None:
    """maturin adds only path dependencies to the archive, so the package must depend on every other member. If the
    archive lacked a member, cargo would have to change Cargo.lock.
    """
    workspace = root / "crates/deltalog-datafusion"
    [members] = re.findall(r"(?m)^members = \[(.*)\]$", (workspace / "Cargo.toml").read_text())
    others = set(re.findall(r'"(.*?)"', members)) - {"python"}
    assert others
    manifest = (workspace / "python/Cargo.toml").read_text()
    assert others == set(re.findall(r'path = "\.\./(\w+)" }', manifest))


def test_licenses_are_checked_for_all_platforms(root: Path) -> None:
    [listed] = re.findall(r"(?s)\ntargets = \[(.*?)\]", (root / "deny.toml").read_text())
    assert set(re.findall(r'"(.*?)"', listed)) == {*LINUX, *ELSEWHERE}


def test_the_workflow_builds_what_is_not_built_here(root: Path) -> None:
    text = (root / ".github/workflows/release.yml").read_text()
    assert tuple(re.findall(r"target: (\S+) }", text)) == ELSEWHERE
    used = re.findall(r"uses: (\S+)", text)
    assert used
    assert all(re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", action) for action in used)
