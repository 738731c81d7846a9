"""Sentences that a picture is scored by, and the templates that they are read in, cleaned or refused as people bring them.

A picture may stand in the place of a sentence, where a session knows its name: "@lion" means "more like this photo", "@lion 3,4"
more like this patch of it, and without a name those of the photo that is asked about.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from vit_viz.errors import ParameterError
from vit_viz.geometry import place_words

BETWEEN = " | "
"""Stands between sentences, and between templates, where several are one text."""

PLAIN = ("{}",)
"""The template that leaves a sentence as it is."""

MOST_SENTENCES, LONGEST = 32, 300  # sentences, and characters of one
_MOST_TEMPLATES = 100
_PICTURE = re.compile(r"@(?P<name>[^\s@|]*)(?: (?P<row>\d{1,4}),(?P<col>\d{1,4}))?")
_ID = 25  # characters, from which on a name is the id of an upload, which says nothing
_JOINERS = "\u200c\u200d"  # that some scripts are written with; other signs without a shape only mislead


@dataclass(frozen=True)
class Text:
    """A sentence as a target, wherever a class is one, of a model with a text tower.

    Args:
        sentence: such as "a dog".
        templates: each with {} where the sentence goes, such as "a photo of {}."; of several the mean embedding is taken.

    Example:
        >>> import vit_viz as vv
        >>> vv.Text("a dog", templates=("a photo of {}.", "a drawing of {}.")).sentence
        'a dog'
    """

    sentence: str
    templates: tuple[str, ...] = PLAIN

    def __str__(self) -> str:
        return self.sentence


@dataclass(frozen=True, init=False)
class Prompts:
    """Sentences as the classes of a model with a text tower: what a picture is scored by.

    Args:
        sentences: a list, or one text with " | " between them; they are cleaned of what has no shape, and each is there once. One
            that begins with @ is a picture. None: the model as it is.
        templates: likewise, each with {} where the sentence goes; of several the mean embedding is taken.

    Raises:
        ParameterError: there are too many, one is too long or empty, or a template does not say where the sentence goes.
    """

    sentences: tuple[str, ...]
    templates: tuple[str, ...]

    def __init__(self, sentences: Iterable[str] | str = (), templates: Iterable[str] | str = PLAIN) -> None:
        object.__setattr__(self, "sentences", _cleaned(sentences, "sentences", MOST_SENTENCES))
        object.__setattr__(self, "templates", _cleaned(templates, "templates", _MOST_TEMPLATES) or PLAIN)
        for one in self.sentences:
            if one.startswith("@") and not _PICTURE.fullmatch(one):
                raise ParameterError(
                    f"A picture in the place of a sentence is @, its name, perhaps a patch, as in '@lion 3,4': not {one[:40]!r}."
                )
        check_templates(self.templates)

    def __bool__(self) -> bool:
        return bool(self.sentences)

    def __str__(self) -> str:
        return BETWEEN.join(self.sentences)

    @property
    def pictures(self) -> dict[str, tuple[str, tuple[int, int] | None]]:
        """By sentence the name of the picture that stands in its place, "" for that which is asked about, and a patch of it."""
        matches = ((one, _PICTURE.fullmatch(one)) for one in self.sentences)
        return {
            one: (match["name"], None if match["row"] is None else (int(match["row"]), int(match["col"])))
            for one, match in matches
            if match
        }

    @property
    def names(self) -> tuple[str, ...]:
        """What each is called: the sentence itself, or in words the picture in its place."""
        return self.names_with({})

    def names_with(self, uploads: Mapping[str, str]) -> tuple[str, ...]:
        """The same where it is known what uploads are called, by their ids, which nobody but their owner is told."""
        pictures = self.pictures
        return tuple(_named(*pictures[one], uploads) if one in pictures else one for one in self.sentences)

    @property
    def parameters(self) -> dict[str, str]:
        """What a result of them is told apart by."""
        said = {"sentences": str(self), "templates": self.template_words}
        return {name: text for name, text in said.items() if text}

    @property
    def template_words(self) -> str:
        """The templates as one text; "" for the plain one."""
        return "" if self.templates == PLAIN else BETWEEN.join(self.templates)


def check_templates(templates: Iterable[str]) -> None:
    """Refuse a template that does not say once where the sentence goes."""
    for template in templates:
        if template.count("{}") != 1:
            raise ParameterError(
                f"A template has {{}} once, where the sentence goes, as 'a photo of {{}}.' has: not {template[:40]!r}."
            )


def words_of(target: object, templates: tuple[str, ...] = PLAIN) -> Prompts:
    """The sentences that a target names; none where it is no text, nor a pair of texts.

    Args:
        templates: of what is plain text.

    Raises:
        ParameterError: as `Prompts`; or a pair is read in different templates.
    """
    parts: tuple[Any, ...] = target if isinstance(target, tuple) else (target,)
    if not parts or not all(isinstance(one, str | Text) for one in parts):
        return Prompts(templates=templates)
    each = {tuple(one.templates) if isinstance(one, Text) else templates for one in parts}
    if len(each) > 1:
        raise ParameterError("Two sentences that are compared are read in the same templates.")
    return Prompts(tuple(str(one) for one in parts), each.pop())


def _cleaned(given: Iterable[str] | str, what: str, most: int) -> tuple[str, ...]:
    """Each text once, in its order, on one line and without signs that have no shape."""
    texts = given.split(BETWEEN.strip()) if isinstance(given, str) else list(given)
    cleaned: dict[str, None] = {}
    for text in texts:
        if not isinstance(text, str):
            raise ParameterError(f"One of the {what} is no text, but {str(text)[:40]!r}.")
        if len(text) > 4 * LONGEST:
            raise ParameterError(f"One of the {what} is longer than {LONGEST} characters: {text[:40]!r}...")
        one = "".join(sign if _has_shape(sign) else " " for sign in unicodedata.normalize("NFC", text))
        one = " ".join(one.split())
        if len(one) > LONGEST:
            raise ParameterError(f"One of the {what} is longer than {LONGEST} characters: {one[:40]!r}...")
        if BETWEEN.strip() in one:
            raise ParameterError(
                f"“{BETWEEN.strip()}” stands between {what} and cannot be part of one: {one[:40]!r}."
            )
        if one:
            cleaned[one] = None
    if len(cleaned) > most:
        raise ParameterError(f"At most {most} {what} are compared at a time, not {len(cleaned)}.")
    return tuple(cleaned)


def _named(name: str, patch: tuple[int, int] | None, uploads: Mapping[str, str]) -> str:
    known = uploads.get(name, name if len(name) < _ID else "")
    photo = "this photo" if not name else f"the photo ‘{known}’" if known else "another photo"
    return photo if patch is None else f"patch {place_words(patch)} of {photo}"


def _has_shape(sign: str) -> bool:
    return sign in _JOINERS or unicodedata.category(sign) not in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")


NO_PROMPTS = Prompts()
