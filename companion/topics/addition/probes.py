"""Each module's share of an adder's logits, filters in its modules, and probes of its embeddings."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from companion.core.arguments import as_generator, at_least


class Accuracy(NamedTuple):
    """Shares of answers right, within 2, within 10; and of the wrong ones, within 2, off by a multiple of 10."""

    exact: float
    within_2: float
    within_10: float
    errors_within_2: float
    errors_multiple_of_10: float


def accuracies(logits: Float[Tensor, "problems answers"], answers: Int[Tensor, "problems"]) -> Accuracy:
    """Measure how the largest logits compare with the answers: shares over problems. Without any error the last two are
    NaN.
    """
    off = (logits.argmax(-1) - answers).abs()
    wrong = off[off > 0].double()
    return Accuracy(
        *(float((off <= most).double().mean()) for most in (0, 2, 10)),
        float((wrong <= 2).double().mean()),
        float((wrong % 10 == 0).double().mean()),
    )


@torch.no_grad()
def read_out(adder: nn.Module) -> Float[Tensor, "answers width"]:
    """Return the linear map from stream to logits, up to the last norm's scale and bias: centring, weights,
    embeddings.
    """
    read = adder.numbers * adder.decoder.norm.weight
    return read - read.mean(1, keepdim=True)


@torch.no_grad()
def contributions(adder: nn.Module, operands: Int[Tensor, "problems two"]) -> Float[Tensor, "modules problems answers"]:
    """Compute what the embedding, then each attention and each MLP in order, adds to the logits at the last token: they
    sum to the adder's logits.

    The final layer norm is linear once its scale is known; it is taken from the full stream, so that the parts are
    those of one sum.
    """
    blocks = range(adder.config.layers)
    added = [f"blocks.{block}.{name}" for block in blocks for name in ("hook_attn_out", "hook_mlp_out")]
    end = f"blocks.{blocks[-1]}.hook_resid_post"
    _, cache = adder.run_with_cache(operands, names=["hook_embed", *added, end])
    parts = [cache[name][:, -1] for name in ("hook_embed", *added)]  # each (problems, width)
    norm, last = adder.decoder.norm, cache[end][:, -1]
    scale = (last.var(-1, unbiased=False, keepdim=True) + norm.eps).sqrt()
    shares = torch.stack(parts) / scale @ read_out(adder).mT
    shares[0] += norm.bias @ adder.numbers.mT  # the norm's bias belongs to nobody; it goes with the embedding
    return shares


@contextmanager
def filtered(adder: nn.Module, *, attention: Tensor | None = None, mlp: Tensor | None = None) -> Iterator[nn.Module]:
    """Within this context every attention's and every MLP's output goes through a projection (width, width) before it
    joins the stream.
    """
    hooks = {
        f"blocks.{block}.{name}": lambda output, _, projection=projection: output @ projection
        for block in range(adder.config.layers)
        for name, projection in (("hook_attn_out", attention), ("hook_mlp_out", mlp))
        if projection is not None
    }
    with adder.hooks(hooks):
        yield adder


def modular_probe(
    embeddings: Float[Tensor, "numbers width"],
    modulus: int,
    *,
    folds: int = 5,
    ridge: float = 1e-3,
    generator: torch.Generator | int = 0,
) -> float:
    """Measure how often a linear map of a number's embedding names the number mod ``modulus``, on numbers that it was
    not fitted on.

    Ridge regression onto one-hot residues, centred, cross-validated over ``folds``. Chance is 1 / modulus. Raises
    ValueError for modulus < 2 or folds < 2.

    ``embeddings``: of the numbers 0, 1, .., in this order.
    ``modulus``: of the residue that is asked for.
    ``folds``: parts of the numbers, each held out once.
    ``ridge``: the penalty on squared weights, for each number fitted on.
    ``generator``: a seed, or a generator, for the folds.
    """
    at_least(modulus=(modulus, 2), folds=(folds, 2))
    generator = as_generator(generator)
    n = len(embeddings)
    x = embeddings.double()
    x = torch.nn.functional.pad((x - x.mean(0)) / x.std(), (0, 1), value=1.0)
    residues = torch.arange(n, device=x.device) % modulus
    targets = torch.nn.functional.one_hot(residues, modulus).double()
    right = torch.zeros(n, dtype=torch.bool, device=x.device)
    for held in torch.randperm(n, generator=generator, device=generator.device).to(x.device).tensor_split(folds):
        fit = torch.ones(n, dtype=torch.bool, device=x.device)
        fit[held] = False
        gram = x[fit].mT @ x[fit] + ridge * int(fit.sum()) * torch.eye(x.shape[1]).to(x)
        right[held] = (x[held] @ torch.linalg.solve(gram, x[fit].mT @ targets[fit])).argmax(1) == residues[held]
    return float(right.double().mean())
