"""A Vision Transformer to build oneself, in the parts in which the lesson tells it: minimal PyTorch that runs as it stands.

Joined in order, the sources are one program, which loads the bundled model's weights and gives its logits. Beside each: its
formula, where tutorials go wrong, and which of our own functions did the same.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

_MODEL = Path(__file__).with_name("model") / "vit.py"


Of = Mapping[str, tuple[str | bool | int, ...]]
"""Which models are meant: what the `shape` of `lesson_tokens` says of them, by name; all, where nothing is said."""


@dataclass(frozen=True)
class Ran:
    """A function of vit_viz/model/vit.py, of which some lines do a part of the lesson.

    Args:
        name: "Class.method", or "function".
        marks: texts; the lines that contain one of them are meant, where a model is such that it runs them.
        of: which models run the function.
    """

    name: str
    marks: Mapping[str, Of]
    of: Of = field(default_factory=dict)

    @property
    def source(self) -> tuple[int, str]:
        """Its first line in the file, counted from 1, and its text; read, not imported, as a page is laid out without torch."""
        text, body = _model()
        for name in self.name.split("."):
            node = next(one for one in body if getattr(one, "name", "") == name)
            assert isinstance(node, ast.ClassDef | ast.FunctionDef)
            body = node.body
        return node.lineno, "\n".join(text.splitlines()[node.lineno - 1 : node.end_lineno])


@cache
def _model() -> tuple[str, list[ast.stmt]]:
    text = _MODEL.read_text("utf-8")
    return text, ast.parse(text).body


@dataclass(frozen=True)
class LessonPart:
    """One part.

    Args:
        formula: words, and mathematics as LaTeX between dollar signs; `letters`: what its letters mean.
        source: PyTorch, to stand behind the parts before it, without an empty line at either end.
        mistake: what goes wrong in many tutorials, in a sentence or two.
        ran: our own functions that do the same.
    """

    formula: str
    letters: str
    source: str
    mistake: str
    ran: tuple[Ran, ...]


_UNFOLDED: Of = {"patch_embed": ("unfold",)}
_PLACED: Of = {"position": ("learned", "sinusoidal_1d", "sinusoidal_2d")}
_GELUS = ("gelu", "gelu_tanh")
_ONE_HEAD: Of = {"dist_head": (False,)}
_POOLED: Of = {"pooling": ("attention",)}

PARTS: dict[str, LessonPart] = {
    "tokens": LessonPart(
        formula="$x_i = W p_i + b + e_i$",
        letters="$p_i$: the numbers of patch $i$ in one row; $W$, $b$: the embedding, the same for every patch; $e_i$: the "
        "position of the patch, as many numbers as a token has.",
        source='''\
import torch
from torch import nn
from torch.nn import functional as F


class PatchEmbed(nn.Module):
    """Cuts an image into squares, and makes a vector of each by the same linear map."""

    def __init__(self, patch, dim, channels=3):
        super().__init__()
        self.patch = patch
        # a linear map, stored as a convolution
        self.proj = nn.Conv2d(channels, dim, kernel_size=patch, stride=patch)

    def forward(self, image):  # [batch, channels, height, width]
        # [batch, n, channels * patch * patch]
        flat = F.unfold(image, self.patch, stride=self.patch).transpose(1, 2)
        # [batch, n, dim]
        return F.linear(flat, self.proj.weight.flatten(1), self.proj.bias)


def sequence(patches, prefix, positions):
    """Learned tokens first, then the patches; the last rows get positions."""
    # the same for every image: [batch, prefix, dim]
    prefix = torch.cat(prefix, dim=1).expand(len(patches), -1, -1)
    x = torch.cat([prefix, patches], dim=1)  # [batch, tokens, dim]
    x[:, -positions.shape[1] :] += positions
    return x
''',
        mistake="Reshaping the image to [n, channels * patch * patch] at once: that takes stretches of pixel rows, not "
        "squares. And a class token of random numbers in each forward pass: it is one parameter, learned, the same for "
        "every image.",
        ran=(
            Ran(
                "PatchEmbed.forward",
                {"proj(self.whole_patches": {"patch_embed": ("conv",)}, "proj(self.patches": _UNFOLDED},
            ),
            Ran("PatchEmbed.patches", {"F.unfold": {}, "transpose": {}}, _UNFOLDED),
            Ran("VisionTransformer.tokens", {"torch.cat": {}, "x = x + F.pad": _PLACED}),
        ),
    ),
    "attention": LessonPart(
        formula=r"$a = \mathrm{softmax}(q k^{\top} / \sqrt{d})$ and $o = \sum_j a_j v_j$",
        letters="$q$: the query of the token that asks; $k$, $v_j$: keys and values of all tokens; $d$: numbers of a query; "
        "$a_j$: what token $j$ gets of the attention; $o$: what is gathered.",
        source='''\
def attention(q, k, v):  # each [batch, heads, tokens, head_dim]
    """What each token gathers from all, by how well its query fits their keys."""
    # [batch, heads, queries, keys]
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    weights = scores.softmax(dim=-1)  # along the keys: each query's weights sum to 1
    return weights @ v  # [batch, heads, tokens, head_dim]
''',
        mistake="A softmax along the queries (dim=-2, or dim=1 by counting wrong): then it is not a token's attention that "
        "sums to 1. And a division by the root of the token's width, or of the number of heads: a product of query and key "
        "has head_dim terms.",
        ran=(
            Ran(
                "Attention.forward",
                {
                    "scaled_dot_product_attention(": {},
                    "rotate(": {"rotary": (True,)},
                    "places.bias": {"relative": (True,)},
                },
            ),
        ),
    ),
    "heads": LessonPart(
        formula=r"$y = W_O\, (o_1, \ldots, o_H) + b_O$",
        letters="$o_h$: what head $h$ gathers; $H$: number of heads; $W_O$, $b_O$: the output projection, which reads all "
        "heads in one row.",
        source='''\
class Attention(nn.Module):
    """Heads side by side, each with queries, keys and values of its own; then mixed."""

    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)  # three projections of every head in one matrix
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):  # [batch, tokens, dim]
        batch, tokens, dim = x.shape
        qkv = self.qkv(x).reshape(batch, tokens, 3, self.heads, dim // self.heads)
        # each [batch, heads, tokens, head_dim]
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        # the heads in one row: [batch, tokens, dim]
        x = attention(q, k, v).transpose(1, 2).reshape(batch, tokens, dim)
        return self.proj(x)
''',
        mistake="One projection for query, key and value: then what one patch seeks in another is what that seeks in it, "
        "as the scores are symmetric. And a reshape to [batch, heads, tokens, head_dim] without a transpose, which "
        "mixes tokens with heads.",
        ran=(Ran("Attention.forward", {"qkv": {}, "transpose(1, 2)": {}, "self.proj": {}}),),
    ),
    "block": LessonPart(
        formula=r"$x \leftarrow x + \mathrm{Attention}(\mathrm{norm}_1(x))$; then $x \leftarrow x + "
        r"\mathrm{MLP}(\mathrm{norm}_2(x))$ with $\mathrm{MLP}(y) = W_2\, g(W_1 y + b_1) + b_2$",
        letters="$x$: the residual stream; $g$: the nonlinearity, GELU in the program below; $W_1$ leads to more numbers, $W_2$ "
        "back. Where the MLP is gated, a second linear map of $y$ multiplies what $g$ returns.",
        source='''\
class Mlp(nn.Module):
    """Two linear maps with a nonlinearity between them, on each token alone."""

    def __init__(self, dim):
        super().__init__()
        self.fc1 = nn.Linear(dim, 4 * dim)
        self.fc2 = nn.Linear(4 * dim, dim)

    def forward(self, x):
        return self.fc2(F.gelu(self.fc1(x)))


class Block(nn.Module):
    """Both parts read a normalised copy of the stream, and add to the stream itself."""

    def __init__(self, dim, heads):
        super().__init__()
        self.norm1 = nn.LayerNorm(dim, eps=1e-6)
        self.attn = Attention(dim, heads)
        self.norm2 = nn.LayerNorm(dim, eps=1e-6)
        self.mlp = Mlp(dim)

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))
''',
        mistake="One norm for both parts: each learns a scale of its own. And two linear layers without a nonlinearity "
        "between them, which are no more than one.",
        ran=(
            Ran("Block.forward", {"x +": {}}),
            Ran("Mlp.forward", {"gelu(": {}, "self.fc2": {}}, {"mlp": ("quick_gelu", *_GELUS)}),
            Ran(
                "gelu",
                {"torch.sigmoid": {"mlp": ("quick_gelu",)}, "F.gelu": {"mlp": _GELUS}},
                {"mlp": ("quick_gelu", *_GELUS)},
            ),
            Ran("SwiGLU.forward", {"F.silu": {}, "self.fc2": {}}, {"mlp": ("swiglu",)}),
            Ran("PackedSwiGLU.forward", {"F.silu": {}}, {"mlp": ("swiglu_packed",)}),
        ),
    ),
    "model": LessonPart(
        formula=r"$z = W\, \mathrm{norm}(x_{\mathrm{class}}) + b$ and $p = \mathrm{softmax}(z)$",
        letters=r"$x_{\mathrm{class}}$: the class token after the last block; $W$, $b$: the head, a row for each class; $z$: "
        "the logits; $p$: the probabilities.",
        source='''\
class ViT(nn.Module):
    """From pixels to the logits of the classes."""

    def __init__(self, patch, dim, depth, heads, classes, positions, registers=0):
        super().__init__()
        self.patch_embed = PatchEmbed(patch, dim)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.reg_token = nn.Parameter(torch.zeros(1, registers, dim)) if registers else None
        self.pos_embed = nn.Parameter(torch.zeros(1, positions, dim))
        self.blocks = nn.Sequential(*[Block(dim, heads) for _ in range(depth)])
        self.norm = nn.LayerNorm(dim, eps=1e-6)
        self.head = nn.Linear(dim, classes)

    def forward(self, image):
        prefix = [token for token in (self.cls_token, self.reg_token) if token is not None]
        x = sequence(self.patch_embed(image), prefix, self.pos_embed)
        x = self.blocks(x)
        return self.head(self.norm(x)[:, 0])  # the class token alone
''',
        mistake="A softmax at the end of the model: cross_entropy takes logits and has one itself. And no norm before the "
        "head: after many additions the stream is long, and no head was trained on that.",
        ran=(
            Ran(
                "VisionTransformer.forward",
                {"self.tokens(": {}, "self.run_blocks(": {}, "self.classify(": {}},
            ),
            Ran(
                "VisionTransformer.classify",
                {"self.head(self.pool": _ONE_HEAD, "head_dist(": {"dist_head": (True,)}},
            ),
            Ran(
                "VisionTransformer.pool",
                {
                    "self.norm(x)": {"final_norm": (True,)},
                    "self.attn_pool(patches)": _POOLED,
                    "torch.cat((x": {"pool_concat": (True,)},
                    'pooling == "class" else': {
                        "pooling": ("class", "mean"),
                        "pool_concat": (False,),
                        "class_tokens": (1,),
                    },
                },
                _ONE_HEAD,
            ),
            Ran("AttentionPool.forward", {"scaled_dot_product_attention(": {}}, _POOLED),
        ),
    ),
}
"""By name, in the order of the lesson's scenes: each belongs to one."""
