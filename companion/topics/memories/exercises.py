"""The exercises of lesson 05, associative memory: what the lesson imports as ``exercises``."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from companion.lesson.exercise import draw_normal, draw_size, exercise
from companion.lesson.summit import summit
from companion.topics.memories.by_hand import read, write
from companion.topics.memories.data import embeddings
from companion.topics.memories.probes import accuracy, capacity


def _draw_states(generator: Generator) -> dict:
    # Many patterns and states, or one sweep settles all; an even number of patterns, or no field is ever 0
    n, d, t = 2 * draw_size(generator, 2, 3), draw_size(generator, 8, 11), draw_size(generator, 14, 18)
    X, states = ((draw_normal(generator, rows, d) > 0).double() * 2 - 1 for rows in (n, t))
    return {"X": X, "states": states}


@exercise(draw=_draw_states, now="a damaged pattern is repaired, sign by sign")
def hopfield_sweep(X: Tensor, states: Tensor) -> Tensor:
    J = X.mT @ X
    J.fill_diagonal_(0)
    states = states.clone()
    for i in range(len(J)):
        field = states @ J[i]
        states[:, i] = torch.where(field == 0, states[:, i], field.sign())
    return states


def _draw_memories(generator: Generator) -> dict:
    n, d, t = draw_size(generator, 3, 6), draw_size(generator, 3, 6), draw_size(generator, 2, 4)
    return {
        "X": draw_normal(generator, n, d),
        "states": draw_normal(generator, t, d),
        "beta": float(0.5 + torch.rand((), generator=generator)),
    }


@exercise(draw=_draw_memories, now="attention, written again, is a memory of patterns")
def softmax_update(X: Tensor, states: Tensor, beta: float) -> Tensor:
    scores = beta * states @ X.mT
    return scores.softmax(1) @ X


def _draw_sphere(generator: Generator) -> dict:
    n, d = draw_size(generator, 3, 6), draw_size(generator, 2, 5)
    return {
        "x": F.normalize(draw_normal(generator, n, d), dim=1),
        "beta": float(1 + 2 * torch.rand((), generator=generator)),
        "dt": float(0.1 + 0.3 * torch.rand((), generator=generator)),
    }


@exercise(draw=_draw_sphere, now="you can watch attention move its own tokens")
def flow_step(x: Tensor, beta: float, dt: float) -> Tensor:
    pull = (beta * x @ x.mT).softmax(1) @ x
    pull = pull - (pull * x).sum(1, keepdim=True) * x
    return F.normalize(x + dt * pull, dim=1)


def _draw_loss(generator: Generator) -> dict:
    m, d, e = draw_size(generator, 3, 4), draw_size(generator, 2, 3), draw_size(generator, 4, 5)
    n = m + draw_size(generator, 1, 3)
    p = draw_normal(generator, n * m).softmax(0).view(n, m)
    return {
        "W": draw_normal(generator, e, d),
        "U": draw_normal(generator, n, d),
        "V": draw_normal(generator, m, e),
        "p": p,
    }


@exercise(draw=_draw_loss, now="a step of training can be written, and read, as a memory")
def memory_gradient(W: Tensor, U: Tensor, V: Tensor, p: Tensor) -> Tensor:
    logits = U @ W.mT @ V.mT
    errors = p.sum(1, keepdim=True) * logits.softmax(1) - p
    return V.mT @ errors.mT @ U


def _draw_counts(generator: Generator) -> dict:
    counts = torch.randint(1, 9, (draw_size(generator, 3, 6),), generator=generator).double()
    tokens, answers = (torch.rand(2, generator=generator, dtype=torch.float64) * 0.2 + 0.05).tolist()
    return {"counts": counts, "tokens": tokens, "answers": answers}


@exercise(draw=_draw_counts, now="the noise of every logit is known before anything is stored")
def logit_variance(counts: Tensor, tokens: float, answers: float) -> Tensor:
    own = torch.eye(len(counts), dtype=counts.dtype, device=counts.device)
    same = counts - own
    other = counts.sum() - 1 - same
    return same * tokens + other * tokens * answers + (1 - own) * answers


def _draw_logits(generator: Generator) -> dict:
    m = draw_size(generator, 3, 6)
    x = draw_normal(generator, draw_size(generator, 7, 11))
    variance = 0.1 + 0.6 * torch.rand(m, generator=generator, dtype=torch.float64)
    return {"variance": variance, "own": draw_size(generator, 0, m - 1), "x": x}


@exercise(draw=_draw_logits, now="two functions now predict how many facts fit")
def chance_right(variance: Tensor, own: int, x: Tensor) -> Tensor:
    right = 1 + variance[own].sqrt() * x
    beaten = torch.special.ndtr(right / variance.sqrt()[:, None])
    rivals = torch.cat([beaten[:own], beaten[own + 1 :]])
    return rivals.prod(0).mean()


def _draw_mlp(generator: Generator) -> dict:
    n, d, e, m, t = (draw_size(generator, *bounds) for bounds in ((6, 7), (2, 3), (4, 5), (8, 9), (2, 3)))
    U, x = (
        rows / rows.norm(dim=1, keepdim=True) for rows in (draw_normal(generator, n, d), draw_normal(generator, t, d))
    )
    return {"U": U, "V": draw_normal(generator, n, e), "w": draw_normal(generator, m, d), "x": x}


@exercise(draw=_draw_mlp, now="a layer now holds more facts than a matrix of its width")
def cubic_memory(U: Tensor, V: Tensor, w: Tensor, x: Tensor) -> Tensor:
    def h(s):
        return (s**3 - 3 * s) / 6**0.5

    a = h(U @ w.mT).mT @ V / len(w)
    return h(x @ w.mT) @ a @ V.mT


LEAST, MOST = 0.9, 1.3  # what is measured, over what is predicted: rivals taken as independent make this a little low
NEAR = 0.2  # of a fraction: a code within these bounds is predicted within 0.12 at every N
EXACT = 0.011  # of a fraction: one power for all N is off by more
BETTER = 0.95  # times 1 / d, the mean square overlap of random directions, which 480 of them meet within 0.01


def _draw_noise(generator: Generator) -> dict:
    n, d = 480, 80
    return {
        "noise": draw_normal(generator, n, d),
        "x": torch.special.ndtri((torch.arange(101, dtype=torch.float64) + 0.5) / 101),
        "_tokens": embeddings(n, d, runs=(8,), unit=True, generator=generator, dtype=torch.float64),
        "_orders": torch.rand(8, n, generator=generator).argsort(1),  # near copies may not hide at the code's end
    }


def _overlaps(table: Tensor) -> Tensor:
    """The overlaps of each two different answers of a table of `own_code`."""
    code = table[:, :-1]
    return (code @ code.mT)[~torch.eye(len(code), dtype=torch.bool, device=code.device)]


def _theories(inputs: dict, table: Tensor) -> Tensor:
    """What the four rows of section 3's table give for this code and every N: (2, n), with the mean square overlap of
    all answers, and with that of the first N.
    """
    code, x = table[:, :-1], inputs["x"].to(table)
    n, d = code.shape
    N, squares = torch.arange(1, n + 1, device=code.device)[:, None], (code @ code.mT).square()
    first = squares.cumsum(0).cumsum(1).diagonal()[:, None] - N

    def theory(answers: Tensor) -> Tensor:
        right, rival = 1 + ((N - 1) / d * answers).sqrt() * x, 1 / d + (N - 2) / d * answers + answers
        return (torch.special.ndtr(right / rival.sqrt()) ** (N - 1)).mean(1)

    return torch.stack([theory(_overlaps(table).square().mean()), theory((first / (N * (N - 1)).clamp_min(1)).relu())])


def _is_a_code(_: dict, table: Tensor) -> str | None:
    lengths = table[:, :-1].norm(dim=1)
    if (lengths - 1).abs().max() > 1e-3:
        return f"the answers' vectors have lengths from {lengths.min():.2g} to {lengths.max():.2g}; all must be 1"
    if _overlaps(table).max() > 0.999:
        return "two answers have the same vector, or nearly: no memory could tell them apart"
    return None


def _is_better(_: dict, table: Tensor) -> str | None:
    n, d = len(table), table.shape[1] - 1
    if (found := d * _overlaps(table).square().mean().item()) > BETTER:
        common = table[:, :-1].mean(0).norm().item()
        shared = f"; all share a part, of length {common:.2f}" if common > 0.2 else ""
        return (
            f"two answers of this code overlap with a mean square of {found:.2f} / d{shared}. Random directions do "
            f"with 1 / d; at most {BETTER} / d is asked for, and {(n - d) / (n - 1):.2f} / d is the least possible"
        )
    return None


def _is_a_forecast(_: dict, table: Tensor) -> str | None:
    predicted = table[:, -1]
    if predicted.min() < 0 or predicted.max() > 1 + 1e-6:
        return f"what is predicted goes from {predicted.min():.2g} to {predicted.max():.2g}; fractions are from 0 to 1"
    if predicted[0] < 0.99:
        return f"one fact alone has no rival and is always right; you predict {predicted[0]:.2f} in row 0"
    if (rise := predicted.diff().max()) > 1e-4:
        return f"what is predicted rises by up to {rise:.2g} from one N to the next; more facts are never easier"
    if predicted[-1] >= 0.9:
        why = (
            ", and you leave hardly any noise: is the right logit divided by a rival's variance, and not by its square "
            "root, are the overlaps not squared, or is tau not 1 / d?"
        )
        return (
            f"you predict that {predicted[-1]:.0%} of all {len(predicted)} facts are right; even with the least "
            f"possible overlaps the variances of section 3 give less than 68%{why if predicted[-1] > 0.999 else ''}"
        )
    return None


def _is_fulfilled(inputs: dict, table: Tensor) -> str | None:
    """The stage at which the facts are written and counted."""
    code, tokens, orders = table[:, :-1], inputs["_tokens"].to(table), inputs["_orders"].to(table.device)

    def measured(N: int) -> float:
        U, V, f = tokens[:, :N], code[orders[:, :N]], torch.arange(N, device=code.device)
        return accuracy(read(write(U, V, f), U, V), f)

    predicted, held = int((table[:, -1] >= 0.9).sum()), capacity(measured, start=1, most=len(code), ratio=1.02)
    if LEAST * predicted <= held <= MOST * predicted:
        return _is_near(table[:, -1], measured)
    largest, common = _overlaps(table).max().item(), code.mean(0).norm().item()
    seen = f"two answers overlap with a mean square of {len(code[0]) * _overlaps(table).square().mean():.2f} / d"
    if common > 0.2:
        seen += f"; all share a part, of length {common:.2f}, which cancels between an answer and its rivals"
    if largest > 0.6:
        seen += f"; the largest overlap of two answers is {largest:.2f}, and one mean square cannot tell that"
    theories = _theories(inputs, table)
    theory = theories[0]
    if (table[:, -1] - theories).abs().amax(1).min() <= EXACT:
        why, change = "as section 3 does for this code", "the code, not the prediction"
    else:
        why, change = f"where section 3 gives {int((theory >= 0.9).sum())} for this code", "the prediction"
    return (
        f"you predict {predicted} facts at 90 %, {why}, and {held} are measured, of facts drawn at random from "
        f"yours, not {LEAST} to {MOST} times as many: change {change}. Of this code: {seen}"
    )


def _is_near(predicted: Tensor, measured: Callable[[int], float]) -> str | None:
    """Whether it is right at other N, too: a capacity can be guessed, and read off a message."""
    for N in (len(predicted) * quarter // 4 for quarter in (1, 2, 3, 4)):
        if abs((found := measured(N)) - predicted[N - 1]) > NEAR:
            return (
                f"of {N} facts you predict that {predicted[N - 1]:.0%} are right, and {found:.0%} are: the number of "
                "facts at 90 % is met, and the curve is not"
            )
    return None


def _is_the_theory(inputs: dict, table: Tensor) -> str | None:
    """Whether it is what section 3 gives for this code: a count may be met by chance."""
    theories = _theories(inputs, table)
    theory = theories[(table[:, -1] - theories).abs().amax(1).argmin()]
    off = (table[:, -1] - theory).abs()
    if off.max() > EXACT:
        at = int(off.argmax())
        return (
            f"the measured capacity is met, but of {at + 1} facts you predict that {table[at, -1]:.1%} are right, and "
            f"the variances of section 3 give {theory[at]:.1%} for this code"
        )
    return None


def _counts_are_exact(inputs: dict, table: Tensor) -> str:
    """Advise whose prediction is near enough, and off by more than rounding: one rival or one fact too many, say."""
    off = (table[:, -1] - _theories(inputs, table)).abs().amax(1).min()
    return (
        f"your fractions differ by up to {off:.1g} from section 3's: count N - 1 rivals, N - 2 products in the "
        "variance of each, and n (n - 1) pairs of answers, and take the points x as they are given"
        if off > 1e-4
        else ""
    )


@summit(
    draw=_draw_noise,
    shape=lambda inputs: (len(inputs["noise"]), inputs["noise"].shape[1] + 1),
    stages=(_is_a_code, _is_better, _is_a_forecast, _is_fulfilled, _is_the_theory),
    otherwise=_counts_are_exact,
    seconds=4,
    compared=lambda table: table[:, -1] * _overlaps(table).square().mean(),  # of one code, what is predicted for it
    used={"x": torch.zeros(101, dtype=torch.float64)},  # a right logit without noise
    now="you predicted what a memory holds before anybody filled it",
)
def own_code(noise: Tensor, x: Tensor) -> Tensor:
    n, d = noise.shape
    code = torch.linalg.qr(noise.unflatten(0, (-1, d))).Q.flatten(0, 1)
    overlaps = code @ code.mT
    answers = (overlaps.square().sum() - n) / (n * (n - 1))
    N = torch.arange(1, n + 1, device=noise.device)[:, None]
    own = (N - 1) / d * answers
    rival = 1 / d + (N - 2) / d * answers + answers
    right = 1 + own.sqrt() * x
    beaten = torch.special.ndtr(right / rival.sqrt())
    predicted = (beaten ** (N - 1)).mean(1)
    return torch.cat([code, predicted[:, None]], dim=1)
