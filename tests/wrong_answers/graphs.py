"""Answers to the exercises of lesson 11: wrong ones that people really give, and right ones written differently."""

from wrong_answers.cases import Case

STEPS = """
def within_steps(edges, steps):
    A = edges + torch.eye(len(edges), dtype=edges.dtype, device=edges.device)
    return torch.linalg.matrix_power(A, steps) > 0
"""

LAYER = """
def identity_layer(X):
    n, width = X.shape
    return X + (X @ X.T) @ X / n
"""

SPREAD = """
def spread(graph, rounds):
    n = len(graph)
    labels = torch.arange(n, device=graph.device)
    for r in range(rounds):
        labels = torch.stack([labels[graph[i] > 0].min() for i in range(n)])
    return labels
"""

ROUNDS = """
def rounds_needed(distances, factors):
    found = []
    for d in distances.tolist():
        rounds, reach = 0, 1
        while reach < d:
            reach *= factors
            rounds += 1
        found.append(rounds)
    return torch.tensor(found, device=distances.device)
"""

RULE = """
def rule_scores(graphs, answers, threshold):
    d = graphs.sum(2)
    said = (d.unsqueeze(2) * d.unsqueeze(1) > threshold) | (graphs == 1)
    right = (said == answers)
    pairs = right.to(graphs.dtype).mean()
    exact = right.flatten(1).all(1).to(graphs.dtype).mean()
    return torch.stack([pairs, exact])
"""

SCORES = """
def channel_scores(h, local, degree):
    k, n, _ = h.shape
    ones = torch.ones(n, n, dtype=h.dtype, device=h.device)
    first = second = 0
    for a in range(k):
        for b in range(k):
            first = first + local[a, b] * h[a] @ h[b].T
            second = second + degree[a, b] * h[a] @ ones @ h[b].T
    return torch.stack([first, second])
"""

PUSH = """
def push(logits, answers, feature):
    p = torch.sigmoid(logits)
    N = logits.numel()
    reward = (answers * (1 - p) * feature).sum() / N
    penalty = -((1 - answers) * p * feature).sum() / N
    return torch.stack([reward, penalty])
"""

CASES = {
    "within_steps": [
        Case(STEPS),
        Case("""
def within_steps(edges, steps):
    n = len(edges)
    seen = torch.eye(n, dtype=torch.bool, device=edges.device)
    for _ in range(steps):
        seen = seen | ((seen.to(edges.dtype) @ edges) > 0)
    return seen
"""),
        Case("""
def within_steps(edges, steps):
    walks = total = torch.eye(len(edges), dtype=edges.dtype, device=edges.device)
    for _ in range(steps):
        walks = walks @ edges
        total = total + walks
    return total > 0
"""),
        Case(
            STEPS.replace("edges + torch.eye(len(edges), dtype=edges.dtype, device=edges.device)", "edges"),
            "the self-loops are missing",
        ),
        Case(STEPS.replace("(A, steps)", "(A, steps + 1)"), "one step too many"),
        Case(STEPS.replace("(A, steps)", "(A, steps - 1)"), "one step too few"),
        Case(STEPS.replace("torch.linalg.matrix_power(A, steps)", "A ** steps"), "entry by entry"),
        Case(
            """
def within_steps(edges, steps):
    A = edges + torch.eye(len(edges), dtype=edges.dtype, device=edges.device)
    for _ in range(steps):
        A = ((A @ A) > 0).to(A.dtype)
    return A > 0
""",
            "every round squares",
        ),
        Case(
            """
def within_steps(edges, steps):
    A = edges + torch.eye(len(edges), dtype=edges.dtype, device=edges.device)
    reached = torch.linalg.matrix_power(A, steps)
    return (reached - torch.diag(torch.diag(reached))) > 0
""",
            "a node does not reach itself",
        ),
        Case(
            """
def within_steps(edges, steps):
    A = edges + torch.eye(len(edges), dtype=edges.dtype, device=edges.device)
    now, before = torch.linalg.matrix_power(A, steps) > 0, torch.linalg.matrix_power(A, steps - 1) > 0
    return now & ~before
""",
            "only nodes at exactly that distance",
        ),
        Case(STEPS.replace(" > 0", ""), "wrong dtype"),
    ],
    "identity_layer": [
        Case(LAYER),
        Case("""
def identity_layer(X):
    pattern = torch.einsum("id,jd->ij", X, X) / X.shape[0]
    return X + torch.einsum("ij,jd->id", pattern, X)
"""),
        Case("""
def identity_layer(X):
    n = len(X)
    eye = torch.eye(n, dtype=X.dtype, device=X.device)
    return (eye + X @ X.mT / n) @ X
"""),
        Case(LAYER.replace("(X @ X.T) @ X / n", "torch.softmax(X @ X.T / n, dim=-1) @ X"), "a softmax is taken"),
        Case(LAYER.replace("X + (X", "(X"), "what the stream held is lost"),
        Case(LAYER.replace("/ n", "/ width ** 0.5"), "divided by the root of the width"),
        Case(LAYER.replace("/ n", "/ width"), "divided by the width"),
        Case(LAYER.replace(" / n", ""), "not divided by n"),
        Case(LAYER.replace("X + (X @ X.T) @ X / n", "(X + (X @ X.T) @ X) / n"), "the stream is divided by n, too"),
        Case(LAYER.replace("(X @ X.T) @ X / n", "torch.relu(X @ X.T / n) @ X"), "a ReLU is taken"),
        Case(LAYER.replace("X + (X", "X - (X"), "is subtracted"),
    ],
    "spread": [
        Case(SPREAD),
        Case("""
def spread(graph, rounds):
    n = len(graph)
    labels = torch.arange(n, device=graph.device)
    for _ in range(rounds):
        labels = labels.expand(n, n).masked_fill(graph == 0, n).amin(1)
    return labels
"""),
        Case("""
def spread(graph, rounds):
    n = len(graph)
    reached = torch.eye(n, dtype=graph.dtype, device=graph.device)
    for _ in range(rounds):
        reached = ((reached @ graph) > 0).to(graph.dtype)
    return reached.argmax(1)
"""),
        Case(SPREAD.replace("range(rounds)", "range(rounds + 1)"), "one round too many"),
        Case(SPREAD.replace("range(rounds)", "range(rounds - 1)"), "one round too few"),
        Case(SPREAD.replace(".min()", ".max()"), "the largest label is kept"),
        Case(
            SPREAD.replace(
                "        labels = torch.stack([labels[graph[i] > 0].min() for i in range(n)])",
                "        for i in range(n):\n            labels[i] = labels[graph[i] > 0].min()",
            ),
            "labels of the same round",
        ),
        Case(
            SPREAD.replace("labels[graph[i] > 0].min()", "torch.arange(n, device=graph.device)[graph[i] > 0].min()"),
            "the rounds do not build on each other",
        ),
        Case(
            """
def spread(graph, rounds):
    labels = torch.arange(len(graph), device=graph.device)
    for _ in range(rounds):
        labels = (graph * labels).min(1).values.long()
    return labels
""",
            "who is no neighbour counts as label 0",
        ),
        Case(
            SPREAD.replace("for i in range(n)])", "for i in range(n)])\n        graph = graph @ graph"),
            "the graph is squared",
        ),
        Case(SPREAD.replace("    return labels", "    return labels.unsqueeze(1)"), "wrong shape"),
    ],
    "rounds_needed": [
        Case(ROUNDS, advice="made on the CPU"),
        Case("""
def rounds_needed(distances, factors):
    powers = factors ** torch.arange(10, device=distances.device)
    return (distances[:, None] > powers).sum(1)
"""),
        Case("""
def rounds_needed(distances, factors):
    rounds = torch.zeros_like(distances)
    for k in range(10):
        rounds = torch.where(distances > factors ** k, k + 1, rounds)
    return rounds
"""),
        Case(ROUNDS.replace("reach < d", "reach <= d"), "just what is reached"),
        Case(ROUNDS.replace("reach *= factors", "reach += factors"), "grows by as many steps"),
        Case(ROUNDS.replace("rounds, reach = 0, 1", "rounds, reach = 0, factors"), "one round too few"),
        Case(ROUNDS.replace("rounds, reach = 0, 1", "rounds, reach = 1, 1"), "one round is counted too many"),
        Case(
            ROUNDS.replace("rounds, reach = 0, 1", "rounds, reach = 0, factors").replace(
                "reach *= factors", "reach *= reach"
            ),
            "the reach is squared each round",
        ),
        Case(
            ROUNDS.replace("torch.tensor(found,", "torch.tensor([max(found)] * len(found),"),
            "the rounds of the largest",
        ),
    ],
    "rule_scores": [
        Case(RULE),
        Case("""
def rule_scores(graphs, answers, threshold):
    d = graphs.sum(-1)
    said = torch.where(graphs > 0, torch.ones_like(answers), torch.einsum("bi,bj->bij", d, d) > threshold)
    wrong = (said != answers).to(graphs.dtype)
    return torch.stack([1 - wrong.mean(), 1 - wrong.amax((1, 2)).mean()])
"""),
        Case("""
def rule_scores(graphs, answers, threshold):
    pairs, exact = [], []
    for graph, answer in zip(graphs, answers):
        d = graph.sum(1)
        right = ((torch.outer(d, d) > threshold) | (graph > 0)) == answer
        pairs.append(right.to(graphs.dtype).mean())
        exact.append(right.all().to(graphs.dtype))
    return torch.stack([torch.stack(pairs).mean(), torch.stack(exact).mean()])
"""),
        Case(RULE.replace("d.unsqueeze(2) * d", "d.unsqueeze(2) + d"), "the degrees are added"),
        Case(RULE.replace("graphs.sum(2)", "graphs.sum(2) - 1"), "the self-loop is taken off"),
        Case(RULE.replace(" | (graphs == 1)", ""), "whatever their degrees"),
        Case(RULE.replace("> threshold", ">= threshold"), "a product that equals the threshold"),
        Case(RULE.replace("right.flatten(1).all(1)", "right.all(2)"), "taken over rows"),
        Case(RULE.replace("right.flatten(1).all(1)", "right.all()"), "over the whole batch"),
        Case(RULE.replace("right.flatten(1).all(1)", "right"), "both numbers are of pairs"),
    ],
    "channel_scores": [
        Case(SCORES),
        Case("""
def channel_scores(h, local, degree):
    mixed = torch.einsum("ab,bkj->akj", local, h)
    s = h @ torch.ones(h.shape[-1], dtype=h.dtype, device=h.device)
    return torch.stack([(h @ mixed.mT).sum(0), torch.einsum("ai,ab,bj->ij", s, degree, s)])
"""),
        Case("""
def channel_scores(h, local, degree):
    k, n, _ = h.shape
    wide = h.permute(1, 0, 2).reshape(n, k * n)
    eye, ones = torch.eye(n, dtype=h.dtype, device=h.device), torch.ones(n, n, dtype=h.dtype, device=h.device)
    return torch.stack([wide @ torch.kron(local, eye) @ wide.T, wide @ torch.kron(degree, ones) @ wide.T])
"""),
        Case(SCORES.replace("h[a] @ ones @ h[b].T", "h[a].T @ ones @ h[b]"), "J sums over the wrong axis"),
        Case(SCORES.replace("degree[a, b] *", "degree[a, b] / n**2 *"), "J takes means"),
        Case(SCORES.replace("[first, second]", "[second, first]"), "the two channels are exchanged"),
        Case(
            SCORES.replace("local[a, b]", "_[a, b]")
            .replace("degree[a, b]", "local[a, b]")
            .replace("_[a, b]", "degree[a, b]"),
            "local and degree are exchanged",
        ),
        Case(SCORES.replace("for b in range(k)", "for b in [a]"), "only blocks with themselves"),
        Case(SCORES.replace("* h[a] @ h[b].T", "* h[a] @ h[b]"), "is not transposed"),
        Case(
            SCORES.replace("local[a, b]", "local[b, a]").replace("degree[a, b]", "degree[b, a]"),
            "the numbers of the blocks are transposed",
        ),
        Case(SCORES.replace("torch.stack([first, second])", "first + second"), "wrong shape"),
    ],
    "push": [
        Case(PUSH),
        Case("""
def push(logits, answers, feature):
    b = torch.zeros((), dtype=logits.dtype, device=logits.device, requires_grad=True)
    loss = torch.nn.functional.binary_cross_entropy_with_logits(logits + b * feature, answers, reduction="none")
    parts = [(loss * mask).mean() for mask in (answers, 1 - answers)]
    return -torch.stack([torch.autograd.grad(part, b, retain_graph=True)[0] for part in parts])
"""),
        Case("""
def push(logits, answers, feature):
    each = torch.where(answers == 1, torch.sigmoid(-logits), -torch.sigmoid(logits)) * feature
    return torch.stack([each.clamp(min=0).mean(), each.clamp(max=0).mean()])
"""),
        Case(
            PUSH.replace("torch.stack([reward, penalty])", "-torch.stack([reward, penalty])"),
            "the sign is that of the gradient",
        ),
        Case(PUSH.replace("torch.sigmoid(logits)", "logits"), "the sigmoid is missing"),
        Case(PUSH.replace(" * feature", ""), "the feature is missing"),
        Case(
            PUSH.replace(
                "reward = (answers * (1 - p) * feature).sum() / N", "reward = ((1 - p) * feature)[answers == 1].mean()"
            ).replace(
                "penalty = -((1 - answers) * p * feature).sum() / N", "penalty = -(p * feature)[answers == 0].mean()"
            ),
            "means over the connected and over the others",
        ),
        Case(PUSH.replace("[reward, penalty]", "[penalty, reward]"), "reward and penalty are exchanged"),
        Case(
            PUSH.replace("    N = ", "    feature = feature * p * (1 - p)\n    N = "),
            "the derivative of the sigmoid is left in",
        ),
        Case(PUSH.replace(" / N", ""), "a sum over pairs"),
    ],
}
