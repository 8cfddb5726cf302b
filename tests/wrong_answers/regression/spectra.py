"""Answers to the exercises of lesson 02 on what tells algorithms apart: the wrong ones of a learner, and right ones."""

from wrong_answers.cases import Case

CASES = {
    "newton_share": [
        Case(
            """
def newton_share(eigenvalues, alpha, steps):
    return 1 - (1 - alpha * eigenvalues.square()).pow(2**steps)
""",
        ),
        Case(
            """
def newton_share(eigenvalues, alpha, steps):
    m = alpha * eigenvalues
    for _ in range(steps):
        m = 2 * m - m * eigenvalues * m
    return eigenvalues * m
""",
        ),
        Case(
            """
def newton_share(eigenvalues, alpha, steps):
    return -torch.expm1(2.0**steps * torch.log1p(-alpha * eigenvalues**2))
""",
        ),
        Case(
            """
def newton_share(eigenvalues, alpha, steps):
    share = alpha * eigenvalues * eigenvalues
    for _ in range(steps):
        share = share * (2 - share)
    return share
""",
        ),
        Case(
            """
def newton_share(eigenvalues, alpha, steps):
    left = 1 - alpha * eigenvalues**2
    for _ in range(steps):
        left = left * left
    return left
""",
            "this is what is left to do",
        ),
        Case(
            """
def newton_share(eigenvalues, alpha, steps):
    return 1 - (1 - alpha * eigenvalues**2) ** steps
""",
            "the power is that of gradient descent",
        ),
        Case(
            """
def newton_share(eigenvalues, alpha, steps):
    return 1 - (1 - alpha * eigenvalues**2) ** (2 * steps)
""",
            "the power is 2 * steps",
        ),
        Case(
            """
def newton_share(eigenvalues, alpha, steps):
    return 1 - (1 - alpha * eigenvalues) ** (2**steps)
""",
            "alpha times the identity",
        ),
        Case(
            """
def newton_share(eigenvalues, alpha, steps):
    left = 1 - alpha * eigenvalues**2
    for _ in range(steps + 1):
        left = left**2
    return 1 - left
""",
            "one step too many",
        ),
        Case(
            """
def newton_share(eigenvalues, alpha, steps):
    return 1 - (1 - alpha * eigenvalues**2) ** (2 ** (steps - 1))
""",
            "one step too few",
        ),
        Case(
            """
def newton_share(eigenvalues, alpha, steps):
    m = alpha * eigenvalues
    for _ in range(steps):
        m = 2 * m - m * eigenvalues * m
    return m
""",
            "the eigenvalue of M_k",
        ),
        Case(
            """
def newton_share(eigenvalues, alpha, steps):
    return 1 - (1 - (alpha * eigenvalues) ** 2) ** (2**steps)
""",
            "alpha is squared as well",
        ),
        Case(
            """
def newton_share(eigenvalues, alpha, steps):
    eigenvalues *= eigenvalues
    return 1 - (1 - alpha * eigenvalues) ** (2**steps)
""",
            "changes its argument eigenvalues in place",
        ),
        Case(
            """
def newton_share(eigenvalues, alpha, steps):
    1 - (1 - alpha * eigenvalues**2) ** (2**steps)
""",
            "returns nothing",
        ),
        Case(
            """
def newton_share(eigenvalues, alpha, steps):
    return torch.diag(1 - (1 - alpha * eigenvalues**2) ** (2**steps))
""",
            "wrong shape",
        ),
        Case(
            """
def newton_share(eigenvalues, alpha, steps):
    left = 1 - alpha * eigenvalues
    for _ in range(steps):
        left = left ** 2
    return 1 - left
""",
            "M_0 is alpha S, so that S",
        ),
    ],
    "conjugate_gradient": [
        Case(
            """
def conjugate_gradient(S, b, steps):
    w = torch.zeros_like(b)
    r = b - S @ w
    p = r
    for _ in range(steps):
        a = (r @ r) / (p @ S @ p)
        w = w + a * p
        new = r - a * (S @ p)
        p = new + (new @ new) / (r @ r) * p
        r = new
    return w
""",
        ),
        Case(
            """
def conjugate_gradient(S, b, steps):
    # the best point of the Krylov space: w = K c with K^T S K c = K^T b
    vectors = [b]
    for _ in range(steps - 1):
        vectors.append(S @ vectors[-1])
    K, _ = torch.linalg.qr(torch.stack(vectors, dim=1))
    return K @ torch.linalg.solve(K.T @ S @ K, K.T @ b)
""",
        ),
        Case(
            """
def conjugate_gradient(S, b, steps):
    w, directions = torch.zeros_like(b), []
    for _ in range(steps):
        p = b - S @ w
        for q in directions:
            p = p - (q @ S @ p) / (q @ S @ q) * q
        directions.append(p)
        w = w + (p @ (b - S @ w)) / (p @ S @ p) * p
    return w
""",
        ),
        Case(
            """
def conjugate_gradient(S, b, steps):
    w = torch.zeros_like(b)
    r = b.clone()
    p = b.clone()
    for _ in range(steps):
        Sp = S.mv(p)
        alpha = torch.dot(r, p) / torch.dot(p, Sp)
        w = w + alpha * p
        r = r - alpha * Sp
        beta = -torch.dot(r, Sp) / torch.dot(p, Sp)
        p = r + beta * p
    return w
""",
        ),
        Case(
            """
def conjugate_gradient(S, b, steps):
    w = torch.zeros_like(b)
    r = b - S @ w
    p = r
    for _ in range(steps):
        a = (r @ r) / (r @ S @ r)
        w = w + a * p
        new = r - a * (S @ p)
        p = new
        r = new
    return w
""",
            "steepest descent",
        ),
        Case(
            """
def conjugate_gradient(S, b, steps):
    w = torch.zeros_like(b)
    r = b - S @ w
    p = r
    for _ in range(steps):
        a = (r @ r) / (p @ S @ p)
        w = w + a * p
        new = r - a * (S @ p)
        p = new + (r @ r) / (new @ new) * p
        r = new
    return w
""",
            "upside down",
        ),
        Case(
            """
def conjugate_gradient(S, b, steps):
    w = torch.zeros_like(b)
    r = b - S @ w
    p = r
    for _ in range(steps):
        a = (r @ r) / (p @ S @ p)
        w = w + a * p
        new = r - a * (S @ p)
        p = new + new.norm() / r.norm() * p
        r = new
    return w
""",
            "not of lengths",
        ),
        Case(
            """
def conjugate_gradient(S, b, steps):
    w = torch.zeros_like(b)
    r = b - S @ w
    p = r
    for _ in range(steps):
        a = (r @ r) / (p @ S @ p)
        w = w + a * p
        new = r - a * (S @ p)
        p = new - (new @ new) / (r @ r) * p
        r = new
    return w
""",
            "the last direction is subtracted",
        ),
        Case(
            """
def conjugate_gradient(S, b, steps):
    w = torch.zeros_like(b)
    r = b - S @ w
    p = r
    for _ in range(steps):
        a = (r @ r) / (p @ S @ p)
        w = w + a * p
        new = r - a * (S @ p)
        p = new + p
        r = new
    return w
""",
            "the whole last direction is kept",
        ),
        Case(
            """
def conjugate_gradient(S, b, steps):
    w = torch.zeros_like(b)
    r = b - S @ w
    p = r
    for _ in range(steps):
        a = (r @ r) / (p @ p)
        w = w + a * p
        new = r - a * (S @ p)
        p = new + (new @ new) / (r @ r) * p
        r = new
    return w
""",
            "divide by direction . S direction",
        ),
        Case(
            """
def conjugate_gradient(S, b, steps):
    w = torch.zeros_like(b)
    r = b - S @ w
    p = r
    for _ in range(steps):
        a = (r @ r) / (r @ S @ r)
        w = w + a * p
        new = r - a * (S @ p)
        p = new + (new @ new) / (r @ r) * p
        r = new
    return w
""",
            "it is the direction that is walked along",
        ),
        Case(
            """
def conjugate_gradient(S, b, steps):
    w = b
    r = b - S @ w
    p = r
    for _ in range(steps):
        a = (r @ r) / (p @ S @ p)
        w = w + a * p
        new = r - a * (S @ p)
        p = new + (new @ new) / (r @ r) * p
        r = new
    return w
""",
            "the iteration starts at b",
        ),
        Case(
            """
def conjugate_gradient(S, b, steps):
    return torch.linalg.solve(S, b)
""",
            "this is where the iteration ends",
        ),
        Case(
            """
def conjugate_gradient(S, b, steps):
    w = torch.zeros_like(b)
    r = b - S @ w
    p = r
    for _ in range(steps + 1):
        a = (r @ r) / (p @ S @ p)
        w = w + a * p
        new = r - a * (S @ p)
        p = new + (new @ new) / (r @ r) * p
        r = new
    return w
""",
            "one step too many",
        ),
        Case(
            """
def conjugate_gradient(S, b, steps):
    w = torch.zeros_like(b)
    r = b - S @ w
    p = r
    for _ in range(steps - 1):
        a = (r @ r) / (p @ S @ p)
        w = w + a * p
        new = r - a * (S @ p)
        p = new + (new @ new) / (r @ r) * p
        r = new
    return w
""",
            "one step too few",
        ),
        Case(
            """
def conjugate_gradient(S, b, steps):
    w = torch.zeros_like(b)
    r = b - S @ w
    p = r
    for _ in range(steps):
        a = (r @ r) / (p[1:] @ S @ p)
        w = w + a * p
        new = r - a * (S @ p)
        p = new + (new @ new) / (r @ r) * p
        r = new
    return w
""",
            "raises RuntimeError",
        ),
        Case(
            """
def conjugate_gradient(S, b, steps):
    return (b @ b) / (b @ S @ b) * b
""",
            "does not use its argument steps",
        ),
        Case(
            """
def conjugate_gradient(S, b, steps):
    w = torch.zeros_like(b)
    r = b.clone()
    p = b.clone()
    for _ in range(steps):
        a = (r @ r) / (p @ (S @ p))
        w = w + a * p
        r = r - a * (S @ p)
        beta = (r @ r) / (r @ r)
        p = r + beta * p
    return w
""",
            "the whole last direction is",
        ),
    ],
    "growth_r2": [
        Case(
            """
def growth_r2(layers, steps):
    x = layers - layers.mean()
    shares = []
    for y in (steps, torch.log2(steps)):
        y = y - y.mean()
        shares.append((x @ y) ** 2 / ((x @ x) * (y @ y)))
    return torch.stack(shares)
""",
        ),
        Case(
            """
def growth_r2(layers, steps):
    targets = torch.stack([steps, steps.log2()])
    return torch.stack([torch.corrcoef(torch.stack([layers, target]))[0, 1] ** 2 for target in targets])
""",
        ),
        Case(
            """
def growth_r2(layers, steps):
    import numpy as np
    x, out = layers.numpy(), []
    for y in (steps.numpy(), np.log2(steps.numpy())):
        residual = y - np.polyval(np.polyfit(x, y, 1), x)
        out.append(1 - residual.var() / y.var())
    return torch.tensor(out, dtype=layers.dtype)
""",
        ),
        Case(
            """
def growth_r2(layers, steps):
    A = torch.stack([layers, torch.ones_like(layers)], 1)
    Y = torch.stack([steps, steps.log()], 1)
    left = Y - A @ torch.linalg.pinv(A) @ Y
    return 1 - left.square().sum(0) / (Y - Y.mean(0)).square().sum(0)
""",
        ),
        Case(
            """
def growth_r2(layers, steps):
    shares = []
    for y in (steps.log2(), steps):
        x, y = layers - layers.mean(), y - y.mean()
        shares.append((x @ y) ** 2 / ((x @ x) * (y @ y)))
    return torch.stack(shares)
""",
            "here they are exchanged",
        ),
        Case(
            """
def growth_r2(layers, steps):
    x, y = layers - layers.mean(), steps - steps.mean()
    r2 = (x @ y) ** 2 / ((x @ x) * (y @ y))
    return torch.stack([r2, r2])
""",
            "both are fits to the steps themselves",
        ),
        Case(
            """
def growth_r2(layers, steps):
    shares = []
    for x in (layers, layers.log2()):
        x, y = x - x.mean(), steps - steps.mean()
        shares.append((x @ y) ** 2 / ((x @ x) * (y @ y)))
    return torch.stack(shares)
""",
            "the logarithm is taken of the layers",
        ),
        Case(
            """
def growth_r2(layers, steps):
    shares = []
    for y in (steps, steps.log2()):
        x, y = layers - layers.mean(), y - y.mean()
        shares.append((x @ y) / (x.norm() * y.norm()))
    return torch.stack(shares)
""",
            "these are correlations",
        ),
        Case(
            """
def growth_r2(layers, steps):
    A = torch.stack([layers, torch.ones_like(layers)], 1)
    Y = torch.stack([steps, steps.log2()], 1)
    left = Y - A @ torch.linalg.pinv(A) @ Y
    return left.square().sum(0) / (Y - Y.mean(0)).square().sum(0)
""",
            "the share left unexplained",
        ),
        Case(
            """
def growth_r2(layers, steps):
    shares = []
    for y in (steps, steps.log2()):
        left = y - (layers @ y) / (layers @ layers) * layers
        shares.append(1 - left.square().sum() / (y - y.mean()).square().sum())
    return torch.stack(shares)
""",
            "fit an intercept",
        ),
        Case(
            """
def growth_r2(layers, steps):
    A = torch.stack([layers, torch.ones_like(layers)], 1)
    line = A @ torch.linalg.lstsq(A, steps[:, None]).solution[:, 0]
    curve = 2 ** (A @ torch.linalg.lstsq(A, steps.log2()[:, None]).solution[:, 0])
    spread = (steps - steps.mean()).square().sum()
    return torch.stack([1 - (steps - fit).square().sum() / spread for fit in (line, curve)])
""",
            "both logarithms",
        ),
        Case(
            """
def growth_r2(layers, steps):
    return torch.tensor(0.0), torch.tensor(1.0)
""",
            "returns tuple",
        ),
        Case(
            """
def growth_r2(layers, steps):
    x, y = layers - layers.mean(), steps - steps.mean()
    return (x @ y) ** 2 / ((x @ x) * (y @ y))
""",
            "wrong shape",
        ),
        Case(
            """
def growth_r2(layers, steps):
    r2 = []
    for target in (steps, steps.log2()):
        r = torch.corrcoef(torch.stack([layers, target]))[0, 1]
        r2.append(r)
    return torch.stack(r2)
""",
            "these are correlations; the",
        ),
    ],
    "measured_filter": [
        Case(
            """
def measured_filter(ws, solutions, S, edges):
    eigenvalues, V = torch.linalg.eigh(S)
    reached = torch.einsum('pij,pi->pj', V, ws)
    whole = torch.einsum('pij,pi->pj', V, solutions)
    shares = []
    for i in range(len(edges) - 1):
        inside = (eigenvalues >= edges[i]) & (eigenvalues < edges[i + 1])
        a, b = reached[inside], whole[inside]
        shares.append((a * b).sum() / (b * b).sum())
    return torch.stack(shares)
""",
        ),
        Case(
            """
def measured_filter(ws, solutions, S, edges):
    eigenvalues, V = torch.linalg.eigh(S)
    a, b = ((V.mT @ v[..., None])[..., 0] for v in (ws, solutions))
    bins = (eigenvalues[..., None] >= edges[:-1]) & (eigenvalues[..., None] < edges[1:])
    return ((a * b)[..., None] * bins).sum((0, 1)) / ((b * b)[..., None] * bins).sum((0, 1))
""",
        ),
        Case(
            """
def measured_filter(ws, solutions, S, edges):
    top = torch.zeros(len(edges) - 1, dtype=ws.dtype, device=ws.device)
    bottom = torch.zeros_like(top)
    for w, solution, matrix in zip(ws, solutions, S):
        values, vectors = torch.linalg.eigh(matrix)
        for value, vector in zip(values, vectors.T):
            for i in range(len(top)):
                if edges[i] <= value < edges[i + 1]:
                    top[i] += (vector @ w) * (vector @ solution)
                    bottom[i] += (vector @ solution) ** 2
    return top / bottom
""",
        ),
        Case(
            """
def measured_filter(ws, solutions, S, edges):
    eigenvalues, V = torch.linalg.eigh(S)
    reached = torch.einsum('pij,pi->pj', V, ws)
    whole = torch.einsum('pij,pi->pj', V, solutions)
    shares = []
    for i in range(len(edges) - 1):
        inside = (eigenvalues >= edges[i]) & (eigenvalues < edges[i + 1])
        a, b = reached[inside], whole[inside]
        shares.append(torch.linalg.lstsq(b[:, None], a[:, None]).solution[0, 0])
    return torch.stack(shares)
""",
        ),
        Case(
            """
def measured_filter(ws, solutions, S, edges):
    eigenvalues, V = torch.linalg.eigh(S)
    reached = torch.einsum('pij,pi->pj', V, ws)
    whole = torch.einsum('pij,pi->pj', V, solutions)
    shares = []
    for i in range(len(edges) - 1):
        inside = (eigenvalues >= edges[i]) & (eigenvalues < edges[i + 1])
        a, b = reached[inside], whole[inside]
        shares.append((a / b).mean())
    return torch.stack(shares)
""",
            "the mean of the ratios",
        ),
        Case(
            """
def measured_filter(ws, solutions, S, edges):
    eigenvalues, V = torch.linalg.eigh(S)
    a, b = ((V.mT @ v[..., None])[..., 0].abs() for v in (ws, solutions))
    bins = [(eigenvalues >= low) & (eigenvalues < high) for low, high in zip(edges[:-1], edges[1:])]
    return torch.stack([a[inside].sum() / b[inside].sum() for inside in bins])
""",
            "absolute values are summed",
        ),
        Case(
            """
def measured_filter(ws, solutions, S, edges):
    eigenvalues, V = torch.linalg.eigh(S)
    reached = ws
    whole = solutions
    shares = []
    for i in range(len(edges) - 1):
        inside = (eigenvalues >= edges[i]) & (eigenvalues < edges[i + 1])
        a, b = reached[inside], whole[inside]
        shares.append((a * b).sum() / (b * b).sum())
    return torch.stack(shares)
""",
            "nothing is rotated",
        ),
        Case(
            """
def measured_filter(ws, solutions, S, edges):
    eigenvalues, V = torch.linalg.eigh(S)
    reached = torch.einsum('pij,pi->pj', V, ws)
    whole = solutions
    shares = []
    for i in range(len(edges) - 1):
        inside = (eigenvalues >= edges[i]) & (eigenvalues < edges[i + 1])
        a, b = reached[inside], whole[inside]
        shares.append((a * b).sum() / (b * b).sum())
    return torch.stack(shares)
""",
            "the solutions are not rotated",
        ),
        Case(
            """
def measured_filter(ws, solutions, S, edges):
    eigenvalues, V = torch.linalg.eigh(S)
    reached = ws
    whole = torch.einsum('pij,pi->pj', V, solutions)
    shares = []
    for i in range(len(edges) - 1):
        inside = (eigenvalues >= edges[i]) & (eigenvalues < edges[i + 1])
        a, b = reached[inside], whole[inside]
        shares.append((a * b).sum() / (b * b).sum())
    return torch.stack(shares)
""",
            "the weights are not rotated",
        ),
        Case(
            """
def measured_filter(ws, solutions, S, edges):
    eigenvalues, V = torch.linalg.eigh(S)
    reached = torch.einsum('pij,pj->pi', V, ws)
    whole = torch.einsum('pij,pj->pi', V, solutions)
    shares = []
    for i in range(len(edges) - 1):
        inside = (eigenvalues >= edges[i]) & (eigenvalues < edges[i + 1])
        a, b = reached[inside], whole[inside]
        shares.append((a * b).sum() / (b * b).sum())
    return torch.stack(shares)
""",
            "V where V^T belongs",
        ),
        Case(
            """
def measured_filter(ws, solutions, S, edges):
    eigenvalues, V = torch.linalg.eigh(S)
    reached = torch.einsum('pij,pi->pj', V, ws)
    whole = torch.einsum('pij,pi->pj', V, solutions)
    shares = []
    for i in range(len(edges) - 1):
        inside = (eigenvalues >= edges[i]) & (eigenvalues < edges[i + 1])
        a, b = reached[inside], whole[inside]
        shares.append((a * b).sum())
    return torch.stack(shares)
""",
            "not divided by that of the squared solutions",
        ),
        Case(
            """
def measured_filter(ws, solutions, S, edges):
    eigenvalues, V = torch.linalg.eigh(S)
    reached = torch.einsum('pij,pi->pj', V, ws)
    whole = torch.einsum('pij,pi->pj', V, solutions)
    shares = []
    for i in range(len(edges) - 1):
        inside = (eigenvalues >= edges[i]) & (eigenvalues < edges[i + 1])
        a, b = reached[inside], whole[inside]
        shares.append((a * b).sum() / (a * a).sum())
    return torch.stack(shares)
""",
            "the other regression",
        ),
        Case(
            """
def measured_filter(ws, solutions, S, edges):
    eigenvalues, V = torch.linalg.eigh(S)
    reached = torch.einsum('pij,pi->pj', V, ws)
    whole = torch.einsum('pij,pi->pj', V, solutions)
    shares = []
    for i in range(len(edges) - 1):
        inside = (eigenvalues >= edges[i]) & (eigenvalues < edges[i + 1])
        a, b = reached[inside], whole[inside]
        shares.append(torch.cosine_similarity(a, b, dim=0))
    return torch.stack(shares)
""",
            "this is the cosine",
        ),
        Case(
            """
def measured_filter(ws, solutions, S, edges):
    eigenvalues, V = torch.linalg.eigh(S)
    reached = torch.einsum('pij,pi->pj', V, ws)
    whole = torch.einsum('pij,pi->pj', V, solutions)
    shares = []
    for i in range(len(edges) - 1):
        inside = (eigenvalues >= edges[i]) & (eigenvalues < edges[i + 1])
        a, b = reached[inside], whole[inside]
        shares.append(a.norm() / b.norm())
    return torch.stack(shares)
""",
            "the signs are lost",
        ),
        Case(
            """
def measured_filter(ws, solutions, S, edges):
    eigenvalues, V = torch.linalg.eigh(S)
    reached = torch.einsum('pij,pi->pj', V, ws)
    whole = torch.einsum('pij,pi->pj', V, solutions)
    shares = []
    for i in range(len(edges) - 1):
        inside = (eigenvalues >= edges[i]) & (eigenvalues < edges[i + 1])
        a, b = reached[inside], whole[inside]
        shares.append(1 - (a * b).sum() / (b * b).sum())
    return torch.stack(shares)
""",
            "the share still to go",
        ),
        Case(
            """
def measured_filter(ws, solutions, S, edges):
    eigenvalues, V = torch.linalg.eigh(S)
    reached = torch.einsum('pij,pi->pj', V, ws)
    whole = torch.einsum('pij,pi->pj', V, solutions)
    shares = []
    for i in range(len(edges) - 2):
        inside = (eigenvalues >= edges[i]) & (eigenvalues < edges[i + 1])
        a, b = reached[inside], whole[inside]
        shares.append((a * b).sum() / (b * b).sum())
    return torch.stack(shares)
""",
            "wrong shape",
        ),
        Case(
            """
def measured_filter(ws, solutions, S, edges):
    eigenvalues, V = torch.linalg.eigh(S)
    reached = V.mT @ ws
    whole = torch.einsum('pij,pi->pj', V, solutions)
    shares = []
    for i in range(len(edges) - 1):
        inside = (eigenvalues >= edges[i]) & (eigenvalues < edges[i + 1])
        a, b = reached[inside], whole[inside]
        shares.append((a * b).sum() / (b * b).sum())
    return torch.stack(shares)
""",
            "raises RuntimeError",
        ),
    ],
    "descent_circuits": [
        Case(
            """
def descent_circuits(d, lr, gamma, length):
    qk = torch.diag(torch.tensor([1.0] * d + [0.0]))
    vo = torch.diag(torch.tensor([-gamma * length] * d + [-lr * length]))
    return torch.stack([qk, vo])
""",
        ),
        Case(
            """
def descent_circuits(d, lr, gamma, length):
    out = torch.zeros(2, d + 1, d + 1)
    for i in range(d):
        out[0, i, i] = 1
        out[1, i, i] = -gamma * length
    out[1, d, d] = -lr * length
    return out
""",
        ),
        Case(
            """
def descent_circuits(d, lr, gamma, length):
    label = torch.zeros(d + 1, d + 1)
    label[-1, -1] = 1
    inputs = torch.eye(d + 1) - label
    return torch.stack([inputs, -length * (gamma * inputs + lr * label)])
""",
        ),
        Case(
            """
def descent_circuits(d, lr, gamma, length):
    return torch.stack([torch.block_diag(torch.eye(d), torch.zeros(1, 1)),
                        -length * torch.block_diag(gamma * torch.eye(d), torch.tensor([[lr]]))])
""",
        ),
        Case(
            """
def descent_circuits(d, lr, gamma, length):
    qk = torch.diag(torch.tensor([1.0] * d + [1.0]))
    vo = torch.diag(torch.tensor([-gamma * length] * d + [-lr * length]))
    return torch.stack([qk, vo])
""",
            "the labels enter the scores",
        ),
        Case(
            """
def descent_circuits(d, lr, gamma, length):
    qk = torch.diag(torch.tensor([1.0] * d + [0.0]))
    vo = torch.diag(torch.tensor([gamma * length] * d + [lr * length]))
    return torch.stack([qk, vo])
""",
            "the step goes uphill",
        ),
        Case(
            """
def descent_circuits(d, lr, gamma, length):
    qk = torch.diag(torch.tensor([1.0] * d + [0.0]))
    vo = torch.diag(torch.tensor([-gamma] * d + [-lr]))
    return torch.stack([qk, vo])
""",
            "multiply it back in",
        ),
        Case(
            """
def descent_circuits(d, lr, gamma, length):
    qk = torch.diag(torch.tensor([1.0] * d + [0.0]))
    vo = torch.diag(torch.tensor([-gamma / length] * d + [-lr / length]))
    return torch.stack([qk, vo])
""",
            "the length divides once more",
        ),
        Case(
            """
def descent_circuits(d, lr, gamma, length):
    qk = torch.diag(torch.tensor([1.0] * d + [0.0]))
    vo = torch.diag(torch.tensor([-lr * length] * d + [-gamma * length]))
    return torch.stack([qk, vo])
""",
            "lr and gamma are exchanged",
        ),
        Case(
            """
def descent_circuits(d, lr, gamma, length):
    qk = torch.diag(torch.tensor([1.0] * d + [0.0]))
    vo = torch.diag(torch.tensor([0.0] * d + [-lr * length]))
    return torch.stack([qk, vo])
""",
            "the inputs do not move",
        ),
        Case(
            """
def descent_circuits(d, lr, gamma, length):
    qk = torch.diag(torch.tensor([1.0] * d + [0.0]))
    vo = torch.diag(torch.tensor([-gamma * length] * d + [0.0]))
    return torch.stack([qk, vo])
""",
            "the label does not move",
        ),
        Case(
            """
def descent_circuits(d, lr, gamma, length):
    qk = torch.diag(torch.tensor([1.0] * d + [0.0]))
    vo = torch.diag(torch.tensor([-gamma * length] * d + [-lr * length]))
    return torch.stack([vo, qk])
""",
            "value_output comes first",
        ),
        Case(
            """
def descent_circuits(d, lr, gamma, length):
    qk = torch.diag(torch.tensor([1.0] * d + [0.0]))
    vo = torch.diag(torch.tensor([1 - gamma * length] * d + [1 - lr * length]))
    return torch.stack([qk, vo])
""",
            "without the identity",
        ),
        Case(
            """
def descent_circuits(d, lr, gamma, length):
    return torch.stack([torch.eye(d), -lr * length * torch.eye(d)])
""",
            "wrong shape",
        ),
        Case(
            """
def descent_circuits(d, lr, gamma, length):
    qk = torch.diag(torch.tensor([1.0] * d + [0.0]))
    vo = torch.diag(torch.tensor([-gamma * length] * d + [-lr * length]))
    return qk, vo
""",
            "returns tuple",
        ),
    ],
}
