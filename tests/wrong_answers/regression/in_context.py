"""Answers to the exercises of lesson 02: wrong ones that people really give, and right ones written differently."""

from wrong_answers.cases import Case

CASES = {
    "triplet_tokens": [
        Case("""
def triplet_tokens(xs, ys):
    rows = []
    for x, y in zip(xs, ys):
        before_x, before_y = torch.zeros_like(x[0]), torch.zeros_like(y[0])
        tokens = []
        for t in range(len(x)):
            tokens.append(torch.hstack([before_x, before_y, x[t]]))
            before_x, before_y = x[t], y[t]
        rows.append(torch.stack(tokens))
    return torch.stack(rows)
"""),
        Case("""
def triplet_tokens(xs, ys):
    def previous(v):
        shifted = torch.roll(v, shifts=1, dims=1)
        shifted[:, 0] = 0
        return shifted
    return torch.concatenate((previous(xs), previous(ys).unsqueeze(2), xs), axis=2)
"""),
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
            None,
            advice="float32",
        ),
        Case(
            """
def triplet_tokens(xs, ys):
    return torch.cat([xs, ys, xs], dim=-1)
""",
            "raises RuntimeError",
        ),
        Case(
            """
def triplet_tokens(xs, ys):
    batch, n, d = xs.shape
    out = torch.zeros(batch, n, 2 * d + 1, dtype=xs.dtype, device=xs.device)
    for t in range(n):
        out[:, t] = torch.cat([xs[:, t - 1], ys[:, t - 1, None], xs[:, t]], dim=1)
    return out
""",
            "torch.roll wraps around",
        ),
        Case(
            """
def triplet_tokens(xs, ys):
    before = (torch.arange(xs.shape[1], device=xs.device) - 1).clamp(min=0)
    return torch.cat([xs[:, before], ys[:, before, None], xs], dim=-1)
""",
            "the first token holds its own example",
        ),
        Case(
            """
def triplet_tokens(xs, ys):
    x0 = torch.nn.functional.pad(xs, (0, 0, 1, 0))[:, :-1]
    y0 = torch.nn.functional.pad(ys, (1, 0))[:, :-1]
    return torch.cat([y0[..., None], x0, xs], dim=-1)
""",
            "here y_{t-1} comes first",
        ),
        Case(
            """
def triplet_tokens(xs, ys):
    both = torch.cat([xs, ys[..., None], xs], dim=-1)
    return torch.cat([torch.zeros_like(both[:, :1]), both[:, :-1]], dim=1)
""",
            "x_t itself, the question",
        ),
        Case(
            """
def triplet_tokens(xs, ys):
    out = xs.new_zeros(xs.shape[0], xs.shape[1], 2 * xs.shape[2] + 1)
    for t in range(1, xs.shape[1]):
        token = torch.cat([xs[:, t - 1], ys[:, t - 1, None], xs[:, t]], dim=1)
    return out
""",
            "every entry is 0",
        ),
        Case(
            """
def triplet_tokens(xs, ys):
    d = xs.shape[2]
    out = xs.new_zeros(xs.shape[0], xs.shape[1], 2 * d + 1)
    out[:, 1:, :d], out[:, 1:, d], out[:, 1:, d + 1:] = xs[:, :-1], ys[:, :-1], xs[:, 1:]
    return out
""",
            "wrong values in",
        ),
        Case(
            """
def triplet_tokens(xs, ys):
    ys[:, -1] = 0
    xs, ys = torch.cat([xs[:, -1:] * 0, xs[:, :-1]], 1), ys.roll(1, 1)
    return torch.cat([xs, ys[..., None], xs], dim=-1)
""",
            "changes its argument ys in place",
        ),
        Case(
            """
def triplet_tokens(xs, ys):
    out = torch.zeros(xs.shape[0], xs.shape[1], 2 * xs.shape[2] + 1, dtype=xs.dtype)
    d = xs.shape[2]
    out[:, 1:, :d], out[:, 1:, d], out[:, :, d + 1:] = xs[:, :-1], ys[:, :-1], xs
    return out
""",
            None,
            advice="CPU",
        ),
        Case(
            """
def triplet_tokens(xs, ys):
    rows = []
    for t in range(xs.shape[1]):
        keep = 1 if t > 0 else 0
        rows.append(torch.cat([keep * xs[:, t - 1], keep * ys[:, t - 1, None], xs[:, t]], dim=1))
    return torch.stack(rows)
""",
            "The sizes are right, their order is not",
        ),
        Case(
            """
def triplet_tokens(xs, ys):
    rows = []
    for t in range(xs.shape[1]):
        keep = 1 if t > 0 else 0
        rows.append(torch.cat([keep * xs[:, t - 1], keep * ys[:, t - 1, None], xs[:, t]], dim=1))
    return rows
""",
            "returns list, not a tensor",
        ),
        Case(
            """
tokens = torch.zeros(64, 11, 11, dtype=torch.float64)

def triplet_tokens(xs, ys):
    return tokens
""",
            "wrong shape",
        ),
        Case(
            """
def triplet_tokens(xs, ys):
    x0 = torch.nn.functional.pad(xs, (0, 0, 1, 0))[:, :-1]
    y0 = torch.nn.functional.pad(ys, (1, 0))[:, :-1]
    return torch.cat([x0, y0.reshape(xs.shape[0], xs.shape[1], 1), x], dim=-1)
""",
            "name 'x' is not defined",
        ),
        Case(
            """
def triplet_tokens(xs, ys):
    examples = torch.cat([xs, ys.unsqueeze(-1)], -1)
    before = examples.roll(1, dims=1)
    return torch.cat([before, xs], -1)
""",
            "the first token holds the",
        ),
        Case(
            """
def triplet_tokens(xs, ys):
    previous_x = torch.cat([torch.zeros_like(xs[:, :1]), xs[:, :-1]], 1)
    return torch.cat([previous_x, ys.unsqueeze(-1), xs], -1)
""",
            "token t holds y_t, the label",
        ),
        Case("""
def triplet_tokens(xs, ys):
    B, n, d = xs.shape
    tokens = xs.new_zeros(B, n, 2 * d + 1)
    tokens[:, 1:, :d] = xs[:, :-1]
    tokens[:, 1:, d] = ys[:, :-1]
    tokens[:, :, d + 1 :] = xs
    return tokens
"""),
    ],
    "newton_step": [
        Case("""
def newton_step(M, S):
    d = len(S)
    out = torch.empty_like(M)
    for i in range(d):
        for j in range(d):
            out[i, j] = 2 * M[i, j] - sum(M[i, k] * S[k, l] * M[l, j] for k in range(d) for l in range(d))
    return out
"""),
        Case("def newton_step(M, S):\n    return M + M @ (torch.eye(*S.shape, out=torch.empty_like(S)) - S @ M)"),
        Case("""
import numpy as np

def newton_step(M, S):
    m, s = np.asarray(M), np.asarray(S)
    return torch.from_numpy(2 * m - np.dot(m, np.dot(s, m)))
"""),
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
        Case("def newton_step(M, S):\n    return M @ (2 * torch.eye(len(S)) - S @ M)", None, advice="CPU"),
        Case("def newton_step(M, S):\n    return 2 * M - (M @ S @ M).sum(0)", "wrong values"),
        Case("def newton_step(M, S):\n    return -(2 * M - M @ S @ M)", "sign is flipped"),
        Case("def newton_step(M, S):\n    return M - M @ S @ M / 2", "the answer is half of what it should be"),
        Case("def newton_step(M, S):\n    return 2 * M - M @ S * M", "the second product is entry by entry"),
        Case("def newton_step(M, S):\n    return 2 * M - M * S @ M", "the first product is entry by entry"),
        Case("def newton_step(M, S):\n    return 2 * M - M @ M @ S", "comes last"),
        Case("def newton_step(M, S):\n    return 2 * M - S @ (M @ M)", "comes first"),
        Case("def newton_step(M, S):\n    return 2 * (M - M @ S @ M)", "2 belongs to M alone"),
        Case(
            """
def newton_step(M, S):
    return M + torch.eye(M.shape[0], dtype=M.dtype) - S @ M
""",
            "M times the error must be added",
        ),
        Case(
            "def newton_step(M, S):\n    return M @ (torch.eye(len(S), dtype=S.dtype) - S @ M)", "factor 2 is missing"
        ),
        Case("def newton_step(S, M):\n    return 2 * M - M @ S @ M", "swapped"),
        Case("def newton_step(M, S):\n    return M", "the answer is the argument M, unchanged"),
        Case(
            """
def newton_step(M, S):
    next_M = 2 * M - M @ S @ M
    M = next_M
    return S
""",
            "the answer is the argument S, unchanged",
        ),
        Case(
            """
def newton_step(M, S):
    M -= M @ S @ M - M
    return M
""",
            "changes its argument M in place",
        ),
        Case("def newton_step(M, S):\n    return (2 * M - M @ S @ M).T", "the answer is transposed"),
        Case("def newton_step(M, S):\n    return torch.zeros_like(M)", "every entry is 0"),
        Case("def newton_step(M, S):\n    return 2 * M", "does not use its argument S"),
        Case("def newton_step(M, S):\n    return 2 * M - M ** 2 @ S", "wrong values in"),
        Case("def newton_step(M, S):\n    print(2 * M - M @ S @ M)", "`return` missing"),
        Case("def newton_step(M, S):\n    return (2 * M - M @ S @ M).numpy()", "returns ndarray, not a tensor"),
        Case("def newton_step(M, S):\n    yield 2 * M - M @ S @ M", "returns generator, not a tensor"),
        Case("def newton_step(M, S):\n    return 2 * M - M @ S @ M, S", "returns tuple, not a tensor"),
        Case(
            """
def newton_step(M):
    return 2 * M - M @ S @ M
""",
            "raises TypeError: newton_step() takes 1 positional argument",
        ),
        Case("def newton_step(M, S):\n    return 2 * m - M @ S @ M", "raises NameError"),
        Case(
            """
def newton_step(M, S):
    d = 6
    out = torch.zeros(d, d, dtype=M.dtype)
    for i in range(d):
        out[i] = 2 * M[i] - M[i] @ S @ M
    return out
""",
            "raises",
        ),
        Case(
            "def newton_step(M, S):\n    return 2 * M.float() - M.float() @ S.float() @ M.float()",
            None,
            advice="float32",
        ),
        Case(
            """
def newton_step(M, S):
    return 2 * M - S @ M @ M
""",
            "S must stand in the middle, M S M; here it comes first",
        ),
        Case(
            """
def newton_step(M, S):
    return M + (torch.eye(len(M)).to(M) - S @ M)
""",
            "the error I - S M is added",
        ),
        Case(
            """
def newton_step(M, S):
    identity = torch.eye(M.shape[0], dtype=M.dtype)
    return M @ (2 * identity - S @ M)
""",
            advice="CPU",
        ),
    ],
    "gd_closed_form": [
        Case("""
def gd_closed_form(S, b, lr, steps):
    lam, V = torch.linalg.eigh(S)
    w, target = torch.zeros_like(lam), b @ V
    for i, l in enumerate(lam):
        w[i] = target[i] * (1 - (1 - lr * l) ** steps) / l
    return V.mv(w)
"""),
        Case("""
def gd_closed_form(S, b, lr, steps):
    U, sigma, Vt = torch.linalg.svd(S)
    return Vt.T @ torch.diag((1 - (1 - lr * sigma) ** steps) / sigma) @ U.T @ b
"""),
        Case("""
def gd_closed_form(S, b, lr, steps):
    if steps == 0:
        return torch.zeros_like(b)
    w = gd_closed_form(S, b, lr, steps - 1)
    return w + lr * (b - S.matmul(w))
"""),
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
    lam, V = torch.linalg.eigh(S)
    return V @ ((1 - torch.exp(-lr * lam * steps)) / lam * (V.T @ b))
""",
            "e^(-lr lambda steps) is what infinitely small steps leave",
        ),
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
        Case(
            "def gd_closed_form(S, b, lr, steps):\n    return torch.linalg.solve(S, b)", "where gradient descent ends"
        ),
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
            "uphill",
        ),
        Case(
            """
def gd_closed_form(S, b, lr, steps):
    w = torch.zeros_like(b)
    for _ in range(steps):
        w = w - lr * (S @ w - b)
        return w
""",
            "after one step",
        ),
        Case(
            """
def gd_closed_form(S, b, lr, steps):
    lam, V = torch.linalg.eigh(S)
    share = 1 - (1 - lr * lam ** steps)
    return V @ (share / lam * (V.T @ b))
""",
            "whole bracket",
        ),
        Case(
            """
def gd_closed_form(S, b, lr, steps):
    lam, V = torch.linalg.eigh(S)
    return V @ ((1 - (1 + lr * lam) ** steps) / lam * (V.T @ b))
""",
            "uphill",
        ),
        Case(
            """
def gd_closed_form(S, b, lr, steps):
    w = torch.zeros_like(b)
    for _ in range(steps):
        w = w - lr * (S @ w - b) / len(b)
    return w
""",
            "not divided by the number of dimensions",
        ),
        Case(
            """
def gd_closed_form(S, b, lr, steps):
    lam, V = torch.linalg.eigh(S)
    return V * ((1 - (1 - lr * lam) ** steps) / lam * (V.T @ b))
""",
            "broadcast to",
        ),
        Case(
            """
def gd_closed_form(S, b, lr, steps):
    lam, V = torch.linalg.eigh(S)
    return (V @ torch.diag((1 - (1 - lr * lam) ** steps) / lam) @ V.T @ b[:, None]).T
""",
            "A dimension of size 1 is too many",
        ),
        Case(
            """
def gd_closed_form(S, b, lr, steps):
    lam, V = torch.linalg.eig(S)
    return V @ ((1 - (1 - lr * lam) ** steps) / lam * (V.mT @ b.to(V.dtype)))
""",
            "wrong dtype torch.complex128",
        ),
        Case(
            """
def gd_closed_form(S, b, lr, steps):
    lam, V = torch.linalg.eigh(S)
    w = torch.empty_like(b)
    for i in range(1, len(b)):
        w[i] = (1 - (1 - lr * lam[i]) ** steps) / lam[i] * (V[:, i] @ b)
    w[0] = 0
    return V @ w
""",
            "wrong values in",
        ),
        Case(
            """
def gd_closed_form(S, b, lr, steps):
    S, b = S.float(), b.float()
    lam, V = torch.linalg.eigh(S)
    return (V @ ((1 - (1 - lr * lam) ** steps) / lam * (V.T @ b))).double()
""",
            "nearly right",
        ),
        Case(
            """
def gd_closed_form(S, b, lr, steps):
    lam, V = torch.linalg.eigh(S)
    return V @ ((1 - (1 - lr * lam) ** steps) / (lam + 1e-6) * (V.T @ b))
""",
            "is a small number added, or left out?",
        ),
        Case(
            """
steps = 5

def gd_closed_form(S, b, lr, s):
    w = torch.zeros_like(b)
    for _ in range(steps):
        w = w - lr * (S @ w - b)
    return w
""",
            "does not use its argument steps",
        ),
        Case(
            """
def gd_closed_form(S, b, lr, steps):
    w = torch.zeros_like(b)
    for _ in range(steps):
        w = w - 0.01 * (S @ w - b)
    return w
""",
            "does not use its argument lr",
        ),
        Case(
            """
def gd_closed_form(S, b, lr, steps):
    w = b
    for _ in range(steps):
        w -= lr * (S @ w - b)
    return w
""",
            "changes its argument b in place",
        ),
        Case(
            """
def gd_closed_form(S, b, lr, steps):
    w = b.clone()
    for _ in range(steps):
        w -= lr * (S @ w - b)
    return w
""",
            "wrong values in",
        ),
        Case(
            """
def gd_closed_form(S, b, lr, steps):
    V, lam = torch.linalg.eigh(S)
    return V @ ((1 - (1 - lr * lam) ** steps) / lam * (b @ V))
""",
            "here they are exchanged",
        ),
        Case(
            """
def gd_closed_form(S, b, lr, steps):
    lam = torch.linalg.eigh(S)
    return (1 - (1 - lr * lam) ** steps) / lam * b
""",
            "raises TypeError at `return (1 - (1 - lr * lam) ** steps) / lam * b`",
        ),
        Case(
            """
def gd_closed_form(S, b, lr, steps):
    lam = torch.linalg.eigvalsh(S)
    return (1 - (1 - lr * lam) ** steps) / lam * b
""",
            "the factor V is missing from the product; and the factor the transpose of V is missing from the product",
        ),
        Case(
            """
def gd_closed_form(S, b, lr, steps):
    w = torch.zeros(len(b), dtype=torch.float64)
    for _ in range(steps):
        w = w - lr * (S @ w - b)
    return w
""",
            None,
            advice="CPU",
        ),
        Case(
            """
def gd_closed_form(S, b, lr, steps):
    w = torch.zeros_like(b)
    for _ in range(steps - 1):
        w = w + lr * (b - S @ w)
    return w
""",
            "one step too few: from w =",
        ),
        Case(
            """
def gd_closed_form(S, b, lr, steps):
    e, V = torch.linalg.eigh(S)
    share = (1 - lr * e) ** steps
    return V @ (share / e * (V.T @ b))
""",
            "this is what is left to do",
        ),
        Case("""
def gd_closed_form(S, b, lr, steps):
    w = b * 0
    k = 0
    while k < steps:
        w += lr * (b - torch.mv(S, w))
        k += 1
    return w
"""),
    ],
    "similarity_of_errors": [
        Case("""
def similarity_of_errors(first, second, ys):
    a, b = (first - ys).T[1:], (second - ys).T[1:]
    return ((a * b).sum(0) / (a.norm(dim=0) * b.norm(dim=0))).mean()
"""),
        Case("""
def similarity_of_errors(first, second, ys):
    cosine = torch.nn.CosineSimilarity(dim=1)
    return torch.vmap(lambda p, q, y: cosine((y - p)[None, 1:], (y - q)[None, 1:])[0])(first, second, ys).mean()
"""),
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
        Case(
            """
def similarity_of_errors(first, second, ys):
    a, b = (ys - first)[1:], (ys - second)[1:]
    return torch.cosine_similarity(a, b, dim=-1).mean()
""",
            "the first prompt is left out",
        ),
        Case(
            """
def similarity_of_errors(first, second, ys):
    a, b = (ys - first)[:, 1:], (ys - second)[:, 1:]
    return ((a * b).sum(dim=1) / (a.norm() * b.norm())).mean()
""",
            "norm needs dim=-1",
        ),
        Case(
            """
def similarity_of_errors(first, second, ys):
    a, b = (ys - first)[:, 1:], (ys - second)[:, 1:]
    return (a * b).sum(dim=1).mean() / (a.norm(dim=1) * b.norm(dim=1)).mean()
""",
            "the mean comes last",
        ),
        Case(
            """
def similarity_of_errors(first, second, ys):
    a, b = (ys - first)[:, 1:], (ys - second)[:, 1:]
    return ((a * b).sum(dim=1) / a.norm(dim=1) ** 2).mean()
""",
            "first length twice",
        ),
        Case(
            """
def similarity_of_errors(first, second, ys):
    a, b = (ys - first)[:, 1:], (ys - second)[:, 1:]
    return ((a * b).sum(dim=1) / (a.norm(dim=1) * b.norm(dim=1))).mean(dim=0, keepdim=True)
""",
            "A dimension of size 1 is too many",
        ),
        Case(
            """
def similarity_of_errors(first, second, ys):
    a, b = (ys - first)[:, 1:], (ys - second)[:, 1:]
    a, b = a / a.norm(dim=1), b / b.norm(dim=1)
    return (a * b).sum(1).mean()
""",
            "raises RuntimeError at `a, b = a / a.norm(dim=1), b / b.norm(dim=1)`",
        ),
        Case(
            """
def similarity_of_errors(first, second, ys):
    a, b = (ys - first)[:, 1:], (ys - second)[:, 1:]
    cosines = []
    for i in range(len(ys)):
        cosines.append(float(a[i] @ b[i] / (a[i].norm() * b[i].norm())))
    return torch.tensor(cosines).mean()
""",
            None,
            advice="float32",
        ),
        Case(
            """
def similarity_of_errors(first, second, ys):
    a, b = (ys - first)[:, 1:], (ys - second)[:, 1:]
    for i in range(len(ys)):
        cosine = a[i] @ b[i] / (a[i].norm() * b[i].norm())
    return cosine
""",
            "only the last row of first and second and ys counts",
        ),
        Case(
            """
def similarity_of_errors(first, second, ys):
    a, b = (ys - first)[:, 1:], (ys - first)[:, 1:]
    return torch.cosine_similarity(a, b, dim=-1).mean()
""",
            "does not use its argument",
        ),
        Case(
            """
def similarity_of_errors(first, second, ys):
    return torch.nn.functional.mse_loss(first[:, 1:], second[:, 1:])
""",
            "does not use its argument ys",
        ),
        Case(
            """
def similarity_of_errors(first, second, ys):
    a, b = ys - first, ys - second
    a[:, 0] = b[:, 0] = 0
    return (a * b / (a.norm(dim=1, keepdim=True) * b.norm(dim=1, keepdim=True))).mean()
""",
            "the answer is divided by the number of columns of first",
        ),
        Case(
            """
def similarity_of_errors(first, second, ys):
    a, b = (ys - first)[:, 1:], (ys - second)[:, 1:]
    total = torch.zeros(())
    for p, q in zip(a, b):
        total += torch.dot(p, q) / (p.norm() * q.norm())
    return total / len(ys)
""",
            None,
            advice="float32",
        ),
        Case(
            """
def similarity_of_errors(first, second, ys):
    a, b = ys - first, ys - second
    return torch.nn.functional.cosine_similarity(a, b, dim=-1).mean()
""",
            "the empty prefix counts: leave",
        ),
    ],
    "readout_predictions": [
        Case("""
def readout_predictions(hidden, targets, fresh):
    H = torch.cat([hidden, hidden.new_ones(len(hidden), 1)], dim=1)
    w = torch.linalg.inv(H.T @ H) @ H.T @ targets
    return torch.stack([row @ w[:-1] + w[-1] for row in fresh])
"""),
        Case("""
def readout_predictions(hidden, targets, fresh):
    h = hidden - hidden.mean(dim=0, keepdim=True)
    covariance, cross = h.T @ h, torch.einsum('pw,p->w', h, targets)
    slope = torch.cholesky_solve(cross[:, None], torch.linalg.cholesky(covariance)).flatten()
    return fresh @ slope + (targets.mean() - hidden.mean(0) @ slope)
"""),
        Case("""
import numpy as np

def readout_predictions(hidden, targets, fresh):
    ones = lambda h: np.hstack([np.ones((len(h), 1)), h])
    w, *_ = np.linalg.lstsq(ones(hidden.numpy()), targets.numpy(), rcond=None)
    return torch.from_numpy(ones(fresh.numpy()) @ w)
"""),
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
            None,
            advice="float32",
        ),
        Case(
            """
def readout_predictions(hidden, targets, fresh):
    H = torch.cat([hidden, torch.ones(len(hidden), 1).to(hidden)], dim=1)
    F = torch.cat([torch.ones(len(fresh), 1).to(fresh), fresh], dim=1)
    return F @ torch.linalg.lstsq(H, targets[:, None]).solution[:, 0]
""",
            "last in hidden and first in fresh",
        ),
        Case(
            """
def readout_predictions(hidden, targets, fresh):
    H = torch.cat([torch.ones(len(hidden), 1).to(hidden), hidden], dim=1)
    w = torch.linalg.lstsq(H, targets[:, None]).solution[:, 0]
    return fresh @ w[:-1] + w[-1]
""",
            "first in hidden and last in fresh",
        ),
        Case(
            """
def readout_predictions(hidden, targets, fresh):
    H = torch.cat([hidden, torch.ones_like(hidden[:, :1])], 1)
    w = torch.linalg.lstsq(H, targets[:, None]).solution
    return fresh @ w
""",
            "raises RuntimeError at `return fresh @ w`",
        ),
        Case(
            """
def readout_predictions(hidden, targets, fresh):
    H = torch.cat([hidden, torch.ones_like(hidden[:, :1])], 1)
    F = torch.cat([fresh, torch.ones_like(fresh[:, :1])], 1)
    w = torch.linalg.lstsq(H, targets[:, None]).solution
    return (F @ w).T
""",
            "A dimension of size 1 is too many",
        ),
        Case(
            """
def readout_predictions(hidden, targets, fresh):
    H = torch.cat([hidden, torch.ones_like(hidden[:, :1])], 1)
    return torch.linalg.lstsq(H, targets[:, None]).solution[:, 0]
""",
            "wrong shape",
        ),
        Case(
            """
def readout_predictions(hidden, targets, fresh):
    hidden -= hidden.mean(0)
    w = torch.linalg.pinv(hidden) @ (targets - targets.mean())
    return fresh @ w + targets.mean()
""",
            "changes its argument hidden in place",
        ),
        Case(
            """
def readout_predictions(hidden, targets, fresh):
    h = hidden - hidden.mean(0)
    w = torch.linalg.pinv(h) @ (targets - targets.mean())
    return (fresh - hidden.mean(0)) @ w
""",
            "targets is centred: its mean is taken away",
        ),
        Case(
            """
def readout_predictions(hidden, targets, fresh):
    h = (hidden - hidden.mean()) / hidden.std()
    f = (fresh - hidden.mean()) / hidden.std()
    return f @ torch.linalg.pinv(h) @ targets + targets.mean()
""",
            "wrong values in",
        ),
        Case(
            """
def readout_predictions(hidden, targets, fresh):
    H = torch.cat([hidden, torch.ones(len(hidden), 1)], 1)
    F = torch.cat([fresh, torch.ones(len(fresh), 1)], 1)
    return F @ (torch.linalg.pinv(H) @ targets)
""",
            None,
            advice="CPU",
        ),
        Case(
            """
def readout_predictions(hidden, targets, fresh):
    H = torch.cat([hidden, torch.ones(len(hidden), 1, dtype=torch.float64)], 1)
    F = torch.cat([fresh, torch.ones(len(fresh), 1, dtype=torch.float64)], 1)
    return F @ torch.linalg.solve(H.T @ H, H.T @ targets)
""",
            None,
            advice="CPU",
        ),
        Case(
            """
def readout_predictions(hidden, targets, fresh):
    H = torch.cat([hidden, torch.ones_like(hidden[:, :1])], 1)
    F = torch.cat([fresh, torch.ones_like(fresh[:, :1])], 1)
    return F @ torch.linalg.lstsq(H, targets[:, None], driver='gels').solution[:, 0] * 2
""",
            "the answer is twice what it should be",
        ),
        Case(
            """
def readout_predictions(hidden, targets, fresh):
    with_ones = lambda h: torch.nn.functional.pad(h, (0, 1), value=1.0)
    w = torch.zeros(hidden.shape[1] + 1, dtype=hidden.dtype, device=hidden.device)
    for _ in range(100):
        w = w - 0.1 * with_ones(hidden).T @ (with_ones(hidden) @ w - targets)
    return with_ones(fresh) @ w
""",
            "wrong values in",
        ),
        Case(
            """
def readout_predictions(hidden, targets, fresh):
    w = torch.linalg.lstsq(hidden, targets[:, None]).solution
    return (fresh @ w)[:, 0]
""",
            "there is no intercept: append",
        ),
    ],
    "newton_layer": [
        Case("""
def newton_layer(a, b):
    scores = -0.5 * a @ b.T
    heads = [(scores, a), (-scores, -a)]
    stream = a.clone()
    for s, values in heads:
        stream += torch.nn.functional.relu(s) @ values
    stream *= 2
    return stream
"""),
        Case("""
def newton_layer(a, b):
    scores = torch.matmul(a, torch.transpose(b, 0, 1)).mul(-0.5)
    attended = torch.where(scores > 0, scores, 0) @ a - torch.where(scores < 0, -scores, 0) @ a
    return torch.add(a, attended).mul(2)
"""),
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
        Case("def newton_layer(a, b):\n    return 2 * a - a @ a.T @ b", "wrong values in"),
        Case(
            """
def newton_layer(a, b):
    s = -0.5 * a @ b.T
    a = a + torch.relu(s) @ a
    a = a + torch.relu(-s) @ -a
    return 2 * a
""",
            "wrong values in",
        ),
        Case(
            """
def newton_layer(a, b):
    s = -0.5 * a @ b.T
    return 2 * (a + torch.relu(s) @ a - torch.relu(s) @ a)
""",
            "both heads have the same scores",
        ),
        Case(
            """
def newton_layer(a, b):
    s = -0.5 * a @ b.T / b.shape[1] ** 0.5
    return 2 * (a + torch.relu(s) @ a - torch.relu(-s) @ a)
""",
            "divided by sqrt(d)",
        ),
        Case(
            """
def newton_layer(a, b):
    s = torch.tril(-0.5 * a @ b.T)
    return 2 * (a + torch.relu(s) @ a - torch.relu(-s) @ a)
""",
            "this attention is full",
        ),
        Case(
            """
def newton_layer(a, b):
    n = len(a)
    s = -0.5 * a @ b.T
    return 2 * (a + (torch.relu(s) @ a - torch.relu(-s) @ a) / n)
""",
            "divided by their number",
        ),
        Case(
            """
def newton_layer(a, b):
    s = -0.5 * a @ b.T
    attended = torch.relu(s) @ a + torch.relu(-s) @ (-a)
    a = a + attended
    2 * a
""",
            "`return` missing",
        ),
        Case(
            """
def newton_layer(a, b):
    s = -0.5 * a @ b.T
    attended = torch.relu(s) @ a + torch.relu(-s) @ (-a)
    a += attended
    a *= 2
    return a
""",
            "changes its argument a in place",
        ),
        Case(
            """
def newton_layer(a, b):
    s = -0.5 * a @ b.T
    return 4 * (a + torch.relu(s) @ a - torch.relu(-s) @ a)
""",
            "the factor 2 comes in twice",
        ),
        Case(
            """
def newton_layer(a, b):
    s = -0.5 * a @ b.T
    return (2 * (a + torch.relu(s) @ a - torch.relu(-s) @ a)).T
""",
            "It is the transpose of the right shape",
        ),
        Case(
            """
def newton_layer(a, b):
    s = -0.5 * a.T @ b
    return 2 * (a + torch.relu(s) @ a - torch.relu(-s) @ a)
""",
            "raises RuntimeError at",
        ),
        Case(
            """
def newton_layer(a, b):
    rows = []
    for i in range(len(a)):
        added = torch.zeros(a.shape[1], dtype=a.dtype)
        for j in range(len(a)):
            added += -0.5 * a[i] @ b[j] * a[j]
        rows.append(2 * (a[i] + added))
    return torch.stack(rows)
""",
            None,
            advice="CPU",
        ),
        Case(
            """
def newton_layer(a, b):
    s = -0.5 * (a * b).sum(-1, keepdim=True)
    return 2 * (a + torch.relu(s) * a - torch.relu(-s) * a)
""",
            "wrong values in",
        ),
    ],
}
