"""Checks that comments, docstrings, messages and pages do not contain phrases that make English hard to read.

The phrases are typical of translated English. It is better to rewrite the whole sentence than to replace the phrase,
so the hints are only a start. Quoted text and code may contain the phrases.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

PHRASES = {
    "that of|those of": 'name the thing again, or use a genitive, as in "the table\'s"',
    "of which|of whose": "begin a new sentence, or use 'whose', 'with' or 'where'",
    "whoever|nobody|no one": "say who it is, or say it of the thing",
    "meanwhile": "use 'concurrently' or 'while it runs', or leave it out",
    "others (?:write|have|read|may|can)": "use 'other writers' or 'another writer'",
    "anew": "use 'again', or say what starts over",
    "in the place of": "use 'instead of' or 'replaces'",
    "what (?:becomes?|became|has become|came) of": "use 'the outcome of' or 'what happens to'",
    "what (?:there is|is there)": "name the things that exist",
    "gives? way|gone on|got over|so to speak": "use a plain verb, such as 'yields' or 'continues'",
}
# A phrase may continue on the next line.
PATTERNS = {
    re.compile(rf"\b(?:{phrases})\b".replace(" ", r"\s+"), re.IGNORECASE): hint
    for phrases, hint in PHRASES.items()
}

QUOTED = re.compile(r'"[^"]*"|`[^`]*`')
COMMENT = re.compile(r"[ \t]*(?:///|//!|//|/\*\*|\*|#) (.*)")
DOCSTRING = re.compile(r'""".*?"""', re.DOTALL)
MESSAGE = re.compile(r'"[a-z][^"\n]{30,}"')
FENCE = re.compile(r"^ *```.*?^ *```", re.DOTALL | re.MULTILINE)


def texts(file: Path) -> Iterator[tuple[int, str]]:
    """Yields the texts in a file that are meant for people, each with the number of its first line."""
    content = file.read_text("utf-8")
    if file.suffix == ".md":
        yield 1, QUOTED.sub(_blank, FENCE.sub(_blank, content))
        return
    found = [
        *MESSAGE.finditer(content),
        *(DOCSTRING.finditer(content) if file.suffix in (".py", ".pyi") else ()),
    ]
    for text in found:
        inner = text[0].strip('"')
        yield content.count("\n", 0, text.start()) + 1, QUOTED.sub(_blank, inner)
    block: list[str] = []
    for number, line in enumerate([*content.split("\n"), ""], 1):
        if comment := COMMENT.match(line):
            block.append(comment[1])
        elif block:
            yield number - len(block), QUOTED.sub(_blank, "\n".join(block))
            block = []


def _blank(match: re.Match[str]) -> str:
    """Returns a string with the same number of line breaks as the match, so that later lines keep their numbers."""
    return '"' + "\n" * match[0].count("\n") + '"'


def phrases(file: Path) -> list[str]:
    """Returns a message for each phrase of `file`."""
    return [
        f"{file}:{first + text.count(chr(10), 0, match.start())}: '{' '.join(match[0].split())}': {hint}"
        for first, text in texts(file)
        for pattern, hint in PATTERNS.items()
        for match in pattern.finditer(text)
    ]


def main() -> None:
    command = ["git", "ls-files", "*.rs", "*.java", "*.py", "*.pyi", "*.md"]
    files = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    this = Path(__file__).name
    messages = [message for file in files if Path(file).name != this for message in phrases(Path(file))]
    if messages:
        sys.exit("\n".join(messages))


if __name__ == "__main__":
    main()
