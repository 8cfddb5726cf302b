"""Answers to the exercises of lesson 13: wrong ones that people really give, and right ones written differently."""

from wrong_answers.cases import Case

ENTROPY = """
def relative_entropy(logits, counts):
    q = counts / counts.sum()
    loss = -(q * torch.log_softmax(logits, 0)).sum()
    entropy = torch.special.entr(q).sum()
    return loss - entropy
"""

MOMENTS = """
def moment_gap(theta, features, counts):
    model = torch.softmax(features @ theta, 0)
    data = counts / counts.sum()
    return (model - data) @ features
"""

SAMPLED = """
def sampled_accuracy(share, truth, tau):
    q = truth ** (1 / tau)
    q = q / q.sum(1, keepdim=True)
    right = (truth * q).sum(1)
    return (share * right).sum()
"""

TURING = """
import math

def good_turing(drawn, gamma):
    n = len(drawn)
    times = drawn.unique(return_counts=True)[1]
    estimate = (times == 1).sum() / n
    radius = 1 / n + 2.42 * math.sqrt(math.log(4 / gamma) / n)
    return torch.tensor([estimate, radius])
"""

BINS = """
def miscalibration(value, g, p):
    bins = value.unique(return_inverse=True)[1]
    gap = torch.zeros_like(g).index_add(0, bins, g - p)
    return 0.5 * gap.abs().sum()
"""

FLOOR = """
import math

def floor(once, mis, sparsity, n, delta):
    crowding = 3 * sparsity / delta
    chance = math.sqrt(6 * math.log(6 / delta) / n)
    return once - mis - crowding - chance
"""

VALID = """
def validity_bound(g, p, false):
    E, V = false.sum(), (~false).sum()
    plus = g > 1 / E
    missed = p[~plus].sum()
    fooled = (plus & false).sum() / E
    error = missed / 2 + fooled / 2
    delta = (g[plus].sum() - p[plus].sum()).abs()
    return 2 * error - V / E - delta
"""

SCORE = """
def best_score(q, t):
    score = q - (1 - q) * t / (1 - t)
    return torch.relu(score)
"""

CASES = {
    "relative_entropy": [
        Case(ENTROPY),
        Case("""
def relative_entropy(logits, counts):
    empirical = counts / counts.sum()
    said = logits.log_softmax(0)
    return (empirical * (empirical.log() - said)).sum()
"""),
        Case("""
def relative_entropy(logits, counts):
    q = counts / counts.sum()
    return torch.nn.functional.kl_div(logits.log_softmax(0), q, reduction="sum")
"""),
        Case(ENTROPY.replace("loss - entropy", "loss"), "this is the loss alone"),
        Case(ENTROPY.replace("loss - entropy", "loss + entropy"), "the entropy is added"),
        Case(
            ENTROPY.replace("entr(q)", "entr(logits.softmax(0))"),
            "the entropy that is taken away is the model's",
        ),
        Case(
            """
def relative_entropy(logits, counts):
    q = counts / counts.sum()
    p = logits.softmax(0)
    return (p * (p.log() - q.log())).sum()
""",
            "the order is reversed",
        ),
        Case(
            ENTROPY.replace("return loss - entropy", "return counts.sum() * (loss - entropy)"),
            "the mean per token is asked for",
        ),
        Case(ENTROPY.replace("q = counts / counts.sum()", "q = counts"), "counts is not divided by the sum of counts"),
        Case(ENTROPY.replace("torch.log_softmax(logits, 0)", "logits"), "the log-softmax of logits is missing"),
        Case(ENTROPY.replace("loss - entropy", "entropy - loss"), "sign"),
        Case(ENTROPY.replace("torch.log_softmax(logits, 0)).sum()", "torch.log_softmax(logits, 0))"), "wrong shape"),
    ],
    "moment_gap": [
        Case(MOMENTS),
        Case("""
def moment_gap(theta, features, counts):
    theta = theta.detach().clone().requires_grad_()
    said = (features @ theta).log_softmax(0)
    loss = -(counts / counts.sum() * said).sum()
    return torch.autograd.grad(loss, theta)[0]
"""),
        Case("""
def moment_gap(theta, features, counts):
    weights = torch.exp(features @ theta)
    expected = (weights[:, None] * features).sum(0) / weights.sum()
    seen = (counts[:, None] * features).sum(0) / counts.sum()
    return expected - seen
"""),
        Case(MOMENTS.replace("(model - data)", "(data - model)"), "the sign is turned round"),
        Case(MOMENTS.replace("(model - data)", "data"), "the data's moments alone"),
        Case(MOMENTS.replace("(model - data)", "model"), "the model's moments alone"),
        Case(MOMENTS.replace("counts / counts.sum()", "counts"), "the counts are not divided"),
        Case(
            MOMENTS.replace("torch.softmax(features @ theta, 0)", "features @ theta"),
            "the logits are not made into probabilities",
        ),
        Case(MOMENTS.replace("(model - data)", "(model + data)"), "empirical is added; it is to be subtracted"),
        Case(MOMENTS.replace("(model - data) @ features", "model - data"), "wrong shape"),
        Case(MOMENTS.replace("torch.softmax(features @ theta, 0)", "torch.sigmoid(features @ theta)"), "sigmoid"),
        Case(MOMENTS.replace("counts.sum()", "counts.max()"), "largest"),
    ],
    "sampled_accuracy": [
        Case(SAMPLED),
        Case("""
def sampled_accuracy(share, truth, tau):
    q = (truth.log() / tau).softmax(1)
    return torch.einsum("c,cv,cv->", share, truth, q)
"""),
        Case("""
def sampled_accuracy(share, truth, tau):
    total = 0 * share[0]
    for weight, row in zip(share, truth):
        sharpened = row.pow(1 / tau)
        total = total + weight * (row @ sharpened) / sharpened.sum()
    return total
"""),
        Case(SAMPLED.replace("** (1 / tau)", "** tau"), "the power is tau"),
        Case(SAMPLED.replace("    q = q / q.sum(1, keepdim=True)\n", ""), "the rows are not normalised"),
        Case(SAMPLED.replace("truth ** (1 / tau)", "truth"), "the temperature is not used"),
        Case(
            "def sampled_accuracy(share, truth, tau):\n    return (share * truth.amax(1)).sum()\n",
            "the accuracy of the likeliest token",
        ),
        Case(SAMPLED.replace("(truth * q)", "(q * q)"), "the truth gets the temperature, too"),
        Case(SAMPLED.replace("(share * right).sum()", "right.mean()"), "every context counts alike"),
        Case(SAMPLED.replace("q.sum(1, keepdim=True)", "q.sum(0)"), "normalised over the contexts"),
        Case(SAMPLED.replace("(share * right).sum()", "right.sum()"), "the factor share is missing"),
        Case(SAMPLED.replace("(share * right).sum()", "share * right"), "wrong shape"),
        Case(SAMPLED.replace("(share * right).sum()", "(share * right).mean()"), "mean"),
    ],
    "good_turing": [
        Case(TURING),
        Case(
            """
def good_turing(drawn, gamma):
    n = len(drawn)
    alone = (drawn[:, None] == drawn).sum(1) == 1
    radius = torch.tensor(1 / n) + 2.42 * (torch.log(torch.tensor(4 / gamma)) / n).sqrt()
    return torch.stack([alone.float().mean(), radius])
""",
            advice="on the CPU",
        ),
        Case(
            """
from collections import Counter
import math

def good_turing(drawn, gamma):
    times = Counter(drawn.tolist()).values()
    n = sum(times)
    return torch.tensor([sum(t == 1 for t in times) / n, 1 / n + 2.42 * (math.log(4 / gamma) / n) ** 0.5])
""",
            advice="on the CPU",
        ),
        Case(TURING.replace("(times == 1).sum() / n", "(times == 1).sum() / len(times)"), "divided by the number of"),
        Case(TURING.replace("(times == 1).sum() / n", "len(times) / n"), "counts the different facts"),
        Case(TURING.replace("times == 1", "times > 1"), "that occur more than once"),
        Case(TURING.replace("1 / n + 2.42", "2.42"), "the radius lacks its first term"),
        Case(TURING.replace("math.sqrt(math.log(4 / gamma) / n)", "math.log(4 / gamma) / n"), "lacks the square root"),
        Case(TURING.replace("math.log(4 / gamma) / n", "math.log(4 / gamma)"), "the root is not divided by n"),
        Case(TURING.replace("times == 1", "times <= 2"), "wrong values in 1 of 2"),
        Case(TURING.replace("times == 1", "times == 2"), "compared with one more than 1"),
        Case(TURING.replace("4 / gamma", "1 / gamma"), "4 is missing"),
        Case(TURING.replace("4 / gamma", "4 * gamma"), "multiplied by gamma; divide by it"),
        Case(TURING.replace("[estimate, radius]", "[radius, estimate]"), "the order is wrong"),
        Case(TURING.replace("[estimate, radius]", "[estimate - radius, estimate, estimate + radius]"), "wrong shape"),
    ],
    "miscalibration": [
        Case(BINS),
        Case("""
def miscalibration(value, g, p):
    total = 0 * g[0]
    for each in value.unique():
        here = value == each
        total = total + (g[here].sum() - p[here].sum()).abs()
    return total / 2
"""),
        Case("""
def miscalibration(value, g, p):
    member = (value[:, None] == value.unique()).to(g.dtype)
    return (g @ member - p @ member).clamp_min(0).sum() * g.sum() / g.sum()
"""),
        Case(BINS.replace("0.5 * ", ""), "the factor 1/2 is missing"),
        Case("def miscalibration(value, g, p):\n    return (g - p).abs().sum() / 2\n", "not put into bins"),
        Case(BINS.replace("value.unique", "p.unique"), "the bins are those of p"),
        Case(BINS.replace("0.5 * gap.abs().sum()", "gap.abs().max()"), "the largest gap"),
        Case(BINS.replace("gap.abs()", "gap.square()"), "gaps are squared"),
        Case(BINS.replace("gap.abs()", "gap"), "the absolute value of the index_add"),
        Case(BINS.replace("gap.abs().sum()", "gap.abs().mean()"), "mean"),
        Case(BINS.replace("g - p)", "g)"), "p is not subtracted"),
        Case(BINS.replace("g - p)", "g + p)"), "p is added"),
        Case(BINS.replace("0.5 * gap.abs().sum()", "gap.abs() / 2"), "wrong shape"),
    ],
    "floor": [
        Case(FLOOR),
        Case("""
def floor(once, mis, sparsity, n, delta):
    chance = (6 / n * torch.log(torch.tensor(6 / delta, dtype=once.dtype))).sqrt()
    return once - (mis + 3 * sparsity / delta + chance)
"""),
        Case("""
from math import exp, log

def floor(once, mis, sparsity, n, delta):
    s = -log(sparsity)
    return once - mis - 3 * exp(-s) / delta - (6 * (log(6) - log(delta)) / n) ** 0.5
"""),
        Case(FLOOR.replace("3 * sparsity / delta", "3 * sparsity"), "1 / delta is missing"),
        Case(FLOOR.replace("once - mis", "once + mis"), "the miscalibration is added"),
        Case(FLOOR.replace("- chance", "+ chance"), "the term of chance is added"),
        Case(FLOOR.replace("6 * math.log(6 / delta) / n", "6 * math.log(6 / delta)"), "is not divided by n"),
        Case(FLOOR.replace("math.sqrt(6 * math.log(6 / delta) / n)", "6 * math.log(6 / delta) / n"), "square root"),
        Case(FLOOR.replace(" - crowding", ""), "the term of the sparsity is left out"),
        Case(FLOOR.replace(" - chance", ""), "the term of chance is left out"),
        Case(FLOOR.replace("once - mis", "once"), "mis is not subtracted"),
        Case(FLOOR.replace("3 * sparsity", "sparsity"), "the factor 3 is missing"),
        Case(FLOOR.replace("6 / delta", "delta / 6"), "ValueError"),
        Case(FLOOR.replace("math.sqrt(6 * ", "math.sqrt("), "the factor 6 is missing"),
        Case(FLOOR.replace("6 / delta", "1 / delta"), "6 is missing above the line"),
        Case(FLOOR.replace("- crowding", "+ crowding"), "crowding is added; it is to be subtracted"),
    ],
    "validity_bound": [
        Case(VALID),
        Case("""
def validity_bound(g, p, false):
    K, k = int(false.sum()), int((~false).sum())
    plus = g > 1 / K
    D = torch.where(false, torch.full_like(p, 1 / K), p) / 2
    error = D[plus == false].sum()
    return 2 * error - k / K - abs(g[plus].sum() - p[plus].sum())
"""),
        Case("""
def validity_bound(g, p, false):
    E = false.to(g.dtype).sum()
    below = g <= 1 / E
    twice = (p * below).sum() + (~below & false).sum() / E
    return twice - (len(g) - E) / E - ((g - p) * below).sum().abs()
"""),
        Case(VALID.replace("g > 1 / E", "g > 1 / len(g)"), "the threshold is 1 over"),
        Case(VALID.replace(" - delta", ""), "delta is left out"),
        Case(VALID.replace(" - V / E", ""), "|V| / |E| is left out"),
        Case(VALID.replace("- delta", "+ delta"), "delta is added"),
        Case(VALID.replace("missed / 2 + fooled / 2", "missed + fooled"), "the error is not halved"),
        Case(VALID.replace("missed / 2 + fooled / 2", "missed / 2"), "the false statements that pass are left out"),
        Case(VALID.replace("missed / 2 + fooled / 2", "fooled / 2"), "the facts that do not pass are left out"),
        Case(VALID.replace("2 * error", "error"), "the factor 2"),
        Case(VALID.replace("p[~plus]", "p[plus]"), "is inverted"),
        Case(VALID.replace("(plus & false).sum() / E", "(plus & false).sum()"), "is not divided by the sum of false"),
        Case(VALID.replace("(g[plus].sum() - p[plus].sum()).abs()", "g[plus].sum() - p[plus].sum()"), "absolute"),
        Case(VALID.replace("- V / E", "- E / V"), "the fraction is upside down"),
    ],
    "best_score": [
        Case(SCORE),
        Case("""
def best_score(q, t):
    return torch.where(q > t, (q - t) / (1 - t), torch.zeros_like(q))
"""),
        Case("""
def best_score(q, t):
    penalty = t / (1 - t)
    guess = q * 1 + (1 - q) * -penalty
    return torch.maximum(guess, torch.zeros_like(guess))
"""),
        Case(SCORE.replace("torch.relu(score)", "score"), "never abstains"),
        Case(
            SCORE.replace("torch.relu(score)", "torch.where(q > 0.5, score, torch.zeros_like(q))"),
            "answers wherever q is above 1/2",
        ),
        Case(SCORE.replace("* t / (1 - t)", "* t"), "costs t / (1 - t), not t"),
        Case(SCORE.replace("* t / (1 - t)", "* (1 - t) / t"), "not (1 - t) / t"),
        Case("def best_score(q, t):\n    return q\n", "that is binary grading"),
        Case(SCORE.replace("(1 - q) * t", "t"), "the penalty is paid whatever comes"),
        Case(SCORE.replace("torch.relu(score)", "torch.maximum(score, torch.ones_like(q))"), "abstaining is given 1"),
        Case(SCORE.replace("q - (1 - q)", "q + (1 - q)"), "it is to be subtracted"),
        Case(SCORE.replace("(1 - q)", "q"), "1 is missing: only q is there"),
        Case(SCORE.replace("/ (1 - t)", "/ (1 + t)"), "t is added; it is to be subtracted"),
        Case(SCORE.replace("torch.relu(score)", "torch.relu(score).mean()"), "wrong shape"),
    ],
}
