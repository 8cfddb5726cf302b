"""Answers to the exercises of lesson 08: wrong ones that people really give, and right ones written differently."""

from wrong_answers.cases import Case

SEARCH = """
def binary_search(stored, query, lookups):
    lo = torch.zeros_like(query, dtype=torch.long)
    hi = torch.full_like(lo, stored.shape[1] - 1)
    last, places = lo, []
    for _ in range(lookups):
        left_over = lo <= hi
        mid = torch.where(left_over, (lo + hi) // 2, last)
        value = stored.gather(1, mid[:, None])[:, 0]
        below = query < value
        hi = torch.where(left_over & below, mid - 1, hi)
        lo = torch.where(left_over & ~below, mid + 1, lo)
        last = mid
        places.append(mid)
    return torch.stack(places, dim=1)
"""

ENDLESS = """
def binary_search(stored, query, lookups):
    rows = torch.arange(len(query), device=query.device)
    lo = torch.zeros_like(rows)
    hi = lo + stored.shape[1] - 1
    places = []
    for _ in range(lookups):
        mid = (lo + hi) // 2
        below = query < stored[rows, mid]
        hi = torch.where(below, mid - 1, hi)
        lo = torch.where(below, lo, mid + 1)
        places.append(mid)
    return torch.stack(places, 1)
"""

SORT = """
def soft_sort(scores, temperature):
    ordered = scores.sort(dim=1).values
    gap = (ordered[:, :, None] - scores[:, None, :]).abs()
    return torch.softmax(-gap / temperature, dim=-1)
"""

LOOKUP = """
def gumbel_lookup(logits, uniform, values, temperature):
    g = -torch.log(-torch.log(uniform))
    weights = torch.softmax((logits + g) / temperature, dim=1)
    return (weights[:, :, None] * values).sum(1)
"""

FOUND = """
def best_so_far(found, distances):
    nearest = distances == distances.min(dim=1, keepdim=True).values
    hit = torch.gather(nearest, 1, found).float()
    so_far = torch.cummax(hit, dim=1).values
    return so_far.mean(dim=0)
"""

LOSS = """
def place_loss(order, logits, nearest):
    index = nearest[:, None, :].expand(-1, order.shape[1], -1)
    target = order.gather(2, index).transpose(1, 2)
    log_p = torch.log_softmax(logits, dim=-1)
    return -(target * log_p).sum(dim=-1).mean()
"""

HASH = """
def hash_codes(points, planes):
    products = points @ planes.T
    bits = (products >= 0).long()
    powers = 2 ** torch.arange(len(planes), device=points.device)
    return (bits * powers).sum(-1)
"""

UPDATE = """
def conservative_update(memory, cells):
    counts = memory.gather(2, cells[:, :, None])
    least = counts.amin(dim=1, keepdim=True)
    counts = torch.maximum(counts, least + 1)
    return memory.scatter(2, cells[:, :, None], counts)
"""

LOOP = """
def conservative_update(memory, cells):
    new = memory.clone()
    for b in range(len(memory)):
        counts = [memory[b, r, cells[b, r]] for r in range(cells.shape[1])]
        for r in range(cells.shape[1]):
            if counts[r] == min(counts):
                new[b, r, cells[b, r]] += 1
    return new
"""

CASES = {
    "binary_search": [
        Case(SEARCH),
        Case("""
def binary_search(stored, query, lookups):
    places = torch.zeros(len(query), lookups, dtype=torch.long, device=query.device)
    for b in range(len(query)):
        lo, hi, mid = 0, stored.shape[1] - 1, 0
        for i in range(lookups):
            if lo <= hi:
                mid = (lo + hi) // 2
                if query[b] < stored[b, mid]:
                    hi = mid - 1
                else:
                    lo = mid + 1
            places[b, i] = mid
    return places
"""),
        Case("""
def binary_search(stored, query, lookups):
    def search(row, q, lo, hi, last, left):
        if left == 0:
            return []
        if lo > hi:
            return [last] * left
        mid = lo + (hi - lo) // 2
        lo, hi = (lo, mid - 1) if q < row[mid] else (mid + 1, hi)
        return [mid] + search(row, q, lo, hi, mid, left - 1)

    n = stored.shape[1]
    return torch.tensor([search(row, q, 0, n - 1, 0, lookups) for row, q in zip(stored, query)], device=query.device)
"""),
        Case("""
def binary_search(stored, query, lookups):
    rank = torch.searchsorted(stored, query[:, None], right=True)[:, 0]
    start, size = torch.zeros_like(rank), torch.full_like(rank, stored.shape[1])
    looked = []
    for _ in range(lookups):
        middle = start + (size - 1) // 2
        middle = torch.where(size > 0, middle, looked[-1] if looked else middle)
        looked.append(middle)
        right = (middle < rank) & (size > 0)
        size = torch.where(right, start + size - middle - 1, torch.where(size > 0, middle - start, size))
        start = torch.where(right, middle + 1, start)
    return torch.stack(looked, 1)
"""),
        Case(SEARCH.replace("mid + 1", "mid"), "the right half begins with the midpoint again"),
        Case(SEARCH.replace("mid - 1", "mid"), "the left half ends with the midpoint again"),
        Case(SEARCH.replace("query < value", "query >= value"), "the halves are exchanged"),
        Case(SEARCH.replace("(lo + hi) // 2", "(lo + hi + 1) // 2"), "of two middle places, the right one"),
        Case(
            SEARCH.replace("stored.shape[1] - 1", "stored.shape[1]")
            .replace("lo <= hi", "lo < hi")
            .replace("mid - 1", "mid"),
            "of two middle places, the right one is looked at; hi starts at n - 1",
        ),
        Case(
            SEARCH.replace("stored.shape[1] - 1", "stored.shape[1]").replace(
                "(lo + hi) // 2", "((lo + hi) // 2).clamp(max=stored.shape[1] - 1)"
            ),
            "hi starts at n, where nothing is stored",
        ),
        Case(SEARCH.replace("query < value", "query <= value"), "where the query equals the value"),
        Case(
            SEARCH.replace(
                "mid - 1, hi)", "mid - 1, hi)\n        hi = torch.where(left_over & (query == value), lo - 1, hi)"
            ).replace("left_over & ~below", "left_over & (query > value)"),
            "the search stops at a value equal",
        ),
        Case(ENDLESS, "place -1 is looked at"),
        Case(
            ENDLESS.replace("(lo + hi) // 2", "((lo + hi) // 2).clamp(min=0)"),
            "the search goes on when nothing is left",
        ),
        Case(
            SEARCH.replace("places.append(mid)", "places.append(value)"),
            "wrong dtype torch.float64, must be torch.int64",
        ),
        Case(
            SEARCH.replace("(lo + hi) // 2", "(lo + hi) / 2"),
            "raises RuntimeError at `value = stored.gather(1, mid[:, None])[:, 0]`",
        ),
        Case(SEARCH.replace("dim=1)", "dim=0)"), "transpose of the right shape"),
        Case(
            """
def binary_search(stored, query, lookups):
    n = stored.shape[1]
    lo = torch.zeros(len(query), dtype=torch.long)
    hi = torch.full_like(lo, n - 1)
    mid = lo
    out = []
    for _ in range(lookups):
        mid = torch.where(lo < hi, (lo + hi) // 2, mid)
        v = stored[torch.arange(len(query)), mid]
        left = query < v
        hi = torch.where(left, mid - 1, hi)
        lo = torch.where(left, lo, mid + 1)
        out.append(mid)
    return torch.stack(out, 1)
""",
            "where low is compared with high, equality must count: <= is not <",
        ),
        Case(
            """
def binary_search(stored, query, lookups):
    n = stored.shape[1]
    lo = torch.zeros(len(query), dtype=torch.long)
    hi = torch.full_like(lo, n - 1)
    mid = lo
    out = []
    for _ in range(lookups):
        out.append(mid)
        mid = torch.where(lo <= hi, (lo + hi) // 2, mid)
        v = stored[torch.arange(len(query)), mid]
        left = query < v
        hi = torch.where(left, mid - 1, hi)
        lo = torch.where(left, lo, mid + 1)
    return torch.stack(out, 1)
""",
            "place from before the update is used where place belongs",
        ),
    ],
    "soft_sort": [
        Case(SORT),
        Case("""
def soft_sort(scores, temperature):
    out = torch.zeros(*scores.shape, scores.shape[1], dtype=scores.dtype, device=scores.device)
    for b in range(len(scores)):
        for k in range(scores.shape[1]):
            smallest = scores[b].kthvalue(k + 1).values
            weights = torch.exp(-(smallest - scores[b]).abs() / temperature)
            out[b, k] = weights / weights.sum()
    return out
"""),
        Case("""
def soft_sort(scores, temperature):
    ordered = scores.gather(1, scores.argsort(1))
    larger = torch.maximum(ordered.unsqueeze(2), scores.unsqueeze(1))
    smaller = torch.minimum(ordered.unsqueeze(2), scores.unsqueeze(1))
    return ((smaller - larger) / temperature).softmax(2)
"""),
        Case(SORT.replace("dim=-1", "dim=1"), "the softmax runs down the columns"),
        Case(SORT.replace("dim=-1)", "dim=-1).transpose(1, 2)"), "transposed: row k belongs to the k-th smallest"),
        Case(SORT.replace("dim=1", "dim=1, descending=True"), "sorted from the largest to the smallest"),
        Case(SORT.replace("scores.sort(dim=1).values", "scores"), "the scores are not sorted"),
        Case(SORT.replace("sort(dim=1)", "sort(dim=0)"), "sorted across the batch"),
        Case(SORT.replace("sort(dim=1).values", "sort(dim=1).indices"), "the indices of the sort are compared"),
        Case(SORT.replace(".abs()", ""), "the absolute value is missing"),
        Case(SORT.replace(".abs()", "**2"), "the differences are squared"),
        Case(SORT.replace("-gap", "gap"), "the minus is missing"),
        Case(SORT.replace("/ temperature", "* temperature"), "multiplied by the temperature"),
        Case(SORT.replace(" / temperature", ""), "the temperature is not used"),
        Case(
            SORT.replace("torch.softmax(-gap / temperature, dim=-1)", "torch.exp(-gap / temperature)"),
            "the rows do not sum to 1",
        ),
        Case(
            SORT.replace("torch.softmax(-gap / temperature, dim=-1)", "(gap == 0).to(scores.dtype)"),
            "this is the hard permutation",
        ),
        Case(
            """
def soft_sort(scores, temperature):
    s = scores.sort(1).values
    return (-(s[:, :, None] - s[:, None, :]).abs() / temperature).softmax(-1)
""",
            "ordered is used where scores belongs",
        ),
        Case(
            """
def soft_sort(scores, temperature):
    s = scores.sort(1).values
    return (-(s[:, :, None] - scores[:, None, :]).abs() / temperature ** 2).softmax(-1)
""",
            "temperature is squared",
        ),
    ],
    "gumbel_lookup": [
        Case(LOOKUP),
        Case("""
def gumbel_lookup(logits, uniform, values, temperature):
    race = (logits.exp() / -uniform.log()) ** (1 / temperature)
    weights = race / race.sum(1, keepdim=True)
    return torch.bmm(weights.unsqueeze(1), values).squeeze(1)
"""),
        Case("""
def gumbel_lookup(logits, uniform, values, temperature):
    out = torch.zeros_like(values[:, 0])
    for b in range(len(logits)):
        noisy = logits[b] - torch.log(-torch.log(uniform[b]))
        out[b] = torch.nn.functional.softmax(noisy / temperature, dim=0) @ values[b]
    return out
"""),
        Case(LOOKUP.replace("logits + g", "logits"), "the noise is missing"),
        Case(LOOKUP.replace("g = -torch.log", "g = torch.log"), "the noise has the wrong sign"),
        Case(
            LOOKUP.replace("-torch.log(-torch.log(uniform))", "-torch.log(uniform)"), "the noise has one logarithm only"
        ),
        Case(LOOKUP.replace("-torch.log(-torch.log(uniform))", "uniform"), "the uniform numbers themselves are added"),
        Case(
            LOOKUP.replace("(logits + g) / temperature", "logits / temperature + g"),
            "the noise is added after the division",
        ),
        Case(LOOKUP.replace("(logits + g)", "(logits.softmax(1) + g)"), "the noise is added to the probabilities"),
        Case(
            LOOKUP.replace(
                "return (weights[:, :, None] * values).sum(1)",
                "best = weights.argmax(1)\n    return torch.stack([v[i] for v, i in zip(values, best)])",
            ),
            "the value at the largest noisy logit is read",
        ),
        Case(LOOKUP.replace(" / temperature", ""), "the temperature is not used"),
        Case(LOOKUP.replace("/ temperature", "* temperature"), "multiplied by the temperature"),
        Case(LOOKUP.replace("dim=1", "dim=0"), "the softmax runs over the batch"),
        Case(LOOKUP.replace("(weights[:, :, None] * values).sum(1)", "weights"), "wrong shape"),
        Case(
            LOOKUP.replace("-torch.log(-torch.log(uniform))", "-torch.log(torch.log(uniform))"), "are NaN or infinite"
        ),
        Case(LOOKUP.replace("log(uniform)", "log(torch.rand_like(uniform))"), "gives another answer when called again"),
        Case(
            """
def gumbel_lookup(logits, uniform, values, temperature):
    g = -torch.log(-torch.log(1 - uniform))
    w = ((logits + g) / temperature).softmax(1)
    return (w.unsqueeze(-1) * values).sum(1)
""",
            "1 minus uniform is used where uniform belongs",
        ),
        Case(
            """
def gumbel_lookup(logits, uniform, values, temperature):
    g = -torch.log(-torch.log(uniform))
    w = ((logits + g) / temperature).softmax(1)
    return (w.unsqueeze(-1) * values).mean(1)
""",
            "the mean of weights times values is taken; its sum is due",
        ),
        Case("""
def gumbel_lookup(logits, uniform, values, temperature):
    import numpy as np
    g = -np.log(-np.log(uniform.numpy()))
    z = (logits.numpy() + g) / temperature
    w = np.exp(z - z.max(1, keepdims=True))
    return torch.from_numpy(np.einsum("bp,bpd->bd", w / w.sum(1, keepdims=True), values.numpy()))
"""),
    ],
    "best_so_far": [
        Case(FOUND),
        Case("""
def best_so_far(found, distances):
    shares = torch.zeros(found.shape[1], device=distances.device)
    for b in range(len(found)):
        done = 0.0
        for i in range(found.shape[1]):
            if distances[b, found[b, i]] == distances[b].min():
                done = 1.0
            shares[i] += done
    return shares / len(found)
"""),
        Case("""
def best_so_far(found, distances):
    looked = distances.gather(1, found)
    gap = looked - distances.amin(1)[:, None]
    missed = (gap > 0).cumprod(1)
    return 1 - missed.float().mean(0)
"""),
        Case("""
def best_so_far(found, distances):
    nearest = distances <= distances.min(1).values[:, None]
    shares = []
    for i in range(1, found.shape[1] + 1):
        shares.append(nearest.gather(1, found[:, :i]).any(1).float().mean())
    return torch.stack(shares)
"""),
        Case(FOUND.replace("torch.cummax(hit, dim=1).values", "hit"), "each lookup counts alone"),
        Case(
            FOUND.replace("so_far.mean(dim=0)", "so_far[:, -1].mean().repeat(found.shape[1])"),
            "every entry is the share after the last lookup",
        ),
        Case(
            FOUND.replace(
                "return so_far", "so_far = torch.cat([0 * hit[:, :1], so_far[:, :-1]], 1)\n    return so_far"
            ),
            "one lookup late",
        ),
        Case(
            "def best_so_far(found, distances):\n"
            "    return (found == distances.argmin(1)[:, None]).float().cummax(1).values.mean(0)\n",
            "argmin names one nearest point",
        ),
        Case(
            FOUND.replace("hit = torch", "nearest = nearest & (nearest.sum(1) == 1)[:, None]\n    hit = torch"),
            "none of them counts",
        ),
        Case(FOUND.replace("torch.cummax(hit, dim=1).values", "torch.cumsum(hit, dim=1)"), "hits are added up"),
        Case(FOUND.replace("cummax(hit, dim=1)", "cummax(hit, dim=0)"), "the running maximum goes over the queries"),
        Case(
            "def best_so_far(found, distances):\n    return distances.gather(1, found).cummin(1).values.mean(0)\n",
            "this is the mean distance of the best so far",
        ),
        Case(
            FOUND.replace("distances.min(dim=1, keepdim=True)", "distances.gather(1, found).min(dim=1, keepdim=True)"),
            "the nearest of the points looked at is taken",
        ),
        Case(FOUND.replace("==", "<"), "every entry is 0"),
        Case(
            FOUND.replace("so_far.mean(dim=0)", "so_far.sum(dim=0)"),
            "the sum of the running maximum of hits is taken; its mean is due",
        ),
        Case(FOUND.replace("so_far.mean(dim=0)", "so_far.mean(dim=1)"), "wrong shape"),
        Case(FOUND.replace(".float()", ".double()"), None, advice="float32"),
        Case(
            """
def best_so_far(found, distances):
    d = distances.gather(1, found)
    best = d.cummin(1).values
    return (best == distances.amin()).float().mean(0)
""",
            "the smallest of distances runs over all entries; it runs along one axis",
        ),
        Case(
            """
def best_so_far(found, distances):
    nearest = distances == distances.amax(1, keepdim=True)
    return nearest.gather(1, found).float().cummax(1).values.mean(0)
""",
            "the largest of distances is taken; its smallest is due",
        ),
        Case(
            """
def best_so_far(found, distances):
    least = distances.min(1).values
    shares = []
    for i in range(1, found.shape[1] + 1):
        shares.append((distances.gather(1, found[:, :i]).min(1).values == least).double().mean())
    return torch.stack(shares)
""",
            advice="float32",
        ),
    ],
    "place_loss": [
        Case(LOSS),
        Case("""
def place_loss(order, logits, nearest):
    total = 0
    for o, l, near in zip(order, logits, nearest):
        for q, i in zip(l, near):
            total = total + (o[:, i] * (torch.logsumexp(q, 0) - q)).sum()
    return total / nearest.numel()
"""),
        Case(
            """
def place_loss(order, logits, nearest):
    chosen = torch.nn.functional.one_hot(nearest, order.shape[-1]).to(order.dtype)
    target = chosen @ order.mT
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten(0, 1))
""",
            advice="",
        ),
        Case(
            LOSS.replace("order.gather(2, index).transpose(1, 2)", "order.mT.gather(2, index).transpose(1, 2)"),
            "the order is read the wrong way round",
        ),
        Case(
            """
def place_loss(order, logits, nearest):
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), nearest.flatten())
""",
            "the nearest point's number is taken for its place",
        ),
        Case(
            """
def place_loss(order, logits, nearest):
    places = order.argmax(-1).argsort(-1)
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), places.gather(1, nearest).flatten())
""",
            "every place is given the one point that argmax names",
        ),
        Case(
            """
def place_loss(order, logits, nearest):
    place = order.argmax(1).gather(1, nearest)
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), place.flatten())
""",
            "the place is read off with argmax",
        ),
        Case(LOSS.replace("-(target", "(target"), "the minus is missing"),
        Case(LOSS.replace("torch.log_softmax", "torch.softmax"), "the logarithm is missing"),
        Case(LOSS.replace("torch.log_softmax(logits, dim=-1)", "logits"), "the logits themselves are weighed"),
        Case(
            LOSS.replace("log_softmax(logits, dim=-1)", "log_softmax(logits, dim=1)"),
            "the softmax runs over the queries",
        ),
        Case(LOSS.replace(".sum(dim=-1).mean()", ".sum()"), "the sum over all queries is returned"),
        Case(LOSS.replace(".sum(dim=-1).mean()", ".mean()"), "the mean runs over the places too"),
        Case(LOSS.replace(".sum(dim=-1).mean()", ".sum(dim=-1)"), "wrong shape"),
        Case(
            LOSS.replace(".sum(dim=-1).mean()", ".sum(dim=-1)[:, 0].mean()"), "only the first query of each set counts"
        ),
        Case(
            LOSS.replace(".sum(dim=-1).mean()", ".sum(dim=(1, 2)).mean()"), "the sum over a set's queries is returned"
        ),
        Case(LOSS.replace("torch.log_softmax(logits, dim=-1)", "logits.log()"), "are NaN or infinite"),
    ],
    "hash_codes": [
        Case(HASH),
        Case("""
def hash_codes(points, planes):
    code = 0
    for j, plane in enumerate(planes):
        above = (points * plane).sum(-1) >= 0
        code = code + above.long() * 2**j
    return code
"""),
        Case("""
def hash_codes(points, planes):
    products = torch.einsum("bnd,kd->kbn", points, planes)
    code = torch.zeros(points.shape[:2], dtype=torch.long, device=points.device)
    for j in range(len(planes)):
        code |= torch.where(products[j] < 0, 0, 1) << j
    return code
"""),
        Case("""
def hash_codes(points, planes):
    batch, n, _ = points.shape
    codes = torch.zeros(batch, n, dtype=torch.int64, device=points.device)
    for b in range(batch):
        for i in range(n):
            bits = ["0" if plane @ points[b, i] < 0 else "1" for plane in planes]
            codes[b, i] = int("".join(reversed(bits)), 2)
    return codes
"""),
        Case(HASH.replace("(bits * powers)", "(bits * powers.flip(0))"), "the bits are read in reverse"),
        Case(HASH.replace(">= 0", "> 0"), "the point on a plane falls to the wrong side"),
        Case(HASH.replace(">= 0", "< 0"), "the sides are exchanged"),
        Case(HASH.replace("(products >= 0).long()", "2 * (products >= 0).long() - 1"), "the signs are -1 and 1"),
        Case(HASH.replace("bits * powers", "bits"), "the ones are counted"),
        Case(
            HASH.replace("products = points @ planes.T", "products = points").replace(
                "len(planes)", "points.shape[-1]"
            ),
            "the planes are not used",
        ),
        Case(
            HASH.replace("(products >= 0).long()", "products").replace(".sum(-1)", ".sum(-1).long()"),
            "the threshold is missing",
        ),
        Case(HASH.replace("2 **", "2 * 2 **"), "the count starts at 1; it starts at 0"),
        Case(HASH.replace("(products >= 0).long()", "products"), "wrong dtype torch.float64, must be torch.int64"),
        Case(HASH.replace("planes.T", "planes"), "raises RuntimeError at `products = points @ planes`"),
        Case(HASH.replace("sum(-1)", "sum(1)"), "wrong shape"),
        Case(
            """
def hash_codes(points, planes):
    bits = (points @ planes.T >= 0).long()
    return (bits * torch.arange(1, len(planes) + 1)).sum(-1)
""",
            "the exponents stand where powers of 2 belong",
        ),
        Case(
            """
def hash_codes(points, planes):
    bits = (points @ planes.T >= 0).long()
    return (bits * torch.arange(len(planes)) ** 2).sum(-1)
""",
            "base and exponent are exchanged",
        ),
        Case(
            """
def hash_codes(points, planes):
    bits = torch.signbit(torch.einsum("...d,kd->...k", points, planes) + 0.0).logical_not()
    code = torch.zeros(points.shape[:-1], dtype=torch.int32)
    for j in range(len(planes)):
        code += bits[..., j].int() << j
    return code
""",
            advice="int64",
        ),
    ],
    "conservative_update": [
        Case(UPDATE),
        Case(LOOP),
        Case("""
def conservative_update(memory, cells):
    mine = torch.arange(memory.shape[2], device=memory.device) == cells[..., None]
    least = torch.where(mine, memory, torch.inf).flatten(1).min(1).values
    grows = mine & (memory == least[:, None, None])
    return torch.where(grows, memory + 1, memory)
"""),
        Case("""
def conservative_update(memory, cells):
    new = memory.clone()
    b = torch.arange(len(memory), device=memory.device)[:, None]
    r = torch.arange(memory.shape[1], device=memory.device)
    counts = memory[b, r, cells]
    new[b, r, cells] = counts.clamp(min=counts.min(1, keepdim=True).values + 1)
    return new
"""),
        Case(UPDATE.replace("torch.maximum(counts, least + 1)", "counts + 1"), "all of the item's cells grow"),
        Case(LOOP.replace("+= 1", "+= 1\n                break"), "only the first of several smallest counts grows"),
        Case(
            UPDATE.replace("torch.maximum(counts, least + 1)", "(least + 1).expand_as(counts)"),
            "every cell of the item is set to the smallest count plus 1",
        ),
        Case(
            UPDATE.replace("counts.amin(dim=1, keepdim=True)", "memory.amin(dim=(1, 2), keepdim=True)"),
            "of the whole memory",
        ),
        Case(
            UPDATE.replace("counts.amin(dim=1, keepdim=True)", "memory.amin(dim=2, keepdim=True)"),
            "each row has its own smallest count",
        ),
        Case(
            "def conservative_update(memory, cells):\n"
            "    least = memory.gather(2, cells[..., None]).amin(dim=1, keepdim=True)\n"
            "    return torch.where(memory == least, memory + 1, memory)\n",
            "cells of other items grow",
        ),
        Case(
            LOOP.replace("min(counts)", "min(new[b, i, cells[b, i]] for i in range(cells.shape[1]))"),
            "is taken again after each row has grown",
        ),
        Case(UPDATE.replace("memory.scatter", "memory.scatter_"), "changes its argument memory in place"),
        Case(UPDATE.replace("least + 1", "least"), "the answer is the argument memory, unchanged"),
        Case(
            UPDATE.replace("return memory.scatter(2, cells[:, :, None], counts)", "return counts[..., 0]"),
            "wrong shape",
        ),
        Case(UPDATE.replace("[:, :, None]", ""), "raises RuntimeError at `counts = memory.gather(2, cells)`"),
        Case(
            """
def conservative_update(memory, cells):
    own = memory.gather(2, cells[..., None])
    most = own.amax(1, keepdim=True)
    return memory.scatter(2, cells[..., None], torch.where(own == most, own + 1, own))
""",
            "wrong values in",
        ),
        Case(
            """
def conservative_update(memory, cells):
    own = memory.gather(2, cells[..., None])
    least = own.amin(0, keepdim=True)
    return memory.scatter(2, cells[..., None], own.maximum(least + 1))
""",
            "the smallest of the picked entries of memory runs along the first axis; it",
        ),
    ],
}
