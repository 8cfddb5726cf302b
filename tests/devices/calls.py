"""A small call of every public function and class of samplers, models, probes and baselines: given it and `Inputs`."""

import torch
from torch import Tensor, nn

from companion.models.addition import Adder, AdderConfig
from companion.models.attention import TokenModelConfig
from companion.models.bigrams import BigramModel, BigramModelConfig
from companion.models.calibration import BiographyModelConfig
from companion.models.decoder import Decoder, DecoderConfig
from companion.models.facts import Bank, BankConfig, Member
from companion.models.graphs import ChannelsConfig, GraphModelConfig
from companion.models.limits import StepModelConfig
from companion.models.lstm import LSTMConfig
from companion.models.memories import FactsConfig
from companion.models.multihead import MultiHeadConfig
from companion.models.regression import RegressorConfig
from companion.models.sensitivity import Classifier, ClassifierConfig
from companion.models.structures import SketchConfig, StructureConfig
from companion.samplers import bigrams, calibration, facts, graphs, multihead, regression
from companion.samplers.addition import Sums

DOUBLE = torch.float64


class Inputs:
    """What a call is given: numbers that are the same on every device, and a generator that is there."""

    def __init__(self, device: torch.device):
        self.device, self.source = device, torch.Generator().manual_seed(0)

    @property
    def generator(self) -> torch.Generator:
        return torch.Generator(device=self.device).manual_seed(0)

    @property
    def seeds(self) -> tuple[int, torch.Generator]:
        """For what is drawn for tensors that are given: a seed, which draws on the CPU, and a generator there."""
        return 0, self.generator

    def normal(self, *shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
        return torch.randn(*shape, generator=self.source, dtype=dtype).to(self.device)

    def shares(self, n: int) -> Tensor:
        weights = torch.rand(n, generator=self.source, dtype=DOUBLE) + 0.1
        return (weights / weights.sum()).to(self.device)

    def whole(self, high: int, *shape: int) -> Tensor:
        return torch.randint(high, shape, generator=self.source).to(self.device)

    def bits(self, *shape: int) -> Tensor:
        return self.whole(2, *shape)

    def signs(self, *shape: int) -> Tensor:
        return 2.0 * self.bits(*shape) - 1

    def graphs(self, n: int = 6) -> Tensor:
        return graphs.erdos_renyi(3, n, 0.1, 0.4, generator=0).to(self.device)

    def prompts(self, n: int = 8, d: int = 3) -> tuple[Tensor, Tensor]:
        return tuple(each.to(self.device) for each in regression.prompts(4, n, d, generator=0)[:2])

    def heads(self, n: int = 40, heads: int = 2) -> tuple[Tensor, Tensor]:
        X = multihead.sequences(n, 2, 4, generator=0)
        return X.to(self.device), multihead.teacher(4, heads, generator=0)(X).to(self.device)

    def world(self) -> facts.World:
        return facts.random_world(6, 2, 3, noise=4, generator=self.generator)

    def model(self, kind: type[nn.Module], *shape: object) -> nn.Module:
        torch.default_generator.manual_seed(0)
        return kind(*shape).to(self.device)

    def adder(self) -> nn.Module:
        return self.model(Adder, AdderConfig(4, 8, 1, 2, False))

    def bigram_model(self) -> BigramModel:
        return self.model(BigramModel, BigramModelConfig(5, 8, 16))

    def bank(self) -> Bank:
        return self.model(Bank, BankConfig((Member(8, 2, 4, 5, 6, 2), Member(6, 1, 4, 0, 4, 1)), 3, 4, 6))

    def decoder(self) -> Decoder:
        return self.model(Decoder, DecoderConfig(8, 2, 2, 8))


def said(kind_and_config, *inputs):
    """What a fresh model says to inputs."""
    return lambda kind, i: i.model(kind, kind_and_config)(*(each(i) for each in inputs))


def trigger_table(i: Inputs) -> bigrams.Bigrams:
    return bigrams.Bigrams("abcde", i.shares(5).repeat(5, 1))


def groups(i: Inputs) -> tuple[Tensor, Tensor]:
    return torch.arange(3, device=i.device), torch.tensor([40, 35, 31], device=i.device)


def searched(i: Inputs, dim: int = 1) -> tuple[Tensor, Tensor]:
    return i.normal(3, 7, dim).clamp(-1, 1), i.normal(3, dim).clamp(-1, 1)


def mean_of_labels(xs: Tensor, ys: Tensor) -> Tensor:
    return ys.cumsum(1) * xs.mean(-1)


def stored_and_found(model: nn.Module, i: Inputs) -> list[Tensor]:
    order, values = model(i.normal(3, 5, 1))
    return [
        order,
        values,
        model.lookups(values, i.normal(3, 1)),
        model.search(i.normal(3, 5, 1), i.normal(3, 1)),
    ]


NUMBERS = "of plain numbers it makes a tensor on the CPU, where it is small"
PART = "it is a part of models that are called"
WORDS = "it gives words, or draws, or works on plain numbers"
CALLS = {
    # -- samplers
    "samplers.addition.sums": lambda f, i: f(6, generator=i.generator),
    "samplers.addition.batch_of": lambda f, i: f(Sums(i.whole(5, 9, 2), i.whole(9, 9)), 4, i.generator),
    "samplers.addition.counting": lambda f, i: f(4, 130, generator=i.generator),
    "samplers.addition.cooccurrences": lambda f, i: f(i.whole(6, 3, 4), 6),
    "samplers.attention.shuffled_facts": lambda f, i: list(f("abcd", hops=2, generator=i.generator)),
    "samplers.attention.repetitions": lambda f, i: f(3, 20, 12, generator=i.generator),
    "samplers.attention.conjunctions": lambda f, i: f(3, 8, generator=i.generator),
    "samplers.bigrams.trigger_sequences": lambda f, i: f(
        3, 8, trigger_table(i), K=2, fixed=False, noise=0.2, generator=i.generator
    ),
    "samplers.bigrams.seen_before": lambda f, i: f(i.whole(5, 2, 9), i.whole(5, 2, 2)),
    "samplers.bigrams.markov_chains": lambda f, i: f(3, 8, 4, generator=i.generator),
    "samplers.bigrams.recurrences": lambda f, i: f(3, 8, 4, generator=i.generator),
    "samplers.calibration.corpus": lambda f, i: f(calibration.even_facts(5, 9), 12, generator=i.generator),
    "samplers.calibration.biographies": lambda f, i: f(5, 3, generator=i.generator),
    "samplers.calibration.multiples": lambda f, i: f(5, 7, generator=i.generator),
    "samplers.facts.random_world": lambda f, i: f(6, 2, 3, generator=i.generator),
    "samplers.facts.sentences": lambda f, i: f(4, i.world(), 6, generator=i.generator),
    "samplers.facts.every_fact": lambda f, i: f(i.world(), 6, rounds=2, generator=i.generator),
    "samplers.facts.counts": lambda f, i: f(i.whole(5, 2, 9), 5),
    "samplers.graphs.erdos_renyi": lambda f, i: f(3, 6, 0.1, 0.5, generator=i.generator),
    "samplers.graphs.disjoint": lambda f, i: [
        f(3, kind, (3, 4), generator=i.generator) for kind in ("chain", "clique", "cycle")
    ],
    "samplers.graphs.reach": lambda f, i: f(i.graphs(), 3),
    "samplers.graphs.connected": lambda f, i: f(i.graphs()),
    "samplers.graphs.within": lambda f, i: f(i.graphs(), 2),
    "samplers.graphs.matched": lambda f, i: [f(i.graphs(), i.bits(3) > 0, generator=each) for each in i.seeds],
    "samplers.limits.words": lambda f, i: f(3, 5, 4, generator=i.generator),
    "samplers.limits.coins": lambda f, i: f(3, 5, generator=i.generator),
    "samplers.limits.turns_and_flips": lambda f, i: f(3, 5, 4, generator=i.generator),
    "samplers.limits.pointers": lambda f, i: f(3, 5, generator=i.generator),
    "samplers.limits.rings": lambda f, i: f(3, 5, generator=i.generator),
    "samplers.limits.crowded_pointers": lambda f, i: f(3, 5, generator=i.generator),
    "samplers.limits.hops_asked": lambda f, i: [f(i.whole(5, 3, 5), 2), f(i.whole(5, 3, 5), i.whole(4, 3))],
    "samplers.limits.letters_and_states": lambda f, i: f(3, 5, 3, generator=i.generator),
    "samplers.limits.turned_round": lambda f, i: f(3, 5, 4, generator=i.generator),
    "samplers.memories.embeddings": lambda f, i: f(5, 4, unit=True, generator=i.generator),
    "samplers.memories.tokens": lambda f, i: [f(i.shares(6), 9, runs=2, generator=each) for each in i.seeds],
    "samplers.memories.sign_patterns": lambda f, i: f(5, 4, generator=i.generator),
    "samplers.memories.flipped": lambda f, i: [f(i.signs(5, 4), 0.3, generator=each) for each in i.seeds],
    "samplers.multihead.Teacher": lambda f, i: f(i.normal(2, 4, 4), i.normal(2, 4, 4))(i.normal(5, 2, 4)),
    "samplers.multihead.teacher": lambda f, i: f(4, 2, generator=i.generator),
    "samplers.multihead.cancelling_teacher": lambda f, i: f(4, rank=1, generator=i.generator),
    "samplers.multihead.sequences": lambda f, i: f(5, 2, 4, generator=i.generator),
    "samplers.multihead.with_noise": lambda f, i: [f(i.normal(5, 2, 4), 0.1, generator=each) for each in i.seeds],
    "samplers.multihead.hostile": lambda f, i: [f(kind, 6, 2, 4, generator=i.generator) for kind in multihead.HOSTILE],
    "samplers.regression.prompts": lambda f, i: f(3, 5, 4, kappa=9.0, noise=0.1, generator=i.generator),
    "samplers.regression.prompts_with_spectrum": lambda f, i: f(3, 6, i.shares(3), generator=i.generator),
    "samplers.sensitivity.Sparse": lambda f, i: f(i.bits(8), i.whole(6, 3))(i.bits(4, 6)),
    "samplers.sensitivity.truth_table": lambda f, i: f("random", 3, generator=i.generator),
    "samplers.sensitivity.strings": lambda f, i: f(3, 5, generator=i.generator),
    "samplers.sensitivity.turned": lambda f, i: [f(i.bits(3, 5), 0.3, generator=each) for each in i.seeds],
    "samplers.sensitivity.writes": lambda f, i: f(3, 5, generator=i.generator),
    "samplers.sensitivity.last_write": lambda f, i: f(i.whole(3, 4, 6)),
    "samplers.sensitivity.another": lambda f, i: [f(i.whole(3, 4, 6), 3, generator=each) for each in i.seeds],
    "samplers.sensitivity.patches": lambda f, i: f(i.normal(2, 8, 8)),
    "samplers.sensitivity.pixels": lambda f, i: f(i.normal(2, 16, 4)),
    "samplers.sensitivity.corrupted": lambda f, i: [
        f(i.normal(3, 8, 8), kind, generator=each)
        for each in i.seeds
        for kind in ("noise", "salt and pepper", "blur", "shift", "occlusion", "contrast")
    ],
    "samplers.structures.uniform": lambda f, i: f(2, 5, 2, queries=2, generator=i.generator),
    "samplers.structures.zipf_queries": lambda f, i: f(2, 5, queries=2, generator=i.generator),
    "samplers.structures.sphere": lambda f, i: f(2, 5, 3, generator=i.generator),
    "samplers.structures.hard": lambda f, i: f(2, 3, generator=i.generator),
    "samplers.structures.hard_coordinates": lambda f, i: f(2, 3, generator=i.generator),
    "samplers.structures.redrawn": lambda f, i: f(i.normal(3, 64), i.generator),
    "samplers.structures.numbers": lambda f, i: f(2, 5, generator=i.generator),
    "samplers.structures.pictures": lambda f, i: f(i.whole(200, 2, 5), i.whole(200, 2), generator=i.generator),
    "samplers.structures.problems": lambda f, i: [f(kind, 7)(2, i.generator) for kind in ("line", "hard-plane")],
    "samplers.structures.gumbel": lambda f, i: f(2, 5, generator=i.generator),
    "samplers.structures.with_copies": lambda f, i: f(i.normal(2, 3, 1), i.whole(3, 2, 4), 7, i.generator),
    "samplers.structures.zipf_streams": lambda f, i: f(2, 9, 5, generator=i.generator),
    "samplers.structures.item_counts": lambda f, i: f(i.whole(5, 2, 9), 5),
    # -- models
    "models.addition.Adder": said(AdderConfig(4, 8, 1, 2, False), lambda i: i.whole(4, 3, 2)),
    "models.attention.BitHeads": lambda f, i: i.model(f, 2, 5)(i.signs(2, 4, 5)),
    "models.attention.BitMLPs": lambda f, i: i.model(f, 2, 5)(i.signs(2, 4, 5)),
    "models.attention.TokenModel": said(TokenModelConfig(5, 8, 8, 1, 2), lambda i: i.whole(5, 3, 8)),
    "models.bigrams.BigramModel": said(BigramModelConfig(5, 8, 16), lambda i: i.whole(5, 3, 8)),
    "models.calibration.BiographyModel": said(BiographyModelConfig(4, 8), lambda i: i.whole(4, 3, 2)),
    "models.decoder.Decoder": lambda f, i: [
        i.model(f, DecoderConfig(8, 2, 2, 8, attention=attention))(i.normal(2, 6, 8))
        for attention in ("softmax", "linear", "gated", "delta", "lstm")
    ],
    "models.decoder.delta_rule": lambda f, i: f(
        i.normal(2, 6, 4), i.normal(2, 6, 4), i.normal(2, 6, 4), i.shares(12).view(2, 6, 1).float()
    ),
    "models.facts.Bank": lambda f, i: i.bank()(i.whole(9, 2, 4, 6)),
    "models.facts.LinearRecaller": lambda f, i: i.model(f, 5, 3)(i.normal(2, 5)),
    "models.graphs.Channels": said(ChannelsConfig(2, 2), lambda i: i.graphs()[:, None]),
    "models.graphs.GraphModel": said(GraphModelConfig(6, 8), lambda i: i.graphs()),
    "models.limits.StepModel": said(StepModelConfig(5, 12, 8), lambda i: i.whole(5, 3, 6)),
    "models.lstm.LSTM": said(LSTMConfig(8, 2), lambda i: i.normal(2, 6, 8)),
    "models.memories.Facts": said(FactsConfig(6, 4), lambda i: i.whole(6, 3)),
    "models.multihead.MultiHead": said(MultiHeadConfig(4, 2), lambda i: i.normal(5, 2, 4, dtype=DOUBLE)),
    "models.regression.InContextRegressor": said(
        RegressorConfig(3, 8, 8, 1, 2), lambda i: i.prompts()[0], lambda i: i.prompts()[1]
    ),
    "models.regression.StateRegressor": said(
        RegressorConfig(3, 8, 16, 1, 2), lambda i: i.prompts()[0], lambda i: i.prompts()[1]
    ),
    "models.sensitivity.Classifier": said(ClassifierConfig("lstm", 6), lambda i: i.normal(3, 6, 2)),
    "models.sensitivity.one_hot": lambda f, i: f(i.whole(4, 3, 6), 4),
    "models.sensitivity.uniform_weights": lambda f, i: [
        f(i.model(Classifier, ClassifierConfig("transformer", 6)), 1.0, generator=each) for each in i.seeds
    ],
    "models.structures.soft_sort": lambda f, i: f(i.normal(2, 5)),
    "models.structures.Encoder": lambda f, i: i.model(f)(i.normal(2, 192)),
    "models.structures.Structure": lambda f, i: stored_and_found(i.model(f, StructureConfig(5, 1, 2, extra=2)), i),
    "models.structures.Sketch": said(SketchConfig(5, 6, 2), lambda i: i.whole(5, 2, 9)),
}
ELSEWHERE = {
    "samplers.calibration.even_facts": NUMBERS,
    "samplers.calibration.zipf_facts": NUMBERS,
    "samplers.memories.zipf": NUMBERS,
    "samplers.multihead.parity_teacher": NUMBERS,
    "samplers.sensitivity.cube": NUMBERS,
    "models.decoder.Attention": PART,
    "models.decoder.Block": PART,
    "models.decoder.Recurrence": PART,
    "models.door.Door": PART,
    "models.decoder.hook_names": WORDS,
    "models.door.listed": WORDS,
}
