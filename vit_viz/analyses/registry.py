"""Everything that can be asked by name, in the order in which it is listed; each question is declared beside its function.

Page, palette, link, command line, REST, MCP, notebook, figure and documentation are derived from this list.
"""

from __future__ import annotations

from typing import Any

from vit_viz.analyses.ablation import ABLATION, HEAD_IMPORTANCE
from vit_viz.analyses.agreement import AGREEMENT
from vit_viz.analyses.attention import LOOK
from vit_viz.analyses.classes import CLASSES
from vit_viz.analyses.components import TOKEN_COMPONENTS
from vit_viz.analyses.decomposition import DECOMPOSITION
from vit_viz.analyses.explain import COMPARISON, EXPLAIN_ALL
from vit_viz.analyses.head_names import HEAD_NAMES
from vit_viz.analyses.heads import HEAD_TABLES, HEADS
from vit_viz.analyses.key_segments import SEGMENTS
from vit_viz.analyses.layer_similarity import LAYER_SIMILARITY
from vit_viz.analyses.ledger import LEDGER
from vit_viz.analyses.lens import LOGIT_LENS
from vit_viz.analyses.links import LINKS
from vit_viz.analyses.map_stability import MAP_STABILITY
from vit_viz.analyses.methods import METHODS
from vit_viz.analyses.mosaic import HEAD_ROWS, MOSAIC
from vit_viz.analyses.norms import TOKEN_NORMS
from vit_viz.analyses.on_object import ON_OBJECT
from vit_viz.analyses.patches import PATCHES, SEQUENCE
from vit_viz.analyses.position_distance import POSITION_DISTANCE
from vit_viz.analyses.position_tables import (
    FILTER_COMPONENTS,
    POSITION_COMPONENTS,
    RESAMPLING,
    ROTARY_SIMILARITY,
)
from vit_viz.analyses.positions import POSITION_FIT, POSITIONS
from vit_viz.analyses.registers import ADDED_REGISTER
from vit_viz.analyses.removal import WITHOUT_PATCHES
from vit_viz.analyses.saco import SACO
from vit_viz.analyses.share_maps import CLASS_DIFFERENCE, OWN_PART, OWN_PARTS
from vit_viz.analyses.sink_kinds import SINK_KINDS
from vit_viz.analyses.spec import AnyQuestion, Part, Registry
from vit_viz.analyses.tokens import TOKEN_CHANGE, TOKEN_SIMILARITY
from vit_viz.analyses.trust import RANDOM_BAND, RANDOMISATION, TRUST

QUESTIONS: Registry[AnyQuestion] = Registry(
    LOOK,
    MOSAIC,
    HEADS,
    HEAD_TABLES,
    HEAD_NAMES,
    LEDGER,
    SINK_KINDS,
    HEAD_IMPORTANCE,
    ABLATION,
    DECOMPOSITION,
    TRUST,
    RANDOMISATION,
    SACO,
    MAP_STABILITY,
    ON_OBJECT,
    AGREEMENT,
    CLASS_DIFFERENCE,
    OWN_PART,
    COMPARISON,
    CLASSES,
    PATCHES,
    SEQUENCE,
    POSITIONS,
    POSITION_DISTANCE,
    POSITION_FIT,
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
    part.name: part for part in (HEAD_ROWS, EXPLAIN_ALL, OWN_PARTS, RANDOM_BAND, WITHOUT_PATCHES)
}
"""What answers are made of."""
