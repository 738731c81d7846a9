"""Pictures that the owner of the process offers to every visitor beside the samples: the photos of a survey."""

from __future__ import annotations

from typing import Protocol

from PIL import Image


class Library(Protocol):
    """Pictures by name; the names are its own, and no visitor's text becomes a path."""

    def holds(self, name: str) -> bool:
        """Whether a picture of this name is meant to be here."""

    def picture(self, name: str) -> tuple[Image.Image, str]:
        """The upright RGB picture of a name, and the digest of its pixels.

        Raises:
            ImageError: its file is gone, or is another one now.
        """

    def title(self, name: str) -> str:
        """What a picture is called on the screen."""
