"""What lesson 03 shows of memories in the same blocks, of LSTMs that are taught a state, of LSTMs at d = 10, of its
checkpoints on fresh prompts and of its networks at longer budgets; and what lesson 02 claims of layers, on fresh
prompts and on others.
"""

import torch

from companion.core.checkpoints import shipped
from companion.core.measuring import Row, measurement
from companion.core.readouts import apply_readouts, fit_readouts
from companion.core.recipe import TIMES, Recipe, recipe
from companion.topics.regression.baselines import (
    gradient_descent,
    least_squares,
    newton,
    online_gradient_descent,
    predict,
    ridge_states,
)
from companion.topics.regression.data import SHIFTS, prompts
from companion.topics.regression.model import InContextRegressor, StateRegressor
from companion.topics.regression.probes import (
    DESCENT_STEPS,
    NEWTON_STEPS,
    best_match,
    errors_by_gap,
    errors_when_shifted,
    growth_rate,
    similarity_of_errors,
)
from companion.topics.regression.recipes import BLOCK_MIXERS, FRESH, INTERLEAVED, TAUGHT_RIDGE, TEACHING, fresh_prompts

READ = {
    "regression-isotropic": (1.0, 0.01),
    "regression-large": (1.0, 0.01),
    "regression-ill-conditioned": (100.0, 1e-4),
}
SIZES = {  # by what they keep: 512 numbers, 1,024, and all of a prompt
    "lstm": "regression-lstm",
    "larger_lstm": "regression-lstm-256",
    "transformer": "regression-transformer",
}
BUDGETED = ("lstm-64", "lstm", "lstm-256", "delta-small", "transformer")
CONTENDERS = ("transformer", "lstm")
ALGORITHMS = ("online_gradient_descent", "newton", "gradient_descent")
BLOCKS = [
    *({"mixer": mixer, "tokens": "triplet"} for mixer in BLOCK_MIXERS),
    *({"mixer": mixer, "tokens": "interleaved"} for mixer in INTERLEAVED),
]


@torch.no_grad()
def excess(model: InContextRegressor, seed: int = FRESH) -> float:
    """How much a model's squared error on `fresh_prompts` is above that of least squares, over the labels' mean
    square; ``seed`` says on which.
    """
    xs, ys = fresh_prompts(model, seed)
    best = predict(least_squares(xs, ys), xs)
    return (((model(xs, ys) - ys).square() - (best - ys).square()).mean() / ys.square().mean()).item()


@torch.no_grad()
def state_error(model: StateRegressor) -> float:
    """How far the weights that a model holds are, on the same prompts, from those that `state_loss` teaches: the mean
    square of the difference over that of the latter. Saying 0 has 1.
    """
    xs, ys = fresh_prompts(model)
    best, _ = ridge_states(xs, ys, TAUGHT_RIDGE)
    return ((model.states(xs, ys)[0] - best).square().mean() / best.square().mean()).item()


@torch.no_grad()
def resemblance(model: InContextRegressor) -> list[float]:
    """How similar a model's errors are to those of online gradient descent, of Newton's method and of gradient descent,
    the last two at the step that suits it best (`similarity_of_errors`), on `fresh_prompts`.
    """
    xs, ys = fresh_prompts(model)
    solved = (
        online_gradient_descent(xs, ys)[None],
        newton(xs, ys, range(1, 21)),
        gradient_descent(xs, ys, [2**i for i in range(13)]),
    )
    answers = model(xs, ys)[None]
    return [similarity_of_errors(answers, predict(ws, xs), ys).max().item() for ws in solved]


@torch.no_grad()
def newton_steps_as_good(model: InContextRegressor) -> int:
    """Return how many steps of Newton's method, up to 25, have the mean error nearest to a model's, on
    `fresh_prompts`.
    """
    xs, ys = fresh_prompts(model)
    errors = (predict(newton(xs, ys, range(26)), xs) - ys).square().mean((1, 2))
    return int((errors - (model(xs, ys) - ys).square().mean()).abs().argmin())


@torch.no_grad()
def errors_after_examples(model: InContextRegressor) -> dict[str, float]:
    """Measure a model's squared error on `fresh_prompts` after each number of examples, over the labels' mean square;
    answering 0 has 1, and online gradient descent (1 - 1/d)^examples.
    """
    xs, ys = fresh_prompts(model)
    errors = (model(xs, ys) - ys).square().mean(0) / ys.square().mean()
    return {f"error_after_{examples}": error for examples, error in enumerate(errors.tolist())}


@torch.no_grad()
def remembered(model: InContextRegressor) -> dict[str, float]:
    """Measure squared errors over d on `fresh_prompts` after ``few`` = d - 1 examples, which leave a question open, and
    after ``all`` n - 1: of a question that was not among them, the control; of the newest example, asked once more;
    and of the oldest. All three are asked after the same examples.
    """
    xs, ys = fresh_prompts(model)
    d, last = xs.shape[-1], xs.shape[1] - 1
    untold, found = (model(xs, ys) - ys).square().mean(0) / d, {}
    for name, many in (("few", d - 1), ("all", last)):
        again = errors_by_gap(model, xs[:, :many], ys[:, :many]).mean(1)
        errors = {"untold": untold[many], "newest": again[0], "oldest": again[-1]}
        found |= {f"{asked}_after_{name}": error.item() for asked, error in errors.items()}
    return found


def after_training(plan: Recipe, seed: int) -> list[Row]:
    """Train by a ``plan`` and measure `excess`, `newton_steps_as_good`, `resemblance`, `errors_after_examples` and what
    is `remembered`.
    """
    model, _ = plan.train(seed=seed)
    row = {"steps": plan.schedule.steps, "excess": excess(model), "newton_steps": newton_steps_as_good(model)}
    row |= dict(zip(ALGORITHMS, resemblance(model), strict=True))
    return [row | errors_after_examples(model) | remembered(model)]


@measurement(
    "regression-budgets",
    "lesson 03's networks at one, three and ten times its steps: excess, resemblance to algorithms, memory of examples",
    cells=[{"network": network, "times": times} for network in BUDGETED for times in TIMES],
    recipes=lambda scale: [recipe(f"regression-{name}", scale) for name in BUDGETED],
    tolerance=0.03,
    because="runs drift apart by rounding, the more the longer they are, and by less than seeds do",
)
def networks_by_budget(seed: int, scale: str, network: str, times: int) -> list[Row]:
    """Train a network for so many times its steps and measure it (`after_training`)."""
    return after_training(recipe(f"regression-{network}", scale).longer(times), seed)


def _block(mixer: str, tokens: str) -> str:
    return f"regression-blocks-{mixer}{'-interleaved' * (tokens == 'interleaved')}"


@measurement(
    "regression-memory-in-blocks",
    "the excess over least squares of five memories in the same two blocks, three of them with alternating tokens, too",
    cells=BLOCKS,
    recipes=lambda scale: [recipe(_block(**cell), scale) for cell in BLOCKS],
    tolerance=0.01,
    because="runs of 1,200 steps drift apart by rounding, by less than seeds do",
)
def memory_in_blocks(seed: int, scale: str, mixer: str, tokens: str) -> list[Row]:
    """Train a network of two blocks and measure its `excess`."""
    return [{"excess": excess(recipe(_block(mixer, tokens), scale).train(seed=seed)[0])}]


@measurement(
    "regression-taught-states",
    "LSTMs that are taught answers, half the run a state, or a state: their excess, and how far its weights are off",
    cells=[{"teaching": teaching} for teaching in TEACHING],
    recipes=lambda scale: [recipe(f"regression-taught-{teaching}", scale) for teaching in TEACHING],
    tolerance=0.01,
    because="runs of 1,500 steps drift apart by rounding, by less than arms differ",
)
def taught_states(seed: int, scale: str, teaching: str) -> list[Row]:
    """Train an LSTM and measure its `excess` and its `state_error`."""
    model, _ = recipe(f"regression-taught-{teaching}", scale).train(seed=seed)
    return [{"excess": excess(model), "weights_off": state_error(model)}]


@measurement(
    "regression-contenders-interleaved",
    "lesson 03's contenders on alternating tokens: their excess, and how much their errors are like three algorithms'",
    seeds=range(5),
    cells=[{"network": network} for network in CONTENDERS],
    recipes=lambda scale: [recipe(f"regression-{name}-interleaved", scale) for name in CONTENDERS],
    tolerance=0.01,
    because="runs drift apart by rounding; networks differ by more",
)
def contenders_interleaved(seed: int, scale: str, network: str) -> list[Row]:
    """Train one of the two and measure its `excess` and its `resemblance`."""
    model, _ = recipe(f"regression-{network}-interleaved", scale).train(seed=seed)
    return [{"excess": excess(model)} | dict(zip(ALGORITHMS, resemblance(model), strict=True))]


@measurement(
    "regression-lstms-at-ten",
    "how much an LSTM's errors at d = 10 are like those of three algorithms",
    recipes=lambda scale: [recipe("regression-lstm-ten", scale)],
    tolerance=0.005,
    because="runs drift apart by rounding; algorithms differ by more",
)
def lstms_at_ten(seed: int, scale: str) -> list[Row]:
    """Train an LSTM and measure its `resemblance`."""
    model, _ = recipe("regression-lstm-ten", scale).train(seed=seed)
    return [dict(zip(ALGORITHMS, resemblance(model), strict=True))]


@measurement(
    "regression-lstms-at-twenty",
    "the same of an LSTM at d = 20, and what else is measured at longer budgets",
    recipes=lambda scale: [recipe("regression-lstm-twenty", scale)],
    tolerance=0.03,
    because="another machine draws other batches, which moves figures as little as another seed does",
    gpu=True,
)
def lstms_at_twenty(seed: int, scale: str) -> list[Row]:
    """Train an LSTM and measure it (`after_training`)."""
    return after_training(recipe("regression-lstm-twenty", scale), seed)


@measurement(
    "regression-lstm-checkpoints",
    "lesson 03's shipped LSTMs and its transformer on fresh prompts: excesses, and what later layers remove",
    seeds=range(5),
    recipes=lambda scale: [recipe(name, scale) for name in (*SIZES.values(), "regression-lstm-deep")],
    tolerance=0.001,
    because="another machine sums in another order",
    quick=True,
)
@torch.no_grad()
def lstm_checkpoints(seed: int, scale: str) -> list[Row]:
    """Measure the checkpoints (training seed 0) on the ``seed``-th set of 2,048 fresh prompts: each one's `excess`; of
    the deep LSTM and of the transformer, which share of the error of a readout after the first layer is gone after the
    last.
    """
    row = {name: excess(shipped(checkpoint, scale)[0], 30_000 + seed) for name, checkpoint in SIZES.items()}
    for name, checkpoint in {"lstm": "regression-lstm-deep", "transformer": "regression-transformer"}.items():
        model, _ = shipped(checkpoint, scale)
        (xs, ys), fitted = fresh_prompts(model, 30_000 + seed), fresh_prompts(model, 40_000 + seed)
        answers = apply_readouts(fit_readouts(model.streams(*fitted), fitted[1]), model.streams(xs, ys))
        errors = (answers - ys).square().mean((1, 2))
        row[f"{name}_gain"] = 1 - (errors[-1] / errors[1]).item()
    return [row]


@measurement(
    "regression-layers",
    "errors of three shipped transformers' layers on fresh prompts, and how the matching steps of two algorithms grow",
    seeds=range(5),
    cells=[{"checkpoint": name} for name in READ],
    recipes=lambda scale: [recipe(name, scale) for name in READ],
    tolerance=0.05,
    because="matches are read off a grid of quarter steps, and a tie may fall to either side",
    quick=True,
)
@torch.no_grad()
def layers_on_fresh_prompts(seed: int, scale: str, checkpoint: str) -> list[Row]:
    """Measure one checkpoint (training seed 0) on the ``seed``-th set of 128 fresh prompts, with readouts fitted on 256
    others: its error with 2 d examples over the labels' mean square; by how much the error of all prefixes falls from
    layer to layer at least, up to the first layer within 3 % of the last; over these layers, the least-squares slope of
    the matching Newton step, the factor by which the matching gradient descent step grows, and what of the variance of
    either a line and an exponential explain (`growth_rate`, none taken for half a step of the grid); both at the end.
    """
    kappa, rate = READ[checkpoint]
    model, _ = shipped(checkpoint, scale)
    n, d = model.config.n, model.config.d
    fitted, asked = (
        prompts(count, n, d, kappa=kappa, generator=20_000 + 2 * seed + i) for i, count in ((0, 256), (1, 128))
    )
    readouts = fit_readouts(model.streams(fitted.xs, fitted.ys), fitted.ys)
    answers = apply_readouts(readouts, model.streams(asked.xs, asked.ys))
    errors = (answers - asked.ys).square().mean((1, 2)) / asked.ys.square().mean()
    last = int((errors[1:] <= 1.03 * errors[-1]).nonzero()[0]) + 1
    solved = (newton(asked.xs, asked.ys, NEWTON_STEPS), gradient_descent(asked.xs, asked.ys, DESCENT_STEPS, lr=rate))
    matches = [
        torch.tensor(best_match(similarity_of_errors(answers[1:], predict(ws, asked.xs), asked.ys), steps).step)
        for ws, steps in zip(solved, (NEWTON_STEPS, DESCENT_STEPS), strict=True)
    ]
    of_newton, of_descent = (
        growth_rate(list(range(1, last + 1)), steps[:last].clamp_min(1 / 8).tolist()) for steps in matches
    )
    of_squares = (model(asked.xs, asked.ys) - asked.ys).square()[:, 2 * d].mean() / d
    return [
        {
            "error": of_squares.item(),
            "least_fall": (errors[:last] - errors[1 : last + 1]).min().item(),
            "newton_steps_a_layer": of_newton.slope,
            "newton_linear": of_newton.linear_r2,
            "newton_exponential": of_newton.exponential_r2,
            "descent_factor_a_layer": 2**of_descent.log2_slope,
            "descent_exponential": of_descent.exponential_r2,
            "descent_linear": of_descent.linear_r2,
            "newton_step": matches[0][-1].item(),
            "descent_step": matches[1][-1].item(),
        }
    ]


@measurement(
    "regression-shifted-prompts",
    "errors of a shipped transformer on fresh prompts that are not those of training",
    seeds=range(5),
    cells=[{"shift": shift} for shift in SHIFTS],
    recipes=lambda scale: [recipe("regression-isotropic", scale)],
    tolerance=0.01,
    because="the same weights and the same prompts; only rounding differs",
    quick=True,
)
def shifted(seed: int, scale: str, shift: str) -> list[Row]:
    """Measure `errors_when_shifted` of the checkpoint (training seed 0) on the ``seed``-th set of 1,280 prompts."""
    model, _ = shipped("regression-isotropic", scale)
    few, many = errors_when_shifted(model, shift, count=1280, seed=seed)
    return [{"few": few, "many": many}]
