"""Lists the platforms for which a release has wheels, and which of the wheels are built on a Linux machine."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """A platform whose wheel is built with zig, which brings the headers and libraries of all these platforms."""

    triple: str
    """The name of the platform in Rust."""
    policy: str
    """The oldest C library that the wheel supports, as maturin and auditwheel spell it."""
    tag: str
    """The end of the wheel's file name: the tags of its platform, sorted."""
    machine: str
    """The name of the processor in the output of `readelf`."""
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
# The wheels for these platforms are built from the source archive by .github/workflows/release.yml.
ELSEWHERE = ("aarch64-apple-darwin", "x86_64-apple-darwin", "x86_64-pc-windows-msvc")
