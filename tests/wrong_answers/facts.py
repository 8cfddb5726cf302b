"""Answers to the exercises of lesson 07: wrong ones that people really give, and right ones written differently."""

from wrong_answers.cases import Case

PLATEAU = """
def plateau(table, answers):
    shares = torch.nn.functional.one_hot(table, answers).to(torch.float64).mean(0)  # (R, D)
    entropy = -(shares * shares.clamp_min(1e-300).log()).sum(1)
"""

VOTE = """
def both_vote(table, writes):
    R, D = table.shape[1], len(writes) // table.shape[1]
    of_subject = writes[table].sum(1)
    of_relation = writes.view(R, D, -1).sum(1)
"""

SIGNAL = """
def signal(counts, answer, answers):
    surprise = torch.nn.functional.one_hot(answer, answers).to(counts) - 1 / answers
    pull = surprise.T @ counts / len(counts)
"""

REST = """
def rest(losses, level, within):
    best = now = 0
    for loss in losses:
        now = now + 1 if abs(loss - level) <= within * level else 0
"""

BITS = """
import math

def bits(right, facts, answers):
    p = right.clamp(min=1 / answers)
    q = 1 - p
    unsure = -(torch.special.xlogy(p, p) + torch.special.xlogy(q, q)) / math.log(2)
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

BOTH = """
    of_W = p.T @ seen / len(p)
    of_w = ((p @ W) * counts).sum(0) / len(p)
    return torch.cat([of_W, of_w[None]])
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
        Case(
            PLATEAU + "    return entropy.mean() / torch.log(torch.tensor(2.0, dtype=torch.float64))\n",
            "entropies are in bits",
        ),
        Case(PLATEAU + "    return -entropy.mean()\n", "the sign is missing"),
        Case(PLATEAU + "    return entropy.sum()\n", "summed over relations"),
        Case(
            PLATEAU + "    p = shares.mean(0)\n    return -(p * p.clamp_min(1e-300).log()).sum()\n",
            "shares are over all relations together",
        ),
        Case(PLATEAU + "    return shares.max(1).values.mean()\n", "is an accuracy"),
        Case(
            PLATEAU.replace(".mean(0)", ".mean(1)") + "    return entropy.mean()\n",
            "shares are taken over the relations of a subject",
        ),
    ],
    "both_vote": [
        Case(VOTE + "    return of_subject[:, None, :] + of_relation[None, :, :]\n"),
        Case("""
def both_vote(table, writes):
    S, R = table.shape
    D = len(writes) // R
    logits = writes.new_zeros(S, R, writes.shape[1])
    for s in range(S):
        for r in range(R):
            logits[s, r] = sum(writes[a] for a in table[s]) + writes[r * D : (r + 1) * D].sum(0)
    return logits
"""),
        Case("""
def both_vote(table, writes):
    R = table.shape[1]
    relation = torch.arange(len(writes), device=writes.device) // (len(writes) // R)
    has = torch.nn.functional.one_hot(table, len(writes)).sum(1).to(writes)
    own = torch.nn.functional.one_hot(relation, R).T.to(writes)
    return torch.einsum('sa,ad->sd', has, writes).unsqueeze(1) + own @ writes
"""),
        Case(
            VOTE + "    return of_subject[:, None].expand(-1, R, -1)\n",
            "the relation's votes are missing",
        ),
        Case(
            VOTE + "    return of_relation[None].expand(len(table), -1, -1)\n",
            "the subject's votes are missing",
        ),
        Case("def both_vote(table, writes):\n    return writes[table]\n", "writes the right answer alone"),
        Case(
            VOTE + "    return of_subject[:, None] / table.shape[1] + of_relation\n", "a mean over a subject's answers"
        ),
        Case(
            VOTE + "    return of_subject[:, None] + of_relation / (len(writes) // table.shape[1])\n",
            "a mean over a relation's answers",
        ),
        Case(
            VOTE + "    return (of_subject + writes.sum(0))[:, None].repeat(1, table.shape[1], 1)\n",
            "every relation votes for all answers",
        ),
        Case(
            VOTE.replace("view(R, D, -1).sum(1)", "view(D, R, -1).sum(0)")
            + "    return of_subject[:, None] + of_relation\n",
            "a relation votes for other relations' answers",
        ),
        Case(VOTE + "    return of_subject + of_relation.sum(0)\n", "wrong shape"),
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
        Case(
            KEY + "    return subjects[listed].sum(0) + relations[relation] + 1.5 * end\n",
            "the threshold has the wrong sign",
        ),
        Case(KEY + "    return subjects[listed].sum(0) + relations[relation] - 0.5 * end\n", "a threshold of 1/2"),
        Case(KEY + "    return subjects[listed].sum(0) - 1.5 * end\n", "the relation is missing"),
        Case(KEY + "    return subjects.sum(0) + relations[relation] - 1.5 * end\n", "lists every subject"),
        Case(KEY + "    return subjects[listed].mean(0) + relations[relation] - 1.5 * end\n", "a mean over the list"),
        Case(KEY + "    return subjects[listed].sum(0) + relations[relation] - end\n", "a threshold of 1 is reached"),
        Case(
            KEY + "    return (subjects[listed] + relations[relation]).sum(0) - 1.5 * end\n",
            "the relation is added once for every listed subject",
        ),
        Case(
            KEY + "    return (subjects[listed] - 1.5 * end).sum(0) + relations[relation]\n",
            "the threshold is taken off once for every listed subject",
        ),
    ],
    "saw_gradient": [
        Case(SAW + BOTH),
        Case("""
def saw_gradient(counts, w, W, answer):
    W, w = W.clone().requires_grad_(True), w.clone().requires_grad_(True)
    with torch.enable_grad():
        loss = torch.nn.functional.cross_entropy((counts * w) @ W.T, answer)
        of_W, of_w = torch.autograd.grad(loss, (W, w))
    return torch.vstack([of_W, of_w])
"""),
        Case("""
def saw_gradient(counts, w, W, answer):
    total = W.new_zeros(len(W) + 1, W.shape[1])
    for c, a in zip(counts, answer):
        error = (W @ (c * w)).softmax(0)
        error = error - torch.nn.functional.one_hot(a, len(W))
        total[:-1] += torch.outer(error, c * w)
        total[-1] += c * (error @ W)
    return total / len(counts)
"""),
        Case(SAW + BOTH.replace("[of_W, of_w[None]]", "[-of_W, -of_w[None]]"), "the sign is flipped"),
        Case(SAW + BOTH.replace("p.T @ seen", "p.T @ counts"), "w is missing"),
        Case(SAW + BOTH.replace("p.T @ seen", "p.T @ (seen * w)"), "w is there twice"),
        Case(SAW + BOTH.replace(" / len(p)", ""), "the sum over sentences"),
        Case(SAW.replace("logits.softmax(1)", "logits.clone()") + BOTH, "logits in place of probabilities"),
        Case(SAW + "    p = logits.softmax(1)\n" + BOTH, "the right answer is not subtracted"),
        Case(
            SAW + BOTH.replace("seen", "((counts > 0) * w)").replace("* counts", "* (counts > 0)"),
            "counts are missing",
        ),
        Case(SAW.replace("softmax(1)", "softmax(0)") + BOTH, "the softmax runs over the sentences"),
        Case(SAW + BOTH.replace("* counts", "* seen"), "the last row has w in it"),
        Case(SAW + BOTH.replace("((p @ W) * counts)", "(p @ W)"), "does not count how often"),
        Case(SAW + BOTH.replace("[of_W, of_w[None]]", "[of_w[None], of_W]"), "the last row comes first"),
        Case(SAW + BOTH.replace("torch.cat([of_W, of_w[None]])", "of_W"), "wrong shape"),
    ],
    "signal": [
        Case(SIGNAL + "    return pull.square().sum(0).sqrt()\n"),
        Case("""
def signal(counts, answer, answers):
    W = counts.new_zeros(answers, counts.shape[1]).requires_grad_()
    with torch.enable_grad():
        loss = torch.nn.functional.cross_entropy(counts @ W.T, answer)
        return torch.autograd.grad(loss, W)[0].norm(dim=0)
"""),
        Case("""
def signal(counts, answer, answers):
    pull = counts.new_zeros(answers, counts.shape[1])
    for n, a in zip(counts, answer):
        pull[a] += n
        pull -= n / answers
    return torch.linalg.vector_norm(pull / len(counts), dim=0)
"""),
        Case(SIGNAL.replace(" - 1 / answers", "") + "    return pull.norm(dim=0)\n", "is not subtracted"),
        Case(SIGNAL.replace(" / len(counts)", "") + "    return pull.norm(dim=0)\n", "summed over sentences"),
        Case(SIGNAL + "    return (pull**2).sum(0)\n", "the square of the length"),
        Case(
            SIGNAL.replace("len(counts)", "counts.sum(0).clamp(min=1e-300)") + "    return pull.norm(dim=0)\n",
            "divided by how often the word comes up",
        ),
        Case(SIGNAL + "    return pull.norm(dim=1)\n", "wrong shape"),
        Case("""
def signal(counts, answer, answers):
    pull = torch.stack([((answer == a).to(counts) - 1 / answers) @ counts for a in range(answers)]) / counts.size(0)
    return torch.einsum("aw,aw->w", pull, pull) ** 0.5
"""),
    ],
    "rest": [
        Case(REST + "        best = max(best, now)\n    return torch.tensor(best)\n"),
        Case("""
def rest(losses, level, within):
    near = ((losses - level).abs() <= within * level).int()
    edges = torch.diff(near, prepend=near.new_zeros(1), append=near.new_zeros(1))
    begins, ends = (edges == 1).nonzero()[:, 0], (edges == -1).nonzero()[:, 0]
    return (ends - begins).max() if len(begins) else torch.tensor(0)
"""),
        Case("""
def rest(losses, level, within):
    import itertools
    near = [abs(loss.item() - level) <= within * level for loss in losses]
    return torch.tensor(max((len(list(run)) for same, run in itertools.groupby(near) if same), default=0))
"""),
        Case(
            "def rest(losses, level, within):\n    return ((losses / level - 1).abs() <= within).sum()\n",
            "counts all snapshots near the level",
        ),
        Case(
            """
def rest(losses, level, within):
    length = 0
    for loss in losses:
        if abs(loss - level) <= within * level:
            length += 1
        elif length:
            break
    return torch.tensor(length)
""",
            "the first stretch",
        ),
        Case(
            """
def rest(losses, level, within):
    length = 0
    for loss in losses.flip(0):
        if abs(loss - level) <= within * level:
            length += 1
        elif length:
            break
    return torch.tensor(length)
""",
            "the last stretch",
        ),
        Case(
            """
def rest(losses, level, within):
    best = now = 0
    for loss in losses:
        if abs(loss - level) <= within * level:
            now += 1
        else:
            best, now = max(best, now), 0
    return torch.tensor(best)
""",
            "a stretch that lasts to the end is left out",
        ),
        Case(
            REST.replace("abs(loss - level) <= within * level", "loss <= level * (1 + within)")
            + "        best = max(best, now)\n    return torch.tensor(best)\n",
            "everything below the level counts too",
        ),
        Case(
            REST.replace("abs(loss - level) <= within * level", "loss >= level * (1 - within)")
            + "        best = max(best, now)\n    return torch.tensor(best)\n",
            "everything above the level counts too",
        ),
        Case(
            REST.replace("within * level", "within") + "        best = max(best, now)\n    return torch.tensor(best)\n",
            "`within` is relative",
        ),
        Case(
            """
def rest(losses, level, within):
    near = ((losses - level).abs() <= within * level).nonzero()[:, 0]
    return near[-1] - near[0] + 1
""",
            "from the first snapshot near the level to the last",
        ),
        Case("""
def rest(losses, level, within):
    text = "".join("x" if abs(float(l) - level) <= within * level else " " for l in losses)
    return torch.tensor(max(map(len, text.split()), default=0))
"""),
    ],
    "bits": [
        Case(BITS + "    return facts * (math.log2(answers) - unsure - q * math.log2(answers - 1))\n"),
        Case("""
import math
def bits(right, facts, answers):
    out = torch.zeros_like(right)
    for k, p in enumerate(right):
        if p > 1 / answers:
            q = 1 - p
            out[k] = math.log2(answers) + p * torch.log2(p)
            if q > 0:
                out[k] += q * torch.log2(q) - q * math.log2(answers - 1)
    return out * facts
"""),
        Case("""
import math
def bits(right, facts, answers):
    p = torch.clamp(right, min=1 / answers)
    each = torch.cat([p[:, None], ((1 - p) / (answers - 1))[:, None].expand(-1, answers - 1)], dim=1)
    entropy = -torch.special.xlogy(each, each).sum(1) / math.log(2)
    return (math.log2(answers) - entropy) * facts
"""),
        Case(
            BITS.replace(" / math.log(2)", "")
            + "    return facts * (math.log(answers) - unsure - q * math.log(answers - 1))\n",
            "in nats",
        ),
        Case(
            "import math\ndef bits(right, facts, answers):\n    return facts * right * math.log2(answers)\n",
            "a lucky guess",
        ),
        Case(BITS + "    return facts * (math.log2(answers) - unsure)\n", "(1 - p) log2(D - 1) is missing"),
        Case(
            BITS + "    return facts * (math.log2(answers) - q * math.log2(answers - 1))\n",
            "the entropy of p is missing",
        ),
        Case(
            BITS + "    return facts * (math.log2(answers) - unsure - q * math.log2(answers))\n",
            "a wrong answer leaves D - 1 others",
        ),
        Case(
            BITS.replace("right.clamp(min=1 / answers)", "right")
            + "    return facts * (math.log2(answers) - unsure - q * math.log2(answers - 1))\n",
            "below chance a model knows nothing",
        ),
        Case(
            """
import math
def bits(right, facts, answers):
    chance = 1 / answers
    return facts * ((right - chance) / (1 - chance)).clamp(min=0) * math.log2(answers)
""",
            "chance is subtracted",
        ),
    ],
}
