"""The components of the page, and what its rooms share.

Each component is a gr.HTML from a template and a module of JavaScript, `<name>.html` and `<name>.js` in the folder of its room; the
script exports `mount(element, trigger, props, watch)` and is loaded once the template stands in the page. Templates are static and
values reach the page through `textContent` only, because Gradio evaluates whatever stands in a template. The classes stand together
here and not in the rooms that wire them, because Gradio writes a stub beside each module that has one, and a type checker reads the
stub in place of the module.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gradio as gr

from vit_viz.ui.scripts import loader

_ROOMS = Path(__file__).resolve().parents[1]


class Component(gr.HTML):
    """A gr.HTML made from the files <template>.html and <template>.js of this package; `tells` names its events.

    A small one has its `html` here, and shares a module: `script` names it and the function that mounts the component.
    """

    template = ""
    html = ""
    script: tuple[str, str] | None = None
    tells: tuple[str, ...] = ()

    def __init__(self, value: Any = None, **options: Any) -> None:
        module, function = self.script or (self.template, "mount")
        super().__init__(
            value,
            html_template=self.html or (_ROOMS / f"{self.template}.html").read_text("utf-8"),
            js_on_load=loader(_ROOMS / f"{module}.js", self.tells, function),
            apply_default_css=False,
            elem_classes=["vv-part", f"vv-part-{self.template.split('/')[-1]}"],
            **options,
        )


class Picture(Component):
    """A picture with caption, colour bar, rings and a link to save it; events `pick` and `step`."""

    template = "kit/picture"
    tells = ("pick", "step")


class FigureDialog(Component):
    """The dialog that saves a figure; whatever on the page shows one opens it by the event `vv-figure` of the browser."""

    template = "kit/figure_dialog"


class FigureButton(Component):
    """A button that saves the figure at the address that is its value, by the dialog; None hides it."""

    template = "kit/figure_button"
    html = '<button type="button" class="vv-button vv-figure-button" hidden>Save figure</button>'
    script = ("kit/parts", "mountFigureButton")


class Opener(Component):
    """A button that opens the part of the page that its value names: {"words", "label", "panel"}; a new value closes it."""

    template = "kit/opener"
    html = '<button type="button" class="vv-button vv-opener" aria-expanded="false"></button>'
    script = ("kit/parts", "mountOpener")


class PlotClicks(Component):
    """Says which point of a plotly figure was clicked, event `point`. Its value names the figure."""

    template = "kit/plot_clicks"
    html = '<span class="vv-plot-clicks" hidden></span>'
    script = ("kit/parts", "mountPlotClicks")
    tells = ("point",)


class Plots(Component):
    """Fits the figures of plotly, wherever they are on the page, to its size."""

    template = "kit/plots"
    html = '<span class="vv-plots" hidden></span>'
    script = ("kit/parts", "mountPlots")


class Surgery(Component):
    """A switch for each head, a temperature for each layer, and views that are forbidden; event `edit` (edits, in words)."""

    template = "heads/surgery"
    tells = ("edit",)


class HeadRoom(Component):
    """All heads as a table of one measure, the photo as one of them sees it, and a name for each.

    Events: `choose` (layer, head), `option` (measure, how or head_order), `pin` (query), `why` (index of a class), `search`
    of a class, which the prop `matches` answers, `start` and `stop` of the causal map, which the prop `causal` follows. The
    props `tables` and `measures` have the colour tables, as the explorer's, and the measures in words.
    """

    template = "heads/table"
    tells = ("choose", "option", "pin", "why", "search", "start", "stop")


class HeadMatrix(Component):
    """Every token against every token in one head, and links as arrows; events `pin` (query), `choose` (layer, head) and `option`.

    Its value is the explorer's, with its options under `matrix`; the prop `tables` has the colour tables.
    """

    template = "heads/matrix"
    tells = ("pin", "choose", "option")


class Bring(Component):
    """Takes what is dropped or pasted anywhere on the page; event `bring` says the path that its upload was answered with."""

    template = "header/bring"
    html = """
<div class="vv-bring vv-row">
  <button type="button" class="vv-button vv-paste" hidden>Paste a picture</button>
  <p class="vv-small">or Ctrl+V, or drop a picture anywhere on the page</p>
</div>
"""
    tells = ("bring",)


class Edited(Component):
    """What was changed inside the model, and what that does to the answer; event `undo` (words of an edit; "" for all)."""

    template = "header/edited"
    script = ("header/parts", "mountEdited")
    tells = ("undo",)


class Loading(Component):
    """Which model is on its way, how far it is, and a button that ends it; event `stop`."""

    template = "header/loading"
    html = """
<div class="vv-job vv-row" hidden>
  <span class="vv-job-words vv-quiet" role="status" aria-live="polite"></span>
  <span class="vv-job-amount vv-number"></span>
  <progress class="vv-progress" max="1" aria-label="download"></progress>
  <button type="button" class="vv-stop">Cancel</button>
</div>
<p class="vv-error" role="alert" hidden></p>
"""
    script = ("header/parts", "mountLoading")
    tells = ("stop",)


class Facts(Component):
    """Whether the attention is verified, with the model's facts; the link; where to start; help.

    Event `refused`: it turned out that the pictures mislead.
    """

    template = "header/facts"
    tells = ("refused",)


class Samples(Component):
    """The tray: thumbnails of the samples and of this visit's pictures; event `choose`."""

    template = "header/samples"
    html = '<div class="vv-samples" role="group" aria-label="Pictures"></div>'
    script = ("header/parts", "mountSamples")
    tells = ("choose",)


class Top(Component):
    """The most probable classes, what is being done, and what went wrong."""

    template = "header/top"
    html = """
<div class="vv-answers">
  <span class="vv-says" hidden>The model says</span>
  <ol class="vv-top" aria-label="Most probable classes with their probability"></ol>
  <p class="vv-nothing" hidden></p>
</div>
<p class="vv-status vv-quiet" role="status" aria-live="polite" hidden></p>
<p class="vv-error" role="alert" hidden></p>
"""
    script = ("header/parts", "mountTop")


class TabRow(Component):
    """Keeps the chosen tab in sight where the row of tabs is wider than the screen."""

    template = "header/tab_row"
    html = '<span class="vv-tab-row" hidden></span>'
    script = ("header/parts", "mountTabRow")


class Meter(Component):
    """A button for something long, how far it is, and a button that ends it; events `start` and `stop`."""

    template = "explain/meter"
    html = """
<div class="vv-job vv-row">
  <button type="button" class="vv-go"></button>
  <span class="vv-job-words vv-quiet" aria-live="polite"></span>
  <progress class="vv-progress" max="1" value="0" hidden></progress>
  <button type="button" class="vv-stop" hidden>Cancel</button>
</div>
"""
    script = ("explain/gallery", "mountMeter")
    tells = ("start", "stop")


class Target(Component):
    """What is explained: chips of classes and a search; events `why`, `unlike`, `search`; the prop `matches` answers a search."""

    template = "explain/target"
    tells = ("why", "unlike", "search")


class Gallery(Component):
    """A card per method, and how far to believe the chosen one; events `open`, `compute`, `stop`, `trust`, `map_scale`.

    The prop `progress` follows the slow methods, by their names, `trust` the test of all maps; `weights` says what became of a map
    when the weights were re-initialised.
    """

    template = "explain/gallery"
    tells = ("open", "compute", "stop", "trust", "map_scale")


class Stage(Component):
    """The chosen map on the photo, whose patches can be taken away; events `remove`, `pick` and `step`.

    The prop `answer` says what the model makes of the rest.
    """

    template = "explain/stage"
    tells = ("remove", "pick", "step")


class SurveyRoom(Component):
    """The filter, the atlas of heads, and photos in lists; the dots are a figure beside it, which its script fills.

    Events: `option` (names and values of options of the view), `choose` (layer, head), `look` (row of a photo). The prop
    `survey` says what was opened, and `tables` has the colour tables, as the explorer's.
    """

    template = "survey/room"
    tells = ("option", "choose", "look")


class PositionTables(Component):
    """What is shown of the positions, and all of it but their similarity; event `show` (part).

    The prop `tables` has the colour tables, as the explorer's.
    """

    template = "positions/tables"
    tells = ("show",)


class TokenRoom(Component):
    """The photo with one state of the model over it, and all states as small maps.

    Events: `pin` (query), `choose` (options of the view), `compute` (a measure that takes a while), `stop`, and
    `why` and `search` of the classes. The prop `tables` has
    the colour tables, as the explorer's; `job` says how far a computation is.
    """

    template = "tokens/room"
    tells = ("pin", "choose", "compute", "stop", "why", "search")


class Address(Component):
    """The address bar and the identity of the tab; event `arrive`."""

    template = "visit/address"
    html = '<span class="vv-address" hidden></span>'
    tells = ("arrive",)
