"""Answers to the exercises of lesson 05: wrong ones that people really give, and right ones written differently."""

from wrong_answers.cases import Case

WRITE = """
def write_memory(U, V, answers, weights):
    W = torch.zeros(V.shape[1], U.shape[1], dtype=U.dtype, device=U.device)
    for z in range(len(U)):
        W = W + weights[z] * torch.outer(V[answers[z]], U[z])
    return W
"""

GRADIENT = """
def memory_gradient(W, U, V, p):
    logits = U @ W.T @ V.T
    believed = torch.softmax(logits, dim=1)
    seen = p.sum(dim=1, keepdim=True)
    C = seen * believed - p
    return V.T @ C.T @ U
"""

STEP = """
def first_step(X, y, V):
    W = torch.zeros(V.shape[1], X.shape[1], dtype=X.dtype, device=X.device)
    for k in range(len(V)):
        hit = (y == k).to(X.dtype)
        W = W + torch.outer(V[k], (hit[:, None] * X).mean(0) - X.mean(0) / len(V))
    return W
"""

CUBIC = """
def cubic_memory(U, V, w, x):
    def h(s):
        return (s**3 - 3 * s) / 6**0.5
    a = h(U @ w.T).T @ V / len(w)
    return h(x @ w.T) @ a @ V.T
"""

INNER = """
def inner_gradient(W1, W2, X, y):
    before = X @ W1.T
    hidden = torch.relu(before)
    error = torch.softmax(hidden @ W2.T, dim=1)
    error = error - torch.eye(len(W2), dtype=X.dtype, device=X.device)[y]
    backward = error @ W2
    backward = backward * (before > 0)
    return backward.T @ X / len(X)
"""

CASES = {
    "write_memory": [
        Case(WRITE),
        Case("def write_memory(U, V, answers, weights):\n    return V[answers].T @ torch.diag(weights) @ U\n"),
        Case("def write_memory(U, V, answers, weights):\n    return torch.einsum('z,ze,zd->ed', weights, V[answers], U)\n"),
        Case("def write_memory(U, V, answers, weights):\n    return V.T @ (weights[:, None] * U)\n", "its answer is row answers[z]"),
        Case(WRITE.replace("V[answers[z]], U[z]", "V[z], U[answers[z]]"), "it picks rows of V"),
        Case(WRITE.replace("U[z])", "U[answers[z]])"), "both U and V are picked"),
        Case(WRITE.replace("weights[z] * ", ""), "the weights are not used"),
        Case(
            "def write_memory(U, V, answers, weights):\n    w = weights[:, None]\n    return (w * V[answers]).T @ (w * U)\n",
            "the weights come in twice",
        ),
        Case(WRITE.replace("return W", "return W / len(U)"), "a mean over the facts"),
        Case(WRITE.replace("weights[z]", "weights[answers[z]]"), "weights[z] belongs to token z"),
        Case(
            "def write_memory(U, V, answers, weights):\n    return (weights[:, None] * U).T @ V[answers]\n",
            "the transpose of the right shape",
        ),
        Case("def write_memory(U, V, answers, weights):\n    U *= weights[:, None]\n    return V[answers].T @ U\n", "in place"),
    ],
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
    ],
    "first_step": [
        Case(STEP),
        Case("""
def first_step(X, y, V):
    hot = torch.eye(len(V), dtype=X.dtype, device=X.device)[y]
    return (hot @ V - V.mean(0)).T @ X / len(X)
"""),
        Case("""
def first_step(X, y, V):
    with torch.enable_grad():
        W = torch.zeros(V.shape[1], X.shape[1], dtype=X.dtype, device=X.device, requires_grad=True)
        loss = torch.nn.functional.cross_entropy(X @ W.T @ V.T, y)
        return -torch.autograd.grad(loss, W)[0]
"""),
        Case(STEP.replace(" - X.mean(0) / len(V)", ""), "the mean input is not taken away"),
        Case(STEP.replace("X.mean(0) / len(V)", "X.mean(0)"), "taken away whole"),
        Case(STEP.replace("return W", "return W * len(X)"), "a sum over the sample"),
        Case(STEP.replace("return W", "return -W"), "a step goes against the gradient"),
        Case(
            """
def first_step(X, y, V):
    W = torch.zeros(V.shape[1], X.shape[1], dtype=X.dtype, device=X.device)
    for k in range(len(V)):
        mu = X[y == k].mean(0) if (y == k).any() else torch.zeros_like(X[0])
        W = W + torch.outer(V[k], mu - X.mean(0)) / len(V)
    return W
""",
            "not weighted by p(k)",
        ),
        Case(
            """
def first_step(X, y, V):
    hot = torch.eye(len(V), dtype=X.dtype, device=X.device)[y]
    return (hot @ V).T @ (X - X.mean(0)) / len(X)
""",
            "only the inputs are centred",
        ),
        Case(
            "def first_step(X, y, V):\n    return torch.zeros(V.shape[1], X.shape[1], dtype=X.dtype, device=X.device)\n", "every entry is 0"
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
    ],
    "unseen_mass": [
        Case("def unseen_mass(p, n):\n    return torch.sum(p * (1 - p) ** n)\n"),
        Case("def unseen_mass(p, n):\n    return p @ torch.exp(n * torch.log1p(-p))\n"),
        Case("def unseen_mass(p, n):\n    return sum(q * (1 - q) ** n for q in p)\n"),
        Case("def unseen_mass(p, n):\n    return ((1 - p) ** n).sum()\n", "the number of unseen tokens"),
        Case("def unseen_mass(p, n):\n    return 1 - (p * (1 - p) ** n).sum()\n", "the mass that has been seen"),
        Case("def unseen_mass(p, n):\n    return (p * p**n).sum()\n", "the same token every time"),
        Case("def unseen_mass(p, n):\n    return (p * (1 - p**n)).sum()\n", "each of n draws misses it"),
        Case("def unseen_mass(p, n):\n    return (p * (1 - p) ** (n - 1)).sum()\n", "one draw too few"),
        Case("def unseen_mass(p, n):\n    return (p * (1 - p) ** (n + 1)).sum()\n", "one draw too many"),
        Case("def unseen_mass(p, n):\n    return (p * (1 - p) ** n).mean()\n", "a mean over tokens"),
        Case("def unseen_mass(p, n):\n    return (p * torch.exp(-n * p)).sum()\n", "an approximation for small p"),
        Case("def unseen_mass(p, n):\n    return (p * (1 - n * p)).sum()\n", "only the start"),
        Case("def unseen_mass(p, n):\n    return p * (1 - p) ** n\n", "wrong shape"),
        Case("def unseen_mass(p, n):\n    return float((p * (1 - p) ** n).sum())\n", "returns float"),
    ],
    "inner_gradient": [
        Case(INNER),
        Case("""
def inner_gradient(W1, W2, X, y):
    with torch.enable_grad():
        W = W1.detach().clone().requires_grad_()
        loss = torch.nn.functional.cross_entropy(torch.relu(X @ W.T) @ W2.T, y)
        return torch.autograd.grad(loss, W)[0]
"""),
        Case("""
def inner_gradient(W1, W2, X, y):
    G = torch.zeros_like(W1)
    for x, k in zip(X, y):
        a = W1 @ x
        error = torch.softmax(W2 @ a.clamp(min=0), dim=0)
        backward = (W2.T @ error - W2[k]) * (a > 0)
        G = G + torch.outer(backward, x)
    return G / len(X)
"""),
        Case(INNER.replace("    backward = backward * (before > 0)\n", ""), "the gate of the ReLU is missing"),
        Case(INNER.replace("return backward", "return -backward"), "the direction of descent"),
        Case(INNER.replace(" / len(X)", ""), "a sum over the examples"),
        Case(INNER.replace(" - torch.eye(len(W2), dtype=X.dtype, device=X.device)[y]", ""), "not taken away from the softmax"),
        Case(INNER.replace("torch.softmax(hidden @ W2.T, dim=1)", "0"), "the softmax is missing"),
        Case(INNER.replace("hidden @ W2.T", "before @ W2.T"), "without the ReLU"),
        Case(INNER.replace("/ len(X)", "/ len(X) ** 2"), "twice"),
        Case(INNER.replace("backward.T @ X", "X.T @ backward"), "wrong shape"),
    ],
}
