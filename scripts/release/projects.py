"""Lists the Python packages of a release.

Each has a source archive, from which its wheels are built. The package for DataFusion is a separate one, because it
changes with each major version of DataFusion, and because its crates are large. It has its own source archive, because
a package index has one for each package. This archive contains the crate `deltalog`, so it can be built by itself.
"""

from __future__ import annotations

from dataclasses import dataclass

from scripts.release.targets import Target
from scripts.release.version import DATAFUSION_MAJOR, Version


@dataclass(frozen=True)
class Project:
    """A Python package."""

    name: str
    directory: str
    """The directory with its pyproject.toml, in the repository."""
    python: str
    """The directory of the repository that contains its directory of Python files."""
    manifest: str
    """The Cargo.toml of its binary, in the repository."""
    binary: str
    """The name of its binary in its wheels."""
    crate: str
    """The crate of its binary."""
    linked: tuple[str, ...]
    """Some crates that its bill of materials and its list of licenses must contain."""
    in_sources: tuple[str, ...]
    """Some files of its source archive."""
    prefix: str = ""
    """The text that precedes the version of the release in its own version."""
    has_jars: bool = False

    def version(self, release: Version) -> str:
        return f"{self.prefix}{release.of_python}"

    def stem(self, release: Version) -> str:
        """Returns the name of its files, without what follows the version."""
        return f"{self.module}-{self.version(release)}"

    def sources_name(self, release: Version) -> str:
        return f"{self.stem(release)}.tar.gz"

    def wheel_name(self, release: Version, target: Target) -> str:
        return f"{self.stem(release)}-cp310-abi3-{target.tag}.whl"

    @property
    def module(self) -> str:
        return self.name.replace("-", "_")

    @property
    def licenses(self) -> str:
        """The file in its wheels that contains the licenses of other people's code."""
        return f"{self.module}/THIRD_PARTY_LICENSES.txt"

    @property
    def licenses_here(self) -> str:
        """The same file in the repository."""
        return f"{self.python}/{self.licenses}"

    @property
    def entry_point(self) -> str:
        """The function in its binary that Python calls."""
        return f"PyInit_{self.binary.rpartition('/')[2].partition('.')[0]}"


DELTALOG = Project(
    name="deltalog",
    directory=".",
    python="python",
    manifest="crates/deltalog-python/Cargo.toml",
    binary="deltalog/_internal.abi3.so",
    crate="deltalog-python",
    linked=("arrow", "parquet", "zstd-sys"),
    in_sources=(
        "Cargo.lock",
        "Cargo.toml",
        "LICENSE",
        "PKG-INFO",
        "README.md",
        "crates/deltalog/src/lib.rs",
        "pyproject.toml",
        "python/deltalog/THIRD_PARTY_LICENSES.txt",
        "python/deltalog/__init__.py",
        "python/deltalog/py.typed",
    ),
    has_jars=True,
)
DATAFUSION = Project(
    name="deltalog-datafusion",
    directory="crates/deltalog-datafusion/python",
    python="crates/deltalog-datafusion/python",
    manifest="crates/deltalog-datafusion/python/Cargo.toml",
    binary="deltalog_datafusion/_datafusion.abi3.so",
    crate="deltalog-datafusion-python",
    linked=("arrow", "datafusion-ffi", "parquet", "zstd-sys"),
    in_sources=(
        "LICENSE",
        "PKG-INFO",
        "README.md",
        "deltalog-datafusion/Cargo.lock",
        "deltalog-datafusion/python/src/lib.rs",
        "deltalog-datafusion/src/lib.rs",
        "deltalog/src/lib.rs",
        "deltalog_datafusion/THIRD_PARTY_LICENSES.txt",
        "deltalog_datafusion/__init__.py",
        "deltalog_datafusion/py.typed",
        "pyproject.toml",
    ),
    prefix=f"{DATAFUSION_MAJOR}.",
)
PROJECTS = (DELTALOG, DATAFUSION)
