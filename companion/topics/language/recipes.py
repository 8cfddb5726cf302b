"""The recipe of lesson 15: a Llama of two layers, in which the wire of an induction head forms.

Nobody published it. It is as small as shows the turn: two heads a layer, 32 tokens, and texts of 32.
"""

import torch.nn.functional as F

from companion.core.llama import Llama, LlamaConfig
from companion.core.recipe import register
from companion.core.training import Schedule
from companion.topics.language.data import said_again


def second_loss(model, tokens, second):
    """Cross-entropy of the next token within the second saying, where it is known.

    ``tokens``, ``second`` (batch, length), as `said_again` gives them; the mean over those places.
    """
    asked = second[:, :-1]
    return F.cross_entropy(model(tokens[:, :-1])[asked], tokens[:, 1:][asked])


def _said(config: LlamaConfig, **task):
    def draw(batch, generator):
        return said_again(batch, config.context, config.vocabulary, generator=generator, **task)

    return draw


def _small(context: int, width: int) -> LlamaConfig:
    return LlamaConfig(
        vocabulary=context, width=width, layers=2, heads=2, key_heads=2, hidden=width, context=context, tied=False
    )


register(
    "language-forming",
    "a Llama of two layers on random tokens that are said twice: when does an induction head form? (lesson 15)",
    model=Llama,
    sampler=_said,
    loss=second_loss,
    smoke=(_small(16, 32), Schedule(steps=30, batch=16, lr=3e-3)),
    course=(_small(32, 64), Schedule(steps=450, batch=32, lr=3e-3)),
    paper=(_small(128, 256), Schedule(steps=4500, batch=64, lr=1e-3)),
)
