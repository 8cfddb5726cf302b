"""Answers to the exercises of lesson 06: wrong ones that people really give, and right ones written differently."""

from wrong_answers.cases import Case

SCORE = """
def induction_score(pattern, tokens, where):
    same = tokens[:, :, None] == tokens[:, None, :]
    places = torch.zeros_like(same)
    places[:, :, 1:] = same[:, :, :-1]
    share = (pattern * places[:, None]).sum(-1)
    return share.transpose(0, 1)[:, where].mean(-1)
"""

POSITIONS = """
def position_memory(P, beta):
    unit = P / (P * P).sum(1, keepdim=True)
    q, k = unit[1:], unit[:-1]
    return beta * P.shape[1] ** 0.5 * (q.T @ k)
"""

OUTPUTS = """
def output_memory(E, U, S):
    values = E @ S.T
    return U.T @ values
"""

ADAM = """
def adam_step(gradient, m, v, step, lr):
    m = 0.9 * m + (1 - 0.9) * gradient
    v = 0.99 * v + (1 - 0.99) * gradient * gradient
    first = m / (1 - 0.9**step)
    second = v / (1 - 0.99**step)
    change = -lr * first / (second.sqrt() + 1e-8)
    return torch.stack([change, m, v])
"""

KEYS = """
def key_memory(E, R, triggers):
    e = E[triggers]
    keys = e @ R.T
    return e.T @ keys
"""

RECALL = """
def recalled(W, u, v):
    scores = u @ W.T @ v.T
    best = scores.argmax(dim=1)
    return best == torch.arange(len(u), device=u.device)
"""

RANK = """
def low_rank(W, share):
    U, S, V = torch.linalg.svd(W, full_matrices=False)
    k = int(share * len(S))
    S = S.clone()
    S[k:] = 0
    return U @ torch.diag(S) @ V
"""

CASES = {
    "induction_score": [
        Case(SCORE),
        Case("""
def induction_score(pattern, tokens, where):
    total = pattern[0, :, 0, 0] * 0
    for b, t in where.nonzero().tolist():
        for s in range(1, t + 1):
            if tokens[b, s - 1] == tokens[b, t]:
                total += pattern[b, :, t, s]
    return total / where.sum()
"""),
        Case("""
def induction_score(pattern, tokens, where):
    match = (tokens[:, None, :-1] == tokens[:, :, None]).to(pattern.dtype)
    share = torch.einsum("bhts,bts->bht", pattern[..., 1:], match)
    return (share * where[:, None]).sum((0, 2)) / where.sum()
"""),
        Case(SCORE.replace("[:, :, 1:] = same[:, :, :-1]", "[:] = same"), "the attention to the same token"),
        Case(SCORE.replace("[:, :, 1:] = same[:, :, :-1]", "[:, :, :-1] = same[:, :, 1:]"), "before the same token"),
        Case(SCORE.replace("[:, :, 1:] = same[:, :, :-1]", "[:, :, 2:] = same[:, :, :-2]"), "two places after"),
        Case(SCORE.replace("[:, where].mean(-1)", ".flatten(1).mean(-1)"), "`where` is ignored"),
        Case(
            SCORE.replace("share.transpose(0, 1)[:, where].mean(-1)", "(share * where[:, None]).mean((0, 2))"),
            "count as 0",
        ),
        Case(
            SCORE.replace("places[:, None])", "(places & where[:, None])[:, None])").replace(
                "share.transpose(0, 1)[:, where].mean(-1)", "share.mean((0, 2))"
            ),
            "applied to the keys",
        ),
        Case(SCORE.replace("pattern * places", "pattern.mT * places"), "queries and keys are exchanged"),
        Case(
            SCORE.replace("[:, where].mean(-1)", "[:, where].mean(-1).mean().repeat(pattern.shape[1])"),
            "the heads are averaged, too",
        ),
        Case(SCORE.replace(".sum(-1)", ".mean(-1)"), "averaged over the keys"),
        Case(SCORE.replace(".mean(-1)", ""), "wrong shape"),
        Case(
            """
def induction_score(pattern, tokens, where):
    same = tokens[:, :, None] == tokens[:, None, :]
    places = torch.zeros_like(same)
    places[:, 1:, :] = same[:, :-1, :]
    share = (pattern * places[:, None]).sum(-1)
    return share.transpose(0, 1)[:, where].mean(-1)
""",
            "transposed",
        ),
        Case(
            """
def induction_score(pattern, tokens, where):
    previous = pattern.diagonal(offset=-1, dim1=-2, dim2=-1)
    return previous.transpose(0, 1)[:, where[:, 1:]].mean(-1)
""",
            "does not use its argument tokens",
        ),
        Case(
            """
def induction_score(pattern, tokens, where):
    same = tokens[:, :, None] == tokens[:, None, :]
    places = torch.zeros_like(same)
    places[:, :, 1:] = same[:, :, :-1]
    share = (pattern * places[:, None]).amax(-1)
    return share.transpose(0, 1)[:, where].mean(-1)
""",
            "the largest of",
        ),
        Case(
            """
def induction_score(pattern, tokens, where):
    same = tokens[:, :, None] == tokens[:, None, :]
    places = torch.zeros_like(same)
    places[:, :, 1:] = same[:, :, :-1]
    share = (pattern * places[:, None]).sum(-1)
    return share.transpose(0, 1)[:, where].sum(-1)
""",
            "sum of",
        ),
    ],
    "position_memory": [
        Case(POSITIONS),
        Case("""
def position_memory(P, beta):
    T, d = P.shape
    W = P.new_zeros(d, d)
    for t in range(1, T):
        W += beta * d**0.5 * torch.outer(P[t], P[t - 1]) / (P[t] @ P[t]) / (P[t - 1] @ P[t - 1])
    return W
"""),
        Case("""
def position_memory(P, beta):
    size = P.norm(dim=1) ** 2
    return torch.einsum("ta,tb,t->ab", P[1:], P[:-1], beta * P.size(1) ** 0.5 / (size[1:] * size[:-1]))
"""),
        Case(POSITIONS.replace("q.T @ k", "k.T @ q"), "transposed"),
        Case(POSITIONS.replace("unit[1:], unit[:-1]", "unit, unit"), "looks at itself"),
        Case(POSITIONS.replace("unit[1:], unit[:-1]", "unit, unit.roll(1, 0)"), "looks back to the last one"),
        Case(POSITIONS.replace("unit[1:], unit[:-1]", "unit[2:], unit[:-2]"), "two places back"),
        Case(POSITIONS.replace("(q.T @ k)", "(q.T @ k) / len(q)"), "averaged"),
        Case(POSITIONS.replace("q.T @ k", "torch.outer(q.sum(0), k.sum(0))"), "one outer product of two sums"),
        Case(POSITIONS.replace("unit[1:], unit[:-1]", "unit, unit.cumsum(0) - unit"), "every earlier position"),
        Case(POSITIONS.replace("unit[1:], unit[:-1]", "unit[2:], unit[1:-1]"), "the first pair is missing"),
        Case(POSITIONS.replace("unit[1:], unit[:-1]", "unit[1:-1], unit[:-2]"), "the last pair is missing"),
        Case(POSITIONS.replace("(P * P).sum(1, keepdim=True)", "P.norm(dim=1, keepdim=True)"), "by their lengths"),
        Case(POSITIONS.replace(" / (P * P).sum(1, keepdim=True)", ""), "are left in"),
        Case(POSITIONS.replace(" * P.shape[1] ** 0.5", ""), "the root of d is missing"),
        Case(POSITIONS.replace("* P.shape[1] ** 0.5", "/ P.shape[1] ** 0.5"), "attention does that already"),
        Case(POSITIONS.replace("P.shape[1] ** 0.5", "P.shape[1]"), "divides by its root only"),
        Case(POSITIONS.replace("beta * ", ""), "beta is not used"),
        Case(POSITIONS.replace("q.T @ k", "q @ k.T"), "wrong shape"),
        Case(
            POSITIONS.replace("return ", "W = ") + "    return W + W.T\n",
            "transpose is added",
        ),
    ],
    "output_memory": [
        Case(OUTPUTS),
        Case("""
def output_memory(E, U, S):
    return sum(torch.outer(U[j], S @ E[j]) for j in range(len(E)))
"""),
        Case('def output_memory(E, U, S):\n    return torch.einsum("ja,jb,cb->ac", U, E, S)\n'),
        Case(OUTPUTS.replace("U.T @ values", "values.T @ U"), "transposed"),
        Case(OUTPUTS.replace("E @ S.T", "E"), "the value is E_j itself"),
        Case(OUTPUTS.replace("E @ S.T", "E @ S"), "the rows of E times S are S^T E_j"),
        Case(OUTPUTS.replace("E @ S.T", "E").replace("U.T", "(U @ S.T).T"), "S is applied to U"),
        Case(OUTPUTS.replace("E @ S.T", "U @ S.T").replace("U.T @ values", "E.T @ values"), "exchanged"),
        Case(OUTPUTS.replace("U.T @ values", "E.T @ values"), "U is not used"),
        Case(OUTPUTS.replace("U.T @ values", "U.T @ values / len(U)"), "averaged"),
        Case(OUTPUTS.replace("U.T @ values", "torch.outer(U.sum(0), values.sum(0))"), "one outer product of two sums"),
        Case(OUTPUTS.replace("U.T @ values", "U @ values.T"), "wrong shape"),
        Case(
            """
def output_memory(E, U, S):
    values = E + E @ S.T
    return U.T @ values
""",
            "the identity is added to S",
        ),
    ],
    "adam_step": [
        Case(ADAM),
        Case("""
def adam_step(gradient, m, v, step, lr):
    m, v = torch.lerp(gradient, m, 0.9), torch.lerp(gradient.square(), v, 0.99)
    size = lr * (1 - 0.99**step) ** 0.5 / (1 - 0.9**step)
    return torch.stack([-size * m * v.rsqrt(), m, v])
"""),
        Case("""
def adam_step(gradient, m, v, step, lr):
    out = gradient.new_empty(3, *gradient.shape)
    out[1] = m + 0.1 * (gradient - m)
    out[2] = v + 0.01 * (gradient**2 - v)
    out[0] = -lr * (out[1] / (1 - 0.9**step)) / ((out[2] / (1 - 0.99**step)) ** 0.5 + 1e-8)
    return out
"""),
        Case(ADAM.replace("-lr", "lr"), "goes up the gradient"),
        Case(ADAM.replace("-lr * first / (second", "-lr * m / (v"), "neither mean is corrected"),
        Case(ADAM.replace("(second", "(v"), "v is not corrected"),
        Case(ADAM.replace("* first", "* m"), "m is not corrected"),
        Case(ADAM.replace("second.sqrt()", "second"), "the root is missing"),
        Case(ADAM.replace(" / (second.sqrt() + 1e-8)", ""), "this is momentum"),
        Case(
            ADAM.replace("gradient * gradient", "gradient").replace("second.sqrt()", "second.abs().sqrt()"),
            "v averages the gradient",
        ),
        Case(ADAM.replace("0.99", "b").replace("0.9", "0.99").replace("b", "0.9"), "0.9 and 0.99 are exchanged"),
        Case(
            ADAM.replace("0.99", "b").replace("0.9", "0.1").replace("b", "0.01"),
            "the weights of old and new are exchanged",
        ),
        Case(ADAM.replace("[change, m, v]", "[change, first, second]"), "the corrected means are returned"),
        Case(ADAM.replace("-lr * first", "-first"), "the step does not use lr"),
        Case(
            ADAM.replace("    m = 0.9", "    old = m\n    m = 0.9").replace("* first", "* old / (1 - 0.9**step)"),
            "the old m is used",
        ),
        Case(ADAM.replace("torch.stack([change, m, v])", "change"), "wrong shape"),
        Case(
            ADAM.replace("    m = 0.9 * m + (1 - 0.9) * gradient", "    m.mul_(0.9).add_(0.1 * gradient)"), "in place"
        ),
        Case(
            """
def adam_step(gradient, m, v, step, lr):
    m = 0.9 * m + 0.1 * gradient
    v = 0.99 * v + 0.01 * gradient**2
    m_hat = m / (1 - 0.9 ** (step - 1))
    v_hat = v / (1 - 0.99 ** (step - 1))
    return torch.stack([-lr * m_hat / (v_hat.sqrt() + 1e-8), m, v])
""",
            "one less than step",
        ),
        Case(
            """
def adam_step(gradient, m, v, step, lr):
    m = 0.9 * m + 0.1 * gradient
    v = v + gradient**2
    m_hat = m / (1 - 0.9**step)
    v_hat = v / (1 - 0.99**step)
    return torch.stack([-lr * m_hat / (v_hat.sqrt() + 1e-8), m, v])
""",
            "added up without weights",
        ),
    ],
    "key_memory": [
        Case(KEYS),
        Case("""
def key_memory(E, R, triggers):
    W = torch.zeros_like(R)
    for k in triggers:
        W = W + torch.outer(E[k], R @ E[k])
    return W
"""),
        Case('def key_memory(E, R, triggers):\n    return torch.einsum("ka,kb,cb->ac", E[triggers], E[triggers], R)\n'),
        Case(KEYS.replace("e.T @ keys", "keys.T @ e"), "transposed"),
        Case(KEYS.replace("e @ R.T", "e"), "the key is e_k itself"),
        Case(KEYS.replace("e @ R.T", "e @ R"), "the rows of E times R are R^T e_k"),
        Case(KEYS.replace("E[triggers]", "E"), "all tokens are stored"),
        Case(KEYS.replace("E[triggers]", "E[:len(triggers)]"), "the first K tokens are stored"),
        Case(KEYS.replace("e.T @ keys", "e.T @ keys / len(e)"), "averaged"),
        Case(KEYS.replace("e.T @ keys", "torch.outer(e.sum(0), keys.sum(0))"), "one outer product of two sums"),
        Case(KEYS.replace("e.T @ keys", "keys.T @ keys"), "both sides are remapped"),
        Case(
            """
def key_memory(E, R, triggers):
    e = E[triggers]
    keys = e + e @ R.T
    return e.T @ keys
""",
            "the identity is added to R",
        ),
    ],
    "recalled": [
        Case(RECALL),
        Case("""
def recalled(W, u, v):
    out = []
    for i in range(len(u)):
        scores = v @ (W @ u[i])
        out.append(scores.argmax() == i)
    return torch.stack(out)
"""),
        Case("""
def recalled(W, u, v):
    scores = torch.einsum("jm,md,id->ij", v, W, u)
    return scores.diagonal() == scores.amax(dim=1)
"""),
        Case(RECALL.replace("dim=1", "dim=0"), "the argmax runs over the inputs i"),
        Case(RECALL.replace("u @ W.T", "u @ W"), "W is applied the wrong way round"),
        Case(RECALL.replace("u @ W.T @ v.T", "v @ W.T @ u.T"), "u and v are exchanged"),
        Case(RECALL.replace("u @ W.T @ v.T", "u @ v.T"), "W is not used"),
        Case(RECALL.replace("@ v.T", "@ u.T"), "W u_i is compared with u"),
        Case(
            RECALL.replace("best == torch.arange(len(u), device=u.device)", "scores.diagonal() > 0"),
            "not yet the largest",
        ),
        Case(
            RECALL.replace("best == torch.arange(len(u), device=u.device)", "scores.softmax(1).diagonal() > 0.5"),
            "above one half",
        ),
        Case(RECALL.replace("argmax", "argmin"), "the smallest score is taken"),
        Case(RECALL.replace("best ==", "best !="), "True and False are exchanged"),
        Case(RECALL.replace("best == torch.arange(len(u), device=u.device)", "best"), "wrong dtype"),
        Case(
            """
def recalled(W, u, v):
    found = u @ W.T
    scores = torch.nn.functional.normalize(found, dim=1) @ torch.nn.functional.normalize(v, dim=1).T
    return scores.argmax(1) == torch.arange(len(u))
""",
            "v is brought to length 1",
        ),
        Case(
            """
def recalled(W, u, v):
    distance = torch.cdist(u @ W.T, v)
    return distance.argmin(1) == torch.arange(len(u))
""",
            "compared by distance",
        ),
    ],
    "low_rank": [
        Case(RANK),
        Case("""
def low_rank(W, share):
    U, S, V = torch.svd(W)
    k = int(share * min(W.shape))
    return sum(S[i] * torch.outer(U[:, i], V[:, i]) for i in range(k))
"""),
        Case("""
def low_rank(W, share):
    V = torch.linalg.svd(W, full_matrices=False)[2]
    V = V[: int(share * len(V))]
    return W @ V.T @ V
"""),
        Case(RANK.replace("S[k:] = 0", "S[: len(S) - k] = 0"), "the smallest singular values are kept"),
        Case(RANK.replace("S[k:] = 0", "S[:k] = 0"), "the largest singular values are removed"),
        Case(RANK.replace("int(share * len(S))", "round(share * len(S))"), "the number kept is rounded"),
        Case(RANK.replace("S[k:] = 0", "S[k - 1:] = 0"), "one too few are kept"),
        Case(
            RANK.replace("U @ torch.diag(S) @ V", "U[:, :k] @ V[:k]"), "the kept singular values are not multiplied in"
        ),
        Case(RANK.replace("torch.diag(S)", "torch.diag(S) @ torch.diag(S)"), "squared"),
        Case(RANK.replace("S[k:] = 0", "S = torch.where(S < k, S, S)"), "nothing is removed"),
        Case(RANK.replace("len(S))", "max(W.shape))"), "the share is taken of the larger side"),
        Case(RANK.replace("S[k:] = 0", "S[S < share * S[0]] = 0"), "values below the share of the largest"),
        Case(RANK.replace("full_matrices=False", "full_matrices=True"), "raises RuntimeError"),
        Case(
            """
def low_rank(W, share):
    U, S, V = torch.linalg.svd(W, full_matrices=False)
    k = int(share * len(S))
    return U[:, :k] @ torch.diag(S[:k].sqrt()) @ V[:k]
""",
            "the square root of",
        ),
    ],
}
