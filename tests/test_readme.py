"""The Python blocks of a document run in order, in one session and in an empty directory. Then its commands run."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from tests.stores.s3_server import S3Server

COMMAND = re.compile(r"^\$ (deltalog [^|\n]+)\n((?:(?!\$ |```).*\n)*)", re.MULTILINE)
BLOCK = re.compile(r"^( *)```python\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)


DOCUMENTS = [
    "README",
    "OPERATING",
    "docs/moving/deltalake",
    "docs/moving/iceberg",
    "docs/moving/jvm-connector",
    "docs/plots",
    "docs/orchestration",
    "docs/spark",
    "docs/start",
    "docs/statements",
    "docs/stores",
    "docs/streams",
    "docs/tables",
    "docs/dask-ray-daft",
    "docs/tools",
    "docs/writes",
]


def program_of(text: str) -> str:
    """Returns the Python blocks as one program. Each block keeps its line number, so that tracebacks point into the
    document.
    """
    assert len(BLOCK.findall(text)) == text.count("```python") > 0
    program = ""
    for match in BLOCK.finditer(text):
        lines_before = text.count("\n", 0, match.start(2))
        program += "\n" * (lines_before - program.count("\n")) + dedent(match.group(2))
    return program


@pytest.mark.newest
def test_the_examples_have_types(root: Path, tmp_path: Path) -> None:
    """The examples pass `mypy --strict`."""
    pytest.importorskip("mypy")
    scripts = []
    for document in DOCUMENTS:
        scripts.append(tmp_path / f"{Path(document).name.lower()}_examples.py")
        scripts[-1].write_text(program_of((root / f"{document}.md").read_text()))
    settings = ["--strict", "--config-file", str(root / "pyproject.toml")]
    command = [sys.executable, "-m", "mypy", *settings, *map(str, scripts)]
    checked = subprocess.run(command, capture_output=True, text=True, cwd=root, check=False)
    assert checked.returncode == 0, checked.stdout


@pytest.mark.parametrize("document", DOCUMENTS)
def test_the_examples_run(root: Path, tmp_path: Path, document: str) -> None:
    """The environment has credentials for a store, which some examples need."""
    text = (root / f"{document}.md").read_text()
    program = program_of(text)
    script = tmp_path / "example.py"
    script.write_text(program)
    work = tmp_path / "work"
    work.mkdir()
    with S3Server() as store:
        store.create_bucket("lake")
        environment = os.environ | {name.upper(): value for name, value in store.options().items()}
        ran = subprocess.run(
            [sys.executable, script],
            capture_output=True,
            text=True,
            cwd=work,
            timeout=280,
            check=False,
            env=environment,
        )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    for command, output in COMMAND.findall(text):
        printed = run_command(work, command)
        assert printed == output or not output, f"{command} prints: {printed}"


def run_command(directory: Path, command: str) -> str:
    """Runs a `deltalog` command, and returns its output."""
    words = [sys.executable, "-m", *shlex.split(command)]
    ran = subprocess.run(words, capture_output=True, text=True, cwd=directory, timeout=60, check=False)
    assert ran.returncode == 0, f"{command}: {ran.stderr}"
    return ran.stdout


def test_no_document_with_examples_is_left_out(root: Path) -> None:
    pages = [*root.glob("*.md"), *root.glob("docs/**/*.md")]
    found = {
        str(page.relative_to(root).with_suffix(""))
        for page in pages
        if "```python" in page.read_text("utf-8")
    }
    assert found == set(DOCUMENTS)


LINK = re.compile(r"\]\(([^)#]*)(#[^)]*)?\)")


def test_extras_that_are_named_exist(root: Path) -> None:
    [extras] = re.findall(
        r"(?s)^\[project\.optional-dependencies\]\n(.*?)\n\n",
        (root / "pyproject.toml").read_text(),
        re.MULTILINE,
    )
    known = set(re.findall(r"(?m)^(\w+) = ", extras))
    texts = [*root.glob("*.md"), *root.glob("docs/**/*.md"), *root.glob("python/deltalog/**/*.py")]
    named = {name for file in texts for name in re.findall(r"'deltalog\[(\w+)\]'", file.read_text("utf-8"))}
    assert len(named) > 3
    assert named <= known


def test_links_lead_to_files(root: Path) -> None:
    """Checks the links between documents, and to their headings."""
    broken = []
    for page in [*root.glob("*.md"), *root.glob("docs/**/*.md")]:
        for target, heading in LINK.findall(page.read_text("utf-8")):
            if "://" in target:
                continue
            file = page.parent / target if target else page
            headings = {
                "#" + re.sub(r"[^\w\- ]", "", line.lstrip("# ").lower()).replace(" ", "-")
                for line in (
                    file.read_text("utf-8").splitlines() if file.suffix == ".md" and file.exists() else []
                )
                if line.startswith("#")
            }
            if not file.exists() or (heading and heading not in headings):
                broken.append(f"{page.relative_to(root)}: {target}{heading}")
    assert broken == []
