"""How many patches a region in a link may have."""

from __future__ import annotations

import pytest

from vit_viz.errors import ParameterError
from vit_viz.views.state import _query


def test_a_region_of_as_many_patches_as_a_link_holds_is_taken_and_one_more_is_refused() -> None:
    patches = [[row, col] for row in range(32) for col in range(33)]
    assert _query("query", patches[:1024]).count(";") == 1023
    with pytest.raises(ParameterError, match="at most 1024 patches"):
        _query("query", patches[:1025])
