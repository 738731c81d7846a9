"""Everything that can be asked by name, in the order in which it is listed; each question is declared beside its function.

Page, palette, link, command line, REST, MCP, notebook, figure and documentation are derived from this list.
"""

from __future__ import annotations

from typing import Any

from vit_viz.analyses.ablation import ABLATION, CAUSAL_MAP, HEAD_IMPORTANCE
from vit_viz.analyses.attention import LOOK
from vit_viz.analyses.classes import CLASSES
from vit_viz.analyses.components import TOKEN_COMPONENTS
from vit_viz.analyses.explanations import EXPLAIN_ALL
from vit_viz.analyses.head_names import HEAD_NAMES
from vit_viz.analyses.heads import HEAD_TABLES, HEADS
from vit_viz.analyses.key_segments import SEGMENTS
from vit_viz.analyses.layer_similarity import LAYER_SIMILARITY
from vit_viz.analyses.lens import LOGIT_LENS
from vit_viz.analyses.links import LINKS
from vit_viz.analyses.methods import METHODS
from vit_viz.analyses.mosaic import HEAD_ROWS, MOSAIC
from vit_viz.analyses.norms import TOKEN_NORMS
from vit_viz.analyses.patches import PATCHES, SEQUENCE
from vit_viz.analyses.position_tables import (
    FILTER_COMPONENTS,
    POSITION_COMPONENTS,
    RESAMPLING,
    ROTARY_SIMILARITY,
)
from vit_viz.analyses.positions import POSITIONS
from vit_viz.analyses.registers import ADDED_REGISTER
from vit_viz.analyses.spec import AnyQuestion, Part, Registry
from vit_viz.analyses.tokens import TOKEN_CHANGE, TOKEN_SIMILARITY
from vit_viz.analyses.trust import RANDOM_BAND, RANDOMISATION, TRUST
from vit_viz.analyses.without import WITHOUT_PATCHES

QUESTIONS: Registry[AnyQuestion] = Registry(
    LOOK,
    MOSAIC,
    HEADS,
    HEAD_NAMES,
    HEAD_IMPORTANCE,
    ABLATION,
    TRUST,
    RANDOMISATION,
    CLASSES,
    PATCHES,
    SEQUENCE,
    POSITIONS,
    LINKS,
    TOKEN_SIMILARITY,
    TOKEN_CHANGE,
    TOKEN_COMPONENTS,
    TOKEN_NORMS,
    ADDED_REGISTER,
    LOGIT_LENS,
    LAYER_SIMILARITY,
    SEGMENTS,
    RESAMPLING,
    ROTARY_SIMILARITY,
    POSITION_COMPONENTS,
    FILTER_COMPONENTS,
    after=METHODS,
)
"""Methods first, as the screen shows them."""

PARTS: dict[str, Part[Any]] = {
    part.name: part
    for part in (HEAD_ROWS, HEAD_TABLES, CAUSAL_MAP, EXPLAIN_ALL, RANDOM_BAND, WITHOUT_PATCHES)
}
"""What answers are made of."""
