"""Single faults for a JavaScript file, found in its tokens: strings, comments and regular expressions are left alone."""

from __future__ import annotations

import re

from benchmarks.mutations.faults import Fault

SWAPS = {
    "comparison": {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "===": "!==", "!==": "==="},
    "and / or": {"&&": "||", "||": "&&"},
    "arithmetic": {"+": "-", "-": "+", "*": "/", "/": "*", "%": "*", "+=": "-=", "-=": "+="},
    "constant": {"true": "false", "false": "true"},
    "min / max": {
        "min": "max",
        "max": "min",
        "floor": "ceil",
        "ceil": "floor",
        "some": "every",
        "every": "some",
    },
    "axis": {
        "rows": "cols",
        "row": "col",
        "height": "width",
        "top": "left",
        "clientX": "clientY",
        "tall": "wide",
    },
    "break": {"break": "continue", "continue": "break"},
}
SWAPS["axis"] |= {after: before for before, after in SWAPS["axis"].items()}
_KINDS = {before: (kind, after) for kind, pairs in SWAPS.items() for before, after in pairs.items()}

_TOKEN = re.compile(
    r"""(?P<skip>//[^\n]*|/[*].*?[*]/|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`)
    |(?P<regex>(?<=[(,=:\[!&|?{};\s])/(?![*/\s])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n\[])+/[a-z]*)
    |(?P<number>(?<![\w.])[0-9]+(?:[.][0-9]+)?(?:e[0-9]+)?(?![\w.]))
    |(?P<word>[A-Za-z_$][\w$]*)
    |(?P<operator>===|!==|=>|<=|>=|&&=?|\|\|=?|[?][?]=?|[+][+]|--|[+*/%-]=|[.]{3}|[?][.]|[<>+*/%!-]|[^\s\w])
    |(?P<space>\s+)""",
    re.VERBOSE | re.DOTALL,
)
_CALL = re.compile(r"^[ ]+((?:await )?[A-Za-z_$][\w$.?\[\]]*\((?:[^\n]*)\);)$", re.MULTILINE)
_RETURN = re.compile(r"\breturn (?!null;)([^;{\n]+);")
_ASSIGN = re.compile(r"^[ ]+([A-Za-z_$][\w$.\[\]]*[.\]][\w$]* [+-]?= [^\n;]*;)$", re.MULTILINE)


def script_faults(path: str, source: bytes) -> list[Fault]:
    """Every fault of ours for a JavaScript file."""
    text = source.decode()
    tokens = list(_TOKEN.finditer(text))
    skipped = [match.span() for match in tokens if match.lastgroup in ("skip", "regex")]
    faults = [fault for i in range(len(tokens)) for fault in _of_token(tokens, i)]
    for pattern, kind, after in (
        (_CALL, "statement dropped", ";"),
        (_ASSIGN, "statement dropped", ";"),
        (_RETURN, "returns nothing", "null"),
    ):
        for match in pattern.finditer(text):
            if not any(start <= match.start(1) < end for start, end in skipped):
                faults.append((kind, match.start(1), match[1], after))
    return [_fault(path, text, *one) for one in sorted(faults, key=lambda one: one[1])]


def _of_token(tokens: list[re.Match[str]], i: int) -> list[tuple[str, int, str, str]]:
    token = tokens[i]
    near = [t[0] for t in tokens[max(0, i - 6) : i] if t.lastgroup not in ("space", "skip")]
    previous = near[-1] if near else ""
    if token.lastgroup == "number":
        text = token[0]
        after = str(int(text) + 1) if text.isdigit() else str(2 * float(text))
        return [("constant", token.start(), text, after)]
    if token[0] == "!" and token.lastgroup == "operator":
        return [("not", token.start(), "!", "")]
    is_unary = token[0] in "+-" and (previous in ("", "return") or previous[-1] in "(,=<>?:[{&|;*/%+-")
    is_import = previous in ("import", "}") and token[0] == "*"
    if token[0] not in _KINDS or is_unary or is_import:
        return []
    following = tokens[i + 1][0] if i + 1 < len(tokens) else ""
    if token[0] in SWAPS["axis"] and following.startswith(":"):  # the name of a field, not its use
        return []
    if token[0] in SWAPS["min / max"] and previous != ".":
        return []
    kind, after = _KINDS[token[0]]
    return [(kind, token.start(), token[0], after)]


def _fault(path: str, text: str, kind: str, start: int, before: str, after: str) -> Fault:
    line = text.count("\n", 0, start) + 1
    return Fault(path, line, kind, len(text[:start].encode()), before, after, "")
