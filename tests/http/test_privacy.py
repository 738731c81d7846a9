"""What is one visitor's stays with that visitor: pictures, files, handles; and the log says nothing of any of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.http.hostile import encoded, photo
from tests.http.visitor import Visitor
from tests.serving import Server

pytestmark = pytest.mark.server


@pytest.fixture
def ada(meet: Callable[..., Visitor]) -> Visitor:
    """A visitor with a picture of her own."""
    visitor = meet()
    visitor.arrive()
    visitor.bring("ada-and-her-cat.png", encoded(photo(11), "PNG"))
    return visitor


@pytest.fixture
def eve(meet: Callable[..., Visitor]) -> Visitor:
    visitor = meet()
    visitor.arrive()
    return visitor


def test_the_id_of_an_upload_is_worthless_to_another_visitor(
    ada: Visitor, meet: Callable[..., Visitor]
) -> None:
    image, eve = ada.opened()["image"], meet()
    assert image.startswith("u")
    notes = eve.arrive(f"?image={image}").value["notes"]
    assert eve.opened()["image"] != image
    assert "uploaded elsewhere" in " ".join(notes)


def test_the_owner_finds_the_upload_again_by_its_id(ada: Visitor) -> None:
    image = ada.opened()["image"]
    ada.arrive(f"?image={image}&layer=2")
    assert ada.opened()["image"] == image


def test_a_picture_is_never_a_file_of_the_server(ada: Visitor, app: Server) -> None:
    assert ada.bring("private.png", encoded(photo(12), "PNG")).refusals == []
    assert ada.ask("open").refusals == []
    assert app.uploaded() == []


def test_the_log_says_nothing_of_pictures_and_their_names(ada: Visitor, eve: Visitor, app: Server) -> None:
    image = ada.opened()["image"]
    ada.bring("broken-holiday.jpg", b"\xff\xd8\xff" + bytes(50))
    eve.arrive(f"?image={image}&layer=999&model=a-strange-model")
    ada.http.get("/vit_viz/photo/not-a-handle")
    log = app.said()
    for word in (
        "ada-and-her-cat",
        "broken-holiday",
        image,
        "not-a-handle",
        "a-strange-model",
        ada.cookie.partition("=")[2],
    ):
        assert word not in log
    assert "Traceback" not in log


def test_a_visitor_without_cookies_is_served_as_well(meet: Callable[..., Visitor]) -> None:
    visitor = meet(keeps_cookies=False)
    visitor.arrive()
    assert visitor.bring("photo.png", encoded(photo(15), "PNG")).refusals == []
    value = visitor.opened()
    assert value["image"].startswith("u")
    assert visitor.http.get(value["photo"]).status_code == 200


def test_the_pictures_of_one_browser_are_in_no_other_s_tray(ada: Visitor, eve: Visitor) -> None:
    image = ada.opened()["image"]
    assert image in tray(ada)
    assert image not in tray(eve)
    assert "ada-and-her-cat" not in eve.ask("offered").text


def tray(visitor: Visitor) -> list[str]:
    """The ids of the pictures that a visitor is shown."""
    return [picture["id"] for picture in visitor.ask("offered").value["pictures"]]


def test_the_name_of_a_page_opens_nothing_in_another_browser(
    meet: Callable[..., Visitor], ada: Visitor
) -> None:
    """Of two that keep no cookies, too: of these each page has what is its own."""
    quiet, thief = meet(keeps_cookies=False), meet(keeps_cookies=False)
    for page in (quiet, thief):
        page.arrive()
    quiet.bring("quiet.png", encoded(photo(17), "PNG"))
    mine = quiet.opened()["image"]
    assert mine in tray(quiet)
    assert mine not in tray(thief)
    for other in (ada, meet()):
        other.http.get("/")
        other.page = quiet.page
        assert mine not in tray(other)


def test_who_keeps_no_cookies_and_names_no_page_is_nobody(meet: Callable[..., Visitor]) -> None:
    """A name that could be guessed is none."""
    nobody = meet(keeps_cookies=False)
    for nobody.page in ("", "abcd", "a" * 15, "A" * 20, "a" * 65, "../" * 8):
        for name in ("open", "offered", "target", "bring"):
            assert nobody.ask(name).status == 404
        assert nobody.question("classes", image={"sample": "lion"}).status == 404
