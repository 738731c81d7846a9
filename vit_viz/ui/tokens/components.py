"""The component of the Tokens tab; see `vit_viz.ui.kit` for how one is made."""

from __future__ import annotations

from vit_viz.ui.kit import Component


class TokenRoom(Component):
    """The photo with one state of the model over it, and all states as small maps.

    Events: `pin` (query), `choose` (options of the view), `compute` (a measure that takes a while), `stop`, and
    `why` and `search` of the classes. The prop `tables` has
    the colour tables, as the explorer's; `job` says how far a computation is.
    """

    template = "room"
    tells = ("pin", "choose", "compute", "stop", "why", "search")
