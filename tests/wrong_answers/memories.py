"""Answers to the exercises of lesson 05: wrong ones that people really give, and right ones written differently."""

from wrong_answers.cases import Case

GRADIENT = """
def memory_gradient(W, U, V, p):
    logits = U @ W.T @ V.T
    believed = torch.softmax(logits, dim=1)
    seen = p.sum(dim=1, keepdim=True)
    C = seen * believed - p
    return V.T @ C.T @ U
"""

CUBIC = """
def cubic_memory(U, V, w, x):
    def h(s):
        return (s**3 - 3 * s) / 6**0.5
    a = h(U @ w.T).T @ V / len(w)
    return h(x @ w.T) @ a @ V.T
"""

STEP = """
def flow_step(x, beta, dt):
    pull = torch.softmax(beta * x @ x.T, dim=1) @ x
    pull = pull - (pull * x).sum(1, keepdim=True) * x
    moved = x + dt * pull
    return moved / moved.norm(dim=1, keepdim=True)
"""

VARIANCE = """
def logit_variance(counts, tokens, answers):
    right = torch.eye(len(counts), dtype=counts.dtype, device=counts.device)
    same = counts - right
    other = counts.sum() - 1 - same
    return same * tokens + other * tokens * answers + (1 - right) * answers
"""

CHANCE = """
def chance_right(variance, own, x):
    s = torch.sqrt(variance)
    right = 1 + s[own] * x
    beats = torch.ones_like(x)
    for k in range(len(variance)):
        if k != own:
            beats = beats * torch.special.ndtr(right / s[k])
    return beats.mean()
"""

SWEEP = """
def hopfield_sweep(X, states):
    J = X.T @ X
    J = J - torch.diag(torch.diag(J))
    new = states.clone()
    for i in range(X.shape[1]):
        field = new @ J[i]
        new[:, i] = torch.where(field == 0, new[:, i], torch.sign(field))
    return new
"""

UPDATE = """
def softmax_update(X, states, beta):
    weights = torch.softmax(beta * states @ X.T, dim=1)
    return weights @ X
"""

CASES = {
    "memory_gradient": [
        Case(GRADIENT),
        Case("""
def memory_gradient(W, U, V, p):
    with torch.enable_grad():
        W = W.detach().clone().requires_grad_()
        loss = -(p * torch.log_softmax(U @ W.T @ V.T, dim=1)).sum()
        return torch.autograd.grad(loss, W)[0]
"""),
        Case("""
def memory_gradient(W, U, V, p):
    G = torch.zeros_like(W)
    for z in range(len(U)):
        q = torch.softmax(V @ W @ U[z], dim=0)
        for k in range(len(V)):
            G = G + p[z].sum() * (q[k] - p[z, k] / p[z].sum()) * torch.outer(V[k], U[z])
    return G
"""),
        Case(GRADIENT.replace("seen * believed - p", "p - seen * believed"), "the direction of descent"),
        Case(GRADIENT.replace("seen * believed - p", "believed - p"), "not weighted by p(z)"),
        Case(GRADIENT.replace("seen * believed - p", "believed - p / seen"), "conditional probabilities on both sides"),
        Case(GRADIENT.replace("seen * believed - p", "(believed - p / seen) / len(U)"), "averaged evenly"),
        Case(GRADIENT.replace("logits, dim=1", "logits, dim=0"), "the softmax runs over the tokens"),
        Case(GRADIENT.replace("seen * believed", "seen * logits"), "there is no softmax"),
        Case(GRADIENT.replace("seen * believed - p", "-p"), "what the model believes is missing"),
        Case(GRADIENT.replace("V.T @ C.T @ U", "U.T @ C @ V"), "wrong shape"),
        Case(GRADIENT.replace("seen * believed - p", "p * (believed - p / seen)"), "weighted by the truth"),
        Case(
            """
def memory_gradient(W, U, V, p):
    q = (U @ W.T @ V.T).softmax(1)
    return V.T @ (q - p).T @ U
""",
            "the softmax is not weighted",
        ),
        Case(
            """
def memory_gradient(W, U, V, p):
    q = (U @ W.T @ V.T).softmax(1)
    e = p.sum(1, keepdim=True) * (q - p)
    return V.T @ e.T @ U
""",
            "the sum of p multiplies both terms, the sum of p times the softmax of",
        ),
        Case("""
def memory_gradient(W, U, V, p):
    W = W.detach().clone().requires_grad_()
    with torch.enable_grad():
        loss = -(p * torch.log_softmax(torch.einsum("kd,ed,me->km", U, W, V), dim=1)).sum()
    loss.backward()
    return W.grad
"""),
    ],
    "logit_variance": [
        Case(VARIANCE),
        Case(
            VARIANCE.replace("return same * tokens", "return (same * tokens").replace(
                "(1 - right) * answers", "(1 - right) * answers) / counts.sum()"
            ),
            "not a mean",
        ),
        Case("""
def logit_variance(counts, tokens, answers):
    m, N = len(counts), counts.sum()
    rows = []
    for j in range(m):
        row = []
        for k in range(m):
            if j == k:
                row.append((counts[k] - 1) * tokens + (N - counts[k]) * tokens * answers)
            else:
                row.append(counts[k] * tokens + (N - 1 - counts[k]) * tokens * answers + answers)
        rows.append(torch.stack(row))
    return torch.stack(rows)
"""),
        Case("""
def logit_variance(counts, tokens, answers):
    wrong = counts * tokens + (counts.sum() - 1 - counts) * tokens * answers + answers
    right = (counts - 1) * tokens + (counts.sum() - counts) * tokens * answers
    return torch.where(torch.eye(len(counts), dtype=torch.bool, device=counts.device), right, wrong)
"""),
        Case(VARIANCE.replace("counts - right", "counts + 0 * right"), "counted among the facts that share"),
        Case(VARIANCE.replace("counts.sum() - 1", "counts.sum()"), "N - 1 others"),
        Case(VARIANCE.replace(" + (1 - right) * answers", ""), "own fact is missing"),
        Case(VARIANCE.replace("(1 - right) * answers", "answers"), "no variance there"),
        Case(VARIANCE.replace("other * tokens * answers", "other * tokens"), "overlap in both"),
        Case(VARIANCE.replace("other * tokens * answers", "other * answers"), "the answers' overlap alone"),
        Case(VARIANCE.replace("return same", "return (same").replace("* answers\n", "* answers) ** 0.5\n"), "standard"),
        Case(
            VARIANCE.replace("same * tokens + other * tokens * answers", "same * tokens * answers + other * tokens"),
            "are exchanged",
        ),
        Case(
            """
def logit_variance(counts, tokens, answers):
    return counts * tokens + (counts.sum() - 1 - counts) * tokens * answers + answers
""",
            "wrong shape",
        ),
        Case(
            """
def logit_variance(counts, tokens, answers):
    n = len(counts)
    own = torch.eye(n, dtype=counts.dtype)
    same = counts.expand(n, n)
    other = counts.sum() - counts
    return same * tokens + other * tokens * answers + (1 - own) * answers
""",
            "is not subtracted",
        ),
    ],
    "chance_right": [
        Case(CHANCE),
        Case(
            CHANCE.replace("beats * torch.special", "torch.minimum(beats, torch.special").replace("s[k])", "s[k]))"),
            "only the hardest rival",
        ),
        Case(
            CHANCE.replace("torch.special.ndtr(right / s[k])", "(1 - torch.special.ndtr(right / s[k]))"),
            "every rival beats the right answer",
        ),
        Case("""
def chance_right(variance, own, x):
    s = variance.sqrt()
    log_beats = torch.special.log_ndtr((1 + s[own] * x) / s[:, None])
    return (log_beats.sum(0) - log_beats[own]).exp().mean()
"""),
        Case("""
def chance_right(variance, own, x):
    rivals = torch.arange(len(variance), device=variance.device) != own
    z = (1 + variance[own] ** 0.5 * x)[:, None] / variance[rivals] ** 0.5
    return torch.mean(torch.prod((1 + torch.erf(z / 2**0.5)) / 2, dim=1))
"""),
        Case(CHANCE.replace("if k != own", "if True"), "among its own rivals"),
        Case(CHANCE.replace("1 + s[own]", "s[own]"), "the mean of the right logit"),
        Case(CHANCE.replace("s[own] * x", "0 * x"), "the noise of the right logit"),
        Case(CHANCE.replace("torch.sqrt(variance)", "variance"), "take square roots"),
        Case(CHANCE.replace("return beats.mean()", "return 1 - beats.mean()"), "the chance to err"),
        Case(
            """
def chance_right(variance, own, x):
    s = variance.sqrt()
    beats = torch.special.ndtr((1 + s[own] * x) / s[:, None]).mean(1)
    return torch.cat([beats[:own], beats[own + 1:]]).prod()
""",
            "averaged over x for each rival",
        ),
        Case(
            """
def chance_right(variance, own, x):
    s = variance.sqrt()
    beats = torch.special.ndtr((1 + s[own] * x) / s[:, None])
    return torch.cat([beats[:own], beats[own + 1:]]).mean(0).mean()
""",
            "all of them must be beaten",
        ),
        Case(CHANCE.replace("beats.mean()", "beats"), "wrong shape"),
        Case(
            """
def chance_right(variance, own, x):
    right = 1 + variance[own].sqrt() * x
    beaten = torch.special.ndtr(right / variance.sqrt()[:, None])
    return beaten.prod(0).mean()
""",
            "the right answer is counted",
        ),
        Case(
            """
def chance_right(variance, own, x):
    right = 1 + variance[own] * x
    beaten = torch.special.ndtr(right / variance[:, None])
    rivals = torch.cat([beaten[:own], beaten[own + 1:]])
    return rivals.prod(0).mean()
""",
            "variances where standard deviations",
        ),
        Case(
            """
def chance_right(variance, own, x):
    right = 1 + variance[own].sqrt() * x
    rivals = torch.cat([variance[:own], variance[own + 1:]])
    beaten = torch.special.ndtr(right / rivals[:, None])
    return beaten.prod(0).mean()
""",
            "the square root of variance is missing",
        ),
    ],
    "cubic_memory": [
        Case(CUBIC),
        Case("""
def cubic_memory(U, V, w, x):
    hidden = torch.stack([U @ unit for unit in w], dim=1)
    query = torch.stack([x @ unit for unit in w], dim=1)
    kernel = (query**3 - 3 * query) @ (hidden**3 - 3 * hidden).T / (6 * w.shape[0])
    return kernel @ (V @ V.T)
"""),
        Case("""
def cubic_memory(U, V, w, x):
    h = lambda s: s * (s * s - 3) / 6**0.5
    out = torch.zeros(len(x), V.shape[1], dtype=U.dtype, device=U.device)
    for i in range(len(w)):
        a = (h(U @ w[i])[:, None] * V).sum(0) / len(w)
        out = out + torch.outer(h(x @ w[i]), a)
    return out @ V.T
"""),
        Case(CUBIC.replace(" / 6**0.5", ""), "the square root of 6 is missing"),
        Case(CUBIC.replace(" / 6**0.5", "").replace("len(w)\n", "len(w) / 6**0.5\n"), "divided by sqrt(6) once in all"),
        Case(CUBIC.replace(" - 3 * s", ""), "- 3 x is missing"),
        Case(CUBIC.replace(" / len(w)", ""), "1/m, is missing"),
        Case(CUBIC.replace("len(w)", "len(U)"), "divide by the number of units"),
        Case(CUBIC.replace("h(U @ w.T)", "(U @ w.T)"), "facts are stored without h"),
        Case(CUBIC.replace("h(x @ w.T)", "(x @ w.T)"), "h is missing when it is read"),
        Case(CUBIC.replace("(s**3 - 3 * s) / 6**0.5", "s"), "that is a linear memory"),
        Case(CUBIC.replace("(s**3 - 3 * s) / 6**0.5", "(s**2 - 1) / 2**0.5"), "degree 2"),
        Case(CUBIC.replace(" @ V.T\n", "\n"), "wrong shape"),
        Case(CUBIC.replace("3 * s)", "s)"), "- 3 x"),
        Case(
            """
def cubic_memory(U, V, w, x):
    h = lambda s: (s ** 3 - 3 * s) / 6
    a = h(U @ w.T).T @ V / len(w)
    return h(x @ w.T) @ a @ V.T
""",
            "the square root is missing: 6 itself is taken",
        ),
        Case("""
def cubic_memory(U, V, w, x):
    def h(s):
        return s * (s * s - 3) / torch.tensor(6.0, dtype=s.dtype).sqrt()
    return torch.einsum("tm,nm,ne,ke->tk", h(x @ w.T), h(U @ w.T), V, V) / w.shape[0]
"""),
    ],
    "hopfield_sweep": [
        Case(SWEEP),
        Case("""
def hopfield_sweep(X, states):
    new = states.clone()
    for i in range(X.shape[1]):
        others = torch.arange(X.shape[1], device=X.device) != i
        field = (new[:, others] @ X[:, others].T) @ X[:, i]
        new[:, i] = torch.sign(2 * field + new[:, i])
    return new
"""),
        Case("""
def hopfield_sweep(X, states):
    rows = []
    for s in states:
        s = s.clone()
        for i in range(len(s)):
            field = X[:, i] @ (X @ s) - len(X) * s[i]
            if field != 0:
                s[i] = field.sign()
        rows.append(s)
    return torch.stack(rows)
"""),
        Case(SWEEP.replace("    J = J - torch.diag(torch.diag(J))\n", ""), "keep their diagonal"),
        Case(SWEEP.replace("field = new", "field = states"), "updated at once"),
        Case(SWEEP.replace("torch.where(field == 0, new[:, i], torch.sign(field))", "torch.sign(field)"), "gives 0"),
        Case(
            SWEEP.replace("torch.where(field == 0, new[:, i], torch.sign(field))", "(field >= 0).to(X) * 2 - 1"),
            "gives +1",
        ),
        Case(
            SWEEP.replace("torch.where(field == 0, new[:, i], torch.sign(field))", "(field > 0).to(X) * 2 - 1"),
            "gives -1",
        ),
        Case(SWEEP.replace("range(X.shape[1])", "[*range(X.shape[1])] * 2"), "two sweeps"),
        Case(SWEEP.replace("range(X.shape[1])", "reversed(range(X.shape[1]))"), "from the last to the first"),
        Case(SWEEP.replace("field = new", "field = -new"), "the sign of the field is flipped"),
        Case(SWEEP.replace("states.clone()", "states"), "in place"),
        Case(
            """
def hopfield_sweep(X, states):
    J = X.T @ X
    J.fill_diagonal_(0)
    field = states @ J
    return torch.where(field == 0, states, field.sign())
""",
            "all signs are updated at once",
        ),
    ],
    "softmax_update": [
        Case(UPDATE),
        Case("""
def softmax_update(X, states, beta):
    return torch.nn.functional.scaled_dot_product_attention(states[None], X[None], X[None], scale=beta)[0]
"""),
        Case("""
def softmax_update(X, states, beta):
    rows = []
    for s in states:
        weights = torch.exp(beta * (X * s).sum(1))
        rows.append((weights[:, None] * X).sum(0) / weights.sum())
    return torch.stack(rows)
"""),
        Case(UPDATE.replace("beta * states @ X.T", "beta * states @ X.T / X.shape[1] ** 0.5"), "the whole scale"),
        Case(
            UPDATE.replace("beta * states", "states").replace("weights @ X", "beta * weights @ X"), "inside the softmax"
        ),
        Case(UPDATE.replace("dim=1", "dim=0"), "runs over the patterns"),
        Case("def softmax_update(X, states, beta):\n    return beta * states @ X.T @ X\n", "there is no softmax"),
        Case("def softmax_update(X, states, beta):\n    return torch.sign(states @ X.T @ X)\n", "takes the sign"),
        Case(UPDATE.replace("weights @ X\n", "states + weights @ X\n"), "adds the state"),
        Case(
            "def softmax_update(X, states, beta):\n    return X[(states @ X.T).argmax(1)]\n", "the best pattern alone"
        ),
        Case(UPDATE.replace("weights @ X\n", "torch.nn.functional.normalize(weights @ X, dim=1)\n"), "length 1"),
        Case(UPDATE.replace("beta * states", "-beta * states"), "the sign of beta"),
        Case(UPDATE.replace("beta * states", "states"), "does not use its argument beta"),
        Case(
            """
def softmax_update(X, states, beta):
    scores = states @ X.T
    return beta * scores.softmax(1) @ X
""",
            "beta multiplies the weights",
        ),
        Case(
            """
def softmax_update(X, states, beta):
    return states + (beta * states @ X.T).softmax(1) @ X
""",
            "adds the state: the update",
        ),
        Case("""
def softmax_update(X, states, beta):
    out = torch.empty_like(states)
    for i, s in enumerate(states):
        e = torch.exp(beta * (X @ s) - (beta * (X @ s)).max())
        out[i] = (e / e.sum()) @ X
    return out
"""),
    ],
    "flow_step": [
        Case(STEP),
        Case("""
def flow_step(x, beta, dt):
    rows = []
    for i in range(len(x)):
        weights = torch.softmax(beta * (x @ x[i]), dim=0)
        pull = weights @ x
        step = pull - (pull @ x[i]) * x[i]
        new = x[i] + dt * step
        rows.append(new / new.norm())
    return torch.stack(rows)
"""),
        Case("""
def flow_step(x, beta, dt):
    pull = torch.nn.functional.scaled_dot_product_attention(x[None], x[None], x[None], scale=beta)[0]
    along = torch.einsum("id,id->i", pull, x)[:, None]
    return torch.nn.functional.normalize(x + dt * (pull - along * x), dim=-1)
"""),
        Case(STEP.replace("    pull = pull - (pull * x).sum(1, keepdim=True) * x\n", ""), "the pull is not projected"),
        Case(STEP.replace("return moved / moved.norm(dim=1, keepdim=True)", "return moved"), "leave the sphere"),
        Case(STEP.replace("dt * pull", "pull"), "not multiplied by dt"),
        Case(STEP.replace("x + dt", "x - dt"), "pushed apart"),
        Case(STEP.replace("beta * x @ x.T", "x @ x.T"), "beta is not used"),
        Case(
            STEP.replace("beta * x @ x.T,", "(beta * x @ x.T).fill_diagonal_(-torch.inf),"),
            "does not attend to itself",
        ),
        Case(STEP.replace("torch.softmax(beta * x @ x.T, dim=1)", "torch.exp(beta * x @ x.T)"), "there is no softmax"),
        Case(STEP.replace("moved = x +", "moved = x; moved +="), "changes its argument x in place"),
        Case(
            """
def flow_step(x, beta, dt):
    A = torch.softmax(beta * x @ x.T, dim=1)
    v = A @ x
    v = v - (v * x).sum(1, keepdim=True) * x
    return x + dt * v
""",
            "the tokens leave the sphere",
        ),
        Case(
            """
def flow_step(x, beta, dt):
    A = torch.softmax(beta * x @ x.T, dim=1)
    v = A @ x
    v = v - (v * x).sum(1, keepdim=True) * v
    return torch.nn.functional.normalize(x + dt * v, dim=1)
""",
            "is used where x belongs",
        ),
        Case("""
def flow_step(x, beta, dt):
    w = torch.exp(beta * torch.einsum("id,jd->ij", x, x))
    w /= w.sum(dim=1, keepdim=True)
    pull = torch.einsum("ij,jd->id", w, x)
    tangent = torch.stack([p - torch.dot(p, q) * q for p, q in zip(pull, x)])
    moved = x + dt * tangent
    return moved / moved.pow(2).sum(1, keepdim=True).sqrt()
"""),
        Case(
            """
def flow_step(x, beta, dt):
    pull = (beta * x @ x.T).softmax(1) @ x
    pull = pull - (pull * x).sum(1, keepdim=True)
    y = x + dt * pull
    return y / y.norm(dim=1, keepdim=True)
""",
            "the factor x is missing",
        ),
        Case(
            """
def flow_step(x, beta, dt):
    pull = (beta * x @ x.T).softmax(1) @ x
    y = x + dt * pull
    y = y - (y * x).sum(1, keepdim=True) * x
    return y / y.norm(dim=1, keepdim=True)
""",
            "x is missing: only",
        ),
    ],
}
