"""What a site answers to a question is what the app answers: both are asked from their pages, as rooms ask."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.browser.test_answers import KINDS, check
from tests.browser.test_passes import DIFFERENCES, ROUNDING, in_fp64, small_mini
from tests.ui.conftest import served_here
from tests.ui.desk import app_of
from tests.ui.test_site import _Silent, carry, file_of, served, wait_for_model, wait_for_picture
from vit_viz import samples
from vit_viz.analyses.registry import QUESTIONS
from vit_viz.checkpoints import load
from vit_viz.session.session import Session
from vit_viz.site import write_site

pytestmark = [pytest.mark.browser, pytest.mark.numbers]

PASSES = ("ablation", "occlusion", "trust")
"""Questions of many passes, which are asked of a model with 5 x 5 patches."""
NONE = ("rotary_similarity",)
"""Questions that mini has no answer to."""
OPTIONS: dict[str, dict[str, Any]] = {
    "trust": {"method": "rollout"},
    "without_patches": {"gone": "2,3;2,4"},
    "token_similarity": {"query": "3,4"},
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


def questions_of(site: Any) -> list[str]:
    """What the engine answers of models with learned positions."""
    names = site.evaluate("window.vit_viz('browser/answers/names.js').NAMES")
    return [name for name in names if name not in NONE]


def asked(page: Any, questions: list[str], image: str) -> list[Any]:
    """What a page is answered to questions about a photo that is brought, each with its arrays as the engine's types."""
    photo = file_of(samples.sample(image), "PNG")  # which every decoder reads alike
    page.locator(".vv-files").set_input_files({"name": "brought", "mimeType": "image/png", "buffer": photo})
    wait_for_picture(page, "brought")
    about = page.evaluate("document.querySelector('#vv-explorer').explorer.trace.about")
    model = {"model": about["model"]}
    bodies = [
        (name, (about if QUESTIONS[name].takes_image else model) | OPTIONS.get(name, {}))
        for name in questions
    ]
    told = page.evaluate(ASKING, bodies)
    for answer in told:
        for array in answer["arrays"].values():
            array["values"] = np.frombuffer(base64.b64decode(array["values"])).reshape(array["shape"])
    return list(told)


def as_python_has_it(answer: Any) -> Any:
    """An answer of the app's page, each array in the type of Python."""
    dtypes = {kind: dtype for dtype, kind in KINDS.items()}
    arrays = {name: array["values"].astype(dtypes[array["kind"]]) for name, array in answer["arrays"].items()}
    return answer | {"arrays": arrays}


@pytest.mark.parametrize("is_small", [False, True], ids=["mini", "of 5 x 5 patches"])
def test_each_answer_of_a_site_is_the_apps(is_small: bool, visit: Callable[..., Any], tmp_path: Path) -> None:
    loaded = small_mini(tmp_path)[0] if is_small else load("mini", device="cpu")
    session = Session(model=loaded.name, device="cpu")
    session.add_model(loaded)
    write_site([loaded], tmp_path / "site", storage="fp16")  # as its weights are
    with served(tmp_path / "site", _Silent) as address, served_here(app_of(session), session) as url:
        site, app = (visit(page, ready=False) for page in (address, url))
        for page in (site, app):
            wait_for_picture(page, samples.first_sample())
        questions = [name for name in questions_of(site) if (name in PASSES) == is_small]
        got, wanted = (asked(page, questions, "shapes") for page in (site, app))
    pixels = loaded.preprocess.apply(samples.sample("shapes")).pixels
    largest = float(loaded.model(pixels).detach().abs().max())
    for name, own, answer in zip(questions, got, wanted, strict=True):
        assert "refused" not in answer, name
        # either is off by as much
        terms = 2 * ROUNDING * largest if name in DIFFERENCES else 0.0
        check(own, as_python_has_it(answer), terms=terms)


def test_each_answer_on_a_model_that_is_dropped_is_the_apps(
    visit: Callable[..., Any], shared_data: Path, tmp_path: Path
) -> None:
    """ViT-Tiny, by the app in fp64: what fp32 rounds off of its smaller maps is up to 1e-5 of them, in the page and in Python."""
    path = shared_data / "vit_tiny_patch16_224.fp16.safetensors"
    loaded = load(path, device="cpu")
    session = Session(model=loaded.name, device="cpu")
    session.add_model(loaded)
    session = in_fp64(session)
    write_site([load("mini", device="cpu")], tmp_path)
    with served(tmp_path, _Silent) as address, served_here(app_of(session), session) as url:
        site, app = (visit(page, ready=False) for page in (address, url))
        wait_for_picture(site, samples.first_sample())
        carry(site, "dropped", path.name, path.read_bytes())
        for page in (site, app):
            wait_for_model(page, loaded.name, samples.first_sample())
        questions = [name for name in questions_of(site) if name not in PASSES]
        got, wanted = (asked(page, questions, "lion") for page in (site, app))
    for name, own, answer in zip(questions, got, wanted, strict=True):
        assert "refused" not in answer, name
        check(own, as_python_has_it(answer))
