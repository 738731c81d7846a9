"""What the Lesson tab is told of the parts that one can build oneself."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, get_args, get_type_hints

import pytest

from vit_viz.lesson_parts import PARTS
from vit_viz.model import ViTConfig
from vit_viz.ui.lesson import parts


@pytest.mark.parametrize("name", PARTS)
def test_a_part_reaches_the_page_with_its_marked_lines(name: str) -> None:
    told, part = parts()[name], PARTS[name]
    assert (told["source"], told["mistake"]) == (part.source, part.mistake)
    assert told["formula"].count("<math") == part.formula.count("$") // 2
    assert told["letters"].count("<math") == part.letters.count("$") // 2
    for listing, ran in zip(told["ran"], part.ran, strict=True):
        marked = [(line, of) for line, of in listing["lines"] if of is not None]
        for mark, of in ran.marks.items():
            assert any(mark in line and shown == of for line, shown in marked), mark
        first, source = ran.source
        assert listing["place"] == f"vit_viz/model/vit.py, lines {first}-{first + source.count(chr(10))}"
        assert (listing["name"], listing["of"]) == (ran.name, ran.of)
        text = "\n".join(line for line, _ in listing["lines"])
        assert text.count('"""') == 2, "of a docstring one line"
        assert text.endswith(source.split("\n")[-1].strip())


def _runs(of: Any, shape: dict[str, object]) -> bool:
    return all(shape[name] in values for name, values in of.items())


def test_which_models_run_a_line_is_said_in_words_of_their_configuration() -> None:
    rans = [ran for part in PARTS.values() for ran in part.ran]
    said = [item for ran in rans for of in (ran.of, *ran.marks.values()) for item in of.items()]
    kinds = get_type_hints(ViTConfig) | {"rotary": bool, "relative": bool}
    assert said
    for name, values in said:
        possible = get_args(kinds[name]) or {bool: (True, False), int: range(9)}[kinds[name]]
        assert set(values) <= set(possible), name


@pytest.mark.parametrize(
    ("options", "absent", "there"),
    [
        ({}, ("rotate(", "torch.sigmoid", "self.proj(self.patches", "attn_pool(", "head_dist("), ("F.gelu",)),
        ({"mlp": "quick_gelu"}, ("F.gelu", "F.silu"), ("torch.sigmoid",)),
        ({"mlp": "swiglu"}, ("F.gelu", "torch.sigmoid"), ("F.silu",)),
        ({"position": "rotary"}, ("x = x + F.pad",), ("rotate(",)),
        ({"dist_token": True, "dist_head": True}, ("self.head(self.pool",), ("head_dist(",)),
        ({"pooling": "attention"}, ('pooling == "class" else',), ("attn_pool(",)),
        ({"pool_concat": True}, ('pooling == "class" else',), ("torch.cat((x[:, 0]",)),
        ({"patch_embed": "unfold"}, ("self.proj(self.whole_patches",), ("F.unfold",)),
    ],
)
def test_of_a_model_those_lines_are_marked_that_it_runs(
    options: dict[str, Any], absent: tuple[str, ...], there: tuple[str, ...]
) -> None:
    config = ViTConfig(**options)
    shape = {field.name: getattr(config, field.name) for field in fields(config)}
    shape |= {"rotary": config.position == "rotary", "relative": False}
    marked = "\n".join(
        line
        for part in parts().values()
        for listing in part["ran"]
        if _runs(listing["of"], shape)
        for line, of in listing["lines"]
        if of is not None and _runs(of, shape)
    )
    assert [text for text in absent if text in marked] == []
    assert [text for text in there if text not in marked] == []
