"""What a site answers to a question is what the app answers: both are asked from their pages, as rooms ask."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.browser.test_answers import KINDS, check
from tests.browser.test_passes import DIFFERENCES, ROUNDING
from tests.ui.test_site import _Silent, served, wait_for_picture
from vit_viz import samples
from vit_viz.analyses.registry import QUESTIONS
from vit_viz.checkpoints import load
from vit_viz.site import write_site

pytestmark = [pytest.mark.browser, pytest.mark.server, pytest.mark.numbers]

SMALL = {"mode": "stretch", "size": 5}
"""Of questions that take a pass for each patch."""
BODIES: dict[str, dict[str, Any]] = {
    "ablation": SMALL,
    "occlusion": SMALL,
    "trust": SMALL | {"method": "rollout"},
    "without_patches": {"gone": "2,3;2,4"},
    "token_similarity": {"query": "5,6"},
}

ASKING = """async (asked) => {
  const { ask, source } = window.vit_viz('web/kit/page.js').thePage();
  const base64 = (bytes) => {
    let text = '';
    for (let at = 0; at < bytes.length; at += 30000) text += String.fromCharCode(...bytes.subarray(at, at + 30000));
    return btoa(text);
  };
  const told = [];
  for (const [name, body] of asked) {
    const answer = await ask(name, body).catch((error) => ({ refused: error.message }));
    const { facts, words, refused } = answer;
    const arrays = Object.entries(answer.arrays ?? {}).map(([array, { shape, data }]) => {
      const values = base64(new Uint8Array(Float64Array.from(data, Number).buffer));
      return [array, { shape, kind: data.constructor.name, values }];
    });
    told.push({ ...(refused ? { refused } : { facts, words }), arrays: Object.fromEntries(arrays) });
  }
  return told;
}"""


def asked(page: Any, questions: list[tuple[str, dict[str, Any]]]) -> list[Any]:
    """What a page is answered to questions, each with its arrays as 64-bit numbers."""
    told = page.evaluate(ASKING, questions)
    for answer in told:
        for array in answer["arrays"].values():
            array["values"] = np.frombuffer(base64.b64decode(array["values"])).reshape(array["shape"])
    return list(told)


def test_each_answer_of_a_site_is_the_apps(visit: Callable[..., Any], app_url: str, tmp_path: Path) -> None:
    mini = load("mini", device="cpu")
    write_site([mini], tmp_path, storage="fp16")  # as its weights are
    with served(tmp_path, _Silent) as address:
        site = visit(f"{address}?image=textures", ready=False)  # a PNG, which every decoder reads alike
        wait_for_picture(site, "textures")
        names = site.evaluate("window.vit_viz('browser/answers/names.js').NAMES")
        about = {"model": "mini", "image": {"sample": "textures"}, "mode": "fit"}
        questions = [
            (name, (about if QUESTIONS[name].takes_image else {"model": "mini"}) | BODIES.get(name, {}))
            for name in names
        ]
        got = asked(site, questions)
    wanted = asked(visit(f"{app_url}?image=textures"), questions)
    pixels = mini.preprocess.apply(samples.sample("textures"), **SMALL).pixels
    largest = float(mini.model(pixels).detach().abs().max())
    assert [name for (name, _), answer in zip(questions, wanted, strict=True) if "refused" in answer] == [
        "rotary_similarity"
    ]
    dtypes = {kind: dtype for dtype, kind in KINDS.items()}
    for (name, _), own, answer in zip(questions, got, wanted, strict=True):
        answer["arrays"] = {
            key: array["values"].astype(dtypes[array["kind"]]) for key, array in answer["arrays"].items()
        }
        check(own, answer, terms=ROUNDING * largest if name in DIFFERENCES else 0.0)
