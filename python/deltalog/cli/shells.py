"""Generates scripts with which shells complete commands, options and file names."""

from collections.abc import Iterator, Mapping

__all__ = ["SHELLS", "script_of"]

SHELLS = ("bash", "zsh", "fish")

_Options = Mapping[str, Mapping[str, str]]


def script_of(shell: str, commands: Mapping[str, str], options: _Options) -> str:
    """Returns the script for a shell.

    Args:
        shell: one of `SHELLS`.
        commands: the commands, each with a summary.
        options: the options of each command, each with its help.
    """
    scripts = {"bash": _bash, "zsh": _zsh, "fish": _fish}
    return "\n".join(scripts[shell](commands, options))


def _quoted(text: str) -> str:
    """Returns a string in single quotes. Quotes and backslashes are dropped, because each shell escapes them
    differently.
    """
    return "'" + text.replace("\\", "").replace("'", "") + "'"


def _bash(commands: Mapping[str, str], options: _Options) -> Iterator[str]:
    yield "_deltalog() {"
    yield "    local word=${COMP_WORDS[COMP_CWORD]} options="
    yield "    if [ $COMP_CWORD -eq 1 ]; then"
    yield f'        COMPREPLY=($(compgen -W {_quoted(" ".join(commands))} -- "$word"))'
    yield "        return"
    yield "    fi"
    yield "    case ${COMP_WORDS[1]} in"
    for name, known in options.items():
        yield f"        {name}) options={_quoted(' '.join(known))} ;;"
    yield "    esac"
    yield "    case $word in"
    yield '        -*) COMPREPLY=($(compgen -W "$options" -- "$word")) ;;'
    yield '        *) COMPREPLY=($(compgen -f -- "$word")) ;;'
    yield "    esac"
    yield "}"
    yield "complete -o filenames -F _deltalog deltalog"


def _zsh(commands: Mapping[str, str], options: _Options) -> Iterator[str]:
    yield "#compdef deltalog"
    yield "_deltalog() {"
    yield "    local -a choices"
    yield "    if (( CURRENT == 2 )); then"
    yield "        choices=("
    for name, summary in commands.items():
        yield f"            {_quoted(f'{name}:{summary}')}"
    yield "        )"
    yield "        _describe command choices"
    yield "        return"
    yield "    fi"
    yield "    case $words[2] in"
    for name, known in options.items():
        listed = " ".join(_quoted(f"{option}:{text}") for option, text in known.items())
        yield f"        {name}) choices=({listed}) ;;"
    yield "    esac"
    yield "    if [[ $PREFIX == -* ]]; then"
    yield "        _describe option choices"
    yield "    else"
    yield "        _files"
    yield "    fi"
    yield "}"
    yield "compdef _deltalog deltalog"


def _fish(commands: Mapping[str, str], options: _Options) -> Iterator[str]:
    for name, summary in commands.items():
        yield f"complete -c deltalog -f -n __fish_use_subcommand -a {name} -d {_quoted(summary)}"
    for name, known in options.items():
        for option, text in known.items():
            seen = f"'__fish_seen_subcommand_from {name}'"
            yield f"complete -c deltalog -n {seen} -l {option.removeprefix('--')} -d {_quoted(text)}"
