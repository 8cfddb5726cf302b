"""Where the heads of a trained model look."""

import torch
from jaxtyping import Float
from torch import Tensor, nn


@torch.no_grad()
def patterns(model: nn.Module, *inputs: Tensor) -> list[Float[Tensor, "batch heads length length"]]:
    """Return the attention patterns of every layer of a model (a decoder, or what is built around one) that reads
    ``inputs``: row t of a head is how much t attends to each s.

    They are the very weights that the model used, from its cache: softmax(Q K^T / sqrt(h)), or Q K^T / length if its
    attention is linear; masked if it is causal. Raises ValueError for a model that has none, such as one with the delta
    rule.
    """
    names = [name for name in model.hook_names if name.endswith("attn.hook_pattern")]
    if not names:
        raise ValueError(
            f"model = {type(model).__name__}: must have attention patterns; has only {', '.join(model.hook_names)}"
        )
    _, cache = model.run_with_cache(*inputs, names=names)
    return [cache[name] for name in names]
