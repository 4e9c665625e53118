"""`completion`: prints a script that makes a shell complete commands and options."""

import argparse

from deltalog.cli.output import Output
from deltalog.cli.shells import SHELLS, script_of
from deltalog.cli.verb import Arguments, Parser, Verb

__all__ = ["VERBS"]


def _define(parser: Parser) -> None:
    parser.add_argument("shell", metavar="SHELL", choices=SHELLS, help=f"one of {', '.join(SHELLS)}")


def _completion(arguments: Arguments, out: Output) -> None:
    from deltalog.cli.catalog import SUMMARIES, verb_of
    from deltalog.cli.parsing import parser_of

    options = {name: _options(parser_of(name, verb_of(name))) for name in SUMMARIES}
    out.lines(script_of(arguments.shell, SUMMARIES, options).splitlines())


def _options(parser: argparse.ArgumentParser) -> dict[str, str]:
    """Returns the long options of a command, each with its help."""
    return {
        option: (action.help or "").replace("%%", "%")
        for action in parser._actions
        for option in action.option_strings
        if option.startswith("--")
    }


VERBS: dict[str, Verb] = {
    "completion": Verb(
        _define,
        _completion,
        ("deltalog completion bash > deltalog.bash", "deltalog completion fish > deltalog.fish"),
        "For bash, add this line to ~/.bashrc: source <(deltalog completion bash). For zsh, save the script as "
        "_deltalog in a directory of fpath. For fish, save it as ~/.config/fish/completions/deltalog.fish.",
        has_json=False,
    ),
}
