"""Shares of the logits and filters against layers run by hand; accuracy by a loop; probes against least
squares.
"""

import math

import numpy as np
import pytest
import torch
from refusals import refusals

from companion.topics.addition.fourier import band_filter, basis
from companion.topics.addition.model import Adder, AdderConfig
from companion.topics.addition.probes import accuracies, contributions, filtered, modular_probe, read_out

OPERANDS = torch.tensor([[0, 11], [7, 7], [2, 9], [11, 11], [3, 5]])


@pytest.fixture
def adder():
    """An adder whose norms do something."""
    adder = Adder(AdderConfig(numbers=12, width=32, layers=3, heads=4, frozen=False), torch.randn(23, 32))
    with torch.no_grad():
        adder.decoder.norm.weight.copy_(1 + 0.5 * torch.randn(32))
        adder.decoder.norm.bias.copy_(torch.randn(32))
    return adder


def additions(adder, attention=None, mlp=None):
    """What enters the stream at the last token, in order, each layer run by hand."""
    stream = adder.embed(OPERANDS) + adder.decoder.positions
    added = [stream]
    for block in adder.decoder.blocks:
        for output, projection in ((lambda x, b=block: b.attention(b.norm1(x)), attention), (block.mlp, mlp)):
            out = output(stream)
            added.append(out if projection is None else out @ projection)
            stream = stream + added[-1]
    return torch.stack(added).detach()[:, :, -1]


def normed(adder, stream):
    """The final norm, in NumPy."""
    stream, norm = stream.double().numpy(), adder.decoder.norm
    centred = stream - stream.mean(-1, keepdims=True)
    scale = np.sqrt((centred**2).mean(-1, keepdims=True) + norm.eps)
    return centred / scale * norm.weight.detach().numpy() + norm.bias.detach().numpy()


def hooks(adder):
    return sum(len(functions) for functions in adder.at.hooks.values())


def test_contributions_sum_to_the_logits(adder):
    found = contributions(adder, OPERANDS)
    assert found.shape == (7, 5, 23)
    torch.testing.assert_close(found.sum(0), adder(OPERANDS).detach(), atol=1e-4, rtol=0)
    assert hooks(adder) == 0


def test_each_contribution_is_that_of_what_its_module_adds(adder):
    added, norm = additions(adder), adder.decoder.norm
    table, weight, bias = (each.detach().double().numpy() for each in (adder.numbers, norm.weight, norm.bias))
    for found, module, first in zip(
        contributions(adder, OPERANDS), added.double().numpy(), [1, 0, 0, 0, 0, 0, 0], strict=True
    ):
        for p in range(5):
            scale = np.sqrt(added[:, p].double().sum(0).numpy().var() + norm.eps)
            expected = table @ ((module[p] - module[p].mean()) / scale * weight + first * bias)
            np.testing.assert_allclose(found[p], expected, atol=1e-4)


def test_logits_are_read_by_one_map_up_to_a_scale_and_a_bias(adder):
    stream, norm = additions(adder).double().sum(0), adder.decoder.norm
    table, bias = adder.numbers.detach().double(), norm.bias.detach().double()
    scale = torch.tensor(np.sqrt(stream.numpy().var(1) + norm.eps))
    expected = torch.tensor(normed(adder, stream)) @ table.mT
    torch.testing.assert_close(
        stream @ read_out(adder).double().mT / scale[:, None] + table @ bias, expected, atol=1e-4, rtol=0
    )
    np.testing.assert_allclose(read_out(adder).sum(1), 0, atol=1e-5)


def test_a_band_filter_takes_the_band_from_what_its_modules_say(adder):
    waves = basis(23, range(3)).float()
    with filtered(adder, mlp=band_filter(read_out(adder), range(3))):
        attention, mlp = (contributions(adder, OPERANDS)[start::2] for start in (1, 2))
    assert (mlp @ waves.mT).abs().max() < 1e-4 < mlp.abs().max()
    assert (attention @ waves.mT).abs().max() > 0.1


@pytest.mark.parametrize("which", [("attention",), ("mlp",), ("attention", "mlp")])
def test_a_filter_acts_on_its_modules_alone(adder, which):
    projections = {name: torch.randn(32, 32) / 6 for name in which}
    expected = normed(adder, additions(adder, **projections).sum(0)) @ adder.numbers.detach().double().numpy().T
    whole = adder(OPERANDS)
    with filtered(adder, **projections) as inside:
        assert inside is adder
        found = adder(OPERANDS).detach()
        parts = contributions(adder, OPERANDS)
    np.testing.assert_allclose(found, expected, atol=1e-3)
    torch.testing.assert_close(parts.sum(0), found, atol=1e-3, rtol=0)  # what is read is what came through the filter
    assert hooks(adder) == 0
    assert torch.equal(adder(OPERANDS), whole)
    assert not torch.allclose(found, whole, atol=0.1)


def test_without_its_modules_only_the_embedding_speaks(adder):
    nothing = torch.zeros(32, 32)
    with filtered(adder, attention=nothing, mlp=nothing):
        parts, found = contributions(adder, OPERANDS), adder(OPERANDS).detach()
    assert not parts[1:].any()
    torch.testing.assert_close(parts[0], found, atol=1e-4, rtol=0)


def test_no_hook_is_left_behind_by_what_fails(adder):
    with pytest.raises(KeyError), filtered(adder, attention=torch.eye(32), mlp=torch.eye(32)):
        assert hooks(adder) == 6
        raise KeyError
    assert hooks(adder) == 0
    with pytest.raises(ValueError, match="operands: 16 is out of range"):
        contributions(adder, OPERANDS + 5)
    with pytest.raises(RuntimeError), filtered(adder, mlp=torch.zeros(31, 31)):
        contributions(adder, OPERANDS)
    assert hooks(adder) == 0


def test_accuracy_is_counted():
    answers = torch.randint(60, (400,))
    off = torch.tensor([0, 0, 0, 1, -2, 3, 10, -10, 20, -11])[torch.randint(10, (400,))]
    logits = torch.randn(400, 120)
    guesses = answers + 30 + off
    logits[torch.arange(400), guesses] = 9.0
    found = accuracies(logits, answers + 30)
    counted = {"right": 0, "2": 0, "10": 0, "wrong": 0, "wrong 2": 0, "wrong 10s": 0}
    for each in off.tolist():
        counted["right"] += each == 0
        counted["2"] += -2 <= each <= 2
        counted["10"] += -10 <= each <= 10
        counted["wrong"] += each != 0
        counted["wrong 2"] += each in (-2, -1, 1, 2)
        counted["wrong 10s"] += each in (-20, -10, 10, 20)
    shares = [counted[name] / 400 for name in ("right", "2", "10")] + [
        counted[name] / counted["wrong"] for name in ("wrong 2", "wrong 10s")
    ]
    assert list(found) == pytest.approx(shares)


def test_without_an_error_nothing_is_said_of_errors():
    found = accuracies(10 * torch.eye(5), torch.arange(5))
    assert found[:3] == (1, 1, 1)
    assert all(math.isnan(share) for share in found[3:])


@pytest.mark.parametrize("modulus", [2, 3, 7])
def test_planted_residues_are_read(modulus):
    residues = torch.nn.functional.one_hot(torch.arange(150) % modulus, modulus).double()
    mixed = (
        torch.cat([residues, 0.3 * torch.randn(150, 8)], 1)
        @ torch.linalg.qr(torch.randn(modulus + 8, modulus + 8).double())[0]
    )
    assert modular_probe(mixed, modulus) == 1.0
    assert modular_probe(mixed.float(), modulus, generator=3) == 1.0


@pytest.mark.parametrize("modulus", [2, 5])
def test_chance_is_one_in_the_modulus(modulus):
    shares = [modular_probe(torch.randn(200, 20), modulus, generator=seed) for seed in range(20)]
    assert np.mean(shares) == pytest.approx(1 / modulus, abs=0.04)


@pytest.mark.parametrize(("modulus", "folds", "ridge"), [(3, 5, 1e-3), (5, 4, 0.3)])
def test_the_probe_is_least_squares_with_a_penalty(modulus, folds, ridge):
    angles = 2 * np.pi * np.arange(70) / modulus
    embeddings = 0.6 * np.random.default_rng(1).normal(size=(70, 6))
    embeddings[:, 0] += np.cos(angles)
    embeddings[:, 1] += np.sin(angles)
    x = (embeddings - embeddings.mean(0)) / (embeddings - embeddings.mean(0)).std(ddof=1)
    x, right = np.column_stack([x, np.ones(70)]), 0
    for held in np.array_split(torch.randperm(70, generator=torch.Generator().manual_seed(4)).numpy(), folds):
        fit = np.setdiff1d(np.arange(70), held)
        penalty = np.sqrt(ridge * len(fit)) * np.eye(7)  # as further observations, all to be 0
        wanted = np.concatenate([np.eye(modulus)[fit % modulus], np.zeros((7, modulus))])
        solution = np.linalg.lstsq(np.concatenate([x[fit], penalty]), wanted, rcond=None)[0]
        right += ((x[held] @ solution).argmax(1) == held % modulus).sum()
    found = modular_probe(torch.tensor(embeddings), modulus, folds=folds, ridge=ridge, generator=4)
    assert found == pytest.approx(right / 70)
    assert 1 / modulus + 0.1 < found < 1


test_bad_arguments_are_named_with_their_value = refusals(
    (lambda: modular_probe(torch.randn(9, 2), 1), "modulus = 1: must be at least 2"),
    (lambda: modular_probe(torch.randn(9, 2), 3, folds=1), "folds = 1: must be at least 2"),
)
