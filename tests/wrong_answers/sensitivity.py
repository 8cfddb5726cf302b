"""Answers to the exercises of lesson 10: wrong ones that people really give, and right ones written differently."""

from wrong_answers.cases import Case

INFLUENCES = """
def influences(values):
    N = values.shape[0]
    n = N.bit_length() - 1
    index = torch.arange(N, device=values.device)
    out = torch.zeros(n, dtype=values.dtype, device=values.device)
    for i in range(n):
        out[i] = (values[index ^ (1 << i)] != values).to(values.dtype).mean()
    return out
"""

WEIGHTS = """
def weight_by_degree(values):
    N = len(values)
    n = N.bit_length() - 1
    index = torch.arange(N, device=values.device)
    popcount = sum((index >> i) & 1 for i in range(n))
    both = index[:, None] & index
    parity = sum((both >> i) & 1 for i in range(n)) % 2
    coefficients = (1 - 2 * parity).to(values.dtype) @ values / N
    return torch.stack([(coefficients[popcount == d] ** 2).sum() for d in range(n + 1)])
"""

NEIGHBOURS = """
def neighbours(bits):
    m, n = bits.shape
    out = bits.unsqueeze(1).repeat(1, n, 1)
    for i in range(n):
        out[:, i, i] = 1 - bits[:, i]
    return out
"""

ESTIMATE = """
def estimate(before, after, delta):
    m = len(before)
    per_input = (after != before.unsqueeze(1)).double().mean(1)
    p = per_input.mean()
    t = torch.sqrt(torch.log(torch.tensor(2 / delta, dtype=p.dtype, device=p.device)) / (2 * m))
    return torch.stack([(p - t).clamp(min=0), p, (p + t).clamp(max=1)])
"""

NETWORKS = """
def constant_or_simple(logits, others):
    rows = []
    for x, y in zip(logits, others):
        ones = (x > 0).double().mean()
        cut = x.median()
        plain = ((x > 0)[:, None] != (y > 0)).double().mean()
        split = ((x > cut)[:, None] != (y > cut)).double().mean()
        rows.append(torch.stack([torch.minimum(ones, 1 - ones), plain, split]))
    return torch.stack(rows, 1)
"""

EQUAL = """
def at_equal_accuracy(accuracy, measured, target):
    out = []
    for run, values in zip(accuracy, measured):
        marks = (run >= target).nonzero().flatten()
        out.append(values[marks[0]] if len(marks) else values.new_tensor(float("inf")))
    return torch.stack(out)
"""

STEADIED = """
def steadied(logits, noisy, labels, share):
    fit = torch.nn.functional.cross_entropy(logits, labels)
    moved = torch.nn.functional.mse_loss(noisy, logits)
    return (1 - share) * fit + share * moved
"""

CASES = {
    "influences": [
        Case(INFLUENCES),
        Case("""
def influences(values):
    n = len(values).bit_length() - 1
    found = []
    for i in range(n):
        pairs = values.view(-1, 2, 2 ** i)
        found.append((pairs[:, 0] != pairs[:, 1]).to(values.dtype).mean())
    return torch.stack(found)
"""),
        Case("""
def influences(values):
    n = len(values).bit_length() - 1
    cube = values.reshape((2,) * n)
    return torch.stack([(cube != cube.flip(n - 1 - i)).to(values.dtype).mean() for i in range(n)])
"""),
        Case(INFLUENCES.replace("(1 << i)", "(1 << (n - 1 - i))"), "the bits are in reverse order"),
        Case(INFLUENCES.replace("index ^ (1 << i)", "(index + 2 ** i) % N"), "2^i is added to the number"),
        Case(INFLUENCES.replace("(1 << i)", "(N - 1)"), "all bits are flipped at once"),
        Case(INFLUENCES.replace("(1 << i)", "i"), "combined with i"),
        Case(INFLUENCES.replace(".mean()", ".sum()"), "the changes are counted"),
        Case(
            INFLUENCES.replace(
                "(values[index ^ (1 << i)] != values).to(values.dtype)", "(values[index ^ (1 << i)] - values).square()"
            ),
            "every change counts as 4",
        ),
        Case(
            INFLUENCES.replace(
                "(values[index ^ (1 << i)] != values).to(values.dtype)", "(values[index ^ (1 << i)] - values).abs()"
            ),
            "every change counts twice",
        ),
        Case(INFLUENCES.replace("!= values", "== values"), "nothing changes"),
        Case(INFLUENCES.replace("return out", "return out / n"), "divided by the number of bits"),
        Case(INFLUENCES.replace("return out", "return out.mean()"), "wrong shape"),
    ],
    "weight_by_degree": [
        Case(WEIGHTS),
        Case("""
def weight_by_degree(values):
    n = len(values).bit_length() - 1
    f = values.reshape((2,) * n)
    for axis in range(n):
        a, b = f.unbind(axis)
        f = torch.stack([(a + b) / 2, (a - b) / 2], axis)
    degrees = torch.zeros((2,) * n, dtype=torch.long, device=values.device)
    for axis in range(n):
        shape = [1] * n
        shape[axis] = 2
        degrees = degrees + torch.arange(2, device=values.device).view(shape)
    return torch.stack([f[degrees == d].square().sum() for d in range(n + 1)])
"""),
        Case("""
def weight_by_degree(values):
    n = len(values).bit_length() - 1
    coefficients = values
    for i in range(n):
        pairs = coefficients.view(-1, 2, 2 ** i)
        coefficients = torch.cat([pairs[:, :1] + pairs[:, 1:], pairs[:, :1] - pairs[:, 1:]], 1).flatten() / 2
    ones = torch.tensor([bin(s).count("1") for s in range(2 ** n)], device=values.device)
    return torch.bincount(ones, weights=coefficients ** 2, minlength=n + 1)
"""),
        Case(WEIGHTS.replace(" / N", ""), "not divided by 2^n"),
        Case(WEIGHTS.replace(" / N", " / N ** 0.5"), "divided by the root of 2^n"),
        Case(WEIGHTS.replace(" ** 2)", ")"), "the coefficients are not squared"),
        Case(
            WEIGHTS.replace("(coefficients[popcount == d] ** 2)", "coefficients[popcount == d].abs()"),
            "absolute values stand",
        ),
        Case(
            WEIGHTS.replace(
                "popcount = sum((index >> i) & 1 for i in range(n))",
                "popcount = torch.tensor([int(s).bit_length() for s in index], device=values.device)",
            ),
            "the degree is the place of the highest bit",
        ),
        Case(WEIGHTS.replace("popcount == d", "popcount == n - d"), "the degrees are in reverse order"),
        Case(WEIGHTS.replace(" ** 2).sum()", " ** 2).mean()"), "means over the coefficients"),
        Case(WEIGHTS.replace("popcount == d", "(popcount == d) & (index > 0)"), "the empty set is left out"),
        Case(
            WEIGHTS.replace(
                "torch.stack([(coefficients[popcount == d] ** 2).sum() for d in range(n + 1)])", "coefficients ** 2"
            ),
            "wrong shape",
        ),
    ],
    "neighbours": [
        Case(NEIGHBOURS),
        Case("""
def neighbours(bits):
    eye = torch.eye(bits.shape[-1], dtype=bits.dtype, device=bits.device)
    return bits.unsqueeze(1) ^ eye
"""),
        Case("""
def neighbours(bits):
    eye = torch.eye(bits.shape[-1], dtype=bits.dtype, device=bits.device)
    return (bits[:, None] + eye) % 2
"""),
        Case(NEIGHBOURS.replace("out[:, i, i] = 1 - bits[:, i]", "out[:, i] = 1 - bits"), "every bit is flipped"),
        Case(
            """
def neighbours(bits):
    eye = torch.eye(bits.shape[-1], dtype=bits.dtype, device=bits.device)
    return bits.unsqueeze(1) ^ (1 - eye)
""",
            "every bit but bit i",
        ),
        Case(NEIGHBOURS.replace("1 - bits[:, i]", "bits[:, i]"), "nothing is flipped"),
        Case(NEIGHBOURS.replace("1 - bits[:, i]", "0"), "bit i is set to 0"),
        Case(NEIGHBOURS.replace("1 - bits[:, i]", "1"), "bit i is set to 1"),
        Case(
            NEIGHBOURS.replace("bits.unsqueeze(1).repeat(1, n, 1)", "bits.unsqueeze(2).repeat(1, 1, n)"),
            "along the wrong axis",
        ),
        Case(NEIGHBOURS.replace("out[:, i, i]", "out[:, n - 1 - i, i]"), "in reverse order"),
        Case(
            NEIGHBOURS.replace("out[:, i, i] = 1 - bits[:, i]", "out[:, i, : i + 1] = 1 - bits[:, : i + 1]"), "up to i"
        ),
        Case(NEIGHBOURS.replace("return out", "return out.flatten(0, 1)"), "wrong shape"),
    ],
    "estimate": [
        Case(ESTIMATE),
        Case("""
def estimate(before, after, delta):
    m, n = after.shape
    p = 1 - (after == before[:, None]).to(torch.float64).sum() / (m * n)
    half = torch.log(torch.tensor(2 / delta, dtype=torch.float64, device=p.device)).div(2 * m).sqrt()
    ends = p + half * torch.tensor([-1.0, 0.0, 1.0], dtype=torch.float64, device=p.device)
    return ends.clip(0, 1)
"""),
        Case("""
def estimate(before, after, delta):
    shares = [(row != b).double().mean() for b, row in zip(before, after)]
    p = torch.stack(shares).mean()
    log = torch.full_like(p, delta / 2).log().neg()
    half = (log / len(shares) / 2) ** 0.5
    low, high = torch.clamp(p - half, min=0), torch.clamp(p + half, max=1)
    return torch.stack((low, p, high))
"""),
        Case(ESTIMATE.replace("m = len(before)", "m = after.numel()"), "counted as independent draws"),
        Case(ESTIMATE.replace("2 / delta", "1 / delta"), "delta is not halved"),
        Case(ESTIMATE.replace("(2 * m)", "m"), "the 2 under the root is missing"),
        Case(ESTIMATE.replace("torch.sqrt(", "("), "the root is missing"),
        Case(ESTIMATE.replace(".clamp(min=0)", "").replace(".clamp(max=1)", ""), "ends at 0 and at 1"),
        Case(ESTIMATE.replace("after != before", "after == before"), "that stay the same"),
        Case(ESTIMATE.replace("(after != before.unsqueeze(1))", "after"), "not the changes"),
        Case(
            ESTIMATE.replace(
                "[(p - t).clamp(min=0), p, (p + t).clamp(max=1)]", "[(p + t).clamp(max=1), p, (p - t).clamp(min=0)]"
            ),
            "the ends are in the wrong order",
        ),
        Case(ESTIMATE.replace("(p - t).clamp(min=0), p, ", "p, t, p, "), "wrong shape"),
    ],
    "constant_or_simple": [
        Case(NETWORKS),
        Case("""
def constant_or_simple(logits, others):
    share = (logits > 0).to(logits.dtype).mean(1)
    rows = [0.5 - (share - 0.5).abs()]
    for cut in (0, logits.median(1, keepdim=True).values):
        up, near = (logits - cut).unsqueeze(2) > 0, (others - (cut if isinstance(cut, int) else cut[:, :, None])) > 0
        rows.append((up ^ near).to(logits.dtype).flatten(1).mean(1))
    return torch.stack(rows)
"""),
        Case("""
def constant_or_simple(logits, others):
    def read(cut):
        return ((others > cut[:, None, None]) != (logits > cut[:, None])[:, :, None]).double().mean(2).mean(1)
    ones = (logits > 0).sum(1)
    rare = torch.minimum(ones, logits.shape[1] - ones) / logits.shape[1]
    middle = torch.sort(logits, 1).values[:, (logits.shape[1] - 1) // 2]
    return torch.stack([rare.double(), read(torch.zeros_like(middle)), read(middle)])
"""),
        Case(NETWORKS.replace("torch.minimum(ones, 1 - ones)", "ones"), "is the share of ones"),
        Case(NETWORKS.replace("minimum", "maximum"), "the more frequent answer"),
        Case(NETWORKS.replace("x.median()", "x.mean()"), "the mean stands where the median belongs"),
        Case(NETWORKS.replace("x.median()", "logits.median()"), "one median is taken for all networks"),
        Case(NETWORKS.replace("(y > cut)", "(y > 0)"), "the neighbours are still read at 0"),
        Case(NETWORKS.replace("(y > cut)", "(y > y.median())"), "the neighbours are read at their own median"),
        Case(NETWORKS.replace("plain, split]", "split, plain]"), "the two sensitivities are exchanged"),
        Case(
            """
def constant_or_simple(logits, others):
    ones = (logits > 0).double().mean(1)
    cut = logits.median(0).values
    plain = ((logits > 0)[..., None] != (others > 0)).double().mean((1, 2))
    split = ((logits > cut)[..., None] != (others > cut[:, None])).double().mean((1, 2))
    return torch.stack([torch.minimum(ones, 1 - ones), plain, split])
""",
            "over the networks",
        ),
        Case(NETWORKS.replace("torch.stack(rows, 1)", "torch.stack(rows)"), "wrong shape"),
    ],
    "at_equal_accuracy": [
        Case(EQUAL),
        Case("""
def at_equal_accuracy(accuracy, measured, target):
    reached = accuracy >= target
    before = reached.int().cumsum(1)
    first = reached & (before == 1) & (torch.cat([torch.zeros_like(before[:, :1]), before[:, :-1]], 1) == 0)
    found = torch.where(first, measured, 0.0).sum(1)
    return torch.where(reached.any(1), found, float("inf"))
"""),
        Case("""
def at_equal_accuracy(accuracy, measured, target):
    marks = torch.arange(accuracy.shape[1], device=accuracy.device).expand_as(accuracy)
    first = torch.where(accuracy >= target, marks, accuracy.shape[1]).amin(1)
    padded = torch.cat([measured, torch.full_like(measured[:, :1], torch.inf)], 1)
    return padded.gather(1, first[:, None]).squeeze(1)
"""),
        Case(EQUAL.replace("marks[0]", "-1"), "the last mark is taken"),
        Case(EQUAL.replace("marks[0]", "run.argmax()"), "the mark of the best accuracy"),
        Case(EQUAL.replace("marks[0]", "(run - target).abs().argmin()"), "whose accuracy is nearest"),
        Case(EQUAL.replace(">= target", "> target"), "equals the target"),
        Case(
            EQUAL.replace(
                "    out = []\n",
                "    out = []\n    common = max(int((run >= target).int().argmax()) for run in accuracy)\n",
            ).replace("marks[0]", "common"),
            "all runs are read at one mark",
        ),
        Case(EQUAL.replace('values.new_tensor(float("inf"))', "values[0]"), "a run that never gets there"),
        Case(EQUAL.replace("values[marks[0]]", "run[marks[0]]"), "the accuracy itself"),
        Case(EQUAL.replace("values[marks[0]]", "values[max(int(marks[0]) - 1, 0)]"), "one mark too early"),
        Case(EQUAL.replace("torch.stack(out)", "torch.stack(out).mean()"), "wrong shape"),
    ],
    "steadied": [
        Case(STEADIED),
        Case("""
def steadied(logits, noisy, labels, share):
    p = torch.softmax(logits, dim=1)
    fit = -torch.log(p.gather(1, labels[:, None])).mean()
    moved = ((noisy - logits) ** 2).mean()
    return fit + share * (moved - fit)
"""),
        Case("""
def steadied(logits, noisy, labels, share):
    fit = (logits.logsumexp(1) - logits[torch.arange(len(labels), device=labels.device), labels]).sum() / len(labels)
    moved = (logits - noisy).pow(2).sum() / logits.numel()
    return share * moved + fit * (1 - share)
"""),
        Case(STEADIED.replace("(1 - share) * fit + share", "share * fit + (1 - share)"), "are exchanged"),
        Case(STEADIED.replace("cross_entropy(logits", "cross_entropy(noisy"), "the fit is that of the noisy inputs"),
        Case(
            STEADIED.replace("torch.nn.functional.mse_loss(noisy, logits)", "(noisy - logits).square().sum(1).mean()"),
            "summed over classes",
        ),
        Case(STEADIED.replace("mse_loss", "l1_loss"), "the change is not squared"),
        Case(
            STEADIED.replace("mse_loss(noisy, logits)", "mse_loss(noisy.softmax(-1), logits.softmax(-1))"),
            "probabilities are compared",
        ),
        Case(STEADIED.replace("(1 - share) * fit", "fit"), "the fit has full weight"),
        Case(STEADIED.replace("fit = ", "fit = -"), "the sign of the fit is wrong"),
        Case(
            STEADIED.replace("torch.nn.functional.cross_entropy(logits, labels)", "-logits.log_softmax(-1).mean()"),
            "the labels are not used",
        ),
        Case(STEADIED.replace("(logits, labels)", '(logits, labels, reduction="none")'), "wrong shape"),
    ],
}
