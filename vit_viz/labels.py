"""Names of classes, as data: ImageNet-1k from assets/, other sets from a checkpoint's metadata."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from vit_viz.bundled import bundled_file
from vit_viz.errors import ParameterError


@dataclass(frozen=True)
class Labels:
    """What each output of a classifier is called.

    Args:
        names: one per class, short enough for a screen; they need not be unique.
        synsets: WordNet identifiers such as "n02123045", one per class, or none at all.

    Raises:
        ParameterError: there are synsets, but not one per name.
    """

    names: tuple[str, ...]
    synsets: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(str(name) for name in self.names))
        object.__setattr__(self, "synsets", tuple(str(synset) for synset in self.synsets))
        if self.synsets and len(self.synsets) != len(self.names):
            raise ParameterError(
                f"{len(self.names)} class names and {len(self.synsets)} synsets do not match."
            )

    def __len__(self) -> int:
        return len(self.names)

    def name(self, index: int) -> str:
        """What class `index` is called; "class 7" beyond the known names."""
        if index < 0:
            raise ParameterError(f"Class {index} does not exist: classes count from 0.")
        return self.names[index] if index < len(self.names) else f"class {index}"

    def search(self, text: str, *, limit: int = 20) -> tuple[int, ...]:
        """Indices of the classes that match a text, best first: by number, synset, or words of the name.

        A name that equals the text comes first, then names with a word that begins with it, then names that contain it.
        """
        wanted = " ".join(text.lower().split())
        if not wanted:
            return ()
        ranked = [(self._rank(index, wanted), index) for index in range(len(self))]
        return tuple(index for rank, index in sorted((r, i) for r, i in ranked if r is not None))[:limit]

    def find(self, name: str) -> int:
        """The one class with this name, synset or number in digits; case is ignored.

        Raises:
            ParameterError: no class matches, or more than one.
        """
        wanted = " ".join(name.lower().split())
        hits = [index for index in range(len(self)) if self._rank(index, wanted) == 0]
        if len(hits) == 1:
            return hits[0]
        near = hits or self.search(name, limit=5)
        similar = ", ".join(f"{self.names[index]!r} ({index})" for index in near[:5])
        count = f"{len(hits)} classes are" if hits else "No class is"
        what = "pass one index of" if hits else "similar names:" if similar else "pass its index."
        raise ParameterError(f"{count} called {name[:60]!r}: {what} {similar}".rstrip(" .") + ".")

    def index(self, synset: str) -> int:
        """The class of a synset.

        Raises:
            ParameterError: no class has it.
        """
        if synset not in self.synsets:
            raise ParameterError(f"No class has the synset {synset!r}.")
        return self.synsets.index(synset)

    def _rank(self, index: int, wanted: str) -> int | None:
        """Quality of a match, 0 the best; None where there is none."""
        name = self.names[index].lower()
        if wanted == name or wanted == str(index) or (self.synsets and wanted == self.synsets[index]):
            return 0
        if name.startswith(wanted):
            return 1
        if f" {wanted}" in name.replace("-", " "):
            return 2
        return 3 if wanted in name else None


@cache
def imagenet1k() -> Labels:
    """The 1000 classes of ILSVRC2012 in their usual order."""
    text = bundled_file("imagenet1k.tsv").read_text(encoding="utf-8")
    rows = [line.split("\t") for line in text.splitlines() if line]
    return Labels(tuple(row[2] for row in rows), tuple(row[1] for row in rows))
