"""Size and part on the page: in the view and its link, in what is drawn, in what is offered and what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.session.test_session import Counted, picture
from tests.ui.desk import odd_session
from tests.ui.views import view_with
from vit_viz.checkpoints import LoadedModel
from vit_viz.errors import ImageError
from vit_viz.figures.screen import screen_photo
from vit_viz.images import Preprocess
from vit_viz.model import VisionTransformer
from vit_viz.session.models import forward_work
from vit_viz.ui.header.sizes import DINO, OWN, Sizes, value
from vit_viz.ui.payload import explorer_value
from vit_viz.views.choices import subject_of
from vit_viz.views.state import ViewState

PART = "3,5,33,47"


@pytest.fixture
def counted() -> Counted:
    return Counted()


def view_of(counted: Counted, **changes: Any) -> ViewState:
    return ViewState(model="tiny", image=counted.session.add_upload(picture(0), owner="ada"), **changes)


def loaded_model(*, patch: int = 8, side: int = 224, depth: int = 2) -> LoadedModel:
    """A model of this input with random weights."""
    shape: dict[str, Any] = {"img_size": (side, side), "patch_size": (patch, patch)}
    loaded = odd_session(**shape, depth=depth, reg_tokens=0).model()
    return replace(loaded, preprocess=Preprocess(*shape.values()))  # type: ignore[type-var]  # a dataclass


# --- the view and its link


def test_size_and_part_survive_the_address() -> None:
    view = view_with(model="mini", image="lion", size=60, part="120,40,300,400")
    assert view.to_link()["size"] == "60"
    assert view.to_link()["part"] == "120,40,300,400"
    assert ViewState.from_address("?" + view.to_address()) == (view, ())


@pytest.mark.parametrize(
    "search", ["size=-1", "size=many", "size=2049", "part=1,2,3", "part=1,2,40,31", "part=a,b,c,d"]
)
def test_a_link_to_no_size_or_part_falls_back_and_says_so(search: str) -> None:
    view, problems = ViewState.from_address(search)
    assert view == ViewState()
    assert len(problems) == 1


def test_what_a_view_is_of_keeps_what_still_means_something() -> None:
    view = ViewState(image="lion", size=9, part=PART, target="3", query="1,2")
    image, model, size = (
        view.on_subject(**change) for change in ({"image": "tower"}, {"model": "mini"}, {"size": 12})
    )
    assert (image.size, image.part, image.target, image.query) == (0, "", "", "")
    assert (model.size, model.part) == (0, PART)
    assert (size.size, size.part, size.target, size.query) == (12, PART, "3", "")


@pytest.mark.parametrize("change", [{"size": 9}, {"part": PART}])
def test_another_size_or_part_is_drawn_anew_on_every_tab(change: dict[str, Any]) -> None:
    view = ViewState(model="mini", image="lion")
    assert replace(view, **change).about != view.about


def test_size_and_part_wait_with_their_link_for_a_picture_that_is_not_here(counted: Counted) -> None:
    waiting = ViewState(model="tiny", image="lion", size=9, part=PART, awaits_upload=True)
    subject = subject_of(counted.session, waiting, "ada")
    assert (subject.size, subject.part) == (0, None)
    assert (waiting.size, waiting.part) == (9, PART)


# --- what is drawn


def test_the_explorer_gets_the_part_and_where_it_lies_on_the_whole(counted: Counted) -> None:
    view = view_of(counted, part=PART, size=5)
    value = explorer_value(counted.session, view, "ada")
    assert (value["size"], value["part"], value["grid"]) == (5, PART, [5, 7])
    assert value["crop"]["original"] == [33, 47]
    assert value["whole"]["part"] == [3, 5, 33, 47]
    assert value["whole"]["crop"]["original"] == [40, 60]
    assert value["whole"]["photo_size"] == [40, 60]
    assert explorer_value(counted.session, replace(view, part=""), "ada")["whole"] is None
    assert value["whole"]["crop"]["region"] == [3.0, 5.0, 33.0, 47.0]
    subjects = [
        counted.session.handles.find(address.split("/")[-1])
        for address in (value["photo"], value["whole"]["photo"])
    ]
    assert [screen_photo(counted.session, subject).size for subject in subjects if subject] == [
        (47, 33),
        (60, 40),
    ]


# --- what is offered


def test_every_size_that_is_offered_says_its_patches_and_its_work() -> None:
    sizes = Sizes(loaded_model(), (600, 900), 4096)
    found = {size: words for words, size in sizes.offered("fit", 0)}
    assert found[OWN] == "26 x 39 patches, 1,014: the model's own size"  # 28 x 42 would be more than 1,024
    assert all("x the work of" in words for size, words in found.items() if size != OWN)


def test_the_last_size_is_the_largest_that_is_computed() -> None:
    model = loaded_model()
    for most, last in ((4096, 52), (52 * 78, 52), (52 * 78 - 1, 51)):
        plain = [size for _, size in Sizes(model, (600, 900), most).offered("fit", 0) if size != DINO]
        assert plain[-1] == str(last)
    assert [size for _, size in Sizes(model, (500, 500), 1024).offered("fit", 0)] == [OWN, "32"]
    assert "31" in [size for _, size in Sizes(model, (500, 500), 4096).offered("fit", 31)]  # what is chosen


def test_the_figure_of_the_dino_paper_is_one_of_the_choices() -> None:
    model = loaded_model()
    square = {size: words for words, size in Sizes(model, (500, 500), 4096).offered("fit", 0)}
    assert square["60"].startswith("60 x 60 patches, 3,600: about")
    assert square["60"].endswith("480 px, as in the figures of DINO")
    assert DINO not in square
    wide = {size: words for words, size in Sizes(model, (600, 900), 4096).offered("fit", 0)}
    assert wide[DINO].endswith("as in the figures of DINO; stretched to a square")
    for most, is_there in ((3600, True), (3599, False)):
        values = [size for _, size in Sizes(model, (600, 900), most).offered("fit", 0)]
        assert (DINO in values) is is_there
    assert DINO not in [size for _, size in Sizes(loaded_model(patch=16), (600, 900), 4096).offered("fit", 0)]


def test_sizes_are_offered_in_every_shape(counted: Counted) -> None:
    told = value(counted.session, view_of(counted, size=6), "ada")
    assert list(told["offered"]) == ["fit", "crop", "stretch"]
    assert all(one[0][1] == OWN for one in told["offered"].values())
    assert told["cost"].startswith(f"Up to {counted.session.max_patches:,} patches are computed here.")
    for most, is_there in ((6 * 9, True), (6 * 9 - 1, False)):
        counted.session.max_patches = most
        offered = value(counted.session, view_of(counted, size=6), "ada")["offered"]["stretch"]
        assert ("6" in [size for _, size in offered]) is is_there


def test_nobody_is_offered_sizes_of_a_photo_of_somebody_else(counted: Counted) -> None:
    with pytest.raises(ImageError):
        value(counted.session, view_of(counted), "bob")


# --- what it costs


def test_the_work_of_a_forward_is_that_of_its_matrix_products() -> None:
    """Counted by hand for 2 blocks of width 40: qkv 40 x 120, proj 40 x 40, MLP 40 x 160 and 160 x 40."""
    model = loaded_model()
    assert isinstance(model.model, VisionTransformer)
    per_token = 2 * (40 * 120 + 40 * 40 + 40 * 160 + 160 * 40)
    expected = 2 * (per_token * 30 + 4 * 30**2 * 40)
    assert forward_work(model)(30) == expected
