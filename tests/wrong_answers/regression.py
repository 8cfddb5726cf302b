"""Answers to the exercises on in-context regression: wrong ones that people really give, and right ones written differently."""

from wrong_answers.cases import Case

CASES = {
    "triplet_tokens": [
        Case("""
def triplet_tokens(xs, ys):
    batch, n, d = xs.shape
    out = xs.new_zeros(batch, n, 2 * d + 1)
    for t in range(n):
        if t > 0:
            out[:, t, :d] = xs[:, t - 1]
            out[:, t, d] = ys[:, t - 1]
        out[:, t, d + 1:] = xs[:, t]
    return out
"""),
        Case("""
def triplet_tokens(xs, ys):
    x0 = torch.nn.functional.pad(xs, (0, 0, 1, 0))[:, :-1]
    y0 = torch.nn.functional.pad(ys, (1, 0))[:, :-1]
    return torch.cat([x0, y0.unsqueeze(-1), xs], 2)
"""),
        Case("""
def triplet_tokens(xs, ys):
    joined = torch.cat([xs, ys[..., None]], -1).roll(1, dims=1)
    keep = (torch.arange(xs.shape[1], device=xs.device) > 0)[None, :, None]
    return torch.cat([joined * keep, xs], -1)
"""),
        Case("""
def triplet_tokens(xs, ys):
    examples = torch.cat([xs, ys[..., None]], dim=-1)
    return torch.cat([torch.cat([torch.zeros_like(examples[:, :1]), examples[:, :-1]], dim=1), xs], dim=-1)
"""),
        Case(
            """
def triplet_tokens(xs, ys):
    return torch.cat([xs, ys[..., None], xs], dim=-1)
""",
            "holds its own example",
        ),
        Case(
            """
def triplet_tokens(xs, ys):
    x0 = torch.nn.functional.pad(xs, (0, 0, 1, 0))[:, :-1]
    return torch.cat([x0, ys[..., None], xs], dim=-1)
""",
            "the answer leaks",
        ),
        Case(
            """
def triplet_tokens(xs, ys):
    return torch.cat([torch.roll(xs, 1, 1), torch.roll(ys, 1, 1)[..., None], xs], dim=-1)
""",
            "torch.roll wraps around",
        ),
        Case(
            """
def triplet_tokens(xs, ys):
    out = torch.zeros(xs.shape[0], xs.shape[1], 2 * xs.shape[2] + 1, dtype=xs.dtype, device=xs.device)
    d = xs.shape[2]
    for t in range(2, xs.shape[1]):
        out[:, t, :d], out[:, t, d] = xs[:, t - 2], ys[:, t - 2]
    out[:, :, d + 1:] = xs
    return out
""",
            "shifted by two places",
        ),
        Case(
            """
def triplet_tokens(xs, ys):
    x0 = torch.nn.functional.pad(xs, (0, 0, 0, 1))[:, 1:]
    y0 = torch.nn.functional.pad(ys, (0, 1))[:, 1:]
    return torch.cat([x0, y0[..., None], xs], dim=-1)
""",
            "lies in the future",
        ),
        Case(
            """
def triplet_tokens(xs, ys):
    x0 = torch.nn.functional.pad(xs, (0, 0, 1, 0))[:, :-1]
    y0 = torch.nn.functional.pad(ys, (1, 0))[:, :-1]
    return torch.cat([xs, x0, y0[..., None]], dim=-1)
""",
            "here x_t comes first",
        ),
        Case(
            """
def triplet_tokens(xs, ys):
    x0 = torch.nn.functional.pad(xs, (0, 0, 1, 0))[:, :-1]
    y0 = torch.nn.functional.pad(ys, (1, 0))[:, :-1]
    return torch.cat([x0, xs, y0[..., None]], dim=-1)
""",
            "here y_{t-1} comes last",
        ),
        Case(
            """
def triplet_tokens(xs, ys):
    return torch.cat([xs, torch.nn.functional.pad(ys, (1, 0))[:, :-1, None], xs], dim=-1)
""",
            "the inputs beside them are not",
        ),
        Case(
            """
def triplet_tokens(xs, ys):
    x0 = torch.cat([torch.zeros_like(xs[:1]), xs[:-1]])
    y0 = torch.cat([torch.zeros_like(ys[:1]), ys[:-1]])
    return torch.cat([x0, y0[..., None], xs], dim=-1)
""",
            "shifted along the batch",
        ),
        Case(
            """
def triplet_tokens(xs, ys):
    examples = torch.cat([xs, ys[..., None]], dim=-1)
    return torch.cat([examples[:, :-1], xs[:, 1:]], dim=-1)
""",
            "wrong shape",
        ),
        Case(
            """
def triplet_tokens(xs, ys):
    out = torch.zeros(xs.shape[0], xs.shape[1], 2 * xs.shape[2] + 1)
    d = xs.shape[2]
    out[:, 1:, :d], out[:, 1:, d], out[:, :, d + 1:] = xs[:, :-1], ys[:, :-1], xs
    return out
""",
            "wrong dtype",
        ),
        Case(
            """
def triplet_tokens(xs, ys):
    return torch.cat([xs, ys, xs], dim=-1)
""",
            "raises RuntimeError",
        ),
    ],
    "newton_step": [
        Case("def newton_step(M, S):\n    return M @ (2 * torch.eye(len(S), dtype=S.dtype, device=S.device) - S @ M)"),
        Case("def newton_step(M, S):\n    return M + M - torch.einsum('ij,jk,kl->il', M, S, M)"),
        Case("def newton_step(M, S):\n    return torch.sub(2 * M, torch.matmul(M, torch.matmul(S, M)))"),
        Case("""
def newton_step(M, S):
    out = M.clone()
    out *= 2
    out -= M @ (S @ M)
    return out
"""),
        Case("def newton_step(M, S):\n    return M - M @ S @ M", "factor 2 is missing"),
        Case("def newton_step(M, S):\n    return 2 * M + M @ S @ M", "must be subtracted"),
        Case("def newton_step(M, S):\n    return 2 * M - S @ M @ S", "S that stands in the middle"),
        Case("def newton_step(M, S):\n    return 2 * M - M * S * M", "entry by entry"),
        Case("def newton_step(M, S):\n    return 2 * M - torch.mm(M, S)", "only one M"),
        Case("def newton_step(M, S):\n    return 2 * M - S @ M", "not S M"),
        Case("def newton_step(M, S):\n    return 2 * S - S @ M @ S", "swapped"),
        Case("def newton_step(M, S):\n    return torch.inverse(S)", "where the iteration ends"),
        Case("def newton_step(M, S):\n    return 2 * M - M @ S @ M.T", "transposed"),
        Case("def newton_step(M, S):\n    return 2 * torch.eye(len(S), dtype=S.dtype) - S @ M", "multiply by M"),
        Case("def newton_step(M, S):\n    M *= 2\n    return M - M @ S @ M / 4", "in place"),
        Case("def newton_step(M, S):\n    M = 2 * M - M @ S @ M\n    return 2 * M - M @ S @ M", "after two steps"),
        Case("def newton_step(M, S):\n    M = 2 * M - M @ S @ M", "`return` missing"),
        Case("def newton_step(M, S):\n    return M @ (2 * torch.eye(len(S)) - S @ M)", "makes a tensor on the CPU"),
        Case("def newton_step(M, S):\n    return 2 * M - (M @ S @ M).sum(0)", "wrong values"),
        Case("def newton_step(M, S):\n    return -(2 * M - M @ S @ M)", "sign is flipped"),
        Case("def newton_step(M, S):\n    return M - M @ S @ M / 2", "0.5 times"),
    ],
    "gd_closed_form": [
        Case("""
def gd_closed_form(S, b, lr, steps):
    w = torch.zeros_like(b)
    for _ in range(steps):
        w = w - lr * (S @ w - b)
    return w
"""),
        Case("""
def gd_closed_form(S, b, lr, steps):
    left = torch.linalg.matrix_power(torch.eye(len(b), dtype=b.dtype, device=b.device) - lr * S, steps)
    solution = torch.linalg.solve(S, b)
    return solution - left @ solution
"""),
        Case("""
def gd_closed_form(S, b, lr, steps):
    lam, V = torch.linalg.eigh(S)
    share = lr * sum((1 - lr * lam) ** k for k in range(steps))
    return V @ (share * (V.T @ b))
"""),
        Case("""
def gd_closed_form(S, b, lr, steps):
    lam, V = torch.linalg.eigh(S)
    return torch.einsum('ij,j,kj,k->i', V, (1 - (1 - lr * lam) ** steps) / lam, V, b)
"""),
        Case(
            """
def gd_closed_form(S, b, lr, steps):
    w = torch.zeros_like(b)
    for _ in range(steps + 1):
        w = w - lr * (S @ w - b)
    return w
""",
            "one step too many",
        ),
        Case(
            """
def gd_closed_form(S, b, lr, steps):
    w = torch.zeros_like(b)
    for _ in range(1, steps):
        w = w - lr * (S @ w - b)
    return w
""",
            "one step too few",
        ),
        Case(
            """
def gd_closed_form(S, b, lr, steps):
    lam, V = torch.linalg.eigh(S)
    return V @ ((1 - (1 - lr * lam) ** steps) * (V.T @ b))
""",
            "divided by its eigenvalue",
        ),
        Case(
            """
def gd_closed_form(S, b, lr, steps):
    lam, V = torch.linalg.eigh(S)
    return V @ ((1 - lr * lam) ** steps / lam * (V.T @ b))
""",
            "what is left to do",
        ),
        Case(
            """
def gd_closed_form(S, b, lr, steps):
    lam, V = torch.linalg.eigh(S)
    return (1 - (1 - lr * lam) ** steps) / lam * (V.T @ b)
""",
            "rotate back",
        ),
        Case(
            """
def gd_closed_form(S, b, lr, steps):
    lam, V = torch.linalg.eigh(S)
    return V @ ((1 - (1 - lr * lam) ** steps) / lam * b)
""",
            "not rotated into",
        ),
        Case(
            """
def gd_closed_form(S, b, lr, steps):
    lam, V = torch.linalg.eigh(S)
    return V.T @ ((1 - (1 - lr * lam) ** steps) / lam * (V @ b))
""",
            "swapped",
        ),
        Case("def gd_closed_form(S, b, lr, steps):\n    return torch.linalg.solve(S, b)", "where gradient descent ends"),
        Case("def gd_closed_form(S, b, lr, steps):\n    return steps * lr * b", "exchanged"),
        Case(
            """
def gd_closed_form(S, b, lr, steps):
    lam, V = torch.linalg.eigh(S)
    return V @ ((1 - (1 - lr * lam) ** (2 ** steps)) / lam * (V.T @ b))
""",
            "Newton's share",
        ),
        Case(
            """
def gd_closed_form(S, b, lr, steps):
    w = torch.zeros_like(b)
    for _ in range(steps):
        w = w - 2 * lr * (S @ w - b)
    return w
""",
            "without a factor 2",
        ),
        Case(
            """
def gd_closed_form(S, b, lr, steps):
    w = torch.zeros(len(b), 1, dtype=b.dtype)
    for _ in range(steps):
        w = w - lr * (S @ w - b[:, None])
    return w
""",
            "wrong shape",
        ),
        Case(
            """
def gd_closed_form(S, b, lr, steps):
    w = torch.zeros(len(b))
    for _ in range(steps):
        w = w - lr * (S @ w - b)
    return w
""",
            "another dtype",
        ),
        Case(
            """
def gd_closed_form(S, b, lr, steps):
    w = torch.zeros_like(b)
    for _ in range(steps):
        w = w + lr * (S @ w - b)
    return w
""",
            "wrong values",
        ),
    ],
    "similarity_of_errors": [
        Case("""
def similarity_of_errors(first, second, ys):
    total = 0
    for p, q, y in zip(first, second, ys):
        a, b = (y - p)[1:], (y - q)[1:]
        total = total + a @ b / (a.norm() * b.norm())
    return total / len(ys)
"""),
        Case("""
def similarity_of_errors(first, second, ys):
    a = torch.nn.functional.normalize((first - ys)[:, 1:], dim=1)
    b = torch.nn.functional.normalize((second - ys)[:, 1:], dim=1)
    return (a * b).sum() / len(a)
"""),
        Case("""
def similarity_of_errors(first, second, ys):
    a, b = (ys - first)[:, 1:], (ys - second)[:, 1:]
    return torch.cosine_similarity(a, b, -1).mean()
"""),
        Case("""
def similarity_of_errors(first, second, ys):
    a, b = ys[:, 1:] - first[:, 1:], ys[:, 1:] - second[:, 1:]
    dots = torch.einsum('bn,bn->b', a, b)
    return (dots / torch.sqrt(a.pow(2).sum(1) * b.pow(2).sum(1))).mean()
"""),
        Case(
            """
def similarity_of_errors(first, second, ys):
    return torch.cosine_similarity(ys - first, ys - second, dim=-1).mean()
""",
            "leave position 0 out",
        ),
        Case(
            """
def similarity_of_errors(first, second, ys):
    return torch.cosine_similarity((ys - first)[:, :-1], (ys - second)[:, :-1], dim=-1).mean()
""",
            "the last position is left out",
        ),
        Case(
            """
def similarity_of_errors(first, second, ys):
    return torch.cosine_similarity(first[:, 1:], second[:, 1:], dim=-1).mean()
""",
            "between the predictions",
        ),
        Case(
            """
def similarity_of_errors(first, second, ys):
    a, b = (ys - first)[:, 1:].reshape(-1), (ys - second)[:, 1:].reshape(-1)
    return a @ b / (a.norm() * b.norm())
""",
            "over the whole batch",
        ),
        Case(
            """
def similarity_of_errors(first, second, ys):
    return torch.cosine_similarity((ys - first)[:, 1:], (ys - second)[:, 1:], dim=0).mean()
""",
            "over the positions of one prompt",
        ),
        Case(
            """
def similarity_of_errors(first, second, ys):
    a, b = (ys - first)[:, 1:], (ys - second)[:, 1:]
    return torch.stack([torch.corrcoef(torch.stack([p, q]))[0, 1] for p, q in zip(a, b)]).mean()
""",
            "correlation",
        ),
        Case(
            """
def similarity_of_errors(first, second, ys):
    return ((ys - first)[:, 1:] * (ys - second)[:, 1:]).sum(1).mean()
""",
            "not divided by the two lengths",
        ),
        Case(
            """
def similarity_of_errors(first, second, ys):
    return torch.cosine_similarity((ys - first)[:, 1:], (ys - second)[:, 1:]).sum()
""",
            "not divided by their number",
        ),
        Case(
            """
def similarity_of_errors(first, second, ys):
    return torch.cosine_similarity(((ys - first) ** 2)[:, 1:], ((ys - second) ** 2)[:, 1:]).mean()
""",
            "squared before the cosine",
        ),
        Case(
            """
def similarity_of_errors(first, second, ys):
    return torch.cosine_similarity((ys - first).abs()[:, 1:], (ys - second).abs()[:, 1:]).mean()
""",
            "lost their signs",
        ),
        Case(
            """
def similarity_of_errors(first, second, ys):
    return torch.cosine_similarity((ys - first)[:, 1:], (ys - second)[:, 1:])
""",
            "wrong shape",
        ),
        Case(
            """
def similarity_of_errors(first, second, ys):
    return torch.cosine_similarity((ys - first)[:, 1:], (ys - second)[:, 1:]).mean().item()
""",
            "returns float, not a tensor",
        ),
        Case(
            """
def similarity_of_errors(first, second, ys):
    first -= ys
    second -= ys
    return torch.cosine_similarity(first[:, 1:], second[:, 1:]).mean()
""",
            "in place",
        ),
        Case(
            """
def similarity_of_errors(first, second, ys):
    return -torch.cosine_similarity((ys - first)[:, 1:], (second - ys)[:, 1:]).mean() * -1
""",
            "sign is flipped",
        ),
    ],
    "readout_predictions": [
        Case("""
def readout_predictions(hidden, targets, fresh):
    H = torch.cat([hidden, torch.ones(len(hidden), 1, dtype=hidden.dtype, device=hidden.device)], 1)
    F = torch.cat([fresh, torch.ones(len(fresh), 1, dtype=hidden.dtype, device=hidden.device)], 1)
    return F @ torch.linalg.solve(H.T @ H, H.T @ targets)
"""),
        Case("""
def readout_predictions(hidden, targets, fresh):
    mean, middle = hidden.mean(0), targets.mean()
    w = torch.linalg.pinv(hidden - mean) @ (targets - middle)
    return (fresh - mean) @ w + middle
"""),
        Case("""
def readout_predictions(hidden, targets, fresh):
    one = lambda h: torch.nn.functional.pad(h, (0, 1), value=1.0)
    return (one(fresh) @ torch.linalg.lstsq(one(hidden), targets.unsqueeze(1)).solution).squeeze(1)
"""),
        Case("""
def readout_predictions(hidden, targets, fresh):
    H = torch.column_stack([torch.ones_like(targets), hidden])
    Q, R = torch.linalg.qr(H)
    w = torch.linalg.solve_triangular(R, (Q.T @ targets)[:, None], upper=True)[:, 0]
    return w[0] + fresh @ w[1:]
"""),
        Case(
            """
def readout_predictions(hidden, targets, fresh):
    return fresh @ torch.linalg.lstsq(hidden, targets[:, None]).solution[:, 0]
""",
            "no intercept",
        ),
        Case(
            """
def readout_predictions(hidden, targets, fresh):
    H = torch.cat([hidden, torch.ones_like(hidden[:, :1])], 1)
    return fresh @ torch.linalg.lstsq(H, targets[:, None]).solution[:-1, 0]
""",
            "missing from the predictions",
        ),
        Case(
            """
def readout_predictions(hidden, targets, fresh):
    w = torch.linalg.pinv(hidden - hidden.mean(0)) @ (targets - targets.mean())
    return fresh @ w + targets.mean()
""",
            "not taken out of fresh",
        ),
        Case(
            """
def readout_predictions(hidden, targets, fresh):
    w = torch.linalg.pinv(hidden - hidden.mean(0)) @ (targets - targets.mean())
    return (fresh - fresh.mean(0)) @ w + targets.mean()
""",
            "centred by its own mean",
        ),
        Case(
            """
def readout_predictions(hidden, targets, fresh):
    H = torch.cat([hidden, torch.ones_like(hidden[:, :1])], 1)
    F = torch.cat([fresh, torch.ones_like(fresh[:, :1])], 1)
    return F @ H.T @ targets
""",
            "not yet divided by H^T H",
        ),
        Case(
            """
def readout_predictions(hidden, targets, fresh):
    return targets.mean().expand(len(fresh))
""",
            "mean of the targets",
        ),
        Case(
            """
def readout_predictions(hidden, targets, fresh):
    H = torch.cat([hidden, torch.ones_like(hidden[:, :1])], 1)
    F = torch.cat([fresh, torch.ones_like(fresh[:, :1])], 1)
    eye = torch.eye(H.shape[1], dtype=H.dtype, device=H.device)
    return F @ torch.linalg.solve(H.T @ H + eye, H.T @ targets)
""",
            "ridge penalty",
        ),
        Case(
            """
def readout_predictions(hidden, targets, fresh):
    H = torch.cat([hidden, torch.ones_like(hidden[:, :1])], 1)
    F = torch.cat([fresh, torch.ones_like(fresh[:, :1])], 1)
    return F @ torch.linalg.lstsq(H, targets[:, None]).solution
""",
            "wrong shape",
        ),
        Case(
            """
def readout_predictions(hidden, targets, fresh):
    H = torch.cat([hidden, torch.ones_like(hidden[:, :1])], 1)
    return (H @ torch.linalg.lstsq(H, targets[:, None]).solution)[:, 0]
""",
            "wrong shape",
        ),
        Case(
            """
def readout_predictions(hidden, targets, fresh):
    H = torch.cat([hidden, torch.ones_like(hidden[:, :1])], 1)
    return H @ torch.linalg.solve(H, targets)
""",
            "raises",
        ),
        Case(
            """
def readout_predictions(hidden, targets, fresh):
    H = torch.cat([hidden, torch.ones(len(hidden), 1)], 1).float()
    F = torch.cat([fresh, torch.ones(len(fresh), 1)], 1).float()
    return F @ (torch.linalg.pinv(H) @ targets.float())
""",
            "wrong dtype",
        ),
    ],
    "newton_layer": [
        Case("def newton_layer(a, b):\n    return 2 * a - (a @ b.T) @ a"),
        Case("""
def newton_layer(a, b):
    s = torch.einsum('id,jd->ij', a, b) / -2
    a = a + s.clamp(min=0) @ a - (-s).clamp(min=0) @ a
    return a + a
"""),
        Case("""
def newton_layer(a, b):
    rows = []
    for i in range(len(a)):
        added = torch.zeros_like(a[i])
        for j in range(len(a)):
            s = -0.5 * (a[i] @ b[j])
            added = added + torch.relu(s) * a[j] - torch.relu(-s) * a[j]
        rows.append(2 * (a[i] + added))
    return torch.stack(rows)
"""),
        Case("def newton_layer(a, b):\n    return 2 * a - a @ (b.mT @ a)"),
        Case(
            """
def newton_layer(a, b):
    s = -0.5 * a @ b.T
    return 2 * (a + torch.relu(s) @ a + torch.relu(-s) @ a)
""",
            "as printed",
        ),
        Case(
            """
def newton_layer(a, b):
    s = -0.5 * a @ b.T
    return 2 * (a + torch.relu(s) @ a)
""",
            "negative scores are lost",
        ),
        Case(
            """
def newton_layer(a, b):
    s = 0.5 * a @ b.T
    return 2 * (a + torch.relu(s) @ a - torch.relu(-s) @ a)
""",
            "wrong sign",
        ),
        Case(
            """
def newton_layer(a, b):
    s = -a @ b.T
    return 2 * (a + torch.relu(s) @ a - torch.relu(-s) @ a)
""",
            "factor 1/2 of the scores is missing",
        ),
        Case(
            """
def newton_layer(a, b):
    s = -0.5 * a @ b.T
    return a + torch.relu(s) @ a - torch.relu(-s) @ a
""",
            "the MLP is missing",
        ),
        Case(
            """
def newton_layer(a, b):
    s = -0.5 * a @ b.T
    return 2 * (torch.relu(s) @ a - torch.relu(-s) @ a)
""",
            "replaces the stream",
        ),
        Case(
            """
def newton_layer(a, b):
    s = -0.5 * a @ b.T
    return 2 * a + torch.relu(s) @ a - torch.relu(-s) @ a
""",
            "only the stream is doubled",
        ),
        Case(
            """
def newton_layer(a, b):
    s = -0.5 * a @ b.T
    return 2 * (a + torch.relu(s) @ b - torch.relu(-s) @ b)
""",
            "the values are b",
        ),
        Case("def newton_layer(a, b):\n    return 2 * a - (a @ a.T) @ a", "compare a with a"),
        Case("def newton_layer(a, b):\n    return 2 * a - (b @ b.T) @ a", "compare b with b"),
        Case("def newton_layer(a, b):\n    return 2 * a - (b @ a.T) @ a", "the transpose"),
        Case(
            """
def newton_layer(a, b):
    return 2 * (a + torch.softmax(-0.5 * a @ b.T, dim=-1) @ a)
""",
            "a softmax",
        ),
        Case("def newton_layer(a, b):\n    return 2 * a - (a @ b.T) @ a / a.shape[0]", "divided by their number"),
        Case(
            """
def newton_layer(a, b):
    a += -0.5 * (a @ b.T) @ a
    return 2 * a
""",
            "in place",
        ),
        Case("def newton_layer(a, b):\n    return 2 * a - (a @ b) @ a", "raises RuntimeError"),
        Case("def newton_layer(a, b):\n    return 2 * a - a @ a.T @ b", "wrong values"),
    ],
}
