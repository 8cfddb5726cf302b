"""Speed as a ratio to a plain version, in the same run: ``pytest tests/benchmarks --benchmark-enable`` prints the
ratios.

Both must give the same answers, which every run of the tests asserts on fewer prompts; no test asserts a time.
"""

import time

import numpy as np
import pytest
import torch
from torch import nn

from companion.topics.regression import baselines
from companion.topics.regression.data import prompts
from companion.topics.regression.model import InContextRegressor, RegressorConfig

N, D = 41, 20


@pytest.fixture
def batch(benchmark):
    return prompts(64 if benchmark.enabled else 2, N, D, dtype=torch.float64)[:2]


def each_prefix(xs, ys, solve):
    """The plain version: one prompt and one prefix after the other; ``solve`` gives a row of weights for each step."""
    return torch.stack(
        [torch.stack([solve(x[:t], y[:t]) for t in range(N)], dim=1) for x, y in zip(xs, ys, strict=True)], dim=1
    )


def newton_loop(X, y, k):
    """k steps for one prefix: a function of k, as one writes it, which is called for each k that is wanted."""
    S = X.T @ X
    M = S / torch.linalg.matrix_norm(S @ S.T).clamp_min(1e-300)
    for _ in range(k):
        M = 2 * M - M @ S @ M
    return M @ (X.T @ y)


def newton_loop_kept(X, y, steps):
    """The same with every step's result kept: one pass over the steps."""
    S, ws = X.T @ X, []
    M = S / torch.linalg.matrix_norm(S @ S.T).clamp_min(1e-300)
    for _ in steps:
        M = 2 * M - M @ S @ M
        ws.append(M @ (X.T @ y))
    return torch.stack(ws)


def descent_loop(X, y):
    w = torch.zeros(D, dtype=X.dtype)
    for _ in range(50):
        w = w - 0.01 * (X.T @ (X @ w - y))
    return w[None]


def online_loop(X, y):
    w = torch.zeros(D, dtype=X.dtype)
    for x, label in zip(X, y, strict=True):
        w = w + (label - w @ x) / (x @ x) * x
    return w[None]


@pytest.mark.parametrize("plain", ["a call for each k", "every step kept"])
def test_newton_steps_1_to_23(ratio, batch, plain):
    steps = range(1, 24)
    loops = {
        "a call for each k": lambda X, y: torch.stack([newton_loop(X, y, k) for k in steps]),
        "every step kept": lambda X, y: newton_loop_kept(X, y, steps),
    }
    ours, expected = ratio(
        f"Newton 1..23, {plain}", lambda: baselines.newton(*batch, steps), lambda: each_prefix(*batch, loops[plain])
    )
    torch.testing.assert_close(ours, expected, rtol=0, atol=1e-8)


def test_gradient_descent_50_steps(ratio, batch):
    ours, plain = ratio(
        "GD 50 steps", lambda: baselines.gradient_descent(*batch, [50]), lambda: each_prefix(*batch, descent_loop)
    )
    torch.testing.assert_close(ours, plain, rtol=0, atol=1e-10)


def test_online_gradient_descent(ratio, batch):
    ours, plain = ratio(
        "OGD", lambda: baselines.online_gradient_descent(*batch)[None], lambda: each_prefix(*batch, online_loop)
    )
    torch.testing.assert_close(ours, plain)


def test_least_squares(ratio, batch):
    """The plain version is already batched over prompts: a loop over prefixes with LAPACK's minimum-norm solver."""
    xs, ys = batch

    def plain():
        ws = torch.zeros_like(xs)
        for t in range(1, N):
            ws[:, t] = torch.linalg.lstsq(xs[:, :t], ys[:, :t, None], driver="gelsd").solution[..., 0]
        return ws

    ours, expected = ratio("OLS", lambda: baselines.least_squares(xs, ys), plain)
    torch.testing.assert_close(ours, expected, rtol=1e-6, atol=1e-6)


class Published(nn.Module):
    """The published architecture on Hugging Face's GPT-2: linear maps in and out, prompts interleaved."""

    def __init__(self, width, layers, heads):
        super().__init__()
        from transformers import GPT2Config, GPT2Model

        config = GPT2Config(
            n_positions=2 * N,
            n_embd=width,
            n_layer=layers,
            n_head=heads,
            resid_pdrop=0,
            embd_pdrop=0,
            attn_pdrop=0,
            use_cache=False,
        )
        self.read_in, self.backbone, self.read_out = nn.Linear(D, width), GPT2Model(config), nn.Linear(width, 1)

    def forward(self, xs, ys):
        labels = torch.cat([ys[..., None], ys.new_zeros(*ys.shape, D - 1)], dim=-1)
        tokens = torch.stack([xs, labels], dim=2).flatten(1, 2)
        return self.read_out(self.backbone(inputs_embeds=self.read_in(tokens)).last_hidden_state)[:, ::2, 0]


@pytest.mark.filterwarnings("default")  # the library's own deprecations are not ours to mend
@pytest.mark.parametrize("tokens", ["triplet", "interleaved"])
def test_training_step_against_gpt2(benchmark, capsys, tokens):
    """One step of Adam, batch 64, six layers of width 128; the two take turns, so that a busy machine slows both."""
    pytest.importorskip(
        "transformers", reason="the plain version of this benchmark is transformers' GPT-2 (extra: pretrained)"
    )
    size = {"width": 128, "layers": 6, "heads": 4} if benchmark.enabled else {"width": 16, "layers": 1, "heads": 2}
    xs, ys, _ = prompts(64 if benchmark.enabled else 2, N, D)

    def step_of(model):
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)

        def step():
            loss = (model(xs, ys) - ys).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return loss.item()

        return step

    ours, plain = (
        step_of(InContextRegressor(RegressorConfig(d=D, n=N, tokens=tokens, **size))),
        step_of(Published(**size)),
    )
    seconds = {ours: [], plain: []}
    for _ in range(6 if benchmark.enabled else 1):
        for step, taken in seconds.items():
            started = time.perf_counter()
            assert np.isfinite(step())
            taken.append(time.perf_counter() - started)
    benchmark(ours)
    if benchmark.enabled:
        benchmark.extra_info["ratio"] = faster = np.median(seconds[plain][1:]) / np.median(seconds[ours][1:])
        with capsys.disabled():
            print(f"\ntraining step, {tokens}: {faster:.2f} times as fast as GPT2Model")
