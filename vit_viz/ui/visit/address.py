"""The address bar, which holds the view."""

from __future__ import annotations

from vit_viz.ui.kit import Component


class Address(Component):
    """The address bar and the identity of the tab; event `arrive`."""

    template = "address"
    html = '<span class="vv-address" hidden></span>'
    tells = ("arrive",)
