"""ES modules as one script: for pages that cannot load modules (from a file address each would be refused as of another origin),
and for the app's own, whose server takes longer for sixty small files than for a large one.

Every module becomes a function, which is called once, when it is first needed, and returns what the module exports:

    import { a, b as c } from './x.js';    const { a, b: c } = need("explorer/x.js");
    export function f() {}                 function f() {}  ...  return { f };

That is sound for what our modules consist of: imports of names by relative paths; exported functions, classes and constants, each
of which starts a line; a list of exported names that ends one. Whatever else starts a line with `import` or `export` is refused.
Comments stay behind, but for a few that end a line, and the margins of lines.
"""

from __future__ import annotations

import json
import re
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path, PurePosixPath
from posixpath import normpath

_PACKAGE = Path(__file__).resolve().parents[1]
_IMPORT = re.compile(r"^import \{([^}]*)\} from '(\.[^']+)';$", re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:(?:async )?function\*? |class |const )(\w+))", re.MULTILINE)
_LISTED = re.compile(r"(?:^|;)export ?\{([^}]*)\};$", re.MULTILINE)
_LEFT = re.compile(r"^\s*(?:import|export)\b(?!\()[^\n]*|\bexport\s*\{[^\n]*", re.MULTILINE)
_RENAMED = re.compile(r"([\w$]+) as ([\w$]+)")
_COMMENT = re.compile(
    r"^[ \t]*(?:/\*\*(?:(?!\*/)[\s\S])*\*/|//.*)\n|/\*\*(?:(?!\*/)[\s\S])*\*/ ?|(?<=[;,{}()\]]) // [^\n'\"`]*$",
    re.MULTILINE,
)
_MARGIN = re.compile(r"^[ \t]+", re.MULTILINE)
_NEED = """\
"use strict";
const made = {};
const need = (name) => (made[name] ??= modules[name]());
const modules = {
%s
};
"""


def bundled(entry: str, ending: str, *others: str) -> str:
    """A module of the package and all that it imports, as the text of one script that may stand in a page.

    Args:
        entry: path in the package, as "offline/page.js".
        ending: what the script does in the end; the module's exports are `entry`, and `need(path)` returns those of another one.
        others: modules that it needs by their paths.
    """
    script = f"{together(entry, *others)}const entry = need({json.dumps(entry)});\n{ending}\n"
    if re.search(r"</script|<!--", script, re.IGNORECASE):
        raise ValueError(
            "A script within a page cannot hold the end of a script element or the start of a comment."
        )
    return script


def together(*entries: str) -> str:
    """Modules of the package and all that they import, as the text of a script in which `need(path)` returns what one exports."""
    return _NEED % "\n".join(f"{json.dumps(name)}: {_as_function(name)}," for name in _in_order(entries))


@cache
def _text(name: str) -> str:
    return (_PACKAGE / name).read_text(encoding="utf-8")


def _path(here: str, there: str) -> str:
    """A module's path in the package, as another one imports it."""
    return normpath((PurePosixPath(here).parent / there).as_posix())


def _in_order(entries: tuple[str, ...]) -> list[str]:
    """The modules that these need, and they themselves, each after those that it imports."""
    graph: dict[str, list[str]] = {}
    waiting = list(entries)
    while waiting:
        name = waiting.pop()
        if name not in graph:
            graph[name] = [_path(name, match[2]) for match in _IMPORT.finditer(_text(name))]
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

    text = without_comments(_text(name))
    listed = [_RENAMED.sub(r"\2: \1", names.strip()) for names in _LISTED.findall(text)]
    exported = ", ".join([*_EXPORT.findall(text), *listed])
    body = _LISTED.sub(";", _EXPORT.sub("", _IMPORT.sub(named, text)))
    if left := _LEFT.search(body):
        raise ValueError(f"{name} cannot be bundled because of {left[0].strip()[:60]!r}.")
    body = _MARGIN.sub("", body)  # of HTML in templates, too, where it means nothing
    return f"() => {{\n{body}\nreturn {{ {exported} }};\n}}"


def without_comments(text: str) -> str:
    """A module without comments, but for those behind a line that a simple rule does not tell from text."""
    return _COMMENT.sub("", text)
