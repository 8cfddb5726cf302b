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

BUILT = """
def induction_layers(position, token, previous, out, beta):
    kq1 = beta * position[:-1].T @ position[1:]
    ov1 = previous.T @ token
    kq2 = beta * previous.T @ token
    ov2 = out.T @ token
    return torch.stack([torch.stack([kq1, ov1]), torch.stack([kq2, ov2])])
"""

CHAINED = """
def chain(x, KQ, OV):
    for layer in range(len(KQ)):
        scores = torch.einsum("sa,ab,tb->ts", x, KQ[layer], x)
        future = torch.ones_like(scores, dtype=torch.bool).triu(1)
        weights = torch.softmax(scores.masked_fill(future, float("-inf")), dim=1)
        x = x + weights @ (x @ OV[layer].T)
    return x
"""

LOOKED = """
def lookup(asked, subject, role, one, token, answer, beta):
    kq = beta * subject.T @ asked + beta * role[:, None] * one[None]
    ov = answer.T @ token
    return torch.stack([kq, ov])
"""

DOUBLED = """
def double(position, jump, further, word, said, beta):
    kq = beta * position.T @ jump
    ov = further.T @ jump + said.T @ word
    return torch.stack([kq, ov])
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
        Case(
            SCORES.replace("d**0.5", "d") + "    return scores.masked_fill(future, NO).softmax(1) @ V\n",
            "divided by d;",
        ),
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
        Case(
            SCORES.replace("triu(1)", "triu(2)") + "    return scores.masked_fill(future, NO).softmax(1) @ V\n",
            "one too many",
        ),
        Case(
            SCORES.replace("triu(1)", "triu(0)") + "    return scores.masked_fill(future, NO).softmax(1) @ V\n", "NaN"
        ),
        Case(SCORES + "    return scores.masked_fill(future, 0).softmax(1) @ V\n", "masked scores are 0"),
        Case(SCORES + "    return scores.softmax(1).masked_fill(future, 0) @ V\n", "the mask comes after the softmax"),
        Case(
            SCORES.replace("triu(1)", "tril(-1)") + "    return scores.masked_fill(future, NO).softmax(1) @ V\n",
            "upside down",
        ),
        Case(SCORES + "    return scores.masked_fill(future, 0) @ V\n", "there is no softmax"),
        Case(SCORES + "    return scores.masked_fill(future, NO).softmax(1)\n", "wrong shape"),
        Case(
            "def attention(Q, K, V):\n    Q /= Q.shape[1] ** 0.5\n    return (Q @ K.T).softmax(1) @ V\n",
            "changes its argument Q in place",
        ),
        Case(
            """
def attention(Q, K, V):
    scores = Q @ K.T / Q.shape[-1] ** 0.5
    weights = scores.softmax(-1).tril()
    return weights @ V
""",
            "the mask comes after the softmax",
        ),
        Case(
            """
def attention(Q, K, V):
    T = len(Q)
    scores = Q @ K.T / T ** 0.5
    mask = torch.tril(torch.ones(T, T))
    return scores.masked_fill(mask == 0, float("-inf")).softmax(-1) @ V
""",
            "the number of rows of Q is used where the number of columns of Q belongs",
        ),
        Case(
            """
def attention(Q, K, V):
    scores = Q @ K.T / Q.shape[-1] ** 0.5
    mask = torch.tril(torch.ones_like(scores), -1)
    scores = scores.masked_fill(mask == 0, -torch.inf)
    return scores.softmax(-1).nan_to_num() @ V
""",
            "each position is hidden from itself, too: the mask takes one place too many",
        ),
        Case(
            """
def attention(Q, K, V):
    scores = Q @ K.T / Q.shape[-1] ** 0.5
    mask = torch.triu(torch.ones_like(scores), 1)
    scores = scores * (1 - mask)
    return torch.softmax(scores, dim=-1) @ V
""",
            "masked scores are 0, which",
        ),
        Case("""
def attention(Q, K, V):
    import numpy as np
    q, k, v = (a.numpy() for a in (Q, K, V))
    s = np.einsum("td,sd->ts", q, k) / np.sqrt(q.shape[1])
    s[np.triu_indices(len(s), 1)] = -np.inf
    w = np.exp(s - s.max(1, keepdims=True))
    return torch.from_numpy((w / w.sum(1, keepdims=True)) @ v)
"""),
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
        Case(
            HEADS.replace("(x @ k.T).T\n", "(x @ k.T).T / q.shape[0] ** 0.5\n"),
            "in this notation the scale is part of W_Q",
        ),
        Case(HEADS.replace("@ (x @ v.T) @ o", "@ (x @ v.T) @ o / len(WQ)"), "heads are averaged"),
        Case(HEADS.replace("(x @ q.T) @ (x @ k.T).T", "(x @ k.T) @ (x @ q.T).T"), "keys and queries are exchanged"),
        Case(HEADS.replace("(x @ v.T) @ o", "(x @ o.T) @ v"), "W_V and W_O are exchanged"),
        Case(HEADS.replace("softmax(-1)", "softmax(0)"), "over the queries"),
        Case(
            HEADS.replace("out = x.clone()", "out = 0 * x").replace("out = out +", "out = out + x +"),
            "once for each head",
        ),
        Case(
            HEADS.replace("out = x.clone()", "out = x").replace("out = out +", "out +="),
            "changes its argument x in place",
        ),
        Case(
            """
def multi_head(x, WQ, WK, WV, WO):
    T = len(x)
    mask = torch.triu(torch.ones(T, T, dtype=torch.bool), 1)
    out = torch.zeros_like(x)
    for q, k, v, o in zip(WQ, WK, WV, WO):
        s = (x @ q.T) @ (x @ k.T).T
        out = out + s.masked_fill(mask, -torch.inf).softmax(-1) @ (x @ v.T) @ o
    return out
""",
            "the residual is missing: heads",
        ),
        Case(
            """
def multi_head(x, WQ, WK, WV, WO):
    T = len(x)
    mask = torch.triu(torch.ones(T, T, dtype=torch.bool), 1)
    out = x
    for q, k, v, o in zip(WQ, WK, WV, WO):
        s = (x @ q.T) @ (x @ k.T).T / q.shape[0] ** 0.5
        out = out + s.masked_fill(mask, -torch.inf).softmax(-1) @ (x @ v.T) @ o
    return out
""",
            "scores are divided by sqrt(d_h)",
        ),
        Case(
            """
def multi_head(x, WQ, WK, WV, WO):
    T = len(x)
    mask = torch.triu(torch.ones(T, T, dtype=torch.bool), 1)
    heads = []
    for q, k, v, o in zip(WQ, WK, WV, WO):
        s = (x @ q.T) @ (x @ k.T).T
        heads.append(s.masked_fill(mask, -torch.inf).softmax(-1) @ (x @ v.T) @ o)
    return x + torch.stack(heads).mean(0)
""",
            "heads are averaged; they are",
        ),
        Case(
            """
def multi_head(x, WQ, WK, WV, WO):
    q, k, v = (torch.einsum("td,hpd->htp", x, W) for W in (WQ, WK, WV))
    s = torch.einsum("htp,hsp->hts", q, k)
    hidden = torch.arange(len(x))[None, :] > torch.arange(len(x))[:, None]
    w = torch.where(hidden, torch.tensor(-1e30, dtype=s.dtype), s).softmax(2)
    return x + torch.einsum("hts,hsp,hpd->td", w, v, WO)
""",
            advice="CPU",
        ),
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
        Case(
            """
def shift_scores(P, beta):
    return beta * P[1:].T @ P[:-1]
""",
            "looks at the next token: the",
        ),
    ],
    "induction_layers": [
        Case(BUILT),
        Case("""
def induction_layers(position, token, previous, out, beta):
    width = position.shape[1]
    layers = token.new_zeros(2, 2, width, width)
    for t in range(1, len(position)):
        layers[0, 0] += beta * torch.outer(position[t - 1], position[t])
    for v in range(len(token)):
        layers[0, 1] += torch.outer(previous[v], token[v])
        layers[1, 0] += beta * torch.outer(previous[v], token[v])
        layers[1, 1] += torch.outer(out[v], token[v])
    return layers
"""),
        Case("""
def induction_layers(position, token, previous, out, beta):
    shift = torch.einsum("ta,tb->ab", position[:-1], position[1:])
    copy = torch.einsum("va,vb->ab", previous, token)
    say = torch.einsum("va,vb->ab", out, token)
    return torch.stack([beta * shift, copy, beta * copy, say]).reshape(2, 2, *shift.shape)
"""),
        Case(BUILT.replace("position[:-1].T @ position[1:]", "position[1:].T @ position[:-1]"), "the next position"),
        Case(BUILT.replace("kq2 = beta * previous.T @ token", "kq2 = beta * token.T @ previous"), "layer 2's key"),
        Case(BUILT.replace("kq2 = beta * previous.T @ token", "kq2 = beta * token.T @ token"), "the same token again"),
        Case(BUILT.replace("ov2 = out.T @ token", "ov2 = out.T @ previous"), "copies the token before the match"),
        Case(BUILT.replace("ov1 = previous.T @ token", "ov1 = out.T @ token"), "layer 1 writes into out"),
        Case(
            BUILT.replace("ov1 = previous.T @ token", "ov1 = token.T @ previous").replace(
                "out.T @ token", "token.T @ out"
            ),
            "W_OV is transposed in both layers",
        ),
        Case(BUILT.replace("kq2 = beta * ", "kq2 = "), "layer 2 is not sharp"),
        Case(BUILT.replace("= previous", "= beta * previous").replace("= out", "= beta * out"), "beta belongs to the"),
        Case(BUILT.replace("[kq1, ov1]", "[ov1, kq1]").replace("[kq2, ov2]", "[ov2, kq2]"), "KQ and OV are exchanged"),
    ],
    "chain": [
        Case(CHAINED),
        Case("""
def chain(x, KQ, OV):
    attend = torch.nn.functional.scaled_dot_product_attention
    for kq, ov in zip(KQ, OV):
        x = x + attend((x @ kq.T)[None], x[None], (x @ ov.T)[None], is_causal=True, scale=1.0)[0]
    return x
"""),
        Case("""
def chain(x, KQ, OV):
    if len(KQ) == 0:
        return x
    rows = []
    for t in range(len(x)):
        weights = torch.softmax(x[: t + 1] @ KQ[0] @ x[t], dim=0)
        rows.append(x[t] + OV[0] @ (weights @ x[: t + 1]))
    return chain(torch.stack(rows), KQ[1:], OV[1:])
"""),
        Case(
            CHAINED.replace("for layer", "first = x\n    for layer")
            .replace('"sa,ab,tb->ts", x, KQ[layer], x', '"sa,ab,tb->ts", first, KQ[layer], first')
            .replace("weights @ (x @", "weights @ (first @"),
            "all layers read the first stream",
        ),
        Case(CHAINED.replace("x = x + weights", "x = weights"), "the residual is missing"),
        Case(CHAINED.replace("range(len(KQ))", "[-1]"), "only the last layer"),
        Case(CHAINED.replace("sa,ab,tb->ts", "ta,ab,sb->ts"), "key and query are exchanged"),
        Case(CHAINED.replace("OV[layer].T", "OV[layer]"), "W_OV is applied transposed"),
        Case(CHAINED.replace('scores.masked_fill(future, float("-inf"))', "scores"), "no mask"),
        Case(CHAINED.replace("dim=1", "dim=0"), "over the queries"),
        Case(
            CHAINED.replace("weights = torch", "scores = scores / x.shape[1] ** 0.5\n        weights = torch"),
            "divided by sqrt(D)",
        ),
        Case(
            """
def chain(x, KQ, OV):
    x0 = x
    for kq, ov in zip(KQ, OV):
        s = x0 @ kq.T @ x0.T
        mask = torch.ones_like(s).triu(1).bool()
        x = x + s.masked_fill(mask, -torch.inf).softmax(-1) @ x0 @ ov.T
    return x
""",
            "all layers read the first",
        ),
        Case("""
def chain(x, KQ, OV):
    x = x.clone()
    for layer in range(KQ.shape[0]):
        new = x.clone()
        for t in range(len(x)):
            seen = x[: t + 1]
            w = torch.softmax(torch.stack([x[t] @ KQ[layer].T @ s for s in seen]), 0)
            new[t] += OV[layer] @ (w @ seen)
        x = new
    return x
"""),
    ],
    "lookup": [
        Case(LOOKED),
        Case("""
def lookup(asked, subject, role, one, token, answer, beta):
    keys = torch.cat([subject, role[None]])
    queries = torch.cat([asked, one[None]])
    return torch.stack([beta * keys.T @ queries, answer.T @ token])
"""),
        Case("""
def lookup(asked, subject, role, one, token, answer, beta):
    kq = torch.outer(role, one)
    ov = torch.zeros_like(kq)
    for v in range(len(asked)):
        kq = kq + torch.outer(subject[v], asked[v])
        ov = ov + torch.outer(answer[v], token[v])
    return torch.stack([kq * beta, ov])
"""),
        Case(LOOKED.replace(" + beta * role[:, None] * one[None]", ""), "the role does not count"),
        Case(LOOKED.replace("beta * subject.T @ asked + ", ""), "the name does not count"),
        Case(LOOKED.replace("role[:, None] * one[None]", "one[:, None] * role[None]"), "role and one are exchanged"),
        Case(LOOKED.replace("subject.T @ asked", "asked.T @ subject"), "subject and asked are exchanged"),
        Case(LOOKED.replace("+ beta * role", "+ role"), "and the role hardly counts"),
        Case(LOOKED.replace("answer.T @ token", "answer.T @ subject"), "copies the subject"),
        Case(LOOKED.replace("answer.T @ token", "token.T @ answer"), "W_OV is transposed"),
        Case(
            """
def lookup(asked, subject, role, one, token, answer, beta):
    kq = beta * subject.T @ asked + torch.outer(role, one)
    ov = answer.T @ token
    return torch.stack([kq, ov])
""",
            "beta multiplies the name's",
        ),
        Case(
            """
def lookup(asked, subject, role, one, token, answer, beta):
    D = len(role)
    kq = torch.zeros(D, D, dtype=token.dtype)
    for a, s in zip(asked, subject):
        kq += beta * torch.outer(s, a)
    kq += beta * role[:, None] * one[None, :]
    ov = sum(torch.outer(o, t) for o, t in zip(answer, token))
    return torch.stack((kq, ov), dim=0)
""",
            advice="CPU",
        ),
    ],
    "double": [
        Case(DOUBLED),
        Case("""
def double(position, jump, further, word, said, beta):
    kq = beta * torch.einsum("ta,tb->ab", position, jump)
    read, write = torch.cat([jump, word]), torch.cat([further, said])
    return torch.stack([kq, write.T @ read])
"""),
        Case("""
def double(position, jump, further, word, said, beta):
    kq, ov = 0, 0
    for t in range(len(position)):
        kq = kq + beta * torch.outer(position[t], jump[t])
        ov = ov + torch.outer(further[t], jump[t])
    for v in range(len(word)):
        ov = ov + torch.outer(said[v], word[v])
    return torch.stack([kq, ov])
"""),
        Case(DOUBLED.replace("position.T @ jump", "jump.T @ position"), "key and query are exchanged"),
        Case(DOUBLED.replace("further.T @ jump", "further.T @ position"), "the same jump again"),
        Case(DOUBLED.replace(" + said.T @ word", ""), "the word is not copied"),
        Case(DOUBLED.replace("further.T @ jump + ", ""), "the jump is not copied"),
        Case(DOUBLED.replace("further.T @ jump", "jump.T @ jump"), "adds to the jump that it reads"),
        Case(DOUBLED.replace("further.T @ jump + said.T @ word", "jump.T @ further + word.T @ said"), "transposed"),
        Case(DOUBLED.replace("position.T @ jump", "jump.T @ jump"), "compares jumps with jumps"),
    ],
}
