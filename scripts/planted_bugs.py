"""Plants known bugs into a copy of the crate, one at a time, and checks that the tests catch each of them.

    python scripts/planted_bugs.py [--only NAME] [--slice 1/4] [--check]     (Python 3.11 or newer)

`scripts/planted_bugs.toml` lists the defects, each as a piece of code to find and its replacement. The copy is built
once, with all defects in it, and an environment variable that is read at run time selects the active defect. If no
defect is active, the copy must pass the simulation. Each piece of code must be found exactly once. Otherwise the list
no longer fits the source, which is an error; `--check` checks only this.

The crates of the copy have a different version, because the copy shares the build directory, and so the compiled
dependencies, with the original crates. Cargo would otherwise confuse the two builds.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import tomllib

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / "scripts/planted_bugs.toml"
COPY = ROOT / "target/planted"
COPIED = ["Cargo.toml", "Cargo.lock", "README.md", "clippy.toml", "crates"]

# A defect's test must catch it within `SEEDS` seeds. If no defect is active, the simulation must pass `CLEAN_SEEDS`
# seeds. A test may take at most `SECONDS` seconds.
SEEDS = 2000
CLEAN_SEEDS = 60
SECONDS = 600

SWITCH = """//! The planted defect.

use std::sync::LazyLock;

static PLANTED: LazyLock<Option<String>> = LazyLock::new(|| std::env::var("DELTALOG_PLANTED").ok());

pub(crate) fn planted(name: &str) -> bool {
    PLANTED.as_deref() == Some(name)
}
"""


class PlantingError(Exception):
    """A defect cannot be planted."""


@dataclass(frozen=True)
class Defect:
    """A known defect: what is wrong with the code, and which test must catch it."""

    name: str
    file: str
    find: str
    put: str
    test: str = "simulation"
    only: str = "the_promises"

    def plant(self, text: str) -> str:
        """Returns `text` with the defect planted next to the original code, and a switch between the two."""
        found = text.count(self.find)
        if found != 1:
            raise PlantingError(f"{self.name}: {self.file} has {found} places of\n{self.find}")
        put = self.put.replace("PLANTED", f'crate::planted::planted("{self.name}")')
        return text.replace(self.find, put)


def defects() -> list[Defect]:
    """Reads the list of defects."""
    return [Defect(**fields) for fields in tomllib.loads(LIST.read_text("utf-8"))["defect"]]


def write(path: Path, content: bytes) -> None:
    """Writes a file unless it has this content, so that cargo builds only what has changed."""
    if not path.exists() or path.read_bytes() != content:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def planted(wanted: list[Defect]) -> dict[str, str]:
    """Returns the files that have defects, with their changed content."""
    texts: dict[str, str] = {}
    for defect in wanted:
        file = f"crates/deltalog/src/{defect.file}"
        if file not in texts:
            texts[file] = (ROOT / file).read_text("utf-8")
        texts[file] = defect.plant(texts[file])
    return texts


def renumbered(name: str, text: str) -> str:
    """Returns the text of a manifest or lock file in which the version of the crates has the suffix `+planted`."""
    pattern = (
        r'^(version = "[^"+]+)' if name == "Cargo.toml" else r'^(name = "deltalog[\w-]*"\nversion = "[^"+]+)'
    )
    text, count = re.subn(pattern, r"\1+planted", text, flags=re.MULTILINE)
    if count == 0:
        raise PlantingError(f"{name} does not contain the version of the crates")
    return text


def plant(wanted: list[Defect]) -> None:
    """Writes the copy of the workspace with all defects in it."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *COPIED],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    files = [name for name in listed.stdout.splitlines() if (ROOT / name).exists()]
    texts = planted(wanted)
    texts["crates/deltalog/src/planted.rs"] = SWITCH
    for name in ("Cargo.toml", "Cargo.lock"):
        texts[name] = renumbered(name, (ROOT / name).read_text("utf-8"))
    lib = "crates/deltalog/src/lib.rs"
    texts[lib] = texts.get(lib, (ROOT / lib).read_text("utf-8")) + "\nmod planted;\n"
    for name in files:
        if name not in texts:
            write(COPY / name, (ROOT / name).read_bytes())
    for name, text in texts.items():
        write(COPY / name, text.encode())
    for old in (COPY / "crates").rglob("*.rs"):
        if str(old.relative_to(COPY)) not in {*files, *texts}:
            old.unlink()


def build(tests: set[str]) -> dict[str, str]:
    """Builds the tests of the copy; returns the programs by the names of the tests.

    All members are selected, as in `cargo test --workspace`, so that dependencies that are already built are used
    again.
    """
    command = ["cargo", "test", "--workspace", "--locked", "--no-run", "--message-format=json"]
    for test in sorted(tests):
        command += ["--test", test]
    done = subprocess.run(
        [*command, "--target-dir", str(ROOT / "target")],
        cwd=COPY,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    messages = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {
        message["target"]["name"]: message["executable"]
        for message in messages
        if message.get("executable") and message["target"]["name"] in tests
    }


def run(program: str, only: str, planted: str = "") -> tuple[int, str, float]:
    """Runs a test program; returns its exit code, what it printed, and the seconds that it took."""
    environment = {name: value for name, value in os.environ.items() if name != "PROPTEST_RNG_SEED"}
    environment |= {"DELTALOG_PLANTED": planted, "DELTALOG_SEEDS": str(SEEDS if planted else CLEAN_SEEDS)}
    environment["RUST_BACKTRACE"] = "0"
    start = time.monotonic()
    try:
        done = subprocess.run(
            [program, *only.split()],
            cwd=COPY / "crates/deltalog",
            env=environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return -1, f"it took more than {SECONDS} s", time.monotonic() - start
    return done.returncode, done.stdout + done.stderr, time.monotonic() - start


def symptom(output: str) -> str:
    """Returns the line of a test's output that says what failed."""
    lines = output.splitlines()
    for number, line in enumerate(lines):
        if line.startswith("seed ") and line.endswith(" broke:"):
            return f"{line.removesuffix(' broke:')}: {lines[number + 1]}"
    return next((line for line in lines if line.endswith("... FAILED")), "")


def main() -> int:
    """Plants every defect, and prints which of them the tests catch."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", help="plant the defect with this name")
    parser.add_argument(
        "--slice", default="0/1", help="plant a part of the defects: 1/4 is the second of four parts"
    )
    parser.add_argument("--check", action="store_true", help="only check that every defect can be planted")
    options = parser.parse_args()
    known = defects()
    try:
        if options.check:
            planted(known)
            return 0
        plant(known)
    except PlantingError as error:
        print(error, file=sys.stderr)
        return 1
    programs = build({defect.test for defect in known})
    number, count = map(int, options.slice.split("/"))
    wanted = [
        defect
        for at, defect in enumerate(known)
        if (at % count == number if options.only is None else options.only == defect.name)
    ]
    missed = []
    code, output, seconds = run(programs["simulation"], "the_promises")
    print(f"{'nothing planted':<58} simulation   {seconds:5.1f} s  {'passes' if code == 0 else 'FAILS'}")
    if code != 0:
        print(output[-4000:])
        missed.append("nothing planted")
    for defect in wanted:
        code, output, seconds = run(programs[defect.test], defect.only, defect.name)
        # 101 is the exit code of a test program with failed tests.
        caught = code == 101
        print(
            f"{defect.name:<58} {defect.test:<12} {seconds:5.1f} s  {'caught' if caught else 'MISSED'}  ",
            end="",
        )
        print(symptom(output)[:160] if caught else output[-400:])
        if not caught:
            missed.append(defect.name)
    print(f"{len(wanted) - len(set(missed) - {'nothing planted'})} of {len(wanted)} defects are caught")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
