"""Tries out wheels in an environment with nothing but Python: `python -m scripts.release.trial WHEEL...`.

- A wheel for glibc is installed with pip, without an index, into a bare root directory with Debian's Python
  (scripts/release/roots.py), and then used on a table. The root directory has no shell, no /proc and no /dev.
- The wheel for DataFusion is first installed without DataFusion, and its error must say how to install DataFusion. Then
  it is installed with `datafusion` and pyarrow, and used in queries. Their wheels are fetched from the package index
  into the root directory, so pip checks the requirements that the wheel states.
- A wheel for musl is loaded by musl's own loader, into a small program that provides the symbols of Python.
- Wheels for another processor run in QEMU.

The wheels must also work with glibc 2.17, but every glibc that Debian still offers is newer. For this reason the
binary is checked as well (scripts/release/library.py): glibc's symbols have versions, and a wheel must not need a
symbol that is newer than 2.17.
"""

from __future__ import annotations

import argparse
import json
import platform
import shutil
import subprocess
import sys
import tempfile
import zipfile
from email import message_from_bytes
from pathlib import Path

from scripts.release.errors import RefusedError
from scripts.release.library import Library
from scripts.release.projects import DATAFUSION, DELTALOG, PROJECTS, Project
from scripts.release.roots import Packages, inside
from scripts.release.targets import LINUX, Target

ROOT = Path(__file__).resolve().parent.parent.parent
WORK = ROOT / ".cache/release/roots"
PROCESSORS = {"x86_64": "amd64", "aarch64": "arm64"}
ROWS = [{"id": 1, "city": "Oslo"}, {"id": 2, "city": "Rome"}]
Step = tuple[list[str], str]
"""The arguments for one process of Python, and the expected output."""
STEPS: list[Step] = [
    (["-m", "deltalog", "create", "/trips", "--columns", "id bigint, city string"], ""),
    (["-m", "deltalog", "append", "/trips", "/rows.jsonl", "--json"], '"rows":2'),
    (["-m", "deltalog", "show", "/trips", "--where", "city = 'Rome'", "--json"], '{"id":2,"city":"Rome"}'),
    (
        [
            "-c",
            "from deltalog import DeltaTable; t = DeltaTable('/trips'); t.delete('id = 1'); print(t.count())",
        ],
        "1",
    ),
]
WITHOUT_DATAFUSION = """
import deltalog_datafusion
from deltalog.extras import ExtraRequiredError
try:
    deltalog_datafusion.table("/trips")
except ExtraRequiredError as error:
    print(error)
"""
IN_DATAFUSION = """
from datafusion import SessionContext
import deltalog_datafusion
context = SessionContext()
context.register_table("trips", deltalog_datafusion.table("/trips"))
print(context.sql("SELECT city FROM trips WHERE id > 1").to_pylist())
print(context.sql("INSERT INTO trips SELECT id + 10, city FROM trips").to_pylist())
print(context.sql("SELECT sum(id) AS ids FROM trips").to_pylist())
"""
STEPS_IN_DATAFUSION: list[Step] = [
    *STEPS[:2],
    (["-c", IN_DATAFUSION], "[{'city': 'Rome'}]\n[{'count': 2}]\n[{'ids': 26}]\n"),
]
PROGRAM = """
#include <dlfcn.h>
#include <stdio.h>
%s
int main(int count, char **arguments) {
    void *library = dlopen(arguments[1], RTLD_NOW);
    if (library && dlsym(library, "%s")) return 0;
    fprintf(stderr, "%%s\\n", dlerror());
    return 1;
}
"""


def identified(wheel: Path) -> tuple[Project, Target]:
    for project in PROJECTS:
        for target in LINUX.values():
            if wheel.name.startswith(f"{project.module}-") and wheel.name.endswith(f"-{target.tag}.whl"):
                return project, target
    raise RefusedError(f"{wheel.name} is not one of the wheels that are built on Linux")


def beside(wheel: Path) -> Path:
    """Returns the wheel of deltalog with which a wheel for DataFusion was built."""
    start = f"{DATAFUSION.module}-{DATAFUSION.prefix}"
    found = wheel.with_name(wheel.name.replace(start, f"{DELTALOG.module}-", 1))
    if not found.exists():
        raise RefusedError(f"{wheel.name} needs {found.name}, which is not in the same directory")
    return found


def emulator(target: Target, root: Path) -> list[str]:
    """Copies QEMU into a root directory, if it is needed. Returns the words that must precede commands in this
    directory.
    """
    host = PROCESSORS.get(platform.machine(), platform.machine())
    if target.debian == host:
        return []
    name = f"qemu-{target.triple.partition('-')[0]}-static"
    place = WORK / "qemu"
    if not (place / "usr/bin" / name).exists():
        Packages(WORK, host).unpack("qemu-user-static", place)
    shutil.copy(place / "usr/bin" / name, root / name)
    return [f"/{name}"]


class Bare:
    """A bare root directory with Python. Its Python has no packages, so a copy of pip is beside it."""

    def __init__(self, target: Target, root: Path) -> None:
        self.target = target
        self.root = root
        Packages(WORK, target.debian).unpack("python3", root)
        self.start = [*emulator(target, root), "/usr/bin/python3"]
        (root / "tmp").mkdir(exist_ok=True)
        import pip

        pip_of_this = Path(str(pip.__file__)).parent
        shutil.copytree(pip_of_this, root / "pip/pip", ignore=shutil.ignore_patterns("__pycache__"))
        (root / "wheels").mkdir()
        (root / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in ROWS))

    def python(self, *arguments: str) -> str:
        ran = inside(self.root, [*self.start, *arguments])
        if ran.returncode:
            said = (ran.stdout + ran.stderr).strip()
            raise RefusedError(
                f"in a bare root, python {' '.join(arguments)} ended with {ran.returncode}: {said}"
            )
        return ran.stdout

    def run(self, steps: list[Step]) -> None:
        for arguments, output in steps:
            if output not in (said := self.python(*arguments)):
                raise RefusedError(
                    f"in a bare root, python {' '.join(arguments)} printed {said!r}, not {output!r}"
                )

    def install(self, *wheels: Path, options: tuple[str, ...] = ()) -> None:
        for wheel in wheels:
            shutil.copy(wheel, self.root / "wheels" / wheel.name)
        call = "import sys; sys.path.insert(0, '/pip'); import runpy; runpy.run_module('pip', run_name='__main__')"
        always = ["--no-index", "--no-cache-dir", "--break-system-packages", "--root-user-action", "ignore"]
        names = [f"/wheels/{wheel.name}" for wheel in wheels]
        self.run([(["-c", call, "install", *always, *options, *names], "Successfully installed ")])

    def fetch(self, wheel: Path) -> None:
        """Fetches the wheels that a wheel requires, except deltalog's own, into the root directory."""
        with zipfile.ZipFile(wheel) as archive:
            [name] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
            required = message_from_bytes(archive.read(name)).get_all("Requires-Dist", [])
        others = [requirement for requirement in required if not requirement.startswith("deltalog")]
        version = self.python("-c", "import sys; print('%d.%d' % sys.version_info[:2])").strip()
        machine = self.target.triple.partition("-")[0]
        newest = self.python("-c", "import os; print(os.confstr('CS_GNU_LIBC_VERSION'))").split()[-1]
        platforms = [f"manylinux_2_{minor}_{machine}" for minor in range(17, int(newest.split(".")[1]) + 1)]
        options = ["--only-binary", ":all:", "--implementation", "cp", "--python-version", version]
        options += ["--abi", "cp" + version.replace(".", ""), "--abi", "abi3", "--abi", "none"]
        options += [
            part for name in (*platforms, f"manylinux2014_{machine}") for part in ("--platform", name)
        ]
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
        command += [*options, "--dest", str(self.root / "wheels"), *others]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        if ran.returncode:
            raise RefusedError(f"pip cannot fetch {', '.join(others)}: {ran.stderr.strip()}")


def try_on_glibc(project: Project, wheel: Path, target: Target, root: Path) -> None:
    """Installs a wheel in a bare root directory, and uses it."""
    bare = Bare(target, root)
    if project is DELTALOG:
        bare.install(wheel)
        bare.run(STEPS)
        return
    bare.install(beside(wheel))
    bare.install(wheel, options=("--no-deps",))
    bare.run([(["-c", WITHOUT_DATAFUSION], "pip install 'datafusion>=")])
    Packages(WORK, target.debian).unpack("libstdc++6", root)
    bare.fetch(wheel)
    bare.install(wheel, options=("--find-links", "/wheels", "--force-reinstall"))
    bare.run(STEPS_IN_DATAFUSION)


def try_on_musl(project: Project, wheel: Path, target: Target, root: Path) -> None:
    """Loads a wheel's binary with musl's loader, which resolves all symbols immediately."""
    Packages(WORK, target.debian).unpack("musl", root)
    with zipfile.ZipFile(wheel) as archive:
        (root / "module.so").write_bytes(archive.read(project.binary))
    symbols = sorted(
        name for name in Library.read(root / "module.so").undefined if name.startswith(("Py", "_Py"))
    )
    source = root / "program.c"
    declared = "\n".join(f"char {name}[4096];" for name in symbols)
    source.write_text(PROGRAM % (declared, project.entry_point))
    triple = target.triple.replace("-unknown", "")
    compiler = [str(ROOT / ".cache/release/venv/bin/python"), "-m", "ziglang", "cc", "-target", triple]
    # Without optimization, the program would contain zig's own runtime, which needs the newest musl.
    subprocess.run(
        [*compiler, "-O2", "-dynamic", "-rdynamic", "-o", str(root / "program"), str(source)], check=True
    )
    ran = inside(root, [*emulator(target, root), "/program", "/module.so"])
    if ran.returncode:
        raise RefusedError(f"musl cannot load the binary of {wheel.name}: {ran.stderr.strip()}")


def try_wheel(wheel: Path) -> None:
    """Tries out a wheel on this machine's processor, or on an emulated one."""
    project, target = identified(wheel)
    with tempfile.TemporaryDirectory(prefix="deltalog-root-") as directory:
        attempt = try_on_musl if target.is_musl else try_on_glibc
        attempt(project, wheel, target, Path(directory))


def main() -> None:
    parser = argparse.ArgumentParser(description="Try out wheels in an environment with nothing but Python.")
    parser.add_argument("wheels", nargs="+", type=Path, metavar="WHEEL")
    for wheel in parser.parse_args().wheels:
        try:
            try_wheel(wheel)
        except RefusedError as error:
            sys.exit(f"{wheel.name}: {error}")
        print(f"{wheel.name} works")


if __name__ == "__main__":
    main()
