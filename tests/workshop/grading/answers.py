"""Answers to the exercises of the small lesson, as they are written into its cells."""

from textwrap import indent

RIGHT = {
    "triplet-tokens": """@exercises.triplet_tokens
def triplet_tokens(xs, ys):
    examples = torch.cat([xs, ys[..., None]], dim=-1)
    before = torch.cat([torch.zeros_like(examples[:, :1]), examples[:, :-1]], dim=1)
    return torch.cat([before, xs], dim=-1)""",
    "newton-step": """@exercises.newton_step
def newton_step(M, S):
    return 2 * M - M @ S @ M""",
    "gd-closed-form": """@exercises.gd_closed_form
def gd_closed_form(S, b, lr, steps):
    w = torch.zeros_like(b)
    for _ in range(steps):
        w = w - lr * (S @ w - b)
    return w""",
}

HEAD = "@exercises.newton_step\ndef newton_step(M, S):\n"
RETURNS = "return 2 * M - M @ S @ M"


def newton_step(body: str, above: str = "") -> str:
    """A cell that defines newton_step by this body, with more ``above`` it."""
    return (f"{above}\n" if above else "") + HEAD + indent(body, "    ")


def asking_without_end(pause):
    """Return an answer that asks for a stand-in again and again, with a pause in seconds between."""
    return f"""
@exercises.gd_closed_form
def gd_closed_form(S, b, lr, steps):
    import time
    from companion.workshop.grading.sandbox import worker
    while True:
        worker.say(worker.PIPES[1], {{"stand_in": ["a", "b"], "named": [], "places": []}})
        worker.hear(worker.PIPES[0])
        time.sleep({pause})
"""
