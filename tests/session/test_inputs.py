"""What JSON says of a question, read: queries, targets, options, and the schema that says what is possible."""

from __future__ import annotations

import re
from typing import Any

import pytest

from vit_viz.analyses.registry import QUESTIONS
from vit_viz.errors import ParameterError
from vit_viz.session.inputs import (
    InputOptions,
    parse_arguments,
    properties,
    query_of,
    query_sentence,
    target_of,
)


@pytest.mark.parametrize(
    ("value", "query"),
    [
        (None, None),
        ("", None),
        ("class", "class"),
        ("register 0", "register 0"),
        ("3,4", (3, 4)),
        ([3, 4], (3, 4)),
        ([[3, 4], [5, 6]], ((3, 4), (5, 6))),
        ("3,4;5,6", ((3, 4), (5, 6))),
    ],
)
def test_a_query_is_a_name_a_patch_or_some(value: object, query: object) -> None:
    found = query_of(value)
    assert (tuple(map(tuple, found)) if isinstance(found, list) else found) == query  # type: ignore[arg-type]


def test_a_query_has_at_most_4096_patches() -> None:
    pairs = [[row, col] for row in range(64) for col in range(64)]
    assert len(query_of(pairs) or ()) == 4096
    with pytest.raises(ParameterError, match=r"^A query has at most 4096 patches\.$"):
        query_of([*pairs, [64, 0]])


@pytest.mark.parametrize(
    ("value", "target"),
    [(None, None), ("", None), (0, 0), ("cat", "cat"), ([3, "cat"], (3, "cat")), ("x" * 200, "x" * 200)],
)
def test_a_target_is_a_class_or_a_pair(value: object, target: object) -> None:
    assert target_of(value) == target


@pytest.mark.parametrize(
    "value", [True, 1.5, [1], [1, 2, 3], [1, False], ["x", None], {"class": 1}, "x" * 201, [1, "x" * 201]]
)
def test_what_is_no_target_is_refused_in_a_sentence(value: object) -> None:
    with pytest.raises(ParameterError) as refused:
        target_of(value)
    said = f"A target is a class, by number or name, or a pair of them, not {str(value)[:40]!r}."
    assert str(refused.value) == said


def test_fields_that_were_given_are_read_and_the_rest_is_as_usual() -> None:
    fields: dict[str, Any] = {
        "mode": "crop",
        "size": 7,
        "part": [1, 2, 40, 50],
        "edits": ["off 1.1", "off 0.2"],
        "query": [2, 3],
        "discard": 0.25,
    }
    how, asked = parse_arguments(QUESTIONS.named("rollout"), fields)
    assert (how.mode, how.size, how.rectangle) == ("crop", 7, (1, 2, 40, 50))
    assert how.edits == "off 0.2 1.1"
    assert asked == {"query": (2, 3), "target": None, "discard": 0.25}
    assert {"mode", "size", "part", "edits"} <= fields.keys()  # what was given is left as it was
    assert fields["edits"] == ["off 1.1", "off 0.2"]
    assert parse_arguments(QUESTIONS.named("relevance"), {"target": [3, 5]})[1] == {
        "query": None,
        "target": (3, 5),
    }
    assert parse_arguments(QUESTIONS.named("rollout"), {})[0] == InputOptions()


@pytest.mark.parametrize(
    ("name", "fields", "said"),
    [
        ("rollout", {"target": 3}, "'rollout' takes no 'target'; it takes: mode, size, part, edits, sentences, templates, query, "),
        ("legrad", {"query": "class"}, "'legrad' takes no 'query'; it takes: mode, size, part, edits, sentences, templates"),
        ("positions", {"mode": "fit"}, "'positions' takes no 'mode'; it takes: grid, place."),
        ("rollout", {"x" * 50: 1}, f"'rollout' takes no '{'x' * 40}'; it takes"),
        ("rollout", {"discard": 7}, "The rollout's discard is a number from 0 to 0.95, not '7'."),
        ("rollout", {"edits": "off"}, "An edit is 'off 3.1'"),
        ("rollout", {"mode": "bend"}, "The mode is one of fit, crop, stretch, not 'bend'."),
    ],
)  # fmt: skip
def test_what_a_question_does_not_take_is_refused(name: str, fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ParameterError) as refused:
        parse_arguments(QUESTIONS.named(name), fields)
    assert str(refused.value).startswith(said)


# --- schemas


TYPES: dict[str, Any] = {
    "integer": int,
    "number": (int, float),
    "string": str,
    "boolean": bool,
    "array": list,
    "object": dict,
    "null": type(None),
}


def is_possible(value: object, schema: dict[str, Any]) -> bool:
    """Whether JSON Schema allows a single value, by the words that the schemas of options use."""
    named = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    is_typed = any(isinstance(value, TYPES[name]) for name in named)
    if isinstance(value, str):
        return (
            is_typed
            and value in schema.get("enum", [value])
            and bool(re.search(schema.get("pattern", ""), value))
        )
    return is_typed and (
        value is None or schema.get("minimum", value) <= value <= schema.get("maximum", value)
    )


def test_every_default_is_possible_by_its_own_schema() -> None:
    for question in QUESTIONS.values():
        for name, schema in properties(question).items():
            assert schema["description"].endswith("."), name
            assert is_possible(schema["default"], schema), f"{question.name} {name}"


def test_a_schema_says_what_is_possible() -> None:
    heads, look = properties(QUESTIONS.named("links")), properties(QUESTIONS.named("look"))
    assert (heads["count"]["type"], heads["count"]["minimum"], heads["count"]["default"]) == (
        "integer",
        1,
        20,
    )
    assert heads["own"] | {"type": "boolean", "default": False} == heads["own"]
    assert "patches" in heads["tokens"]["enum"]
    assert heads["head"]["pattern"] == r"^(\d{1,3}|mean|max|min)$"
    assert properties(QUESTIONS.named("rollout"))["discard"]["type"] == "number"
    assert look["query"]["type"] == ["string", "array", "null"]
    assert look["edits"]["type"] == ["string", "array"]
    assert "target" not in look


def test_what_stands_for_a_missing_query_is_said() -> None:
    assert query_sentence(QUESTIONS.named("links")).endswith('or several, "3,4;3,5"; else all of them.')
    assert query_sentence(QUESTIONS.named("rollout")).endswith("; else what the output is read from.")
