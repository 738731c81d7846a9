"""Questions for every surface other than Python: as JSON, and as schemas from which commands and tools are made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from vit_viz.analyses.options import Option, OptionField, Options
from vit_viz.analyses.removal import MOST_PATCHES
from vit_viz.analyses.spec import BESIDE_OPTIONS, AnyQuestion
from vit_viz.errors import ParameterError
from vit_viz.geometry import Query, parse_query
from vit_viz.images import Mode
from vit_viz.images.part import Part, parse_part
from vit_viz.images.preprocess import MAX_INPUT_SIDE
from vit_viz.prompts import Prompts
from vit_viz.session.edits import ModelEdits
from vit_viz.session.questions import TargetWord, options_of_methods

QUERY = 'The start: "class", "pool", "register 0", a patch "row,col", or several, "3,4;3,5"; else what the output is read from.'
TARGET = 'The class, by number or name, or a pair "291-292" for why the one and not the other; else the model\'s first.'
OPTIONS = "Options of the method whose map this is about, by name, as its question takes them; of several methods: {METHOD: {}}."

Json = dict[str, Any]


@dataclass(frozen=True)
class InputOptions(Options):
    """How a picture becomes a model's input."""

    mode: Annotated[
        Mode,
        Option(
            "mode",
            "fit shows the model the whole photo, crop what the checkpoint's recipe cuts out, stretch distorts.",
        ),
    ] = "fit"
    size: Annotated[
        int,
        Option("size", "Short side of the input in patches; 0 is the checkpoint's own.", high=MAX_INPUT_SIDE),
    ] = 0
    part: Annotated[
        str,
        Option(
            "part",
            "Part of the photo used instead of the whole: top,left,height,width in pixels.",
            pattern=r"(\d{1,5}(,\d{1,5}){3})?",
        ),
    ] = ""
    edits: Annotated[
        str,
        Option(
            "edits",
            "What is changed inside the model: 'off 3.1 4.0' (heads as layer.head; also mean, uniform), 'temperature 7=0.5', "
            "'forbid class>2-4,3-5@6-8', joined by ;.",
            pattern=r"[^\x00-\x1f]{0,16000}",
        ),
    ] = ""

    sentences: Annotated[
        str,
        Option(
            "sentences",
            "Sentences as the classes of a model with a text tower, such as CLIP: 'a dog | a rock'; '@lion' is a photo in place of "
            "one, '@lion 3,4' a patch of it.",
            pattern=r"[\s\S]*",  # prompts.py says what is wrong
        ),
    ] = ""
    templates: Annotated[
        str,
        Option(
            "templates",
            "How sentences are read: 'a photo of {}.', several joined by |; their mean is taken.",
            pattern=r"[\s\S]*",  # prompts.py says what is wrong
        ),
    ] = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        ModelEdits.parse(self.edits)  # what is wrong is told before a model is loaded
        assert self.prompts is not None

    @property
    def rectangle(self) -> Part | None:
        """The part as four numbers; None is the whole."""
        return parse_part(self.part) if self.part else None

    @property
    def prompts(self) -> Prompts:
        """Sentences and templates, cleaned."""
        return Prompts(self.sentences, self.templates)

    @property
    def fields(self) -> Json:
        """As a `Subject` takes them."""
        edits = ModelEdits.parse(self.edits)
        return {
            "mode": self.mode,
            "size": self.size,
            "part": self.rectangle,
            "edits": edits,
            "prompts": self.prompts,
        }


def parse_arguments(question: AnyQuestion, fields: Mapping[str, object]) -> tuple[InputOptions, Json]:
    """What JSON or a tool's arguments say beside model and picture, checked as far as it can be without the model.

    Returns:
        How the picture becomes the model's input; and query, target and options, under "options" those of the method whose map it
        is about, as `vit_viz.session.questions.request_for` takes them.
    """
    allowed = properties(question)
    for name in fields:
        if name not in allowed:
            raise ParameterError(
                f"{question.name!r} takes no {str(name)[:40]!r}; it takes: {', '.join(allowed)}."
            )
    inputs = {field.name: field for field in InputOptions.schema()}
    fields = dict(fields)
    if "edits" in fields:
        fields["edits"] = str(ModelEdits.parse(fields["edits"]))
    prompts = Prompts(*(_texts(name, fields.get(name, "")) for name in ("sentences", "templates")))
    fields |= {"sentences": str(prompts), "templates": prompts.template_words}
    how = {name: inputs[name].read(name, _text(fields[name])) for name in inputs if name in fields}
    others = {name: value for name, value in fields.items() if name not in {*inputs, *BESIDE_OPTIONS}}
    query, target = query_of(fields.get("query")), target_of(fields.get("target"))
    chosen = question.read(others)  # what is wrong is told before a model is loaded
    if (of_method := fields.get("options")) is not None:
        options_of_methods(question, chosen, of_method)
        others["options"] = of_method
    return InputOptions.of(how.items()), {"query": query, "target": target, **others}


def _texts(name: str, value: object) -> str | list[str]:
    """Sentences or templates from JSON, as `Prompts` takes them."""
    if not isinstance(value, str | list):
        raise ParameterError(f"The {name} are a text or a list of texts, not {str(value)[:40]!r}.")
    return value


def query_of(value: object) -> Query | None:
    """A query from JSON: a name, "row,col", [row, col], or a list of such pairs; None for none."""
    if value is None or value == "":
        return None
    query = parse_query(_text(value)[: 16 * MOST_PATCHES])
    if not isinstance(query, str) and len(query) > MOST_PATCHES:
        raise ParameterError(f"A query has at most {MOST_PATCHES} patches.")
    return query


def target_of(value: object) -> TargetWord:
    """A target from JSON: a number, a name, or a list of two of them; None for the model's first."""
    if value is None or value == "":
        return None
    if isinstance(value, list) and len(value) == 2 and all(_is_class(one) for one in value):
        return value[0], value[1]
    if not _is_class(value):
        raise ParameterError(
            f"A target is a class, by number or name, or a pair of them, not {str(value)[:40]!r}."
        )
    return value  # type: ignore[return-value]  # a number or a text


def _is_class(value: object) -> bool:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return is_number or (isinstance(value, str) and len(value) <= 200)


def _text(value: object) -> str:
    """A value of JSON as links write it: [3, 4] is "3,4", and [[3, 4], [3, 5]] is "3,4;3,5"."""
    if not isinstance(value, list):
        return str(value)
    between = ";" if any(isinstance(one, list) for one in value) else ","
    return between.join(_text(one) for one in value)


# --- schemas


def properties(question: AnyQuestion) -> dict[str, Json]:
    """JSON Schema of everything that a question takes beside model and picture, by name."""
    schemas: dict[str, Json] = {}
    if question.takes_image:
        schemas |= {field.name: schema_of(field) for field in InputOptions.schema()}
        for name in ("edits", "sentences", "templates"):
            schemas[name] |= {"type": ["string", "array"], "items": {"type": "string"}}
    if question.takes_query:
        schemas["query"] = {
            "description": query_sentence(question),
            "type": ["string", "array", "null"],
            "items": {},
            "default": None,
        }
    if question.takes_target:
        schemas["target"] = {
            "description": TARGET,
            "type": ["integer", "string", "array", "null"],
            "items": {},
            "default": None,
        }
    if question.takes_options:
        schemas["options"] = {"description": OPTIONS, "type": ["object", "null"], "default": None}
    return schemas | {field.name: schema_of(field) for field in question.options.schema()}


def query_sentence(question: AnyQuestion) -> str:
    """What a query is, and what stands for it where none is given."""
    return (
        QUERY
        if not question.without_query
        else f"{QUERY.rpartition('; ')[0]}; else {question.without_query}."
    )


def schema_of(field: OptionField) -> Json:
    """JSON Schema of one option."""
    schema: Json = {"description": field.option.sentence, "default": field.default}
    if field.choices:
        return schema | {"type": "string", "enum": list(field.choices)}
    if field.option.is_list:
        return schema | {
            "type": ["string", "array"],
            "pattern": f"^({field.option.pattern})$",
            "items": {"type": "string"},
        }
    if field.kind is str:
        return schema | {"type": "string", "pattern": f"^({field.option.pattern})$"}
    if field.kind is bool:
        return schema | {"type": "boolean"}
    ends = {"minimum": field.option.low, "maximum": field.option.high}
    return schema | {"type": "integer" if field.kind is int else "number"} | ends


def sentence_of(question: AnyQuestion) -> str:
    """What a question is for, in two sentences."""
    words = question.words
    runs = f" Computing it takes {words.runs}." if words.runs else ""
    return f"{words.label}: {words.shows}{runs} Does not show {words.hides}"
