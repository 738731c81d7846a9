"""Classes that a view may be explained for: the one that its link names, the first ones, and those that a text means."""

from __future__ import annotations

from typing import Any

from vit_viz.checkpoints import LoadedModel, Model
from vit_viz.checkpoints.catalog import BUNDLED
from vit_viz.checkpoints.unwrapping import listed
from vit_viz.errors import ParameterError
from vit_viz.labels import Labels
from vit_viz.model import SentenceHead
from vit_viz.outputs import Noun, Output, noun_of, output_kind, output_name, shown
from vit_viz.prompts import Prompts
from vit_viz.session.request import Subject
from vit_viz.session.session import Session
from vit_viz.views.state import ViewState

MOST_HITS = 12
_SHARES: dict[Output, str] = {
    "softmax": "The cosine of photo and sentence, and the sentence's share: the softmax of all cosines times the model's scale. "
    "Shares depend on which sentences are there.",
    "sigmoid": "The cosine of photo and sentence, and whether the sentence holds: a sigmoid of its own, whatever the others.",
    "value": "The cosine of photo and sentence. A sentence alone has no share: add another one to compare it with.",
}
"""What the numbers of sentences mean, by what one of them is."""
_ALIKE = (
    "The cosine of this photo with each. Pictures lie nearer to each other than to sentences, so where one of these is a picture "
    "there are no shares."
)
_CHIPS = 3  # classes that are offered at once; the search has all

_NO_CLASSES = (
    "This model has no classes. The maps explain its own embedding of this photo: what makes the embedding what it is. "
    "Whether a map changes with the class cannot be measured without classes."
)
_UNASKED = (
    "No sentence is asked about yet, so the maps explain the model's own embedding of this photo: what makes the embedding "
    "what it is."
)
_EXAMPLES = ("an animal", "the sky", "a person")
# of the bundled model, which knows drawn shapes
_OF_SHAPES = ("a red circle", "a green star", "a blue square", "the background")


def value(session: Session, subject: Subject, view: ViewState, find: str | None = None) -> dict[str, Any]:
    """The first classes and those that the view names, the model's first where none is named that exists, and what has to be said.

    Args:
        find: only the classes that this text means are wanted.
    """
    logits, prepared = session.trace_of(subject).logits, session.prepared(subject)
    if logits is None:
        raise ParameterError("This model returns no scores of classes, so there is nothing to explain.")
    loaded, count = session.model_of(subject), logits.numel() if prepared.has_classes else 0
    labels, head = loaded.labels, getattr(loaded.model, "head", None)
    kind = output_kind(prepared.output, count) if count else "softmax"
    if find is not None:
        return {"hits": matching_classes(labels, count, find, noun=noun_of(kind))}
    chosen, problem = _chosen(view.target, count)
    asked = _asked(session, subject)
    if not count:
        words = _UNASKED if asked.get("reads") else _NO_CLASSES
        return {"classes": [], "words": f"{words} {problem}".strip(), "name": "", "link": "", **asked}
    answers = shown(logits.float(), kind).cpu()
    first, *others = chosen or (int(logits.argmax()),)
    listed = dict.fromkeys([*answers.topk(min(_CHIPS, count)).indices.tolist(), first, *others])
    names = {index: output_name(index, labels, noun_of(kind)) for index in listed}
    amount = "value" if kind == "value" else "probability"
    cosines: dict[int, dict[str, float]] = {}
    if isinstance(head, SentenceHead):  # all of them, in their order, with the similarity itself
        names = dict(enumerate(session.sentence_names(subject)))
        cosines = {i: {"cosine": cosine} for i, cosine in enumerate(head.cosines(logits).tolist())}
        asked["shares"] = _ALIKE if subject.prompts.pictures else _SHARES[kind]
    return {
        "classes": [
            {"index": i, "name": names[i], amount: float(answers[i])} | cosines.get(i, {}) for i in names
        ],
        "chosen": first,
        "other": others[0] if others else None,
        "words": " ".join(filter(None, (problem, _unknown(loaded, subject.prompts)))),
        "name": " and not ".join(names[i] for i in (first, *others)),
        "link": "-".join(map(str, (first, *others))),
        **asked,
    }


def _asked(session: Session, subject: Subject) -> dict[str, Any]:
    """How a model without classes can be asked: whether it reads sentences, with some to try; nothing of any other model."""
    loaded = session.model(subject.model)
    if loaded.has_classes or not isinstance(loaded, LoadedModel):
        return {}
    if loaded.text is None:
        return {"reads": False}
    return {"reads": True, "examples": _OF_SHAPES if loaded.name in BUNDLED else _EXAMPLES}


def _unknown(loaded: Model, prompts: Prompts) -> str:
    """Which words of the sentences the model has no token for; "" for none."""
    if loaded.text is None:
        return ""
    sentences = (one for one in prompts.sentences if one not in prompts.pictures)
    words = dict.fromkeys(word for one in sentences for word in loaded.text.tokenizer.unknown_words(one))
    if not words:
        return ""
    return f"This model does not know {listed(f'“{word}”' for word in words)}: all such words are one to it."


def with_sentences(view: ViewState, written: str) -> dict[str, str]:
    """What the link of a view says once it is asked about these sentences, too; the last of them is what is explained.

    Raises:
        ParameterError: there are too many, or one is too long.
    """
    new = Prompts(written).sentences
    every = Prompts([*Prompts(view.sentences).sentences, *new])
    chosen = {"target": str(every.sentences.index(new[-1]))} if new else {}
    return {"sentences": str(every), **chosen}


def _chosen(target: str, count: int) -> tuple[tuple[int, ...], str]:
    """The classes that a link names, or none and why not."""
    chosen = tuple(int(part) for part in target.split("-") if part)
    is_against_itself = len(set(chosen)) < len(chosen)
    if not is_against_itself and all(index < count for index in chosen):
        return chosen, ""
    if count == 1:
        return (), "This model has one output, which is explained."
    if not count:
        return (), "A class was asked for, but this model has none."
    if is_against_itself:
        return (), "A class cannot be set against itself; the first class is explained."
    return (), f"This model has classes 0-{count - 1}; its first class is explained instead."


def matching_classes(
    labels: Labels | None, classes: int, text: str, *, noun: Noun = "class"
) -> list[dict[str, Any]]:
    """Classes that a text means, the best first."""
    if labels is None:
        digits = text.strip()
        is_index = digits.isascii() and digits.isdigit() and len(digits) < 7
        indices: tuple[int, ...] = (int(digits),) if is_index else ()
    else:
        indices = labels.search(text, limit=MOST_HITS)
    return [{"index": i, "name": output_name(i, labels, noun)} for i in indices if i < classes]
