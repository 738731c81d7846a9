"""The question in the panel as part of a view, and its link."""

from __future__ import annotations

import pytest

from vit_viz.analyses.registry import QUESTIONS
from vit_viz.views.panel import Panel
from vit_viz.views.state import ViewState


def panel_of(name: str, **options: object) -> Panel:
    return Panel(name, QUESTIONS[name].read(options))


def test_a_panel_survives_its_address_with_its_options() -> None:
    panel = panel_of("segments", count=7, method="cut", box="1,2,3,4")
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
            panel_of("links"),
            "option “links” of “Strongest links” is a whole number from 1",
        ),
        ("ask=links&ask.colour=0", panel_of("links"), "“Strongest links” has no option 'colour'"),
        ("ask.count=3&run=1", None, ""),
        ("ask=links&ask.count=3&run=0", panel_of("links", count=3), ""),
        (
            "ask=ablation&run=1&ask.how=never",
            panel_of("ablation"),
            "option “how” of “Causal effect of heads” is one of",
        ),
    ],
)
def test_what_is_not_possible_is_one_sentence_and_the_rest_stays(
    link: str, panel: Panel | None, said: str
) -> None:
    view, problems = ViewState.from_address(f"tab=heads&{link}")
    assert (view.tab, view.panel, len(problems)) == ("heads", panel, 1 if said else 0)
    assert said in "".join(problems)
