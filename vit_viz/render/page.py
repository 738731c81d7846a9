"""A map over its photo as a web page of its own, for people who have neither Python nor a network."""

from __future__ import annotations

import base64
import html
import io
import json
import re

import numpy as np
from PIL import Image

from vit_viz.render.captioned import map_caption
from vit_viz.render.colormaps import Limits, Table, apply
from vit_viz.render.lettering import number
from vit_viz.render.overlay import photo_region
from vit_viz.results import PatchMap

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>@@title@@</title>
<style>
:root { color-scheme: light dark; font: 16px/1.45 system-ui, sans-serif; }
body { margin: 1.5rem auto; padding: 0 1rem; max-width: 60rem; }
h1 { font-size: 1.3rem; }
.photo { position: relative; overflow: hidden; width: min(100%, @@width@@px, calc(80vh * @@ratio@@)); }
.photo img { display: block; }
.photo > img { width: 100%; }
.map { position: absolute; @@place@@ opacity: @@opacity@@; }
.map img { width: 100%; height: 100%; image-rendering: pixelated; }
.bar { width: 18rem; max-width: 100%; height: 0.8rem; display: block; margin-top: 1rem; }
.ends { width: 18rem; max-width: 100%; display: flex; justify-content: space-between; }
.value { min-height: 1.5em; font-variant-numeric: tabular-nums; }
.quiet { opacity: 0.75; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.75rem; font-variant-numeric: tabular-nums; }
td, th { padding: 0.1rem 0.4rem; text-align: right; }
code { overflow-wrap: anywhere; }
</style>
</head>
<body>
<h1>@@title@@</h1>
<div class="photo" id="photo">
<img src="@@photo@@" alt="the photo">
<div class="map" id="map"><img src="@@map@@" alt="the map, one square per patch"></div>
</div>
<p class="value" id="value" aria-live="polite">Point at the photo to read values.</p>
<label>Overlay <input id="alpha" type="range" min="0" max="100" value="@@alpha@@"></label>
<img class="bar" src="@@bar@@" alt="the colours from the low to the high end of the scale">
<div class="ends"><span>@@low@@</span><span>@@high@@</span></div>
<div class="quiet">@@unit@@</div>
<p>@@caption@@</p>
<details><summary>All values</summary><div class="scroll">@@table@@</div></details>
<details><summary>Where this comes from</summary><code>@@provenance@@</code></details>
<script type="application/json" id="facts">@@facts@@</script>
<script>
const facts = JSON.parse(document.getElementById('facts').textContent);
const map = document.getElementById('map'), value = document.getElementById('value');
document.getElementById('alpha').addEventListener('input', event => { map.style.opacity = event.target.value / 100; });
const total = facts.values.flat().reduce((sum, v) => sum + Math.abs(v), 0);
document.getElementById('photo').addEventListener('pointermove', event => {
  const box = map.getBoundingClientRect(), rows = facts.values.length, cols = facts.values[0].length;
  const row = Math.floor((event.clientY - box.top) / box.height * rows);
  const col = Math.floor((event.clientX - box.left) / box.width * cols);
  const v = (facts.values[row] || [])[col];
  value.textContent = v === undefined ? 'The model did not receive this part of the photo.'
    : `patch (${row}, ${col}): ${Number(v.toPrecision(4))} ${facts.unit}` +
      (total ? `, ${(100 * Math.abs(v) / total).toFixed(1)}% of the map` : '');
});
</script>
</body>
</html>
"""


def map_page(
    photo: Image.Image,
    patch_map: PatchMap,
    *,
    title: str,
    table: Table,
    ends: Limits,
    scale_name: str,
    alpha: float,
    provenance: str,
) -> str:
    """The page as HTML text; see `vit_viz.export.page`, which has the defaults.

    Args:
        photo: mode RGB, the map's original or a smaller copy of it.
        ends: values at the ends of the colour table.
        provenance: JSON text.
    """
    region = photo_region(photo, patch_map.crop_box)
    words = map_caption(patch_map, scale_name=scale_name).split("\n")
    strip = np.linspace(0, 1, 256)[None]
    facts = {
        "values": patch_map.values.tolist(),
        "unit": patch_map.unit,
        "provenance": json.loads(provenance),
    }
    parts = {
        "title": html.escape(title),
        "width": str(photo.width),
        "ratio": f"{photo.width / photo.height:.5f}",
        "place": _place(region, photo),
        "opacity": f"{alpha:.2f}",
        "photo": _data_uri(photo, "JPEG"),
        "map": _data_uri(Image.fromarray(apply(patch_map.values, vmin=ends[0], vmax=ends[1], table=table))),
        "alpha": str(round(100 * alpha)),
        "bar": _data_uri(Image.fromarray(apply(strip, vmin=0, vmax=1, table=table))),
        "low": number(ends[0]),
        "high": number(ends[1]),
        "unit": html.escape(patch_map.unit),
        "caption": "<br>".join(html.escape(line) for line in words),
        "table": _values_table(patch_map),
        "provenance": html.escape(provenance),
        "facts": _script_json(facts),
    }
    # in one pass, so that a text which looks like a place holder stays a text
    return re.sub(r"@@(\w+)@@", lambda found: parts[found[1]], _PAGE)


def _place(region: tuple[float, float, float, float], photo: Image.Image) -> str:
    """Where the map lies, as CSS in shares of the photo."""
    shares = zip(region, (photo.height, photo.width) * 2, strict=True)
    names = ("top", "left", "height", "width")
    return " ".join(
        f"{name}: {100 * value / size:.5f}%;" for name, (value, size) in zip(names, shares, strict=True)
    )


def _data_uri(picture: Image.Image, file_format: str = "PNG") -> str:
    file = io.BytesIO()
    picture.save(file, file_format, **({"quality": 90} if file_format == "JPEG" else {}))
    return f"data:image/{file_format.lower()};base64,{base64.b64encode(file.getvalue()).decode()}"


def _values_table(patch_map: PatchMap) -> str:
    """All values as an HTML table, rows and columns numbered from 0."""
    head = "".join(f"<th>{col}</th>" for col in range(patch_map.grid[1]))
    body = "".join(
        f"<tr><th>{row}</th>" + "".join(f"<td>{value:.4g}</td>" for value in values) + "</tr>"
        for row, values in enumerate(patch_map.values)
    )
    return f"<table><tr><th></th>{head}</tr>{body}</table>"


def _script_json(facts: object) -> str:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(facts, ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
