"""Tests scripts/release: which files a release changes, what it refuses, its checksums and signatures, and
publishing.
"""

from __future__ import annotations

import argparse
import datetime
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from scripts.release import __main__ as command
from scripts.release import changelog, checksums
from scripts.release.builds import Builder
from scripts.release.checkout import git
from scripts.release.errors import RefusedError
from scripts.release.version import PLACES, Version, current, set_version

DATAFUSION = "crates/deltalog-datafusion"
FILES = (*PLACES, changelog.FILE, "Makefile", checksums.SIGNERS)
PERSON = {"NAME": "A Person", "EMAIL": "person@example.org"}


@pytest.fixture
def repository(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Creates a repository with copies of the files that a release changes."""
    place = tmp_path / "repository"
    for name in FILES:
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / name, place / name)
    (place / ".gitignore").write_text("/.cache\n")
    set_version(place, Version(0, 1, 0))
    (place / changelog.FILE).write_text("# Changelog\n\n## 0.1.0 (not released yet)\n\n- Tables.\n")
    for name, value in PERSON.items():
        monkeypatch.setenv(f"GIT_AUTHOR_{name}", value)
        monkeypatch.setenv(f"GIT_COMMITTER_{name}", value)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    git(place, "init", "--quiet", "--initial-branch", "main")
    committed(place)
    return place


def committed(place: Path) -> str:
    git(place, "add", "--all")
    git(place, "commit", "--quiet", "--message", "work")
    return git(place, "rev-parse", "HEAD")


@pytest.fixture
def key(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Creates a key that may sign releases, and sets the environment variable that names it."""
    made = new_key(tmp_path / "key")
    with (repository / checksums.SIGNERS).open("a") as signers:
        public = made.with_suffix(".pub").read_text()
        signers.write(f'{checksums.SIGNER} namespaces="{checksums.NAMESPACE},git" {public}')
    committed(repository)
    monkeypatch.setenv(checksums.KEY, str(made))
    return made


def new_key(place: Path) -> Path:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(place)], check=True)
    return place


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Replaces the functions that compile. Returns a list of the directories in which something was built."""
    places: list[Path] = []

    def build(builder: Builder, version: Version, options: argparse.Namespace) -> None:
        places.append(builder.place)
        assert current(builder.place) == version
        (builder.out / f"deltalog-{version}.tar.gz").write_bytes(b"sources")
        (builder.out / f"deltalog-{version}-cp310-abi3-any.whl").write_bytes(b"wheel")

    monkeypatch.setattr(command, "build", build)
    monkeypatch.setattr(command, "missing_tools", lambda root: [])
    return places


def refused(repository: Path, *arguments: str) -> str:
    """Makes a release that must be refused, and returns the reason. The repository must not change."""
    before = [
        git(repository, *words) for words in (("rev-parse", "HEAD"), ("status", "--porcelain"), ("tag",))
    ]
    with pytest.raises(SystemExit) as refusal:
        command.main(list(arguments), repository)
    after = [
        git(repository, *words) for words in (("rev-parse", "HEAD"), ("status", "--porcelain"), ("tag",))
    ]
    assert before == after
    assert not (repository / ".cache/release/tree").exists()
    return str(refusal.value)


def test_versions_have_an_order() -> None:
    texts = ["0.1.0-rc.2", "0.1.0-rc.10", "0.1.0", "0.1.1", "0.2.0", "0.10.0", "1.0.0-rc.1", "1.0.0"]
    versions = [Version.parse(text) for text in texts]
    assert sorted([*versions[4:], *versions[:4]]) == versions
    assert [str(version) for version in versions] == texts
    assert Version.parse("1.0.0-rc.1").of_python == "1.0.0rc1"


@pytest.mark.parametrize("text", ["", "1.0", "v1.0.0", "01.0.0", "1.0.0rc1", "1.0.0-beta", "1.0.0 "])
def test_invalid_versions_are_refused(text: str) -> None:
    with pytest.raises(RefusedError, match="is not a version: write it as"):
        Version.parse(text)


def test_the_version_is_set_everywhere(root: Path, repository: Path) -> None:
    set_version(repository, Version(7, 8, 9))
    packages: dict[str, str] = {}
    for workspace in (".", DATAFUSION):
        lock = (repository / workspace / "Cargo.lock").read_text()
        packages |= dict(re.findall(r'(?m)^name = "(deltalog[\w-]*)"\nversion = "(.*)"$', lock))
    manifests = {path.parent.name: path.read_text() for path in root.glob("crates/*/Cargo.toml")}
    wheel = (root / DATAFUSION / "python" / "Cargo.toml").read_text()
    names = {re.findall(r'(?m)^name = "(.*)"$', manifest)[0] for manifest in (*manifests.values(), wheel)}
    assert packages == dict.fromkeys(names, "7.8.9")
    del manifests["deltalog-datafusion"]  # This crate is a separate Cargo workspace.
    assert all("\nversion.workspace = true\n" in manifest for manifest in manifests.values())
    assert 'dynamic = ["version"]' in (root / "pyproject.toml").read_text()
    changed = [line.split("\t") for line in git(repository, "diff", "--numstat").splitlines()]
    assert changed == [
        ["3", "3", "Cargo.lock"],
        ["2", "2", "Cargo.toml"],
        ["3", "3", f"{DATAFUSION}/Cargo.lock"],
        ["2", "2", f"{DATAFUSION}/Cargo.toml"],
        ["3", "3", f"{DATAFUSION}/python/Cargo.toml"],
        ["2", "2", f"{DATAFUSION}/python/pyproject.toml"],
    ]


def test_the_places_of_the_version_must_agree(repository: Path) -> None:
    lock = repository / "Cargo.lock"
    before = lock.read_text()
    entry = '[[package]]\nname = "deltalog-python"\nversion = "0.1.0"'
    lock.write_text(before.replace(entry, entry.replace("0.1.0", "0.0.9")))
    committed(repository)
    told = refused(repository, "0.2.0", "--dry-run")
    assert "the files differ in the version: 0.1.0 in Cargo.lock and " in told
    assert ", 0.0.9 in Cargo.lock" in told
    lock.write_text(before.replace(entry, ""))
    committed(repository)
    assert "Cargo.lock has 0 texts like" in refused(repository, "0.2.0", "--dry-run")


def test_the_newest_entry_of_the_changelog_gets_version_and_date(repository: Path) -> None:
    file = repository / changelog.FILE
    date = datetime.date(2031, 2, 3)
    changelog.date_entry(repository, Version(0, 1, 0), date)
    assert file.read_text() == "# Changelog\n\n## 0.1.0 (2031-02-03)\n\n- Tables.\n"
    with pytest.raises(
        RefusedError, match=r"is '0\.1\.0 \(2031-02-03\)': describe 0\.2\.0 below '## Unreleased'"
    ):
        changelog.date_entry(repository, Version(0, 2, 0), date)
    file.write_text(f"## Unreleased\n\n- Rows.\n\n{file.read_text()}")
    changelog.date_entry(repository, Version(0, 2, 0, candidate=1), date)
    assert file.read_text().startswith("## Unreleased\n")
    changelog.date_entry(repository, Version(0, 2, 0), date)
    assert file.read_text().startswith("## 0.2.0 (2031-02-03)\n\n- Rows.\n\n# Changelog\n\n## 0.1.0 (2031")
    file.write_text("## Unreleased\n\n## 0.1.0 (2031-02-03)\n\n- Tables.\n")
    with pytest.raises(RefusedError, match=r"the entry 'Unreleased' of CHANGELOG\.md is empty"):
        changelog.entry(repository, Version(0, 2, 0))


def test_the_changelog_of_this_repository_can_be_released(root: Path) -> None:
    assert changelog.entry(root, current(root))


def test_a_checkout_that_is_not_clean_is_refused(repository: Path, builds: list[Path]) -> None:
    (repository / "new.txt").touch()
    assert "changes that are not committed; commit or remove them:\n?? new.txt" in refused(
        repository, "0.1.0", "--unsigned"
    )
    (repository / "new.txt").unlink()
    git(repository, "checkout", "--quiet", "--detach")
    assert "no branch is checked out" in refused(repository, "0.1.0", "--unsigned")
    assert builds == []


def test_versions_are_released_once_and_increase(repository: Path, builds: list[Path]) -> None:
    assert "0.0.9 is lower than 0.1.0, the version in Cargo.toml" in refused(
        repository, "0.0.9", "--unsigned"
    )
    assert "0.1.0-rc.1 is lower than 0.1.0" in refused(repository, "0.1.0-rc.1", "--unsigned")
    git(repository, "tag", "v0.1.0")
    assert "the tag v0.1.0 exists: 0.1.0 is released" in refused(repository, "0.1.0", "--unsigned")
    assert builds == []


def test_a_release_without_a_key_is_refused(
    repository: Path, builds: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(checksums.KEY, raising=False)
    assert "DELTALOG_SIGNING_KEY is not set: set it to the file of an SSH key" in refused(repository, "0.1.0")
    monkeypatch.setenv(checksums.KEY, str(tmp_path / "gone"))
    assert "there is no such file" in refused(repository, "0.1.0")
    monkeypatch.setenv(checksums.KEY, str(new_key(tmp_path / "stranger")))
    assert "stranger is not a key of release-signers" in refused(repository, "0.1.0")
    assert builds == []


def test_a_failed_build_leaves_everything_as_it_was(
    repository: Path, key: Path, builds: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(builder: Builder, *_: object) -> None:
        raise RefusedError("it does not compile")

    monkeypatch.setattr(command, "build", fails)
    assert refused(repository, "0.1.0") == "no release: it does not compile"
    assert current(repository) == Version(0, 1, 0)


def test_a_dry_run_shows_what_would_change(
    repository: Path, builds: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    (repository / changelog.FILE).write_text("## Unreleased\n\n- Rows.\n")
    made = committed(repository)
    command.main(["0.2.0", "--dry-run"], repository)
    shown = capsys.readouterr().out
    assert shown.count('+version = "0.2.0"') == 9
    assert "+## 0.2.0 (" in shown
    assert (builds, git(repository, "rev-parse", "HEAD"), git(repository, "tag")) == ([], made, "")


def test_a_rehearsal_makes_no_commit(repository: Path, key: Path, builds: list[Path]) -> None:
    before = git(repository, "rev-parse", "HEAD")
    command.main(["0.1.0", "--rehearse"], repository)
    assert len(builds) == 1
    assert (git(repository, "rev-parse", "HEAD"), git(repository, "tag")) == (before, "")
    assert checksums.verify(repository / ".cache/release/0.1.0") == []


def test_a_release_is_a_commit_a_tag_and_signed_checksums(
    repository: Path, key: Path, builds: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    (repository / changelog.FILE).write_text("## Unreleased\n\n- Rows.\n")
    before = committed(repository)
    command.main(["0.2.0"], repository)
    assert git(repository, "rev-parse", "main~") == before
    assert git(repository, "rev-parse", "v0.2.0^{commit}") == git(repository, "rev-parse", "main")
    assert git(repository, "status", "--porcelain") == ""
    assert current(repository) == Version(0, 2, 0)
    assert re.match(r"## 0\.2\.0 \(\d{4}-\d\d-\d\d\)\n", (repository / changelog.FILE).read_text())
    signers = repository / checksums.SIGNERS
    git(repository, "-c", f"gpg.ssh.allowedSignersFile={signers}", "tag", "--verify", "v0.2.0")
    made = repository / ".cache/release/0.2.0"
    assert checksums.verify(made) == []
    assert checksums.signature_problem(made / checksums.NAME, signers) is None
    said = capsys.readouterr().out
    assert "Nothing was uploaded. With --publish, these commands are run" in said
    assert "  git push --atomic origin main v0.2.0\n" in said


@pytest.fixture
def files(tmp_path: Path) -> Path:
    directory = tmp_path / "files"
    directory.mkdir()
    (directory / "a.whl").write_bytes(b"wheel")
    (directory / "b.tar.gz").write_bytes(b"sources")
    checksums.write(directory)
    return directory


Change = Callable[[Path], object]
CHANGES: dict[str, tuple[Change, str]] = {
    "a byte": (lambda d: (d / "a.whl").write_bytes(b"wheeL"), "a.whl has other bytes than SHA256SUMS says"),
    "a file less": (lambda d: (d / "b.tar.gz").unlink(), "b.tar.gz is missing"),
    "a file more": (lambda d: (d / "c.whl").touch(), "c.whl is not in SHA256SUMS"),
    "a line": (
        lambda d: (d / "SHA256SUMS").open("a").write("x\n"),
        "SHA256SUMS has a line that is not a digest: 'x'",
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_checksums_notice_a_change(files: Path, change: str) -> None:
    assert checksums.verify(files) == []
    apply, problem = CHANGES[change]
    apply(files)
    assert checksums.verify(files) == [problem]


def test_users_verify_with_the_programs_that_they_have(
    root: Path, files: Path, repository: Path, key: Path
) -> None:
    """Runs the commands that the documentation recommends. They must fail if a byte has changed."""
    page = (root / "docs/internals/releases.md").read_text()
    [block] = re.findall(r"```console\n(\$ ssh-keygen -Y verify.*?)```", page, re.DOTALL)
    commands = [line[2:] for line in block.splitlines() if line.startswith("$ ")]
    shutil.copy(repository / checksums.SIGNERS, files)
    (files / "release-signers").rename(files.parent / "release-signers")
    checksums.sign(files / checksums.NAME, key, files.parent / "release-signers")
    shutil.copy(files.parent / "release-signers", files)

    def run(text: str) -> int:
        return subprocess.run(["bash", "-c", text], cwd=files, check=False, capture_output=True).returncode

    assert [run(text) for text in commands] == [0, 0]
    (files / "a.whl").write_bytes(b"wheeL")
    assert run(commands[1]) != 0
    checksums.write(files)
    assert run(commands[1]) == 0
    assert run(commands[0]) != 0


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Replaces the programs that upload with one that records the name under which it was called. Returns the file of
    names.
    """
    (tmp_path / "bin").mkdir()
    for name in ("gh", "uv", "cargo"):
        program = tmp_path / "bin" / name
        program.write_text(
            f'#!/bin/sh\necho "{name} $1" >> {tmp_path}/uploads\ntest ! -e {tmp_path}/{name}-fails\n'
        )
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin{os.pathsep}{os.environ['PATH']}")
    return tmp_path / "uploads"


def test_a_release_is_published_when_asked(
    repository: Path, key: Path, builds: list[Path], programs: Path, tmp_path: Path
) -> None:
    origin = tmp_path / "origin"
    git(tmp_path, "init", "--quiet", "--bare", str(origin))
    git(repository, "remote", "add", "origin", str(origin))
    command.main(["0.1.0"], repository)
    assert not programs.exists()
    (tmp_path / "uv-fails").touch()
    assert re.search(
        r"uv has failed\. Not done yet:\n  uv publish .*\n  cargo", refused(repository, "0.1.0", "--publish")
    )
    (tmp_path / "uv-fails").unlink()
    programs.unlink()
    command.main(["0.1.0", "--publish"], repository)
    assert programs.read_text() == "gh release\nuv publish\ncargo publish\n"
    assert (
        git(origin, "rev-parse", "main", "v0.1.0^{commit}").split()
        == [git(repository, "rev-parse", "HEAD")] * 2
    )
    assert len(builds) == 1


def test_what_was_not_made_or_has_changed_is_not_published(
    repository: Path, key: Path, builds: list[Path], programs: Path
) -> None:
    command.main(["0.1.0"], repository)
    made = repository / ".cache/release/0.1.0"
    wheel = next(made.glob("*.whl"))
    wheel.write_bytes(b"other")
    assert f"{wheel.name} has other bytes" in refused(repository, "0.1.0", "--publish")
    checksums.write(made)
    assert "SHA256SUMS has no valid signature" in refused(repository, "0.1.0", "--publish")
    shutil.rmtree(made)
    assert "make it first" in refused(repository, "0.1.0", "--publish")
    (repository / "new.txt").touch()
    committed(repository)
    assert "the newest commit is not the commit of v0.1.0" in refused(repository, "0.1.0", "--publish")
    assert not programs.exists()


def test_arguments_that_contradict_each_other_are_refused(repository: Path) -> None:
    for words in (
        ["--unsigned", "--publish"],
        ["--target", "x86_64-unknown-linux-gnu"],
        ["--dry-run", "--publish"],
    ):
        with pytest.raises(SystemExit) as refusal:
            command.main(["0.1.0", *words], repository)
        assert refusal.value.code == 2
