"""The student of lesson 09: gradient descent on the layer that the algorithm learns without it."""

from functools import partial

from companion.models.multihead import MultiHead, MultiHeadConfig
from companion.recipes import Recipe
from companion.samplers.multihead import Teacher, sequences, teacher
from companion.training import Schedule


def relative_loss(model, X, Y):
    """Square loss over that of answering 0."""
    return (model(X) - Y).square().sum() / Y.square().sum()


def _recipe(scale: str, d: int, k: int, heads: int, schedule: Schedule) -> Recipe:
    def draw(batch, generator):
        X = sequences(batch, k, d, generator=generator)
        thetas, ws = teacher(d, heads, sharpness=2.0, generator=1234)
        return X, Teacher(thetas.to(X), ws.to(X))(X)

    about = "a student of a random teacher, by Adam (lesson 09)"
    return Recipe("multihead-student", scale, partial(MultiHead, MultiHeadConfig(d, heads)), draw, relative_loss, schedule, about)


RECIPES = {
    "multihead-student": {
        "smoke": _recipe("smoke", 6, 2, 2, Schedule(steps=60, batch=64, lr=2e-2, warmup=5)),
        "course": _recipe("course", 12, 2, 2, Schedule(steps=1500, batch=256, lr=2e-2, warmup=20)),
        "paper": _recipe("paper", 64, 4, 4, Schedule(steps=20_000, batch=1024, lr=5e-3, warmup=200)),
    }
}
