"""What lesson 03 shows of memories in the same blocks, of LSTMs that are taught a state, and of LSTMs at d = 10."""

import torch

from companion.core.measuring import Row, measurement
from companion.core.recipe import recipe
from companion.topics.regression.baselines import (
    gradient_descent,
    least_squares,
    newton,
    online_gradient_descent,
    predict,
    ridge_states,
)
from companion.topics.regression.model import InContextRegressor, StateRegressor
from companion.topics.regression.probes import similarity_of_errors
from companion.topics.regression.recipes import BLOCK_MIXERS, INTERLEAVED, TAUGHT_RIDGE, TEACHING, fresh_prompts

BLOCKS = [
    *({"mixer": mixer, "tokens": "triplet"} for mixer in BLOCK_MIXERS),
    *({"mixer": mixer, "tokens": "interleaved"} for mixer in INTERLEAVED),
]


@torch.no_grad()
def excess(model: InContextRegressor) -> float:
    """How much a model's squared error on 2,048 fresh prompts is above that of least squares, over the labels' mean
    square.
    """
    xs, ys = fresh_prompts(model)
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
    "regression-lstms-at-ten",
    "how much an LSTM's errors at d = 10 are like those of three algorithms",
    recipes=lambda scale: [recipe("regression-lstm-ten", scale)],
    tolerance=0.005,
    because="runs drift apart by rounding; algorithms differ by more",
)
def lstms_at_ten(seed: int, scale: str) -> list[Row]:
    """Train an LSTM and measure its `resemblance`."""
    model, _ = recipe("regression-lstm-ten", scale).train(seed=seed)
    return [dict(zip(("online_gradient_descent", "newton", "gradient_descent"), resemblance(model), strict=True))]
