"""Builds the parser of a command, with its help."""

import argparse
import textwrap

from deltalog.cli.catalog import SUMMARIES
from deltalog.cli.output import style_of_terminal
from deltalog.cli.verb import Parser, Verb

__all__ = ["parser_of"]

_WIDEST = 100


def parser_of(name: str, verb: Verb) -> Parser:
    """Returns the parser for the arguments of a command."""
    width = min(style_of_terminal().width or _WIDEST, _WIDEST)
    summary = SUMMARIES[name]
    paragraphs = [f"{summary[0].upper()}{summary[1:]}.", *verb.details.split("\n\n")]
    # Examples are not wrapped, so that they can be copied.
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
            "--json", dest="form", action="store_const", const="json", help="print JSON, one object per line"
        )
        if verb.has_arrow:
            forms.add_argument(
                "--arrow",
                dest="form",
                action="store_const",
                const="arrow",
                help="write an Arrow IPC stream",
            )
    parser.set_defaults(form="table")
    return parser
