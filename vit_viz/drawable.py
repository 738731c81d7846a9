"""How results show and save themselves, by functions of a higher floor that are imported when they are first called."""

from __future__ import annotations

import base64
import html
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from vit_viz.lazy import named

if TYPE_CHECKING:
    from PIL import Image

_SAVING = "vit_viz.drawing.saving"


class Drawable:
    """A result that can be saved, and that shows itself in a notebook."""

    def save(
        self,
        path: str | Path,
        *,
        image: Image.Image | str | Path | None = None,
        style: Literal["light", "tint", "heat"] = "light",
        title: str = "",
        width_cm: float = 12.0,
        dpi: int = 300,
    ) -> Path:
        """Save as a figure (.png, .svg, .pdf) or as numbers (.csv, .npz): the file's ending says which.

        A file that can be made again from itself (`vit-viz replay`) is saved by `vit_viz.figure`.

        Args:
            image: of a map, the photo that it is laid over, or its path; None draws the map alone.
            style: how it changes the photo.
            title: first line; "" names the method.
            width_cm: in print.
            dpi: of a PNG, and of the pictures in SVG and PDF.

        Raises:
            ExportError: there is no such format.
        """
        written: Path = named(_SAVING, "save")(
            self, Path(path), image=image, style=style, title=title, width_cm=width_cm, dpi=dpi
        )
        return written

    def _repr_png_(self) -> bytes:
        drawn: bytes = named(_SAVING, "preview")(self)
        return drawn

    def _repr_html_(self) -> str:
        picture = base64.b64encode(self._repr_png_()).decode()
        words = html.escape(repr(self))
        return f'<img alt="{words}" style="max-width:100%" src="data:image/png;base64,{picture}">'


class DrawableMap(Drawable):
    """The same of a map, which can also be laid over its photo."""

    def overlay(
        self,
        image: Image.Image | str | Path,
        *,
        style: Literal["light", "tint", "heat"] = "light",
        alpha: float | None = None,
        smooth: bool = True,
    ) -> Image.Image:
        """The photo with this map over it, at the photo's size and without words.

        Args:
            image: the photo, or its path.
            style: how the values change the photo; a map of both signs has heat only.
            alpha: strength of the style, in [0, 1]; None has that of the style.
            smooth: whether values are interpolated between patches.

        Raises:
            ImageError, ParameterError: the photo cannot be read, or is not the map's.
        """
        drawn: Image.Image = named(_SAVING, "overlaid")(self, image, style=style, alpha=alpha, smooth=smooth)
        return drawn
