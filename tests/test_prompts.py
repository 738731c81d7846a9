"""Sentences and templates as people bring them: cleaned where that changes nothing that is seen, else refused in one sentence."""

from __future__ import annotations

import re

import pytest

import vit_viz as vv
from vit_viz.errors import ParameterError
from vit_viz.prompts import LONGEST, MOST_SENTENCES, Prompts, words_of
from vit_viz.views.state import ViewState


@pytest.mark.parametrize(
    ("written", "sentences"),
    [
        (" a  dog\t|a\ncat ", ("a dog", "a cat")),
        ("a dog | a dog |a  dog|", ("a dog",)),
        ("a\x00dog\x1b[31m\x85cat", ("a dog [31m cat",)),
        ("\u202eevil\u202c \u2066dog\u2069\ufeff", ("evil dog",)),
        ("cafe\u0301 | caf\u00e9", ("caf\u00e9",)),
        ("\u06a9\u062a\u0627\u0628\u200c\u0647\u0627", ("\u06a9\u062a\u0627\u0628\u200c\u0647\u0627",)),
        ("<img src=x onerror=alert(1)> | {} {0} %s ${x}", ("<img src=x onerror=alert(1)>", "{} {0} %s ${x}")),
        (" | \u2028 | \ue000 ", ()),
    ],
)  # fmt: skip
def test_what_has_no_shape_goes_and_what_is_read_stays(written: str, sentences: tuple[str, ...]) -> None:
    prompts = Prompts(written)
    assert prompts.sentences == sentences
    assert Prompts(str(prompts)) == prompts


def test_at_the_limits_sentences_are_taken_and_beyond_them_refused_in_one_sentence() -> None:
    most = [f"dog {i}" for i in range(MOST_SENTENCES)]
    assert len(Prompts(most).sentences) == MOST_SENTENCES
    assert Prompts("x" * LONGEST).sentences == ("x" * LONGEST,)
    refused: list[tuple[object, str]] = [
        ([*most, "one more"], "At most 32 sentences are compared at a time, not 33."),
        ("x" * (LONGEST + 1), "One of the sentences is longer than 300 characters"),
        ("x" * 10**6, "One of the sentences is longer than 300 characters"),
        (["a | b"], "“|” stands between sentences and cannot be part of one"),
        ([3], "One of the sentences is no text, but '3'."),
    ]
    for given, words in refused:
        with pytest.raises(ParameterError, match=re.escape(words)) as refusal:
            Prompts(given)  # type: ignore[arg-type]
        assert len(str(refusal.value)) < 200


@pytest.mark.parametrize("template", ["a photo", "{} and {}", "{0}", "{name}", "{{}} {}", ""])
def test_a_template_says_once_where_the_sentence_goes(template: str) -> None:
    if template.count("{}") == 1 or not template:
        assert Prompts("a dog", template).templates == (template or "{}",)
        return
    with pytest.raises(ParameterError, match=r"A template has \{\} once"):
        Prompts("a dog", template)


def test_a_target_of_two_sentences_is_read_in_one_way() -> None:
    assert words_of(("a dog", vv.Text("a cat"))).sentences == ("a dog", "a cat")
    assert not words_of((3, "a cat"))
    with pytest.raises(ParameterError, match="the same templates"):
        words_of((vv.Text("a dog", ("a photo of {}.",)), "a cat"))


def test_a_link_holds_the_sentences_and_says_what_of_it_is_refused() -> None:
    link = {"sentences": " a dog\x07 |<b>&amp;|a dog", "templates": "a photo of {}. | {}", "target": "1"}
    view = ViewState().with_options(link)
    again, problems = ViewState.from_address(view.to_address())
    assert (again, problems) == (view, ())
    assert (view.sentences, view.templates) == ("a dog | <b>&amp;", "a photo of {}. | {}")
    view, problems = ViewState.from_address("?templates=a+photo&sentences=a+dog")
    assert (view.sentences, view.templates) == ("a dog", "")
    assert problems == (
        "A template has {} once, where the sentence goes, as 'a photo of {}.' has: not 'a photo'.",
    )


def test_sentences_stay_with_another_photo_and_go_with_the_model() -> None:
    view = ViewState(model="a", sentences="a dog | a cat", templates="a photo of {}.", target="1-0")
    for change in ({"image": "b"}, {"part": "1,2,30,40"}, {"size": 9}, {"mode": "crop"}):
        other = view.on_subject(**change)
        assert (other.sentences, other.templates, other.target) == (view.sentences, view.templates, "1-0")
    other = view.on_subject(model="b")
    assert (other.sentences, other.templates, other.target) == ("", "", "")
    assert ViewState(target="1-0").on_subject(image="b").target == ""
