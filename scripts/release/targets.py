"""The platforms that a release has wheels for, and which of them are built on a Linux machine."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """A platform whose wheel is built with zig, which has the headers and libraries of all of them."""

    triple: str
    """The name of the platform in Rust."""
    policy: str
    """The oldest C library that the wheel is for, as maturin and auditwheel call it."""
    tag: str
    """What the name of the wheel ends with: the tags of its platform, sorted."""
    machine: str
    """What `readelf` calls the processor."""
    debian: str
    """The name of the processor in Debian."""

    @property
    def is_musl(self) -> bool:
        return self.triple.endswith("-musl")


LINUX = {
    target.triple: target
    for target in (
        Target(
            "x86_64-unknown-linux-gnu",
            "manylinux2014",
            "manylinux2014_x86_64.manylinux_2_17_x86_64",
            "Advanced Micro Devices X86-64",
            "amd64",
        ),
        Target(
            "aarch64-unknown-linux-gnu",
            "manylinux2014",
            "manylinux2014_aarch64.manylinux_2_17_aarch64",
            "AArch64",
            "arm64",
        ),
        Target(
            "x86_64-unknown-linux-musl",
            "musllinux_1_2",
            "musllinux_1_2_x86_64",
            "Advanced Micro Devices X86-64",
            "amd64",
        ),
        Target("aarch64-unknown-linux-musl", "musllinux_1_2", "musllinux_1_2_aarch64", "AArch64", "arm64"),
    )
}
# Their wheels are built by .github/workflows/release.yml, from the source archive.
ELSEWHERE = ("aarch64-apple-darwin", "x86_64-apple-darwin", "x86_64-pc-windows-msvc")
