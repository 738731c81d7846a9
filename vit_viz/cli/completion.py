"""What lets a shell complete the commands, their options and their choices; made from the parser."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator

SHELLS = ("bash", "zsh", "fish")

_BASH = """\
_vit_viz() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}" command="${{COMP_WORDS[1]}}" words=""
    [ "$COMP_CWORD" -eq 1 ] && command=""
    case "$command $before" in
{choices}
    esac
    if [ -z "$words" ]; then
        case "$command" in
{options}
        esac
        [ -n "$command" ] && [[ "$word" != -* ]] && words=""
    fi
    COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o default -F _vit_viz vit-viz
"""


def script(parser: argparse.ArgumentParser, shell: str) -> str:
    """The text that a shell evaluates."""
    if shell == "fish":
        return "".join(f"{line}\n" for line in _fish(parser))
    start = "autoload -U +X bashcompinit && bashcompinit\n" if shell == "zsh" else ""
    return start + _bash(parser)


def _bash(parser: argparse.ArgumentParser) -> str:
    choices, options = [], [f'            "") words="{" ".join(_commands(parser))}" ;;']
    for name, command in _commands(parser).items():
        flags = [flag for action in command._actions for flag in action.option_strings]
        options.append(f'            {name}) words="{" ".join(flags)}" ;;')
        for action in command._actions:
            values = " ".join(str(choice) for choice in action.choices or ())
            places = [f'"{name} {flag}"' for flag in action.option_strings or [name]]
            if values:
                choices.append(f'        {"|".join(places)}) words="{values}" ;;')
    return _BASH.format(choices="\n".join(choices), options="\n".join(options))


def _fish(parser: argparse.ArgumentParser) -> Iterator[str]:
    for name, command in _commands(parser).items():
        yield f"complete -c vit-viz -n __fish_use_subcommand -a {name} -d {_quoted(command.description)}"
        inside = f"complete -c vit-viz -n '__fish_seen_subcommand_from {name}'"
        for action in command._actions:
            long = " ".join(f"-l {flag[2:]}" for flag in action.option_strings if flag.startswith("--"))
            short = " ".join(f"-s {flag[1:]}" for flag in action.option_strings if not flag.startswith("--"))
            values = f"-x -a {_quoted(' '.join(map(str, action.choices)))}" if action.choices else ""
            words = " ".join(part for part in (long, short, values) if part)
            if words:
                yield f"{inside} {words} -d {_quoted(action.help)}"


def _commands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The commands by name."""
    inside = next(action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    return dict(inside.choices)


def _quoted(text: str | None) -> str:
    return shlex.quote((text or "").replace("%%", "%"))
