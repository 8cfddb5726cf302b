"""The summit of lesson 02: the rate test of Fu et al. (2024), arXiv:2310.17086, and a method that fools it."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from companion.lesson.summit import Stage, summit
from companion.topics.regression.baselines import gradient_descent, moments, newton, predict
from companion.topics.regression.data import prompts
from companion.topics.regression.probes import DESCENT_STEPS, NEWTON_STEPS, Rate, growth_rate, similarity_of_errors

LAYERS, BAR = 8, 0.95
# Gradient descent whose steps hardly grow has an exponential with an R^2 of .97 as well, and a line with .95 or more; a
# projection on the span is ahead by .2 or more, in the worst of five hundred draws by .13
AHEAD = {"newton": 0.0, "descent": 0.1}
PROMPTS = 128  # with 32, a right answer's line had an R^2 below the bar in one draw of two hundred
TIE = 0.0005  # similarities this close are one, to three digits


def _with_known(xs: Tensor, ys: Tensor) -> dict:
    S, b = moments(xs, ys)
    known = {"newton": newton(xs, ys, NEWTON_STEPS), "descent": gradient_descent(xs, ys, DESCENT_STEPS)}
    return {"S": S, "b": b, "xs": xs, "ys": ys} | known


def _draw_suspect(generator: Generator) -> dict:
    xs, ys, _ = prompts(PROMPTS, 31, 10, generator=generator, dtype=torch.float64)
    return _with_known(xs, ys)


def _draw_uneven() -> dict:
    """Few short prompts, in which a wrong similarity finds other doubles.

    The labels of some are a hundred times as large as those of others, for one cosine over all prompts, and the first
    input is three times as long, for a cosine that keeps position 0. With this seed the doubles that these find are
    less similar than the right ones by nine times `TIE` and more.
    """
    xs, _, ws = prompts(8, 12, 10, generator=10, dtype=torch.float64)
    xs = torch.cat([3 * xs[:, :1], xs[:, 1:]], dim=1)
    ws = ws * torch.logspace(0, 2, len(ws), dtype=ws.dtype)[:, None]
    return _with_known(xs, torch.einsum("bnd,bd->bn", xs, ws))


def _is_of_first_order(inputs: dict, answer: Tensor) -> str | None:
    """The stage at which the weights of layer k must be spanned by b, S b, .., S^(k - 1) b.

    How they are found in the span is free: conjugate gradient's are a projection of the solution on it, and so other
    projections of the solution are right answers, too.
    """
    S, b = inputs["S"], inputs["b"]
    spanned, vector = [], b
    solved = ~b.any(-1)  # by an earlier layer
    for layer, weights in enumerate(answer[0].to(b), 1):
        for earlier in 2 * spanned:  # twice, for rounding
            vector = vector - (vector * earlier).sum(-1, keepdim=True) * earlier
        length = vector.norm(dim=-1, keepdim=True)
        spanned.append(torch.where(length > 1e-9, vector / length.clamp_min(1e-9), 0))
        outside = weights - sum((weights * each).sum(-1, keepdim=True) * each for each in spanned)
        beyond = outside.square().sum(-1) > 1e-6 * weights.square().sum(-1)
        # a prefix that is solved may drift by rounding
        if (share := beyond.double().mean().item()) > 0.02:
            if solved[beyond].all():
                return (
                    f"the impostor's layer {layer} is wrong at {share:.0%} of the prefixes, all of which are already "
                    "solved: there a step divides by rounding error, and the weights must stay as they are"
                )
            allowed = "a multiple of b" if layer == 1 else f"a sum of multiples of b, S b, .., S^{layer - 1} b"
            return (
                f"the impostor's layer {layer} is not {allowed}, at {share:.0%} of the prefixes. In each layer one "
                "product with S is allowed, and the weights begin at 0"
            )
        vector = (S @ spanned[-1][..., None])[..., 0]
        left = b - (S @ weights[..., None])[..., 0]
        solved |= left.square().sum(-1) <= 1e-12 * b.square().sum(-1)
    return None


def _doubles_in_order(inputs: dict, answer: Tensor) -> str | None:
    """The stage at which each double must not be found among the weights where the other one belongs."""

    def among(place: int, name: str) -> bool:
        known = inputs[name]
        off = torch.stack([(known - row).abs().amax((1, 2, 3)).min() for row in answer[place].to(known)])
        return bool((off <= 1e-6 * known.abs().max()).all())

    if among(1, "descent") and among(2, "newton") and not among(1, "newton"):
        return "the two doubles are exchanged: entry 1 is that among newton, entry 2 that among descent"
    return None


def _finds_its_double(place: int, name: str, steps: Sequence[float]) -> Stage:
    """The stage at which an entry of the answer must hold the known weights that the impostor is most alike."""

    def stage(inputs: dict, answer: Tensor) -> str | None:
        known, xs, ys = inputs[name], inputs["xs"], inputs["ys"]
        impostor, found = predict(answer[0].to(xs), xs), answer[place].to(xs)
        similarity = similarity_of_errors(impostor, predict(known, xs), ys)
        for layer, (row, weights) in enumerate(zip(similarity, found, strict=True)):
            off = (known - weights).square().sum((1, 2, 3))
            own = int(off.argmin())
            if off[own] > 1e-6 * weights.square().sum() + 1e-12:
                return f"entry {place} of the answer, layer {layer + 1}, is none of the weights in {name}"
            if row[own] < row.max() - TIE:
                return (
                    f"entry {place} of the answer, layer {layer + 1}: the impostor's errors are most like {name} after "
                    f"{steps[int(row.argmax())]:g} steps (similarity {row.max():.3f}), and yours are those after "
                    f"{steps[own]:g} steps ({row[own]:.3f})"
                )
        return None

    return stage


def _growth(inputs: dict, answer: Tensor, place: int, name: str, steps: Sequence[float]) -> tuple[list[float], Rate]:
    """The matched steps, and how they grow; half a step of the grid stands for none, which has no logarithm."""
    matched = [steps[int((inputs[name] - weights).square().sum((1, 2, 3)).argmin())] for weights in answer[place]]
    return matched, growth_rate(list(range(1, LAYERS + 1)), [max(step, 1 / 8) for step in matched])


def _passes(inputs: dict, answer: Tensor) -> str | None:
    """The stage at which the rate test must take the impostor for Newton's method."""
    for place, name, steps in ((1, "newton", NEWTON_STEPS), (2, "descent", DESCENT_STEPS)):
        matched, rate = _growth(inputs, answer.to(inputs["xs"]), place, name, steps)
        told = f"its layers match the {name} steps {', '.join(f'{step:g}' for step in matched)}"
        fits = {"line": rate.linear_r2, "exponential": rate.exponential_r2}
        due, rival = ("line", "exponential") if name == "newton" else ("exponential", "line")
        ahead = f" by {AHEAD[name]:g}" if AHEAD[name] else ""
        if matched[-1] <= matched[0] or not fits[due] >= max(BAR, fits[rival] + AHEAD[name]):
            idle = "; layer 1 has taken no step yet, its weights are all 0" if not answer[0, 0].any() else ""
            both = f": the growth is as well a {rival}" if fits[due] >= BAR else ""
            return (
                f"the test is not fooled: {told}. R^2 of the {due} is {fits[due]:.3f}, of the {rival} "
                f"{fits[rival]:.3f}; the {due} must reach {BAR} and be ahead{ahead}{both}{idle}"
            )
    return None


_DOUBLES = (
    _doubles_in_order,
    _finds_its_double(1, "newton", NEWTON_STEPS),
    _finds_its_double(2, "descent", DESCENT_STEPS),
)


@summit(
    draw=_draw_suspect,
    shape=lambda inputs: (3, LAYERS, *inputs["xs"].shape),
    stages=(_is_of_first_order, *_DOUBLES, _passes),
    again=(_draw_uneven, _DOUBLES),
    seconds=4,
    now="weights that one product with S a layer can reach, and the rate test takes them for Newton's",
)
def fool_the_rate_test(S: Tensor, b: Tensor, xs: Tensor, ys: Tensor, newton: Tensor, descent: Tensor) -> Tensor:
    w, residual, direction, layers = torch.zeros_like(b), b, b, []
    for _ in range(8):
        image = (S @ direction[..., None])[..., 0]
        squared = residual.square().sum(-1, keepdim=True)
        length = squared / (direction * image).sum(-1, keepdim=True).clamp_min(1e-20)
        w, residual = w + length * direction, residual - length * image
        kept = residual.square().sum(-1, keepdim=True) / squared.clamp_min(1e-20)
        direction = residual + kept * direction
        layers.append(w)
    impostor = torch.stack(layers)
    errors = [((ws * xs).sum(-1) - ys)[..., 1:] for ws in (impostor, newton, descent)]
    own, *known = [F.normalize(error, dim=-1) for error in errors]
    alike = [torch.einsum("lbt,kbt->lk", own, others).argmax(1) for others in known]
    return torch.stack([impostor, newton[alike[0]], descent[alike[1]]])
