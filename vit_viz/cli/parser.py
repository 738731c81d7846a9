"""The commands and their options, as the questions declare them, and what completes them in a shell."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator
from functools import partial
from typing import Any, NoReturn

import vit_viz
from vit_viz.analyses.options import OptionField
from vit_viz.analyses.registry import QUESTIONS
from vit_viz.analyses.spec import AnyQuestion
from vit_viz.cli import commands, surveying
from vit_viz.cli.commands import add_model, add_parents, flag_of, options_of_methods
from vit_viz.errors import ParameterError
from vit_viz.figures.files import FORMATS
from vit_viz.figures.request import DrawingOptions, Output, has_shared_scale
from vit_viz.session.inputs import QUERY, TARGET, InputOptions, query_sentence

_ASKING = "vit_viz.cli.asking"

WIDTH = 110
"""Of help texts, whatever the terminal: docs/COMMANDS.md shows them."""


class Parser(argparse.ArgumentParser):
    """An argument parser that says what is wrong in one line."""

    def __init__(self, **options: Any) -> None:
        wide = partial(argparse.HelpFormatter, max_help_position=26, width=WIDTH)
        super().__init__(formatter_class=wide, allow_abbrev=False, **options)

    def error(self, message: str) -> NoReturn:
        """End with one line and the exit code 2."""
        self.exit(2, f"{self.prog}: {message}\n")


def command_line() -> Parser:
    """The parser of the whole command line."""
    parser = Parser(
        prog="vit-viz",
        description="See what a Vision Transformer looks at. Each command answers for photos (files, patterns such as "
        "'*.jpg', or names of samples); vit-viz COMMAND --help lists its options.",
    )
    parser.add_argument("--version", action="version", version=f"vit_viz {vit_viz.__version__}")
    inside = parser.add_subparsers(metavar="COMMAND", required=True)
    for question in QUESTIONS.values():
        _add_question(_added(inside, question.name, question.words.shows, (_ASKING, "ask")), question)
    several = "Several methods side by side: why this class?"
    _add_explain(_added(inside, "explain", several, (_ASKING, "explain")))
    for command in (*commands.COMMANDS, *surveying.COMMANDS):
        command.add(_added(inside, command.name, command.sentence, command.run))
    sentence = "Print what lets a shell complete these commands."
    shells = _added(inside, "completion", sentence, (__name__, "complete"))
    shells.add_argument("shell", choices=SHELLS, help="evaluate or source what is printed")
    return parser


def _added(inside: Any, name: str, sentence: str, run: tuple[str, str]) -> Parser:
    description = sentence[:1].upper() + sentence[1:]
    parser: Parser = inside.add_parser(name, help=description.replace("%", "%%"), description=description)
    parser.set_defaults(run=run)
    return parser


def _add_question(parser: Parser, question: AnyQuestion) -> None:
    words = question.words
    parser.description = f"{words.label}: {words.shows}"
    parser.epilog = f"Does not show {words.hides} Source: {words.source}"
    parser.set_defaults(question=question.name)
    if question.takes_image:
        _add_photos(parser)
    if question.takes_query:
        parser.add_argument("--query", metavar="QUERY", help=query_sentence(question))
    if question.takes_target:
        parser.add_argument("--target", metavar="CLASS", help=TARGET)
    for field in question.options.schema():
        add_option(parser, field)
    _add_common(parser, has_shared_scale=has_shared_scale(question))


def _add_explain(parser: Parser) -> None:
    _add_photos(parser)
    parser.add_argument("--methods", metavar="A,B,C", help="Names of methods; default: all that are quick.")
    parser.add_argument("--query", metavar="QUERY", help=QUERY)
    parser.add_argument("--target", metavar="CLASS", help=TARGET)
    single = parser.add_argument_group("options of single methods, each after the methods that take it")
    for field, names in options_of_methods().values():
        add_option(single, field, whose=f"{', '.join(names)}: ")
    _add_common(parser, has_shared_scale=True)


def _add_photos(parser: Parser) -> None:
    parser.add_argument(
        "photos", nargs="+", metavar="PHOTO", help="A file, a pattern, or the name of a sample."
    )
    for field in InputOptions.schema():
        add_option(parser, field)


def _add_common(parser: Parser, *, has_shared_scale: bool) -> None:
    add_model(parser)
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help=f"Write a file, in the format of its ending: .{', .'.join(FORMATS)}; a folder for several answers.",
    )
    parser.add_argument(
        "--format",
        choices=FORMATS,
        metavar="ENDING",
        help="Format of the files in a folder; default: png.",
    )
    add_parents(parser)
    parser.add_argument(
        "--json", action="store_true", help="Print all numbers, one JSON object per answer and line."
    )
    picture = parser.add_argument_group("a picture")
    printed = [field for field in Output.schema() if field.name != "format"]
    for field in (*DrawingOptions.schema(), *printed):
        add_option(picture, field)
    picture.add_argument(
        "--title", default="", metavar="TEXT", help="The first line, in place of the usual one."
    )
    parser.set_defaults(shared_scale=False)
    if has_shared_scale:
        scale = "One scale for the maps of all methods: each patch's share of its map."
        picture.add_argument("--shared-scale", action="store_true", help=scale)


def add_option(parser: argparse._ActionsContainer, field: OptionField, *, whose: str = "") -> None:
    """One option of a question as a flag, whose help begins with `whose`; what is not given is not in the namespace."""
    flag, option = flag_of(field.name), field.option
    description = f"{whose}{option.sentence}".replace("%", "%%")
    shared: dict[str, Any] = {"dest": field.name, "default": argparse.SUPPRESS}
    if field.kind is bool:
        usual = "on" if field.default else "off"
        parser.add_argument(
            flag, action=argparse.BooleanOptionalAction, help=f"{description} Default: {usual}.", **shared
        )
        return

    def read(text: str) -> Any:
        try:
            return field.read(option.label, text)
        except ParameterError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    span = "" if field.kind is str else f" From {option.low:g} to {option.high:g}."
    usual = f" Default: {field.default}." if field.default != "" else ""
    parser.add_argument(
        flag,
        type=read,
        choices=field.choices or None,
        metavar=None if field.choices else field.name.upper(),
        help=f"{description}{span}{usual}",
        **shared,
    )


# --- completion

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


def complete(flags: argparse.Namespace) -> int:
    """Print the text that a shell evaluates."""
    parser = command_line()
    if flags.shell == "fish":
        print(*_fish(parser), sep="\n")
    else:
        start = "autoload -U +X bashcompinit && bashcompinit\n" if flags.shell == "zsh" else ""
        print(start + _bash(parser), end="")
    return 0


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
