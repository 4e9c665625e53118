"""Checks which libraries and symbols a wheel's binary needs on the machine that loads it. `readelf` of binutils
reports them.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from scripts.release.targets import Target

GLIBC = (2, 17)
"""The version of glibc that manylinux2014 requires. RHEL 7, Ubuntu 14.04 and Debian 8 have it."""
# manylinux2014 allows these libraries and a few more, which the binary does not need.
OF_GLIBC = re.compile(r"(lib(c|m|pthread|dl|rt|gcc_s)|ld-linux-(x86-64|aarch64))\.so\.\d")
OF_MUSL = re.compile(r"libc(\.musl-\w+)?\.so(\.1)?|libgcc_s\.so\.1")


@dataclass(frozen=True)
class Library:
    """The properties of a shared library, as `readelf` prints them."""

    machine: str
    needed: frozenset[str]
    versions: frozenset[str]
    """The versions of symbols that other libraries must have, such as `GLIBC_2.17`."""
    sections: frozenset[str]
    undefined: frozenset[str]
    """The symbols that other libraries, or Python, must have."""

    @classmethod
    def read(cls, file: Path) -> Library:
        command = [
            "readelf",
            "--wide",
            "--file-header",
            "--dynamic",
            "--version-info",
            "--sections",
            "--dyn-syms",
        ]
        ran = subprocess.run([*command, str(file)], capture_output=True, text=True, check=False)
        if ran.returncode or "Error:" in ran.stderr:
            raise ValueError(f"{file.name} is no shared library: {ran.stderr.strip()}")
        text = ran.stdout
        [machine] = re.findall(r"(?m)^ +Machine: +(.*)$", text)
        needs = text.partition("Version needs section")[2]
        return cls(
            machine.strip(),
            frozenset(re.findall(r"\(NEEDED\) +Shared library: \[(.*)\]", text)),
            frozenset(re.findall(r"Name: (\S+)", needs)),
            frozenset(re.findall(r"(?m)^ +\[ *\d+\] (\.\S+)", text)),
            frozenset(re.findall(r"(?m) UND ([^\s@]+)", text)),
        )


def problems(library: Library, target: Target) -> list[str]:
    """Returns reasons why a machine of this platform could not load a library, and things that should not be in the
    library.
    """
    found = []
    if library.machine != target.machine:
        found.append(f"it is for {library.machine}, not for {target.machine}")
    allowed = OF_MUSL if target.is_musl else OF_GLIBC
    found += [f"it needs {name}" for name in sorted(library.needed) if not allowed.fullmatch(name)]
    for version in sorted(library.versions):
        name, _, number = version.rpartition("_")
        if target.is_musl and name == "GLIBC":
            found.append(f"it needs {version}, which musl does not have")
        elif name == "GLIBC" and not re.fullmatch(r"[\d.]+", number):
            found.append(f"it needs {version}, which is private to glibc")
        elif name == "GLIBC" and tuple(map(int, number.split("."))) > GLIBC:
            found.append(f"it needs {version}, which is newer than {'.'.join(map(str, GLIBC))}")
    if ".symtab" in library.sections or any(name.startswith(".debug") for name in library.sections):
        found.append("it is not stripped")
    if "PyModule_Create2" not in library.undefined and "PyModuleDef_Init" not in library.undefined:
        found.append("it is no module of Python")
    return found
