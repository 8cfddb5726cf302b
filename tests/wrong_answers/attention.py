"""Answers to the exercises of lesson 01: wrong ones that people really give, and right ones written differently."""

from wrong_answers.cases import Case

SCORES = """
def attention(Q, K, V):
    T, d = Q.shape
    scores = Q @ K.T / d**0.5
    future = torch.ones(T, T, dtype=torch.bool, device=Q.device).triu(1)
    NO = -torch.inf
"""

HEADS = """
def multi_head(x, WQ, WK, WV, WO):
    T = len(x)
    future = torch.ones(T, T, dtype=torch.bool, device=x.device).triu(1)
    out = x.clone()
    for q, k, v, o in zip(WQ, WK, WV, WO):
        scores = (x @ q.T) @ (x @ k.T).T
        weights = scores.masked_fill(future, float("-inf")).softmax(-1)
        out = out + weights @ (x @ v.T) @ o
    return out
"""

STEP = """
def flow_step(x, beta, dt):
    pull = torch.softmax(beta * x @ x.T, dim=1) @ x
    pull = pull - (pull * x).sum(1, keepdim=True) * x
    moved = x + dt * pull
    return moved / moved.norm(dim=1, keepdim=True)
"""

CASES = {
    "attention": [
        Case(SCORES + "    return scores.masked_fill(future, NO).softmax(1) @ V\n"),
        Case("""
def attention(Q, K, V):
    return torch.nn.functional.scaled_dot_product_attention(Q[None], K[None], V[None], is_causal=True)[0]
"""),
        Case("""
def attention(Q, K, V):
    rows = []
    for t in range(len(Q)):
        weights = torch.softmax(K[: t + 1] @ Q[t] / Q.shape[1] ** 0.5, dim=0)
        rows.append(weights @ V[: t + 1])
    return torch.stack(rows)
"""),
        Case("""
def attention(Q, K, V):
    weights = torch.exp(Q @ K.mT / Q.shape[-1] ** 0.5).tril()
    return weights / weights.sum(-1, keepdim=True) @ V
"""),
        Case(SCORES.replace("d**0.5", "d") + "    return scores.masked_fill(future, NO).softmax(1) @ V\n", "divided by d;"),
        Case(
            SCORES.replace(" / d**0.5", "") + "    return scores.masked_fill(future, NO).softmax(1) @ V\n",
            "not divided by sqrt(d)",
        ),
        Case(
            SCORES.replace("/ d**0.5", "* d**0.5") + "    return scores.masked_fill(future, NO).softmax(1) @ V\n",
            "multiplied by sqrt(d)",
        ),
        Case(SCORES + "    return scores.softmax(1) @ V\n", "no mask"),
        Case(SCORES + "    return scores.masked_fill(future, NO).softmax(0) @ V\n", "over the queries"),
        Case(SCORES.replace("triu(1)", "triu(2)") + "    return scores.masked_fill(future, NO).softmax(1) @ V\n", "one too many"),
        Case(SCORES.replace("triu(1)", "triu(0)") + "    return scores.masked_fill(future, NO).softmax(1) @ V\n", "NaN"),
        Case(SCORES + "    return scores.masked_fill(future, 0).softmax(1) @ V\n", "masked scores are 0"),
        Case(SCORES + "    return scores.softmax(1).masked_fill(future, 0) @ V\n", "the mask comes after the softmax"),
        Case(SCORES.replace("triu(1)", "tril(-1)") + "    return scores.masked_fill(future, NO).softmax(1) @ V\n", "upside down"),
        Case(SCORES + "    return scores.masked_fill(future, 0) @ V\n", "there is no softmax"),
        Case(SCORES + "    return scores.masked_fill(future, NO).softmax(1)\n", "wrong shape"),
        Case(
            "def attention(Q, K, V):\n    Q /= Q.shape[1] ** 0.5\n    return (Q @ K.T).softmax(1) @ V\n", "changes its argument Q in place"
        ),
    ],
    "multi_head": [
        Case(HEADS),
        Case("""
def multi_head(x, WQ, WK, WV, WO):
    q, k, v = [torch.einsum("td,hcd->htc", x, W) for W in (WQ, WK, WV)]
    scores = torch.einsum("htc,hsc->hts", q, k)
    keep = torch.ones_like(scores).tril() > 0
    weights = torch.where(keep, scores, torch.full_like(scores, -torch.inf)).softmax(2)
    return x + torch.einsum("hts,hsc,hcd->td", weights, v, WO)
"""),
        Case("""
def multi_head(x, WQ, WK, WV, WO):
    rows = []
    for t in range(len(x)):
        row = x[t]
        for h in range(len(WQ)):
            kq = WK[h].T @ WQ[h]
            beta = torch.softmax(x[: t + 1] @ kq @ x[t], dim=0)
            row = row + WO[h].T @ WV[h] @ (beta @ x[: t + 1])
        rows.append(row)
    return torch.stack(rows)
"""),
        Case(HEADS.replace("out = x.clone()", "out = 0 * x"), "the residual is missing"),
        Case(HEADS.replace('scores.masked_fill(future, float("-inf"))', "scores"), "no mask"),
        Case(HEADS.replace("(x @ k.T).T\n", "(x @ k.T).T / q.shape[0] ** 0.5\n"), "in this notation the scale is part of W_Q"),
        Case(HEADS.replace("@ (x @ v.T) @ o", "@ (x @ v.T) @ o / len(WQ)"), "heads are averaged"),
        Case(HEADS.replace("(x @ q.T) @ (x @ k.T).T", "(x @ k.T) @ (x @ q.T).T"), "keys and queries are exchanged"),
        Case(HEADS.replace("(x @ v.T) @ o", "(x @ o.T) @ v"), "W_V and W_O are exchanged"),
        Case(HEADS.replace("softmax(-1)", "softmax(0)"), "over the queries"),
        Case(HEADS.replace("out = x.clone()", "out = 0 * x").replace("out = out +", "out = out + x +"), "once for each head"),
        Case(HEADS.replace("out = x.clone()", "out = x").replace("out = out +", "out +="), "changes its argument x in place"),
    ],
    "shift_scores": [
        Case("def shift_scores(P, beta):\n    return beta * P[:-1].T @ P[1:]\n"),
        Case("""
def shift_scores(P, beta):
    W = torch.zeros(P.shape[1], P.shape[1], dtype=P.dtype, device=P.device)
    for t in range(1, len(P)):
        W = W + beta * torch.outer(P[t - 1], P[t])
    return W
"""),
        Case("""
def shift_scores(P, beta):
    T = len(P)
    wanted = torch.diag(torch.full((T - 1,), beta, dtype=P.dtype, device=P.device), 1)
    return P.T @ wanted @ P
"""),
        Case("def shift_scores(P, beta):\n    return beta * torch.einsum('ta,tb->ab', P[:-1], P[1:])\n"),
        Case("def shift_scores(P, beta):\n    return beta * P[1:].T @ P[:-1]\n", "looks at the next token"),
        Case("def shift_scores(P, beta):\n    return beta * P.T @ P\n", "looks at the token itself"),
        Case("def shift_scores(P, beta):\n    return beta * torch.roll(P, 1, 0).T @ P\n", "wraps around"),
        Case("def shift_scores(P, beta):\n    return beta * P[:-2].T @ P[2:]\n", "two places back"),
        Case("def shift_scores(P, beta):\n    P = beta * P\n    return P[:-1].T @ P[1:]\n", "beta is squared"),
        Case("def shift_scores(P, beta):\n    return P[:-1].T @ P[1:] / beta\n", "divides by beta"),
        Case(
            """
def shift_scores(P, beta):
    W = torch.zeros(P.shape[1], P.shape[1], dtype=P.dtype, device=P.device)
    for t in range(1, len(P) - 1):
        W = W + beta * torch.outer(P[t - 1], P[t])
    return W
""",
            "the last pair is missing",
        ),
        Case("def shift_scores(P, beta):\n    return P[:-1].T @ P[1:]\n", "does not use its argument beta"),
    ],
    "induction": [
        Case("""
def induction(token, previous, beta):
    T = len(token)
    scores = beta * token @ previous.T
    future = torch.ones(T, T, dtype=torch.bool, device=token.device).triu(1)
    return scores.masked_fill(future, -torch.inf).softmax(1) @ token
"""),
        Case("""
def induction(token, previous, beta):
    weights = torch.exp(beta * torch.einsum("tv,sv->ts", token, previous)).tril()
    return weights @ token / weights.sum(1, keepdim=True)
"""),
        Case("""
def induction(token, previous, beta):
    scale = beta * token.shape[1] ** 0.5
    return torch.nn.functional.scaled_dot_product_attention(scale * token[None], previous[None], token[None], is_causal=True)[0]
"""),
        Case("""
def induction(token, previous, beta):
    weights = (beta * previous @ token.T).T.exp().tril()
    return (weights / weights.sum(1, keepdim=True)).matmul(token)
"""),
        Case(
            """
def induction(token, previous, beta):
    weights = (beta * previous @ token.T).exp().tril()
    return weights @ token / weights.sum(1, keepdim=True)
""",
            "queries and keys are exchanged",
        ),
        Case(
            """
def induction(token, previous, beta):
    weights = (beta * token @ token.T).exp().tril()
    return weights @ token / weights.sum(1, keepdim=True)
""",
            "looks for the same token again",
        ),
        Case(
            """
def induction(token, previous, beta):
    weights = (beta * token @ previous.T).exp().tril()
    return weights @ previous / weights.sum(1, keepdim=True)
""",
            "copies the token before the match",
        ),
        Case(
            """
def induction(token, previous, beta):
    weights = (beta * previous @ previous.T).exp().tril()
    return weights @ token / weights.sum(1, keepdim=True)
""",
            "compares what came before",
        ),
        Case("def induction(token, previous, beta):\n    return torch.softmax(beta * token @ previous.T, 1) @ token\n", "no mask"),
        Case(
            """
def induction(token, previous, beta):
    weights = (beta * token @ previous.T).exp().tril()
    return weights / weights.sum(0, keepdim=True) @ token
""",
            "over the queries",
        ),
        Case(
            """
def induction(token, previous, beta):
    weights = (beta * token @ previous.T / token.shape[1] ** 0.5).exp().tril()
    return weights @ token / weights.sum(1, keepdim=True)
""",
            "here beta is the whole scale",
        ),
        Case(
            """
def induction(token, previous, beta):
    weights = (beta * token @ previous.T).exp().tril(-1)
    return weights @ token / weights.sum(1, keepdim=True).clamp_min(1e-9)
""",
            "does not see itself",
        ),
    ],
    "hopfield_update": [
        Case("def hopfield_update(X, q, beta):\n    return torch.softmax(beta * X @ q, dim=0) @ X\n"),
        Case("""
def hopfield_update(X, q, beta):
    return torch.nn.functional.scaled_dot_product_attention(q[None, None], X[None], X[None], scale=beta)[0, 0]
"""),
        Case("""
def hopfield_update(X, q, beta):
    weights = torch.exp(beta * (X * q).sum(1))
    return (weights[:, None] * X).sum(0) / weights.sum()
"""),
        Case(
            "def hopfield_update(X, q, beta):\n    return X.T @ torch.softmax(beta * X @ q / len(q) ** 0.5, 0)\n",
            "here beta is the whole scale",
        ),
        Case("def hopfield_update(X, q, beta):\n    return X.T @ (beta * torch.softmax(X @ q, 0))\n", "belongs inside the softmax"),
        Case("def hopfield_update(X, q, beta):\n    return beta * X.T @ X @ q\n", "there is no softmax"),
        Case("def hopfield_update(X, q, beta):\n    return torch.sign(X.T @ X @ q)\n", "takes the sign"),
        Case("def hopfield_update(X, q, beta):\n    return q + X.T @ torch.softmax(beta * X @ q, 0)\n", "adds q"),
        Case("def hopfield_update(X, q, beta):\n    return X[torch.argmax(X @ q)]\n", "returns the best pattern alone"),
        Case(
            "def hopfield_update(X, q, beta):\n    new = X.T @ torch.softmax(beta * X @ q, 0)\n    return new / new.norm()\n",
            "brings the answer to length 1",
        ),
        Case("def hopfield_update(X, q, beta):\n    return X.T @ torch.softmax(-beta * X @ q, 0)\n", "the sign of beta is flipped"),
        Case("def hopfield_update(X, q, beta):\n    return X.T @ torch.softmax(X @ q, 0)\n", "does not use its argument beta"),
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
    ],
}
