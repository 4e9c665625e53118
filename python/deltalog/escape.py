"""Makes text of tables safe to show to people.

A table may come from a stranger. Its values, names and paths must not move the cursor, change colors, or look like
other text: control characters, line breaks, and characters that are not visible or change the direction of others are
written as escapes such as `\\x1b`.
"""

import re

__all__ = ["visible"]

# Control characters, the soft hyphen, marks and overrides of direction, separators of lines and paragraphs, and
# characters without a glyph. Joiners stay, as scripts and emoji need them.
_HIDDEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff0-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e0fff]"
)


def visible(text: str) -> str:
    """Returns the text on one line, with escapes instead of characters that a terminal would obey or hide."""
    if text.isascii() and text.isprintable():
        return text
    return _HIDDEN.sub(_escape, text)


def _escape(found: "re.Match[str]") -> str:
    return found[0].encode("unicode_escape").decode("ascii")
