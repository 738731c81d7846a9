"""The components of the header; see `vit_viz.ui.kit` for how one is made."""

from __future__ import annotations

from vit_viz.ui.kit import Component


class Samples(Component):
    """The tray: thumbnails of the samples and of this visit's pictures; event `choose`."""

    template = "samples"
    tells = ("choose",)


class Top(Component):
    """The most probable classes, what is being done, and what went wrong."""

    template = "top"


class Loading(Component):
    """Which model is on its way, how far it is, and a button that ends it; event `stop`."""

    template = "loading"
    tells = ("stop",)


class Edited(Component):
    """What was changed inside the model, and what that does to the answer; event `undo` (words of an edit; "" for all)."""

    template = "edited"
    tells = ("undo",)


class Facts(Component):
    """Whether the attention is verified, with the model's facts; the link; where to start; help.

    Event `refused`: it turned out that the pictures mislead.
    """

    template = "facts"
    tells = ("refused",)


class Bring(Component):
    """Takes what is dropped or pasted anywhere on the page; event `bring` says the path that its upload was answered with."""

    template = "bring"
    tells = ("bring",)


class TabRow(Component):
    """Keeps the chosen tab in sight where the row of tabs is wider than the screen."""

    template = "tab_row"
