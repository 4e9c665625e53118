"""Tries out wheels in an environment with nothing but Python: `python -m scripts.release.trial WHEEL...`.

- A wheel for glibc is installed with pip, without an index, into a bare root directory with Debian's Python
  (scripts/release/roots.py), and then used on a table. The root directory has no shell, no /proc and no /dev.
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
from pathlib import Path

from scripts.release.contents import BINARY
from scripts.release.errors import RefusedError
from scripts.release.library import Library
from scripts.release.roots import Packages, inside
from scripts.release.targets import LINUX, Target

ROOT = Path(__file__).resolve().parent.parent.parent
WORK = ROOT / ".cache/release/roots"
PROCESSORS = {"x86_64": "amd64", "aarch64": "arm64"}
ROWS = [{"id": 1, "city": "Oslo"}, {"id": 2, "city": "Rome"}]
# Each entry is run as one process: the arguments for Python, and the expected output.
STEPS: list[tuple[list[str], str]] = [
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
PROGRAM = """
#include <dlfcn.h>
#include <stdio.h>
%s
int main(int count, char **arguments) {
    void *library = dlopen(arguments[1], RTLD_NOW);
    if (library && dlsym(library, "PyInit__internal")) return 0;
    fprintf(stderr, "%%s\\n", dlerror());
    return 1;
}
"""


def target_of(wheel: Path) -> Target:
    for target in LINUX.values():
        if wheel.name.endswith(f"-{target.tag}.whl"):
            return target
    raise RefusedError(f"{wheel.name} is not one of the wheels that are built on Linux")


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


def try_on_glibc(wheel: Path, target: Target, root: Path) -> None:
    """Installs a wheel in a bare root directory, and uses it."""
    Packages(WORK, target.debian).unpack("python3", root)
    start = [*emulator(target, root), "/usr/bin/python3"]
    (root / "tmp").mkdir(exist_ok=True)
    import pip

    pip_of_this = Path(str(pip.__file__)).parent
    shutil.copytree(pip_of_this, root / "pip/pip", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(wheel, root / wheel.name)
    (root / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in ROWS))
    install = (
        "import sys; sys.path.insert(0, '/pip'); import runpy; runpy.run_module('pip', run_name='__main__')"
    )
    options = ["--no-index", "--no-cache-dir", "--break-system-packages", "--root-user-action", "ignore"]
    steps = [
        (["-c", install, "install", *options, f"/{wheel.name}"], "Successfully installed deltalog"),
        *STEPS,
    ]
    for arguments, output in steps:
        ran = inside(root, [*start, *arguments])
        if ran.returncode or output not in ran.stdout:
            said = (ran.stdout + ran.stderr).strip()
            raise RefusedError(
                f"in a bare root, python {' '.join(arguments)} ended with {ran.returncode}: {said}"
            )


def try_on_musl(wheel: Path, target: Target, root: Path) -> None:
    """Loads a wheel's binary with musl's loader, which resolves all symbols immediately."""
    Packages(WORK, target.debian).unpack("musl", root)
    with zipfile.ZipFile(wheel) as archive:
        (root / "module.so").write_bytes(archive.read(BINARY))
    symbols = sorted(
        name for name in Library.read(root / "module.so").undefined if name.startswith(("Py", "_Py"))
    )
    source = root / "program.c"
    source.write_text(PROGRAM % "\n".join(f"char {name}[4096];" for name in symbols))
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
    target = target_of(wheel)
    with tempfile.TemporaryDirectory(prefix="deltalog-root-") as directory:
        attempt = try_on_musl if target.is_musl else try_on_glibc
        attempt(wheel, target, Path(directory))


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
