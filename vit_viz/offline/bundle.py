"""ES modules as one script: for pages that cannot load modules (from a file address each would be refused as of another origin),
and for the app's own, whose server takes longer for sixty small files than for a large one.

Every module becomes a function, which is called once, when it is first needed, and returns what the module exports:

    import { a, b as c } from './x.js';    const { a, b: c } = need("explorer/x.js");
    export function f() {}                 function f() {}  ...  return { f };

That is sound for what our modules consist of: imports of names by relative paths; exported functions, classes and constants, each
of which starts a line; a list of exported names that ends one. Whatever else starts a line with `import` or `export` is refused.
Comments stay behind, and the white space that only makes code legible. Minifiers in pure Python do not know templates within
templates, of which our modules are full: rjsmin 1.3 changes what 51 of 197 modules say.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path, PurePosixPath
from posixpath import normpath

_PACKAGE = Path(__file__).resolve().parents[1]
_IMPORT = re.compile(r"^import \{([^}]*)\} from '(\.[^']+)';$", re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:(?:async )?function\*? |class |const )(\w+))", re.MULTILINE)
_LISTED = re.compile(r"(?:^|;)export ?\{([^}]*)\};$", re.MULTILINE)
_LEFT = re.compile(r"^[ \t]*(?:import|export)\b(?!\()[^\n]*|\bexport\s*\{[^\n]*", re.MULTILINE)
_RENAMED = re.compile(r"([\w$]+) as ([\w$]+)")
_TOKEN = re.compile(
    r"(?P<comment>//[^\n]*|/\*[\s\S]*?\*/)|(?P<text>'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\")|[{}`/]|[^'\"{}`/]+"
)
_TEMPLATE = re.compile(r"(?:\\.|\$(?!\{)|[^\\$`])*(?:`|\$\{)", re.DOTALL)
"""The text of a template behind its start or behind a value, with what ends it."""
_PATTERN = re.compile(r"(?:\\.|\[(?:\\.|[^\]\\])*\]|[^/\\\[])+/")
"""A regular expression behind its first slash."""
_NO_VALUE = re.compile(r"(?:^|[^\w$)\]}'\"`]|(?:^|[^\w$.])(?:return|case|typeof))$")
"""The end of what a slash cannot divide, so that it begins a regular expression."""
_MARGIN = re.compile(r"\n[ \t]+")
_LINES, _BLANKS = re.compile(r"\n\s+|[ \t]+\n\s*"), re.compile(r"[ \t]{2,}|\t")
_NEEDLESS = re.compile(
    r"[ \n](?:(?<=[;,{(\[=&|?:][ \n])|(?=[})\].?:&|]))"
    r"| (?:(?<=[\w$] )(?=[^\w$])|(?<=[^\w$] )(?=[\w$])|(?<=([^\w$]) )(?!\1)(?=[^\w$]))"
)
"""White space that neither ends a statement nor separates words or equal signs."""
_NEED = """\
"use strict";
const made = {};
const need = (name) => (made[name] ??= modules[name]());
const modules = {
%s
};
"""


def bundled(entry: str, ending: str, *others: str, without: Collection[str] = ()) -> str:
    """A module of the package and all that it imports, as the text of one script that may stand in a page.

    Args:
        entry: path in the package, as "offline/page.js".
        ending: what the script does in the end; the module's exports are `entry`, and `need(path)` returns those of another one.
        others: modules that it needs by their paths.
        without: modules that it never uses, whoever imports them; there they export nothing.
    """
    script = (
        f"{together(entry, *others, without=without)}const entry = need({json.dumps(entry)});\n{ending}\n"
    )
    if re.search(r"</script|<!--", script, re.IGNORECASE):
        raise ValueError(
            "A script within a page cannot hold the end of a script element or the start of a comment."
        )
    return script


def together(*entries: str, without: Collection[str] = ()) -> str:
    """Modules of the package and all that they import, as the text of a script in which `need(path)` returns what one exports."""
    modules = {name: _as_function(name) for name in _in_order(entries, without)} | dict.fromkeys(
        without, "() => ({})"
    )
    return _NEED % "\n".join(f"{json.dumps(name)}: {function}," for name, function in modules.items())


@cache
def _text(name: str) -> str:
    return (_PACKAGE / name).read_text(encoding="utf-8")


def _path(here: str, there: str) -> str:
    """A module's path in the package, as another one imports it."""
    return normpath((PurePosixPath(here).parent / there).as_posix())


def _in_order(entries: tuple[str, ...], without: Collection[str]) -> list[str]:
    """The modules that these need, and they themselves, each after those that it imports."""
    graph: dict[str, list[str]] = {}
    waiting = list(entries)
    while waiting:
        name = waiting.pop()
        if name not in graph:
            imported = (_path(name, match[2]) for match in _IMPORT.finditer(_text(name)))
            graph[name] = [path for path in imported if path not in without]
            waiting += graph[name]
    try:
        return list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        raise ValueError(f"Modules import each other: {' -> '.join(error.args[1])}.") from error


def _as_function(name: str) -> str:
    """A module as a function of no arguments."""

    def named(match: re.Match[str]) -> str:
        names = _RENAMED.sub(r"\1: \2", " ".join(match[1].split()))
        return f"const {{ {names} }} = need({json.dumps(_path(name, match[2]))});"

    text = _text(name)
    listed = [_RENAMED.sub(r"\2: \1", names.strip()) for names in _LISTED.findall(text)]
    exported = ", ".join([*_EXPORT.findall(text), *listed])
    body = _LISTED.sub(";", _EXPORT.sub("", _IMPORT.sub(named, text)))
    if left := _LEFT.search(body):
        raise ValueError(f"{name} cannot be bundled because of {left[0].strip()[:60]!r}.")
    return f"() => {{\n{squeezed(body)}\nreturn {{ {exported} }};\n}}"


def squeezed(text: str) -> str:
    """JavaScript without comments, and without white space but where it separates words or ends a statement.

    Lines of templates lose their margins, too: they are HTML, in which these mean nothing.
    """
    code: list[str] = []  # with texts, templates and patterns as their first and last sign around a zero
    texts: list[str] = []  # what stands for these zeros
    opened: list[str] = []  # by what each brace was opened that is open: "{", or the "`" of a template
    at = 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        assert token is not None
        start, at = at, token.end()
        is_text = token["text"] is not None
        if token["comment"]:
            code.append("\n" if "\n" in token[0] else " ")
            continue
        if token[0] == "{":
            opened.append("{")
        elif token[0] == "`" or (token[0] == "}" and opened.pop() == "`"):
            is_text, at = True, _end(_TEMPLATE, text, at)
            opened += "`" * (text[at - 1] == "{")
        elif token[0] == "/" and _NO_VALUE.search("".join(code[-4:]).rstrip()):
            is_text, at = True, _end(_PATTERN, text, at)
        if is_text:
            texts.append(_MARGIN.sub("\n", text[start + 1 : at - 1]))
        code.append(f"{text[start]}\0{text[at - 1]}" if is_text else text[start:at])
    legible = _BLANKS.sub(" ", _LINES.sub("\n", "".join(code).strip()))
    first, *rest = _NEEDLESS.sub("", legible).split("\0")
    return first + "".join(own + other for own, other in zip(texts, rest, strict=True))


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    if match is None:
        raise ValueError(f"JavaScript that does not end: {text[at : at + 40]!r}.")
    return match.end()
