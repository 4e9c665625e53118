"""Creates bare root directories: a Debian package and its dependencies are unpacked, but not configured.

apt keeps its state in a separate directory, so the packages of this machine have no influence and are not changed. The
packages may be for another processor.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from scripts.release.errors import RefusedError


class Packages:
    """The packages that Debian has for a processor."""

    def __init__(self, directory: Path, architecture: str) -> None:
        if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
            raise RefusedError(
                "wheels are tried with Debian's packages: run this on Debian, or pass --untried"
            )
        self.directory = directory / architecture
        self.architecture = architecture
        (self.directory / "lists/partial").mkdir(parents=True, exist_ok=True)
        (self.directory / "status").touch()
        self._is_updated = False

    def _apt(self, archives: Path, *arguments: str) -> None:
        settings = {
            "APT::Architecture": self.architecture,
            "APT::Architectures": self.architecture,
            "APT::Sandbox::User": "",
            "Dir::State::lists": f"{self.directory}/lists",
            "Dir::State::status": f"{self.directory}/status",
            "Dir::Cache": str(self.directory),
            "Dir::Cache::archives": str(archives),
            "Debug::NoLocking": "true",
        }
        options = [part for name, value in settings.items() for part in ("-o", f"{name}={value}")]
        command = ["apt-get", "--quiet", "--quiet", *options, *arguments]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        if ran.returncode:
            raise RefusedError(f"apt-get {arguments[0]} has failed: {ran.stderr.strip()}")

    def unpack(self, package: str, root: Path) -> None:
        """Unpacks a package and its dependencies into a directory."""
        archives = self.directory / "archives" / package
        (archives / "partial").mkdir(parents=True, exist_ok=True)
        if not self._is_updated:
            self._apt(archives, "update")
            self._is_updated = True
        self._apt(archives, "autoclean")  # Removes outdated ones.
        self._apt(archives, "install", "--download-only", "--yes", "--no-install-recommends", package)
        root.mkdir(parents=True, exist_ok=True)
        for archive in sorted(archives.glob("*.deb")):
            content = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", str(archive)], stdout=subprocess.PIPE)
            options = ["--extract", "--keep-directory-symlink", "--no-same-owner", "--directory", str(root)]
            subprocess.run(["tar", *options], stdin=content.stdout, check=True)
            if content.wait():
                raise RefusedError(f"dpkg-deb cannot read {archive.name}")


def inside(root: Path, command: list[str]) -> subprocess.CompletedProcess[str]:
    """Runs a command with this directory as its root and with an empty environment."""
    user = [] if os.geteuid() == 0 else ["--map-root-user"]
    return subprocess.run(
        ["unshare", *user, "--root", str(root), "--wd", "/", *command],
        env={"PATH": "/usr/bin", "HOME": "/", "LANG": "C.UTF-8"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
