"""A session on a tiny model whose forwards are counted."""

from __future__ import annotations

import pytest

from tests.session.test_session import Counted


@pytest.fixture
def counted() -> Counted:
    return Counted()
