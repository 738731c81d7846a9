"""What the scripts of Look, Heads and Tokens are told, wherever these rooms stand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict

from vit_viz.analyses.head_names import MARGIN, RULES
from vit_viz.explorer.value import Value, described
from vit_viz.views.tab_options import HEAD_MEASURES, TokensTabOptions

PROPS: Mapping[str, Callable[[], Value]] = {
    "look": dict,
    "heads": lambda: {
        "measures": [{"name": name, **asdict(measure)} for name, measure in HEAD_MEASURES.items()],
        "rules": [asdict(rule) for rule in RULES],
        "margin": MARGIN,
    },
    "tokens": lambda: {
        "options": [described(field) for field in TokensTabOptions.schema()],
    },
}
