"""Checks that lines of Rust, Java, Markdown and shell files have at most 120 characters. Ruff checks Python files.

Lines that consist of a URL, and Markdown's tables and code fences, may be longer.
"""

import re
import subprocess
import sys
from pathlib import Path

LONGEST = 120
URL = re.compile(r"(\W*|\[[^]]+\]:\s*)<?https?://\S+")
FENCE = re.compile(r"\s*(```|~~~)")


def long_lines(file: Path) -> list[str]:
    """Returns a message for each line of `file` that is too long."""
    is_markdown, is_fenced, messages = file.suffix == ".md", False, []
    for number, line in enumerate(file.read_text("utf-8").split("\n"), 1):
        if is_markdown and FENCE.match(line):
            is_fenced = not is_fenced
        is_exempt = is_fenced or (is_markdown and line.startswith("|")) or URL.fullmatch(line)
        if len(line) > LONGEST and not is_exempt:
            messages.append(
                f"{file}:{number}: the line has {len(line)} characters; at most {LONGEST} are allowed"
            )
    return messages


def main() -> None:
    command = ["git", "ls-files", "*.rs", "*.java", "*.md", "*.sh"]
    files = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    messages = [message for file in files for message in long_lines(Path(file))]
    if messages:
        sys.exit("\n".join(messages))


if __name__ == "__main__":
    main()
