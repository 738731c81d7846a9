"""What `help()` shows of the public functions runs as it stands, without a network, and prints what it says."""

from __future__ import annotations

import doctest
import inspect

import pytest

import vit_viz as vv

FUNCTIONS = [name for name in vv.__all__ if inspect.isfunction(getattr(vv, name))]


def examples(name: str) -> list[doctest.DocTest]:
    """The examples of a public name and of its methods; they see only what they import."""
    finder = doctest.DocTestFinder(exclude_empty=True)
    found = finder.find(getattr(vv, name), f"vv.{name}", globs={})
    return [test for test in found if test.examples]


@pytest.mark.parametrize("name", vv.__all__)
def test_examples_print_what_they_say(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if name == "serve":  # the page itself is opened elsewhere
        monkeypatch.setattr("vit_viz.ui.app.launch", lambda *_, **__: None)
        monkeypatch.setattr("vit_viz.listening.check_address", lambda *_: None)  # somebody may listen there
    runner, said = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE), []
    for test in examples(name):
        runner.run(test, out=said.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(said)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_function_is_used_in_an_example_of_its_own(name: str) -> None:
    (test,) = examples(name)
    lines = [example.source for example in test.examples]
    assert lines[0] == "import vit_viz as vv\n"
    assert any(f"vv.{name}(" in line for line in lines)
    assert [example for example in test.examples if doctest.SKIP in example.options] == []


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_can_be_ended_says_under_raises_how_it_ends(name: str) -> None:
    function = getattr(vv, name)
    raises = (inspect.getdoc(function) or "").partition("Raises:")[2].partition("\n\n")[0]
    assert ("cancelled" in inspect.signature(function).parameters) == ("Cancelled:" in raises)


def test_an_example_that_is_wrong_is_noticed() -> None:
    wrong = doctest.DocTestParser().get_doctest(">>> 1 + 1\n3\n", {}, "wrong", None, 0)
    assert doctest.DocTestRunner().run(wrong, out=lambda _: None).failed == 1
