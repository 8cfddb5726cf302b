"""Answers to the exercises of lesson 06: wrong ones that people really give, and right ones written differently."""

from wrong_answers.cases import Case

STEP = """
def next_tokens(token, after, cumulative, u):
    rows = cumulative[token]
    drawn = (rows <= u[:, None]).sum(1)
    forced = after[torch.arange(len(token), device=token.device), token]
    return torch.where(forced >= 0, forced, drawn)
"""

KNOWN = """
def known_positions(tokens, triggers):
    here = tokens[:, :, None] == triggers[None, None, :]
    count = here.cumsum(dim=1)
    again = here & (count > 1)
    return again.any(dim=-1)
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

GRADIENT = """
def first_step(x, y, U):
    error = U[y] - U.mean(0)
    return error.T @ x / len(x)
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
    "next_tokens": [
        Case(STEP),
        Case("""
def next_tokens(token, after, cumulative, u):
    out = torch.empty_like(token)
    for b in range(len(token)):
        z = token[b]
        if after[b, z] >= 0:
            out[b] = after[b, z]
        else:
            out[b] = torch.searchsorted(cumulative[z].contiguous(), u[b], right=True)
    return out
"""),
        Case("""
def next_tokens(token, after, cumulative, u):
    drawn = (cumulative[token] > u[:, None]).int().argmax(1)
    forced = after.gather(1, token[:, None]).squeeze(1)
    return drawn * (forced < 0) + forced * (forced >= 0)
"""),
        Case(STEP.replace("torch.where(forced >= 0, forced, drawn)", "drawn"), "the triggers are ignored"),
        Case(STEP.replace("torch.where(forced >= 0, forced, drawn)", "forced"), "the table is ignored"),
        Case(STEP.replace("forced >= 0", "forced > 0"), "output 0 is taken for 'no trigger'"),
        Case(STEP.replace("forced >= 0", "forced < 0"), "the two cases are exchanged"),
        Case(STEP.replace(".sum(1)", ".sum(1) + 1"), "one too many"),
        Case(STEP.replace("rows <= u[:, None]", "rows > u[:, None]"), "the entries above u are counted"),
        Case(STEP.replace(".sum(1)", ".sum(1).sub(1).clamp(min=0)"), "this is the last entry that u has passed"),
        Case(STEP.replace("cumulative[token]", "cumulative[:, token].T"), "the columns of the table are read"),
        Case(STEP.replace("(rows <= u[:, None]).sum(1)", "torch.diff(rows, dim=1, prepend=0 * rows[:, :1]).argmax(1)"), "the likeliest"),
        Case(STEP.replace("forced = after", "after[:] = after.clamp(min=0)\n    forced = after"), "changes its argument after in place"),
        Case(STEP.replace("(rows <= u[:, None]).sum(1)", "(rows <= u).sum(1)"), "raises RuntimeError"),
    ],
    "known_positions": [
        Case(KNOWN),
        Case("""
def known_positions(tokens, triggers):
    out = torch.zeros_like(tokens, dtype=torch.bool)
    for t in range(1, tokens.shape[1]):
        now = tokens[:, t : t + 1]
        out[:, t] = (tokens[:, :t] == now).any(1) & (triggers == now).any(1)
    return out
"""),
        Case("""
def known_positions(tokens, triggers):
    before = (tokens[:, :, None] == tokens[:, None, :]).tril(-1).any(-1)
    return before & torch.isin(tokens, triggers)
"""),
        Case(KNOWN.replace("again = here & (count > 1)", "again = here"), "the first occurrence of a trigger counts, too"),
        Case(KNOWN.replace("count > 1", "count == 2"), "only the second occurrence counts"),
        Case(KNOWN.replace("count > 1", "count > 2"), "only from the third occurrence on"),
        Case(
            KNOWN.replace("triggers[None, None, :]", "triggers[None, None, :]\n    here = here.any(-1, keepdim=True)"),
            "any trigger before is taken for this one",
        ),
        Case(
            "def known_positions(tokens, triggers):\n    return (tokens[:, :, None] == tokens[:, None, :]).tril(-1).any(-1)\n",
            "every token that has occurred before counts",
        ),
        Case(KNOWN.replace("here & (count > 1)", "count > 1"), "every position after a second occurrence counts"),
        Case(KNOWN.replace("cumsum(dim=1)", "cumsum(dim=0)"), "counted across the batch"),
        Case(
            KNOWN.replace("return again.any(dim=-1)", "k = again.any(-1)\n    return torch.cat([k[:, :1] & False, k[:, :-1]], 1)"),
            "this marks the outputs",
        ),
        Case(KNOWN.replace("here.cumsum(dim=1)", "here.flip(1).cumsum(1).flip(1)"), "this marks what occurs again later"),
        Case(KNOWN.replace("triggers[None, None, :]", "triggers[None, None, :1]"), "the first trigger alone counts"),
        Case(KNOWN.replace("again.any(dim=-1)", "again"), "wrong shape"),
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
        Case(RECALL.replace("best == torch.arange(len(u), device=u.device)", "scores.diagonal() > 0"), "not yet the largest"),
        Case(RECALL.replace("argmax", "argmin"), "the smallest score is taken"),
        Case(RECALL.replace("best ==", "best !="), "True and False are exchanged"),
        Case(RECALL.replace("best == torch.arange(len(u), device=u.device)", "best"), "wrong dtype"),
    ],
    "first_step": [
        Case(GRADIENT),
        Case("""
def first_step(x, y, U):
    W = torch.zeros(U.shape[1], x.shape[1], dtype=x.dtype, device=x.device, requires_grad=True)
    loss = torch.nn.functional.cross_entropy(x @ W.T @ U.T, y)
    return -torch.autograd.grad(loss, W)[0]
"""),
        Case("""
def first_step(x, y, U):
    wanted = torch.nn.functional.one_hot(y, len(U)).to(U.dtype)
    said = torch.full_like(wanted, 1 / len(U))
    return torch.einsum("nk,ka,nb->ab", wanted - said, U, x) / len(x)
"""),
        Case(GRADIENT.replace("error.T", "-error.T"), "this is the gradient"),
        Case(GRADIENT.replace(" - U.mean(0)", ""), "what the softmax says is missing"),
        Case(GRADIENT.replace("U.mean(0)", "U.sum(0)"), "the sum of U is subtracted"),
        Case(GRADIENT.replace(" / len(x)", ""), "not divided by its size"),
        Case(GRADIENT.replace("error.T @ x", "x.T @ error"), "transposed"),
        Case(GRADIENT.replace("error.T @ x / len(x)", "torch.outer(error.mean(0), x.mean(0))"), "the means come first"),
        Case(GRADIENT.replace("U.mean(0)", "U[y].mean(0)"), "the mean over the batch's targets"),
        Case(GRADIENT.replace("len(x)", "len(U)"), "divided by N"),
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
        Case(RANK.replace("U @ torch.diag(S) @ V", "U[:, :k] @ V[:k]"), "the kept singular values are not multiplied in"),
        Case(RANK.replace("torch.diag(S)", "torch.diag(S) @ torch.diag(S)"), "squared"),
        Case(RANK.replace("S[k:] = 0", "S = torch.where(S < k, S, S)"), "nothing is removed"),
        Case(RANK.replace("len(S))", "max(W.shape))"), "the share is taken of the larger side"),
        Case(RANK.replace("S[k:] = 0", "S[S < share * S[0]] = 0"), "values below the share of the largest"),
        Case(RANK.replace("full_matrices=False", "full_matrices=True"), "raises RuntimeError"),
    ],
}
