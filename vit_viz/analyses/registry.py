"""Everything that can be asked by name, in the order in which it is listed; each question is declared beside its function.

Page, palette, link, command line, REST, MCP, notebook, figure and documentation are derived from this list.
"""

from __future__ import annotations

from typing import Any

from vit_viz.analyses import (
    ablation,
    agreement,
    attention,
    class_maps,
    classes,
    components,
    decomposition,
    explain,
    head_names,
    head_words,
    heads,
    key_segments,
    layer_similarity,
    ledger,
    lens,
    lesson,
    links,
    map_stability,
    norms,
    on_object,
    patches,
    position_tables,
    positions,
    registers,
    removal,
    saco,
    share_maps,
    sink_kinds,
    tokens,
    trust,
    value_paths,
    what_if,
)
from vit_viz.analyses.methods import METHODS
from vit_viz.analyses.spec import AnyQuestion, Part, Registry

QUESTIONS: Registry[AnyQuestion] = Registry(
    attention.LOOK,
    attention.MOSAIC,
    heads.HEADS,
    heads.HEAD_TABLES,
    head_names.HEAD_NAMES,
    head_words.HEAD_WORDS,
    ledger.LEDGER,
    sink_kinds.SINK_KINDS,
    ablation.HEAD_IMPORTANCE,
    ablation.ABLATION,
    decomposition.DECOMPOSITION,
    trust.TRUST,
    trust.RANDOMISATION,
    saco.SACO,
    map_stability.MAP_STABILITY,
    on_object.ON_OBJECT,
    agreement.AGREEMENT,
    share_maps.CLASS_DIFFERENCE,
    share_maps.OWN_PART,
    class_maps.CLASS_MAPS,
    explain.COMPARISON,
    removal.WITHOUT_PATCHES,
    classes.CLASSES,
    patches.PATCHES,
    patches.SEQUENCE,
    positions.POSITIONS,
    positions.POSITION_DISTANCE,
    positions.POSITION_FIT,
    links.LINKS,
    tokens.TOKEN_SIMILARITY,
    tokens.TOKEN_CHANGE,
    components.TOKEN_COMPONENTS,
    norms.TOKEN_NORMS,
    registers.ADDED_REGISTER,
    lens.LOGIT_LENS,
    value_paths.SENTENCE_PATCHES,
    layer_similarity.LAYER_SIMILARITY,
    key_segments.SEGMENTS,
    position_tables.RESAMPLING,
    position_tables.ROTARY_SIMILARITY,
    position_tables.POSITION_COMPONENTS,
    position_tables.FILTER_COMPONENTS,
    lesson.LESSON_TOKENS,
    lesson.LESSON_ATTENTION,
    lesson.LESSON_BLOCK,
    lesson.LESSON_DEPTH,
    what_if.LESSON_WHAT_IF,
    after=METHODS,
)
"""Methods first, as the screen shows them."""

PARTS: dict[str, Part[Any]] = {
    part.name: part
    for part in (
        attention.HEAD_ROWS,
        explain.EXPLAIN_ALL,
        share_maps.OWN_PARTS,
        *trust.RANDOM,
    )
}
"""What answers are made of."""
