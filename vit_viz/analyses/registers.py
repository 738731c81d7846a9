"""A register for a model that has none: what outlier patches do is given to a token of its own, without training."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated

from vit_viz.analyses.attention import attention_map
from vit_viz.analyses.head_statistics import OUTLIER_FACTOR
from vit_viz.analyses.norms import FACTOR, TokenNorms, token_norms
from vit_viz.analyses.options import Option
from vit_viz.analyses.prepared_image import ModelLike, Picture, PreparedImage
from vit_viz.analyses.spec import Job, Place, asks
from vit_viz.answer import Answer
from vit_viz.capture import Trace
from vit_viz.capture.forward import undisturbed
from vit_viz.errors import ParameterError
from vit_viz.images import Mode
from vit_viz.lazy import Tensor, nn, torch
from vit_viz.model import VisionTransformer
from vit_viz.results import PatchMap

Action = Callable[[Tensor], Tensor | None]
"""On the hidden layer of an MLP, [1, tokens, hidden]; None leaves it as it is."""


@dataclass(frozen=True)
class RegisterNeuron:
    """A number of an MLP's hidden layer that is large where outlier patches are.

    Args:
        layer: of the MLP.
        neuron: index in its hidden layer.
        score: mean of its absolute value over the outlier patches.
    """

    layer: int
    neuron: int
    score: float


@dataclass(frozen=True, eq=False, repr=False)
class AddedRegister(Answer):
    """The same image with and without a register that was added at test time.

    Args:
        before, after: norms, outliers and the attention that they receive; the added register is the last prefix token.
        attention: of the model's query in the last layer, mean over heads, before and after.
        neurons: which were moved to the register, the highest score first.
        state: in which outliers were looked for.
        outlier_patches: how many patches were outliers in that state, before and after.
        name: of the added token.
    """

    before: TokenNorms
    after: TokenNorms
    attention: tuple[PatchMap, PatchMap]
    neurons: tuple[RegisterNeuron, ...]
    state: int
    outlier_patches: tuple[int, int]
    name: str


def add_register(
    loaded: ModelLike,
    image: Picture | Tensor,
    *,
    state: int | None = None,
    factor: float = OUTLIER_FACTOR,
    count: int = 10,
    mode: Mode = "fit",
    size: int = 0,
) -> AddedRegister:
    """What becomes of a model's outlier patches when a register takes their part: norms and attention before and after.

    1. The outlier patches O of a state, see `token_norms`.
    2. The score of a neuron is the mean over O of |h|, h what enters the second linear layer of its MLP; of all layers up to the
       one after which O was found, the `count` highest.
    3. A token of zeros without a position is put behind the prefix tokens. There these neurons get the maximum of h over all
       tokens, in every patch 0.

    Args:
        state: in which outliers are looked for: 1 is after layer 0; None takes the first that has an outlier patch.
        count: how many neurons are moved.
        size: short side of the model's input in patches; 0 is the checkpoint's own.

    Raises:
        ParameterError: the model is not ours, no patch is an outlier there, or there are not that many neurons.

    Source: Jiang et al. 2025, arXiv:2506.08010, sections 3 and 4. Different here: neurons are found on the image itself unless
    `add_register_by` gets those found on others, and the threshold follows the median.

    Example:
        >>> import vit_viz as vv
        >>> from vit_viz.samples import sample
        >>> vv.add_register("mini", sample("shapes"))  # it has registers of its own
        Traceback (most recent call last):
        vit_viz.errors.ParameterError: No patch is an outlier in any layer: none has a norm of more than 5 times the median, so
        there is nothing that a register could take over.
    """
    subject = PreparedImage.of(loaded, image, mode=mode, size=size)
    neurons, state = register_neurons([subject], state=state, factor=factor, count=count)
    return add_register_by(subject, neurons, state=state, factor=factor)


def register_neurons(
    subjects: Sequence[PreparedImage],
    *,
    state: int | None = None,
    factor: float = OUTLIER_FACTOR,
    count: int = 10,
) -> tuple[tuple[RegisterNeuron, ...], int]:
    """The neurons that write outlier patches, by their mean score over several images of one model, and the state that was used.

    Images without an outlier patch are left out. As `add_register`, also for what is refused.
    """
    scored = [_scores(subject, state, factor) for subject in subjects]
    present = [one for one in scored if one is not None]
    if not present:
        where = "in any layer" if state is None else f"in state {state}"
        raise ParameterError(
            f"No patch is an outlier {where}: none has a norm of more than {factor:g} times the median, so there is nothing that a "
            "register could take over."
        )
    used = min(where for where, _ in present)
    means = torch.stack([scores[:used] for _, scores in present]).mean(0)  # [layers, hidden]
    if not 1 <= count <= means.numel():
        raise ParameterError(f"There are 1 to {means.numel()} neurons to move, not {count}.")
    best = means.flatten().topk(count)
    neurons = tuple(
        RegisterNeuron(index // means.shape[1], index % means.shape[1], score)
        for index, score in zip(best.indices.tolist(), best.values.tolist(), strict=True)
    )
    return neurons, used


def add_register_by(
    subject: PreparedImage, neurons: Sequence[RegisterNeuron], *, state: int, factor: float = OUTLIER_FACTOR
) -> AddedRegister:
    """As `add_register`, with neurons that were found already."""
    traces = traces_with_register(subject, neurons)
    before, after = (token_norms(one, factor=factor) for one in traces)
    first, second = (attention_map(one, layer=one.num_layers - 1) for one in traces)
    counts = [
        len(_outlier_patches(one, norms.outliers[state]))
        for one, norms in zip(traces, (before, after), strict=True)
    ]
    name = traces[1].layout.prefix[-1]
    return AddedRegister(before, after, (first, second), tuple(neurons), state, (counts[0], counts[1]), name)


def traces_with_register(subject: PreparedImage, neurons: Sequence[RegisterNeuron]) -> tuple[Trace, Trace]:
    """The recorded pass without and with an added register that some neurons were moved to, both with their residual streams."""
    model = subject.transformer("A register at test time")
    _check_room(model)
    longer = _with_one_more(model, subject.pixels)
    before = subject.trace(keep_residual=True)
    layout = longer.layout(int(subject.pixels.shape[-2]), int(subject.pixels.shape[-1]))
    changed = replace(subject, model=longer, layout=layout, turn=nullcontext)
    actions = _moving(longer, neurons, layout.num_prefix - 1)
    with subject.turn(), undisturbed(model), _at_hidden_layers(longer, actions):
        return before, changed.trace(keep_residual=True)


# --- parts


def _scores(subject: PreparedImage, state: int | None, factor: float) -> tuple[int, Tensor] | None:
    """The state that is used, and the mean |h| over its outlier patches of all neurons, [layers, hidden]; None without outliers."""
    model = subject.transformer("A register at test time")
    _check_room(model)
    hidden: dict[int, Tensor] = {}  # [tokens, hidden] by layer

    def keep(layer: int, h: Tensor) -> None:
        hidden[layer] = h[0].detach().float()

    actions = {layer: partial(keep, layer) for layer in range(model.config.depth)}
    with subject.turn(), undisturbed(model), _at_hidden_layers(model, actions):  # the device first
        recorded = replace(subject, turn=nullcontext).trace(keep_residual=True)
    norms = token_norms(recorded, factor=factor)
    if state is not None and not 1 <= state <= recorded.num_layers:
        raise ParameterError(f"State {state} does not exist after a layer: they are 1-{recorded.num_layers}.")
    states = range(1, recorded.num_layers + 1) if state is None else (state,)
    for number in states:
        patches = _outlier_patches(recorded, norms.outliers[number])
        if patches:
            values = torch.stack([hidden[layer] for layer in range(recorded.num_layers)])
            return number, values[:, patches].abs().mean(1)
    return None


def _outlier_patches(trace: Trace, tokens: Sequence[int]) -> list[int]:
    """The patches among some tokens, as indices of tokens."""
    return [token for token in tokens if trace.layout.place(token) is not None]


def _check_room(model: VisionTransformer) -> None:
    if model.config.relative_bias or model.config.shared_bias:
        raise ParameterError(
            "No register can be added to this model: the biases of its scores have entries for a class token and patches alone."
        )


def _with_one_more(model: VisionTransformer, pixels: Tensor) -> VisionTransformer:
    """The same model, sharing all parameters, with one register of zeros more, which has no position."""
    old, size = model.config, (int(pixels.shape[-2]), int(pixels.shape[-1]))
    has_table = old.position not in ("rotary", "none")
    config = replace(
        old,
        reg_tokens=old.reg_tokens + 1,
        img_size=size,  # the table of positions below is made for this image
        position="learned" if has_table else old.position,
        position_grid=None,
    )
    with torch.device("meta"):
        longer = VisionTransformer(config)
    for name, part in model.named_children():
        setattr(longer, name, part)
    for name, parameter in model.named_parameters(recurse=False):
        setattr(longer, name, parameter)
    zeros = model.patch_embed.proj.weight.new_zeros(1, 1, old.embed_dim)
    registers = zeros if model.reg_token is None else torch.cat((model.reg_token, zeros), dim=1)
    longer.reg_token = nn.Parameter(registers.detach())
    if has_table:
        table = model.position_table(model.grid_of(*size)).detach()[None]  # [1, positions, dim]
        first = len(old.positioned_prefix)
        without = zeros.expand(-1, len(config.positioned_prefix) - first, -1)
        longer.pos_embed = nn.Parameter(torch.cat((table[:, :first], without, table[:, first:]), dim=1))
    return longer.eval()


def _moving(model: VisionTransformer, neurons: Sequence[RegisterNeuron], token: int) -> dict[int, Action]:
    """By layer what gives some neurons to one token, and takes them from all patches."""
    first_patch = len(model.config.prefix)

    def move(chosen: list[int], h: Tensor) -> Tensor:
        h = h.clone()  # [1, tokens, hidden]
        highest = h[:, :, chosen].amax(1)
        h[:, first_patch:, chosen] = 0
        h[:, token, chosen] = highest
        return h

    layers = sorted({one.layer for one in neurons})
    return {layer: partial(move, [one.neuron for one in neurons if one.layer == layer]) for layer in layers}


@contextmanager
def _at_hidden_layers(model: VisionTransformer, actions: Mapping[int, Action]) -> Iterator[None]:
    """Calls an action on what enters the second linear layer of some MLPs, in the passes of this thread; what it returns, if
    anything, enters in its place."""
    thread = threading.get_ident()
    readers = [part for name, part in model.blocks.named_modules() if name.endswith(".mlp.fc2")]

    def hook(action: Action, part: nn.Module, args: tuple[Tensor]) -> tuple[Tensor] | None:  # noqa: ARG001
        changed = action(*args) if threading.get_ident() == thread else None
        return None if changed is None else (changed,)

    handles = [
        readers[layer].register_forward_pre_hook(partial(hook, action)) for layer, action in actions.items()
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _added_register(
    job: Job,
    *,
    count: Annotated[int, Option("neurons", "How many neurons are moved to it.", low=1, high=1000)] = 10,
    factor: Annotated[float, FACTOR] = OUTLIER_FACTOR,
) -> AddedRegister:
    watch = job.watch(3)  # passes: one to find neurons, two to compare
    neurons, state = register_neurons([job.image], count=count, factor=factor)
    watch.advance()
    watch.check()
    return add_register_by(job.image, neurons, state=state, factor=factor)


ADDED_REGISTER = asks(
    _added_register,
    label="A register at test time",
    also_called="registers, test-time registers, adding a register",
    shows="norms and attention before and after outlier patches have left their part to a register.",
    hides="what a model would do that was trained with one.",
    formula=r"$h_{\mathrm{register}, c} \leftarrow \max_i h_{i c}$, $h_{\mathrm{patch}, c} \leftarrow 0$",
    source="Jiang et al. 2025, arXiv:2506.08010",
    class_blind=True,
    reads="image",
    place=Place("tokens", {"token_measure": "norms", "token_register": "1"}, {"factor": "token_factor"}),
    cost="pass",
    forwards=3,
)
