"""The exercises of lesson 12, what one pass can compute."""

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from companion.lesson.exercise import draw_normal, draw_size, exercise
from companion.lesson.summit import summit


def _permutations(generator: Generator, length: int, n: int) -> Tensor:
    return torch.rand(length, n, generator=generator).argsort(-1)


def _draw_word(generator: Generator) -> dict:
    return {"words": _permutations(generator, draw_size(generator, 5, 7), draw_size(generator, 4, 5))}


@exercise(draw=_draw_word, now="you have the recurrence that everything else is measured by")
def prefix_products(words: Tensor) -> Tensor:
    state, states = words[0], [words[0]]
    for word in words[1:]:
        state = word[state]
        states.append(state)
    return torch.stack(states)


def _draw_doubling(generator: Generator) -> dict:
    length, n = draw_size(generator, 10, 12), draw_size(generator, 3, 4)
    return {"words": _permutations(generator, length, n), "layers": draw_size(generator, 2, 4)}


@exercise(draw=_draw_doubling, now="five layers do what took thirty-one steps")
def prefix_doubling(words: Tensor, layers: int) -> Tensor:
    T, n = words.shape
    f = words
    for layer in range(layers):
        shift = 2**layer
        start = torch.arange(n, device=words.device).expand(shift, n)
        earlier = torch.cat([start, f])[:T]
        f = f.gather(1, earlier)
    return f


def _draw_turns(generator: Generator) -> dict:
    length, n = draw_size(generator, 9, 12), draw_size(generator, 5, 8)
    flips = 1 - 2 * torch.randint(2, (length,), generator=generator)
    flips[0] = -1  # or what is done with the first one would not show
    return {"turns": torch.randint(1, n, (length,), generator=generator), "flips": flips, "n": n}


@exercise(draw=_draw_turns, now="an order that matters can be counted, if it comes apart into turns and flips")
def two_counts(turns: Tensor, flips: Tensor, n: int) -> Tensor:
    sign = flips.cumprod(0)
    count = (turns * sign).cumsum(0)
    return sign * count % n


HOP_NUMBERS = (11, 13, 19, 22, 26)  # both digits, and more than one of each


def _draw_pointers(generator: Generator) -> dict:
    n = draw_size(generator, 13, 17)
    while True:  # a permutation that repeats soon would make many numbers of hops alike
        pointers = _permutations(generator, 1, n)[0]
        if len({tuple(_hopped(pointers, k).tolist()) for k in range(33)}) == 33:
            return {"pointers": pointers, "k": HOP_NUMBERS[draw_size(generator, 0, len(HOP_NUMBERS) - 1)]}


def _hopped(pointers: Tensor, times: int) -> Tensor:
    place = torch.arange(len(pointers))
    for _ in range(times):
        place = pointers[place]
    return place


@exercise(draw=_draw_pointers, now="you know where k hops lead; squared pointers get there in a round a digit")
def hops(pointers: Tensor, k: int) -> Tensor:
    place = torch.arange(len(pointers), device=pointers.device)
    for digit in range(k.bit_length()):
        if k >> digit & 1:
            place = pointers[place]
        pointers = pointers[pointers]
    return place


def _draw_changes(generator: Generator) -> dict:
    sizes, nets = draw_size(generator, 4, 6), draw_size(generator, 8, 12)
    lengths = 2.0 ** torch.arange(2, 2 + sizes, dtype=torch.float64)
    lengths = lengths * (1 + torch.rand(sizes, generator=generator, dtype=torch.float64))
    lengths = lengths[torch.randperm(sizes, generator=generator)]
    return {"changes": draw_normal(generator, sizes, nets) / lengths[:, None], "lengths": lengths}


@exercise(draw=_draw_changes, now="you can tell a rate from a trend")
def flip_slope(changes: Tensor, lengths: Tensor) -> Tensor:
    size = changes.abs().mean(1).log()
    x = lengths.log()
    x = x - x.mean()
    return (x * (size - size.mean())).sum() / x.square().sum()


def _draw_bits(generator: Generator) -> dict:
    return {"bits": torch.randint(2, (draw_size(generator, 12, 16), draw_size(generator, 4, 6)), generator=generator)}


@exercise(draw=_draw_bits, now="a learner of straight lines can be taught a parity")
def worked_steps(bits: Tensor) -> Tensor:
    running, tokens = bits[:, 0], []
    for bit in bits.T[1:]:
        both = running * bit
        running = running + bit - 2 * both
        tokens += [both, running]
    return torch.stack(tokens, 1)


def _draw_blocks(generator: Generator) -> dict:
    layers = draw_size(generator, 1, 3)
    # one symbol more than full blocks, so that a block of another size shows in the number of steps
    length = 2 + (2**layers - 1) * draw_size(generator, 3, 4)
    return {"words": _permutations(generator, length, draw_size(generator, 4, 5)), "layers": layers}


@exercise(draw=_draw_blocks, now="you can trade layers for written steps")
def in_steps(words: Tensor, layers: int) -> Tensor:
    take, state, written = 2**layers - 1, words[0], []
    for start in range(1, len(words), take):
        block = torch.cat([state[None], words[start : start + take]])
        state = prefix_doubling.answer(block, layers)[-1]
        written.append(state)
    return torch.stack(written)


def _draw_machine(generator: Generator) -> dict:
    n, T, layers = draw_size(generator, 3, 4), draw_size(generator, 12, 15), 4
    return {
        "n": n,
        "T": T,
        "layers": layers,
        "_words": torch.stack([_permutations(generator, T, n) for _ in range(64)]),
    }


def _widths(n: int, T: int) -> tuple[int, int]:
    """Return the width of the stream and that of the MLP."""
    return 2 * n * n + 1 + T + 1, n**3 + 2 * n * n


def _streams(words: Tensor, n: int) -> Tensor:
    """Return what the layers read, (batch, T + 1, d): f is the identity at position 0 and then the symbols."""
    batch, T, _ = words.shape
    x = torch.zeros(batch, T + 1, _widths(n, T)[0])
    tables = torch.cat([torch.arange(n).expand(batch, 1, n), words], 1)
    x[..., : n * n] = F.one_hot(tables, n).flatten(2).float()
    x[..., 2 * n * n] = 1
    x[..., 2 * n * n + 1 :] = torch.eye(T + 1)
    return x


def _pattern(W_QK: Tensor, x: Tensor) -> Tensor:
    hidden = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
    return (x @ W_QK @ x.mT).masked_fill(hidden, -torch.inf).softmax(-1)


def _by_layer(inputs: dict, answer: Tensor) -> Iterator[tuple[int, list[Tensor], Tensor, Tensor]]:
    """Yield each layer's number, its four matrices, the streams that it should read, and where it should look."""
    n, T, words = inputs["n"], inputs["T"], inputs["_words"]
    d, H = _widths(n, T)
    for layer, rows in enumerate(answer.float()):
        exact = torch.stack([prefix_doubling.answer(word, layer) for word in words])
        back = (torch.arange(T + 1) - 2**layer).clamp(min=0)
        yield layer, list(rows.split([d, d, H, H])), _streams(exact, n), back


def _follows(inputs: dict, answer: Tensor) -> str | None:
    """The one stage: all layers, one after the other, must follow words to their ends. If they do not, each is looked
    into on what it should read, and the first that does something else there is told of.
    """
    n, words = inputs["n"], inputs["_words"]
    x = _streams(words, n)
    for _, (W_QK, W_OV, up, down), _, _ in _by_layer(inputs, answer):
        x = x + _pattern(W_QK, x) @ x @ W_OV.mT
        x = x + (x @ up.mT).relu() @ down
    said = x[:, 1:, : n * n].unflatten(-1, (n, n)).argmax(-1)
    exact = torch.stack([prefix_products.answer(word) for word in words])
    right = (said == exact).all(-1).double().mean().item()
    if right == 1:
        return None
    seen = (look(inputs, answer) for look in (_attention, _fetched, _composed))
    why = next((each for each in seen if each), "each layer alone does what it should")
    return f"{right:.0%} of the prefixes are followed; {why}"


def _attention(inputs: dict, answer: Tensor) -> str | None:
    """Say of the first layer whose heads do not look 2^layer back where they look."""
    for layer, (W_QK, *_), x, back in _by_layer(inputs, answer):
        rows = torch.arange(len(back))
        pattern = _pattern(W_QK, x)
        alpha = pattern[:, rows, back].amin(0)
        if alpha.min() >= 0.99:
            continue
        t = int(alpha.argmin())
        word = int(pattern[:, t, back[t]].argmin())
        where = f"2^{layer} back" if t - back[t] == 2**layer else "where the word begins"
        told = f"in layer {layer} position {t} gives {alpha[t]:.0%} of its attention to {back[t]}, {where}"
        if _pattern(W_QK.mT, x)[:, rows, back].min() >= 0.99:
            return f"{told}, and 99 % if W_QK is transposed: its rows belong to the query"
        if layer and pattern[:, rows, (rows - 1).clamp(min=0)].min() >= 0.99:
            return f"{told}; every position looks one back, as in layer 0"
        if _pattern(30 * W_QK, x)[:, rows, back].min() >= 0.99:
            return f"{told}, more than to any other, but too little: with scores 30 times as large it is 99 %"
        other = pattern[word, t].index_fill(0, back[t], 0)  # to which else it gives most
        return f"{told}, and {other.max():.0%} to {int(other.argmax())}"
    return None


def _fetched(inputs: dict, answer: Tensor) -> str | None:
    """Say of the first layer whose attention does not bring the table f that is looked at into g what it brings."""
    tables = inputs["n"] ** 2
    for layer, (_, W_OV, *_), x, back in _by_layer(inputs, answer):
        moved = x[:, back] @ W_OV.mT
        wanted = F.pad(x[:, back, :tables], (tables, x.shape[2] - 2 * tables))
        if _near(moved, wanted):
            continue
        if _near(x[:, back] @ W_OV, wanted):
            return f"in layer {layer} W_OV is transposed: its rows say where it writes, its columns what it reads"
        g, due = moved[..., tables : 2 * tables], wanted[..., tables : 2 * tables]
        if _near(g, due):
            return f"in layer {layer} g holds the table f that is looked at, but W_OV writes into other parts, too"
        factor = (g * due).sum() / due.square().sum()
        if factor > 0.01 and _near(g, factor * due):
            return f"in layer {layer} W_OV writes {factor:.3g} times the table f that is looked at into g"
        return f"in layer {layer} g does not hold the table f that is looked at after attention"
    return None


def _composed(inputs: dict, answer: Tensor) -> str | None:
    """Say of the first layer whose MLP does not put 'g, then f' in the place of f, and empty g, what it does."""
    n = inputs["n"]
    for layer, (_, _, up, down), read, back in _by_layer(inputs, answer):
        x = read.clone()
        x[..., n * n : 2 * n * n] = read[:, back, : n * n]
        written = (x @ up.mT).relu() @ down
        f, g = (part.unflatten(-1, (n, n)) for part in x[..., : 2 * n * n].split(n * n, -1))
        new, left = (part.unflatten(-1, (n, n)) for part in (x + written)[..., : 2 * n * n].split(n * n, -1))
        if not _near(new, g @ f):
            what = _in_place_of_f(new, f, g)
            return f"after the MLP of layer {layer} {what or _units(x, up, down, n)}"
        last = layer == inputs["layers"] - 1  # after which nobody reads g, the 1 or the position
        if not (last or _near(left, torch.zeros_like(left))):
            return f"after the MLP of layer {layer} f is right, but g is not empty, and the next layer adds to it"
        if not (last or _near(written[..., 2 * n * n :], torch.zeros(()))):
            return f"the MLP of layer {layer} writes into the 1 or the position, which the next layer must read"
    return None


def _in_place_of_f(new: Tensor, f: Tensor, g: Tensor) -> str:
    """Say what a layer has put in the place of f, if it is known by its name."""
    due = g @ f
    known = {
        "f is 'f, then g'; 'g, then f' is due, as what comes earlier in the word is applied first": f @ g,
        "the old f still stands there, beside the new one": due + f,
        "f is the new table and twice the old one, which is added where it must be taken off": due + 2 * f,
        "f is transposed: f[z, x] holds what is due in f[x, z]": due.mT,
        "f is what it was before": f,
    }
    return next((says for says, table in known.items() if _near(new, table)), "")


def _units(x: Tensor, up: Tensor, down: Tensor, n: int) -> str:
    """Say whether every path has a unit of its own, and if so whether what these write is wrong or what is erased."""
    f, g = (part.unflatten(-1, (n, n)) for part in x[..., : 2 * n * n].split(n * n, -1))
    paths = (g[..., :, :, None] * f[..., None, :, :]).flatten(2).flatten(0, 1)  # of x, y, z: 1 where both are
    units = (x @ up.mT).relu().flatten(0, 1)
    strength = units.amax(0)
    apart = torch.cdist((units / strength.clamp_min(1e-6)).mT, paths.mT, p=torch.inf)
    off, unit = (apart + (strength <= 0.01)[:, None]).min(0)
    told = "f is not 'g, then f': "
    if (lost := int((off > 0.01).sum())) > 0:
        return (
            f"{told}for {lost} of {n**3} paths x, y, z no unit is on where both g[x, y] and f[y, z] are 1, and off "
            "elsewhere"
        )
    brought = (units[:, unit] @ down[unit])[:, : n * n]
    if _near(brought, (g @ f).flatten(2).flatten(0, 1)):
        return f"{told}each path has its unit and writes what it should; what else is written, or erased, is wrong"
    return f"{told}each path has its unit, but what these write into f is wrong"


def _near(got: Tensor, due: Tensor) -> bool:
    return bool((got - due).abs().max() < 0.01)


@summit(
    draw=_draw_machine,
    shape=lambda inputs: (
        inputs["layers"],
        2 * sum(_widths(inputs["n"], inputs["T"])),
        _widths(inputs["n"], inputs["T"])[0],
    ),
    stages=(_follows,),
    seconds=4,
    now="you have written every weight of a transformer that follows the cups",
)
def doubling_layers(n: int, T: int, layers: int) -> Tensor:
    f = torch.arange(n * n).view(n, n)
    g, one, place = f + n * n, 2 * n * n, torch.arange(T + 1) + 2 * n * n + 1
    d, H = 2 * n * n + 1 + T + 1, n**3 + 2 * n * n
    x, y, z = torch.cartesian_prod(*[torch.arange(n)] * 3).T
    paths, tables = torch.arange(n**3), torch.arange(2 * n * n)
    W_QK, W_OV = torch.zeros(layers, d, d), torch.zeros(layers, d, d)
    up, down = torch.zeros(layers, H, d), torch.zeros(layers, H, d)
    for layer in range(layers):
        back = (torch.arange(T + 1) - 2**layer).clamp(min=0)
        W_QK[layer, place, place[back]] = 30.0
    W_OV[:, g, f] = 1.0
    up[:, paths, g[x, y]] = 1.0
    up[:, paths, f[y, z]] = 1.0
    up[:, paths, one] = -1.0
    down[:, paths, f[x, z]] = 1.0
    up[:, n**3 + tables, tables] = 1.0
    down[:, n**3 + tables, tables] = -1.0
    return torch.cat([W_QK, W_OV, up, down], 1)
