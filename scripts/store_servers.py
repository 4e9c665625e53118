"""Installs object-store servers of other projects, which the tests of object stores start and talk to.

    python scripts/store_servers.py DIRECTORY

versitygw speaks S3, Azurite speaks Azure Blob Storage, fake-gcs-server speaks Google's JSON API, and dynalite
speaks DynamoDB. Azurite and dynalite are packages of npm, the others are Go modules; `npm` and `go` fetch them from
their configured registries. The directory appears only when it is complete. `crates/testkit/src/servers` starts what is
in it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

# The name of each program, its package and its version. Its own go.mod and go.sum determine the versions of the other
# modules.
GO_PROGRAMS = (
    ("versitygw", "github.com/versity/versitygw/cmd/versitygw", "v1.8.0"),
    ("fake-gcs-server", "github.com/fsouza/fake-gcs-server", "v1.56.1"),
)

# The newest versions that run on Node 20. Their dependencies are ranges of versions: the versions of this day were
# tested.
NPM_DAY = "2026-09-01"
# The directory of each package, which has its own packages, its version, and the program in it.
NPM_PACKAGES = (
    ("azurite", "azurite@3.35.0", "azurite/node_modules/azurite/dist/src/blob/main.js"),
    ("dynalite", "dynalite@4.0.0", "dynalite/node_modules/dynalite/cli.js"),
)


def program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise SystemExit(f"store_servers: no {name}; scripts/prerequisites.sh servers says how to install it")
    return found


def run(what: str, command: list[str], environment: dict[str, str]) -> None:
    ran = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | environment,
        timeout=1800,
        check=False,
    )
    if ran.returncode != 0:
        raise SystemExit(f"{ran.stdout}\nstore_servers: could not install {what}")


def install_go_programs(target: Path) -> None:
    go = program("go")
    for name, package, version in GO_PROGRAMS:
        # Builds without cgo, which they do not need, and without debug information.
        environment = {"GOBIN": str(target / "bin"), "CGO_ENABLED": "0"}
        command = [go, "install", "-trimpath", "-ldflags", "-s -w", f"{package}@{version}"]
        run(f"{name} {version}", command, environment)


def install_npm_packages(target: Path) -> None:
    npm = program("npm")
    for name, package, _ in NPM_PACKAGES:
        directory = target / name
        directory.mkdir()
        command = [npm, "install", "--prefix", str(directory), f"--before={NPM_DAY}"]
        # The packages work without the code that their install scripts would compile.
        command += ["--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock", package]
        run(package, command, {})


def install(target: Path) -> list[Path]:
    """Installs into a directory beside `target` and renames it, so that `target` is never incomplete."""
    program("node")
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".servers-") as scratch:
        servers = Path(scratch, "servers")
        servers.mkdir()
        install_npm_packages(servers)
        install_go_programs(servers)
        programs = [Path("bin", name) for name, _, _ in GO_PROGRAMS]
        programs += [Path(path) for _, _, path in NPM_PACKAGES]
        missing = [str(path) for path in programs if not (servers / path).is_file()]
        if missing:
            raise SystemExit(f"store_servers: the packages contain no {', '.join(missing)}")
        if target.exists():
            shutil.rmtree(target)
        servers.rename(target)
    return [target / path for path in programs]


def main() -> None:
    parser = argparse.ArgumentParser(description="Install object-store servers for the tests.")
    parser.add_argument("directory", type=Path, help="directory for the servers; replaced")
    for path in install(parser.parse_args().directory.resolve()):
        print(path)


if __name__ == "__main__":
    main()
