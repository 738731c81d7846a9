"""The question in the panel as part of a view, and its link."""

from __future__ import annotations

import pytest

from vit_viz.errors import ParameterError
from vit_viz.views.panel import Panel
from vit_viz.views.places import panel_of
from vit_viz.views.state import ViewState


def test_a_panel_survives_its_address_with_its_options() -> None:
    panel = Panel.of("segments", {"count": 7, "method": "cut", "box": "1,2,3,4"})
    view = ViewState(panel=panel)
    assert view.to_address() == "ask=segments&ask.method=cut&ask.count=7&ask.box=1%2C2%2C3%2C4"
    assert ViewState.from_address(view.to_address()) == (view, ())
    asked = ViewState(panel=Panel(panel.name, panel.options, runs=True))
    assert ViewState.from_address(asked.to_address()) == (asked, ())


def test_the_order_of_a_link_does_not_matter() -> None:
    turned = "run=1&ask.cols=6&ask.rows=5&ask=position_components"  # rows without columns are refused
    view, problems = ViewState.from_address(turned)
    assert (problems, view.panel) == ((), Panel("position_components", view.panel.options, True))  # type: ignore[union-attr]
    assert view.panel.options.values() == {"rows": 5, "cols": 6}  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("link", "panel", "said"),
    [
        ("ask=nothing&ask.count=3", None, "There is nothing called 'nothing'"),
        (
            "ask=links&ask.count=0",
            Panel.of("links"),
            "option “links” of “Strongest links” is a whole number from 1",
        ),
        ("ask=links&ask.colour=0", Panel.of("links"), "“Strongest links” has no option 'colour'"),
        ("ask.count=3&run=1", None, ""),
    ],
)
def test_what_is_not_possible_is_one_sentence_and_the_rest_stays(
    link: str, panel: Panel | None, said: str
) -> None:
    view, problems = ViewState.from_address(f"tab=heads&{link}")
    assert (view.tab, view.panel, len(problems)) == ("heads", panel, 1 if said else 0)
    assert said in "".join(problems)


def test_another_option_takes_back_that_a_slow_question_is_asked() -> None:
    view = ViewState().with_options({"ask": "ablation", "run": True})
    assert view.panel == Panel("ablation", Panel.of("ablation").options, runs=True)
    assert view.with_options({"ask.how": "mean"}).panel == Panel.of("ablation", {"how": "mean"})
    with pytest.raises(ParameterError, match="option “how” of “Causal effect of heads” is one of"):
        view.with_options({"ask.how": "never"})
    assert view.with_options({"ask": ""}).panel is None


@pytest.mark.parametrize(
    ("address", "name", "options"),
    [
        ("tab=heads", "heads", {"measure": "distance"}),
        ("tab=heads&measure=entropy", "heads", {"measure": "entropy"}),
        ("tab=heads&measure=estimate&how=mean", "head_importance", {"how": "mean"}),
        ("tab=heads&measure=effect&how=uniform", "ablation", {"how": "uniform"}),
        ("tab=tokens", "token_similarity", {"role": "tokens"}),
        ("tab=tokens&tokens=norms&outliers=3", "token_norms", {}),
        ("tab=tokens&tokens=layers&vectors=keys", "layer_similarity", {"role": "keys"}),
        ("tab=tokens&tokens=segments&layer=3", "segments", {"layer": 3, "method": "k-means"}),
        ("tab=tokens&tokens=lens", "logit_lens", {}),
    ],
)
def test_a_tab_answers_the_question_that_it_shows(
    address: str, name: str, options: dict[str, object]
) -> None:
    view, _ = ViewState.from_address(address)
    panel = panel_of(view)
    assert panel.name == name
    assert panel.options.values().items() >= options.items()


def test_a_tab_that_draws_no_answer_by_itself_says_so() -> None:
    with pytest.raises(ParameterError, match="no figure of its own"):
        panel_of(ViewState(tab="walkthrough"))
