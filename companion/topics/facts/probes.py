"""What a model of facts knows: which facts it answers right, and of which it knows the relation alone."""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from companion.core.arguments import at_least


class Knowledge(NamedTuple):
    """Shares of facts: the answer is right; it is one of the relation's."""

    answer: Float[Tensor, "*members"]
    relation: Float[Tensor, "*members"]


def knowledge(
    logits: Float[Tensor, "*members batch answers"], answer: Int[Tensor, "*members batch"], each: int
) -> Knowledge:
    """Measure the share of answers that are right, and the share of those right about the relation, whose ``each``
    answers stand together.

    Raises ValueError for each < 1.
    """
    at_least(each=(each, 1))
    guess = logits.argmax(-1)
    return Knowledge((guess == answer).float().mean(-1), (guess // each == answer // each).float().mean(-1))


@torch.no_grad()
def recall_accuracy(bank: nn.Module, sentences: tuple[Tensor, Tensor, Tensor, Tensor]) -> Float[Tensor, "members"]:
    """Measure which share of the ``sentences`` each member of a `Bank` answers right, of those about its own world.

    ``sentences`` are tokens (batch, length), subject, relation and answer (batch,), as the sampler gives them. The
    recall of Nichani, Lee, Bietti (2024), arXiv:2412.06538: argmax of the last word's logits over all answers.
    """
    tokens, subject, relation, answer = sentences
    members = bank.config.members
    pieces = zip(tokens.split(512), answer.split(512), strict=True)  # many members at once would fill the memory
    right = torch.cat([bank(piece.expand(len(members), -1, -1)).argmax(-1) == due for piece, due in pieces], dim=1)
    own = torch.stack([(subject < member.subjects) & (relation < member.relations) for member in members])
    return (right & own).sum(1) / own.sum(1)


def conserved(w: Float[Tensor, "words"], W: Float[Tensor, "answers words"]) -> Float[Tensor, "words"]:
    """sum_a W(a, z)^2 - w(z)^2 for every word z: gradient flow on logits sum_t w(z_t) W(a, z_t)
    does not change it.

    Both gradients carry the other factor: w dL/dw = sum_a W dL/dW, word by word (Nichani, Lee, Bietti 2024, section 5).
    """
    return W.square().sum(0) - w.square()
