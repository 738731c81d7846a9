"""Single faults for a Python file: what differs by one comparison, constant, argument, statement or axis."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

COMPARISONS = {
    "<": "<=",
    "<=": "<",
    ">": ">=",
    ">=": ">",
    "==": "!=",
    "!=": "==",
    "is": "is not",
    "is not": "is",
    "in": "not in",
    "not in": "in",
}
ARITHMETIC = {"+": "-", "-": "+", "*": "/", "/": "*", "//": "*", "%": "*", "**": "*"}
NAMES = {"min": "max", "max": "min", "any": "all", "all": "any", "minimum": "maximum", "maximum": "minimum"}
NAMES |= {
    "amin": "amax",
    "amax": "amin",
    "argmin": "argmax",
    "argmax": "argmin",
    "floor": "ceil",
    "ceil": "floor",
}
AXES = {
    "rows": "cols",
    "row": "col",
    "height": "width",
    "top": "left",
    "bottom": "right",
    "queries": "keys",
    "tall": "wide",
}
AXES |= {after: before for before, after in AXES.items()}
CACHES = {"cache", "cached_property", "lru_cache"}
_TEXT = (ast.JoinedStr, ast.List, ast.Tuple, ast.ListComp)


@dataclass(frozen=True)
class Fault:
    """One replacement in one file.

    Args:
        path: of the file, from the root of the repository.
        line: of the first character that changes, from 1.
        kind: which kind of fault this is, in a word or two.
        before: text that is replaced, at the offset `start` (bytes).
        after: what stands there instead.
        function: qualified name of the function around it; "" where the place runs when the module is imported.
    """

    path: str
    line: int
    kind: str
    start: int
    before: str
    after: str
    function: str

    @property
    def words(self) -> str:
        """Where it is and what changes, in one line."""
        before, after = (" ".join(text.split()) or "(nothing)" for text in (self.before, self.after))
        return f"{self.path}:{self.line}: {self.kind}: {before} -> {after}"

    def apply(self, source: bytes) -> bytes:
        """The file with this fault."""
        end = self.start + len(self.before.encode())
        assert source[self.start : end] == self.before.encode()
        return source[: self.start] + self.after.encode() + source[end:]


def python_faults(path: str, source: bytes) -> list[Fault]:
    """Every fault of ours for a Python file; a few do not compile."""
    finder = _Finder(path, source)
    finder.visit(ast.parse(source))
    return finder.faults


def function_names(source: bytes) -> dict[int, str]:
    """Qualified names of a file's functions by the first line of their code, decorators included."""
    names: dict[int, str] = {}

    def walk(node: ast.AST, around: tuple[str, ...]) -> None:
        for child in ast.iter_child_nodes(node):
            inside = around
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                inside = (*around, child.name)
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                names[min([child.lineno, *(one.lineno for one in child.decorator_list)])] = ".".join(inside)
            walk(child, inside)

    walk(ast.parse(source), ())
    return names


def cached_lines(source: bytes) -> set[int]:
    """First lines of functions whose results are kept (`lru_cache`, `cache`, `cached_property`), decorators included."""
    functions = [
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    return {
        min(one.lineno for one in node.decorator_list)
        for node in functions
        if any(_name(getattr(one, "func", one)) in CACHES for one in node.decorator_list)
    }


def compiles(source: bytes) -> bool:
    """Whether this is Python at all: a fault that is none tells nothing."""
    try:
        compile(source, "mutant", "exec")
    except SyntaxError:
        return False
    return True


class _Finder(ast.NodeVisitor):
    """Walks through a module; annotations, docstrings and the words of messages are left alone."""

    def __init__(self, path: str, source: bytes) -> None:
        self.path = path
        self.source = source
        self.lines = [0]
        for line in source.splitlines(keepends=True):
            self.lines.append(self.lines[-1] + len(line))
        self.faults: list[Fault] = []
        self.names: list[str] = []  # of the classes and functions around
        self.within = 0  # functions

    def visit(self, node: ast.AST) -> None:
        for kind, start, end, after in self._of(node):
            before = self.source[start:end].decode()
            if before != after:
                line = self.source[:start].count(b"\n") + 1
                self.faults.append(
                    Fault(
                        self.path,
                        line,
                        kind,
                        start,
                        before,
                        after,
                        ".".join(self.names) if self.within else "",
                    )
                )
        self._descend(node)

    def _descend(self, node: ast.AST) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for part in [*node.decorator_list, *node.args.defaults, *(d for d in node.args.kw_defaults if d)]:
                self.visit(part)
            self.names.append(node.name)
            self.within += 1
            for statement in node.body:
                self.visit(statement)
            self.within -= 1
            self.names.pop()
            return
        if isinstance(node, ast.ClassDef):
            self.names.append(node.name)
            self.generic_visit(node)
            self.names.pop()
            return
        if isinstance(node, ast.AnnAssign):
            if node.value is not None:
                self.visit(node.value)
            return
        if isinstance(node, ast.JoinedStr) or (
            isinstance(node, ast.Subscript) and _name(node.value) == "Literal"
        ):
            return
        self.generic_visit(node)

    # --- the faults of one node: (kind, start, end, what stands there instead)

    def _of(self, node: ast.AST) -> Iterator[tuple[str, int, int, str]]:
        match node:
            case ast.Compare():
                sides = [node.left, *node.comparators]
                for left, right in pairwise(sides):
                    yield from self._operator("comparison", left, right, COMPARISONS)
            case ast.BoolOp():
                for left, right in pairwise(node.values):
                    yield from self._operator("and / or", left, right, {"and": "or", "or": "and"})
            case ast.BinOp(left, _, right) if not any(_is_text(side) for side in (left, right)):
                yield from self._operator("arithmetic", left, right, ARITHMETIC)
            case ast.UnaryOp(ast.Not(), operand):
                yield "not", *self._span(node), f"({self._text(operand)})"
            case ast.Constant(value) if not isinstance(value, str | bytes) and value is not None:
                yield from self._constant(node, value)
            case ast.arguments():
                for default in [*node.defaults, *node.kw_defaults]:
                    if isinstance(default, ast.Constant) and isinstance(default.value, str):
                        yield "default", *self._span(default), repr(default.value[:-1] or "x")
            case ast.Name(name, ast.Load()) if name in NAMES:
                yield "min / max", *self._span(node), NAMES[name]
            case ast.Attribute(_, name, ast.Load()) if name in NAMES | AXES:
                end = self._span(node)[1]
                kind = "axis" if name in AXES else "min / max"
                yield kind, end - len(name), end, (NAMES | AXES)[name]
            case ast.Tuple([ast.expr() as first, ast.expr() as second]) if _are_axes(first, second):
                yield from self._swap("axis", first, second)
            case ast.Call():
                yield from self._call(node)
            case ast.Dict():
                for key, value in zip(node.keys, node.values, strict=True):
                    if key is not None:
                        yield "key dropped", *self._with_comma(self._span(key)[0], self._span(value)[1]), ""
            case ast.If(test) | ast.IfExp(test) | ast.While(test) if not isinstance(
                test, ast.Compare | ast.UnaryOp
            ):
                yield "condition", *self._span(test), f"not ({self._text(test)})"
            case ast.stmt():
                yield from self._statement(node)

    def _statement(self, node: ast.stmt) -> Iterator[tuple[str, int, int, str]]:
        match node:
            case ast.Expr(ast.Call() | ast.Await()) | ast.Delete() | ast.Raise():
                yield "statement dropped", *self._span(node), "pass"
            case ast.Assign([ast.Attribute() | ast.Subscript()]) | ast.AugAssign():
                yield "statement dropped", *self._span(node), "pass"
            case ast.Assign([ast.Name(name)], ast.Tuple(parts)) if "key" in name and len(parts) > 1:
                for part in parts:
                    yield "part of a key dropped", *self._with_comma(*self._span(part)), ""
            case ast.Return(ast.expr() as value) if not (
                isinstance(value, ast.Constant) and value.value is None
            ):
                yield "returns nothing", *self._span(value), "None"
            case ast.Break():
                yield "break", *self._span(node), "continue"
            case ast.Continue():
                yield "break", *self._span(node), "break"

    def _constant(self, node: ast.Constant, value: object) -> Iterator[tuple[str, int, int, str]]:
        if isinstance(value, bool):
            yield "constant", *self._span(node), str(not value)
        elif isinstance(value, int):
            yield (
                "constant",
                *self._span(node),
                str(value + (1 if (value + node.col_offset) % 2 or not value else -1)),
            )
        elif isinstance(value, float):
            yield "constant", *self._span(node), repr(value * 2 or 1.0)

    def _call(self, node: ast.Call) -> Iterator[tuple[str, int, int, str]]:
        for keyword in node.keywords:
            if keyword.arg is not None:
                yield "argument dropped", *self._with_comma(*self._span(keyword)), ""
        plain = [argument for argument in node.args if isinstance(argument, ast.Name | ast.Attribute)]
        if (
            len(node.args) >= 2
            and plain[:2] == node.args[:2]
            and _name(node.func) not in ("isinstance", "issubclass")
        ):
            yield from self._swap("arguments swapped", *plain[:2])

    def _operator(
        self, kind: str, left: ast.expr, right: ast.expr, table: dict[str, str]
    ) -> Iterator[tuple[str, int, int, str]]:
        start, end = self._span(left)[1], self._span(right)[0]
        words = sorted(table, key=len, reverse=True)
        pattern = "|".join(re.sub(" ", r"\\s+", re.escape(w).replace(r"\ ", " ")) for w in words)
        match = re.search(pattern, self.source[start:end].decode())
        if match:
            after = table[" ".join(match[0].split())]
            yield kind, start + match.start(), start + match.end(), after

    def _swap(self, kind: str, first: ast.expr, second: ast.expr) -> Iterator[tuple[str, int, int, str]]:
        start, end = self._span(first)[0], self._span(second)[1]
        between = self.source[self._span(first)[1] : self._span(second)[0]].decode()
        yield kind, start, end, f"{self._text(second)}{between}{self._text(first)}"

    def _span(self, node: ast.AST) -> tuple[int, int]:
        place = node
        assert hasattr(place, "lineno")
        return (
            self.lines[place.lineno - 1] + place.col_offset,
            self.lines[place.end_lineno - 1] + place.end_col_offset,
        )

    def _with_comma(self, start: int, end: int) -> tuple[int, int]:
        """The span with the comma after it, so that it can be cut out of a list."""
        comma = re.match(rb"\s*,", self.source[end:])
        return start, end + (comma.end() if comma else 0)

    def _text(self, node: ast.AST) -> str:
        start, end = self._span(node)
        return self.source[start:end].decode()


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, _TEXT) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _are_axes(first: ast.expr, second: ast.expr) -> bool:
    return AXES.get(_name(first)) == _name(second) and bool(_name(second))
