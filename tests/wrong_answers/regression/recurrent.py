"""Answers to the exercises of lesson 03: wrong ones that people really give, and right ones written differently."""

from wrong_answers.cases import Case

CELL = """
def lstm_step(x, h, c, W, U, b):
    i, f, g, o = (W @ x + U @ h + b).chunk(4)
    i, f, g, o = torch.sigmoid(i), torch.sigmoid(f), torch.tanh(g), torch.sigmoid(o)
"""

STATES = """
def rls_states(X, y, ridge):
    n, d = X.shape
    P = torch.eye(d, dtype=X.dtype, device=X.device) / ridge
    w = torch.zeros(d, dtype=X.dtype, device=X.device)
    rows = []
    for i in range(n):
        x = X[i]
        gain = P @ x / (1 + x @ P @ x)
        w = w + gain * (y[i] - w @ x)
        P = P - torch.outer(gain, P @ x)
        rows.append(torch.cat([w, P.flatten()]))
    return torch.stack(rows)
"""

RECALL = """
def recall(keys, values, erase):
    m, h = keys.shape
    S = keys.new_zeros(h, h)
    for i in range(m):
        old = S @ keys[i]
        S = S + torch.outer(values[i] - erase * old, keys[i])
    read = torch.stack([S @ key for key in keys])
    return ((read - values) ** 2).sum(1) / (values**2).sum(1)
"""

CASES = {
    "rls_states": [
        Case(STATES),
        Case("""
def rls_states(X, y, ridge):
    rows = []
    for i in range(1, len(X) + 1):
        S = X[:i].T @ X[:i] + ridge * torch.diag(torch.ones_like(X[0]))
        P = torch.linalg.inv(S)
        rows.append(torch.cat([P @ (X[:i].T @ y[:i]), P.reshape(-1)]))
    return torch.stack(rows)
"""),
        Case("""
def rls_states(X, y, ridge):
    d = X.shape[1]
    states = X.new_zeros(len(X), d + d * d)
    P, w = torch.diag(torch.full_like(X[0], 1 / ridge)), X.new_zeros(d)
    for t, (x, label) in enumerate(zip(X, y)):
        Px = P @ x
        P = P - Px[:, None] * Px[None, :] / (1 + (x * Px).sum())
        w = w + (P @ x) * (label - (w * x).sum())
        states[t, :d], states[t, d:] = w, P.reshape(-1)
    return states
"""),
        Case(STATES.replace("/ ridge", "* ridge"), "P starts as ridge times the identity"),
        Case(STATES.replace(" / ridge", ""), "P starts as the identity"),
        Case(STATES.replace("w = w + gain *", "w = w + P @ x *"), "w moves along the old P x, without a denominator"),
        Case(STATES.replace("w = w + gain *", "w = w + x *"), "w moves along x"),
        Case(STATES.replace("(y[i] - w @ x)", "y[i]"), "here w moves towards the label alone"),
        Case(STATES.replace("w = w + gain", "w = w - gain"), "the step goes uphill"),
        Case(
            STATES.replace("        rows.append(torch.cat([w, P.flatten()]))\n", "").replace(
                "        x = X[i]\n", "        rows.append(torch.cat([w, P.flatten()]))\n        x = X[i]\n"
            ),
            "each row is the state before its example",
        ),
        Case(STATES.replace("[w, P.flatten()]", "[P.flatten(), w]"), "P comes first"),
        Case(STATES.replace("w = w + gain", "w = w + 0 * gain"), "P moves, w stays 0"),
        Case(STATES.replace("torch.stack(rows)", "rows[-1]"), "wrong shape"),
    ],
    "recall": [
        Case(RECALL),
        Case("""
def recall(keys, values, erase):
    S = 0 * torch.outer(values[0], keys[0])
    for k, v in zip(keys, values):
        S = S - erase * torch.outer(S @ k, k) + torch.outer(v, k)
    return (keys @ S.T - values).norm(dim=1) ** 2 / values.norm(dim=1) ** 2
"""),
        Case("""
def recall(keys, values, erase):
    written = []
    for i, k in enumerate(keys):
        held = sum((keys[j] @ k) * written[j] for j in range(i)) if i else torch.zeros_like(values[0])
        written.append(values[i] - erase * held)
    read = keys @ keys.T @ torch.stack(written)
    return (read - values).square().sum(-1) / values.square().sum(-1)
"""),
        Case(RECALL.replace("erase * old", "0 * old"), "nothing is erased"),
        Case(RECALL.replace("erase * old", "old"), "all is erased"),
        Case(
            RECALL.replace(
                "S = S + torch.outer(values[i] - erase * old, keys[i])",
                "S = (1 - erase) * S + torch.outer(values[i], keys[i])",
            ),
            "the whole of S fades",
        ),
        Case(RECALL.replace("values[i] - erase * old", "erase * values[i] - old"), "erase multiplies the new value"),
        Case(RECALL.replace("[S @ key for", "[S.T @ key for"), "reads with S^T"),
        Case(
            """
def recall(keys, values, erase):
    S, off = torch.zeros(keys.shape[1], keys.shape[1], dtype=keys.dtype), []
    for k, v in zip(keys, values):
        S = S + torch.outer(v - erase * (S @ k), k)
        off.append((S @ k - v).square().sum() / v.square().sum())
    return torch.stack(off)
""",
            "each pair is asked for as soon as it is written",
        ),
        Case(RECALL.replace(" / (values**2).sum(1)", ""), "not divided by the value's squared length"),
        Case(
            RECALL.replace("(values**2).sum(1)", "(values**2).sum(1).mean()"), "the mean squared length of all values"
        ),
        Case(
            RECALL.replace("** 2).sum(1) /", "** 2).sum(1).sqrt() /").replace(
                "(values**2).sum(1)", "values.norm(dim=1)"
            ),
            "a ratio of lengths",
        ),
        Case(
            RECALL.replace("values[i] - erase * old, keys[i]", "keys[i], values[i] - erase * old"),
            "the outer product is the wrong way round",
        ),
        Case(RECALL.replace("values[i] - erase", "values[i] + erase"), "is added; it is to be subtracted"),
    ],
    "lstm_step": [
        Case(CELL + "    c = f * c + i * g\n    return torch.stack((o * torch.tanh(c), c))\n"),
        Case("""
def lstm_step(x, h, c, W, U, b):
    width = len(h)
    z = torch.cat([W, U], dim=1) @ torch.cat([x, h]) + b
    gate = lambda number: z[number * width : (number + 1) * width]
    new_c = torch.sigmoid(gate(1)) * c + torch.sigmoid(gate(0)) * torch.tanh(gate(2))
    new_h = torch.sigmoid(gate(3)) * torch.tanh(new_c)
    return torch.vstack([new_h, new_c])
"""),
        Case("""
def lstm_step(x, h, c, W, U, b):
    cell = torch.nn.LSTMCell(len(x), len(h)).to(x)
    with torch.no_grad():
        cell.weight_ih.copy_(W); cell.weight_hh.copy_(U); cell.bias_ih.copy_(b); cell.bias_hh.zero_()
        new_h, new_c = cell(x[None], (h[None], c[None]))
    return torch.cat([new_h, new_c])
"""),
        Case(
            CELL + "    c = i * c + f * g\n    return torch.stack([o * torch.tanh(c), c])\n",
            "the forget gate and the input gate are exchanged",
        ),
        Case(CELL + "    c = f * c + i * g\n    return torch.stack([o * c, c])\n", "it multiplies tanh of the cell"),
        Case(CELL + "    c = i * g\n    return torch.stack([o * torch.tanh(c), c])\n", "f * c is missing"),
        Case(
            CELL + "    new = f * c + i * g\n    return torch.stack([o * torch.tanh(c), new])\n",
            "h is computed from the old cell",
        ),
        Case(
            CELL + "    c = f * c + g\n    return torch.stack([o * torch.tanh(c), c])\n", "the candidate is not gated"
        ),
        Case(
            CELL + "    c = f * c + i * g\n    return torch.stack([c, o * torch.tanh(c)])\n",
            "the answer is h first, then c",
        ),
        Case(
            """
def lstm_step(x, h, c, W, U, b):
    i, f, o, g = torch.split(W @ x + U @ h + b, len(h))
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.stack([torch.sigmoid(o) * torch.tanh(c), c])
""",
            "the last two are exchanged",
        ),
        Case(
            """
def lstm_step(x, h, c, W, U, b):
    i, f, g, o = torch.sigmoid(W @ x + U @ h + b).chunk(4)
    c = f * c + i * g
    return torch.stack([o * torch.tanh(c), c])
""",
            "it is the one of the four that goes through tanh",
        ),
        Case(
            CELL.replace(" + U @ h", "") + "    c = f * c + i * g\n    return torch.stack([o * torch.tanh(c), c])\n",
            "does not use its argument h",
        ),
        Case(CELL + "    return f * c + i * g\n", "wrong shape"),
        Case(CELL + "    c = f * c + i * g\n    return o * torch.tanh(c), c\n", "returns tuple"),
        Case(
            """
def lstm_step(x, h, c, W, U, b):
    i, f, o, g = (W @ x + U @ h + b).chunk(4)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    h = torch.sigmoid(o) * torch.tanh(c)
    return torch.stack([h, c])
""",
            "the four parts lie in the",
        ),
        Case("""
def lstm_step(x, h, c, W, U, b):
    n = h.shape[0]
    z = torch.cat([W, U], 1) @ torch.cat([x, h]) + b
    gate = lambda k: 1 / (1 + torch.exp(-z[k * n : (k + 1) * n]))
    new = gate(1) * c + gate(0) * torch.tanh(z[2 * n : 3 * n])
    return torch.vstack([gate(3) * torch.tanh(new), new])
"""),
    ],
    "ogd_step": [
        Case("""
def ogd_step(w, x, y):
    error = y - torch.einsum("bd,bd->b", w, x)
    return w + torch.einsum("b,bd->bd", error / (x ** 2).sum(1), x)
"""),
        Case("""
def ogd_step(w, x, y):
    u = x / x.norm(dim=1, keepdim=True)
    return w - u * (u * w).sum(1, keepdim=True) + x * (y / x.square().sum(1)).unsqueeze(1)
"""),
        Case("""
def ogd_step(w, x, y):
    rows = []
    for wi, xi, yi in zip(w, x, y):
        rows.append(wi - (wi @ xi - yi) / (xi @ xi) * xi)
    return torch.stack(rows)
"""),
        Case(
            """
def ogd_step(w, x, y):
    residual = (w * x).sum(1) - y
    return w + (residual / (x * x).sum(1))[:, None] * x
""",
            "the step goes uphill",
        ),
        Case(
            """
def ogd_step(w, x, y):
    residual = y - (w * x).sum(1)
    return w + (residual / x.norm(dim=1))[:, None] * x
""",
            "it must be the squared length",
        ),
        Case(
            """
def ogd_step(w, x, y):
    return w + (y - (w * x).sum(1))[:, None] * x
""",
            "not divided by the squared length",
        ),
        Case(
            """
def ogd_step(w, x, y):
    return w + (y / (x * x).sum(1))[:, None] * x
""",
            "towards y alone",
        ),
        Case(
            """
def ogd_step(w, x, y):
    gradient = 2 * ((w * x).sum(1) - y)[:, None] * x
    return w - gradient / (x * x).sum(1, keepdim=True)
""",
            "twice the step",
        ),
        Case(
            """
def ogd_step(w, x, y):
    return w + (y - (w * x).sum(1))[:, None] * x / (x * x).sum()
""",
            "one length for the whole batch",
        ),
        Case(
            """
def ogd_step(w, x, y):
    return ((y - (w * x).sum(1)) / (x * x).sum(1))[:, None] * x
""",
            "returns the change of the weights",
        ),
        Case(
            """
def ogd_step(w, x, y):
    return w + (y - (w * x).sum(1))[:, None] * x / x.shape[1]
""",
            "divides by the dimension d",
        ),
        Case(
            """
def ogd_step(w, x, y):
    w += ((y - (w * x).sum(1)) / (x * x).sum(1))[:, None] * x
    return w
""",
            "changes its argument w in place",
        ),
        Case(
            """
def ogd_step(w, x, y):
    residual = y - (w * x).sum(-1)
    return w + (residual / x.norm(dim=-1))[:, None] * x
""",
            "divides by the length of x",
        ),
        Case("""
def ogd_step(w, x, y):
    new = w.clone()
    for i in range(w.size(0)):
        new[i] += (y[i] - torch.dot(w[i], x[i])) / torch.dot(x[i], x[i]) * x[i]
    return new
"""),
    ],
    "ask_again": [
        Case("""
def ask_again(xs, gap):
    n = xs.shape[1]
    return torch.cat((xs, xs[:, n - gap : n - gap + 1]), dim=1)
"""),
        Case("""
def ask_again(xs, gap):
    order = list(range(xs.shape[1])) + [xs.shape[1] - gap]
    return xs[:, order]
"""),
        Case("""
def ask_again(xs, gap):
    batch, n, d = xs.shape
    out = xs.new_empty(batch, n + 1, d)
    out[:, :n] = xs
    out[:, n] = xs.flip(1)[:, gap - 1]
    return out
"""),
        Case(
            """
def ask_again(xs, gap):
    return torch.cat([xs, xs[:, -gap - 1, None]], dim=1)
""",
            "one too far back",
        ),
        Case(
            """
def ask_again(xs, gap):
    return torch.cat([xs, xs[:, -gap + 1, None]], dim=1)
""",
            "one too near",
        ),
        Case(
            """
def ask_again(xs, gap):
    return torch.cat([xs, xs[:, gap - 1, None]], dim=1)
""",
            "counted from the first example; it counts back",
        ),
        Case(
            """
def ask_again(xs, gap):
    return torch.cat([xs, xs[:, gap].unsqueeze(1)], dim=1)
""",
            "the index is `gap`",
        ),
        Case(
            """
def ask_again(xs, gap):
    return torch.cat([xs[:, -gap, None], xs], dim=1)
""",
            "the question stands first",
        ),
        Case(
            """
def ask_again(xs, gap):
    question = xs[0, -gap]
    return torch.cat([xs, question.expand(len(xs), 1, -1)], dim=1)
""",
            "every prompt is asked the first prompt's question",
        ),
        Case(
            """
def ask_again(xs, gap):
    return torch.cat([xs[:, :-1], xs[:, -gap, None]], dim=1)
""",
            "wrong shape",
        ),
    ],
    "rls_update": [
        Case("""
def rls_update(P, x):
    Px = P @ x
    return P - Px[:, None] * Px[None, :] / (1 + x.dot(Px))
"""),
        Case("""
def rls_update(P, x):
    return torch.linalg.inv(torch.linalg.inv(P) + torch.outer(x, x))
"""),
        Case("""
def rls_update(P, x):
    gain = (P @ x) / (1 + x @ P @ x)
    return (torch.eye(len(x), dtype=P.dtype, device=P.device) - torch.outer(gain, x)) @ P
"""),
        Case(
            """
def rls_update(P, x):
    Px = P @ x
    return P + torch.outer(Px, Px) / (1 + x @ Px)
""",
            "an inverse shrinks",
        ),
        Case(
            """
def rls_update(P, x):
    Px = P @ x
    return P - torch.outer(Px, Px) / (x @ Px)
""",
            "the 1 is missing",
        ),
        Case(
            """
def rls_update(P, x):
    Px = P @ x
    return P - torch.outer(Px, Px) / (1 + x @ x)
""",
            "here it is 1 + x . x",
        ),
        Case(
            """
def rls_update(P, x):
    Px = P @ x
    return P - torch.outer(Px, Px)
""",
            "not divided by",
        ),
        Case(
            """
def rls_update(P, x):
    return P - torch.outer(x, x) / (1 + x @ P @ x)
""",
            "with itself; here it is of x",
        ),
        Case(
            """
def rls_update(P, x):
    return P - torch.outer(P @ x, x) / (1 + x @ P @ x)
""",
            "here one of the two is x",
        ),
        Case(
            """
def rls_update(P, x):
    return P + torch.outer(x, x)
""",
            "that updates S",
        ),
        Case(
            """
def rls_update(P, x):
    Px = P @ x
    return P - Px @ Px / (1 + x @ Px)
""",
            "use torch.outer",
        ),
    ],
    "delta_write": [
        Case("""
def delta_write(S, k, v, strength):
    eye = torch.eye(len(k), dtype=S.dtype, device=S.device)
    return S @ (eye - strength * torch.outer(k, k)) + strength * torch.outer(v, k)
"""),
        Case("""
def delta_write(S, k, v, strength):
    read = S @ k
    target = read + strength * (v - read)
    return S - torch.outer(read, k) + torch.outer(target, k)
"""),
        Case("""
def delta_write(S, k, v, strength):
    return torch.einsum("i,j->ij", strength * (v - torch.einsum("ij,j->i", S, k)), k) + S
"""),
        Case(
            """
def delta_write(S, k, v, strength):
    return S + strength * torch.outer(v, k)
""",
            "the old value is not erased",
        ),
        Case(
            """
def delta_write(S, k, v, strength):
    return (1 - strength) * S + strength * torch.outer(v, k)
""",
            "everything fades",
        ),
        Case(
            """
def delta_write(S, k, v, strength):
    return S + strength * torch.outer(k, v - S @ k)
""",
            "the wrong way round",
        ),
        Case(
            """
def delta_write(S, k, v, strength):
    return S + strength * torch.outer(v - k @ S, k)
""",
            "reads with S^T k",
        ),
        Case(
            """
def delta_write(S, k, v, strength):
    return S - torch.outer(S @ k, k) + strength * torch.outer(v, k)
""",
            "the strength multiplies the new value alone",
        ),
        Case(
            """
def delta_write(S, k, v, strength):
    return S - strength * torch.outer(S @ k, k) + torch.outer(v, k)
""",
            "the strength multiplies the old value alone",
        ),
        Case(
            """
def delta_write(S, k, v, strength):
    return S - strength * torch.outer(v - S @ k, k)
""",
            "it must be added",
        ),
        Case(
            """
def delta_write(S, k, v, strength):
    return S + torch.outer(v - S @ k, k)
""",
            "the argument strength is not used",
        ),
        Case(
            """
def delta_write(S, k, v, strength):
    S += strength * torch.outer(v - S @ k, k)
    return S
""",
            "changes its argument S in place",
        ),
        Case(
            """
def delta_write(S, k, v, strength):
    return S + strength * torch.outer(v - S @ v, k)
""",
            "v is used where k belongs",
        ),
    ],
    "interval": [
        Case("""
def interval(values, t):
    n = values.numel()
    mean = values.sum() / n
    s = torch.sqrt(((values - mean) ** 2).sum() / (n - 1))
    half = t * s / n ** 0.5
    return torch.stack([mean - half, mean + half])
"""),
        Case("""
def interval(values, t):
    half = t * torch.sqrt(values.var() / len(values))
    return values.mean() + half * torch.tensor([-1, 1], device=values.device)
"""),
        Case("""
def interval(values, t):
    n = len(values)
    half = t * (values.var(unbiased=False) / (n - 1)).sqrt()
    return torch.hstack((values.mean() - half, values.mean() + half))
"""),
        Case(
            """
def interval(values, t):
    half = t * values.std()
    return torch.stack([values.mean() - half, values.mean() + half])
""",
            "the spread of single values",
        ),
        Case(
            """
def interval(values, t):
    half = t * values.std() / len(values)
    return torch.stack([values.mean() - half, values.mean() + half])
""",
            "divides by n; the standard deviation of a mean",
        ),
        Case(
            """
def interval(values, t):
    half = t * values.std(unbiased=False) / len(values) ** 0.5
    return torch.stack([values.mean() - half, values.mean() + half])
""",
            "for a sample it divides by n - 1",
        ),
        Case(
            """
def interval(values, t):
    half = t * values.var() / len(values) ** 0.5
    return torch.stack([values.mean() - half, values.mean() + half])
""",
            "uses the variance",
        ),
        Case(
            """
def interval(values, t):
    half = 1.96 * values.std() / len(values) ** 0.5
    return torch.stack([values.mean() - half, values.mean() + half])
""",
            "1.96 instead of t",
        ),
        Case(
            """
def interval(values, t):
    half = t * values.std() / len(values) ** 0.5
    return torch.stack([values.median() - half, values.median() + half])
""",
            "the median is in the middle",
        ),
        Case(
            """
def interval(values, t):
    half = t * values.std() / len(values) ** 0.5
    return torch.stack([values.mean() + half, values.mean() - half])
""",
            "here they are exchanged",
        ),
        Case(
            """
def interval(values, t):
    return torch.stack([values.min(), values.max()])
""",
            "smallest and largest value",
        ),
        Case(
            """
def interval(values, t):
    half = t * values.std() / len(values) ** 0.5
    return (values.mean() - half).item(), (values.mean() + half).item()
""",
            "returns tuple",
        ),
        Case("""
def interval(values, t):
    import numpy as np
    v = np.asarray(values)
    half = t * v.std(ddof=1) / np.sqrt(v.size)
    return torch.tensor([v.mean() - half, v.mean() + half])
"""),
    ],
}
