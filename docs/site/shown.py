"""The directive `shown`: lines of Python, and under them what their last line returns, run and drawn when the site is built.

The examples of a page run in order and see each other's names, as in a notebook; a result shows itself as it does there.
"""

from __future__ import annotations

import ast
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

PICTURES = "_gallery"


class Shown(SphinxDirective):
    """Code, and the picture that it makes; the argument says in words what there is to see."""

    has_content = True
    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """The code and its picture.

        Raises:
            DirectiveError: the code fails, or its last line returns nothing that can be shown.
        """
        names: dict[str, Any] = self.env.temp_data.setdefault("gallery", {})
        code = "\n".join(self.content)
        block = nodes.literal_block(code, code, language="python")
        try:
            picture = evaluated(code, names)
        except Exception as error:
            raise self.error(f"This example raises {type(error).__name__}: {error}") from error
        name = f"{sha256(picture).hexdigest()[:16]}.png"
        folder = Path(self.env.app.outdir) / PICTURES
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(picture)
        up = "../" * self.env.docname.count("/")
        html = f'<img class="gallery" src="{up}{PICTURES}/{name}" alt="{escape(self.arguments[0])}">'
        return [block, nodes.raw("", html, format="html")]


def evaluated(code: str, names: dict[str, Any]) -> bytes:
    """Run the code and return the PNG of its last expression: of a saved figure its bytes, of the rest what a notebook shows."""
    tree = ast.parse(code)
    last = tree.body.pop()
    if not isinstance(last, ast.Expr):
        raise TypeError("the last line is not an expression")
    exec(compile(tree, "<gallery>", "exec"), names)
    value = eval(compile(ast.Expression(last.value), "<gallery>", "eval"), names)
    data = getattr(value, "data", None)
    return data if isinstance(data, bytes) else value._repr_png_()


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("shown", Shown)
    return {"parallel_read_safe": True}
