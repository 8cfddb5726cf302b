"""Speed of the sampler as a ratio to a plain version, in the same run: ``pytest tests/benchmarks --benchmark-enable``
prints it.

The plain version draws each token by itself, with one categorical draw, as one writes it first. Both must draw from the
same distribution, which every run of the tests asserts on fewer sequences; no test asserts a time.
"""

import numpy as np
import torch

from companion.topics.bigrams.data import Bigrams, trigger_sequences

TABLE, K = Bigrams.shakespeare(), 5


def one_by_one(batch, length, seed):
    """A loop over sequences and tokens, one categorical draw each."""
    rng, triggers = np.random.default_rng(seed), TABLE.most_frequent(K).tolist()
    unigram, bigram = TABLE.unigram.numpy(), TABLE.bigram.numpy()
    batches = []
    for _ in range(batch):
        outputs = dict(zip(triggers, rng.integers(TABLE.N, size=K).tolist(), strict=True))
        tokens = [rng.choice(TABLE.N, p=unigram)]
        for _ in range(length):
            here = int(tokens[-1])
            tokens.append(outputs[here] if here in outputs else rng.choice(TABLE.N, p=bigram[here]))
        batches.append(tokens)
    return torch.tensor(np.array(batches))


def test_sequences_against_one_draw_a_token(benchmark, ratio):
    batch, length = (512, 256) if benchmark.enabled else (100, 60)
    ours, plain = ratio(
        "trigger-bigram sampler",
        lambda: trigger_sequences(batch, length, TABLE, K=K, generator=1).tokens,
        lambda: one_by_one(batch, length, 1),
    )
    assert ours.shape == plain.shape
    shares = [torch.bincount(tokens.flatten(), minlength=TABLE.N) / tokens.numel() for tokens in (ours, plain)]
    assert (shares[0] - shares[1]).abs().sum() < 0.25
