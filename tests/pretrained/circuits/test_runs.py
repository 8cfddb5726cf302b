"""A run with parts resampled is what hooks on the whole model give; pairs that cannot be used are refused by name."""

from contextlib import ExitStack
from random import Random

import pytest
import torch
from refusals import refusals
from tiny_circuits import planted_runs, said_twice, taught

from companion.core.circuits import Part, ablation, wire
from companion.core.llama import Llama, LlamaConfig
from companion.pretrained.circuits.parts import Circuit
from companion.pretrained.circuits.runs import PromptPairs, Runs, draw, kept_share


def pair(random):
    """Six tokens, of which the third is another one."""
    *clean, other = random.sample(range(20), 7)
    return clean, [*clean[:2], other, *clean[3:]], [random.randrange(10)], [random.randrange(10, 20)]


@pytest.fixture(scope="module")
def runs():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = Llama(LlamaConfig(20, 16, layers=3, heads=4, key_heads=2, hidden=12, context=8))
    return Runs(model.requires_grad_(False), draw(model, pair, 25))


def by_hooks(runs: Runs, circuit: Circuit) -> torch.Tensor:
    """The difference where hooks resample all but the circuit; and of a head with wires all but these."""
    differences = []
    for tokens, others in zip(runs.prompts.clean, runs.prompts.corrupted, strict=True):
        wanted = [f"blocks.{layer}.{name}" for layer in range(3) for name in ("attn.hook_z", "hook_mlp_out")]
        written = [part.written for part in runs.parts]
        _, cache = runs.model.run_with_cache(others, names=[*wanted, *written])
        with ExitStack() as stack:
            for part in set(runs.parts) - set(circuit.parts):
                name = part.written.replace("hook_result", "hook_z")
                stack.enter_context(runs.model.hooks(ablation(name, "resample", head=part.head, other=cache[name])))
            for reader in {wire.reader for wire in circuit.wires}:
                for writer in (part for part in circuit.parts if part.layer < reader.layer):
                    for side in ("queries", "keys", "values"):
                        if (writer, reader, side) not in circuit.wires:
                            other = writer.of(cache[writer.written])
                            stack.enter_context(runs.model.hooks(wire(writer, reader, side, other=other)))
            logits = runs.model(tokens)[:, -1]
        at = slice(len(differences), len(differences) + len(tokens))
        rows = torch.arange(len(tokens))
        differences += (logits[rows, runs.prompts.right[at]] - logits[rows, runs.prompts.wrong[at]]).tolist()
    return torch.tensor(differences)


@pytest.mark.parametrize(
    "names",
    [
        ["0.1", "m0", "1.2", "m2"],
        ["m1", "2.0", "2.3"],
        ["0.1", "0.2", "m0", "m1", "0.1 -> 1.2 by keys", "m0 -> 1.2 by values", "0.2 -> 2.0 by queries"],
    ],
)
def test_a_run_is_what_hooks_give(runs, names):
    circuit = Circuit.read(names)
    torch.testing.assert_close(runs.run(circuit).difference, by_hooks(runs, circuit), rtol=1e-4, atol=1e-5)


def test_runs_go_on_from_what_earlier_ones_have_in_common(runs):
    random = Random(0)
    for _ in range(20):
        circuit = Circuit(tuple(part for part in runs.parts if random.random() < 0.8))
        alone = Runs(runs.model, runs.prompts).run(circuit).difference
        torch.testing.assert_close(runs.run(circuit).difference, alone)


def test_the_whole_model_keeps_all_and_nothing_keeps_nothing(runs):
    assert [len(group) for group in runs.prompts.clean] == [20, 5] and runs.groups[0].start == 2
    whole, none = runs.run(Circuit(tuple(runs.parts))), runs.run(Circuit(()))
    torch.testing.assert_close(whole.difference, runs.clean.difference, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(none.probability, runs.corrupted.probability)
    assert runs.share(whole) == pytest.approx(1, abs=1e-4) and runs.share(none) == 0
    assert len(runs.without(Circuit.read(["0.0", "m2"])).parts) == len(runs.parts) - 2


def test_the_share_is_a_ratio_of_means():
    kept, clean, corrupted = torch.tensor([[3.0, 1.0], [4.0, 4.0], [0.0, 0.0]])
    assert kept_share(kept, clean, corrupted) == 0.5


def test_a_decoder_without_mlps_and_a_llama_in_double_run_too():
    assert len(taught().parts) == 8 and taught().clean.first.float().mean() > 0.9
    runs, *_ = planted_runs("keys")
    assert runs.clean.difference.dtype == torch.float64 and Part(1) in runs.parts


test_circuits_that_are_not_there_are_refused = refusals(
    (["2.0"], r"'2.0': there is no such head; the model has heads up to 1.3"),
    (["1.4"], r"'1.4': there is no such head; the model has heads up to 1.3"),
    (["m0"], r"'m0': there is no such MLP; the model has no MLPs"),
    of=lambda names: taught().run(Circuit.read(names)),
)
test_pairs_that_cannot_be_used_are_refused = refusals(
    (
        lambda random: ([1, random.randrange(20)], [1, 2, 3], [4], [5]),
        r"has 2 tokens and \(1, 2, 3\) 3; the two prompts",
    ),
    (lambda random: ([1, random.randrange(20)], [1, 40], [4], [4, 5]), "must begin with different tokens"),
    (lambda random: ([1, random.randrange(20)], [1, 40], [4], [5]), r"\(4,\) is right in every pair"),
    (lambda random: ([1, 2], [1, 3], [random.randrange(5)], [5]), "draws 5 different pairs; must draw at least 8"),
    (lambda random: (3 * [random.randrange(20)],) * 2 + ([4], [5]), "the clean and the corrupted prompt are both"),
    (lambda random: (f"{random.randrange(20)}", "a", "b", "c"), "is a text, and TokenModel has no tokenizer"),
    (lambda random: "one text", r"returned 'one text'; must be \(clean prompt, corrupted prompt"),
    of=lambda behaviour: draw(taught().model, behaviour, 10),
)


def test_a_model_of_another_kind_or_broken_is_refused():
    with pytest.raises(ValueError, match="count = 3: must be at least 8"):
        draw(taught().model, said_twice, 3)
    model = Llama(LlamaConfig(20, 16, 1, 2, 2, 12, 8)).requires_grad_(False)
    model.norm.weight.fill_(torch.nan)
    tokens = torch.tensor([[1, 2], [1, 3]])
    with pytest.raises(ValueError, match="not finite numbers"):
        Runs(model, PromptPairs([tokens], [tokens.flip(0)], torch.tensor([4, 5]), torch.tensor([5, 4])))
