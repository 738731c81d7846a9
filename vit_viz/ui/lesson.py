"""What the Lesson tab is told of each part of a model that one can build oneself."""

from __future__ import annotations

from vit_viz.lesson_parts import PARTS
from vit_viz.ui.kit.words import listing, typeset


def parts() -> dict[str, dict[str, str]]:
    """By name: its formula and letters and our lines that ran, as HTML; its source and where others go wrong, as text."""
    return {
        name: {
            "formula": typeset(part.formula),
            "letters": typeset(part.letters),
            "lines": "".join(
                listing(one.name, "vit_viz.model.vit", one.source, one.marks, one.where) for one in part.ran
            ),
            "source": part.source,
            "mistake": part.mistake,
        }
        for name, part in PARTS.items()
    }
