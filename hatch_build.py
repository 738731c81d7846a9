"""What the build computes: the text about the package, which is the README without what only its own page can show."""

from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class Readme(MetadataHookInterface):
    """Sets `readme`."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Leave out the settings of the Space, between the first two lines of dashes, and pictures that lie in the repository."""
        text = Path(self.root, "README.md").read_text("utf-8").split("---\n", 2)[-1].lstrip()
        lines = [line for line in text.splitlines(keepends=True) if "](assets/" not in line]
        metadata["readme"] = {"content-type": "text/markdown", "text": "".join(lines)}
