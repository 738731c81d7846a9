"""Asking in words on the Explain tab: what the page is told of sentences, and a visitor who writes some."""

from __future__ import annotations

from typing import Any

import pytest

from tests.checkpoints.test_text_towers import own_file
from tests.ui.conftest import served_here
from tests.ui.desk import app_of, odd_picture
from tests.ui.test_access import axe
from tests.ui.waits import expect, expect_in_address
from vit_viz.session.session import Session
from vit_viz.ui.payload import answers_of
from vit_viz.ui.target import value
from vit_viz.views.choices import subject_of
from vit_viz.views.state import ViewState


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Session:
    """A session whose own model reads sentences: random weights, in a file of our own format."""
    path = tmp_path_factory.mktemp("reader") / "reader.safetensors"
    own_file(path)
    return Session(model=str(path), device="cpu")


def told(session: Session, **choices: str) -> dict[str, Any]:
    """What the page is told of what is explained."""
    view = ViewState(image="tower", **choices)
    return value(session, subject_of(session, view, ""), view)


def test_without_sentences_the_page_has_some_to_try_and_says_what_is_explained_meanwhile(
    reader: Session,
) -> None:
    said = told(reader)
    assert (said["reads"], said["classes"], bool(said["examples"])) == (True, [], True)
    assert said["words"].startswith("No sentence is asked about yet, so the maps explain the model's own")
    assert said["words"].endswith("what it is.")  # also on Heads, where there is no field
    assert "reads" not in told(Session(model="mini", device="cpu"))


def test_all_sentences_are_listed_in_their_order_with_cosine_and_share(reader: Session) -> None:
    said = told(reader, sentences="a circle | red | <b>square</b>", target="2-0")
    assert [one["name"] for one in said["classes"]] == ["a circle", "red", "<b>square</b>"]
    assert (said["chosen"], said["other"], said["link"]) == (2, 0, "2-0")
    assert sum(one["probability"] for one in said["classes"]) == pytest.approx(1, abs=1e-6)
    loaded = reader.model(reader.default_model)
    logits = reader.trace_of(subject_of(reader, ViewState(image="tower"), "")).logits
    assert logits is not None
    expected = (logits / logits.norm()) @ loaded.encode_text(["a circle", "red", "<b>square</b>"]).T
    assert [one["cosine"] for one in said["classes"]] == pytest.approx(expected.tolist(), abs=1e-5)
    assert "depend on which sentences are there" in said["shares"]
    assert "add another one" in told(reader, sentences="red")["shares"]


def test_the_header_has_the_cosine_of_a_sentence_without_a_share_as_explain_has_it(reader: Session) -> None:
    view = ViewState(image="tower", sentences="red | @lion")
    header = answers_of(reader, subject_of(reader, view, "")) or []
    explained = {one["name"]: one["cosine"] for one in told(reader, sentences="red | @lion")["classes"]}
    assert {one["name"]: one["cosine"] for one in header} == explained
    assert all("value" in one for one in header)


def test_uploads_in_the_place_of_sentences_have_the_names_that_their_owner_gave_them(reader: Session) -> None:
    ids = [reader.add_upload(odd_picture(seed), owner="ada", file_name=f"dog {seed}.png") for seed in (1, 2)]
    view = ViewState(image="tower", sentences=f"@{ids[0]} | @{ids[1]} 0,1 | red")
    subject = subject_of(reader, view, "ada")
    expected = ["the photo ‘dog 1’", "patch (0, 1) of the photo ‘dog 2’", "red"]
    assert [one["name"] for one in value(reader, subject, view)["classes"]] == expected
    assert {one["name"] for one in answers_of(reader, subject) or []} == set(expected)
    assert subject.prompts.names[0] == "another photo"  # in what is kept, which others may ask for, too


@pytest.mark.browser
@pytest.mark.slow
def test_a_visitor_writes_sentences_chooses_one_and_goes_back(reader: Session, browser: Any) -> None:
    with served_here(app_of(reader), reader) as url:
        page = browser.new_page(viewport={"width": 390, "height": 844})
        problems: list[str] = []
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto(f"{url}?tab=explain&image=tower")
        page.get_by_role("button", name="the sky").click()
        expect_in_address(page, "sentences=the+sky")
        field = page.get_by_label("A sentence that is asked about")
        for words in ("<img src=x onerror=alert(1)>", "a red circle"):
            field.fill(words)
            field.press("Enter")
            expect(page.locator(".vv-written .vv-chip[aria-pressed=true]")).to_have_text(words)
        expect(page.locator(".vv-every .vv-side canvas[data-drawn]")).to_have_count(3)
        expect(page.locator(".vv-best .vv-map")).to_have_count(1)
        expect(page.locator(".vv-answer")).to_have_count(3)
        page.locator(".vv-every .vv-side").first.click()
        expect_in_address(page, "target=0")
        sizes = "nodes => nodes.map(node => node.getBoundingClientRect()).map(({width, height}) => [width, height])"
        for size in page.locator(":is(.vv-written, .vv-write, .vv-example) :is(button, input)").evaluate_all(
            sizes
        ):
            assert min(size) >= 24, size
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.evaluate(axe())
        run = "axe.run(':is(#vv-target, .vv-every, .vv-best)').then(({ violations }) => violations.map(({ id }) => id))"
        assert page.evaluate(run) == []
        page.locator(".vv-templates summary").click()
        read = page.get_by_label("How sentences are read")
        read.fill("<b>{0}")
        read.press("Enter")
        expect(page.locator(".vv-templates .vv-refused")).to_contain_text("not '<b>{0}'")
        expect(read).to_have_value("<b>{0}")
        read.fill(" a  photo of {}. ")
        read.press("Enter")
        expect(page.locator(".vv-templates summary")).to_have_text("Read as “a photo of {}.”")
        expect(read).to_have_value("a photo of {}.")
        expect(page.locator(".vv-templates .vv-refused")).to_be_hidden()
        page.go_back()
        expect(page.locator(".vv-templates summary")).to_have_text("Read as they are written")
        page.get_by_label("Take “<img src=x onerror=alert(1)>” away").click()
        expect(page.locator(".vv-written")).to_have_count(2)
        page.go_back()
        expect(page.locator(".vv-written")).to_have_count(3)
        assert problems == []
        page.close()
