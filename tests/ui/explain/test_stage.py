"""What the stage of the Explain tab is answered with: the map, its controls, and what is left without patches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from PIL import Image
from starlette.applications import Starlette
from starlette.testclient import TestClient

from tests.ui.desk import HEIGHT, OWNER, WIDTH
from vit_viz.analyses.methods import METHODS
from vit_viz.analyses.removal import WithoutPatches
from vit_viz.errors import ParameterError, VitVizError
from vit_viz.explorer.value import link_fields
from vit_viz.figures.maps import drawn_words
from vit_viz.results import PatchMap
from vit_viz.session.request import Request, Subject
from vit_viz.session.session import Session
from vit_viz.ui.explain import stage
from vit_viz.ui.help import listing
from vit_viz.ui.opened import PageCall, page_route
from vit_viz.views.choices import arrived

LEFT = (WIDTH - HEIGHT * 48 / 32) / 2  # of the crop, in pixels of the photo
PATCH = (HEIGHT / 4, HEIGHT * 1.5 / 6)

Call = Callable[..., PageCall]


@pytest.fixture
def call(session: Session, image: str) -> Call:
    def asked(link: str = "", *, cancelled: Callable[[], bool] = lambda: False, **body: Any) -> PageCall:
        view, problems = arrived(session, f"model=odd&image={image}&mode=crop&{link}", OWNER)
        return PageCall(session, OWNER, view, problems, body, cancelled)

    return asked


def the_map(session: Session, image: str, method: str, **more: Any) -> PatchMap:
    answer = session.run(Request.of("odd", image, method, mode="crop", owner=OWNER, **more))
    assert isinstance(answer, PatchMap)
    return answer


def first_classes(session: Session, image: str) -> tuple[int, ...]:
    ranking = session.top_classes_of(Subject("odd", image, mode="crop", owner=OWNER), count=7)
    assert ranking is not None
    return tuple(ranking.indices)


def test_a_method_is_put_on_the_stage_with_its_options(call: Call) -> None:
    rollout = stage._stage(call("method=rollout&q=2,5"))
    name, body = rollout["figure"]
    assert (name, body["query"], body["figure"]) == ("rollout", "2,5", {"shared_scale": False})
    for words in ("the same for every class", "attention share 0.5", "mean over heads", "patch (2, 5)"):
        assert words in rollout["caption"]
    assert rollout["pick"] is True
    assert rollout["area"] == [0.0, 0.0, float(HEIGHT), float(WIDTH)]
    assert rollout["cells"]["grid"] == [4, 6]
    assert rollout["rings"][0] == pytest.approx(
        [2 * PATCH[0], LEFT + 5 * PATCH[1], 3 * PATCH[0], LEFT + 6 * PATCH[1]], abs=0.2
    )
    assert rollout["note"].startswith("Outside the photo: class ")
    assert "registers" in rollout["note"]
    changed = stage._stage(call("method=rollout&q=2,5&share=0.25&discard=0.5"))
    assert "attention share 0.25" in changed["caption"]
    assert "discard 0.5" in changed["caption"]
    relevance = stage._stage(call("q=2,5"))
    assert "explains the output, not the pinned patch (2, 5)" in relevance["caption"]
    assert "scale: own" in relevance["caption"]
    assert drawn_words("light", smooth=True) in relevance["caption"]
    assert (relevance["pick"], relevance["rings"]) == (False, [])
    heat, tint = (stage._stage(call(f"style={style}&alpha=0.55")) for style in ("heat", "tint"))
    assert "heat; smooth between patch centres; strength 55%" in heat["caption"]
    assert heat["bar"]["stops"] != tint["bar"]["stops"]


def test_the_controls_are_those_of_the_method_and_of_how_it_is_drawn(call: Call) -> None:
    rollout, relevance = stage._stage(call("method=rollout")), stage._stage(call())
    assert "Abnar &amp; Zuidema 2020" in rollout["formula"]
    assert rollout["formula"] != relevance["formula"]
    options = {control["name"]: control for control in rollout["options"]}
    assert list(options) == ["query", "attention_share", "discard", "head_fusion", "first", "last"]
    assert (options["query"]["choices"], options["query"]["default"]) == (["class", "register 0"], "class")
    last = {"link": "last", "low": 0, "high": 2, "layers": 3, "default": -1}
    assert {name: options["last"][name] for name in last} == last
    assert [options["discard"][name] for name in ("low", "high", "step")] == [0, 0.95, 0.05]
    assert relevance["options"] == []
    labels = [one["label"] for one in relevance["drawing"]]
    assert labels == ["style", "strength", "colours of heat", "smooth"]
    assert rollout["drawing"] == relevance["drawing"]


@pytest.mark.parametrize("method", [method.name for method in METHODS.cards])
def test_every_control_has_a_name_in_links_that_the_page_knows_and_no_two_have_one_name(
    method: str, session: Session
) -> None:
    known = {field["link"]: field for field in link_fields()}
    fields = METHODS[method].options.schema()
    controls = [stage._control(field, method, 3) for field in fields]
    for control in controls:
        assert known[control["link"]]["default"] == control["default"]
        assert f'"{control["name"]}"' in listing().decode()
        assert control["sentence"].endswith(".")
    names = [*(control["name"] for control in controls), *stage._DRAWING, "query", "suffix"]
    assert len(set(names)) == len(names)


def test_patches_are_taken_away_on_the_stage(call: Call, session: Session, image: str) -> None:
    value = stage._stage(call())
    best = first_classes(session, image)[0]
    assert value["grid"] == [4, 6]
    assert value["photo_size"] == [HEIGHT, WIDTH]
    assert value["region"] == pytest.approx([0, LEFT, HEIGHT, HEIGHT * 1.5], abs=0.2)
    assert (value["key"], value["target"]) == (call().view.about, str(best))
    assert (value["method"], value["shows"]) == ("Relevance", "relevance")
    order = np.argsort(-the_map(session, image, "relevance", target=best).values.ravel(), kind="stable")
    assert [int(part) for part in value["order"].split(",")] == order.tolist()
    answer = stage._without(call(gone="0,7,23"))
    without = session.run(
        Request.of("odd", image, "without patches", mode="crop", owner=OWNER, gone=[(0, 0), (1, 1), (3, 5)])
    )
    assert isinstance(without, WithoutPatches)
    now = dict(zip(without.top.names, without.top.scores.tolist(), strict=True))
    assert answer["top"][0]["name"] == f"animal {best}"
    assert [line["target"] for line in answer["top"]] == [True, *[False] * (len(answer["top"]) - 1)]
    listed = {line["name"]: line["now"] for line in answer["top"]}
    assert {name: score for name, score in listed.items() if name in now} == pytest.approx(
        {name: score for name, score in now.items() if name in listed}
    )
    assert set(without.top.names[:2]) <= set(listed)
    assert answer["words"].startswith(f"Without 12% of the photo, animal {best} ")
    with pytest.raises(ParameterError, match="0 to 23"):
        stage._without(call(gone="24"))
    for nothing in ({}, {"gone": ""}):
        assert stage._without(call(**nothing)) == value["whole"]


def test_the_answers_are_about_the_target_whatever_it_scores(
    call: Call, session: Session, image: str
) -> None:
    ranking = session.top_classes_of(Subject("odd", image, mode="crop", owner=OWNER), count=7)
    assert ranking is not None
    last, before_last = ranking.indices[6], ranking.indices[5]
    value = stage._stage(call(f"target={last}-{before_last}"))
    assert value["target"] == f"{last}-{before_last}"
    whole = value["whole"]["top"]
    expected = [last, before_last, *ranking.indices[:3]]
    assert [line["name"] for line in whole] == [f"animal {index}" for index in expected]
    assert [line["target"] for line in whole] == [True, True, False, False, False]
    assert [line["now"] for line in whole] == pytest.approx(
        [ranking.scores[list(ranking.indices).index(i)] for i in expected]
    )
    assert all("before" not in line and "→" not in line["text"] for line in whole)
    assert value["whole"]["words"].startswith(f"With all patches: animal {last} ")
    answer = stage._without(call(f"target={last}-{before_last}", gone="1"))
    assert [line["name"] for line in answer["top"][:2]] == [f"animal {last}", f"animal {before_last}"]
    assert [line["before"] for line in answer["top"][:5]] == pytest.approx([line["now"] for line in whole])
    assert all("→" in line["text"] for line in answer["top"])
    assert f"animal {last} " in answer["words"]


def test_what_runs_hears_whether_somebody_waits_for_it(
    call: Call, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, heard = session.run, dict[str, Any]()

    def noted(request: Request, **how: Any) -> Any:
        heard[request.question] = how.get("cancelled")
        return run(request, **how)

    monkeypatch.setattr(session, "run", noted)
    asked = call("method=legrad", gone="3")
    stage._stage(asked)
    stage._without(asked)
    assert heard["legrad"] is heard["without patches"] is asked.cancelled


def test_a_picture_that_is_gone_is_refused_in_one_sentence(session: Session) -> None:
    image = session.add_upload(Image.new("RGB", (31, 17)), owner=OWNER)
    view, _ = arrived(session, f"model=odd&image={image}", OWNER)
    session.uploads._drop(image)
    with pytest.raises(VitVizError, match="no longer here"):
        stage._stage(PageCall(session, OWNER, view, (), {}, lambda: False))


def test_the_page_asks_by_post_and_hears_a_refusal_as_json(session: Session) -> None:
    with TestClient(Starlette(routes=[page_route(session, *one) for one in stage.ANSWERS.items()])) as client:
        answer = client.post("/vit_viz/without", json={"view": 3})
    assert answer.status_code == 400
    assert "asks 'without' of a view" in answer.json()["error"]
