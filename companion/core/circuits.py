"""Tools that find a circuit in a model, whatever it is, by the names of its hooks: what each part adds to an answer,
and what the answer becomes when a part, or one wire between two parts, carries something else.

    direct attribution    what each head and MLP adds to a logit by itself (the logit lens, cut into parts)
    interchange           a value of one run put into another (activation patching; Vig et al. 2020, arXiv:2004.12265)
    ablation              a part's output replaced by zero, by its mean, or by what it is on another input
    path patching         what one part wrote, taken out of what another part reads, and of nothing else (Wang et al.
                          2022, arXiv:2211.00593)

Interchange, ablation and path patching are hooks, which `Hooked.hooks` takes, several in nested contexts:

>>> _, other = model.run_with_cache(others)
>>> with model.hooks(interchange("blocks.14.hook_resid_pre", other["blocks.14.hook_resid_pre"], place=3)):
...     patched = model(tokens)
>>> with model.hooks(wire(Part(16, 0), Part(18, 6), "keys")):              # head 18.6, with keys that do not see 16.0
...     _, cache = model.run_with_cache(tokens, names="blocks.18.attn.hook_pattern")
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import torch
from jaxtyping import Float
from torch import Tensor, nn

from companion.core.hooks import Cache, Hook, Hooked

Side = Literal["queries", "keys", "values"]
AblationKind = Literal["zero", "mean", "resample"]
Place = int | Sequence[int] | slice | None
Norm = nn.LayerNorm | nn.RMSNorm | nn.Identity


@dataclass(frozen=True)
class Part:
    """What adds to the stream: a head, ``Part(16, 0)``; an MLP, ``Part(16)``; the embedding, ``Part(-1)``."""

    layer: int
    head: int | None = None

    def __post_init__(self):
        if self.layer < -1 or (self.layer == -1 and self.head is not None):
            raise ValueError(f"layer = {self.layer}: must be at least 0, or -1 for the embedding, which has no heads")
        if self.head is not None and self.head < 0:
            raise ValueError(f"head = {self.head}: must be at least 0, or None for the MLP")

    @property
    def written(self) -> str:
        """Return the name, in the cache, of what it adds to the stream."""
        if self.layer == -1:
            return "hook_embed"
        return f"blocks.{self.layer}.{'hook_mlp_out' if self.head is None else 'attn.hook_result'}"

    def of(self, value: Tensor) -> Float[Tensor, "batch length width"]:
        """Return its own share of the value of the name ``written``. Raises ValueError for a head that is not there."""
        _check_head(self.head, value, self.written)
        return value if self.head is None else value[:, self.head]


class Attribution(NamedTuple):
    """What each part adds to an answer directly; the answer is the sum of all. ``rest`` is what no input changes:
    biases of the last norm and of the maps out of the heads.
    """

    embedding: Float[Tensor, "batch"]
    heads: Float[Tensor, "batch layers heads"]
    mlps: Float[Tensor, "batch layers"]
    rest: Float[Tensor, "batch"]


def known_norm(norm: nn.Module) -> Norm:
    """Return the norm, if it is one whose weight and scale are known. Raises ValueError for another."""
    if not isinstance(norm, Norm):
        raise ValueError(f"norm = {type(norm).__name__}: must be a LayerNorm, an RMSNorm or an Identity")
    return norm


def unscaled(norm: Norm, written: Float[Tensor, "*any width"]) -> Float[Tensor, "*any width"]:
    """Return what a norm makes of one share of the stream, but for its scale, which depends on the whole stream: the
    mean taken out (by a LayerNorm), times the norm's weight.
    """
    if isinstance(norm, nn.Identity):
        return written
    centred = written - written.mean(-1, keepdim=True) if isinstance(norm, nn.LayerNorm) else written
    return centred * norm.weight


def direct_attribution(
    model: Hooked, *inputs: Tensor, direction: Float[Tensor, "*batch width"], place: int = -1
) -> Attribution:
    """Cut an answer, <direction, normed last stream>, into what each part adds to it, with the last norm's scale held.

    ``model``: one with the names of a decoder's embedding, heads' results and MLPs.
    ``inputs``: what it reads.
    ``direction``: what reads the answer, one for all or one for each input: the row of the unembedding of a token gives
        its logit, the difference of two rows that of two logits.
    ``place``: where the answer is read.

    Raises ValueError for a model without these names, and for one whose last norm is no `known_norm`.
    """
    kept = {}

    def keep(value: Tensor, name: str) -> None:
        kept[name] = value[..., place, :]  # of (batch, length, width) and of (batch, head, length, width)

    names = [name.removesuffix(".attn.hook_z") for name in model.hook_names if name.endswith(".attn.hook_z")]
    if not names:
        raise ValueError(
            f"model = {type(model).__name__}: must have attention heads, whose hooks are named blocks.N.attn.hook_z"
        )
    last = f"{names[-1]}.hook_resid_post"
    with_mlps = f"{names[0]}.hook_mlp_out" in model.hook_names
    wanted = ["hook_embed", *(f"{name}.attn.hook_result" for name in names), last, "ln_final.hook_normalized"]
    wanted += [f"{name}.hook_mlp_out" for name in names] if with_mlps else []
    with model.hooks(dict.fromkeys(wanted, keep)):
        model(*inputs)
    norm = known_norm(model.body.get_submodule("norm"))

    def read(written: Tensor) -> Tensor:
        """Return the component along the direction: (batch, ..., width) to (batch, ...)."""
        along = direction if direction.ndim == 1 else direction.view(len(written), *[1] * (written.ndim - 2), -1)
        return (unscaled(norm, written) * along).sum(-1)

    answer = (kept["ln_final.hook_normalized"] * direction).sum(-1)
    scale = _scale(norm, kept[last])
    embedding = read(kept["hook_embed"]) * scale
    heads = read(torch.stack([kept[f"{name}.attn.hook_result"] for name in names], 1)) * scale[:, None, None]
    mlps = torch.zeros_like(heads[..., 0])
    if with_mlps:
        mlps = read(torch.stack([kept[f"{name}.hook_mlp_out"] for name in names], 1)) * scale[:, None]
    return Attribution(embedding, heads, mlps, answer - embedding - heads.sum((1, 2)) - mlps.sum(1))


def _scale(norm: Norm, stream: Float[Tensor, "batch width"]) -> Float[Tensor, "batch"]:
    """Return the factor by which the norm multiplies this stream."""
    if isinstance(norm, nn.Identity):
        return torch.ones_like(stream[:, 0])
    centred = stream - stream.mean(-1, keepdim=True) if isinstance(norm, nn.LayerNorm) else stream
    eps = torch.finfo(stream.dtype).eps if norm.eps is None else norm.eps
    return (centred.square().mean(-1) + eps).rsqrt()


def interchange(name: str, other: Tensor, *, head: int | None = None, place: Place = None) -> dict[str, Hook]:
    """Return the hook that puts a value of another run, ``other``, in the place of this run's.

    ``name``: of a value (batch, length, width), or by heads (batch, head, length, ..).
    ``other``: what the other run has there, of the same shape or with one text for all.
    ``head``: the head, of a value by heads; None for all.
    ``place``: a position, several, or a slice; None for all.

    Raises ValueError, when it is called, for a value that has no such head or place.
    """
    return {name: _replacing(other.expand_as, head, place)}


def ablation(
    name: str, kind: AblationKind, *, head: int | None = None, place: Place = None, other: Tensor | None = None
) -> dict[str, Hook]:
    """Return the hook that replaces what a part gives: by "zero"; by its "mean" over all texts and positions; by what
    it gives at the same position of another text ("resample").

    ``name``: of the value: ``blocks.N.attn.hook_z`` for a head, ``blocks.N.hook_mlp_out`` for an MLP.
    ``kind``: "zero", "mean" or "resample".
    ``head``: the head, of a value by heads; None for all.
    ``place``: a position, several, or a slice; None for all.
    ``other``: the value in another run, whose mean or whose texts are taken; None for this run's own, where "resample"
        gives each text its neighbour's value in the batch, and the last one the first's.

    Raises ValueError for another kind, for a batch of one that is resampled from itself, and as `interchange` does.
    """
    if kind not in get_args(AblationKind):
        raise ValueError(f"kind = {kind!r}: must be one of {', '.join(get_args(AblationKind))}")

    def instead(value: Tensor) -> Tensor:
        source = value if other is None else other
        if kind == "zero":
            return torch.zeros_like(value)
        if kind == "mean":
            return source.mean((0, -2), keepdim=True).expand_as(value)
        if other is None and len(value) == 1:
            raise ValueError("kind = 'resample': must have `other`, another run's value, or a batch of several texts")
        return source.expand_as(value) if other is not None else value.roll(-1, 0)

    return {name: _replacing(instead, head, place)}


def _replacing(instead: Callable[[Tensor], Tensor], head: int | None, place: Place) -> Hook:
    """Make a hook that replaces one head and some positions of a value."""

    def hook(value: Tensor, name: str) -> Tensor:
        _check_head(head, value, name)
        at: list[int | slice | list[int]] = [slice(None)] * value.ndim
        at[1] = at[1] if head is None else head
        at[-2] = at[-2] if place is None else (place if isinstance(place, int | slice) else list(place))
        changed = value.clone()
        try:
            changed[tuple(at)] = instead(value)[tuple(at)]
        except IndexError:
            most = value.shape[-2] - 1
            raise ValueError(
                f"place = {place}: must be 0 to {most} in {name}, or -1 to {-most - 1}, counted from the end"
            ) from None
        return changed

    return hook


def _check_head(head: int | None, value: Tensor, name: str) -> None:
    by_heads = value.ndim == 4
    if head is not None and not (by_heads and 0 <= head < value.shape[1]):
        allowed = f"0 to {value.shape[1] - 1}" if by_heads else "None, as it is not split into heads"
        raise ValueError(f"head = {head}: {name} has shape {tuple(value.shape)}; must be {allowed}")


def wire(
    writer: Part, reader: Part, side: Side, *, other: Float[Tensor, "batch length width"] | None = None
) -> dict[str, Hook]:
    """Return the hooks that cut one wire: the ``reader``'s queries, keys or values read the stream without what the
    ``writer`` added to it; every other part, and the reader's other two sides, read it whole.

    ``writer``: any part of an earlier layer.
    ``reader``: a head.
    ``side``: "queries", "keys" or "values".
    ``other``: what the writer adds in another run, which the reader then reads in its place; None for nothing.

    Raises ValueError for a reader that is no head, for a writer that does not come before it, for another side, and,
    when they are called, for heads that are not there.
    """
    if side not in get_args(Side):
        raise ValueError(f"side = {side!r}: must be one of {', '.join(get_args(Side))}")
    head = _its_head(reader)
    if writer.layer >= reader.layer:
        raise ValueError(f"writer = {writer}: must be in a layer before the reader's, {reader.layer}")
    kept = {}

    def keep(value: Tensor, _: str) -> None:
        kept["written"] = writer.of(value)

    def change() -> Tensor:
        return (0 if other is None else other) - kept["written"]

    return {writer.written: keep, _input(reader, side): _adding(change, head)}


def _its_head(reader: Part) -> int:
    """Return the number of a reader's head. Raises ValueError for a reader that is none."""
    if reader.head is None:
        raise ValueError(f"reader = {reader}: must be a head, not an MLP or the embedding")
    return reader.head


def _input(reader: Part, side: Side) -> str:
    return f"blocks.{reader.layer}.hook_{side[0]}_input"


def _adding(change: Callable[[], Tensor], head: int) -> Hook:
    """Make a hook that adds something to what one head reads."""

    def hook(value: Tensor, name: str) -> Tensor:
        _check_head(head, value, name)
        changed = value.clone()
        changed[:, head] += change()
        return changed

    return hook


@torch.no_grad()
def wires(
    model: Hooked,
    *inputs: Tensor,
    reader: Part,
    side: Side,
    measure: Callable[[Float[Tensor, "batch length length"]], Float[Tensor, ""]],
    others: Sequence[Tensor] = (),
) -> Float[Tensor, "layers heads"]:
    """Cut, one at a time, the `wire` from each earlier head to a reader, and measure the reader's attention pattern.

    Only the reader's own block is run again for each.

    ``model``, ``inputs``: what reads, and what is read.
    ``reader``: the head whose pattern it is.
    ``side``: "queries" or "keys".
    ``measure``: of the reader's pattern, a number.
    ``others``: the inputs of another run, of which the reader then reads what the head adds there; none for nothing.

    Raises ValueError for values, on which no pattern depends, for a reader in layer 0, and as `wire` does.
    """
    if side == "values":
        raise ValueError("side = 'values': must be queries or keys, as a pattern does not depend on the values")
    if reader.layer < 1:
        raise ValueError(f"reader = {reader}: must be in layer 1 or a later one, as no head comes before layer 0")
    wire(Part(0, 0), reader, side)  # refuses what else is wrong
    pattern, stream = (f"blocks.{reader.layer}.{name}" for name in ("attn.hook_pattern", "hook_resid_pre"))
    results = [Part(layer, 0).written for layer in range(reader.layer)]
    _, cache = model.run_with_cache(*inputs, names=[*results, stream])
    instead = model.run_with_cache(*others, names=results)[1] if others else {}
    block, head = model.body.get_submodule(f"blocks.{reader.layer}"), _its_head(reader)
    seen, measured = Cache(), []
    for name in results:
        for change in (instead.get(name, 0) - cache[name]).unbind(1):
            cut = _adding(lambda change=change: change, head)
            with model.hooks({_input(reader, side): cut, pattern: seen.keep}):
                block(cache[stream])
            measured.append(measure(seen[pattern][:, head]))
    return torch.stack(measured).view(reader.layer, -1)
