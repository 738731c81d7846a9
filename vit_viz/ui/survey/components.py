"""The component of the Survey tab; see `vit_viz.ui.kit` for how one is made."""

from __future__ import annotations

from vit_viz.ui.kit import Component


class SurveyRoom(Component):
    """The filter, the atlas of heads, and photos in lists; the dots are a figure beside it, which its script fills.

    Events: `option` (names and values of options of the view), `choose` (layer, head), `look` (row of a photo). The prop
    `survey` says what was opened, and `tables` has the colour tables, as the explorer's.
    """

    template = "room"
    tells = ("option", "choose", "look")
