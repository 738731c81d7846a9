"""What the Lesson tab is told of each part of a model that one can build oneself."""

from __future__ import annotations

from typing import Any

from vit_viz.lesson_parts import PARTS
from vit_viz.ui.kit.words import listing, typeset


def parts() -> dict[str, dict[str, Any]]:
    """By name: its formula and letters, as HTML; our lines, as HTML, and which models run them; its source and where others go
    wrong, as text."""
    return {
        name: {
            "formula": typeset(part.formula),
            "letters": typeset(part.letters),
            "lines": [
                {"text": listing(one.name, "vit_viz.model.vit", one.source, one.marks), "of": dict(one.of)}
                for one in part.ran
            ],
            "source": part.source,
            "mistake": part.mistake,
        }
        for name, part in PARTS.items()
    }
