"""The documentation site: README and docs/ as they stand, the public names, and a gallery drawn when it is built.

    .ci/site

Nothing is fetched, neither when it is built nor when it is read. Each warning fails: a link to a page, a heading or a picture that
is not there, a name that cannot be imported, an example of the gallery that raises.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from sphinx.application import Sphinx

SITE = Path(__file__).resolve().parent
ROOT = SITE.parents[1]
sys.path[:0] = [str(SITE), str(ROOT)]  # a checkout that is not installed

import vit_viz
from vit_viz.ui.kit.words import typeset

project = "vit_viz"
author = "The vit_viz authors"
copyright = "The vit_viz authors, Apache-2.0"  # noqa: A001 - Sphinx reads it
version = release = vit_viz.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "shown"]
root_doc = "docs/site/index"
include_patterns = [
    "docs/**.md",
    "docs/**.rst",
    "benchmarks/README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "CHANGELOG.md",
]
exclude_patterns = ["node_modules", "build", "vit_viz", "tests"]

html_theme = "furo"
html_title = f"vit_viz {release}"
html_extra_path = ["start", "../../llms.txt"]
html_static_path = html_css_files = ["site.css"]
html_show_sphinx = html_copy_source = False

default_role = "py:obj"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
napoleon_use_rtype = False
myst_heading_anchors = 4  # as GitHub makes them


def plain_text(
    _app: Sphinx, _what: str, _name: str, _thing: object, _options: object, lines: list[str]
) -> None:
    """Docstrings are plain text: `*`, `|` and `_` in a formula are signs, not markup."""
    for index, line in enumerate(lines):
        if not line.lstrip().startswith(">>>"):
            pieces = re.split(r"(`[^`]*`)", line)
            pieces[::2] = [re.sub(r"([*|\\]|_\b)", r"\\\1", piece) for piece in pieces[::2]]
            lines[index] = "".join(pieces)


def formulas(_app: Sphinx, _page: str, text: list[str]) -> None:
    """Mathematics as GitHub marks it becomes MathML, by the code that draws it in the app."""
    text[0] = re.sub(r"\$`([^`]+)`\$", lambda match: typeset(f"${match[1]}$"), text[0])


def setup(app: Sphinx) -> None:
    app.connect("autodoc-process-docstring", plain_text, priority=400)  # before napoleon reads the sections
    app.connect("source-read", formulas)
