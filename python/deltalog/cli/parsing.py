"""The parser of a command, and its help."""

import argparse
import textwrap

from deltalog.cli.catalog import SUMMARIES
from deltalog.cli.output import style_of_terminal
from deltalog.cli.verb import Parser, Verb

__all__ = ["parser_of"]

_WIDEST = 100


def parser_of(name: str, verb: Verb) -> Parser:
    """Returns the parser of a command."""
    width = min(style_of_terminal().width or _WIDEST, _WIDEST)
    summary = SUMMARIES[name]
    paragraphs = [f"{summary[0].upper()}{summary[1:]}.", *verb.details.split("\n\n")]
    # The terminal breaks the lines of an example: they are copied as they are.
    examples = "\n".join(f"  {line}" for line in verb.examples)
    parser = Parser(
        prog=f"deltalog {name}",
        description="\n\n".join(textwrap.fill(text, width) for text in paragraphs if text),
        epilog=f"examples:\n{examples}",
        formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(
            prog, width=width, max_help_position=max(min(26, width // 2 - 4), 6)
        ),
        allow_abbrev=False,
    )
    verb.define(parser)
    if verb.has_json:
        forms = parser.add_mutually_exclusive_group()
        forms.add_argument(
            "--json", dest="form", action="store_const", const="json", help="print JSON, an object per line"
        )
        if verb.has_arrow:
            forms.add_argument(
                "--arrow",
                dest="form",
                action="store_const",
                const="arrow",
                help="write a stream of Arrow IPC",
            )
    parser.set_defaults(form="table")
    return parser
