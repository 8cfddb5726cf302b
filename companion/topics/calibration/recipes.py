"""How lesson 13 trains on biographies: epoch by epoch, so that hallucination and calibration can be watched.

All sizes are ours. Nothing is shipped: it learns in seconds, on the corpus that the lesson draws.
"""

from collections.abc import Iterator

import torch
from jaxtyping import Int
from torch import Tensor, nn
from tqdm.auto import tqdm

from companion.core.arguments import at_least
from companion.core.training import seeded
from companion.topics.calibration.model import BiographyModel, BiographyModelConfig


def epoch_by_epoch(
    config: BiographyModelConfig, corpus: Int[Tensor, "n 3"], *, epochs: int, seed: int = 0
) -> Iterator[BiographyModel]:
    """The same model before training and after each pass through the corpus, by Adam on the loss of all three words.

    ``config``: of the model.
    ``corpus``: a biography a row, as often as it was written down.
    ``epochs``: how many passes, each in an order of its own.
    ``seed``: of the first weights and of the orders.

    Raises ValueError for a number of epochs below 1.
    """
    at_least(epochs=(epochs, 1))
    with seeded(seed):
        model = BiographyModel(config)
    # A loop of its own: it passes through a corpus, each time in another order; `train` draws every batch afresh.
    orders = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3, betas=(0.9, 0.99))
    yield model.eval()
    for _ in tqdm(range(epochs), desc="learning biographies", mininterval=0.5):
        for rows in torch.randperm(len(corpus), generator=orders).split(64):
            said = model(corpus[rows, :2])
            loss = -said.gather(-1, corpus[rows][..., None]).sum((1, 2)).mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        yield model
