"""The same for probes, baselines and what is built by hand."""

import torch
from devices.calls import DOUBLE, NUMBERS, WORDS, Inputs
from torch import Tensor

from companion.baselines.multihead import Hull
from companion.baselines.trees import treap
from companion.models.bigrams import BigramModel, BigramModelConfig
from companion.models.calibration import BiographyModel, BiographyModelConfig
from companion.models.constructions.attention import match_head, shift_head
from companion.models.constructions.blocks import Blocks
from companion.models.graphs import Channels, ChannelsConfig
from companion.models.regression import InContextRegressor, RegressorConfig
from companion.models.sensitivity import Classifier, ClassifierConfig
from companion.probes.readouts import fit_readouts
from companion.samplers.bigrams import recurrences

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


def induction(three_steps, i: Inputs, d: int | None) -> list:
    model = three_steps(lambda generator: recurrences(64, 6, 9, generator=generator), 9, 6, d, generator=i.generator)
    return [model, list(model.recalls().values())]


CALLS = {
    # -- probes
    "probes.addition.accuracies": lambda f, i: f(i.normal(6, 9), i.whole(9, 6)),
    "probes.addition.read_out": lambda f, i: f(i.adder()),
    "probes.addition.contributions": lambda f, i: f(i.adder(), i.whole(4, 5, 2)),
    "probes.addition.lens": lambda f, i: f(i.adder(), i.whole(4, 5, 2)),
    "probes.addition.filtered": filtered,
    "probes.addition.modular_probe": lambda f, i: [f(i.normal(20, 4), 5, generator=each) for each in i.seeds],
    "probes.attention.patterns": lambda f, i: f(i.decoder(), i.normal(2, 6, 8)),
    "probes.bigrams.recalled": lambda f, i: f(i.normal(4, 4), i.normal(5, 4), i.normal(5, 4)),
    "probes.bigrams.memories": lambda f, i: f(i.bigram_model(), i.whole(5, 2)),
    "probes.bigrams.truncated": lambda f, i: f(i.normal(4, 5), 0.5),
    "probes.bigrams.prefix_matching": lambda f, i: f(i.normal(2, 2, 8, 8).softmax(-1), 4),
    "probes.bigrams.copying": lambda f, i: f(i.normal(2, 2, 6, 5), i.whole(5, 2, 6)),
    "probes.calibration.by_times_seen": lambda f, i: f(i.whole(5, 9), i.shares(5), 9),
    "probes.calibration.tempered": lambda f, i: f(i.shares(3), groups(i)[1], 0.7),
    "probes.calibration.log_probabilities": lambda f, i: f(biographies(i)),
    "probes.calibration.equal_mass_bins": lambda f, i: f(i.shares(9), 3),
    "probes.calibration.ask_what": lambda f, i: f(biographies(i), i.whole(4, 5, 3)),
    "probes.facts.knowledge": lambda f, i: f(i.normal(2, 5, 6), i.whole(6, 2, 5), 3),
    "probes.facts.recall_accuracy": lambda f, i: f(
        i.bank(), (i.whole(9, 5, 6), i.whole(6, 5), i.whole(2, 5), i.whole(6, 5))
    ),
    "probes.facts.conserved": lambda f, i: f(i.normal(5), i.normal(3, 5)),
    "probes.fourier.spectrum": lambda f, i: f(i.normal(21, 3)),
    "probes.fourier.relative_spectrum": lambda f, i: f(i.normal(21, 3)),
    "probes.fourier.shuffled_level": lambda f, i: [f(i.normal(21, 3), shuffles=20, generator=each) for each in i.seeds],
    "probes.fourier.band_filter": lambda f, i: f(i.normal(21, 9), range(2)),
    "probes.graphs.exact_match": lambda f, i: f(i.normal(3, 2, 6, 6), i.bits(3, 6, 6) > 0),
    "probes.graphs.by_distance": lambda f, i: f(i.bits(3, 6, 6) > 0, i.whole(4, 3, 6, 6).float()),
    "probes.graphs.without": lambda f, i: f(i.model(Channels, ChannelsConfig(1, 2)), "local"),
    "probes.graphs.felt": lambda f, i: f(i.model(Channels, ChannelsConfig(1, 2)), i.graphs()[:, None]),
    "probes.limits.sharpen": lambda f, i: f(i.decoder(), 3.0),
    "probes.limits.last_place_change": lambda f, i: f(i.decoder(), i.normal(2, 6, 8), i.normal(2, 6, 8)),
    "probes.limits.right_prefixes": lambda f, i: f(i.normal(2, 5, 3, 3), i.whole(3, 2, 5, 3)),
    "probes.memories.accuracy": lambda f, i: f(i.normal(2, 5, 3), i.whole(3, 5)),
    "probes.memories.weighted_error": lambda f, i: f(i.normal(2, 5, 3), i.whole(3, 5), i.shares(5)),
    "probes.readouts.fit_readouts": lambda f, i: f(i.normal(2, 9, 3), i.normal(9)),
    "probes.readouts.apply_readouts": lambda f, i: f(i.normal(2, 4), i.normal(2, 9, 3)),
    "probes.regression.similarity_of_errors": lambda f, i: f(i.normal(2, 4, 5), i.normal(3, 4, 5), i.normal(4, 5)),
    "probes.regression.induced_weights": lambda f, i: f(rows, *i.prompts()),
    "probes.regression.similarity_of_weights": lambda f, i: f(i.normal(2, 4, 5, 3), i.normal(3, 4, 5, 3)),
    "probes.regression.readout_predictor": lambda f, i: f(
        regressor(i), fit_readouts(regressor(i).streams(*i.prompts()).detach(), i.prompts()[1])
    )(*i.prompts()),
    "probes.regression.errors_by_gap": lambda f, i: f(running, *i.prompts()),
    "probes.regression.order_sensitivity": lambda f, i: f(running, *i.prompts()),
    "probes.regression.best_match": lambda f, i: list(f(i.normal(3, 2), [1, 2])),
    "probes.sensitivity.influences": lambda f, i: f(i.signs(8)),
    "probes.sensitivity.weight_by_degree": lambda f, i: f(i.signs(8)),
    "probes.sensitivity.answers": lambda f, i: f(reading(i), i.normal(3, 6, 2)),
    "probes.sensitivity.changes": lambda f, i: f(reading(i), i.normal(3, 6, 2), i.normal(3, 4, 6, 2)),
    "probes.sensitivity.noisy_parts": lambda f, i: [f(i.normal(3, 6, 2), 0.1, generator=each) for each in i.seeds],
    "probes.sensitivity.largest_curvature": lambda f, i: [f(*squares(i), 2, generator=each) for each in i.seeds],
    "probes.sensitivity.rise_under_noise": lambda f, i: [f(*squares(i), 0.1, 2, generator=each) for each in i.seeds],
    "probes.structures.best_so_far": lambda f, i: f(i.whole(5, 3, 4), i.normal(3, 5).abs()),
    "probes.structures.place_distances": lambda f, i: f(i.normal(2, 5, 2)),
    "probes.structures.banding": lambda f, i: f(i.normal(5, 5)),
    "probes.structures.principal_components": lambda f, i: [part.abs() for part in f(i.normal(9, 3))],
    # -- baselines
    "baselines.addition.ppmi_embeddings": lambda f, i: f(i.graphs(8)[0] + 1, 3).abs(),
    "baselines.addition.with_rms": lambda f, i: f(i.normal(5, 3), 0.3),
    "baselines.addition.narrowed": lambda f, i: f(i.normal(5, 3), 2).abs(),
    "baselines.attention.shares": lambda f, i: f(i.whole(4, 9), 4),
    "baselines.attention.ngram": lambda f, i: f(i.whole(3, 12), 3),
    "baselines.attention.latest": lambda f, i: f(i.whole(3, 12), 2),
    "baselines.attention.backward_hops": lambda f, i: f(i.whole(3, 12), 2),
    "baselines.attention.l1_logistic": lambda f, i: f(
        i.signs(2, 9, 4), i.bits(2, 9).float(), i.normal(2).abs(), steps=5
    ),
    "baselines.bigrams.bayes": lambda f, i: f(i.whole(3, 2, 9), 3),
    "baselines.bigrams.follower": lambda f, i: f(i.whole(3, 2, 9)),
    "baselines.calibration.memoriser": lambda f, i: f(*groups(i)),
    "baselines.calibration.good_turing_model": lambda f, i: f(*groups(i)),
    "baselines.calibration.mixture": lambda f, i: f(*groups(i), 0.2),
    "baselines.graphs.breadth_first": lambda f, i: f(i.graphs()),
    "baselines.graphs.diameters": lambda f, i: f(i.graphs()),
    "baselines.graphs.rounds": lambda f, i: f(i.graphs(), 2),
    "baselines.graphs.union_find": lambda f, i: f(i.graphs()[0]),
    "baselines.graphs.degree_products": lambda f, i: f(i.graphs()),
    "baselines.graphs.degree_rule": lambda f, i: f(i.graphs(), 3.0),
    "baselines.limits.running_products": lambda f, i: f(i.normal(2, 5, 4).argsort(-1)),
    "baselines.limits.follow": lambda f, i: f(i.normal(2, 5).argsort(-1), 3),
    "baselines.limits.LinearSteps": lambda f, i: f(i.bits(9, 3), i.bits(9, 2))(i.bits(4, 3)),
    "baselines.memories.unseen_mass": lambda f, i: f(i.shares(5), 3),
    "baselines.memories.nearest": lambda f, i: f(i.normal(5, 3), i.normal(4, 3)),
    "baselines.multihead.features": lambda f, i: f(i.normal(5, 2, 4), i.normal(3, 4, 4)),
    "baselines.multihead.first_step": lambda f, i: f(*i.heads()),
    "baselines.multihead.certificate": lambda f, i: f(*i.heads(), i.normal(4, 4, dtype=DOUBLE)),
    "baselines.multihead.constraints": lambda f, i: f(
        i.normal(5, 2, 4), i.normal(5, 2, 2).softmax(-1), i.bits(5, 2) > 0
    ),
    "baselines.multihead.fit_hull": lambda f, i: [
        f(i.normal(40, 16, dtype=DOUBLE), i.normal(40, dtype=DOUBLE), i.normal(40, dtype=DOUBLE).abs(), 2).base
    ],
    "baselines.multihead.refine": lambda f, i: f(*i.heads(2000), 2)[0],
    "baselines.multihead.hull_net": lambda f, i: f(hull(i), 2),
    "baselines.multihead.best_tuple": lambda f, i: f(*i.heads(), hull(i), i.normal(5, 1, dtype=DOUBLE), 2),
    "baselines.multihead.solve_ws": lambda f, i: f(*i.heads(), i.normal(2, 4, 4, dtype=DOUBLE)),
    "baselines.multihead.relative_loss": lambda f, i: f(
        *i.heads(), i.normal(2, 4, 4, dtype=DOUBLE), i.normal(2, 4, 4, dtype=DOUBLE)
    ),
    "baselines.multihead.descend": lambda f, i: f(
        lambda at: (at - 1).square().sum() + 1, i.normal(2, 1, dtype=DOUBLE), steps=3
    ),
    "baselines.multihead.one_head": lambda f, i: f(*i.heads(1000)),
    "baselines.multihead.check_examples": lambda f, i: f(*i.heads(4000), 2),
    "baselines.regression.predict": lambda f, i: f(i.normal(4, 8, 3), i.prompts()[0]),
    "baselines.regression.least_squares": lambda f, i: f(*i.prompts()),
    "baselines.regression.ridge_states": lambda f, i: f(*i.prompts(), 0.1),
    "baselines.regression.newton": lambda f, i: f(*i.prompts(), [1, 2]),
    "baselines.regression.gradient_descent": lambda f, i: f(*i.prompts(), [1, 2]),
    "baselines.regression.conjugate_gradient": lambda f, i: f(*i.prompts(), [1, 2]),
    "baselines.regression.gradient_descent_plus_plus": lambda f, i: f(*i.prompts(), [1, 2]),
    "baselines.regression.newton_iterated": lambda f, i: f(*i.prompts(), [1, 2]),
    "baselines.regression.gradient_descent_iterated": lambda f, i: f(*i.prompts(), [1, 2]),
    "baselines.regression.online_gradient_descent": lambda f, i: f(*i.prompts()),
    "baselines.sensitivity.best_under_noise": lambda f, i: f(i.bits(8), 0.2),
    "baselines.sensitivity.LowDegree": lambda f, i: f(i.bits(20, 4), i.bits(20), 2)(i.bits(5, 4)),
    "baselines.sketches.count_min": lambda f, i: [
        f(i.whole(5, 2, 9), 5, 6, rows=2, conservative=True, generator=each) for each in i.seeds
    ],
    "baselines.sketches.count_sketch": lambda f, i: [
        f(i.whole(5, 2, 9), 5, 6, rows=2, generator=each) for each in i.seeds
    ],
    "baselines.trees.optimal_search_tree": lambda f, i: list(f(i.shares(5)))[1:],
    "baselines.trees.treap": lambda f, i: list(f(i.shares(5)))[1:],
    "baselines.trees.depths": lambda f, i: f(treap(i.shares(5))),
    "baselines.structures.binary_search": lambda f, i: f(*search(i), 3),
    "baselines.structures.interpolation_search": lambda f, i: f(*search(i), 3),
    "baselines.structures.quantile_search": lambda f, i: f(*search(i), 3, lambda q: (q + 1) / 2),
    "baselines.structures.buckets": lambda f, i: f(*search(i), 4),
    "baselines.structures.tree_search": lambda f, i: f(treap(i.shares(7)), *search(i), 3),
    "baselines.structures.kd_tree": lambda f, i: f(*search(i, 2), 3),
    "baselines.structures.kd_order": lambda f, i: f(i.normal(2, 7, 2)),
    "baselines.structures.lsh": lambda f, i: [f(*search(i, 3), 3, bits=2, generator=each) for each in i.seeds],
    "baselines.structures.simhash": lambda f, i: [f(*search(i, 3), 3, bits=2, generator=each) for each in i.seeds],
    # -- by hand
    "models.constructions.attention.run": lambda f, i: f([[HEAD], [match_head(BLOCKS, 9.0)]], i.normal(6, 18).double()),
    "models.constructions.attention.embed": lambda f, i: f(BLOCKS, i.whole(4, 6)),
    "models.constructions.attention.flow": lambda f, i: f(i.normal(5, 3), beta=1.0, time=0.2),
    "models.constructions.attention.energy": lambda f, i: f(i.normal(5, 3), 1.0),
    "models.constructions.bigrams.write_memories": lambda f, i: f(
        i.model(BigramModel, BigramModelConfig(5, 8, 16)), i.whole(5, 2)
    ),
    "models.constructions.bigrams.three_steps": lambda f, i: [induction(f, i, d) for d in (None, 16)],
    "models.constructions.blocks.causal_softmax": lambda f, i: f(i.normal(2, 5, 5)),
    "models.constructions.blocks.Head": lambda f, i: f(HEAD.kq, HEAD.ov)(i.normal(6, 18).double()),
    "models.constructions.facts.attention_only": lambda f, i: f(
        i.world().table, 3, d=24, head_width=4, noise=4, length=6
    ),
    "models.constructions.facts.with_mlp": lambda f, i: f(
        i.world().table, 3, d=24, head_width=4, each=2, noise=4, length=6
    ),
    "models.constructions.facts.dual": lambda f, i: f(i.normal(4, 6)),
    "models.constructions.graphs.PowerDecoder": lambda f, i: f(6, 2)(i.graphs()),
    "models.constructions.limits.WordDecoder": lambda f, i: f(3, 6, 3)(i.normal(2, 6, 3).argsort(-1)),
    "models.constructions.limits.HopDecoder": lambda f, i: f(5, 3)(i.normal(2, 5).argsort(-1)),
    "models.constructions.limits.counted_parity": lambda f, i: f(i.bits(3, 6)),
    "models.constructions.memories.write": lambda f, i: f(i.normal(5, 4), i.normal(3, 4), i.whole(3, 5)),
    "models.constructions.memories.read": lambda f, i: f(i.normal(4, 4), i.normal(5, 4), i.normal(3, 4)),
    "models.constructions.memories.gradient": lambda f, i: f(
        i.normal(4, 4), i.normal(5, 4), i.normal(3, 4), i.shares(15).view(5, 3).float()
    ),
    "models.constructions.memories.noisy_gradient": lambda f, i: f(
        i.normal(4, 4), i.normal(6, 4), i.whole(3, 6), i.normal(3, 4)
    ),
    "models.constructions.memories.random_factors": lambda f, i: [
        f(i.normal(4, 4), 2, generator=each) for each in i.seeds
    ],
    "models.constructions.memories.hermite": lambda f, i: f(i.normal(4, 4), 3),
    "models.constructions.memories.mlp_logits": lambda f, i: [
        f(i.normal(5, 4), i.normal(3, 4), i.whole(3, 5), 6, 2, generator=each) for each in i.seeds
    ],
    "models.constructions.memories.dense_update": lambda f, i: f(i.signs(5, 4), i.signs(3, 4), 3),
    "models.constructions.memories.softmax_update": lambda f, i: f(i.signs(5, 4), i.signs(3, 4), 2.0),
    "models.constructions.memories.relu_lookup": lambda f, i: f(i.normal(5, 4), i.normal(3, 4), 0.5),
    "models.constructions.regression.Layer": lambda f, i: f("", [HEAD], HEAD.ov)(i.normal(2, 6, 18).double()),
    "models.constructions.regression.NewtonTransformer": lambda f, i: f(3, 7, 2, 0.01)(
        i.prompts()[0], i.prompts()[1][:, :-1]
    ),
    "models.constructions.regression.newton_predictions": lambda f, i: f(*i.prompts(5), 2),
}
ELSEWHERE = {
    "probes.fourier.longest_period": WORDS,
    "probes.fourier.periods": NUMBERS,
    "probes.fourier.basis": NUMBERS,
    "probes.fourier.low_waves": WORDS,
    "probes.fourier.high_waves": WORDS,
    "probes.graphs.draw_graph": WORDS,
    "probes.memories.capacity": WORDS,
    "probes.memories.interval": WORDS,
    "probes.memories.power_law": WORDS,
    "probes.memories.local_slopes": WORDS,
    "probes.memories.entropy": WORDS,
    "probes.memories.recalled_bits": WORDS,
    "probes.regression.growth_rate": WORDS,
    "baselines.addition.fourier_embeddings": NUMBERS,
    "baselines.calibration.factor_of": WORDS,
    "baselines.multihead.learn": "its stages are called one by one",
    "baselines.sensitivity.sensitivity_of": WORDS,
    "models.constructions.attention.shift_head": NUMBERS,
    "models.constructions.attention.circle": NUMBERS,
    "models.constructions.attention.circle_shift": NUMBERS,
    "models.constructions.attention.skip_gram_head": NUMBERS,
    "models.constructions.attention.broad_head": NUMBERS,
    "models.constructions.attention.match_head": NUMBERS,
}
