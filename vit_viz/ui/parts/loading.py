"""The part that follows the download of a model; see `vit_viz.ui.parts` for how a part is made."""

from __future__ import annotations

from vit_viz.ui.parts import Part


class Loading(Part):
    """Which model is on its way, how far it is, and a button that ends it; event `stop`."""

    template = "loading"
