"""Installs object-store servers of other projects for the tests of object stores.

    python scripts/store_servers.py DIRECTORY

versitygw speaks S3, Azurite speaks Azure Blob Storage, fake-gcs-server speaks Google's JSON API, and dynalite
speaks DynamoDB. Azurite and dynalite are npm packages, and the other two are Go modules; `npm` and `go` fetch them
from their configured registries. The directory is created only once everything is installed.
`crates/testkit/src/servers` starts the servers from it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

# The name of each Go program, its package and its version.
# The go.mod and go.sum of the package determine the versions of the modules that it uses.
GO_PROGRAMS = (
    ("versitygw", "github.com/versity/versitygw/cmd/versitygw", "v1.8.0"),
    ("fake-gcs-server", "github.com/fsouza/fake-gcs-server", "v1.56.1"),
)

# The packages below are the newest versions that run on Node 20. They accept ranges of versions of their dependencies.
# npm installs the versions that were the newest on this day, because the tests were developed with them.
NPM_DAY = "2026-09-01"
# For each npm package: the directory in which it is installed with its dependencies, its version, and its program.
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
        # The programs are built without debug information, and without cgo, which they do not need.
        environment = {"GOBIN": str(target / "bin"), "CGO_ENABLED": "0"}
        command = [go, "install", "-trimpath", "-ldflags", "-s -w", f"{package}@{version}"]
        run(f"{name} {version}", command, environment)


def install_npm_packages(target: Path) -> None:
    npm = program("npm")
    for name, package, _ in NPM_PACKAGES:
        directory = target / name
        directory.mkdir()
        command = [npm, "install", "--prefix", str(directory), f"--before={NPM_DAY}"]
        # The install scripts of the packages are not run: the native code that they would compile is optional.
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
