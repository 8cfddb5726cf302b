"""A plain search for a small circuit, the baseline to beat: drop what costs least, as long as the score allows it."""

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from tqdm.auto import tqdm

from companion.core.arguments import at_least
from companion.core.files import atomic_write, read_kept
from companion.pretrained.circuits.parts import Circuit
from companion.pretrained.circuits.runs import Runs
from companion.pretrained.circuits.scoring import FLAT, check_shown

STEPS = 3  # points on the way from the corrupted run to the clean one, at which gradients are taken


def attribution(runs: Runs) -> Float[Tensor, " parts"]:
    """Return by how much each of the parts moves the mean difference: the gradient by its share, as a mean over points
    on the way from all parts resampled to all live. So the sum over parts is about m(clean) - m(corrupted) (integrated
    gradients, as in EAP-IG, Hanna et al. 2024, arXiv:2403.17806; there of wires, and of the embedding's way).
    """
    layers, heads = len(runs.blocks), runs.heads
    total = torch.zeros(layers, heads + runs.has_mlps)
    for step in range(STEPS):
        shares = torch.full((layers, heads + 1), (step + 0.5) / STEPS, requires_grad=True)
        mlps = shares[:, heads] if runs.has_mlps else torch.zeros(layers)
        mean = runs.differences(runs.streams(shares[:, :heads], mlps)).mean()
        total += torch.autograd.grad(mean, shares)[0][:, : total.shape[1]] / STEPS
    return total.flatten()


def find_circuit(
    runs: Runs, *, keep: float = 0.9, budget: int = 400, kept: Path | None = None, label: str = "find"
) -> Circuit:
    """Find a small circuit whose faithfulness, in the ``runs``, lies between ``keep`` and 2 - ``keep``, and which keeps
    at least half of the answer's probability.

    It begins with all parts, in the order of how little they are attributed, and drops half of them at once, or the
    other half, where what is left still keeps enough; then quarters, and so on, down to single parts. So it is greedy:
    what was dropped never comes back, and what two parts can each do alone may be missed.

    ``budget``: how many circuits are tried at most.
    ``kept``: a file in which the search is kept after each trial, so that it goes on there if it was stopped; it is
        removed at the end. ``label``: what the progress bar says.

    Raises ValueError for ``keep`` outside 0 to 1, and for a behaviour that the model does not show.
    """
    at_least(budget=(budget, 1))
    if not 0 < keep < 1:
        raise ValueError(f"keep = {keep!r}: must be between 0 and 1")
    check_shown(runs)
    said = [*runs.prompts.clean, *runs.prompts.corrupted], [f"{each:.2f}" for each in runs.clean.difference.tolist()]
    config = sha256(repr(([each.tolist() for each in said[0]], said[1], keep)).encode()).hexdigest()[:16]
    state: dict[str, Any] | None = kept and read_kept(kept, "a search", lambda state: state["config"] and state["left"])
    if not state or state["config"] != config:
        order = attribution(runs).abs().argsort().tolist()
        state = {"config": config, "left": order, "size": len(order) // 2, "at": 0, "tried": 0}
    parts, least = runs.parts, FLAT * runs.clean.probability.mean()
    bar = tqdm(total=budget, initial=state["tried"], desc=label, delay=2)
    while state["tried"] < budget and state["size"]:
        left, at, size = state["left"], state["at"], state["size"]
        if at >= len(left):
            state |= {"at": 0, "size": size // 2}
            continue
        fewer = left[:at] + left[at + size :]
        reading = runs.run(Circuit(tuple(parts[i] for i in sorted(fewer))))
        enough = abs(1 - runs.share(reading)) <= 1 - keep and reading.probability.mean() >= least
        state |= {"tried": state["tried"] + 1, **({"left": fewer} if enough else {"at": at + size})}
        if kept:
            atomic_write(kept, json.dumps(state))
        bar.set_postfix_str(f"{len(state['left'])} parts", refresh=False)
        bar.update()
    bar.close()
    if kept:
        kept.unlink(missing_ok=True)
    return Circuit(tuple(parts[i] for i in sorted(state["left"])))
