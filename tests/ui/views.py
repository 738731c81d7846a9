"""Views for tests, written as one list of fields and options."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from vit_viz.views.state import ViewState

FIELDS = frozenset(field.name for field in fields(ViewState))


def view_with(**values: Any) -> ViewState:
    """A view with these fields, and these options of any group by the name of their field."""
    view = ViewState(**{name: value for name, value in values.items() if name in FIELDS})
    return view.with_options({name: value for name, value in values.items() if name not in FIELDS})
