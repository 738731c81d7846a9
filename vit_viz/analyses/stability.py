"""How far a map that draws random numbers would change with other ones, in words."""

from __future__ import annotations

STABLE = 0.8
"""Rank correlation of two halves from which on a map is called stable."""


def stability_words(stability: float, drawn: str) -> str:
    """A sentence for people: how well two independent halves of what was drawn agree.

    Args:
        drawn: what was drawn, in words, e.g. "16 samples".
    """
    words = f"the two halves of its {drawn} agree to {stability:.2f} (rank correlation)"
    if stability >= STABLE:
        return f"{words[0].upper()}{words[1:]}; the map is their mean."
    return f"Not stable: {words}, so other random numbers would give another map."
