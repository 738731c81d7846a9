"""The Look tab as an anywidget: the browser draws, the kernel is asked for each layer once, and both know the selection."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from vit_viz.analyses.registry import QUESTIONS
from vit_viz.errors import ParameterError
from vit_viz.explorer import EXPLORER, colour_tables, template
from vit_viz.explorer.packing import packed_layer
from vit_viz.geometry import format_query, parse_query
from vit_viz.offline.bundle import bundled
from vit_viz.offline.explored import Explored, Selection
from vit_viz.offline.page import check_fits, explorer_style, page_facts, storage_of
from vit_viz.results import PatchMap
from vit_viz.sentences import sentence
from vit_viz.session.inputs import InputOptions, Json, parse_arguments
from vit_viz.session.serialization import as_safetensors, facts_of

_STYLE = Path(__file__).with_suffix(".css")


def _script() -> str:
    """The widget's module; its style lives in a shadow root, where the notebook's own rules do not reach and it reaches nobody."""
    css = explorer_style().replace(":root", ".vv-host") + _STYLE.read_text("utf-8")
    parts = ", ".join(map(json.dumps, (template(EXPLORER), css)))
    return bundled("notebook/widget.js", f"export default entry.widget({parts});")


class ExplorerWidget(anywidget.AnyWidget):
    """The live explorer of one photo; what `vit_viz.explore` returns in a notebook.

    Args:
        explored: the recorded forward pass with its photo.
        shown: what is shown first.
    """

    _esm = _script()
    facts = traitlets.Dict().tag(sync=True)
    layer = traitlets.Any(help="The layer that is shown.").tag(sync=True)
    head = traitlets.Any(help='The head that is shown, or "mean", "max" or "min" over all.').tag(sync=True)
    query = traitlets.Any(help="The token that asks.").tag(
        sync=True, to_json=lambda query, _: format_query(query), from_json=lambda text, _: parse_query(text)
    )

    still = traitlets.Unicode(
        help="A picture of what was chosen when it was shown, for a notebook without a kernel."
    ).tag(sync=True)

    def __init__(self, explored: Explored, shown: Selection) -> None:
        check_fits(explored.trace)
        self.explored = explored
        facts = page_facts(
            explored.trace, explored.photo, name=explored.name, mode=explored.mode, size=explored.size
        )
        facts["tables"] = colour_tables()
        super().__init__(facts=facts, layer=shown.layer, head=shown.head, query=shown.query)
        self.on_msg(self._answer)

    @traitlets.validate("layer", "head", "query")
    def _possible(self, proposal: Any) -> Any:
        """The value as a selection has it; refused where the trace has no such layer, head or token."""
        name = proposal["trait"].name
        try:
            return getattr(self.explored.selection(**{name: proposal["value"]}), name)
        except ParameterError as error:
            raise traitlets.TraitError(str(error)) from error

    @property
    def _shown(self) -> Selection:
        return Selection(self.layer, self.head, self.query)

    def save(self, path: Path | str) -> Path:
        """Write the explorer as one HTML file that opens without a network; see `Exploration.save`."""
        return self.explored.save(self._shown, path)

    def run(self, name: str, **options: Any) -> Any:
        """The answer to a question about this photo, from the query that is chosen; see `Exploration.run`."""
        return self.explored.run(self._shown, name, **options)

    def _answer(self, _widget: object, content: Any, _buffers: object) -> None:
        """What the browser asks for: a layer, or the numbers of a question."""
        if not isinstance(content, dict):
            return
        layer = content.get("layer")
        if isinstance(layer, int):
            trace = self.explored.trace
            self.send({"layer": layer}, [packed_layer(trace, layer, storage=storage_of(trace))])
        if "ask" in content:
            self.send(*reply(self.explored, self._shown, content))

    def __repr__(self) -> str:
        return self.explored.described(self._shown)

    def _repr_mimebundle_(self, **options: Any) -> Any:
        live = super()._repr_mimebundle_(**options)
        data, metadata = live if isinstance(live, tuple) else (live or {}, {})
        kept = self.explored.mime_bundle(self._shown, repr(self))
        self.still = f"data:image/jpeg;base64,{kept['image/jpeg']}"
        return kept | data, metadata


def reply(explored: Explored, shown: Selection, content: Json) -> tuple[Json, list[bytes]]:
    """What answers a message {"ask": any, "question": name, "asked": options}: content and buffers.

    The content holds "ask" again; the buffer is the answer as safetensors. Or there is "error", one sentence, and no buffer.
    """
    try:
        name, fields = content.get("question"), content.get("asked", {})
        return {"ask": content["ask"]}, [_answer(explored, shown, str(name), fields)]
    except Exception as error:  # what waits in the browser is told in any case
        return {"ask": content["ask"], "error": sentence(error)}, []


def _answer(explored: Explored, shown: Selection, name: str, fields: object) -> bytes:
    question = QUESTIONS.named(name)
    fixed = {field.name for field in InputOptions.schema()}
    if not isinstance(fields, dict) or fixed & set(fields):
        raise ParameterError(
            "The options of a question are a JSON object; the photo is that of the explorer."
        )
    _, parsed = parse_arguments(question, fields)
    parameters = {name: value for name, value in parsed.items() if value is not None}
    answer = explored.run(shown, name, **parameters)
    facts = facts_of(answer)
    if isinstance(answer, PatchMap):
        facts |= {"suffix_kinds": answer.suffix_kinds}
    return as_safetensors(answer, {"facts": facts})
