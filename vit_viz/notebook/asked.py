"""Questions that the browser asks the kernel: JSON in, facts and arrays out, every array as its own bytes."""

from __future__ import annotations

import numpy as np

from vit_viz.analyses.registry import QUESTIONS
from vit_viz.errors import ParameterError
from vit_viz.offline.explored import Explored, Selection
from vit_viz.results import PatchMap
from vit_viz.sentences import sentence
from vit_viz.session.answers import arrays_of
from vit_viz.session.inputs import InputOptions, Json, wish_of
from vit_viz.session.plain import facts_of


def reply(explored: Explored, shown: Selection, content: Json) -> tuple[Json, list[bytes]]:
    """What answers a message {"ask": any, "question": name, "asked": options}: content and buffers.

    The content holds "ask" again, "facts", and "arrays" with name, shape and dtype of each buffer; or "error", one sentence.
    """
    try:
        name, asked = content.get("question"), content.get("asked", {})
        return _answer(explored, shown, content["ask"], str(name), asked)
    except Exception as error:  # what waits in the browser is told in any case
        return {"ask": content["ask"], "error": sentence(error)}, []


def _answer(
    explored: Explored, shown: Selection, ask: object, name: str, asked: object
) -> tuple[Json, list[bytes]]:
    question = QUESTIONS.named(name)
    fixed = {field.name for field in InputOptions.schema()}
    if not isinstance(asked, dict) or fixed & set(asked):
        raise ParameterError(
            "The options of a question are a JSON object; the photo is that of the explorer."
        )
    wish = wish_of(question, asked)
    given = {name: value for name, value in wish.asked.items() if value is not None}
    answer = explored.run(shown, name, **given)
    facts, arrays = facts_of(answer), arrays_of(answer)
    if isinstance(answer, PatchMap):
        facts |= {"suffix_kinds": answer.suffix_kinds}
    described = [
        {"name": part, "shape": list(values.shape), "dtype": values.dtype.str}
        for part, values in arrays.items()
    ]
    buffers = [np.ascontiguousarray(values).tobytes() for values in arrays.values()]
    return {"ask": ask, "facts": facts, "arrays": described}, buffers
