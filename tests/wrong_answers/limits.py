"""Answers to the exercises of lesson 12: wrong ones that people really give, and right ones written differently."""

from wrong_answers.cases import Case

RUN = """
def prefix_products(words):
    state, states = words[0], [words[0]]
    for t in range(1, len(words)):
        state = torch.gather(words[t], 0, state)
        states += [state]
    return torch.stack(states)
"""

DOUBLE = """
def prefix_doubling(words, layers):
    f, T = words, len(words)
    for l in range(layers):
        back = 2 ** l
        old = torch.arange(words.shape[1], device=words.device).repeat(T, 1)
        if back < T:
            old[back:] = f[:-back]
        f = torch.stack([now[before] for now, before in zip(f, old)])
    return f
"""

COUNT = """
def two_counts(turns, flips, n):
    sign = torch.cumprod(flips, 0)
    return torch.remainder(sign * torch.cumsum(sign * turns, 0), n)
"""

HOP = """
def hops(pointers, k):
    place = torch.arange(len(pointers), device=pointers.device)
    while k:
        if k % 2:
            place = pointers[place]
        pointers = pointers[pointers]
        k //= 2
    return place
"""

SLOPE = """
def flip_slope(changes, lengths):
    y, x = changes.abs().mean(1).log(), lengths.log()
    A = torch.stack([x, torch.ones_like(x)], 1)
    return torch.linalg.lstsq(A, y[:, None]).solution[0, 0]
"""

STEPS = """
def worked_steps(bits):
    z, tokens = bits[:, 0], []
    for j in range(1, bits.shape[1]):
        x = bits[:, j]
        a = z * x
        z = z + x - 2 * a
        tokens.extend([a, z])
    return torch.stack(tokens, 1)
"""

BLOCKS = """
def prefix_doubling(words, layers):
    f = words
    for l in range(layers):
        identity = torch.arange(words.shape[1], device=words.device).expand(2 ** l, -1)
        f = f.gather(1, torch.cat([identity, f])[:len(words)])
    return f

def in_steps(words, layers):
    take = 2 ** layers - 1
    state, written = words[0], []
    at = 1
    while at < len(words):
        block = torch.cat([state[None], words[at:at + take]])
        state = prefix_doubling(block, layers)[-1]
        written.append(state)
        at += take
    return torch.stack(written)
"""

CASES = {
    "prefix_products": [
        Case(RUN),
        Case("""
def prefix_products(words):
    states = words.clone()
    for t in range(1, len(words)):
        states[t] = words[t][states[t - 1]]
    return states
"""),
        Case("""
def prefix_products(words):
    n = words.shape[1]
    M = torch.nn.functional.one_hot(words, n)
    products = [M[0]]
    for m in M[1:]:
        products.append((products[-1].double() @ m.double()).long())
    return torch.stack(products).argmax(-1)
"""),
        Case(RUN.replace("torch.gather(words[t], 0, state)", "state[words[t]]"), "the order is reversed"),
        Case(
            """
def prefix_products(words):
    state = torch.arange(words.shape[1], device=words.device)
    states = []
    for word in words:
        states.append(state)
        state = word[state]
    return torch.stack(states)
""",
            "one symbol late",
        ),
        Case(
            RUN.replace("state, states = words[0], [words[0]]", "state, states = words[0], []").replace(
                "range(1, len(words))", "range(len(words))"
            ),
            "applied twice",
        ),
        Case(
            """
def prefix_products(words):
    states = [words[0], words[1]]
    for word in words[2:]:
        states.append(word[states[-1]])
    return torch.stack(states)
""",
            "left out of all products but the first",
        ),
        Case(RUN.replace("torch.gather(words[t], 0, state)", "words[t][words[t - 1]]"), "the state is not kept"),
        Case(RUN.replace("torch.stack(states)", "state"), "wrong shape"),
        Case(RUN.replace("range(1, len(words))", "range(1, len(words) - 1)"), "all but both ends of words"),
        Case(RUN.replace("torch.stack(states)", "torch.stack(states[1:])"), "the first of what is due is missing"),
        Case(RUN.replace("words[t], 0, state", "state, 0, words[t - 1]"), "all but the last of words is used where"),
    ],
    "prefix_doubling": [
        Case(DOUBLE),
        Case("""
def prefix_doubling(words, layers):
    T, n = words.shape
    identity = torch.arange(n, device=words.device)
    f = list(words)
    for l in range(layers):
        f = [f[t][f[t - 2 ** l] if t >= 2 ** l else identity] for t in range(T)]
    return torch.stack(f)
"""),
        Case("""
def prefix_doubling(words, layers):
    T, n = words.shape
    M = torch.nn.functional.one_hot(words, n).double()
    eye = torch.eye(n, dtype=M.dtype, device=M.device).expand(T, n, n)
    for l in range(layers):
        back = torch.cat([eye, M])[T - min(2 ** l, T):][:T]
        M = back @ M
    return M.argmax(-1)
"""),
        Case(
            """
def prefix_doubling(words, layers):
    f = words
    for l in range(layers):
        f = f.gather(1, torch.roll(f, 2 ** l, dims=0))
    return f
""",
            "wraps round",
        ),
        Case(DOUBLE.replace("2 ** l", "1"), "looks one place back"),
        Case(DOUBLE.replace("2 ** l", "l + 1"), "it must double"),
        Case(DOUBLE.replace("2 ** l", "2 ** (l + 1)"), "skips every other symbol"),
        Case(DOUBLE.replace("now[before]", "before[now]"), "the order is reversed"),
        Case(DOUBLE.replace("zip(f, old)", "zip(words, old)"), "the symbol itself is applied"),
        Case(DOUBLE.replace("range(layers)", "range(layers - 1)"), "one layer too few"),
        Case(DOUBLE.replace("return f", "return f[-1]"), "wrong shape"),
    ],
    "two_counts": [
        Case(COUNT),
        Case("""
def two_counts(turns, flips, n):
    odd = (flips < 0).long().cumsum(0) % 2
    sign = 1 - 2 * odd
    return (sign * (sign * turns).cumsum(0)) % n
"""),
        Case("""
def two_counts(turns, flips, n):
    state, states = 0 * turns[0], []
    for turn, flip in zip(turns, flips):
        state = (turn + flip * state) % n
        states.append(state)
    return torch.stack(states)
"""),
        Case("def two_counts(turns, flips, n):\n    return turns.cumsum(0) % n\n", "the flips are not used"),
        Case("def two_counts(turns, flips, n):\n    return (turns * flips).cumsum(0) % n\n", "its own flip alone"),
        Case(COUNT.replace("sign * torch.cumsum", "torch.cumsum"), "the sign in front of the sum is missing"),
        Case(
            """
def two_counts(turns, flips, n):
    sign = flips.cumprod(0)
    before = sign * flips
    return sign * (turns * before).cumsum(0) % n
""",
            "without its own",
        ),
        Case(
            """
def two_counts(turns, flips, n):
    sign = flips.cumprod(0)
    return sign * (turns * sign).cumsum(0)
""",
            "not taken modulo n",
        ),
        Case(COUNT.replace("sign * turns, 0", "sign, 0"), "the factor turns is missing"),
        Case(COUNT.replace("torch.cumsum(sign * turns, 0)", "turns.cumsum(0) * sign"), "the flips are not used"),
        Case(COUNT.replace("torch.cumsum(sign * turns, 0)", "sign * turns"), "the argument turns, unchanged"),
    ],
    "hops": [
        Case(HOP),
        Case("""
def hops(pointers, k):
    place = torch.arange(len(pointers), device=pointers.device)
    for _ in range(k):
        place = pointers[place]
    return place
"""),
        Case("""
def hops(pointers, k):
    place = torch.arange(len(pointers), device=pointers.device)
    for digit in f"{k:b}":
        place = place[place]
        if digit == "1":
            place = pointers[place]
    return place
"""),
        Case(HOP.replace("pointers = pointers[pointers]", "place = place[place]"), "squares the place"),
        Case(HOP.replace("torch.arange(len(pointers), device=pointers.device)", "pointers"), "one hop too many"),
        Case(
            """
def hops(pointers, k):
    place = torch.arange(len(pointers), device=pointers.device)
    for digit in f"{k:b}":
        if digit == "1":
            place = pointers[place]
        pointers = pointers[pointers]
    return place
""",
            "read from the largest one",
        ),
        Case(HOP.replace("if k % 2:", "if k % 2 == 0:"), "hops where the digit is 0"),
        Case(HOP.replace("if k % 2:", "if True:"), "hops at every digit"),
        Case(HOP.replace("while k:", "while k > 1:"), "the largest digit of k is left out"),
        Case(HOP.replace("        pointers = pointers[pointers]\n", ""), "the pointers are not doubled"),
        Case(HOP.replace("return place", "return place[0]"), "wrong shape"),
    ],
    "flip_slope": [
        Case(SLOPE),
        Case("""
def flip_slope(changes, lengths):
    x, y = lengths.log2(), changes.abs().mean(dim=1).log2()
    return ((x - x.mean()) * y).sum() / ((x - x.mean()) ** 2).sum()
"""),
        Case("""
def flip_slope(changes, lengths):
    both = torch.stack([lengths.log(), changes.abs().mean(-1).log()])
    cov = torch.cov(both)
    return cov[0, 1] / cov[0, 0]
"""),
        Case(SLOPE.replace("changes.abs().mean(1).log()", "changes.mean(1).abs().log()"), "changes of different signs"),
        Case(SLOPE.replace(".abs().mean(1).log()", ".abs().log().mean(1)"), "the mean of the logarithms"),
        Case(SLOPE.replace("lengths.log()", "lengths"), "the lengths are not on a logarithmic scale"),
        Case(SLOPE.replace("mean(1).log()", "mean(1)"), "the sizes are not on a logarithmic scale"),
        Case(
            """
def flip_slope(changes, lengths):
    y, x = changes.abs().mean(1).log(), lengths.log()
    return (x * y).sum() / (x * x).sum()
""",
            "through 0",
        ),
        Case(
            """
def flip_slope(changes, lengths):
    y, x = changes.abs().mean(1).log(), lengths.log()
    return (y[-1] - y[0]) / (x[-1] - x[0])
""",
            "only the first and the last",
        ),
        Case(SLOPE.replace("y, x =", "x, y ="), "x and y are exchanged"),
        Case(SLOPE.replace("[0, 0]", "[:, 0]"), "wrong shape"),
        Case(
            """
def flip_slope(changes, lengths):
    y, x = changes.mean(1).log(), lengths.log()
    return ((x - x.mean()) * y).sum() / (x - x.mean()).square().sum()
""",
            "NaN or infinite",
        ),
        Case(SLOPE.replace("return ", "return -"), "sign"),
        Case(SLOPE.replace("abs().mean(1)", "abs().amax(1)"), "largest"),
        Case(
            """
def flip_slope(changes, lengths):
    y, x = changes.abs().mean(1).log(), lengths.log()
    x = x - x.mean()
    return (x * y).sum() / x.square().mean()
""",
            "the mean of the square of x is taken",
        ),
    ],
    "worked_steps": [
        Case(STEPS),
        Case("""
def worked_steps(bits):
    parity = bits.cumsum(1) % 2
    both = parity[:, :-1] * bits[:, 1:]
    return torch.stack([both, parity[:, 1:]], 2).flatten(1)
"""),
        Case("""
def worked_steps(bits):
    tokens = torch.zeros(len(bits), 2 * bits.shape[1] - 2, dtype=bits.dtype, device=bits.device)
    z = bits[:, 0]
    for j in range(1, bits.shape[1]):
        tokens[:, 2 * j - 2] = torch.minimum(z, bits[:, j])
        z = (z - bits[:, j]).abs()
        tokens[:, 2 * j - 1] = z
    return tokens
"""),
        Case(
            STEPS.replace(
                "        a = z * x\n        z = z + x - 2 * a\n",
                "        a = z * x\n        z = z + x - 2 * a\n        a = z * x\n",
            ),
            "taken with the new parity",
        ),
        Case(STEPS.replace("[a, z]", "[z, a]"), "the two tokens of a step are exchanged"),
        Case(STEPS.replace("[a, z]", "[x | (z ^ x), z]"), "an OR stands where the AND belongs"),
        Case(STEPS.replace("- 2 * a", "- a"), "the running value is an OR"),
        Case(STEPS.replace("z + x - 2 * a", "a"), "the running value is an AND"),
        Case(STEPS.replace("z, tokens = bits[:, 0], []", "z, tokens = 0 * bits[:, 0], []"), "the parity starts at 0"),
        Case(
            """
def worked_steps(bits):
    a, z = bits[:, :-1] & bits[:, 1:], bits[:, :-1] ^ bits[:, 1:]
    return torch.stack([a, z], 2).flatten(1)
""",
            "the parities of neighbours",
        ),
        Case(STEPS.replace("tokens.extend([a, z])", "tokens.append(z)"), "wrong shape"),
        Case(STEPS.replace("2 * a", "2 * x"), "both"),
        Case(STEPS.replace("- 2 * a", "+ 2 * a"), "it is to be subtracted"),
        Case(STEPS.replace(" - 2 * a", ""), "2 times both is not subtracted"),
        Case(STEPS.replace("torch.stack(tokens, 1)", "torch.stack(tokens)"), "wrong shape"),
    ],
    "in_steps": [
        Case(BLOCKS),
        Case("""
def in_steps(words, layers):
    states, take = [words[0]], 2 ** layers - 1
    for word in words[1:]:
        states.append(word[states[-1]])
    ends = list(range(take, len(words), take))
    if not ends or ends[-1] != len(words) - 1:
        ends.append(len(words) - 1)
    return torch.stack([states[end] for end in ends])
"""),
        Case("""
def in_steps(words, layers):
    state, written = words[0], []
    for block in words[1:].split(2 ** layers - 1):
        for word in block:
            state = word[state]
        written.append(state)
    return torch.stack(written)
"""),
        Case(BLOCKS.replace("state[None]", "torch.arange(words.shape[1])[None]"), "every step starts afresh"),
        Case(BLOCKS.replace("state[None]", "words[at - 1][None]"), "a step reads the symbol before its block"),
        Case(BLOCKS.replace("state[None]", "words[0][None]"), "every step starts from the first symbol"),
        Case(
            BLOCKS.replace("[state[None], words[at:at + take]]", "[words[at:at + take], state[None]]"),
            "the state is put behind",
        ),
        Case(BLOCKS.replace("take = 2 ** layers - 1", "take = 2 ** layers"), "wrong shape"),
        Case(BLOCKS.replace("[-1]\n        written", "[0]\n        written"), "a limit of a slice is off"),
        Case(BLOCKS.replace("written.append(state)", "written = [state]"), "wrong shape"),
        Case(BLOCKS.replace("take = 2 ** layers - 1", "take = layers"), "wrong shape"),
    ],
}
