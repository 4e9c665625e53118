"""Builds the files of a release: the source archives and wheels of its Python packages, and a crate.

- All wheels are built from the source archives, which shows that the archives are complete.
- The binary contains no paths of the build machine, and the files in a wheel have the time of the commit.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

from scripts.release.checkout import git
from scripts.release.errors import RefusedError
from scripts.release.projects import Project
from scripts.release.targets import ELSEWHERE, LINUX, Target
from scripts.release.version import current


def run(command: list[str], directory: Path, environment: dict[str, str] | None = None) -> None:
    """Runs a command, whose output is shown."""
    print(f"$ {' '.join(command)}", flush=True)
    ran = subprocess.run(command, cwd=directory, env={**os.environ, **(environment or {})}, check=False)
    if ran.returncode:
        raise RefusedError(f"{command[0]} has failed with exit code {ran.returncode}")


class Builder:
    """Builds the files of a release in a separate working tree."""

    def __init__(self, checkout: Path, place: Path, out: Path) -> None:
        self.checkout = checkout
        self.place = place
        self.out = out
        self.work = checkout / ".cache/release"
        self.tools = self.work / "venv/bin"
        seconds = git(place, "show", "--no-patch", "--format=%ct", "HEAD")
        self.environment = {
            "PATH": f"{self.tools}{os.pathsep}{os.environ['PATH']}",
            "CARGO_TARGET_DIR": str(self.work / "target"),
            "CARGO_INCREMENTAL": "0",
            "SOURCE_DATE_EPOCH": seconds,
        }

    def sources(self, project: Project) -> Path:
        """Makes a source archive. It contains the licenses for all platforms and, if the package supports Spark, the
        Java classes for every Spark release.
        """
        platforms = [argument for triple in (*LINUX, *ELSEWHERE) for argument in ("--platform", triple)]
        what = [
            *platforms,
            "--crate",
            project.crate,
            "--manifest-path",
            project.manifest,
            project.licenses_here,
        ]
        run([sys.executable, "scripts/licenses.py", *what], self.place)
        if project.has_jars:
            self.make_jars()
        command = [str(self.tools / "maturin"), "sdist", "--out", str(self.out)]
        run(command, self.place / project.directory, self.environment)
        archive = self.out / project.sources_name(current(self.place))
        self.check_jars(project, archive)
        return archive

    def make_jars(self) -> None:
        shutil.rmtree(self.place / "python/deltalog/spark/jars", ignore_errors=True)
        for spark in (sparks := self.sparks()):
            run([self._python(spark, newest=sparks[-1]), "-m", "scripts.spark_jars", spark], self.place)

    def sparks(self) -> list[str]:
        """Returns the minor releases of Spark for which wheels have Java classes."""
        [found] = re.findall(r"(?m)^SPARKS := (.*)$", (self.place / "Makefile").read_text("utf-8"))
        return str(found).split()

    def check_jars(self, project: Project, archive: Path) -> None:
        if project.has_jars:
            run(
                [sys.executable, "-m", "scripts.spark_jars", "--check", str(archive), *self.sparks()],
                self.place,
            )

    def _python(self, spark: str, newest: str) -> str:
        return str(self.checkout / (".venv" if spark == newest else f".venvs/{spark}") / "bin/python")

    def wheel(self, project: Project, archive: Path, target: Target) -> Path:
        """Builds the wheel of a platform from the source archive."""
        source = self.work / "source"
        shutil.rmtree(source, ignore_errors=True)
        with tarfile.open(archive) as files:
            files.extractall(source, filter="data")
        [unpacked] = source.iterdir()
        before = set(self.out.glob("*.whl"))
        command = ["build", "--release", "--strip", "true", "--zig", "--target", target.triple]
        command += ["--compatibility", target.policy, "--out", str(self.out)]
        flags = {"RUSTFLAGS": " ".join((os.environ.get("RUSTFLAGS", ""), *remapped(source))).strip()}
        run([str(self.tools / "maturin"), *command], unpacked, {**self.environment, **flags})
        [made] = set(self.out.glob("*.whl")) - before
        shutil.rmtree(source)
        self.check_jars(project, made)
        return made

    def crate(self) -> Path:
        """Packages the crate that is published, and compiles the packaged crate."""
        run(["cargo", "package", "--locked", "--package", "deltalog"], self.place, self.environment)
        made = self.work / "target/package" / f"deltalog-{current(self.place)}.crate"
        return Path(shutil.copy(made, self.out))


def remapped(source: Path) -> list[str]:
    """Returns compiler options that make panic messages name `crates/arrow-1.0/src/lib.rs` instead of a path on this
    machine.
    """
    home = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo"))
    crates = [(str(directory), "crates") for directory in sorted((home / "registry/src").glob("*"))]
    return [
        f"--remap-path-prefix={place}={name}"
        for place, name in ((str(home), "cargo"), *crates, (str(source), "sources"))
    ]


def missing_tools(checkout: Path) -> list[str]:
    """Returns the tools that the builds need and that are missing, with the commands that install them."""
    missing = []
    if not (checkout / ".cache/release/venv/bin/maturin").exists():
        missing.append("maturin and zig: run `make .cache/release/venv/.deps`")
    command = ["rustc", "--print", "target-libdir", "--target"]
    for triple in LINUX:
        found = subprocess.run([*command, triple], capture_output=True, text=True, check=False)
        if found.returncode or not list(Path(found.stdout.strip()).glob("libcore-*.rlib")):
            missing.append(f"Rust's libraries for {triple}: run `rustup target add {triple}`")
    for program in ("readelf", "ssh-keygen"):
        if shutil.which(program) is None:
            missing.append(f"{program}: install binutils and OpenSSH")
    return missing
