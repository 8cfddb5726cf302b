"""The exercises of lesson 10, simplicity bias: what the lesson imports as ``exercises``."""

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from companion.lesson.bars import reaches
from companion.lesson.exercise import draw_normal, draw_size, exercise
from companion.lesson.summit import summit
from companion.topics.sensitivity.data import Sparse, another, strings, truth_table, turned


def _draw_values(generator: Generator) -> dict:
    """A random function, -1 or 1, rarer in the one than in the other, whose last bit matters less than the others."""
    n = draw_size(generator, 4, 6)
    half = torch.rand(2 ** (n - 1), generator=generator, dtype=torch.float64) < 0.35
    other = half ^ (torch.rand(2 ** (n - 1), generator=generator, dtype=torch.float64) < 0.15)
    return {"values": 1 - 2 * torch.cat([half, other]).double()}


@exercise(draw=_draw_values, now="you can say of any small function what it looks at")
def influences(values: Tensor) -> Tensor:
    n = len(values).bit_length() - 1
    number = torch.arange(len(values), device=values.device)
    shares = []
    for bit in range(n):
        neighbour = number ^ 2**bit
        changed = (values != values[neighbour]).to(values.dtype)
        shares.append(changed.mean())
    return torch.stack(shares)


@exercise(draw=_draw_values)
def weight_by_degree(values: Tensor) -> Tensor:
    n = len(values).bit_length() - 1
    for bit in range(n):
        low, high = values.view(-1, 2, 2**bit).unbind(1)
        values = torch.stack([low + high, low - high], 1).flatten()
    coefficients = values / 2**n
    numbers = torch.arange(2**n, device=values.device)
    bits = numbers[:, None] >> torch.arange(n, device=values.device) & 1
    degree = bits.sum(-1)
    weights = torch.zeros(n + 1, dtype=values.dtype, device=values.device)
    return weights.index_add(0, degree, coefficients.square())


def _draw_answers(generator: Generator) -> dict:
    """Answers of few strings, which by turns change now and then, so that the interval would reach below 0, often, so
    that it does not, and nearly always, so that it would reach above 1.
    """
    m, n = draw_size(generator, 20, 35), draw_size(generator, 5, 9)
    before = torch.randint(2, (m,), generator=generator)
    seldom, often, always = ((0.05, 0.08, 0.11), (0.45, 0.5, 0.55), (0.88, 0.9, 0.92))
    odds = (seldom, often, always)[generator.initial_seed() % 3][draw_size(generator, 0, 2)]
    flips = (torch.rand(m, n, generator=generator, dtype=torch.float64) < odds).long()
    return {"before": before, "after": before[:, None] ^ flips, "delta": (0.05, 0.1, 0.2)[draw_size(generator, 0, 2)]}


@exercise(draw=_draw_answers, now="you can measure a network on strings that nobody can list")
def estimate(before: Tensor, after: Tensor, delta: float) -> Tensor:
    changed = (after != before[:, None]).double()
    mean = changed.mean()
    surprise = -torch.tensor(delta / 2, dtype=mean.dtype, device=mean.device).log()
    half = (surprise / (2 * len(before))).sqrt()
    return torch.stack([mean - half, mean, mean + half]).clamp(0, 1)


def _draw_networks(generator: Generator) -> dict:
    """Logits of random networks, some of which lean so far to a side that they nearly always say the same."""
    networks, half, flips = (draw_size(generator, *sizes) for sizes in ((3, 5), (10, 13), (6, 8)))
    inputs = 2 * half + 1  # an odd number, of which every median is the same
    lean = 1.2 * draw_normal(generator, networks)
    logits = draw_normal(generator, networks, inputs) + lean[:, None]
    tilt = 0.3 * draw_normal(generator, networks)[:, None, None]
    return {"logits": logits, "others": logits[..., None] + draw_normal(generator, networks, inputs, flips) + tilt}


@exercise(draw=_draw_networks)
def constant_or_simple(logits: Tensor, others: Tensor) -> Tensor:
    ones = (logits > 0).to(logits.dtype).mean(-1)
    found = [torch.minimum(ones, 1 - ones)]
    middle = logits.median(-1).values
    for threshold in (torch.zeros_like(middle), middle):
        before = logits > threshold[:, None]
        after = others > threshold[:, None, None]
        changed = (after != before[..., None]).to(logits.dtype)
        found.append(changed.mean((1, 2)))
    return torch.stack(found)


def _draw_curves(generator: Generator) -> dict:
    """Accuracies in steps of .05, rising with setbacks; one run stays below the target, one falls back below it, one
    has reached it at the first mark.
    """
    runs, marks = draw_size(generator, 4, 6), draw_size(generator, 9, 13)
    steps = torch.randint(-1, 4, (runs, marks), generator=generator).cumsum(-1)
    accuracy = (10 + steps).clamp(10, 20).double() / 20
    accuracy[0] = accuracy[0].clamp(max=0.6)
    accuracy[1, marks // 2 :] = 0.95
    accuracy[2, -3:] = torch.tensor([0.85, 0.85, 0.6], dtype=accuracy.dtype)
    accuracy[3, 0] = 0.95
    return {
        "accuracy": accuracy,
        "measured": 2 * draw_normal(generator, runs, marks),
        "target": (0.65, 0.7, 0.75, 0.8)[draw_size(generator, 0, 3)],
    }


@exercise(draw=_draw_curves, now="you can compare networks that learn at different speeds")
def at_equal_accuracy(accuracy: Tensor, measured: Tensor, target: float) -> Tensor:
    reached = accuracy >= target
    first = reached.int().argmax(-1, keepdim=True)
    found = measured.gather(-1, first)[:, 0]
    return torch.where(reached.any(-1), found, torch.inf)


def _draw_logits(generator: Generator) -> dict:
    batch, classes = draw_size(generator, 4, 6), draw_size(generator, 2, 3)
    logits = 1.5 * draw_normal(generator, batch, classes)
    return {
        "logits": logits,
        "noisy": logits + 2.5 * draw_normal(generator, batch, classes),
        "labels": torch.randint(classes, (batch,), generator=generator),
        "share": (0.2, 0.3, 0.7)[draw_size(generator, 0, 2)],
    }


@exercise(draw=_draw_logits, gradient=("logits", "noisy"))
def steadied(logits: Tensor, noisy: Tensor, labels: Tensor, share: float) -> Tensor:
    rows = torch.arange(len(labels), device=labels.device)
    fit = -logits.log_softmax(-1)[rows, labels].mean()
    moved = (noisy - logits).square().mean()
    return (1 - share) * fit + share * moved


def _draw_noisy_bits(generator: Generator) -> dict:
    return _draw_values(generator) | {"p": (0.1, 0.2, 0.3)[draw_size(generator, 0, 2)]}


@exercise(draw=_draw_noisy_bits, now="you know the best answer to a noisy string")
def vote_under_noise(values: Tensor, p: float) -> Tensor:
    n = len(values).bit_length() - 1
    number = torch.arange(len(values), device=values.device)
    unlike = number[:, None] ^ number
    places = torch.arange(n, device=values.device)
    distance = (unlike[..., None] >> places & 1).sum(-1).to(values.dtype)
    probabilities = p**distance * (1 - p) ** (n - distance)
    return probabilities @ values


def _draw_noisy_examples(generator: Generator) -> dict:
    """Strings of 16 bits with the labels of two rules, a tenth of them flipped: whether two of the bits differ, and of
    two others the one that a third bit picks. Asked are these strings again, fresh ones, and all neighbours of some.

    Of the 330 strings some are left out, so that an answer that counts on 330 fails here and not further down.
    """
    n, fresh = 16, 600
    places = torch.randperm(n, generator=generator)
    picks = torch.tensor([0, 0, 1, 0, 0, 1, 1, 1])  # the second bit where the first is 0, else the third
    rules = Sparse(truth_table("parity", 2), places[:2]), Sparse(picks, places[2:5])
    bits, new = strings(330, n, generator=generator), strings(fresh, n, generator=generator)
    said, due = (torch.stack([rule(x) for rule in rules], 1) for x in (bits, new))
    labels, near = turned(said, 0.1, generator=generator), another(new[:60], 2, generator=generator).flatten(0, 1)
    m = draw_size(generator, 310, 329)
    return {
        "bits": bits[:m],
        "labels": labels[:m],
        "asked": torch.cat([bits[:m], new, near]),
        "_rules": due,
    }


def _says_both(_: dict, logits: Tensor) -> str | None:
    if not logits.is_floating_point():
        return "the answers themselves come back, as booleans or whole numbers; their logits are asked for"
    differ = logits.std(0).max() >= 0.025  # else nearly a constant, which is said below
    if differ and logits.min() >= 0 and 0.5 < logits.max() <= 1:
        return "all logits lie between 0 and 1, as probabilities do; a logit is above 0 for the answer 1, else below"
    for rule, ones in enumerate((logits > 0).double().mean(0).tolist()):
        if not 0.1 <= ones <= 0.9:
            told = f"{ones:.0%} of the answers for rule {rule} are 1, nearly a constant; by the rule about half are"
            alike = logits[:, rule].std() < 0.3
            why = (
                ". Its logits hardly differ, as where a new term outweighs the labels, zero_grad is missing, or the "
                "network has hardly been trained (few or small steps)"
            )
            return told + why * bool(alike)
    return None


def _goes_by_the_rules(inputs: dict, logits: Tensor) -> str | None:
    """The stage at which strings that were not seen must be answered; says what the answers show beside."""
    labels, rules, n = inputs["labels"], inputs["_rules"], inputs["bits"].shape[1]
    seen, new, near = (logits > 0).long().split([len(labels), len(rules), 60 * n])
    each = (new == rules).double().mean(0)
    rule, right = int(each.argmin()), each.min().item()
    if reaches("share of new strings that are right by either rule", right, 0.97):
        return None
    trained = (seen == labels).double().mean(0)[rule].item()
    S = (near[:, rule].view(60, n) != new[:60, rule, None]).double().mean().item()
    due = (2, 1.5)[rule] / n
    told = (
        f"for rule {rule} it is right on {right:.1%} of new strings, where 97 % are asked for, and on {trained:.0%} of "
        f"the noisy labels, with sensitivity {S:.3f}; the rule is right on 90 % of these labels, with sensitivity "
        f"{due:.3f}. For rule {1 - rule} it is right on {each[1 - rule].item():.1%} of new strings"
    )
    if (exchanged := (new.flip(1) == rules).double().mean(0).min().item()) >= 0.9:
        return f"{told}. With its two columns exchanged, at least {exchanged:.1%} are right by either"
    if trained >= 0.91 and due < S:
        why = (
            "a term against that is missing or too weak, or takes the other difference of hint 2, or one with its "
            "sign, or has no gradient, or flips the same bits in every step"
        )
        return f"{told}. It memorises flipped labels: {why}"
    if right > 0.2 and trained < 0.88:
        why = (
            "is the new term too strong, or a square, are the steps many and large enough, and does each string get "
            "a flip of one bit of its own?"
        )
        return f"{told}. It gets fewer of the labels right than the rule does: {why}"
    return told + f". With the sign of its logits turned, new strings are {1 - right:.0%} right" * (right <= 0.2)


@summit(
    draw=_draw_noisy_examples,
    shape=lambda inputs: (len(inputs["asked"]), 2),
    stages=(_says_both, _goes_by_the_rules),
    seconds=4,
    now="you can give a network the bias that a task needs",
)
def learn_the_rules(bits: Tensor, labels: Tensor, asked: Tensor) -> Tensor:
    torch.manual_seed(0)
    n, rules = bits.shape[1], labels.shape[1]
    model = nn.Sequential(nn.Linear(n, 64), nn.GELU(), nn.Linear(64, rules)).to(bits.device)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    x = bits.float()
    for _ in range(300):
        flipped = torch.randint(n, (len(bits), 1)).to(bits.device)
        near = x.scatter(1, flipped, 1 - x.gather(1, flipped))
        logits, others = model(x), model(near)
        fit = F.binary_cross_entropy_with_logits(logits, labels.float())
        loss = fit + 0.7 * (others - logits).abs().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return model(asked.float()).detach()
