"""A tiny run of Garg et al.'s form: ``config.yaml`` and ``state.pt``, with ``transformers``' own GPT-2 in it."""

from pathlib import Path
from typing import Any

import torch
import yaml
from torch import Tensor, nn

SIZES = {"n_dims": 2, "n_positions": 12, "n_embd": 32, "n_layer": 3, "n_head": 2}
POINTS = 8  # fewer than there are positions, as in the published run


class Theirs(nn.Module):
    """Garg et al. (2022), section 4: what is read are inputs and labels in turn, predictions stand at the inputs."""

    def __init__(self, seed: int = 0):
        from transformers import GPT2Config, GPT2Model

        super().__init__()
        torch.manual_seed(seed)
        width = SIZES["n_embd"]
        self._read_in = nn.Linear(SIZES["n_dims"], width)
        self._backbone = GPT2Model(
            GPT2Config(
                vocab_size=7,
                n_positions=2 * SIZES["n_positions"],
                n_embd=width,
                n_layer=SIZES["n_layer"],
                n_head=SIZES["n_head"],
                resid_pdrop=0.0,
                embd_pdrop=0.0,
                attn_pdrop=0.0,
                use_cache=False,
            )
        )
        self._read_out = nn.Linear(width, 1)

    def forward(self, xs: Tensor, ys: Tensor) -> Tensor:
        tokens = torch.zeros(len(xs), 2 * xs.shape[1], xs.shape[2])
        tokens[:, 0::2], tokens[:, 1::2, 0] = xs, ys
        hidden = self._backbone(inputs_embeds=self._read_in(tokens)).last_hidden_state
        return self._read_out(hidden)[:, 0::2, 0]


def configuration(**changes: Any) -> dict[str, Any]:
    """What ``config.yaml`` says, with ``changes`` to the model's part."""
    dims, points = ({"start": 1, "end": end, "inc": 1, "interval": 2000} for end in (SIZES["n_dims"], POINTS))
    return {
        "model": {"family": "gpt2", **SIZES, **changes},
        "training": {"task": "linear_regression", "data": "gaussian", "curriculum": {"dims": dims, "points": points}},
        "out_dir": "../models/linear_regression",
    }


def save_tiny_run(folder: Path, model: nn.Module | None = None) -> Path:
    """A folder as their training leaves it: weights, with the optimiser's, and the configuration."""
    folder.mkdir(parents=True)
    model = Theirs() if model is None else model
    optimizer = torch.optim.Adam(model.parameters())
    weights = model.state_dict()
    for layer in range(SIZES["n_layer"]):  # older versions of ``transformers`` saved these, too
        weights[f"_backbone.h.{layer}.attn.bias"] = torch.ones(1, 1, 24, 24, dtype=torch.uint8).tril()
        weights[f"_backbone.h.{layer}.attn.masked_bias"] = torch.tensor(-1e4)
    state = {"model_state_dict": weights, "optimizer_state_dict": optimizer.state_dict(), "train_step": 500_000}
    torch.save(state, folder / "state.pt")
    (folder / "config.yaml").write_text(yaml.dump(configuration()), encoding="utf-8")
    return folder
