"""Facts stored by hand: explicit weights for a `Bank` of one, in the two ways of Nichani, Lee, Bietti (2024),
arXiv:2412.06538: with attention alone, and with an MLP. All of them are sums of outer products of embeddings (the
arrangement is ours).

Both share where heads look. A head keeps a list of ``head_width`` words; from the last word it looks at a word of its
list if there is one, and else at the last word, of which it reads nothing. Where the paper reads with an embedding e,
this reads with its `dual`.
"""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from companion.core.arguments import at_least, positive
from companion.topics.facts.model import Bank, BankConfig, Member

END_SCORE = 0.6  # of a listed word's score: the last word is looked at where no listed word is
GAIN = 20.0  # what an open neuron adds to its answer's logit for each 1 above its threshold


def attention_only(
    table: Int[Tensor, "subjects relations"],
    answers: int,
    *,
    d: int,
    head_width: int,
    noise: int,
    length: int,
    beta: float = 60.0,
) -> Bank:
    """Build a bank in which a listed subject writes all R answers that it has, a relation all its D answers: the one
    that both write wins.

    H d_h = S + R places are enough, and embeddings of d ~ R + D dimensions, up to logarithms, keep apart what is
    written.

    Raises ValueError for a size below 1, beta <= 0, or an answer that its relation does not have.

    ``table``, ``answers``: each subject's answer in each relation, r D to r D + D - 1 in relation r, and D.
    ``d``, ``head_width``: the embeddings' dimension, and how many words a head's list has.
    ``noise``, ``length``: how many noise words there are, and words in a sentence.
    ``beta``: how sharply the heads look.
    """
    bank = _bank(table, answers, Member(d, _heads(table, head_width), head_width, 0, *table.shape), noise, length)
    writes = dual(bank.answers[0])
    by_relation = writes.view(table.shape[1], answers, d).sum(1)
    _attend(bank, table.shape, beta, torch.cat([writes[table].sum(1), by_relation]))
    return bank


def with_mlp(
    table: Int[Tensor, "subjects relations"],
    answers: int,
    *,
    d: int,
    head_width: int,
    each: int,
    noise: int,
    length: int,
    beta: float = 60.0,
) -> Bank:
    """Heads copy subject and relation; a neuron keeps up to ``each`` subjects that have one answer in one relation, and
    writes it.

    It opens for a listed subject together with its relation, f_s . x + f_r . x > 3/2 with f the dual of e; the last
    word serves as the threshold. m = S R / each neurons are enough, with ``each`` ~ d up to logarithms: m d ~ S R.

    Raises ValueError for a size below 1, beta <= 0, or an answer that its relation does not have.

    ``table``, ``answers``, ``d``, ``head_width``, ``noise``, ``length``, ``beta``: as for `attention_only`.
    ``each``: at most how many subjects a neuron keeps.
    """
    at_least(each=(each, 1))
    S, R = table.shape
    lists = [
        (relation, answer, chunk)
        for relation in range(R)
        for answer in range(relation * answers, (relation + 1) * answers)
        for chunk in (table[:, relation] == answer).nonzero()[:, 0].split(each)
        if len(chunk)
    ]
    bank = _bank(table, answers, Member(d, _heads(table, head_width), head_width, len(lists), S, R), noise, length)
    _attend(bank, table.shape, beta, bank.words[0, : S + R])
    reads, writes = dual(bank.words[0]), dual(bank.answers[0])
    for neuron, (relation, answer, chunk) in enumerate(lists):
        bank.up[0, neuron] = reads[chunk].sum(0) + reads[S + relation] - 1.5 * reads[-1]
        bank.down[0, :, neuron] = GAIN * writes[answer]
    return bank


def dual(embeddings: Float[Tensor, "words d"]) -> Float[Tensor, "words d"]:
    """Compute the vectors f_i with f_i . e_i = 1 that have least to do with all other e_j: the columns of the
    pseudo-inverse, scaled.

    For orthonormal embeddings f = e; for at most d independent ones f_i . e_j = 0 exactly, where e_i . e_j would be of
    order 1/sqrt(d) (the optimal linear associative memory, Kohonen and Ruohonen 1973).
    """
    rows = torch.linalg.pinv(embeddings).mT
    return rows / (rows * embeddings).sum(1, keepdim=True)


def _heads(table: Tensor, head_width: int) -> int:
    at_least(head_width=(head_width, 1))
    return sum(math.ceil(size / head_width) for size in table.shape)


def _bank(table: Tensor, answers: int, member: Member, noise: int, length: int) -> Bank:
    """Its random embeddings, of length 1, and zeros for all that is trained."""
    wrong = table // answers != torch.arange(table.shape[1], device=table.device)
    if wrong.any():
        raise ValueError(
            f"table: holds the answer {int(table[wrong][0])} under another relation; relation r must have answers from "
            f"{answers} r to {answers} r + {answers - 1}"
        )
    bank = Bank(BankConfig((member,), answers, noise, length)).requires_grad_(False).to(table.device)
    for parameter in bank.parameters():
        parameter.zero_()
    for embeddings in (bank.words, bank.answers):
        embeddings.copy_(F.normalize(embeddings, dim=-1))
    return bank


def _attend(bank: Bank, sizes: tuple[int, int], beta: float, written: Float[Tensor, "places d"]) -> None:
    """Give every subject and relation its place in a head, and what the head writes for it."""
    positive(beta=beta)
    reads, width, end = dual(bank.words[0]), bank.config.largest("head_width"), bank.words[0, -1]
    places = torch.arange(sum(sizes)).split(list(sizes))  # no head has subjects and relations
    lists = [chunk for part in places for chunk in part.split(width)]
    for head, chunk in enumerate(lists):
        bank.query[0, head, 0] = 1
        bank.key[0, head, 0] = beta * (reads[chunk].sum(0) + END_SCORE * reads[-1])
        bank.value[0, head, : len(chunk)] = reads[chunk] - torch.outer(reads[chunk] @ end, end)
        bank.out[0, head, :, : len(chunk)] = written[chunk].mT
