"""How a checkpoint keeps its weights in fewer bits: each rounded to the nearest, or all so that outputs change least.

In int8 a matrix is whole numbers -127 to 127, and a scale for every 32 weights of a row. Rounded to the nearest, each
weight errs by up to half a scale, whatever the layer reads. But what a layer reads is correlated: where one weight
errs, the weights after it can make up for it. `fitted` lets them (GPTQ: Frantar et al. 2022, arXiv:2210.17323).

What it is worth, measured on lesson 04's adders as the largest change of a share of right answers in the table of
ablations, in points. Operands up to 260, 528 channels, two seeds: rounded to the nearest 2.75 and 3.0 (400 sums that
were held out), fitted .10 and .20 (1,000). ``addition-filters``, three seeds, all 1,999 sums that were held out: .30 to
.60, and .15 to .25.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

GROUP = 32  # weights of a row that share a scale
DAMPING = 0.003  # of the inputs' mean square, so that directions which no input has can be inverted
STORED = {torch.bfloat16: "bfloat16", torch.int8: "int8 matrices, a bfloat16 scale for every 32 of a row"}
STORED_FITTED = f"{STORED[torch.int8]}, rounded so that outputs of layers change least; bfloat16 tables"


def compact(weights: dict[str, Tensor], dtype: torch.dtype) -> dict[str, Tensor]:
    """Return what a file keeps of these weights. A floating-point ``dtype``: the weights, rounded to it.

    ``torch.int8``: every matrix as whole numbers, and beside it as ``NAME.scale`` a bfloat16 for every 32 of a row,
    their largest size / 127, rounded up; the rest, biases and norms, as float32. No weight of a matrix moves by more
    than half its scale.
    """
    if dtype != torch.int8:
        return {name: tensor.to(dtype) for name, tensor in weights.items()}
    kept = {}
    for name, tensor in weights.items():
        if tensor.ndim != 2:
            kept[name] = tensor.float()
            continue
        rows = tensor.float()
        scale = torch.stack([_scale(group) for group in rows.split(GROUP, 1)], 1)
        kept[name], kept[f"{name}.scale"] = (rows / _over_rows(scale, rows)).round().to(torch.int8), scale
    return kept


def expand(kept: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return the weights that a file keeps: matrices of whole numbers multiplied by their scales, all else as it is."""
    scaled = {name for name, tensor in kept.items() if tensor.dtype == torch.int8 and f"{name}.scale" in kept}
    return {
        name: tensor * _over_rows(kept[f"{name}.scale"], tensor) if name in scaled else tensor
        for name, tensor in kept.items()
        if name.removesuffix(".scale") not in scaled or name in scaled
    }


def fitted(model: nn.Module, calibrate: Callable[[nn.Module], object]) -> dict[str, Tensor]:
    """Return what a file keeps of ``model``, its linear layers in int8 as in `compact`, but rounded by `fit_rows` to
    the inputs that they meet while ``calibrate(model)`` runs it; tables in bfloat16, biases and norms in float32.

    Raises ValueError, naming the layer, for one that ``calibrate`` does not reach.
    """
    layers = {name: layer for name, layer in model.named_modules() if isinstance(layer, nn.Linear)}
    grams: dict[str, Tensor] = {}
    names = {layer: name for name, layer in layers.items()}

    def watch(layer, inputs, _):
        rows = inputs[0].reshape(-1, layer.in_features)
        grams[names[layer]] = grams.get(names[layer], 0) + (rows.mT @ rows).double()

    watching = [layer.register_forward_hook(watch) for layer in layers.values()]
    try:
        with torch.no_grad():
            calibrate(model)
    finally:
        for hook in watching:
            hook.remove()
    kept = {}
    for name, tensor in model.state_dict().items():
        layer = name.removesuffix(".weight")
        if layer not in layers:
            kept[name] = tensor.to(torch.bfloat16) if tensor.ndim > 1 else tensor.float()
        elif layer not in grams:
            raise ValueError(f"calibrate: has not run the layer {layer}; must run every layer that is rounded")
        else:
            kept[name], kept[f"{name}.scale"] = fit_rows(tensor, grams[layer])
    return kept


def fit_rows(
    weights: Float[Tensor, "outputs inputs"], gram: Float[Tensor, "inputs inputs"]
) -> tuple[Int[Tensor, "outputs inputs"], Float[Tensor, "outputs groups"]]:
    """Compute whole numbers Q and scales S for which (W - S Q) x is small in the mean square over inputs x, ``gram``
    their sum of x x^T.

    Columns are rounded one by one, from the first. The rest then move to where they make up best for the error e of
    column j: by -e U[j, later] / U[j, j], with U the upper Cholesky factor of the Gram matrix's inverse. Each group's
    scale is taken when its turn comes, from where its weights have moved to.
    """
    weights, gram = weights.double().clone(), gram.double()
    damping = DAMPING * gram.diagonal().mean() * torch.eye(len(gram), dtype=gram.dtype, device=gram.device)
    U = torch.linalg.cholesky(torch.linalg.inv(gram + damping), upper=True)
    whole, scales = torch.zeros_like(weights, dtype=torch.int8), []
    for columns in torch.arange(len(gram)).split(GROUP):
        scales.append(_scale(weights[:, columns]))
        scale, end = scales[-1].double(), int(columns[-1]) + 1
        errors = torch.zeros_like(weights[:, columns])
        for k, j in enumerate(columns.tolist()):
            nearest = (weights[:, j] / scale).round().clamp(-127, 127)
            whole[:, j], errors[:, k] = nearest.to(torch.int8), (weights[:, j] - nearest * scale) / U[j, j]
            weights[:, j + 1 : end] -= errors[:, k : k + 1] * U[j, j + 1 : end]
        weights[:, end:] -= errors @ U[columns, end:]  # the later groups, all at once
    return whole, torch.stack(scales, 1)


def _scale(group: Float[Tensor, "outputs columns"]) -> Float[Tensor, "outputs"]:
    """Return the largest size of each row / 127, and no smaller in bfloat16, which has 8 bits."""
    return (group.abs().amax(1) / 127 * (1 + 2**-7)).clamp(min=1e-30).to(torch.bfloat16)


def _over_rows(scale: Tensor, rows: Tensor) -> Tensor:
    return scale.float().repeat_interleave(GROUP, 1)[:, : rows.shape[1]]
