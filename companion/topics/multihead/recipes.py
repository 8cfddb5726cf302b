"""The student of lesson 09: gradient descent on the layer that the algorithm learns without it."""

from companion.core.recipe import register
from companion.core.training import Schedule
from companion.topics.multihead.data import Teacher, sequences, teacher
from companion.topics.multihead.model import MultiHead, MultiHeadConfig, relative_loss


def taught(config: MultiHeadConfig, k: int):
    """Sequences of ``k`` tokens, and a random teacher's answers."""

    def draw(batch, generator):
        X = sequences(batch, k, config.d, generator=generator)
        thetas, ws = teacher(config.d, config.heads, sharpness=2.0, generator=1234)
        return X, Teacher(thetas.to(X), ws.to(X))(X)

    return draw


register(
    "multihead-student",
    "a student of a random teacher, by Adam (lesson 09)",
    model=MultiHead,
    sampler=taught,
    loss=relative_loss,
    needs_float64=True,
    smoke=(MultiHeadConfig(6, 2), Schedule(steps=60, batch=64, lr=2e-2, warmup=5), {"k": 2}),
    course=(MultiHeadConfig(12, 2), Schedule(steps=1500, batch=256, lr=2e-2, warmup=20), {"k": 2}),
    paper=(MultiHeadConfig(64, 4), Schedule(steps=20_000, batch=1024, lr=5e-3, warmup=200), {"k": 4}),
)
