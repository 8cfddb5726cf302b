"""A small call of every public function and class of samplers, models, probes and baselines: given it and `Inputs`."""

import torch
from torch import Tensor, nn

from companion.core.circuits import Part
from companion.core.decoder import Decoder, DecoderConfig
from companion.core.hooks import Hook
from companion.core.llama import Llama, LlamaConfig, Rotation
from companion.core.lstm import LSTMConfig
from companion.core.task import tasks
from companion.topics.addition.data import Sums
from companion.topics.addition.model import Adder, AdderConfig
from companion.topics.attention.model import TokenModelConfig
from companion.topics.bigrams import data as bigrams
from companion.topics.bigrams.model import BigramModel, BigramModelConfig
from companion.topics.calibration import data as calibration
from companion.topics.calibration.model import BiographyModelConfig
from companion.topics.facts import data as facts
from companion.topics.facts.model import Bank, BankConfig, Member
from companion.topics.graphs import data as graphs
from companion.topics.graphs.model import ChannelsConfig, GraphModelConfig
from companion.topics.limits.model import StepModelConfig
from companion.topics.memories.model import FactsConfig
from companion.topics.multihead import data as multihead
from companion.topics.multihead.model import MultiHeadConfig
from companion.topics.regression import data as regression
from companion.topics.regression.model import RegressorConfig
from companion.topics.sensitivity.model import Classifier, ClassifierConfig
from companion.topics.structures.model import SketchConfig, StructureConfig

DOUBLE = torch.float64
LLAMA = LlamaConfig(5, 8, 2, 4, 2, 6, 8)


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

    def llama(self) -> Llama:
        return self.model(Llama, LLAMA)

    def hooked(self, hooks: dict[str, Hook]) -> Tensor:
        with (model := self.decoder()).hooks(hooks):
            return model(self.normal(2, 6, 8))


def said(kind_and_config, *inputs):
    """What a fresh model says to inputs."""
    return lambda kind, i: i.model(kind, kind_and_config)(*(each(i) for each in inputs))


def trigger_table(i: Inputs) -> bigrams.Bigrams:
    return bigrams.Bigrams("abcde", i.shares(5).repeat(5, 1))


def stored_and_found(model: nn.Module, i: Inputs) -> list[Tensor]:
    order, values = model(i.normal(3, 5, 1))
    return [order, values, model.lookups(values, i.normal(3, 1)), model.search(i.normal(3, 5, 1), i.normal(3, 1))]


NUMBERS = "of plain numbers it makes a tensor on the CPU, where it is small"
PART = "it is a part of models that are called"
WORDS = "it gives words, or draws, or works on plain numbers"
CALLS = {
    # -- samplers
    "topics.addition.data.sums": lambda f, i: f(6, generator=i.generator),
    "topics.addition.data.batch_of": lambda f, i: f(Sums(i.whole(5, 9, 2), i.whole(9, 9)), 4, i.generator),
    "topics.addition.data.counting": lambda f, i: f(4, 130, generator=i.generator),
    "topics.addition.data.cooccurrences": lambda f, i: f(i.whole(6, 3, 4), 6),
    "topics.attention.data.shuffled_facts": lambda f, i: list(f("abcd", hops=2, generator=i.generator)),
    "topics.attention.data.families": lambda f, i: list(f(i.generator)),
    "topics.attention.data.repetitions": lambda f, i: f(3, 20, 12, generator=i.generator),
    "topics.attention.data.conjunctions": lambda f, i: f(3, 8, generator=i.generator),
    "topics.bigrams.data.trigger_sequences": lambda f, i: f(
        3, 8, trigger_table(i), K=2, fixed=False, noise=0.2, generator=i.generator
    ),
    "topics.bigrams.data.seen_before": lambda f, i: f(i.whole(5, 2, 9), i.whole(5, 2, 2)),
    "topics.bigrams.data.markov_chains": lambda f, i: f(3, 8, 4, generator=i.generator),
    "topics.bigrams.data.recurrences": lambda f, i: f(3, 8, 4, generator=i.generator),
    "topics.calibration.data.corpus": lambda f, i: f(calibration.even_facts(5, 9), 12, generator=i.generator),
    "topics.calibration.data.biographies": lambda f, i: f(5, 3, generator=i.generator),
    "topics.facts.data.random_world": lambda f, i: f(6, 2, 3, generator=i.generator),
    "topics.facts.data.sentences": lambda f, i: f(4, i.world(), 6, generator=i.generator),
    "topics.facts.data.every_fact": lambda f, i: f(i.world(), 6, rounds=2, generator=i.generator),
    "topics.facts.data.counts": lambda f, i: f(i.whole(5, 2, 9), 5),
    "topics.language.data.indirect_objects": lambda f, i: f(4, generator=i.generator),
    "topics.language.data.hop_questions": lambda f, i: f("two hops", 4, generator=i.generator),
    "topics.language.data.mood_questions": lambda f, i: f(4, generator=i.generator),
    "topics.language.data.invented_countries": lambda f, i: f(4, generator=i.generator),
    "topics.language.data.paragraphs": lambda f, i: f(),
    "topics.language.data.said_again": lambda f, i: f(3, 12, 20, generator=i.generator),
    "topics.graphs.data.erdos_renyi": lambda f, i: f(3, 6, 0.1, 0.5, generator=i.generator),
    "topics.graphs.data.disjoint": lambda f, i: [
        f(3, kind, (3, 4), generator=i.generator) for kind in ("chain", "clique", "cycle")
    ],
    "topics.graphs.data.reach": lambda f, i: f(i.graphs(), 3),
    "topics.graphs.data.connected": lambda f, i: f(i.graphs()),
    "topics.graphs.data.within": lambda f, i: f(i.graphs(), 2),
    "topics.graphs.data.matched": lambda f, i: [f(i.graphs(), i.bits(3) > 0, generator=each) for each in i.seeds],
    "topics.layers.data.written_twice": lambda f, i: f(tasks("smoke")["recall"]).draw(3, i.generator, 2),
    "topics.limits.data.words": lambda f, i: f(3, 5, 4, generator=i.generator),
    "topics.limits.data.coins": lambda f, i: f(3, 5, generator=i.generator),
    "topics.limits.data.turns_and_flips": lambda f, i: f(3, 5, 4, generator=i.generator),
    "topics.limits.data.pointers": lambda f, i: f(3, 5, generator=i.generator),
    "topics.limits.data.rings": lambda f, i: f(3, 5, generator=i.generator),
    "topics.limits.data.crowded_pointers": lambda f, i: f(3, 5, generator=i.generator),
    "topics.limits.data.hops_asked": lambda f, i: [f(i.whole(5, 3, 5), 2), f(i.whole(5, 3, 5), i.whole(4, 3))],
    "topics.limits.data.unlike_neighbours": lambda f, i: f(3, 5, 4, generator=i.generator),
    "topics.limits.data.found_pointers": lambda f, i: f(i.whole(4, 3, 7)),
    "topics.limits.data.found_hops": lambda f, i: f(i.whole(4, 3, 7), i.whole(3, 3), 4),
    "topics.limits.data.letters_and_states": lambda f, i: f(3, 5, 3, generator=i.generator),
    "topics.memories.data.embeddings": lambda f, i: f(5, 4, unit=True, generator=i.generator),
    "topics.memories.data.tokens": lambda f, i: [f(i.shares(6), 9, runs=2, generator=each) for each in i.seeds],
    "topics.memories.data.sign_patterns": lambda f, i: f(5, 4, generator=i.generator),
    "topics.memories.data.flipped": lambda f, i: [f(i.signs(5, 4), 0.3, generator=each) for each in i.seeds],
    "topics.multihead.data.Teacher": lambda f, i: f(i.normal(2, 4, 4), i.normal(2, 4, 4))(i.normal(5, 2, 4)),
    "topics.multihead.data.teacher": lambda f, i: f(4, 2, generator=i.generator),
    "topics.multihead.data.cancelling_teacher": lambda f, i: f(4, rank=1, generator=i.generator),
    "topics.multihead.data.sequences": lambda f, i: f(5, 2, 4, generator=i.generator),
    "topics.multihead.data.with_noise": lambda f, i: [f(i.normal(5, 2, 4), 0.1, generator=each) for each in i.seeds],
    "topics.multihead.data.hostile": lambda f, i: [
        f(kind, 6, 2, 4, generator=i.generator) for kind in multihead.HOSTILE
    ],
    "topics.regression.data.prompts": lambda f, i: f(3, 5, 4, kappa=9.0, noise=0.1, generator=i.generator),
    "topics.regression.data.shifted_prompts": lambda f, i: f("other orthant", 3, 5, 4, generator=i.generator),
    "topics.regression.data.prompts_with_spectrum": lambda f, i: f(3, 6, i.shares(3), generator=i.generator),
    "topics.sensitivity.data.Sparse": lambda f, i: f(i.bits(8), i.whole(6, 3))(i.bits(4, 6)),
    "topics.sensitivity.data.truth_table": lambda f, i: f("random", 3, generator=i.generator),
    "topics.sensitivity.data.strings": lambda f, i: f(3, 5, generator=i.generator),
    "topics.sensitivity.data.turned": lambda f, i: [f(i.bits(3, 5), 0.3, generator=each) for each in i.seeds],
    "topics.sensitivity.data.writes": lambda f, i: f(3, 5, generator=i.generator),
    "topics.sensitivity.data.last_write": lambda f, i: f(i.whole(3, 4, 6)),
    "topics.sensitivity.data.another": lambda f, i: [f(i.whole(3, 4, 6), 3, generator=each) for each in i.seeds],
    "topics.sensitivity.data.patches": lambda f, i: f(i.normal(2, 8, 8)),
    "topics.sensitivity.data.pixels": lambda f, i: f(i.normal(2, 16, 4)),
    "topics.sensitivity.data.corrupted": lambda f, i: [
        f(i.normal(3, 8, 8), kind, generator=each)
        for each in i.seeds
        for kind in ("noise", "salt and pepper", "blur", "shift", "occlusion", "contrast")
    ],
    "topics.structures.data.uniform": lambda f, i: f(2, 5, 2, queries=2, generator=i.generator),
    "topics.structures.data.zipf_queries": lambda f, i: f(2, 5, queries=2, generator=i.generator),
    "topics.structures.data.sphere": lambda f, i: f(2, 5, 3, generator=i.generator),
    "topics.structures.data.hard": lambda f, i: f(2, 3, generator=i.generator),
    "topics.structures.data.hard_coordinates": lambda f, i: f(2, 3, generator=i.generator),
    "topics.structures.data.redrawn": lambda f, i: f(i.normal(3, 64), i.generator),
    "topics.structures.data.numbers": lambda f, i: f(2, 5, generator=i.generator),
    "topics.structures.data.pictures": lambda f, i: f(i.whole(200, 2, 5), i.whole(200, 2), generator=i.generator),
    "topics.structures.data.problems": lambda f, i: [f(kind, 7)(2, i.generator) for kind in ("line", "hard-plane")],
    "topics.structures.data.gumbel": lambda f, i: f(2, 5, generator=i.generator),
    "topics.structures.data.with_copies": lambda f, i: f(i.normal(2, 3, 1), i.whole(3, 2, 4), 7, i.generator),
    "topics.structures.data.zipf_streams": lambda f, i: f(2, 9, 5, generator=i.generator),
    "topics.structures.data.item_counts": lambda f, i: f(i.whole(5, 2, 9), 5),
    # -- models
    "topics.addition.model.Adder": said(AdderConfig(4, 8, 1, 2, False), lambda i: i.whole(4, 3, 2)),
    "topics.attention.model.BitHeads": lambda f, i: i.model(f, 2, 5)(i.signs(2, 4, 5)),
    "topics.attention.model.BitMLPs": lambda f, i: i.model(f, 2, 5)(i.signs(2, 4, 5)),
    "topics.attention.model.TokenModel": said(TokenModelConfig(5, 8, 8, 1, 2), lambda i: i.whole(5, 3, 8)),
    "topics.bigrams.model.BigramModel": said(BigramModelConfig(5, 8, 16), lambda i: i.whole(5, 3, 8)),
    "topics.calibration.model.BiographyModel": said(BiographyModelConfig(4, 8), lambda i: i.whole(4, 3, 2)),
    "core.circuits.known_norm": lambda f, i: f(i.model(nn.LayerNorm, 8)),
    "core.circuits.unscaled": lambda f, i: f(i.model(nn.LayerNorm, 8), i.normal(2, 8)),
    "core.circuits.direct_attribution": lambda f, i: f(i.decoder(), i.normal(2, 6, 8), direction=i.normal(8), place=2),
    "core.circuits.interchange": lambda f, i: i.hooked(
        f("blocks.0.attn.hook_z", i.normal(1, 2, 6, 4), head=1, place=[2, 4])
    ),
    "core.circuits.ablation": lambda f, i: i.hooked(f("blocks.0.attn.hook_z", "mean", head=1)),
    "core.circuits.wire": lambda f, i: i.hooked(f(Part(0, 0), Part(1, 1), "keys")),
    "core.circuits.wires": lambda f, i: f(
        i.decoder(), i.normal(2, 6, 8), reader=Part(1, 1), side="keys", measure=Tensor.mean
    ),
    "core.decoder.Decoder": lambda f, i: [
        i.model(f, DecoderConfig(8, 2, 2, 8, attention=attention))(i.normal(2, 6, 8))
        for attention in ("softmax", "linear", "gated", "delta", "lstm")
    ],
    "core.decoder.delta_rule": lambda f, i: f(
        i.normal(2, 6, 4), i.normal(2, 6, 4), i.normal(2, 6, 4), i.shares(12).view(2, 6, 1).float()
    ),
    "core.llama.Llama": said(LLAMA, lambda i: i.whole(5, 3, 6)),
    "core.llama.rotation": lambda f, i: f(6, 4, 50.0, like=i.normal(1)),
    "core.llama.rotated": lambda f, i: f(i.normal(2, 3, 6, 4), Rotation(i.normal(6, 2), i.normal(6, 2))),
    "topics.facts.model.Bank": lambda f, i: i.bank()(i.whole(9, 2, 4, 6)),
    "topics.graphs.model.Channels": said(ChannelsConfig(2, 2), lambda i: i.graphs()[:, None]),
    "topics.graphs.model.GraphModel": said(GraphModelConfig(6, 8), lambda i: i.graphs()),
    "topics.limits.model.StepModel": said(StepModelConfig(5, 12, 8), lambda i: i.whole(5, 3, 6)),
    "core.lstm.LSTM": said(LSTMConfig(8, 2), lambda i: i.normal(2, 6, 8)),
    "topics.memories.model.Facts": said(FactsConfig(6, 4), lambda i: i.whole(6, 3)),
    "topics.multihead.model.MultiHead": said(MultiHeadConfig(4, 2), lambda i: i.normal(5, 2, 4, dtype=DOUBLE)),
    "topics.multihead.model.relative_loss": lambda f, i: f(lambda X: 2 * X, i.normal(5, 2, 4), i.normal(5, 2, 4)),
    "topics.regression.model.InContextRegressor": said(
        RegressorConfig(3, 8, 8, 1, 2), lambda i: i.prompts()[0], lambda i: i.prompts()[1]
    ),
    "topics.regression.model.StateRegressor": said(
        RegressorConfig(3, 8, 16, 1, 2), lambda i: i.prompts()[0], lambda i: i.prompts()[1]
    ),
    "topics.sensitivity.model.Classifier": said(ClassifierConfig("lstm", 6), lambda i: i.normal(3, 6, 2)),
    "topics.sensitivity.model.one_hot": lambda f, i: f(i.whole(4, 3, 6), 4),
    "topics.sensitivity.model.uniform_weights": lambda f, i: [
        f(i.model(Classifier, ClassifierConfig("transformer", 6)), 1.0, generator=each) for each in i.seeds
    ],
    "topics.structures.model.soft_sort": lambda f, i: f(i.normal(2, 5)),
    "topics.structures.model.Encoder": lambda f, i: i.model(f)(i.normal(2, 192)),
    "topics.structures.model.Structure": lambda f, i: stored_and_found(
        i.model(f, StructureConfig(5, 1, 2, extra=2)), i
    ),
    "topics.structures.model.Sketch": said(SketchConfig(5, 6, 2), lambda i: i.whole(5, 2, 9)),
}
ELSEWHERE = {
    "topics.calibration.data.even_facts": NUMBERS,
    "topics.calibration.data.zipf_facts": NUMBERS,
    "topics.memories.data.zipf": NUMBERS,
    "topics.multihead.data.parity_teacher": NUMBERS,
    "topics.sensitivity.data.cube": NUMBERS,
    "core.decoder.Attention": PART,
    "core.decoder.Block": PART,
    "core.decoder.Recurrence": PART,
    "core.hooks.HookPoints": PART,
    "core.llama.GroupedAttention": PART,
    "core.llama.LlamaBlock": PART,
    "core.llama.SwiGLU": PART,
    "core.decoder.hook_names": WORDS,
    "core.decoder.names_on_request": WORDS,
    "core.hooks.listed": WORDS,
    "topics.addition.data.embedded_numbers": NUMBERS,
    "topics.addition.data.embedded_rows": NUMBERS,
    "topics.language.data.known_facts": WORDS,
}
