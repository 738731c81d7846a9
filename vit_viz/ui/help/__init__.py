"""What each control of the page is for, in the words of its own declaration; pointing at it asks."""

from __future__ import annotations

import json

from vit_viz.analyses.methods import METHODS
from vit_viz.analyses.options import Options
from vit_viz.session.inputs import InputOptions
from vit_viz.views.state import GROUPS

LISTING = "help.json"


def listing() -> bytes:
    """What each option does, by its name and by that in links, as JSON: {name: [label, sentence]}.

    Browsers fetch it when help is first asked for, so that the page itself stays small, and keep it until it changes.
    """
    kinds: list[type[Options]] = [
        InputOptions,
        *(method.options for method in METHODS.values()),
        *GROUPS.values(),
    ]
    fields = [field for kind in kinds for field in kind.schema()]
    named = {name: field.option for field in fields for name in (field.option.link, field.name) if name}
    said = {name: [option.label, option.sentence] for name, option in named.items()}
    return json.dumps(said, ensure_ascii=False, separators=(",", ":")).encode()
