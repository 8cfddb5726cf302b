"""The exercises of lesson 03, LSTM against transformer, and on states that are matrices: recursive least squares, and a
memory of keys and values.
"""

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from companion.lesson.exercise import draw_normal, draw_size, exercise
from companion.lesson.summit import summit


def _draw_cell(generator: Generator) -> dict:
    d, width = draw_size(generator, 2, 4), draw_size(generator, 3, 6)
    return {
        "x": draw_normal(generator, d),
        "h": draw_normal(generator, width),
        "c": 2 * draw_normal(generator, width),
        "W": draw_normal(generator, 4 * width, d),
        "U": draw_normal(generator, 4 * width, width),
        "b": draw_normal(generator, 4 * width),
    }


@exercise(draw=_draw_cell)
def lstm_step(x: Tensor, h: Tensor, c: Tensor, W: Tensor, U: Tensor, b: Tensor) -> Tensor:
    i, f, g, o = (W @ x + U @ h + b).chunk(4)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    h = o.sigmoid() * c.tanh()
    return torch.stack([h, c])


def _draw_examples(generator: Generator) -> dict:
    batch, d = draw_size(generator, 2, 4), draw_size(generator, 2, 6)
    return {
        "w": draw_normal(generator, batch, d),
        "x": draw_normal(generator, batch, d),
        "y": 2 * draw_normal(generator, batch),
    }


@exercise(draw=_draw_examples)
def ogd_step(w: Tensor, x: Tensor, y: Tensor) -> Tensor:
    residual = y - (w * x).sum(-1)
    return w + (residual / x.square().sum(-1))[:, None] * x


def _draw_question(generator: Generator) -> dict:
    batch, n, d = draw_size(generator, 2, 4), draw_size(generator, 5, 9), draw_size(generator, 2, 4)
    gap = draw_size(generator, 2, n - 1)
    # in the middle, both ends count alike
    return {"xs": draw_normal(generator, batch, n, d), "gap": gap + (2 * gap == n + 1)}


@exercise(draw=_draw_question)
def ask_again(xs: Tensor, gap: int) -> Tensor:
    return torch.cat([xs, xs[:, -gap, None]], dim=1)


def _draw_values(generator: Generator) -> dict:
    return {
        "values": 1 + 2 * draw_normal(generator, draw_size(generator, 4, 9)),
        "t": float(2 + torch.rand((), generator=generator)),
    }


@exercise(draw=_draw_values)
def interval(values: Tensor, t: float) -> Tensor:
    half = t * values.std() / len(values) ** 0.5
    return torch.stack([values.mean() - half, values.mean() + half])


def _draw_test(generator: Generator) -> dict:
    d = draw_size(generator, 4, 6)
    return {"batch": 400, "n": draw_size(generator, d + 2, d + 5), "d": d, "seed": draw_size(generator, 0, 9999)}


KNOWN = 2  # how many of the newest examples the forgetful subject knows


def _forgetful(inputs: dict, prompts: Tensor) -> Tensor:
    """Errors over d (2, n) of a subject that solves for the newest `KNOWN` examples and has forgotten all others. Of a
    question that these do not answer it errs by 1 - KNOWN / d.
    """
    d = inputs["d"]
    x, y, question = prompts[..., -1 - KNOWN : -1, :d], prompts[..., -1 - KNOWN : -1, d:], prompts[..., -1:, :]
    gram = x @ x.mT + 1e-9 * torch.eye(KNOWN, dtype=x.dtype, device=x.device)
    answer = question[..., :d] @ x.mT @ torch.linalg.solve(gram, y)
    return ((answer - question[..., d:]) ** 2).mean((-3, -2, -1)) / d


def _repeats(inputs: dict, prompts: Tensor) -> Tensor:
    """Whether the question is the example at each place, (2, n, batch, n)."""
    x = prompts[..., : inputs["d"]]
    return (x[..., :-1, :] == x[..., -1:, :]).all(-1)


def _weights(x: Tensor, y: Tensor) -> Tensor:
    """The weights behind the labels y (..., n + 1, 1) of the inputs x (..., n + 1, d)."""
    return torch.linalg.lstsq(x, y).solution


ONE_THING = "more differs than whether the example asked for was read"  # between a prompt and its control


def _of_one_function(inputs: dict, prompts: Tensor) -> str | None:
    prompts, d = prompts.double(), inputs["d"]
    x, y = prompts[..., :d], prompts[..., d:]
    left = (y - x @ _weights(x, y)).square().sum((-2, -1)) > 1e-6 * y.square().sum((-2, -1))
    if torch.equal(*x) and left[1].double().mean() > 0.01 > left[0].double().mean():
        return (
            "the control has the inputs of its prompt with other labels, which no weights give: it tells a wrong "
            "answer, which can do more harm than none. Its examples must be true ones, each with its own input's label"
        )
    for row, name in enumerate(("told", "untold")):
        if (share := left[row].double().mean()) > 0.01:
            return (
                f"in {share:.0%} of the prompts of row {row} ({name}) no weights give all labels: compute each label "
                "from the input beside it, the exchanged one's and the question's, too"
            )
    return None


def _ends_in_its_label(_: dict, prompts: Tensor) -> str | None:
    """The stage at which a position must not begin with its label, of weights and inputs that look as they should."""
    prompts = prompts.double()

    def off(x: Tensor, y: Tensor) -> float:
        return max(abs(values.square().mean().item() - 1) for values in (x, _weights(x, y)))

    if off(prompts[..., 1:], prompts[..., :1]) < 0.25 < off(prompts[..., :-1], prompts[..., -1:]):
        return "at each position the label stands first; the input comes first, and then its label"
    return None


def _as_trained(inputs: dict, prompts: Tensor) -> str | None:
    prompts, d = prompts.double(), inputs["d"]
    x, y = prompts[..., :d], prompts[..., d:]
    for name, values in (("inputs", x), ("weights", _weights(x, y))):
        square = values.square().mean().item()
        if values.var(2).mean() < square / 10:
            return f"the {name} are alike in all prompts: draw them anew for each prompt"
        if not 0.8 < square < 1.25:
            return f"the {name} have a mean square of {square:.2g}; the models were trained on N(0, 1), which has 1"
    return _fresh_as_trained(x)


def _fresh_as_trained(x: Tensor) -> str | None:
    other = (x[0] != x[1])[:, :, :-1].any(-1)
    for untold, exchanged in zip(x[1, :, :, :-1], other, strict=True):
        if not len(fresh := untold[exchanged]):
            continue
        square = fresh.square().mean().item()
        if square < 0.05 or (fresh.square().sum(1) < 1e-6).double().mean() > 0.01:
            return "the exchanged example is nearly 0, which no model has seen in training: draw a fresh input"
        if len(fresh) > 1 and fresh.var(0).mean() < square / 10:
            return "the exchanged example is alike in all prompts: draw a fresh one for each prompt"
        if fresh.var(1).mean() < square / 10:
            return "the exchanged example is one number, d times over: draw d numbers for each prompt"
        if not 0.6 < square < 1.5:
            return (
                f"the exchanged examples have a mean square of {square:.2g}; the models were trained on N(0, 1), which "
                "has 1"
            )
    return None


def _asks_for(inputs: dict, prompts: Tensor) -> Tensor:
    """In which share of the prompts of row 0 each gap asks for the example of 1, 2, .., n places ago, (n, n)."""
    x = prompts[0, ..., : inputs["d"]]
    same = (x[..., :-1, :] - x[..., -1:, :]).square().mean(-1) < 1e-6  # to rounding
    return same.double().mean(1).flip(1)


def _out_of_order(shares: Tensor) -> str | None:
    due = list(range(1, len(shares) + 1))
    if shares.diagonal().min() > 0.99 or shares.amax(1).min() < 0.99:
        return None
    if (asked := (shares.argmax(1) + 1).tolist()) == due[::-1]:
        return "row 0 counts from the wrong end: entry 0 must ask for the newest example, the last entry for the oldest"
    return (
        f"row 0 asks for the examples of {', '.join(map(str, asked))} places ago; it must ask for those of 1 to "
        f"{due[-1]}, in this order"
    )


def _tells(inputs: dict, prompts: Tensor) -> str | None:
    d = inputs["d"]
    found, due = _forgetful(inputs, prompts.double())[0], 1 - KNOWN / d
    repeats = _repeats(inputs, prompts)
    of_examples = repeats.any(-1).double().mean((1, 2))
    if of_examples[0] < 0.01 and of_examples[1] > 0.5:
        return "the two rows are exchanged: row 0 tells the example that is asked for, row 1 does not"
    if of_examples.max() < 0.01 and (prompts[0, ..., :-1, :] == prompts[1, ..., :-1, :]).all():
        return (
            "both rows have the same examples, and the one asked for is not among them: if you exchange it in xs "
            "itself, row 0 loses it, too; exchange it in xs.clone()"
        )
    shares = _asks_for(inputs, prompts.double())
    if missing := _out_of_order(shares):
        return missing
    if found[KNOWN:].mean() < due / 2 or found[:KNOWN].max() > due / 2:
        return (
            f"a subject that knows the newest {KNOWN} examples and no others errs by "
            f"{', '.join(f'{value:.2f}' for value in found.tolist())} (row 0, gap 1 to {len(found)}); it should err by "
            f"0.00 at gap 1 to {KNOWN} and by about {due:.2f} from there on. In {of_examples[0]:.0%} of the prompts of "
            "row 0 the question is one of the examples"
        )
    if (least := shares.diagonal()).min() < 0.99:
        gap = int(least.argmin()) + 1
        return (
            f"in {1 - least.min():.0%} of the prompts of row 0 gap {gap} does not ask for the example of {gap} places "
            "ago"
        )
    return None


def _exchanges(_: dict, prompts: Tensor) -> str | None:
    if torch.equal(*prompts):
        return (
            "the two rows are the same, and the control exchanges nothing: if you exchange the example in xs itself, "
            "the question xs[:, -gap, None], a view of xs, changes with it; exchange it in xs.clone()"
        )
    return None


def _has_a_control(inputs: dict, prompts: Tensor) -> str | None:
    found, due = _forgetful(inputs, prompts.double())[1], 1 - KNOWN / inputs["d"]
    told, untold = prompts[..., :-1, : inputs["d"]].double()
    other = (told != untold).any(-1)
    if (share := _repeats(inputs, prompts)[1].any(-1).double().mean()) > 0.01:
        return (
            f"in {share:.0%} of the prompts of row 1, the control, the question is still one of the examples, so it "
            "was read"
        )
    repeated = (untold[..., :, None, :] == untold[..., None, :, :]).all(-1).sum(-1) > 1
    if (share := (repeated & other).any(-1).double().mean()) > 0.01:
        return (
            f"in {share:.0%} of the prompts of the control the exchanged example is a copy of another example of its "
            "prompt; a fresh one is asked for"
        )
    alike = F.cosine_similarity(untold, told, dim=-1)[other].abs()
    if len(alike) and (alike > 0.99).double().mean() > 0.5:
        return (
            f"the exchanged example of the control is nearly a multiple of the one that it replaces (a cosine of "
            f"{alike.median():.2f}, without its sign), and still tells its label; a fresh one is asked for"
        )
    if len(alike) and abs((square := alike.square().mean().item()) - 1 / inputs["d"]) > 0.1:
        return (
            f"the exchanged example of the control depends on the one that it replaces (their squared cosine is "
            f"{square:.2f} on average, of independent ones 1 / d = {1 / inputs['d']:.2f}); a fresh one is asked for"
        )
    if (found - due).abs().max() > due / 2:
        return (
            f"in row 1, where nothing was told, a subject that knows the newest {KNOWN} examples errs by "
            f"{', '.join(f'{value:.2f}' for value in found.tolist())}; it should err by about {due:.2f} at every gap"
        )
    return None


def _moves(inputs: dict, prompts: Tensor) -> bool:
    """Whether the control has all examples of its prompt but one, wherever they stand."""
    told, untold = prompts[..., :-1, : inputs["d"]]
    kept = (told[..., :, None, :] == untold[..., None, :, :]).all(-1).any(-1).sum(-1)
    return bool((kept == inputs["n"] - 1).double().mean() > 0.9)


def _differs_in_one(inputs: dict, prompts: Tensor) -> str | None:
    other = (prompts[0, ..., : inputs["d"]] != prompts[1, ..., : inputs["d"]]).any(-1)
    if (share := other[..., -1].double().mean()) > 0.01:
        return (
            f"in {share:.0%} of the prompts the control asks another question. A fresh one is right on average, "
            f"because inputs are independent; but in each prompt {ONE_THING}: keep the question"
        )
    if (most := other.sum(-1).double().mean()) > 1.01:
        if _moves(inputs, prompts):
            return (
                "the control has the other examples of its prompt at other places: a model can err otherwise for that "
                f"alone, so {ONE_THING}. Leave each of them at its place"
            )
        return (
            f"the control differs from the test in {most:.3g} of {inputs['n']} examples. Fresh ones are right on "
            f"average, because inputs are independent; but in each prompt {ONE_THING}: exchange the one asked for alone"
        )
    relabelled = (prompts[0, ..., -1] - prompts[1, ..., -1]).abs() > 1e-2
    if (share := (relabelled & ~other).any(-1).double().mean()) > 0.01:
        return (
            f"in {share:.0%} of the prompts the control has other labels for the same inputs: its weights must be "
            "those of its prompt"
        )
    return None


@summit(
    draw=_draw_test,
    shape=lambda inputs: (2, inputs["n"], inputs["batch"], inputs["n"] + 1, inputs["d"] + 1),
    stages=(_of_one_function, _ends_in_its_label, _as_trained, _tells, _exchanges, _has_a_control, _differs_in_one),
    seconds=2,
    seed="seed",
    now="you can say of any predictor what an example that it read still adds",
)
def memory_test(batch: int, n: int, d: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    xs, others = torch.randn(2, batch, n, d, generator=generator)
    w = torch.randn(batch, d, 1, generator=generator)
    rows = []
    for gap in range(1, n + 1):
        question = xs[:, -gap, None]
        untold = xs.clone()
        untold[:, -gap] = others[:, -gap]
        for examples in (xs, untold):
            inputs = torch.cat([examples, question], dim=1)
            rows.append(torch.cat([inputs, inputs @ w], dim=2))
    return torch.stack([torch.stack(rows[0::2]), torch.stack(rows[1::2])])


def _draw_inverse(generator: Generator) -> dict:
    d = draw_size(generator, 2, 6)
    x = draw_normal(generator, 2 * d, d)
    return {"P": torch.linalg.inv(x.T @ x / d + 0.2 * torch.eye(d, dtype=x.dtype)), "x": draw_normal(generator, d)}


@exercise(draw=_draw_inverse)
def rls_update(P: Tensor, x: Tensor) -> Tensor:
    return P - torch.outer(P @ x, P @ x) / (1 + x @ (P @ x))


def _draw_prompt(generator: Generator) -> dict:
    n, d = draw_size(generator, 3, 6), draw_size(generator, 2, 4)
    return {
        "X": draw_normal(generator, n, d),
        "y": 2 * draw_normal(generator, n),
        "ridge": float(0.2 + torch.rand((), generator=generator)),
    }


@exercise(draw=_draw_prompt)
def rls_states(X: Tensor, y: Tensor, ridge: float) -> Tensor:
    w = torch.zeros_like(X[0])
    P = torch.ones_like(w).diag() / ridge
    states = []
    for x, label in zip(X, y, strict=True):
        Px = P @ x
        P = P - torch.outer(Px, Px) / (1 + x @ Px)
        w = w + P @ x * (label - w @ x)
        states.append(torch.cat([w, P.flatten()]))
    return torch.stack(states)


def _draw_memory(generator: Generator) -> dict:
    h = draw_size(generator, 2, 6)
    return {
        "S": draw_normal(generator, h, h),
        "k": F.normalize(draw_normal(generator, h), dim=0),
        "v": draw_normal(generator, h),
        "strength": float(0.2 + 0.6 * torch.rand((), generator=generator)),
    }


@exercise(draw=_draw_memory)
def delta_write(S: Tensor, k: Tensor, v: Tensor, strength: float) -> Tensor:
    return S + strength * torch.outer(v - S @ k, k)


def _draw_pairs(generator: Generator) -> dict:
    m, h = draw_size(generator, 3, 6), draw_size(generator, 3, 5)
    return {
        "keys": F.normalize(draw_normal(generator, m, h), dim=1),
        "values": draw_normal(generator, m, h),
        "erase": float(0.3 + 0.6 * torch.rand((), generator=generator)),
    }


@exercise(draw=_draw_pairs)
def recall(keys: Tensor, values: Tensor, erase: float) -> Tensor:
    S = keys.new_zeros(values.shape[1], keys.shape[1])
    for k, v in zip(keys, values, strict=True):
        S = S + torch.outer(v - erase * (S @ k), k)
    off = keys @ S.mT - values
    return off.square().sum(1) / values.square().sum(1)
