"""Publishes a release: prints the commands that upload it, and runs them only on request."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

from scripts.release import checksums
from scripts.release.checkout import git
from scripts.release.errors import RefusedError
from scripts.release.version import Version


def commands(directory: Path, version: Version, branch: str, notes: Path) -> list[list[str]]:
    """Returns the commands. Those that cannot be undone come last."""
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
    """Refuses to publish files that are unsigned or have changed since they were made, and a checkout at a different
    commit.
    """
    if git(root, "status", "--porcelain"):
        raise RefusedError(
            "there are uncommitted changes, which would not be in the release; commit or remove them"
        )
    if git(root, "rev-parse", "HEAD") != git(root, "rev-parse", f"{version.tag}^{{commit}}"):
        raise RefusedError(
            f"the newest commit is not the commit of {version.tag}; publish from a branch that ends there"
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
    """Runs the commands. If one fails, it lists the commands that have not run."""
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
