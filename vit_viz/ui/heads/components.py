"""The components of the Heads tab; see `vit_viz.ui.kit` for how one is made."""

from __future__ import annotations

from vit_viz.ui.kit import Component


class HeadRoom(Component):
    """All heads as a table of one measure, the photo as one of them sees it, and a name for each.

    Events: `choose` (layer, head), `option` (measure, how or head_order), `pin` (query), `why` (index of a class), `search`
    of a class, which the prop `matches` answers, `start` and `stop` of the causal map, which the prop `causal` follows. The
    props `tables` and `measures` have the colour tables, as the explorer's, and the measures in words.
    """

    template = "table"
    tells = ("choose", "option", "pin", "why", "search", "start", "stop")


class Surgery(Component):
    """A switch for each head, a temperature for each layer, and views that are forbidden; event `edit` (edits, in words)."""

    template = "surgery"
    tells = ("edit",)
