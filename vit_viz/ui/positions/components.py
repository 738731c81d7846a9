"""The component of the Positions tab; see `vit_viz.ui.kit` for how one is made."""

from __future__ import annotations

from vit_viz.ui.kit import Component


class PositionTables(Component):
    """What is shown of the positions, and all of it but their similarity; event `show` (part).

    The prop `tables` has the colour tables, as the explorer's.
    """

    template = "tables"
    tells = ("show",)
