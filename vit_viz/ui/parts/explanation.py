"""The components of the Explain tab; see `vit_viz.ui.parts` for how a part is made."""

from __future__ import annotations

from vit_viz.ui.parts import Part


class Aim(Part):
    """What is explained: chips of classes and a search; events `why`, `unlike`, `search`; the prop `found` answers a search."""

    template = "aim"


class Gallery(Part):
    """A card per method; events `open`, `compute`, `stop`, `trust`, `curves`, `ruler`.

    The props `slow_0` ... `slow_3` follow the slow methods, each on its own, and `trust` the test of all maps.
    """

    template = "gallery"


class Playground(Part):
    """A photo whose patches can be brushed away; event `remove`; the prop `answer` says what the model makes of the rest."""

    template = "playground"


class Meter(Part):
    """A button for something long, how far it is, and a button that ends it; events `start` and `stop`."""

    template = "meter"
