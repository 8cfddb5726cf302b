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
        Case("def first_step(X, Y):\n    return X.sum(1).T @ Y.sum(1) / X.shape[1]\n", "the mean over sequences is missing"),
        Case("def first_step(X, Y):\n    return X.sum(1).T @ Y.sum(1) / len(X)\n", "the factor 1/k is missing"),
        Case("def first_step(X, Y):\n    return (X.mT @ Y).mean(0) / X.shape[1]\n", "pairs each token with its own answer only"),
        Case("def first_step(X, Y):\n    return X.mean(1).T @ Y.mean(1) / len(X)\n", "divides by k twice"),
        Case("def first_step(X, Y):\n    n, k, d = X.shape\n    return Y.sum(1).T @ X.sum(1) / (n * k)\n", "rows belong to X"),
        Case(
            "def first_step(X, Y):\n    n, k, d = X.shape\n    return torch.outer(X.sum(0).sum(0), Y.sum(0).sum(0)) / (n * k)\n",
            "mixes sequences",
        ),
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
        Case(FIT.replace("[a, (1 - a.sum()).reshape(1)]", "[(1 - a.sum()).reshape(1), a]"), "the last weight stands first"),
        Case(FIT.replace("(y - Z[-1])", "y"), "y is not moved"),
        Case(FIT.replace("torch.cat([a, (1 - a.sum()).reshape(1)])", "a"), "wrong shape"),
    ],
    "log_ratio_row": [
        Case("def log_ratio_row(x, xa, xb):\n    return x[:, None] * (xa - xb)[None, :]\n"),
        Case("def log_ratio_row(x, xa, xb):\n    return torch.einsum('i,j->ij', x, xa) - torch.einsum('i,j->ij', x, xb)\n"),
        Case("def log_ratio_row(x, xa, xb):\n    return x.unsqueeze(1) @ (xa - xb).unsqueeze(0)\n"),
        Case("def log_ratio_row(x, xa, xb):\n    return torch.outer(xa - xb, x)\n", "transposed"),
        Case("def log_ratio_row(x, xa, xb):\n    return torch.outer(x, xb - xa)\n", "the sign is flipped"),
        Case("def log_ratio_row(x, xa, xb):\n    return torch.outer(x, xa)\n", "x_b is missing"),
        Case("def log_ratio_row(x, xa, xb):\n    return torch.outer(x, xa + xb)\n", "the sum of x_a and x_b"),
        Case("def log_ratio_row(x, xa, xb):\n    return torch.outer(x, xa - xb) / 2\n", "half the difference"),
        Case("def log_ratio_row(x, xa, xb):\n    return x * (xa - xb)\n", "wrong shape"),
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
        Case("def off_hull(theta, base, directions):\n    return theta - directions.T @ (directions @ theta)\n", "does not go through 0"),
        Case("def off_hull(theta, base, directions):\n    return directions.T @ (directions @ (theta - base))\n", "what lies in the hull"),
        Case(
            "def off_hull(theta, base, directions):\n    v = directions[0]\n    return theta - base - v * (v @ (theta - base))\n",
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
        Case("def explained(G, C):\n    return (torch.linalg.inv(G) @ C).pow(2).sum()\n", "one of the two factors is C itself"),
        Case("def explained(G, C):\n    return (C ** 2).sum()\n", "G is missing"),
        Case("def explained(G, C):\n    return (C ** 2 / torch.diagonal(G)[:, None]).sum()\n", "only the diagonal of G"),
        Case("def explained(G, C):\n    return (C * torch.linalg.solve(G, C)).mean()\n", "a mean;"),
        Case("def explained(G, C):\n    return 2 * (C * torch.linalg.solve(G, C)).sum()\n", "the second part has been forgotten"),
        Case("def explained(G, C):\n    return C.T @ torch.linalg.solve(G, C)\n", "wrong shape"),
    ],
}
