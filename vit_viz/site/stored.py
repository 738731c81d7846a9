"""A model as a page holds it: its weights as a file, and how exact they are, measured on the samples."""

from __future__ import annotations

import tempfile
import zlib
from pathlib import Path

import numpy as np

from vit_viz import samples
from vit_viz.browser import Storage, as_stored, write_weights
from vit_viz.capture import trace
from vit_viz.checkpoints import LoadedModel
from vit_viz.outputs import shown

_QUERIES = 24


def weights_of(loaded: LoadedModel, storage: Storage) -> bytes:
    """The file of a model's weights, see `write_weights`, compressed: hosts compress text, not these."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "weights.safetensors")
        write_weights(loaded, path, storage=storage)
        packer = zlib.compressobj(9, memLevel=9)
        return packer.compress(path.read_bytes()) + packer.flush()


def model_facts(loaded: LoadedModel, storage: Storage) -> dict[str, str]:
    """What a page says of a model."""
    return {"name": loaded.name, "card": loaded.card, "storage": storage_words(loaded, storage)}


def storage_words(loaded: LoadedModel, storage: Storage) -> str:
    """One or two sentences on how the weights are stored, and what that changes."""
    if storage == "fp32":
        return "Weights are stored as they are, in fp32."
    rows, shares, same = storage_error(loaded, storage)
    classes = ""
    if loaded.output == "value":
        classes = f"; values by at most {shares:.2g}"
    elif loaded.labels is not None:
        classes = f"; shares of classes by at most {100 * shares:.2g}%, and the likeliest class is the same for {same} of them"
    return (
        f"Weights are stored as {storage}. On {len(samples.sample_names())} pictures, the samples of vit_viz, that changes "
        f"weights of attention by at most {100 * rows:.2g}% of the largest of their row{classes}."
    )


def storage_error(loaded: LoadedModel, storage: Storage) -> tuple[float, float, int]:
    """What storage changes, over the samples.

    Returns:
        The largest difference of a weight of attention, as a share of the largest of its row, over 24 queries of every head; the
        largest difference of a class's share, or of a value; for how many samples the likeliest class is the same.
    """
    stored = as_stored(loaded, storage)
    rows, shares, same = 0.0, 0.0, 0
    for name in samples.sample_names():
        own, other = (trace(model, samples.sample(name)) for model in (loaded, stored))
        queries = sorted({round(i) for i in np.linspace(0, own.num_tokens - 1, _QUERIES)})
        for layer in range(own.num_layers):
            exact, rounded = (one.attention(layer, queries=queries).cpu() for one in (own, other))
            rows = max(rows, float(((rounded - exact).abs().amax(-1) / exact.amax(-1)).max()))
        if own.logits is None or other.logits is None:
            continue
        before, after = (shown(logits.cpu(), loaded.output) for logits in (own.logits, other.logits))
        shares = max(shares, float((after - before).abs().max()))
        same += int(before.argmax() == after.argmax())
    return rows, shares, same
