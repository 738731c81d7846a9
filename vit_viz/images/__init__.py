"""Pictures from strangers, safely, and the recipe that turns them into a model's input.

reading.py     bytes, paths and PIL images -> an upright RGB picture, or one sentence
parts.py       how a file is cut into parts, before a decoder looks for them
signatures.py  what a file is, told from its first bytes
colours.py     every pixel format -> RGB over white
preprocess.py  the recipe as data, forwards and backwards
"""

from vit_viz.images.preprocess import Mode, Prepared, Preprocess
from vit_viz.images.reading import MAX_ASPECT, MAX_BYTES, MAX_PIXELS, MIN_SIDE, decode, image_hash

__all__ = [
    "MAX_ASPECT",
    "MAX_BYTES",
    "MAX_PIXELS",
    "MIN_SIDE",
    "Mode",
    "Prepared",
    "Preprocess",
    "decode",
    "image_hash",
]
