"""The components of the Explain tab; see `vit_viz.ui.kit` for how one is made."""

from __future__ import annotations

from vit_viz.ui.kit import Component


class Target(Component):
    """What is explained: chips of classes and a search; events `why`, `unlike`, `search`; the prop `matches` answers a search."""

    template = "target"
    tells = ("why", "unlike", "search")


class Gallery(Component):
    """A card per method, and how far to believe the chosen one; events `open`, `compute`, `stop`, `trust`, `map_scale`.

    The prop `progress` follows the slow methods, by their names, `trust` the test of all maps; `weights` says what became of a map
    when the weights were re-initialised.
    """

    template = "gallery"
    tells = ("open", "compute", "stop", "trust", "map_scale")


class Stage(Component):
    """The chosen map on the photo, whose patches can be taken away; events `remove`, `pick` and `step`.

    The prop `answer` says what the model makes of the rest.
    """

    template = "stage"
    tells = ("remove", "pick", "step")


class Meter(Component):
    """A button for something long, how far it is, and a button that ends it; events `start` and `stop`."""

    template = "meter"
    tells = ("start", "stop")
