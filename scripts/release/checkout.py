"""Checks the git repository for a release, creates the tree that is built, and makes the commit and the tag at the end.

- A release is built in a separate working tree, from commits alone, so files that are not in git cannot get into it.
- Until everything is built and checked, the checkout, its branch and its tags stay as they were.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from scripts.release.errors import RefusedError
from scripts.release.version import Version, current


def git(root: Path, *arguments: str) -> str:
    """Returns the output of a git command."""
    ran = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise RefusedError(f"git {' '.join(arguments)} has failed: {ran.stderr.strip()}")
    return ran.stdout.strip()


def branch(root: Path) -> str:
    name = git(root, "branch", "--show-current")
    if not name:
        raise RefusedError(
            "no branch is checked out, but a release is a commit on a branch; check out a branch"
        )
    return name


def has_tag(root: Path, version: Version) -> bool:
    return bool(git(root, "tag", "--list", version.tag))


def check_clean(root: Path) -> None:
    """Refuses a checkout with uncommitted changes, which would not become part of the release."""
    if changes := git(root, "status", "--porcelain"):
        raise RefusedError(f"there are changes that are not committed; commit or remove them:\n{changes}")


def check_version(root: Path, version: Version) -> None:
    """Refuses a version that has been released, or that is lower than the current one."""
    branch(root)
    if has_tag(root, version):
        raise RefusedError(f"the tag {version.tag} exists: {version} is released; choose a higher version")
    if version < (now := current(root)):
        raise RefusedError(f"{version} is lower than {now}, the version in Cargo.toml; choose a higher one")


@contextmanager
def tree(root: Path, place: Path) -> Iterator[Path]:
    """Creates a working tree with the files of the newest commit only, and removes it at the end."""
    git(root, "worktree", "prune")
    if place.exists():
        raise RefusedError(
            f"{place} exists: wait for the other release to end; if it was interrupted, "
            f"run `git worktree remove --force {place}`"
        )
    git(root, "worktree", "add", "--quiet", "--detach", str(place), "HEAD")
    try:
        yield place
    finally:
        git(root, "worktree", "remove", "--force", str(place))


def commit(place: Path, version: Version) -> str:
    """Commits the new version in the separate working tree. Returns the commit, which is not on a branch yet."""
    git(place, "commit", "--quiet", "--all", "--allow-empty", "--message", f"Release {version}")
    return git(place, "rev-parse", "HEAD")


def finish(root: Path, version: Version, made: str, key: Path | None) -> None:
    """Moves the branch to the commit of the release, and tags the commit. If there is a key, the tag is signed."""
    git(root, "merge", "--quiet", "--ff-only", made)
    message = f"deltalog {version}"
    signing = ["-c", "gpg.format=ssh", "-c", f"user.signingKey={key}"] if key else []
    git(root, *signing, "tag", "--sign" if key else "--annotate", "--message", message, version.tag, made)
