"""The exercises of lesson 06, induction heads: what the lesson imports as ``exercises``."""

import itertools

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from companion.lesson.bars import reaches
from companion.lesson.exercise import draw_normal, draw_size, exercise
from companion.lesson.summit import Stage, summit
from companion.topics.bigrams.data import recurrences


def _draw_patterns(generator: Generator) -> dict:
    batch, heads, T = draw_size(generator, 3, 4), 2, draw_size(generator, 9, 12)
    scores = 2 * draw_normal(generator, batch, heads, T, T)
    future = torch.ones(T, T, dtype=torch.bool).triu(1)
    tokens = torch.randint(3, (batch, T), generator=generator)
    where = torch.rand(batch, T, generator=generator) < 0.5
    where[:, 3] = True
    return {"pattern": scores.masked_fill(future, -torch.inf).softmax(-1), "tokens": tokens, "where": where}


@exercise(draw=_draw_patterns, now="you can now score the heads of any model")
def induction_score(pattern: Tensor, tokens: Tensor, where: Tensor) -> Tensor:
    same = tokens[:, :, None] == tokens[:, None, :]
    after_same = torch.zeros_like(same)
    after_same[:, :, 1:] = same[:, :, :-1]
    share = (pattern * after_same[:, None]).sum(-1)
    return share.transpose(0, 1)[:, where].mean(-1)


def _draw_positions(generator: Generator) -> dict:
    P = 0.3 + draw_normal(generator, draw_size(generator, 6, 9), draw_size(generator, 3, 5))
    return {"P": P, "beta": 0.5 + draw_size(generator, 1, 4)}


@exercise(draw=_draw_positions, now="every position now finds the one before it")
def position_memory(P: Tensor, beta: float) -> Tensor:
    lengths = P.square().sum(1, keepdim=True)
    units = P / lengths
    queries, keys = units[1:], units[:-1]
    return beta * P.shape[1] ** 0.5 * queries.mT @ keys


def _draw_outputs(generator: Generator) -> dict:
    N, d = draw_size(generator, 5, 8), draw_size(generator, 3, 4)
    E, U = 0.3 + draw_normal(generator, N, d), 0.3 + draw_normal(generator, N, d)
    return {"E": E, "U": U, "S": draw_normal(generator, d, d)}


@exercise(draw=_draw_outputs, now="what is found is now output")
def output_memory(E: Tensor, U: Tensor, S: Tensor) -> Tensor:
    values = E @ S.mT
    return U.mT @ values


def _draw_keys(generator: Generator) -> dict:
    N, d = draw_size(generator, 5, 8), draw_size(generator, 3, 4)
    triggers = torch.randperm(N, generator=generator)[: draw_size(generator, 2, 3)]
    return {"E": draw_normal(generator, N, d), "R": draw_normal(generator, d, d), "triggers": triggers}


@exercise(draw=_draw_keys, now="a token now finds the place after its own earlier occurrence")
def key_memory(E: Tensor, R: Tensor, triggers: Tensor) -> Tensor:
    queries = E[triggers]
    keys = queries @ R.mT
    return queries.mT @ keys


def _draw_memory(generator: Generator) -> dict:
    d, M = draw_size(generator, 5, 7), draw_size(generator, 18, 24)
    u, v = 0.5 + draw_normal(generator, M, d), draw_normal(generator, M, d)
    u[0] *= 3  # the largest score of all is one of input 0's, and so names a candidate
    W = 0.03 * (v.mT @ u + 3 * draw_normal(generator, d, d))  # scores so small that no softmax of them is near 1
    return {"W": W, "u": u, "v": v}


@exercise(draw=_draw_memory, now="you can now ask any matrix what it has memorised")
def recalled(W: Tensor, u: Tensor, v: Tensor) -> Tensor:
    scores = u @ W.mT @ v.mT
    best = scores.argmax(dim=1)
    return best == torch.arange(len(u), device=u.device)


def _draw_adam(generator: Generator) -> dict:
    shape = draw_size(generator, 3, 4), draw_size(generator, 5, 6)
    sizes = torch.where(torch.arange(shape[1]) % 2 == 0, 1.0, 0.03).double()  # some are small beside the 1e-8
    gradient = torch.where(sizes < 1, draw_normal(generator, *shape).abs(), draw_normal(generator, *shape)) * sizes
    past = draw_normal(generator, *shape)
    step = draw_size(generator, 2, 6)
    return {
        "gradient": gradient,
        "m": 0.4 * past * sizes,
        "v": (0.05 * past.square() + 0.02) * sizes.square(),
        "step": step,
        "lr": 0.5 + 0.1 * draw_size(generator, 1, 4),
    }


@exercise(draw=_draw_adam, now="it now trains the models below")
def adam_step(gradient: Tensor, m: Tensor, v: Tensor, step: int, lr: float) -> Tensor:
    m = 0.9 * m + (1 - 0.9) * gradient
    v = 0.99 * v + (1 - 0.99) * gradient**2
    m_hat = m / (1 - 0.9**step)
    v_hat = v / (1 - 0.99**step)
    change = -lr * m_hat / (v_hat.sqrt() + 1e-8)
    return torch.stack([change, m, v])


def _draw_matrix(generator: Generator) -> dict:
    m, d = draw_size(generator, 7, 9), draw_size(generator, 10, 12)
    shape = (m, d) if torch.rand((), generator=generator) < 0.5 else (d, m)
    keep = draw_size(generator, 2, m - 3)
    rest = 0.3 + 0.6 * torch.rand((), generator=generator).item()  # is cut: not rounded, and not always rounded up
    falling = 0.7 ** torch.arange(shape[1], dtype=torch.float64)  # a share of the values' sum is none of their number
    return {"W": draw_normal(generator, *shape) * falling, "share": (keep + rest) / m}


@exercise(draw=_draw_matrix, tolerance=1e-8, now="you can now cut a matrix down and see what the model forgets")
def low_rank(W: Tensor, share: float) -> Tensor:
    U, S, V = torch.linalg.svd(W, full_matrices=False)
    k = int(share * len(S))
    kept = U[:, :k] * S[:k]
    return kept @ V[:k]


def _draw_recurrences(generator: Generator) -> dict:
    """Sequences in a secret code, which only a gradient can know, so that no circuit that is written down beforehand
    answers them: the last token is another one than the q that it asks for, the target another one than y; and three
    places hold random tokens, which the pair q, y steps over.
    """
    N, T, between = 100, 16, 3
    asks, said = (torch.randperm(N, generator=generator) for _ in range(2))
    skipped = 7 + 2 * torch.randperm((T - 8) // 2, generator=generator)[:between]  # the first places hardly learn it
    kept = torch.tensor([t for t in range(T) if t not in skipped])

    def coded(batch: int) -> tuple[Tensor, Tensor]:
        text, y = recurrences(batch, T - between, N, generator=generator)
        tokens = torch.randint(N, (batch, T), generator=generator)
        tokens[:, kept] = text
        tokens[:, -1] = asks[text[:, -1]]
        return tokens, said[y]

    drawn = [coded(4096) for _ in range(3)]
    tokens, targets = coded(2048)
    before = torch.full((T - 1,), -1).scatter(0, kept[1:-1], kept[:-2])  # -1: no y stands there
    return {
        "tokens": torch.stack([tokens for tokens, _ in drawn]),
        "targets": torch.stack([targets for _, targets in drawn]),
        "N": N,
        "_tokens": tokens,
        "_targets": targets,
        "_keys": {"W_O2": said.argsort(), "W_K2": asks.argsort(), "W_K1": before},
    }


def _fewer(inputs: dict) -> dict:
    """A quarter of each batch: the same three steps beside the course's, in less time."""
    return inputs | {name: inputs[name][:, :1024] for name in ("tokens", "targets")}


STORED = {
    "W_O2": "tokens that are output where attention finds them",
    "W_K2": "code words for q, each of which must have its largest score at its q",
    "W_K1": "places where y can stand, from each of which q is one place back, or two",
}


def _stored(name: str, W: Tensor, keys: dict[str, Tensor]) -> float:
    """The fraction of a memory's associations, row by row, in which the right key has the largest score; W_K1 is asked
    at the positions where the target can be.
    """
    due = keys[name].to(W.device)
    rows = W[: len(due), : len(due)]
    return (rows.argmax(1) == due)[due >= 0].double().mean().item()


def _sizes(answer: Tensor) -> str:
    """The largest entries of the three matrices, in words."""
    return ", ".join(f"{size:.2g}" for size in answer.abs().amax((1, 2)).tolist())


def _exchanged(answer: Tensor, keys: dict[str, Tensor]) -> str | None:
    """Say so if the three memories are there, in another order than is asked for."""
    for order in list(itertools.permutations(STORED))[1:]:
        if all(_stored(name, answer[at], keys) >= 0.9 for at, name in enumerate(order)):
            return f"the answer holds {', '.join(order)} in this order; {', '.join(STORED)} is asked for"
    return None


def _stage(place: int, name: str) -> Stage:
    """The stage at which one of the three memories must be there."""

    def stage(inputs: dict, answer: Tensor) -> str | None:
        W, keys = answer[place], inputs["_keys"]
        if not W.any():
            return f"{name}, entry {place} of the answer, is all zero"
        found = _stored(name, W, keys)
        if reaches(f"share of {name} that is stored", found, 0.9):
            return None
        if told := _exchanged(answer, keys):
            return told
        told = f"{name} stores {found:.0%} of the {STORED[name]}; 90 % are asked for"
        for other, said in ((-W, "with the other sign"), (W.mT, "transposed")):
            if (meant := _stored(name, other, keys)) >= 0.9:
                return f"{told}; {said} it stores {meant:.0%}"
        if name == "W_K2" and found < 0.1:  # rounding, divided by its largest entry
            told += (
                ". Where layer 1 sees the future, all h are equal, and W_K2 has no gradient: masked scores must be -inf"
            )
        return f"{told}. The largest entries of the three matrices are {_sizes(answer)}"

    return stage


def _future_is_hidden(inputs: dict, answer: Tensor) -> str | None:
    """The stage at which nothing may have been learned of positions that come later: a masked score has no gradient."""
    T = inputs["tokens"].shape[2]
    if learned := int(answer[2, :T, :T].triu(1).count_nonzero()):
        return _exchanged(answer, inputs["_keys"]) or (
            "the mask of layer 1 is missing or wrong, or W does not begin as zeros: W_K1 holds "
            f"{learned} scores of positions that come later; what a mask hides gets no gradient"
        )
    return None


def _circuit(W: Tensor, tokens: Tensor) -> Tensor:
    """The logits of the theorem's model, of which W (3, N, N) holds W_O2, W_K2 and W_K1."""
    W_O2, W_K2, W_K1 = W
    T = tokens.shape[1]
    future = torch.ones(T, T, device=tokens.device).triu(1).bool()
    x = F.one_hot(tokens, len(W_O2)).float()
    h = W_K1[:T, :T].masked_fill(future, -torch.inf).softmax(-1) @ x
    return ((x[:, -1:] @ W_K2 @ h.mT).softmax(-1) @ x)[:, 0] @ W_O2.mT


def _answers_rightly(inputs: dict, answer: Tensor) -> str | None:
    """The stage at which the circuit must answer on sequences that it has not seen."""
    logits = _circuit(answer.float(), inputs["_tokens"])
    right = (logits.argmax(1) == inputs["_targets"]).double().mean().item()
    if reaches("share of new sequences that are answered rightly", right, 0.8):
        return None
    return (
        f"all three memories are stored, but {right:.0%} of new sequences are answered rightly; 80 % are asked for. "
        f"The largest entries of the three matrices are {_sizes(answer)}; with 20 a softmax is sharp, "
        "and no later step is spoiled"
    )


def _is_one_step(inputs: dict, answer: Tensor) -> str | None:
    """The stage at which W_O2 must be one step from zero along minus the gradient, of any length. A step on another
    batch, or on a quarter of the first, has a cosine of 0.7 with it; many steps of Adam on all three have 0.4 at most.
    """
    x = F.one_hot(inputs["tokens"][0], inputs["N"]).float().mean(1)
    y = F.one_hot(inputs["targets"][0], inputs["N"]).float()
    step = (y - y.mean(1, keepdim=True)).mT @ x  # uniform attention hands over the mean of the tokens
    cosine = F.cosine_similarity(answer[0].float().flatten(), step.flatten(), dim=0).item()
    if reaches("cosine of W_O2 with one gradient step", cosine, 0.6):
        return None
    return (
        "W_O2 is not what one gradient step from zero gives: its cosine with minus the gradient of the first batch is "
        f"{cosine:.2f}; at least 0.6 is asked for. Each matrix takes one step from zero"
    )


def _cosine_with_step(inputs: dict, answer: Tensor, place: int, batch: int) -> float:
    """The cosine of one of the three matrices with its first step on a batch, when those before it are the answer's."""
    before = answer.detach().float().clone()
    before[place:] = 0
    before.requires_grad_()
    with torch.enable_grad():
        loss = F.cross_entropy(_circuit(before, inputs["tokens"][batch]), inputs["targets"][batch])
        step = -torch.autograd.grad(loss, before)[0][place]
    step = step / step.abs().max().clamp_min(1e-30)  # it is faint
    return F.cosine_similarity(answer[place].float().flatten(), step.flatten(), dim=0).item()


def _last_is_one_step(inputs: dict, answer: Tensor) -> str | None:
    """The stage at which W_K1 must be one step from zero, too, after the answer's own W_O2 and W_K2: its cosine is
    0.96 or more, that of counted pairs of places 0.34 at most. A counted W_K2 is as near as a step on a small batch.
    """
    cosine = _cosine_with_step(inputs, answer, place=2, batch=0)
    if reaches("cosine of W_K1 with one gradient step", cosine, 0.6):
        return None
    return (
        "W_K1 is not what one gradient step from zero gives, after your W_O2 and W_K2: its cosine with minus the "
        f"gradient of the first batch is {cosine:.2f}; at least 0.6 is asked for"
    )


def _advice(inputs: dict, answer: Tensor) -> str:
    """Advise whose W_O2 is so large that the lesson's own sequences, in which q stands twice, are answered worse: 93 %
    of them at 30, 86 % at 40, 74 to 78 % at 50, for 96 % at 20; and who takes other steps than one on each batch.
    """
    size = answer[0].abs().max().item()
    if size > 30.5:
        return (
            f"the largest entry of W_O2 is {size:.2g}; after a first step much longer than 20 the model gives much "
            "probability to q in the next cell's texts, where q stands twice, and the second step is spoiled"
        )
    batches = range(len(inputs["tokens"]))
    first, second = ([_cosine_with_step(inputs, answer, place, batch) for batch in batches] for place in (0, 1))
    if max(first) < 0.99:  # several steps, or another batch
        return (
            f"the cosine of W_O2 with one step on the first batch is {first[0]:.2f}, not 1; each matrix takes a single "
            "step, on the whole batch that is given for it"
        )
    if any(min(pair) > 0.99 for pair in zip(first, second, strict=True)):
        return "W_O2 and W_K2 are stepped on the same batch; each step has a batch of its own, which is fresh"
    return ""


@summit(
    draw=_draw_recurrences,
    shape=lambda inputs: (3, inputs["N"], inputs["N"]),
    first_steps=_fewer,
    retaught=lambda inputs: _fewer(inputs) | {"targets": _fewer(inputs)["targets"].flip(-1)},
    stages=(
        _stage(0, "W_O2"),
        _future_is_hidden,
        _stage(1, "W_K2"),
        _stage(2, "W_K1"),
        _answers_rightly,
        _is_one_step,
        _last_is_one_step,
    ),
    otherwise=_advice,
    nought="If a whole gradient is divided by its largest entry, it is still all zero: another matrix must step first, "
    "with its step in place, or what layer 1 or 2 gives is all zero, as without a softmax",
    seconds=4,
    now="all three memories are stored, and the circuit answers new sequences",
)
def learn_in_three_steps(tokens: Tensor, targets: Tensor, N: int) -> Tensor:
    T = tokens.shape[2]
    future = torch.ones(T, T, device=tokens.device).triu(1).bool()
    W = torch.zeros(3, N, N, device=tokens.device, requires_grad=True)
    for i, (z, y) in enumerate(zip(tokens, targets, strict=True)):
        W_O2, W_K2, W_K1 = W
        x = F.one_hot(z, N).float()
        first = W_K1[:T, :T].masked_fill(future, -torch.inf).softmax(-1)
        h = first @ x
        scores = x[:, -1:] @ W_K2 @ h.mT
        o = (scores.softmax(-1) @ x)[:, 0]
        loss = F.cross_entropy(o @ W_O2.mT, y)
        [gradient] = torch.autograd.grad(loss, W)
        step = -gradient[i] / gradient[i].abs().max()
        with torch.no_grad():
            W[i] += 20 * step
    return W.detach()
