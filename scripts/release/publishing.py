"""What a release sends to other machines: printed by default, and only done when asked."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

from scripts.release import checksums
from scripts.release.checkout import git
from scripts.release.errors import RefusedError
from scripts.release.version import Version


def commands(directory: Path, version: Version, branch: str, notes: Path) -> list[list[str]]:
    """Returns the commands, in an order in which what cannot be undone comes last."""
    files = sorted(str(file) for file in directory.iterdir())
    packages = [file for file in files if file.endswith((".whl", ".tar.gz"))]
    kind = ["--prerelease"] if version.candidate is not None else []
    described = ["--title", f"deltalog {version}", "--notes-file", str(notes)]
    return [
        ["git", "push", "--atomic", "origin", branch, version.tag],
        ["gh", "release", "create", version.tag, "--verify-tag", *kind, *described, *files],
        ["uv", "publish", *packages],
        ["cargo", "publish", "--locked", "--package", "deltalog"],
    ]


def check(root: Path, directory: Path, version: Version) -> None:
    """Refuses files that have changed since they were made or that are not signed, and another commit."""
    if git(root, "status", "--porcelain"):
        raise RefusedError("there are changes that are not committed; a release is published without them")
    if git(root, "rev-parse", "HEAD") != git(root, "rev-parse", f"{version.tag}^{{commit}}"):
        raise RefusedError(
            f"the newest commit is not the one of {version.tag}; publish from a branch that ends there"
        )
    if not (directory / checksums.NAME).is_file():
        raise RefusedError(f"there is no release in {directory}: make it first")
    if wrong := checksums.verify(directory):
        raise RefusedError(f"the files in {directory} have changed since they were made: {'; '.join(wrong)}")
    if problem := checksums.signature_problem(directory / checksums.NAME, root / checksums.SIGNERS):
        raise RefusedError(f"{checksums.NAME} has no valid signature, and is not published: {problem}")


def describe(steps: list[list[str]]) -> str:
    return "\n".join(f"  {shlex.join(step)}" for step in steps)


def publish(root: Path, steps: list[list[str]]) -> None:
    """Runs the commands. If one fails, those that remain are listed."""
    for number, step in enumerate(steps):
        print(f"$ {shlex.join(step)}", flush=True)
        try:
            ran = subprocess.run(step, cwd=root, check=False)
        except FileNotFoundError:
            raise RefusedError(
                f"{step[0]} is not installed. Not done yet:\n{describe(steps[number:])}"
            ) from None
        if ran.returncode:
            raise RefusedError(f"{step[0]} has failed. Not done yet:\n{describe(steps[number:])}")
