"""The explorer as a file: it may load nothing, no text of others becomes part of it, and it says how exact it is."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.numpy import load

import vit_viz as vv
from tests.traces import trace_from
from vit_viz.analyses.opening import opening
from vit_viz.answer import Provenance, arrays_of
from vit_viz.capture import Trace
from vit_viz.errors import CaptureError, ExportError, ParameterError
from vit_viz.explorer import packing
from vit_viz.geometry import CropBox, TokenLayout
from vit_viz.offline import page, page_of
from vit_viz.offline.explored import Explored
from vit_viz.offline.letters import LETTERS, as_letters
from vit_viz.results import HeadTable
from vit_viz.samples import sample

EVIL = "</script></title><img src=x onerror=alert(1)>\"'@@facts@@<!--"
LAYOUT = TokenLayout(grid=(4, 6), prefix=("class", "register 0"))


def photo(size: tuple[int, int] = (40, 60)) -> Image.Image:
    pixels = np.random.default_rng(0).integers(0, 256, (*size, 3), dtype=np.uint8)
    return Image.fromarray(pixels)


def a_trace(name: str = "mini", layout: TokenLayout = LAYOUT, **others: Any) -> Trace:
    make = torch.Generator().manual_seed(0)
    q, k = (torch.randn(3, 5, layout.num_tokens, 8, generator=make) for _ in range(2))
    box = CropBox((40, 60), (32, 48), (0, 0, 40, 60))
    provenance = Provenance(name, "ab" * 32, "cd" * 32, "fit")
    return trace_from(q=q, k=k, layout=layout, crop_box=box, provenance=provenance, **others)


class Elements(HTMLParser):
    """All start tags with their attributes, and the text of the elements of each name, or of each that has an id."""

    def __init__(self, data: bytes) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, str] = {}
        self.key = ""
        self.feed(data.decode())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.key = dict(attrs).get("id") or tag

    def handle_endtag(self, tag: str) -> None:  # noqa: ARG002 # its name is the parser's
        self.key = ""

    def handle_data(self, data: str) -> None:
        self.texts[self.key] = self.texts.get(self.key, "") + data

    @property
    def facts(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.texts["vv-facts"])
        return found

    @property
    def begins(self) -> dict[str, Any]:
        """What a link that says nothing means."""
        return {field["link"]: field["default"] for field in self.facts["fields"]}

    @property
    def tabs(self) -> list[str]:
        found: list[str] = next(one["choices"] for one in self.facts["fields"] if one["link"] == "tab")
        return found

    @property
    def program(self) -> str:
        return unpacked(self.texts["vv-program"]).decode()

    @property
    def policy(self) -> dict[str, str]:
        content = next(a["content"] for _, a in self.tags if a.get("http-equiv") == "Content-Security-Policy")
        return dict(part.split(" ", 1) for part in (content or "").split("; "))


def from_letters(text: str) -> bytes:
    """What letters stand for: 13 bits in a pair, the lowest first, and 6 in one that is left."""
    places = [LETTERS.index(letter) for letter in text]
    bits = [f"{a + 91 * b:013b}"[::-1] for a, b in zip(places[::2], places[1::2], strict=False)]
    bits += [f"{places[-1]:06b}"[::-1]] if len(text) % 2 else []
    row = "".join(bits)
    return bytes(int(row[i : i + 8][::-1], 2) for i in range(0, len(row) - 7, 8))


def unpacked(text: str) -> bytes:
    """What stands in a page, compressed and as letters."""
    return zlib.decompress(from_letters(text))


@pytest.mark.parametrize("length", [0, 1, 2, 3, 5, 12, 13, 14, 26, 1000])
def test_bytes_come_back_from_their_letters(length: int) -> None:
    make = np.random.default_rng(length)
    for data in (make.bytes(length), b"\xff" * length, bytes(length)):
        text = as_letters(data)
        assert from_letters(text) == data
        assert not set("&<>") & set(text)
        assert len(text) == -(-length * 16 // 13)


def test_letters_by_hand() -> None:
    """255 is 73 and 2 x 91; of 8 + 8 bits the last 3 have a letter alone: 1 << 15 leaves 4 of them."""
    assert as_letters(b"\xff") == LETTERS[73] + LETTERS[2]
    assert as_letters(b"\x00\x80") == LETTERS[0] + LETTERS[0] + LETTERS[4]


@pytest.fixture(scope="module")
def elements() -> Elements:
    return Elements(
        page_of(a_trace(), photo(), name="a lion", view={"layer": 1, "head": "mean", "query": "2,3"})
    )


def test_the_page_may_run_its_own_scripts_and_styles_and_load_nothing(elements: Elements) -> None:
    def digest(text: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

    assert elements.policy == {
        "default-src": "'none'",
        "script-src": f"{digest(elements.texts['script'])} {digest(elements.program)}",
        "style-src": f"{digest(elements.texts['style'])} {digest(page._tabs_style())}",
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    names = {"src", "href", "style", "onload", "onclick", "onerror"}
    assert [(tag, names & set(a)) for tag, a in elements.tags if names & set(a)] == []
    assert elements.texts["script"].endswith("entry.start();\n")
    assert elements.program.endswith(f"}}, {page.script_json(page._tabs_style())});\n")


def test_the_page_holds_what_it_opens_with_and_where_it_comes_from(elements: Elements) -> None:
    value = elements.facts["value"]
    begins = elements.begins
    assert (begins["layer"], begins["head"], begins["q"], value["name"]) == (1, "mean", "2,3", "a lion")
    assert {name: begins[name] for name in ("model", "image", "mode", "size")} == {
        name: value[name] for name in ("model", "image", "mode", "size")
    }
    assert value["photo"].startswith("data:image/webp;base64,")
    assert elements.facts["packing"] == {"storage": "fp16", "pool": None}
    assert json.loads(elements.texts["code"])["weights"] == "ab" * 32
    assert elements.texts["h1"] == "a lion, seen by mini"
    assert [f"vv-layer-{layer}" in elements.texts for layer in range(4)] == [True, True, True, False]


def test_no_text_of_others_becomes_part_of_the_page(elements: Elements) -> None:
    nasty = a_trace(EVIL)
    nasty.problems = (EVIL,)
    spoiled = Elements(page_of(nasty, photo(), name=EVIL, view={"query": EVIL}))
    assert [tag for tag, _ in spoiled.tags] == [tag for tag, _ in elements.tags]
    assert spoiled.texts["title"] == f"{EVIL}, seen by {EVIL}"
    assert spoiled.facts["value"]["note"] == spoiled.begins["q"] == EVIL


def test_the_page_says_how_it_stores_numbers_and_what_that_loses(
    elements: Elements, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = a_trace()
    size = page.fp16_bytes(trace)
    assert size == 3 * 5 * 26 * (8 + 4 * 8) * 16 // 13
    found = re.search(
        r"stored as fp16\. Rows .* at most ([\d.e-]+)% of their largest weight", elements.texts["p"]
    )
    assert found is not None
    assert 0 < float(found[1]) < 0.5
    for limit, storage in ((size, "fp16"), (size - 1, "int8")):
        monkeypatch.setattr(page, "FP16_BYTES", limit)
        other = Elements(page_of(trace, photo(), name="a lion"))
        assert other.facts["packing"]["storage"] == storage
        assert f"stored as {storage}" in other.texts["p"]


def test_a_page_that_would_be_too_large_is_refused_and_says_what_helps() -> None:
    trace = a_trace()
    page.check_fits(trace, page.fp16_bytes(trace))
    with pytest.raises(ExportError, match="on 26 tokens: choose a smaller size"):
        page_of(trace, photo(), name="a lion", most_bytes=page.fp16_bytes(trace) - 1)


class Sizes:
    """What a page asks of a trace before it is written: 5 heads of 8 channels, 26 tokens, and where each layer's rows come from."""

    num_heads, num_tokens, head_dim = 5, 26, 8

    def __init__(self, *sources: str) -> None:
        self.sources, self.num_layers = sources, len(sources)

    def source(self, layer: int) -> str:
        return self.sources[layer]


def fits(trace: Any, most_bytes: int) -> bool:
    try:
        page.check_fits(trace, most_bytes)
    except ExportError:
        return False
    return True


def test_bytes_are_counted_by_what_each_layer_keeps() -> None:
    """Of a row: 2 x 8 halves and 2 floats, or 26 halves and a float; 13 bytes are written as 16 letters."""
    kept, whole = 5 * 26 * (2 * 8 * 2 + 2 * 4), 5 * 26 * (26 * 2 + 4)
    for sources, size in ((("qk",) * 3, 3 * kept), (("qk", "attention"), kept + whole), (("rows",), whole)):
        assert page.fp16_bytes(Sizes(*sources)) == size * 16 // 13  # type: ignore[arg-type]


def test_what_is_stored_as_int8_takes_half(monkeypatch: pytest.MonkeyPatch) -> None:
    trace, size = Sizes("qk", "qk", "qk"), 19_200
    monkeypatch.setattr(page, "FP16_BYTES", size)  # which it just has
    assert page.storage_of(trace) == "fp16"  # type: ignore[arg-type]
    assert (fits(trace, size), fits(trace, size - 1)) == (True, False)
    monkeypatch.setattr(page, "FP16_BYTES", size - 1)
    assert page.storage_of(trace) == "int8"  # type: ignore[arg-type]
    assert (fits(trace, size // 2), fits(trace, size // 2 - 1)) == (True, False)


def test_attention_that_is_kept_whole_is_not_halved(monkeypatch: pytest.MonkeyPatch) -> None:
    trace, size = Sizes("qk", "attention"), (5_200 + 7_280) * 16 // 13
    monkeypatch.setattr(page, "FP16_BYTES", 100)
    assert (fits(trace, size), fits(trace, size - 1)) == (True, False)


def test_a_page_that_is_too_large_says_how_much_it_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    trace: Any = Sizes(*["qk"] * 3)
    monkeypatch.setattr(packing, "LAYER_BYTES", 5_199)
    with pytest.raises(ExportError) as refused:
        page.check_fits(trace, 7_900_000)
    assert str(refused.value) == (
        "A page holds at most 7 MB of attention, and this model has more on 26 tokens: choose a smaller size of the input."
    )


def test_the_page_says_of_what_shape_the_model_is(elements: Elements) -> None:
    assert (
        "3 layers x 5 heads, 4 x 6 patches. Point at the photo to choose the query; click to keep it."
        in elements.texts["p"]
    )
    assert "edited" not in elements.texts["p"]


def test_the_page_of_an_edited_model_says_so_first() -> None:
    trace = a_trace()
    trace.provenance = trace.provenance.with_parameters(edits="forbid class>0,1")
    found = Elements(page_of(trace, photo(), name="a lion"))
    assert "The model is edited: forbid class>0,1. 3 layers x 5 heads" in found.texts["p"]


def test_the_explorer_is_told_what_it_shows(elements: Elements) -> None:
    value = elements.facts["value"]
    assert value["photo_size"] == [40, 60]  # rows and columns of pixels
    assert (value["model"], value["mode"], value["size"], value["note"]) == ("mini", "fit", 0, "")
    assert (value["trace"], value["tour"]) == ("page", [])
    begins = opening(a_trace())
    patch = next(iter(begins.tour), None)
    assert value["opening"] == {"layer": begins.layer, "head": begins.head, "patch": patch}


def test_the_page_opens_with_the_options_of_a_view_and_no_others() -> None:
    plain = Elements(page_of(a_trace(), photo(), name="a lion")).begins
    view = {"norm": True, "style": "heat", "measure": "entropy", "discard": 0.5}
    found = Elements(page_of(a_trace(), photo(), name="a lion", size=9, view=view)).begins
    assert {name: value for name, value in found.items() if value != plain[name]} == {
        "norm": True,
        "style": "heat",
        "size": 9,
    }


def test_layers_with_a_bias_are_in_the_page_as_they_are() -> None:
    trace = a_trace(bias=torch.randn(5, 26, 26, generator=torch.Generator().manual_seed(3)))
    facts = Elements(page_of(trace, photo(), name="a lion")).facts
    assert facts["value"]["source"] == ["attention"] * 3


def test_the_weights_of_a_learned_pool_are_in_the_page() -> None:
    layout = TokenLayout(grid=(4, 6), prefix=(), pooling="attention")
    pooling = torch.rand(2, 24, generator=torch.Generator().manual_seed(2)).softmax(-1)
    trace = a_trace(layout=layout, pooling_attention=pooling)
    pool = Elements(page_of(trace, photo(), name="a lion")).facts["packing"]["pool"]
    np.testing.assert_allclose(pool, pooling.mean(0).numpy(), rtol=1e-6)


def test_a_large_photo_is_made_smaller_until_it_takes_little(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []
    for limit in (1_000_000, 30_000):
        monkeypatch.setattr(page, "_PHOTO_BYTES", limit)
        found = Elements(page_of(a_trace(), photo((90, 1400)), name="noise")).facts["value"]
        assert max(found["photo_size"]) == 1280
        sizes.append(len(found["photo"]))
    assert sizes[1] < 0.7 * sizes[0]


def test_a_selection_that_does_not_exist_is_refused() -> None:
    explored = Explored(a_trace(), photo(), "a lion", "fit")
    assert explored.selection(query=(3, 5)).to_view()["query"] == "3,5"
    for wrong in ({"layer": 3}, {"head": 5}, {"head": "most"}, {"query": (4, 0)}, {"query": "register 1"}):
        with pytest.raises(ParameterError):
            explored.selection(**wrong)  # type: ignore[arg-type]


def test_pixels_are_no_photo() -> None:
    with pytest.raises(ParameterError, match="draws on a photo"):
        vv.explore("mini", torch.zeros(1, 3, 64, 64))  # type: ignore[arg-type]


def test_a_page_of_the_bundled_model_opens_where_a_first_look_begins(tmp_path: Path) -> None:
    loaded, picture = vv.load("mini"), sample("tower")
    saved = Elements(vv.explore(loaded, picture, name="red").save(tmp_path / "red.html").read_bytes())
    value, begins = saved.facts["value"], saved.begins
    assert (value["opening"]["layer"], value["opening"]["head"]) == (begins["layer"], begins["head"])
    assert begins["q"] == "class"
    assert value["norms"] is True
    assert saved.tabs == ["look", "heads", "tokens"]
    for number, about in enumerate(saved.facts["answers"]):
        expected = arrays_of(vv.run(loaded, picture, about["question"], **about["options"]))
        found = load(unpacked(saved.texts[f"vv-answer-{number}"]))
        assert found.keys() == expected.keys(), about
        assert all(found[name].tobytes() == values.tobytes() for name, values in expected.items()), about


def table(name: str, **_options: Any) -> HeadTable:
    if name == "head_names":
        raise CaptureError("Heads have no names here.")
    return HeadTable(np.ones((3, 5), np.float32), "share", (0.0, 1.0), signed=False, method=name)


def test_a_tab_is_there_if_its_first_question_is_answered() -> None:
    def nothing(_name: str, **_options: Any) -> HeadTable:
        raise CaptureError("No.")

    def page_with(trace: Trace, ask: Any) -> Elements:
        return Elements(page_of(trace, photo(), name="a lion", ask=ask))

    found = page_with(a_trace(), table)
    assert found.tabs == ["look", "heads", "tokens"]
    assert re.findall(r'"module":"web/(\w+)/room.js"', found.program) == found.tabs
    refused = [about for about in found.facts["answers"] if "refused" in about]
    assert refused == [{"question": "head_names", "options": {}, "refused": "Heads have no names here."}]
    assert page_with(a_trace(), nothing).tabs == ["look"]
    assert page_with(a_trace(), None).tabs == ["look"]
    bias = torch.randn(5, 26, 26, generator=torch.Generator().manual_seed(3))
    assert page_with(a_trace(bias=bias), table).tabs == [
        "look",
        "heads",
    ]  # whose queries and keys are not in it


def test_a_page_of_very_much_attention_answers_no_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    for most, tabs in ((3 * 5 * 26**2, 3), (3 * 5 * 26**2 - 1, 1)):
        monkeypatch.setattr(page, "MOST_WEIGHTS", most)
        assert len(Elements(page_of(a_trace(), photo(), name="a lion", ask=table)).tabs) == tabs
