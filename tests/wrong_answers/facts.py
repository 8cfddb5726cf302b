"""Answers to the exercises of lesson 07: wrong ones that people really give, and right ones written differently."""

from wrong_answers.cases import Case

PLATEAU = """
def plateau(table, answers):
    shares = torch.nn.functional.one_hot(table, answers).to(torch.float64).mean(0)  # (R, D)
    entropy = -(shares * shares.clamp_min(1e-300).log()).sum(1)
"""

KEY = """
def list_key(table, subjects, relations, end, relation, answer):
    listed = table[:, relation] == answer
"""

SAW = """
def saw_gradient(counts, w, W, answer):
    seen = counts * w
    logits = seen @ W.T
    p = logits.softmax(1)
    p[torch.arange(len(p)), answer] -= 1
"""

CASES = {
    "plateau": [
        Case(PLATEAU + "    return entropy.mean()\n"),
        Case("""
def plateau(table, answers):
    S, R = table.shape
    total = torch.zeros((), dtype=torch.float64)
    for r in range(R):
        counts = torch.bincount(table[:, r], minlength=answers).double()
        p = counts[table[:, r]] / S
        total = total - p.log().mean()
    return total / R
"""),
        Case("""
def plateau(table, answers):
    counts = torch.stack([(table == a).sum(0) for a in range(answers)]).double() / len(table)
    return torch.special.entr(counts).sum() / table.shape[1]
"""),
        Case(
            "def plateau(table, answers):\n    return torch.log(torch.tensor(float(answers), dtype=torch.float64))\n",
            "log D holds only where",
        ),
        Case(PLATEAU + "    return entropy.mean() / torch.log(torch.tensor(2.0, dtype=torch.float64))\n", "entropies are in bits"),
        Case(PLATEAU + "    return -entropy.mean()\n", "the sign is missing"),
        Case(PLATEAU + "    return entropy.sum()\n", "summed over relations"),
        Case(
            PLATEAU + "    p = shares.mean(0)\n    return -(p * p.clamp_min(1e-300).log()).sum()\n",
            "shares are over all relations together",
        ),
        Case(PLATEAU + "    return shares.max(1).values.mean()\n", "is an accuracy"),
        Case(PLATEAU.replace(".mean(0)", ".mean(1)") + "    return entropy.mean()\n", "shares are taken over the relations of a subject"),
    ],
    "subject_memory": [
        Case("def subject_memory(table, E, U):\n    return U[table].sum(1).T @ E\n"),
        Case("""
def subject_memory(table, E, U):
    M = torch.zeros(U.shape[1], E.shape[1], dtype=E.dtype)
    for s in range(table.shape[0]):
        for r in range(table.shape[1]):
            M += torch.outer(U[table[s, r]], E[s])
    return M
"""),
        Case("def subject_memory(table, E, U):\n    return torch.einsum('srd,se->de', U[table], E)\n"),
        Case("def subject_memory(table, E, U):\n    return E.T @ U[table].sum(1)\n", "transposed"),
        Case("def subject_memory(table, E, U):\n    return U[table[:, 0]].T @ E\n", "only the answers of the first relation"),
        Case("def subject_memory(table, E, U):\n    return U[table].mean(1).T @ E\n", "a mean over the relations"),
        Case("def subject_memory(table, E, U):\n    return torch.outer(U.sum(0), E.sum(0))\n", "every subject writes every answer"),
        Case("def subject_memory(table, E, U):\n    return U[table].sum(1).T @ E / table.shape[0]\n", "a mean over subjects"),
        Case(
            "def subject_memory(table, E, U):\n    all_ = U[table].sum((0, 1))\n    return torch.outer(all_, all_)\n",
            "reads with the answers' embeddings",
        ),
    ],
    "list_key": [
        Case(KEY + "    return subjects[listed].sum(0) + relations[relation] - 1.5 * end\n"),
        Case(KEY + "    return listed.to(subjects.dtype) @ subjects + relations[relation] - 3 * end / 2\n"),
        Case("""
def list_key(table, subjects, relations, end, relation, answer):
    key = relations[relation] - 1.5 * end
    for s in range(len(subjects)):
        if table[s, relation] == answer:
            key = key + subjects[s]
    return key
"""),
        Case(KEY + "    return subjects[listed].sum(0) + relations[relation]\n", "the threshold is missing"),
        Case(KEY + "    return subjects[listed].sum(0) + relations[relation] + 1.5 * end\n", "the threshold has the wrong sign"),
        Case(KEY + "    return subjects[listed].sum(0) + relations[relation] - 0.5 * end\n", "a threshold of 1/2"),
        Case(KEY + "    return subjects[listed].sum(0) - 1.5 * end\n", "the relation is missing"),
        Case(KEY + "    return subjects.sum(0) + relations[relation] - 1.5 * end\n", "lists every subject"),
        Case(KEY + "    return subjects[listed].mean(0) + relations[relation] - 1.5 * end\n", "a mean over the list"),
        Case(KEY + "    return subjects[listed].sum(0) + relations.sum(0) - 1.5 * end\n", "adds every relation"),
    ],
    "saw_gradient": [
        Case(SAW + "    return p.T @ seen / len(p)\n"),
        Case("""
def saw_gradient(counts, w, W, answer):
    W = W.clone().requires_grad_(True)
    with torch.enable_grad():
        loss = torch.nn.functional.cross_entropy((counts * w) @ W.T, answer)
        return torch.autograd.grad(loss, W)[0]
"""),
        Case("""
def saw_gradient(counts, w, W, answer):
    total = torch.zeros_like(W)
    for c, a in zip(counts, answer):
        error = (W @ (c * w)).softmax(0)
        error = error - torch.nn.functional.one_hot(a, len(W))
        total = total + torch.outer(error, c * w)
    return total / len(counts)
"""),
        Case(SAW + "    return -p.T @ seen / len(p)\n", "the sign is flipped"),
        Case(SAW + "    return p.T @ counts / len(p)\n", "w is missing"),
        Case(SAW + "    return p.T @ seen\n", "the sum over sentences"),
        Case(SAW.replace("logits.softmax(1)", "logits.clone()") + "    return p.T @ seen / len(p)\n", "logits in place of probabilities"),
        Case(SAW + "    return logits.softmax(1).T @ seen / len(p)\n", "the right answer is not subtracted"),
        Case(SAW + "    return p.T @ ((counts > 0) * w) / len(p)\n", "counts are missing"),
        Case(SAW.replace("softmax(1)", "softmax(0)") + "    return p.T @ seen / len(p)\n", "the softmax runs over the sentences"),
    ],
    "conserved": [
        Case("def conserved(w, W):\n    return (W**2).sum(0) - w**2\n"),
        Case("def conserved(w, W):\n    return torch.einsum('az,az->z', W, W) - w * w\n"),
        Case("def conserved(w, W):\n    return torch.stack([W[:, z] @ W[:, z] - w[z] ** 2 for z in range(len(w))])\n"),
        Case("def conserved(w, W):\n    return (W**2).sum(0) + w**2\n", "a sum of the two"),
        Case("def conserved(w, W):\n    return W.sum(0) - w\n", "squares are missing"),
        Case("def conserved(w, W):\n    return w**2 - (W**2).sum(0)\n", "the sign is flipped"),
        Case("def conserved(w, W):\n    return (W**2).mean(0) - w**2\n", "a mean over answers"),
        Case("def conserved(w, W):\n    return (W**2).sum() - (w**2).sum()\n", "wrong shape ()"),
        Case("def conserved(w, W):\n    return W.norm(dim=0) - w.abs()\n", "the norm, not its square"),
    ],
}
