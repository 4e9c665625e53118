"""Makes a release.

    python -m scripts.release 0.2.0                what `make release VERSION=0.2.0` runs
    python -m scripts.release 0.2.0 --dry-run      runs the checks, and shows what would change
    python -m scripts.release --rehearse           builds and checks everything, but makes no commit and no tag
    python -m scripts.release 0.2.0 --publish      uploads the release, and makes it first if necessary

The files are left in `.cache/release/0.2.0`. Nothing is uploaded without `--publish`.
"""

from __future__ import annotations

import argparse
import datetime
import shutil
import sys
from pathlib import Path

from scripts.release import changelog, checkout, checksums, publishing, trial
from scripts.release.builds import Builder, missing_tools
from scripts.release.contents import check_all
from scripts.release.errors import RefusedError
from scripts.release.projects import PROJECTS
from scripts.release.targets import LINUX
from scripts.release.version import Version, current, set_version

ROOT = Path(__file__).resolve().parent.parent.parent


def arguments(given: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m scripts.release", description="Make a release.")
    parser.add_argument(
        "version",
        metavar="VERSION",
        nargs="?",
        help="such as 0.2.0, or 0.2.0-rc.1 for a candidate; for a rehearsal the default is the version in Cargo.toml",
    )
    modes = parser.add_mutually_exclusive_group()
    modes.add_argument("--dry-run", action="store_true", help="run the checks, and show what would change")
    modes.add_argument("--rehearse", action="store_true", help="build and check, without a commit and a tag")
    modes.add_argument("--publish", action="store_true", help="push and upload the release")
    parser.add_argument(
        "--unsigned", action="store_true", help=f"do without {checksums.KEY}, and never publish"
    )
    parser.add_argument("--untried", action="store_true", help="do not try out the wheels in bare roots")
    parser.add_argument("--target", action="append", choices=LINUX, help="with --rehearse: only these wheels")
    options = parser.parse_args(given)
    if options.unsigned and options.publish:
        parser.error("an unsigned release is not published")
    if options.version is None and not options.rehearse:
        parser.error("name the VERSION to release (make release VERSION=0.2.0)")
    if options.target and not options.rehearse:
        parser.error("a release has all wheels: --target needs --rehearse")
    return options


def make(root: Path, version: Version, options: argparse.Namespace) -> None:
    """Makes a release: checks, builds, signs and tags it."""
    checkout.check_clean(root)
    if not options.rehearse:
        checkout.check_version(root, version)
    changelog.entry(root, version)
    key = None if options.unsigned or options.dry_run else checksums.signing_key()
    if key:
        checksums.check_key(key, root / checksums.SIGNERS)
    if not options.dry_run and (missing := missing_tools(root)):
        raise RefusedError("the builds lack " + "; ".join(missing))
    work = root / ".cache/release"
    work.mkdir(parents=True, exist_ok=True)
    with checkout.tree(root, work / "tree") as place:
        set_version(place, version)
        changelog.date_entry(place, version, datetime.datetime.now(datetime.timezone.utc).date())
        if options.dry_run:
            print(checkout.git(place, "diff") or "no file changes")
            print(f"wheels: {', '.join(LINUX)}")
            return
        made = checkout.commit(place, version)
        out = work / str(version)
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir()
        build(Builder(root, place, out), version, options)
        sums = checksums.write(out)
        if key:
            checksums.sign(sums, key, place / checksums.SIGNERS)
        if not options.rehearse:
            checkout.finish(root, version, made, key)
    print(f"{out} has {version}{'' if key else ', unsigned'}")


def build(builder: Builder, version: Version, options: argparse.Namespace) -> None:
    """Builds the files of a release, checks them, and tries out the wheels."""
    targets = [LINUX[triple] for triple in options.target or LINUX]
    archives = {project: builder.sources(project) for project in PROJECTS}
    builder.crate()
    for target in targets:
        for project, archive in archives.items():
            wheel = builder.wheel(project, archive, target)
            if not options.untried:
                trial.try_wheel(wheel)
                print(f"{wheel.name} works")
    if wrong := check_all(builder.out, version, targets):
        raise RefusedError("the files are not fit for publication:\n" + "\n".join(wrong))


def upload(root: Path, version: Version, *, is_asked: bool) -> None:
    """Uploads a release, or only prints the commands that would upload it."""
    work = root / ".cache/release"
    if is_asked:
        publishing.check(root, work / str(version), version)
    notes = work / f"{version}.md"
    notes.write_text(changelog.entry(root, version), "utf-8")
    steps = publishing.commands(work / str(version), version, checkout.branch(root), notes)
    if is_asked:
        publishing.publish(root, steps)
    else:
        print(f"Nothing was uploaded. With --publish, these commands are run:\n{publishing.describe(steps)}")


def main(given: list[str] | None = None, root: Path = ROOT) -> None:
    options = arguments(given)
    try:
        version = Version.parse(options.version) if options.version else current(root)
        if not (options.publish and checkout.has_tag(root, version)):
            make(root, version, options)
        if not (options.dry_run or options.rehearse or options.unsigned):
            upload(root, version, is_asked=options.publish)
    except RefusedError as error:
        sys.exit(f"no release: {error}")


if __name__ == "__main__":
    main()
