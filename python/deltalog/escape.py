"""Makes strings from tables safe to print in a terminal or page.

A table may come from an untrusted source. Its values, names and paths must not move the cursor, change colors, or
imitate other text. So control characters, line breaks, invisible characters and characters that change the direction of
text are written as escapes such as `\\x1b`.
"""

import re

__all__ = ["visible"]

# Control characters, the soft hyphen, directional marks and overrides, line and paragraph separators, and characters
# without a glyph. Zero-width joiners are kept, because some scripts and emoji need them.
_HIDDEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff0-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e0fff]"
)


def visible(text: str) -> str:
    """Returns the string on one line, with escapes instead of control characters and invisible characters."""
    if text.isascii() and text.isprintable():
        return text
    return _HIDDEN.sub(_escape, text)


def _escape(found: "re.Match[str]") -> str:
    return found[0].encode("unicode_escape").decode("ascii")
