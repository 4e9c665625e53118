"""Checks the files of a release: names, versions, bills of materials, licenses, binaries.

The Java classes in the files are checked by `scripts/spark_jars.py --check`.
"""

from __future__ import annotations

import json
import tarfile
import tempfile
import zipfile
from email import message_from_string
from pathlib import Path

from scripts.release.library import Library, problems
from scripts.release.projects import PROJECTS, Project
from scripts.release.targets import Target
from scripts.release.version import Version

# The maximum size that PyPI accepts.
LARGEST = 100_000_000


def check_wheel(project: Project, file: Path, version: Version, target: Target) -> list[str]:
    """Checks a wheel, and returns the problems."""
    if file.name != (expected := project.wheel_name(version, target)):
        return [f"{file.name} should be {expected}"]
    wrong = []
    if (size := file.stat().st_size) > LARGEST:
        wrong.append(f"it has {size:,} bytes; PyPI takes {LARGEST:,}")
    information = f"{project.stem(version)}.dist-info"
    with zipfile.ZipFile(file) as wheel, tempfile.TemporaryDirectory() as directory:
        names = wheel.namelist()
        typed = f"{project.module}/py.typed"
        needed = (project.binary, typed, f"{information}/licenses/LICENSE", f"{information}/METADATA")
        wrong += [f"it lacks {name}" for name in needed if name not in names]
        wrong += [f"it has {name}" for name in names if name.endswith((".java", ".pyc", ".rs"))]
        if f"{information}/METADATA" in names:
            wrong += _metadata_problems(project, wheel.read(f"{information}/METADATA").decode(), version)
        wrong += _materials_problems(project, wheel, version)
        wrong += _license_problems(project, wheel)
        if project.binary in names:
            binary = Path(wheel.extract(project.binary, directory))
            wrong += problems(Library.read(binary), target)
            if str(Path.home()).encode() + b"/" in binary.read_bytes():
                wrong.append(f"its binary names paths in {Path.home()}")
    return [f"{file.name}: {problem}" for problem in wrong]


def _metadata_problems(project: Project, text: str, version: Version) -> list[str]:
    metadata = message_from_string(text)
    expected = {"Name": project.name, "Version": project.version(version), "Requires-Python": ">=3.10"}
    return [
        f"its metadata has {name} {metadata[name]}, not {value}"
        for name, value in expected.items()
        if metadata[name] != value
    ]


def _materials_problems(project: Project, wheel: zipfile.ZipFile, version: Version) -> list[str]:
    """Checks the list of crates (in the format CycloneDX) that maturin writes into a wheel, and returns the
    problems.
    """
    names = [
        name for name in wheel.namelist() if ".dist-info/sboms/" in name and name.endswith(".cyclonedx.json")
    ]
    if len(names) != 1:
        return [
            f"it has {len(names)} bills of materials (.dist-info/sboms/*.cyclonedx.json), and must have one"
        ]
    bill = json.loads(wheel.read(names[0]))
    crates = {component.get("name"): component.get("version") for component in bill.get("components", ())}
    wrong = [f"its bill of materials lacks {name}" for name in project.linked if name not in crates]
    if bill.get("bomFormat") != "CycloneDX":
        wrong.append("its bill of materials is not CycloneDX")
    if crates.get("deltalog", str(version)) != str(version):
        wrong.append(f"its bill of materials has deltalog {crates['deltalog']}, not {version}")
    return wrong


def _license_problems(project: Project, wheel: zipfile.ZipFile) -> list[str]:
    name = project.licenses
    text = wheel.read(name).decode() if name in wheel.namelist() else ""
    return [f"{name} does not mention {crate}" for crate in project.linked if f"\n{crate} " not in text]


def check_sources(project: Project, file: Path, version: Version) -> list[str]:
    """Checks a source archive, and returns the problems."""
    if file.name != (expected := project.sources_name(version)):
        return [f"{file.name} should be {expected}"]
    with tarfile.open(file) as archive:
        names = set(archive.getnames())
    wanted = {name: f"{project.stem(version)}/{name}" for name in project.in_sources}
    return [f"{file.name}: it lacks {name}" for name, member in wanted.items() if member not in names]


def check_all(directory: Path, version: Version, targets: list[Target]) -> list[str]:
    """Checks all files of a release, and returns the problems. A missing file is a problem, and so is an additional
    one.
    """
    wheels = {
        project.wheel_name(version, target): (project, target) for project in PROJECTS for target in targets
    }
    archives = {project.sources_name(version): project for project in PROJECTS}
    expected = {*wheels, *archives, f"deltalog-{version}.crate"}
    present = {file.name for file in directory.iterdir()}
    wrong = [f"{name} is missing" for name in sorted(expected - present)]
    wrong += [f"{name} does not belong to the release" for name in sorted(present - expected)]
    for name in sorted(wheels.keys() & present):
        project, target = wheels[name]
        wrong += check_wheel(project, directory / name, version, target)
    for name in sorted(archives.keys() & present):
        wrong += check_sources(archives[name], directory / name, version)
    return wrong
