"""Answers to the exercises of lesson 09: wrong ones that people really give, and right ones written differently."""

from wrong_answers.cases import Case

FIT = """
def shared_pattern(Z, y):
    D = Z[:-1] - Z[-1]
    a = torch.linalg.solve(D @ D.T, D @ (y - Z[-1]))
    return torch.cat([a, (1 - a.sum()).reshape(1)])
"""
FREE = """
def shared_pattern(Z, y):
    p = torch.linalg.solve(Z @ Z.T, Z @ y)
"""

ROWS = """
def constraint_rows(x, tokens, p):
    rows = torch.stack([torch.outer(x, token - tokens[-1]).flatten() for token in tokens[:-1]])
    logs = (p[:-1] / p[-1]).log()
    return torch.cat([rows, logs[:, None]], 1)
"""
ASCENT = """
def minimum_norm_point(A, b, eps, sweeps):
    theta, dual = torch.zeros_like(A[0]), torch.zeros_like(b)
    for _ in range(sweeps):
        for j in range(len(b)):
            size = A[j] @ A[j]
            goal = dual[j] + (b[j] - A[j] @ theta) / size
            new = goal.sign() * (goal.abs() - eps / size).clamp_min(0)
            theta = theta + (new - dual[j]) * A[j]
            dual[j] = new
    return theta
"""
MARGIN = """
def sum_by_margin(X, Y, theta, many):
    pattern = (X @ theta @ X.mT).softmax(-1)
    weight, at = pattern.max(-1)
    best = weight.flatten().topk(many).indices
    n, row = best // X.shape[1], best % X.shape[1]
    return torch.linalg.lstsq(X[n, at[n, row]], Y[n, row]).solution
"""

CASES = {
    "first_step": [
        Case("def first_step(X, Y):\n    n, k, d = X.shape\n    return X.sum(1).T @ Y.sum(1) / (n * k)\n"),
        Case("""
def first_step(X, Y):
    n, k, d = X.shape
    J = torch.ones(k, k, dtype=X.dtype, device=X.device)
    return (X.mT @ J @ Y / k).mean(0)
"""),
        Case("""
def first_step(X, Y):
    total = torch.zeros(X.shape[2], Y.shape[2], dtype=X.dtype, device=X.device)
    for x, y in zip(X, Y):
        total = total + torch.outer(x.sum(0), y.sum(0))
    return total / len(X) / X.shape[1]
"""),
        Case(
            "def first_step(X, Y):\n    return X.sum(1).T @ Y.sum(1) / X.shape[1]\n",
            "the mean over sequences is missing",
        ),
        Case("def first_step(X, Y):\n    return X.sum(1).T @ Y.sum(1) / len(X)\n", "the factor 1/k is missing"),
        Case(
            "def first_step(X, Y):\n    return (X.mT @ Y).mean(0) / X.shape[1]\n",
            "pairs each token with its own answer only",
        ),
        Case("def first_step(X, Y):\n    return X.mean(1).T @ Y.mean(1) / len(X)\n", "divides by k twice"),
        Case(
            "def first_step(X, Y):\n    n, k, d = X.shape\n    return Y.sum(1).T @ X.sum(1) / (n * k)\n",
            "rows belong to X",
        ),
        Case(
            "def first_step(X, Y):\n    n, k, d = X.shape\n"
            "    return torch.outer(X.sum(0).sum(0), Y.sum(0).sum(0)) / (n * k)\n",
            "mixes sequences",
        ),
        Case(
            """
def first_step(X, Y):
    return X.mean(1).T @ Y.mean(1) / len(X)
""",
            "divides by k twice",
        ),
        Case(
            """
def first_step(X, Y):
    n, k, d = X.shape
    return (Y.sum(1).T @ X.sum(1)) / (n * k)
""",
            "the answer is transposed:",
        ),
        Case("""
def first_step(X, Y):
    n, k, d = X.shape
    J = torch.ones(k, k, dtype=X.dtype)
    total = sum(x.T @ J @ y for x, y in zip(X, Y))
    return total / n / k
"""),
    ],
    "shared_pattern": [
        Case(FIT),
        Case("""
def shared_pattern(Z, y):
    a = torch.linalg.pinv((Z[1:] - Z[0]).T) @ (y - Z[0])
    return torch.cat([1 - a.sum(0, keepdim=True), a])
"""),
        Case("""
def shared_pattern(Z, y):
    k = len(Z)
    ones = torch.ones(k, 1, dtype=Z.dtype, device=Z.device)
    top = torch.cat([Z @ Z.T, ones], 1)
    bottom = torch.cat([ones.T, 0 * ones[:1]], 1)
    right = torch.cat([Z @ y, ones[0]])
    return torch.linalg.solve(torch.cat([top, bottom]), right)[:k]
"""),
        Case(FREE + "    return p\n", "the weights do not sum to 1"),
        Case(FREE + "    return p / p.sum()\n", "divided by the sum afterwards"),
        Case(FREE + "    return p + (1 - p.sum()) / len(p)\n", "shifted to the sum afterwards"),
        Case("def shared_pattern(Z, y):\n    return torch.softmax(Z @ y, 0)\n", "nothing was solved"),
        Case(
            FIT.replace("[a, (1 - a.sum()).reshape(1)]", "[(1 - a.sum()).reshape(1), a]"),
            "the last weight stands first",
        ),
        Case(FIT.replace("(y - Z[-1])", "y"), "y is not moved"),
        Case(FIT.replace("torch.cat([a, (1 - a.sum()).reshape(1)])", "a"), "wrong shape"),
        Case(
            """
def shared_pattern(Z, y):
    a = torch.linalg.lstsq((Z[1:] - Z[0]).T, (y - Z[0])[:, None]).solution[:, 0]
    return torch.cat([a, 1 - a.sum(0, keepdim=True)])
""",
            "the answer is shifted by one place back",
        ),
        Case(
            """
def shared_pattern(Z, y):
    p = torch.linalg.lstsq(Z.T, y[:, None]).solution[:, 0]
    return p.softmax(0)
""",
            "wrong values in",
        ),
        Case(
            """
def shared_pattern(Z, y):
    k = len(Z)
    M = torch.zeros(k + 1, k + 1, dtype=Z.dtype)
    M[:k, :k] = Z @ Z.T
    M[:k, k] = M[k, :k] = 1
    return torch.linalg.solve(M, torch.cat([Z @ y, torch.ones(1, dtype=Z.dtype)]))[:k]
""",
            advice="CPU",
        ),
    ],
    "constraint_rows": [
        Case(ROWS),
        Case("""
def constraint_rows(x, tokens, p):
    rows = torch.kron(x[None], tokens[:-1] - tokens[-1:])
    return torch.cat([rows, (p[:-1].log() - p[-1].log()).unsqueeze(1)], 1)
"""),
        Case("""
def constraint_rows(x, tokens, p):
    rows = torch.einsum('i,aj->aij', x, tokens) - torch.einsum('i,j->ij', x, tokens[-1])
    logs = torch.log(p) - torch.log(p[-1])
    return torch.cat([rows.flatten(1), logs[:, None]], 1)[:-1]
"""),
        Case(ROWS.replace("torch.outer(x, token - tokens[-1])", "torch.outer(token - tokens[-1], x)"), "transposed"),
        Case(ROWS.replace("token - tokens[-1]", "tokens[-1] - token"), "the sign of the differences is flipped"),
        Case(ROWS.replace("token - tokens[-1]", "token"), "the last token is missing in the rows"),
        Case(ROWS.replace("(p[:-1] / p[-1])", "p[:-1]"), "the last token is missing on the right"),
        Case(ROWS.replace(".log()", ""), "the scores are its logarithm"),
        Case(
            ROWS.replace("in tokens[:-1]", "in tokens[1:]").replace("token - tokens[-1]", "token - tokens[0]"),
            "the tokens are compared with the first one",
        ),
        Case(ROWS.replace("torch.cat([rows, logs[:, None]], 1)", "rows"), "wrong shape"),
        Case(
            """
def constraint_rows(x, tokens, p):
    rows = torch.stack([torch.outer(x, t - tokens[-1]).flatten() for t in tokens[:-1]])
    logs = (p[:-1] - p[-1]).log()
    return torch.cat([rows, logs[:, None]], 1)
""",
            "p is subtracted; divide by it",
        ),
        Case(
            """
def constraint_rows(x, tokens, p):
    rows = torch.stack([torch.outer(x, t - tokens[-1]).flatten() for t in tokens[:-1]])
    logs = p[:-1].log() / p[-1].log()
    return torch.cat([rows, logs[:, None]], 1)
""",
            "the logarithm is taken of the part of p and of p, each by itself; it is",
        ),
    ],
    "minimum_norm_point": [
        Case(ASCENT),
        Case("""
def minimum_norm_point(A, b, eps, sweeps):
    G, dual = A @ A.T, torch.zeros_like(b)
    for step in range(sweeps * len(b)):
        j = step % len(b)
        goal = dual[j] + (b[j] - G[j] @ dual) / G[j, j]
        dual[j] = torch.nn.functional.softshrink(goal * G[j, j], eps) / G[j, j]
    return dual @ A
"""),
        Case("""
def minimum_norm_point(A, b, eps, sweeps):
    pushed = [torch.zeros((), dtype=b.dtype, device=b.device) for _ in b]
    theta = torch.zeros_like(A[0])
    for _ in range(sweeps):
        for j, (a, middle) in enumerate(zip(A, b)):
            without = theta - pushed[j] * a
            off = middle - a @ without
            pushed[j] = (torch.relu(off - eps) - torch.relu(-off - eps)) / (a * a).sum()
            theta = without + pushed[j] * a
    return theta
"""),
        Case(ASCENT.replace("- eps / size", ""), "eps is not used"),
        Case(ASCENT.replace("eps / size", "eps"), "eps must be divided by"),
        Case(ASCENT.replace("A[j] @ A[j]", "A[j].norm()"), "divides by |A_j|"),
        Case(ASCENT.replace("dual[j] = new", "pass"), "what a row has pushed before is forgotten"),
        Case(
            """
def minimum_norm_point(A, b, eps, sweeps):
    theta, dual, size = torch.zeros_like(A[0]), torch.zeros_like(b), A.square().sum(1)
    for _ in range(sweeps):
        goal = dual + (b - A @ theta) / size
        dual = goal.sign() * torch.relu(goal.abs() - eps / size)
        theta = A.T @ dual
    return theta
""",
            "all rows are moved at once",
        ),
        Case(ASCENT.replace("range(sweeps)", "range(1)"), "only one sweep"),
        Case(ASCENT.replace("(b[j] - A[j] @ theta) / size", "(b[j] - A[j] @ theta) / (2 * size)"), "half of what is"),
        Case(ASCENT.replace("return theta", "return dual"), "wrong shape"),
        Case(
            """
def minimum_norm_point(A, b, eps, sweeps):
    theta = torch.zeros_like(A[0])
    dual = torch.zeros_like(b)
    for _ in range(sweeps):
        for j in range(len(b)):
            size = A[j] @ A[j]
            goal = dual[j] + (b[j] - A[j] @ theta) / size
            new = goal.sign() * (goal.abs() - eps / size)
            theta = theta + (new - dual[j]) * A[j]
            dual[j] = new
    return theta
""",
            "the positive part of the part with eps and size and goal is missing",
        ),
        Case(
            """
def minimum_norm_point(A, b, eps, sweeps):
    theta = torch.zeros_like(A[0])
    dual = torch.zeros_like(b)
    for _ in range(sweeps):
        for j in range(len(b)):
            size = A[j] @ A[j]
            goal = dual[j] + (b[j] - A[j] @ theta) / size
            new = goal.sign() * (goal.abs() - eps / size).clamp(min=0)
            theta = theta + new * A[j]
            dual[j] = new
    return theta
""",
            "dual at j is not subtracted: that term is missing",
        ),
    ],
    "sum_by_margin": [
        Case(MARGIN),
        Case("""
def sum_by_margin(X, Y, theta, many):
    tokens, pattern = X.flatten(0, 1), torch.softmax(torch.einsum('nrd,de,nte->nrt', X, theta, X), 2)
    weight, at = pattern.flatten(0, 1).max(1)
    best = weight.argsort(descending=True)[:many]
    first = best // X.shape[1] * X.shape[1]
    return torch.linalg.pinv(tokens[first + at[best]]) @ Y.flatten(0, 1)[best]
"""),
        Case("""
def sum_by_margin(X, Y, theta, many):
    pattern = (X @ theta @ X.mT).softmax(-1)
    weight, at = pattern.max(-1)
    kept = weight >= weight.flatten().sort().values[-many]
    n, row = kept.nonzero(as_tuple=True)
    P, R = X[n, at[kept]], Y[kept]
    return torch.linalg.solve(P.T @ P, P.T @ R)
"""),
        Case(MARGIN.replace("topk(many)", "topk(many, largest=False)"), "the evenest rows are taken"),
        Case(MARGIN.replace("X[n, at[n, row]]", "X[n, row]"), "by the row's own token"),
        Case(MARGIN.replace("softmax(-1)", "softmax(-2)"), "the softmax runs over the rows"),
        Case(MARGIN.replace("X @ theta @ X.mT", "X @ theta.T @ X.mT"), "Theta is transposed"),
        Case(MARGIN.replace(".softmax(-1)", ""), "without a softmax long tokens always win"),
        Case(MARGIN.replace("X[n, at[n, row]]", "(pattern @ X)[n, row]"), "the rows' mixed tokens"),
        Case(MARGIN.replace("topk(many)", "topk(weight.numel())"), "all rows are used"),
        Case(
            """
def sum_by_margin(X, Y, theta, many):
    k = X.shape[1]
    weight, where = (X @ theta @ X.mT).softmax(-1).max(-1)
    best = weight.flatten().topk(many).indices
    n, row = best // k, best % k
    return torch.linalg.lstsq(Y[n, row], X[n, where[n, row]]).solution
""",
            "the fit is the wrong way round: looked_at and the part of Y are exchanged",
        ),
    ],
    "off_hull": [
        Case("""
def off_hull(theta, base, directions):
    off = theta - base
    for direction in directions:
        off = off - (direction @ off) * direction
    return off
"""),
        Case("""
def off_hull(theta, base, directions):
    eye = torch.eye(len(theta), dtype=theta.dtype, device=theta.device)
    return (eye - directions.T @ directions) @ (theta - base)
"""),
        Case("""
def off_hull(theta, base, directions):
    off = theta - base
    inside = torch.linalg.lstsq(directions.T, off[:, None]).solution[:, 0]
    return off - inside @ directions
"""),
        Case(
            "def off_hull(theta, base, directions):\n    return theta - directions.T @ (directions @ theta)\n",
            "does not go through 0",
        ),
        Case(
            "def off_hull(theta, base, directions):\n    return directions.T @ (directions @ (theta - base))\n",
            "what lies in the hull",
        ),
        Case(
            "def off_hull(theta, base, directions):\n    v = directions[0]\n"
            "    return theta - base - v * (v @ (theta - base))\n",
            "only the first direction",
        ),
        Case(
            "def off_hull(theta, base, directions):\n    return base + directions.T @ (directions @ (theta - base))\n",
            "the nearest point of the hull",
        ),
        Case(
            "def off_hull(theta, base, directions):\n    return theta - directions.T @ (directions @ (theta - base))\n",
            "adds the base back",
        ),
        Case("def off_hull(theta, base, directions):\n    return theta - base\n", "the directions are not used"),
        Case(
            """
def off_hull(theta, base, directions):
    off = theta - base
    return off - directions.T @ directions @ theta
""",
            "theta is used where the difference of theta and base belongs",
        ),
        Case(
            """
def off_hull(theta, base, directions):
    off = theta - base
    return off - (directions @ off).sum() * directions.sum(0)
""",
            "one sum stands for all",
        ),
        Case("""
def off_hull(theta, base, directions):
    left = theta - base
    for direction in directions:
        left = left - torch.inner(direction, left) * direction
    return left
"""),
    ],
    "explained": [
        Case("def explained(G, C):\n    return torch.trace(C.T @ torch.linalg.inv(G) @ C)\n"),
        Case("""
def explained(G, C):
    L = torch.linalg.cholesky(G)
    return torch.linalg.solve_triangular(L, C, upper=False).square().sum()
"""),
        Case("""
def explained(G, C):
    W = torch.linalg.solve(G, C)
    return 2 * (W * C).sum() - (W * (G @ W)).sum()
"""),
        Case("def explained(G, C):\n    return (C * (G @ C)).sum()\n", "G must be inverted"),
        Case(
            "def explained(G, C):\n    return (torch.linalg.inv(G) @ C).pow(2).sum()\n",
            "one of the two factors is C itself",
        ),
        Case("def explained(G, C):\n    return (C ** 2).sum()\n", "G is missing"),
        Case(
            "def explained(G, C):\n    return (C ** 2 / torch.diagonal(G)[:, None]).sum()\n", "only the diagonal of G"
        ),
        Case("def explained(G, C):\n    return (C * torch.linalg.solve(G, C)).mean()\n", "a mean;"),
        Case(
            "def explained(G, C):\n    return 2 * (C * torch.linalg.solve(G, C)).sum()\n",
            "the second part has been forgotten",
        ),
        Case("def explained(G, C):\n    return C.T @ torch.linalg.solve(G, C)\n", "wrong shape"),
        Case(
            """
def explained(G, C):
    return torch.trace(C.T @ torch.linalg.inv(G @ G) @ C)
""",
            "|G^-1 C|^2: one of the two",
        ),
        Case("""
def explained(G, C):
    import numpy as np
    return torch.as_tensor(np.trace(C.numpy().T @ np.linalg.solve(G.numpy(), C.numpy())))
"""),
    ],
}
