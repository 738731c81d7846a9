"""The tabs of the page, in their order; each is declared in its room."""

from __future__ import annotations

from vit_viz.ui.explain import view as explain
from vit_viz.ui.heads import view as heads
from vit_viz.ui.look import view as look
from vit_viz.ui.page import Tab
from vit_viz.ui.patches import view as patches
from vit_viz.ui.positions import view as positions
from vit_viz.ui.tokens import view as tokens
from vit_viz.ui.walkthrough import view as walkthrough

TABS: tuple[Tab, ...] = (
    *(look.TAB, walkthrough.TAB, explain.TAB, heads.TAB),
    *(tokens.TAB, positions.TAB, patches.TAB),
)
