"""The question in the panel as part of a view, and its link."""

from __future__ import annotations

import pytest

from vit_viz.errors import ParameterError
from vit_viz.views.panel import Panel
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
