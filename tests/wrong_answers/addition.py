"""Answers to the exercises of lesson 04: wrong ones that people really give, and right ones written differently."""

from wrong_answers.cases import Case

WAVES = """
def wave_rows(n, period, k):
    x = torch.arange(n, dtype=torch.float64)
    angles = 2 * torch.pi * k * x / period
    return torch.stack([torch.cos(angles), torch.sin(angles)])
"""

SHARES = """
def share_of_logits(parts, stream, weight, bias, unembedding):
    scale = (stream.var(unbiased=False) + 1e-5).sqrt()
    centred = parts - parts.mean(1, keepdim=True)
    logits = (centred / scale * weight) @ unembedding.T
    share = bias @ unembedding.T
    return torch.cat([logits[:1] + share, logits[1:]])
"""

GRAM = """
def remove_waves(x, rows):
    found = torch.linalg.solve(rows @ rows.T, rows @ x)
    return x - rows.T @ found
"""

PPMI = """
def ppmi(counts):
    total = counts.sum()
    joint = counts / total
    alone = joint.sum(1)
    ratio = torch.where(counts > 0, joint / (alone[:, None] * alone[None, :]), torch.ones_like(joint))
    return torch.log(ratio).clamp(min=0)
"""

SIGNATURE = """
def error_signature(off):
    wrong = off[off != 0]
    near = (wrong.abs() <= 2).double().mean()
    tens = (wrong % 10 == 0).double().mean()
    right = (off == 0).double().mean()
    return torch.stack([near, tens, right])
"""

LENS = """
def logit_lens(parts, weight, bias, unembedding):
    stream, logits = torch.zeros_like(parts[0]), []
    for part in parts:
        stream = stream + part
        mean = stream.mean(-1, keepdim=True)
        variance = ((stream - mean) ** 2).mean(-1, keepdim=True)
        logits.append(((stream - mean) / torch.sqrt(variance + 1e-5) * weight + bias) @ unembedding.T)
    return torch.stack(logits)
"""

FILTER = """
def random_filter(directions):
    Q, R = torch.linalg.qr(directions)
    return torch.eye(directions.shape[0], dtype=directions.dtype, device=Q.device) - Q @ Q.T
"""

EXCESS = """
def excess_over_random(waves, control):
    def right(off):
        return (off == 0).double().mean()
    def small(off):
        wrong = off[off != 0]
        return (wrong.abs() < 6).double().mean()
    return torch.stack([right(control) - right(waves), small(waves) - small(control)])
"""

CASES = {
    "logit_lens": [
        Case(LENS),
        Case("""
def logit_lens(parts, weight, bias, unembedding):
    streams = torch.cumsum(parts, dim=0)
    normed = torch.nn.functional.layer_norm(streams, weight.shape, weight, bias)
    return torch.einsum("mpw,aw->mpa", normed, unembedding)
"""),
        Case("""
def logit_lens(parts, weight, bias, unembedding):
    before = parts.new_ones(len(parts), len(parts)).tril()
    streams = torch.einsum("ij,jpw->ipw", before, parts)
    streams = streams - streams.mean(2)[:, :, None]
    streams = streams / (streams.square().mean(2)[:, :, None] + 1e-5) ** 0.5
    return (weight * streams) @ unembedding.T + unembedding @ bias
"""),
        Case(LENS.replace("stream = stream + part", "stream = part"), "each module is read alone"),
        Case(
            LENS.replace("stream, logits = torch.zeros_like(parts[0]), []", "logits = []").replace(
                "stream = stream + part", "stream = parts.sum(0)"
            ),
            "every module gets the last stream",
        ),
        Case(
            """
def logit_lens(parts, weight, bias, unembedding):
    streams = parts.cumsum(1)
    return torch.nn.functional.layer_norm(streams, weight.shape, weight, bias) @ unembedding.T
""",
            "the parts are added along the problems",
        ),
        Case(
            """
def logit_lens(parts, weight, bias, unembedding):
    streams = parts.cumsum(0) - parts
    return torch.nn.functional.layer_norm(streams, weight.shape, weight, bias) @ unembedding.T
""",
            "the module's own part is left out",
        ),
        Case(
            LENS.replace("for part in parts", "for part in parts.flip(0)").replace(
                "stack(logits)", "stack(logits[::-1])"
            ),
            "from the last back",
        ),
        Case(
            """
def logit_lens(parts, weight, bias, unembedding):
    streams = torch.stack([parts[: m + 1].mean(0) for m in range(len(parts))])
    return torch.nn.functional.layer_norm(streams, weight.shape, weight, bias) @ unembedding.T
""",
            "the mean over the parts",
        ),
        Case(
            "def logit_lens(parts, weight, bias, unembedding):\n    return parts.cumsum(0) @ unembedding.T\n",
            "the norm is missing",
        ),
        Case(
            """
def logit_lens(parts, weight, bias, unembedding):
    streams, last = parts.cumsum(0), parts.sum(0)
    scale = (last.var(-1, unbiased=False, keepdim=True) + 1e-5).sqrt()
    return ((streams - streams.mean(-1, keepdim=True)) / scale * weight + bias) @ unembedding.T
""",
            "divided by the last one's standard deviation",
        ),
        Case(LENS.replace("(stream - mean) / torch.sqrt", "stream / torch.sqrt"), "the streams are not centred"),
        Case(LENS.replace(" * weight", ""), "the norm's weight is missing"),
        Case(LENS.replace(" + bias", ""), "the norm's bias is missing"),
        Case(LENS.replace("* weight + bias)", "* weight + weight * bias)"), "the bias is multiplied by the weight"),
        Case(
            LENS.replace(
                "variance = ((stream - mean) ** 2).mean(-1, keepdim=True)", "variance = stream.var(-1, keepdim=True)"
            ),
            "divided by width - 1",
        ),
    ],
    "random_filter": [
        Case(FILTER),
        Case("""
def random_filter(directions):
    return torch.diag(torch.ones_like(directions[:, 0])) - directions @ torch.linalg.pinv(directions)
"""),
        Case("""
def random_filter(directions):
    gram = directions.T @ directions
    span = directions @ torch.linalg.solve(gram, directions.T)
    return torch.diag(torch.ones_like(span[0])) - span
"""),
        Case("""
def random_filter(directions):
    U = torch.linalg.svd(directions).U[:, directions.shape[1]:]
    return U @ U.T
"""),
        Case(
            FILTER.replace("torch.eye(directions.shape[0], dtype=directions.dtype, device=Q.device) - ", ""),
            "this keeps the directions",
        ),
        Case(FILTER.replace("Q @ Q.T", "directions @ directions.T"), "the directions are treated as orthonormal"),
        Case(
            FILTER.replace("Q, R = torch.linalg.qr(directions)", "Q = directions / directions.norm(dim=0)"),
            "have length 1 but are not orthogonal",
        ),
        Case(FILTER.replace("Q @ Q.T", "2 * Q @ Q.T"), "this mirrors the directions"),
        Case(FILTER.replace(") - Q", ") + Q"), "added once more"),
        Case(FILTER.replace("Q @ Q.T", "Q[:, :1] @ Q[:, :1].T"), "only the first direction"),
        Case(FILTER.replace("qr(directions)", "qr(directions.sum(1, keepdim=True))"), "only the directions' sum"),
        Case(FILTER.replace("directions.shape[0]", "directions.shape[1]").replace("Q @ Q.T", "Q.T @ Q"), "wrong shape"),
    ],
    "excess_over_random": [
        Case(EXCESS),
        Case(
            """
def excess_over_random(waves, control):
    shares = []
    for off in (waves, control):
        wrong = off[off != 0]
        shares.append([1 - len(wrong) / len(off), float((abs(wrong) <= 5).sum()) / len(wrong)])
    (right, small), (right_control, small_control) = shares
    return torch.tensor([right_control - right, small - small_control], dtype=torch.float64)
""",
        ),
        Case("""
def excess_over_random(waves, control):
    lost = waves.ne(0).double().mean() - control.ne(0).double().mean()
    small = [off.abs().lt(6).logical_and(off.ne(0)).sum() / off.ne(0).sum().double() for off in (waves, control)]
    return torch.stack([lost, small[0] - small[1]])
"""),
        Case(
            EXCESS.replace(
                "right(control) - right(waves), small(waves) - small(control)",
                "right(waves) - right(control), small(control) - small(waves)",
            ),
            "both differences have the wrong sign",
        ),
        Case(
            EXCESS.replace("right(control) - right(waves)", "right(waves) - right(control)"),
            "the first has the wrong sign",
        ),
        Case(
            EXCESS.replace("small(waves) - small(control)", "small(control) - small(waves)"),
            "the second has the wrong sign",
        ),
        Case(
            EXCESS.replace(
                "return (wrong.abs() < 6).double().mean()", "return (wrong.abs() < 6).sum().double() / len(off)"
            ),
            "one of all problems",
        ),
        Case(EXCESS.replace("wrong = off[off != 0]", "wrong = off"), "right answers are counted as small errors"),
        Case(EXCESS.replace("< 6", "<= 6"), "an error of 6 is not below 6"),
        Case(EXCESS.replace("wrong.abs() < 6", "wrong < 6"), "the sign is forgotten"),
        Case(
            EXCESS.replace("(off == 0).double().mean()", "(off == 0).double().sum()").replace(
                "(wrong.abs() < 6).double().mean()", "(wrong.abs() < 6).double().sum()"
            ),
            "the control has more problems",
        ),
        Case(
            EXCESS.replace(
                "right(control) - right(waves), small(waves) - small(control)",
                "small(waves) - small(control), right(control) - right(waves)",
            ),
            "the two are exchanged",
        ),
        Case(
            EXCESS.replace(" - right(waves)", "")
            .replace("right(control)", "right(waves)")
            .replace(" - small(control)", ""),
            "without the control",
        ),
    ],
    "wave_rows": [
        Case(WAVES),
        Case("""
def wave_rows(n, period, k):
    rows = torch.zeros(2, n, dtype=torch.float64)
    for x in range(n):
        angle = torch.tensor(2 * torch.pi * k * x / period, dtype=torch.float64)
        rows[0, x], rows[1, x] = angle.cos(), angle.sin()
    return rows
"""),
        Case("""
def wave_rows(n, period, k):
    turns = torch.arange(n, dtype=torch.float64) * k / period
    wave = torch.polar(torch.ones_like(turns), 2 * torch.pi * turns)
    return torch.view_as_real(wave).T
"""),
        Case("""
def wave_rows(n, period, k):
    x = torch.arange(n, dtype=torch.float64).expand(2, n)
    shift = torch.tensor([[0.0], [0.5]], dtype=torch.float64) * torch.pi
    return torch.cos(2 * torch.pi * x * k / period - shift)
"""),
        Case(
            WAVES.replace("[torch.cos(angles), torch.sin(angles)]", "[torch.sin(angles), torch.cos(angles)]"),
            "the sine comes first",
        ),
        Case(WAVES.replace("/ period", "/ n"), "divides by n"),
        Case(WAVES.replace("2 * torch.pi * ", ""), "the factor 2 pi is missing"),
        Case(WAVES.replace("2 * torch.pi", "torch.pi"), "the factor is pi, half a turn"),
        Case(WAVES.replace("arange(n,", "arange(1, n + 1,"), "starts at x = 1"),
        Case(WAVES.replace("2 * torch.pi", "360"), "angles are in degrees"),
        Case(WAVES.replace("torch.pi * k", "torch.pi"), "k is missing"),
        Case(WAVES.replace("* k * x / period", "* x / (k * period)"), "divides by k"),
        Case(
            WAVES.replace("return torch.stack", "rows = torch.stack")
            + "    return rows / rows.norm(dim=1, keepdim=True)\n",
            "brought to length 1",
        ),
        Case(WAVES.replace("torch.sin(angles)]", "-torch.sin(angles)]"), "the sine has the wrong sign"),
        Case(WAVES.replace("])", "], dim=1)"), "transpose of the right shape"),
        Case(WAVES.replace(", dtype=torch.float64", ""), "wrong dtype torch.float32"),
        Case(WAVES.replace("torch.stack", "torch.cat"), "wrong shape"),
        Case(
            """
def wave_rows(n, period, k):
    x = torch.arange(n, dtype=torch.float64) / n
    angles = 2 * torch.pi * k * x / period
    return torch.stack([angles.cos(), angles.sin()])
""",
            "divided by n",
        ),
        Case(
            """
def wave_rows(n, period, k):
    x = torch.arange(n, dtype=torch.float64)
    angles = 2 * torch.pi * x / period
    return torch.stack([angles.cos(), (k * angles).sin()])
""",
            "in one place of several, the factor k is missing",
        ),
        Case(
            """
def wave_rows(n, period, k):
    x = torch.arange(n, dtype=torch.float64)
    angles = 2 * torch.pi * (k + 1) * x / period
    return torch.stack([angles.cos(), angles.sin()])
""",
            "one more than k is used",
        ),
    ],
    "share_of_logits": [
        Case(SHARES),
        Case("""
def share_of_logits(parts, stream, weight, bias, unembedding):
    shares = []
    for m, part in enumerate(parts):
        variance = ((stream - stream.mean()) ** 2).mean()
        normed = weight * (part - part.mean()) / torch.sqrt(variance + 1e-5)
        if m == 0:
            normed = normed + bias
        shares.append(unembedding @ normed)
    return torch.stack(shares)
"""),
        Case("""
def share_of_logits(parts, stream, weight, bias, unembedding):
    width = len(stream)
    centre = torch.eye(width, dtype=parts.dtype, device=parts.device) - 1 / width
    scale = torch.rsqrt((centre @ stream).square().mean() + 1e-5)
    read = centre @ (weight * unembedding * scale).T
    shares = parts @ read
    shares[0] += unembedding @ bias
    return shares
"""),
        Case("""
def share_of_logits(parts, stream, weight, bias, unembedding):
    full = torch.nn.functional.layer_norm(stream, stream.shape, weight, bias, 1e-5) @ unembedding.T
    scale = (stream.var(correction=0) + 1e-5) ** 0.5
    others = torch.einsum("mw,w,aw->ma", (parts - parts.mean(-1, keepdim=True))[1:], weight / scale, unembedding)
    return torch.cat([(full - others.sum(0))[None], others])
"""),
        Case(
            SHARES.replace("stream.var(unbiased=False)", "parts.var(1, unbiased=False, keepdim=True)"),
            "divided by its own standard deviation",
        ),
        Case(SHARES.replace(" - parts.mean(1, keepdim=True)", ""), "the parts are not centred"),
        Case(
            SHARES.replace("parts.mean(1, keepdim=True)", "stream.mean()"), "the stream's mean is taken from each part"
        ),
        Case(SHARES.replace(" * weight", ""), "the norm's weight is missing"),
        Case(SHARES.replace(" + share", ""), "the norm's bias is missing"),
        Case(
            SHARES.replace("return torch.cat([logits[:1] + share, logits[1:]])", "return logits + share"),
            "added to every part",
        ),
        Case(
            SHARES.replace("return torch.cat([logits[:1] + share, logits[1:]])", "return logits + share / len(parts)"),
            "the bias is split over the parts",
        ),
        Case(SHARES.replace("= bias @", "= (weight * bias) @"), "the bias is multiplied by the weight"),
        Case(SHARES.replace("unbiased=False", "unbiased=True"), "divided by width - 1"),
        Case(SHARES.replace(").sqrt()", ")"), "divides by the variance"),
        Case(SHARES.replace("stream.var(unbiased=False)", "stream.square().mean()"), "root mean square"),
        Case(SHARES.replace(" + 1e-5", ""), "eps = 1e-5 is missing"),
        Case(
            SHARES.replace("(stream.var(unbiased=False) + 1e-5).sqrt()", "stream.std(unbiased=False) + 1e-5"),
            "eps is added to",
        ),
        Case(
            SHARES.replace("return torch.cat([logits[:1] + share, logits[1:]])", "return logits.sum(0) + share"),
            "wrong shape",
        ),
        Case(
            """
def share_of_logits(parts, stream, weight, bias, unembedding):
    centred = parts - parts.mean(1, keepdim=True)
    normed = centred * weight
    normed = torch.cat([normed[:1] + bias, normed[1:]])
    return normed @ unembedding.T
""",
            "is not divided by scale",
        ),
        Case(
            """
def share_of_logits(parts, stream, weight, bias, unembedding):
    scale = (parts.var(1, unbiased=False).sum() + 1e-5).sqrt()
    normed = (parts - parts.mean(1, keepdim=True)) / scale * weight
    normed = torch.cat([normed[:1] + bias, normed[1:]])
    return normed @ unembedding.T
""",
            "does not use its argument stream",
        ),
        Case(
            """
def share_of_logits(parts, stream, weight, bias, unembedding):
    scale = (stream.var(unbiased=False) + 1e-5).sqrt()
    normed = (parts - parts.mean(0)) / scale * weight
    normed = torch.cat([normed[:1] + bias, normed[1:]])
    return normed @ unembedding.T
""",
            "runs along the first axis",
        ),
    ],
    "remove_waves": [
        Case(GRAM),
        Case("def remove_waves(x, rows):\n    return x - torch.linalg.pinv(rows) @ (rows @ x)\n"),
        Case("""
def remove_waves(x, rows):
    orthonormal, _ = torch.linalg.qr(rows.T)
    return x - orthonormal @ (orthonormal.T @ x)
"""),
        Case("""
def remove_waves(x, rows):
    _, _, directions = torch.linalg.svd(rows, full_matrices=True)
    free = directions[len(rows):]
    return free.T @ (free @ x)
"""),
        Case("""
def remove_waves(x, rows):
    kept = []
    for row in rows:
        for other in kept:
            row = row - (other @ row) * other
        kept.append(row / row.norm())
    y = x
    for direction in kept:
        y = y - (direction @ y) * direction
    return y
"""),
        Case("def remove_waves(x, rows):\n    return x - rows.T @ (rows @ x)\n", "treated as orthonormal"),
        Case(
            "def remove_waves(x, rows):\n    unit = rows / rows.norm(dim=1, keepdim=True)\n"
            "    return x - unit.T @ (unit @ x)\n",
            "length 1 but are not orthogonal",
        ),
        Case(
            "def remove_waves(x, rows):\n    for row in rows:\n"
            "        x = x - (row @ x) / row.norm() ** 2 * row\n    return x\n",
            "one row after the other",
        ),
        Case(GRAM.replace("x - rows", "rows"), "this is the part that goes"),
        Case(GRAM.replace("x - rows", "x + rows"), "the part is added"),
        Case(
            "def remove_waves(x, rows):\n    row = rows[0]\n    return x - (row @ x) / (row @ row) * row\n",
            "only the first row",
        ),
        Case(
            "def remove_waves(x, rows):\n    row = rows.sum(0)\n    return x - (row @ x) / (row @ row) * row\n",
            "only the rows' sum",
        ),
        Case(
            "def remove_waves(x, rows):\n    return x - rows.T @ (rows @ rows.T) @ (rows @ x)\n", "its inverse is due"
        ),
        Case("def remove_waves(x, rows):\n    return rows @ x\n", "wrong shape"),
        Case("def remove_waves(x, rows):\n    return x\n", "unchanged"),
        Case("def remove_waves(x, rows):\n    return x * 0\n", "every entry is 0"),
        Case(
            """
def remove_waves(x, rows):
    unit = rows / rows.norm(dim=1, keepdim=True)
    return x - rows.T @ (unit @ x)
""",
            "only the root of the diagonal",
        ),
        Case(
            """
def remove_waves(x, rows):
    row = rows[-1]
    return x - (row @ x) / (row @ row) * row
""",
            "only the last row",
        ),
    ],
    "ppmi": [
        Case(PPMI),
        Case("""
def ppmi(counts):
    n, total = len(counts), counts.sum()
    out = torch.zeros_like(counts)
    for i in range(n):
        for j in range(n):
            if counts[i, j] > 0:
                out[i, j] = max(0.0, torch.log(counts[i, j] * total / (counts[i].sum() * counts[j].sum())))
    return out
"""),
        Case("""
def ppmi(counts):
    joint = counts / counts.sum()
    expected = joint.sum(1, keepdim=True) @ joint.sum(0, keepdim=True)
    return (joint / expected).log().nan_to_num(nan=0.0, neginf=0.0).relu()
"""),
        Case("""
def ppmi(counts):
    rows = counts.sum(1).log()
    information = counts.log() + counts.sum().log() - rows[:, None] - rows[None, :]
    return torch.where(information > 0, information, 0.0).where(counts > 0, torch.zeros_like(counts))
"""),
        Case(
            PPMI.replace("(alone[:, None] * alone[None, :])", "alone[:, None]"), "every entry is 0: no ratio is above 1"
        ),
        Case(PPMI.replace("joint = counts / total", "joint = counts"), "every entry is 0: no ratio is above 1"),
        Case(
            PPMI.replace("joint / (alone[:, None] * alone[None, :])", "joint"), "every entry is 0: no ratio is above 1"
        ),
        Case(PPMI.replace(".clamp(min=0)", ""), "negative values are kept"),
        Case(PPMI.replace(".clamp(min=0)", ".abs()"), "not the absolute value"),
        Case(PPMI.replace("torch.log(", "torch.log2("), "information in bits"),
        Case(PPMI.replace("torch.log(ratio)", "(ratio * (counts > 0))"), "the logarithm is missing"),
        Case(
            PPMI.replace("torch.log(ratio).clamp(min=0)", "torch.where((ratio > 1) & (counts > 0), ratio, 0.0)"),
            "a ratio below 1, not below 0",
        ),
        Case(
            PPMI.replace("torch.log(ratio)", "torch.log(1 + ratio * (counts > 0))"), "1 is added within the logarithm"
        ),
        Case(PPMI.replace("joint / (alone", "counts / (alone"), "p_ij is a count"),
        Case(PPMI.replace("joint.sum(1)", "joint.mean(1)"), "p_i is a mean over the row"),
        Case(PPMI.replace("joint.sum(1)", "joint.diagonal()"), "p_i is taken from the diagonal"),
        Case(PPMI.replace("joint.sum(1)", "joint.diagonal() / joint.trace()"), "the diagonal's share of the diagonal"),
        Case(
            "def ppmi(counts):\n    p = counts / counts.sum()\n"
            "    return (p / torch.outer(p.sum(1), p.sum(1))).log().clamp(min=0)\n",
            "are NaN or infinite",
        ),
        Case(
            "def ppmi(counts):\n    p = counts / counts.sum()\n"
            "    q = p.sum(1).log()\n    return (p.log() - q[:, None] - q).relu()\n",
            "are NaN or infinite",
        ),
        Case(
            """
def ppmi(counts):
    counts = counts + 1
    p = counts / counts.sum()
    alone = p.sum(1)
    return (p / torch.outer(alone, alone)).log().clamp(min=0)
""",
            "1 is added to counts",
        ),
        Case(
            """
def ppmi(counts):
    counts = counts - torch.diag(counts.diagonal())
    p = counts / counts.sum()
    alone = p.sum(1)
    return (p / torch.outer(alone, alone)).log().nan_to_num(nan=0.0, neginf=0.0).clamp(min=0)
""",
            "the diagonal of counts is left out",
        ),
    ],
    "error_signature": [
        Case(SIGNATURE),
        Case(
            SIGNATURE.replace(
                "torch.stack([near, tens, right])", "torch.tensor([near, tens, right], dtype=torch.float64)"
            )
        ),
        Case(
            SIGNATURE.replace(
                "torch.stack([near, tens, right])",
                "torch.tensor([near.item(), tens.item(), right.item()], dtype=torch.float64)",
            )
        ),
        Case("""
def error_signature(off):
    errors = right = near = tens = 0
    for each in off:
        if each == 0:
            right += 1
            continue
        errors += 1
        near += -2 <= each <= 2
        tens += each % 10 == 0
    return torch.tensor([near / errors, tens / errors, right / len(off)], dtype=torch.float64)
"""),
        Case("""
def error_signature(off):
    wrong = off.ne(0)
    flags = torch.stack([off.abs().le(2) & wrong, off.remainder(10).eq(0) & wrong, ~wrong]).double()
    return flags.sum(1) / torch.stack([wrong.sum(), wrong.sum(), torch.ones_like(off).sum()])
"""),
        Case("""
def error_signature(off):
    size = off.abs()
    counts = torch.bincount(size, minlength=11).double()
    errors = counts[1:].sum()
    return torch.stack([counts[1:3].sum() / errors, counts[10::10].sum() / errors, counts[0] / counts.sum()])
"""),
        Case(SIGNATURE.replace("wrong = off[off != 0]", "wrong = off"), "right answers are counted as errors"),
        Case(
            SIGNATURE.replace("return", "share = (off != 0).double().mean()\n    return").replace(
                "[near, tens,", "[near * share, tens * share,"
            ),
            "shares of all problems",
        ),
        Case(SIGNATURE.replace("wrong.abs() <= 2", "wrong <= 2"), "the sign is forgotten"),
        Case(SIGNATURE.replace("(wrong.abs() <= 2)", "((wrong > 0) & (wrong <= 2))"), "errors below 0 are left out"),
        Case(SIGNATURE.replace("off[off != 0]", "off[off > 0]"), "only answers that are too large"),
        Case(SIGNATURE.replace("<= 2", "< 2"), "an error of 2 is within 2"),
        Case(SIGNATURE.replace("% 10", "% 5"), "multiples of 5"),
        Case(SIGNATURE.replace("wrong % 10 == 0", "wrong.abs() == 10"), "only errors of exactly 10"),
        Case(SIGNATURE.replace("(off == 0)", "(off != 0)"), "the share of wrong answers"),
        Case(SIGNATURE.replace("[near, tens,", "[tens, near,"), "the first two are exchanged"),
        Case(
            SIGNATURE.replace("(off != 0)", "(off)").replace(".double().mean()", ".double().sum()"),
            "counts; divide them",
        ),
        Case(SIGNATURE.replace(".double()", ".float()"), None, advice="float32"),
        Case(
            SIGNATURE.replace(
                "return torch.stack([near, tens, right])", "return 100 * torch.stack([near, tens, right])"
            ),
            "100 times",
        ),
        Case(SIGNATURE.replace("[near, tens, right]", "[near, tens]"), "wrong shape"),
        Case(
            """
def error_signature(off):
    wrong = off[off != 0]
    near = (off.abs() <= 2).double().mean()
    tens = (wrong % 10 == 0).double().mean()
    right = (off == 0).double().mean()
    return torch.stack([near, tens, right])
""",
            "off is used where wrong belongs",
        ),
        Case(
            """
def error_signature(off):
    wrong = off[off != 0]
    near = (wrong.abs() <= 2).double().mean()
    tens = (wrong.abs() // 10 == 0).double().mean()
    right = (off == 0).double().mean()
    return torch.stack([near, tens, right])
""",
            "the quotient of",
        ),
    ],
}
