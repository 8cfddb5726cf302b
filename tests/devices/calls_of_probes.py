"""The same for probes, baselines and what is built by hand."""

import torch
from devices.calls import DOUBLE, NUMBERS, WORDS, Inputs
from torch import Tensor

from companion.core.blocks import Blocks
from companion.core.readouts import fit_readouts
from companion.topics.attention.by_hand import match_head, shift_head
from companion.topics.bigrams.data import recurrences
from companion.topics.bigrams.model import BigramModel, BigramModelConfig
from companion.topics.calibration.model import BiographyModel, BiographyModelConfig
from companion.topics.graphs.model import Channels, ChannelsConfig
from companion.topics.multihead.baselines import Hull
from companion.topics.regression.model import InContextRegressor, RegressorConfig
from companion.topics.sensitivity.model import Classifier, ClassifierConfig
from companion.topics.structures.baselines.trees import treap

BLOCKS = Blocks(token=4, position=6, previous=4, out=4)
HEAD = shift_head(BLOCKS, 9.0)


def groups(i: Inputs) -> tuple[Tensor, Tensor]:
    return torch.arange(3, device=i.device), torch.tensor([40, 35, 31], device=i.device)


def search(i: Inputs, dim: int = 1) -> tuple[Tensor, Tensor]:
    return i.normal(3, 7, dim).clamp(-1, 1), i.normal(3, dim).clamp(-1, 1)


def running(xs: Tensor, ys: Tensor) -> Tensor:
    """A predictor: the mean label so far, times the input's mean."""
    return ys.cumsum(1) * xs.mean(-1)


def rows(xs: Tensor, ys: Tensor) -> Tensor:
    return running(xs, ys)[None]


def biographies(i: Inputs) -> BiographyModel:
    return i.model(BiographyModel, BiographyModelConfig(4, 8))


def regressor(i: Inputs) -> InContextRegressor:
    return i.model(InContextRegressor, RegressorConfig(3, 8, 8, 1, 2))


def squares(i: Inputs) -> tuple:
    model, x = i.model(torch.nn.Linear, 3, 2), i.normal(5, 3)
    return (lambda: model(x).square().mean()), model


def hull(i: Inputs) -> Hull:
    return Hull(i.normal(4, 4, dtype=DOUBLE), torch.eye(4, dtype=DOUBLE, device=i.device)[None] / 2)


def reading(i: Inputs) -> Classifier:
    return i.model(Classifier, ClassifierConfig("lstm", 6))


def filtered(context, i: Inputs) -> Tensor:
    with context(i.adder(), mlp=torch.eye(8, device=i.device) / 2) as adder:
        return adder(i.whole(4, 5, 2))


def turned(turned_by, i: Inputs) -> Tensor:
    with (model := i.llama()).hooks(turned_by(lambda x: x.flip(-1), 2)):
        return model(i.whole(5, 2, 6))


def induction(three_steps, i: Inputs, d: int | None) -> list:
    model = three_steps(lambda generator: recurrences(64, 6, 9, generator=generator), 9, 6, d, generator=i.generator)
    return [model, list(model.recalls().values())]


CALLS = {
    # -- probes
    "topics.addition.probes.accuracies": lambda f, i: f(i.normal(6, 9), i.whole(9, 6)),
    "topics.addition.probes.read_out": lambda f, i: f(i.adder()),
    "topics.addition.probes.contributions": lambda f, i: f(i.adder(), i.whole(4, 5, 2)),
    "topics.addition.probes.filtered": filtered,
    "topics.addition.probes.modular_probe": lambda f, i: [f(i.normal(20, 4), 5, generator=each) for each in i.seeds],
    "topics.attention.probes.patterns": lambda f, i: f(i.decoder(), i.normal(2, 6, 8)),
    "topics.bigrams.probes.recalled": lambda f, i: f(i.normal(4, 4), i.normal(5, 4), i.normal(5, 4)),
    "topics.bigrams.probes.memories": lambda f, i: f(i.bigram_model(), i.whole(5, 2)),
    "topics.bigrams.probes.truncated": lambda f, i: f(i.normal(4, 5), 0.5),
    "topics.bigrams.probes.prefix_matching": lambda f, i: f(i.normal(2, 2, 8, 8).softmax(-1), 4),
    "topics.bigrams.probes.copying": lambda f, i: f(i.normal(2, 2, 6, 5), i.whole(5, 2, 6)),
    "topics.calibration.probes.by_times_seen": lambda f, i: f(i.whole(5, 9), i.shares(5), 9),
    "topics.calibration.probes.by_probability": lambda f, i: f(biographies(i), i.whole(4, 5, 3), i.shares(5)),
    "topics.facts.probes.knowledge": lambda f, i: f(i.normal(2, 5, 6), i.whole(6, 2, 5), 3),
    "topics.facts.probes.recall_accuracy": lambda f, i: f(
        i.bank(), (i.whole(9, 5, 6), i.whole(6, 5), i.whole(2, 5), i.whole(6, 5))
    ),
    "topics.facts.probes.conserved": lambda f, i: f(i.normal(5), i.normal(3, 5)),
    "topics.addition.fourier.spectrum": lambda f, i: f(i.normal(21, 3)),
    "topics.addition.fourier.relative_spectrum": lambda f, i: f(i.normal(21, 3)),
    "topics.addition.fourier.shuffled_level": lambda f, i: [
        f(i.normal(21, 3), shuffles=20, generator=each) for each in i.seeds
    ],
    "topics.addition.fourier.peaks": lambda f, i: f(i.normal(50).abs(), 100),
    "topics.addition.fourier.band_filter": lambda f, i: f(i.normal(21, 9), range(2)),
    "topics.graphs.probes.exact_match": lambda f, i: f(i.normal(3, 2, 6, 6), i.bits(3, 6, 6) > 0),
    "topics.graphs.probes.by_distance": lambda f, i: f(i.bits(3, 6, 6) > 0, i.whole(4, 3, 6, 6).float()),
    "topics.graphs.probes.without": lambda f, i: f(i.model(Channels, ChannelsConfig(1, 2)), "local"),
    "topics.layers.probes.jacobian": lambda f, i: f(lambda x: x.cumsum(1), i.normal(4, 3)),
    "topics.graphs.probes.felt": lambda f, i: f(i.model(Channels, ChannelsConfig(1, 2)), i.graphs()[:, None]),
    "topics.language.probes.turned_by": turned,
    "topics.language.probes.head_maps": lambda f, i: f(i.llama(), 1),
    "topics.language.probes.toward_followers": lambda f, i: f(i.whole(3, 2, 6)),
    "topics.language.probes.toward_receivers": lambda f, i: f(i.normal(2, 6).argsort(), [3, 4], [1, 0]),
    "topics.language.probes.streams_at": lambda f, i: f(i.llama(), i.whole(5, 2, 6), 1, 3),
    "topics.language.probes.answer_places": lambda f, i: f(i.normal(3, 5), i.whole(5, 3)),
    "topics.language.probes.median_place": lambda f, i: f(i.normal(3, 5), i.whole(5, 3)),
    "topics.language.probes.streams_and_writers": lambda f, i: f(i.llama(), i.whole(5, 2, 6), 1),
    "topics.limits.probes.sharpen": lambda f, i: f(i.decoder(), 3.0),
    "topics.limits.probes.changes_by_place": lambda f, i: f(i.decoder(), i.normal(6, 8)),
    "topics.limits.probes.right_prefixes": lambda f, i: f(i.normal(2, 5, 3, 3), i.whole(3, 2, 5, 3)),
    "topics.memories.probes.accuracy": lambda f, i: f(i.normal(2, 5, 3), i.whole(3, 5)),
    "topics.memories.probes.weighted_error": lambda f, i: f(i.normal(2, 5, 3), i.whole(3, 5), i.shares(5)),
    "core.readouts.fit_readouts": lambda f, i: f(i.normal(2, 9, 3), i.normal(9)),
    "core.readouts.apply_readouts": lambda f, i: f(i.normal(2, 4), i.normal(2, 9, 3)),
    "topics.regression.probes.similarity_of_errors": lambda f, i: f(
        i.normal(2, 4, 5), i.normal(3, 4, 5), i.normal(4, 5)
    ),
    "topics.regression.probes.induced_weights": lambda f, i: f(rows, *i.prompts()),
    "topics.regression.probes.readout_predictor": lambda f, i: f(
        regressor(i), fit_readouts(regressor(i).streams(*i.prompts()).detach(), i.prompts()[1])
    )(*i.prompts()),
    "topics.regression.probes.errors_by_gap": lambda f, i: f(running, *i.prompts()),
    "topics.regression.probes.errors_when_shifted": lambda f, i: f(regressor(i), "as trained", count=4),
    "topics.regression.probes.order_sensitivity": lambda f, i: f(running, *i.prompts()),
    "topics.regression.probes.best_match": lambda f, i: list(f(i.normal(3, 2), [1, 2])),
    "topics.sensitivity.probes.answers": lambda f, i: f(reading(i), i.normal(3, 6, 2)),
    "topics.sensitivity.probes.changes": lambda f, i: f(reading(i), i.normal(3, 6, 2), i.normal(3, 4, 6, 2)),
    "topics.sensitivity.probes.noisy_parts": lambda f, i: [
        f(i.normal(3, 6, 2), 0.1, generator=each) for each in i.seeds
    ],
    "topics.sensitivity.probes.largest_curvature": lambda f, i: [f(*squares(i), 2, generator=each) for each in i.seeds],
    "topics.sensitivity.probes.rise_under_noise": lambda f, i: [
        f(*squares(i), 0.1, 2, generator=each) for each in i.seeds
    ],
    "topics.structures.probes.best_so_far": lambda f, i: f(i.whole(5, 3, 4), i.normal(3, 5).abs()),
    "topics.structures.probes.place_distances": lambda f, i: f(i.normal(2, 5, 2)),
    "topics.structures.probes.banding": lambda f, i: f(i.normal(5, 5)),
    "topics.structures.probes.principal_components": lambda f, i: [part.abs() for part in f(i.normal(9, 3))],
    # -- baselines
    "topics.addition.baselines.ppmi_embeddings": lambda f, i: f(i.graphs(8)[0] + 1, 3).abs(),
    "topics.addition.baselines.with_rms": lambda f, i: f(i.normal(5, 3), 0.3),
    "topics.addition.baselines.narrowed": lambda f, i: f(i.normal(5, 3), 2).abs(),
    "topics.attention.baselines.shares": lambda f, i: f(i.whole(4, 9), 4),
    "topics.attention.baselines.ngram": lambda f, i: f(i.whole(3, 12), 3),
    "topics.attention.baselines.latest": lambda f, i: f(i.whole(3, 12), 2),
    "topics.attention.baselines.backward_hops": lambda f, i: f(i.whole(3, 12), 2),
    "topics.attention.baselines.l1_logistic": lambda f, i: f(
        i.signs(2, 9, 4), i.bits(2, 9).float(), i.normal(2).abs(), steps=5
    ),
    "topics.bigrams.baselines.bayes": lambda f, i: f(i.whole(3, 2, 9), 3),
    "topics.bigrams.baselines.follower": lambda f, i: f(i.whole(3, 2, 9)),
    "topics.calibration.baselines.memoriser": lambda f, i: f(*groups(i)),
    "topics.calibration.baselines.good_turing_model": lambda f, i: f(*groups(i)),
    "topics.calibration.baselines.mixture": lambda f, i: f(*groups(i), 0.2),
    "topics.graphs.baselines.breadth_first": lambda f, i: f(i.graphs()),
    "topics.graphs.baselines.diameters": lambda f, i: f(i.graphs()),
    "topics.graphs.baselines.rounds": lambda f, i: f(i.graphs(), 2),
    "topics.graphs.baselines.union_find": lambda f, i: f(i.graphs()[0]),
    "topics.graphs.baselines.degree_rule": lambda f, i: f(i.graphs(), 3.0),
    "topics.limits.baselines.running_products": lambda f, i: f(i.normal(2, 5, 4).argsort(-1)),
    "topics.limits.baselines.follow": lambda f, i: f(i.normal(2, 5).argsort(-1), 3),
    "topics.limits.baselines.LinearSteps": lambda f, i: f(i.bits(9, 3), i.bits(9, 2))(i.bits(4, 3)),
    "topics.memories.baselines.nearest": lambda f, i: f(i.normal(5, 3), i.normal(4, 3)),
    "topics.multihead.baselines.features": lambda f, i: f(i.normal(5, 2, 4), i.normal(3, 4, 4)),
    "topics.multihead.baselines.first_step": lambda f, i: f(*i.heads()),
    "topics.multihead.baselines.certificate": lambda f, i: f(*i.heads(), i.normal(4, 4, dtype=DOUBLE)),
    "topics.multihead.baselines.constraints": lambda f, i: f(
        i.normal(5, 2, 4), i.normal(5, 2, 2).softmax(-1), i.bits(5, 2) > 0
    ),
    "topics.multihead.baselines.fit_hull": lambda f, i: [
        f(i.normal(40, 16, dtype=DOUBLE), i.normal(40, dtype=DOUBLE), i.normal(40, dtype=DOUBLE).abs(), 2).base
    ],
    "topics.multihead.baselines.refine": lambda f, i: f(*i.heads(2000), 2)[0],
    "topics.multihead.baselines.hull_net": lambda f, i: f(hull(i), 2),
    "topics.multihead.baselines.best_tuple": lambda f, i: f(*i.heads(), hull(i), i.normal(5, 1, dtype=DOUBLE), 2),
    "topics.multihead.baselines.solve_ws": lambda f, i: f(*i.heads(), i.normal(2, 4, 4, dtype=DOUBLE)),
    "topics.multihead.baselines.descend": lambda f, i: f(
        lambda at: (at - 1).square().sum() + 1, i.normal(2, 1, dtype=DOUBLE), steps=3
    ),
    "topics.multihead.baselines.one_head": lambda f, i: f(*i.heads(1000)),
    "topics.multihead.baselines.check_examples": lambda f, i: f(*i.heads(4000), 2),
    "topics.regression.baselines.moments": lambda f, i: f(*i.prompts()),
    "topics.regression.baselines.predict": lambda f, i: f(i.normal(4, 8, 3), i.prompts()[0]),
    "topics.regression.baselines.least_squares": lambda f, i: f(*i.prompts()),
    "topics.regression.baselines.ridge_states": lambda f, i: f(*i.prompts(), 0.1),
    "topics.regression.baselines.newton": lambda f, i: f(*i.prompts(), [1, 2]),
    "topics.regression.baselines.gradient_descent": lambda f, i: f(*i.prompts(), [1, 2]),
    "topics.regression.baselines.conjugate_gradient": lambda f, i: f(*i.prompts(), [1, 2]),
    "topics.regression.baselines.gradient_descent_plus_plus": lambda f, i: f(*i.prompts(), [1, 2]),
    "topics.regression.baselines.online_gradient_descent": lambda f, i: f(*i.prompts()),
    "topics.sensitivity.baselines.best_under_noise": lambda f, i: f(i.bits(8), 0.2),
    "topics.structures.baselines.hashing.itq": lambda f, i: [
        f(i.normal(9, 3), 2, generator=each)(i.normal(4, 3)) for each in i.seeds
    ],
    "topics.structures.baselines.hashing.k_means": lambda f, i: [
        f(i.normal(9, 3), 2, generator=each)(i.normal(4, 3)) for each in i.seeds
    ],
    "topics.structures.baselines.hashing.neural_hash": lambda f, i: [
        f(i.normal(9, 3), i.normal(9, 3), 2, steps=3, generator=each)(i.normal(4, 3)) for each in i.seeds
    ],
    "topics.structures.baselines.sketches.count_min": lambda f, i: [
        f(i.whole(5, 2, 9), 5, 6, rows=2, conservative=True, generator=each) for each in i.seeds
    ],
    "topics.structures.baselines.sketches.count_sketch": lambda f, i: [
        f(i.whole(5, 2, 9), 5, 6, rows=2, generator=each) for each in i.seeds
    ],
    "topics.structures.baselines.trees.optimal_search_tree": lambda f, i: list(f(i.shares(5)))[1:],
    "topics.structures.baselines.trees.treap": lambda f, i: list(f(i.shares(5)))[1:],
    "topics.structures.baselines.search.binary_search": lambda f, i: f(*search(i), 3),
    "topics.structures.baselines.search.interpolation_search": lambda f, i: f(*search(i), 3),
    "topics.structures.baselines.search.quantile_search": lambda f, i: f(*search(i), 3, lambda q: (q + 1) / 2),
    "topics.structures.baselines.search.buckets": lambda f, i: f(*search(i), 4),
    "topics.structures.baselines.search.tree_search": lambda f, i: f(treap(i.shares(7)), *search(i), 3),
    "topics.structures.baselines.search.kd_tree": lambda f, i: f(*search(i, 2), 3),
    "topics.structures.baselines.search.kd_order": lambda f, i: f(i.normal(2, 7, 2)),
    "topics.structures.baselines.search.lsh": lambda f, i: [
        f(*search(i, 3), 3, bits=2, generator=each) for each in i.seeds
    ],
    "topics.structures.baselines.search.simhash": lambda f, i: [
        f(*search(i, 3), 3, bits=2, generator=each) for each in i.seeds
    ],
    "topics.structures.baselines.search.in_buckets": lambda f, i: [
        f(i.whole(4, 3, 6), i.whole(4, 3), 3, buckets=4, generator=each) for each in i.seeds
    ],
    # -- by hand
    "topics.attention.by_hand.run": lambda f, i: f([[HEAD], [match_head(BLOCKS, 9.0)]], i.normal(6, 18).double()),
    "topics.attention.by_hand.embed": lambda f, i: f(BLOCKS, i.whole(4, 6)),
    "topics.bigrams.by_hand.write_memories": lambda f, i: f(
        i.model(BigramModel, BigramModelConfig(5, 8, 16)), i.whole(5, 2)
    ),
    "topics.bigrams.by_hand.three_steps": lambda f, i: [induction(f, i, d) for d in (None, 16)],
    "core.blocks.causal_softmax": lambda f, i: f(i.normal(2, 5, 5)),
    "core.blocks.Head": lambda f, i: f(HEAD.qk, HEAD.ov)(i.normal(6, 18).double()),
    "topics.facts.by_hand.attention_only": lambda f, i: f(i.world().table, 3, d=24, head_width=4, noise=4, length=6),
    "topics.facts.by_hand.with_mlp": lambda f, i: f(i.world().table, 3, d=24, head_width=4, each=2, noise=4, length=6),
    "topics.facts.by_hand.dual": lambda f, i: f(i.normal(4, 6)),
    "topics.graphs.by_hand.PowerDecoder": lambda f, i: f(6, 2)(i.graphs()),
    "topics.limits.by_hand.WordDecoder": lambda f, i: f(3, 6, 3)(i.normal(2, 6, 3).argsort(-1)),
    "topics.limits.by_hand.CircleDecoder": lambda f, i: f(3, 6)(i.whole(3, 2, 6), 1 - 2 * i.bits(2, 6)),
    "topics.limits.by_hand.HopDecoder": lambda f, i: f(5, 3)(i.normal(2, 5).argsort(-1)),
    "topics.limits.by_hand.LetterHopDecoder": lambda f, i: f(5, 2, 3)((i.normal(2, 5) > 0).long()),
    "topics.limits.by_hand.counted_parity": lambda f, i: f(i.bits(3, 6)),
    "topics.memories.by_hand.write": lambda f, i: f(i.normal(5, 4), i.normal(3, 4), i.whole(3, 5)),
    "topics.memories.by_hand.read": lambda f, i: f(i.normal(4, 4), i.normal(5, 4), i.normal(3, 4)),
    "topics.memories.by_hand.gradient": lambda f, i: f(
        i.normal(4, 4), i.normal(5, 4), i.normal(3, 4), i.shares(15).view(5, 3).float()
    ),
    "topics.memories.by_hand.random_factors": lambda f, i: [f(i.normal(4, 4), 2, generator=each) for each in i.seeds],
    "topics.memories.by_hand.hermite": lambda f, i: f(i.normal(4, 4), 3),
    "topics.memories.by_hand.mlp_logits": lambda f, i: [
        f(i.normal(5, 4), i.normal(3, 4), i.whole(3, 5), 6, 2, generator=each) for each in i.seeds
    ],
    "topics.memories.by_hand.dense_update": lambda f, i: f(i.signs(5, 4), i.signs(3, 4), 3),
    "topics.memories.by_hand.softmax_update": lambda f, i: f(i.signs(5, 4), i.signs(3, 4), 2.0),
    "topics.regression.by_hand.Layer": lambda f, i: f("", [HEAD], HEAD.ov)(i.normal(2, 6, 18).double()),
    "topics.regression.by_hand.NewtonTransformer": lambda f, i: f(3, 7, 2, 0.01)(
        i.prompts()[0], i.prompts()[1][:, :-1]
    ),
    "topics.regression.by_hand.newton_predictions": lambda f, i: f(*i.prompts(5), 2),
}
ELSEWHERE = {
    "topics.addition.fourier.longest_period": WORDS,
    "topics.addition.fourier.periods": NUMBERS,
    "topics.addition.fourier.basis": NUMBERS,
    "topics.addition.fourier.low_waves": WORDS,
    "topics.addition.fourier.high_waves": WORDS,
    "topics.graphs.probes.draw_graph": WORDS,
    "topics.memories.probes.capacity": WORDS,
    "topics.memories.probes.interval": WORDS,
    "topics.memories.probes.power_law": WORDS,
    "topics.memories.probes.local_slopes": WORDS,
    "topics.memories.probes.two_power_laws": WORDS,
    "topics.memories.probes.entropy": WORDS,
    "topics.memories.probes.recalled_bits": WORDS,
    "topics.regression.probes.growth_rate": WORDS,
    "topics.addition.baselines.fourier_embeddings": NUMBERS,
    "topics.multihead.baselines.fit_layer": "its stages are called one by one",
    "topics.multihead.baselines.learn": "it judges what `fit_layer` finds",
    "topics.sensitivity.baselines.sensitivity_of": WORDS,
    "topics.language.by_hand.planted": WORDS,
    "topics.language.by_hand.number": "it is of a Llama that `planted` draws",
    "topics.attention.by_hand.shift_head": NUMBERS,
    "topics.attention.by_hand.circle": NUMBERS,
    "topics.attention.by_hand.circle_shift": NUMBERS,
    "topics.attention.by_hand.skip_gram_head": NUMBERS,
    "topics.attention.by_hand.broad_head": NUMBERS,
    "topics.attention.by_hand.match_head": NUMBERS,
}
