"""What a notebook shows where nothing is live: in a saved file, on a page made of it, without the widget's package."""

from __future__ import annotations

import base64
import io
from typing import Any

from vit_viz.offline.explored import Explored, Selection


def mime_bundle(explored: Explored, shown: Selection, text: str) -> dict[str, Any]:
    """The map of a selection as a picture, and a text for where there are no pictures."""
    file = io.BytesIO()
    explored.picture(shown).save(file, "PNG")
    return {"image/png": base64.b64encode(file.getvalue()).decode("ascii"), "text/plain": text}
