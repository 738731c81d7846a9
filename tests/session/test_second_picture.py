"""A second picture beside the first: its colours are shared, only its owner may name it, and what was made of both goes with it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import vit_viz as vv
from tests.comparing import assert_same
from tests.ui.desk import odd_picture
from vit_viz import samples
from vit_viz.errors import ImageError
from vit_viz.session.questions import request_for
from vit_viz.session.request import Request, Subject, is_about
from vit_viz.session.session import Session


@pytest.fixture(scope="module")
def session() -> Session:
    return Session(model="mini", device="cpu")


def asked(
    session: Session, image: str = "shapes", owner: str = "ada", part: Any = None, **options: Any
) -> Request:
    subject = Subject("mini", image, owner=owner, part=part)
    return request_for(session, subject, "token_components", **options)


def test_two_pictures_share_one_basis_and_the_second_is_whole(session: Session) -> None:
    part = (8, 16, 96, 128)
    found = session.run(asked(session, part=part, second="lion", foreground=True))
    first = vv.trace("mini", samples.sample("shapes").crop((16, 8, 144, 104)), keep_residual=True)
    second = vv.trace("mini", samples.sample("lion"), keep_residual=True)
    expected = vv.token_components([first, second], foreground=True)
    for one, other in zip(found.maps, expected.maps, strict=True):
        assert_same(one.values, other.values, relative=1e-3)
    assert_same(found.overall, expected.overall, relative=1e-4)
    alone = session.run(asked(session, part=part, foreground=True))
    assert len(alone.maps) == 1
    assert not np.allclose(alone.maps[0].values, found.maps[0].values, atol=1e-3)


def test_only_its_owner_may_name_a_second_picture_also_once_the_answer_is_kept(session: Session) -> None:
    hers = session.add_upload(odd_picture(3), owner="ada")
    session.run(asked(session, second=hers))
    assert session.keeps(asked(session, second=hers))
    for name in (hers, "u" + "x" * 24):
        with pytest.raises(ImageError):
            session.run(asked(session, owner="eve", second=name))


def test_what_was_made_of_two_pictures_goes_with_either(session: Session) -> None:
    second = session.add_upload(odd_picture(6), owner="ada")
    digest = session.digest(second, owner="ada")
    session.run(asked(session, second=second))
    assert session.keeps(asked(session, second=second))
    session.uploads.remove(second, owner="ada")
    assert session.cache.evict(lambda key: "token_components" in repr(key) and second in repr(key)) == 0
    assert session.cache.evict(lambda key: is_about(key, digest)) == 0
