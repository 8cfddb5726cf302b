"""What lesson 15 shows of SmolLM2, a language model that others trained, and what takes longer than a lesson has: its
induction heads and who they read, where the capital of a country is, and what its MLPs say of a city; for lesson 12 how
far it follows a ball under five cups, for lesson 13 how sure it is of two hundred facts.

Every figure is of one model; a seed is a draw of what it reads, so that an interval between seeds is one over prompts.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import cross_entropy

from companion.core.circuits import Part, ablation, wires
from companion.core.measuring import Row, measurement
from companion.pretrained.cups import FOLLOWED, GAMES, SWAPS, cup_games, play
from companion.pretrained.facts import ALL_CAPITALS, ALL_RELATIONS, CITIES, NOUNS, PLACE
from companion.pretrained.fetching import MODELS
from companion.pretrained.folder import PretrainedError, existing, opened, read_tokenizer
from companion.pretrained.guesses import countries_of_cities, following_tokens, guessed, guesses_of_facts
from companion.pretrained.indirect import TOLD, by_class, by_head
from companion.pretrained.language import LanguageModel, by_transformers
from companion.pretrained.lesson import RandomModel
from companion.pretrained.linear import DRAWN, WORDS, halve_rank, held_capitals, known_capitals, readouts_of_text
from companion.pretrained.taster import stand_ins
from companion.topics.bigrams.probes import prefix_matching
from companion.topics.facts.examined import CAPITALS, PROMPT, comparable, what_brings_back
from companion.topics.language.data import (
    HOPS,
    IndirectObjects,
    hop_questions,
    indirect_objects,
    invented_countries,
    mood_questions,
    paragraphs,
)
from companion.topics.language.probes import toward_followers, toward_receivers

SMOLLM2 = {"smollm2": MODELS["smollm2"].sha256}
TEXTS = {"smoke": (1, 4), "course": (3, 32), "paper": (16, 32)}  # random texts, and how many tokens each says twice
READERS = ((17, 3), (17, 4), (18, 6), (18, 7))  # induction heads, of two layers; those of one layer share their keys
MOVERS = ((23, 0), (23, 1), (23, 7))  # heads of one layer that look at who is given something
SENTENCES = {"smoke": 2, "course": 8, "paper": 32}
FACTS = {"smoke": 3, "course": 8, "paper": 16}  # of `CAPITALS`
QUESTIONS = {"smoke": 2, "course": 40, "paper": 200}  # of each kind of what it cannot do
CUTS = [("none", -1), *(("mlp", layer) for layer in range(30)), *(("half", layer) for layer in range(24, 30))]
Figures = dict[str, Tensor | float]
LATE = {"smoke": range(23, 25), "course": range(18, 30), "paper": range(30)}  # layers that are asked for a relation
FEW = {"smoke": 3, "course": 6, "paper": 12}  # facts of a relation
PASSAGES = {"smoke": (2, 32), "course": (12, 48), "paper": (24, 64)}  # paragraphs, and of each its first tokens
PIECES = {"smoke": (3, 1, 32), "course": (30, 1, 128), "paper": (44, 4, 128)}  # taught, held out, tokens of each
ROUNDING = "the same weights and the same texts; another machine sums in another order"


def smollm2() -> LanguageModel:
    """Read the model that the tables are of. Raises PretrainedError where it is not there, and for another one."""
    return LanguageModel(smollm2_folder())


def smollm2_folder() -> Path:
    """Return where that model lies. Raises PretrainedError where it is not there, and for another one."""
    folder = existing("smollm2")
    with opened(folder / "model.safetensors") as file:
        made_of = (file.metadata() or {}).get("sha256_of_gguf")
    if made_of != SMOLLM2["smollm2"]:
        due = f"{SMOLLM2['smollm2']}, which is measured here; `fetch smollm2 --remove`, then `fetch smollm2` brings it"
        raise PretrainedError(f"{folder}: made of a GGUF with the SHA-256 {made_of}; must be {due}")
    return folder


def said_twice(model: LanguageModel, seed: int, scale: str) -> tuple[Int[Tensor, "texts length"], int]:
    """Draw random tokens that are said twice; return them, and how many."""
    texts, period = TEXTS[scale]
    drawn = torch.randint(model.tokens, (texts, period), generator=torch.Generator().manual_seed(seed))
    return torch.cat([drawn, drawn], 1), period


@measurement(
    "language-induction",
    "how much each head of SmolLM2 looks after the earlier copy, and at the token before, on random tokens said twice",
    seeds=range(5),
    tolerance=0.005,
    because=ROUNDING,
    quick=True,
    models=SMOLLM2,
)
def induction(seed: int, scale: str) -> list[Row]:
    """Measure both scores of every head on one draw of texts."""
    model = smollm2()
    return head_scores(model, *said_twice(model, seed, scale))


def head_scores(model: LanguageModel, tokens: Int[Tensor, "texts length"], period: int) -> list[Row]:
    """Measure every head's mean attention from the second saying to what followed the first one, and from everywhere to
    the token before.
    """
    rows = []
    for layer, pattern in enumerate(model.patterns(tokens)):
        before = pattern.diagonal(-1, dim1=-2, dim2=-1).mean((0, 2))
        rows += _by_head(layer, induction=prefix_matching(pattern, period), previous=before)
    return rows


def _by_head(layer: int, **scores: Float[Tensor, " heads"]) -> list[Row]:
    """A row for each head of a layer."""
    by_head = zip(*(score.tolist() for score in scores.values()), strict=True)
    return [{"layer": layer, "head": head} | dict(zip(scores, row, strict=True)) for head, row in enumerate(by_head)]


@measurement(
    "language-composition",
    "what the attention of four induction heads is without one earlier head's writing in their keys or queries",
    cells=[{"reader_layer": layer, "reader_head": head} for layer, head in READERS],
    tolerance=0.005,
    because=ROUNDING,
    models=SMOLLM2,
)
def composition(seed: int, scale: str, reader_layer: int, reader_head: int) -> list[Row]:
    """Cut each of one reader's wires on one draw of texts."""
    model = smollm2()
    return cut_wires(model, *said_twice(model, seed, scale), Part(reader_layer, reader_head))


def cut_wires(model: LanguageModel, tokens: Int[Tensor, "texts length"], period: int, reader: Part) -> list[Row]:
    """Measure a reader's mean attention to what followed the earlier copy, as it is and without what each earlier head
    has written in the stream that its keys, or its queries, read.

    ``model``, ``tokens``, ``period``: what reads random tokens said twice, and how many these are.
    ``reader``: the head that looks.
    """

    def looks(pattern: Float[Tensor, "texts length length"]) -> Float[Tensor, ""]:
        return prefix_matching(pattern[:, None], period)[0]

    return _rows_of_wires(model, tokens, reader, looks)


def _rows_of_wires(
    model: LanguageModel,
    tokens: Int[Tensor, "texts length"],
    reader: Part,
    looks: Callable[[Tensor], Tensor],
    others: Sequence[Tensor] = (),
) -> list[Row]:
    """How much a reader looks, whole, and with one wire cut by its queries and by its keys: a row for each writer."""
    whole = looks(model.patterns(tokens)[reader.layer][:, reader.head]).item()
    keys, queries = (
        wires(model, tokens, reader=reader, side=side, measure=looks, others=others) for side in ("keys", "queries")
    )
    return [
        {"layer": layer, "head": head, "whole": whole, "keys": by_key, "queries": by_query}
        for layer, both in enumerate(zip(keys.tolist(), queries.tolist(), strict=True))
        for head, (by_key, by_query) in enumerate(zip(*both, strict=True))
    ]


@measurement(
    "language-names",
    "how much more three heads look at who is given something than at the giver, with other names in one wire",
    cells=[{"reader_layer": layer, "reader_head": head} for layer, head in MOVERS],
    tolerance=0.005,
    because=ROUNDING,
    models=SMOLLM2,
)
def names(seed: int, scale: str, reader_layer: int, reader_head: int) -> list[Row]:
    """Cut each of one reader's wires on one draw of sentences."""
    model = smollm2()
    return name_wires(model, indirect_objects(SENTENCES[scale], generator=seed), Part(reader_layer, reader_head))


@torch.no_grad()
def name_wires(model: LanguageModel, drawn: IndirectObjects, reader: Part) -> list[Row]:
    """Measure how much more a reader looks, from the last word, at the receiver than at the giver: as it is, and where
    its queries, or its keys, read of one earlier head what it writes when a third name stands in the giver's second
    place.
    """
    tokens, others = model.batch(drawn.texts), model.batch(drawn.others)
    receivers, givers = ([model.encode(f" {name}")[0] for name in each] for each in (drawn.receivers, drawn.givers))
    weights = toward_receivers(tokens, receivers, givers)
    return _rows_of_wires(model, tokens, reader, lambda pattern: (weights * pattern).sum(), (others,))


@measurement(
    "language-indirect-objects",
    "of each head: where it looks for an indirect object, what it writes, and what resampling it costs",
    seeds=(0,),
    cells=[{"wording": "lesson", "draw": 0}, *({"wording": "other", "draw": draw} for draw in range(3))],
    tolerance=0.01,
    because=ROUNDING,
    models=SMOLLM2,
)
def indirect_by_head(seed: int, scale: str, wording: str, draw: int) -> list[Row]:  # noqa: ARG001 - it is 0
    """Measure every head on one draw of sentences (`by_head`)."""
    return by_head(smollm2(), indirect_objects(TOLD[scale], wording=wording, generator=draw))


@measurement("language-indirect-classes", "the same, class by class", tolerance=0.02, because=ROUNDING, models=SMOLLM2)
def indirect_by_class(seed: int, scale: str) -> list[Row]:
    """Measure every class, and random heads, on one draw of other sentences than the lesson's (`by_class`)."""
    return by_class(smollm2(), indirect_objects(TOLD[scale], wording="other", generator=seed), seed)


@measurement(
    "language-facts",
    "which share of a capital's lead, lost to another country's, comes back by layer and place, and by head",
    tolerance=0.01,
    because=ROUNDING,
    models=SMOLLM2,
)
def facts(seed: int, scale: str) -> list[Row]:
    """Measure it over eight capitals, each beside another country's, with how much each head looks at the country."""
    model = smollm2()
    layers = range(0, model.layers, 15) if scale == "smoke" else range(model.layers)
    return facts_at(model, drawn_capitals(seed, FACTS[scale]), PROMPT, layers)


def drawn_capitals(seed: int, count: int) -> dict[str, str]:
    """Draw capitals, in a random order."""
    return _drawn(CAPITALS, seed, count)


def _drawn(facts: dict[str, str], seed: int, count: int) -> dict[str, str]:
    """Some of the facts, in a random order."""
    order = torch.randperm(len(facts), generator=torch.Generator().manual_seed(seed))[:count]
    return {subject: facts[subject] for subject in (list(facts)[place] for place in order.tolist())}


def facts_at(model: LanguageModel, pairs: dict[str, str], prompt: str, layers: range) -> list[Row]:
    """Measure `what_brings_back` at some layers: the clean stream at each "place" before the layer, each "head" at the
    last place, and the "attention" of each head from there to the subject.

    ``model``, ``layers``: what is asked, and where one looks into it.
    ``pairs``, ``prompt``: as for `companion.topics.facts.examined.examine`.
    """
    found = what_brings_back(model, comparable(model, pairs, prompt), layers)
    kinds = {"place": found.streams, "head": found.heads, "attention": found.attention}
    return [
        {"layer": layer, "what": what, "at": at, "share": round(share, 4) + 0.0}  # no -0
        for row, layer in enumerate(layers)
        for what, shares in kinds.items()
        for at, share in enumerate(shares[row].tolist())
    ]


@measurement(
    "language-controls",
    "the figures of lesson 15's claims where they must fail: in three Llamas of the same size that nobody trained, and "
    "in SmolLM2 on shuffled texts (the second saying, cities and countries; no name comes twice)",
    cells=[{"world": world} for world in ("untrained", "shuffled")],
    tolerance=0.01,
    because=ROUNDING,
    models=SMOLLM2,
)
def controls(seed: int, scale: str, world: str) -> list[Row]:
    """Measure each figure in the untrained model of this seed, or in the trained one on a shuffled draw."""
    model, found = smollm2(), {}
    tokens, period = said_twice(model, seed, scale)
    drawn = indirect_objects(SENTENCES[scale], generator=seed)
    cities = dict(list(CITIES[seed % 2].items())[: 3 if scale == "smoke" else None])
    if world == "shuffled":
        order = torch.randperm(period, generator=torch.Generator().manual_seed(seed))
        tokens[:, period:] = tokens[:, order]
        drawn = drawn._replace(texts=drawn.others)
        countries = [*cities.values()]
        cities = dict(zip(cities, countries[1 + seed :] + countries[: 1 + seed], strict=True))
    else:
        model = RandomModel(model.body.config, seed)
        found = of_wires(model, tokens[:1], period) | of_facts(model, drawn_capitals(seed, FACTS["smoke"]), PROMPT)
    found |= of_copies(model, tokens, period) | of_names(model, drawn) | of_layers(model, cities)
    return [{"figure": figure, "value": round(float(value), 4) + 0.0} for figure, value in found.items()]  # no -0


def of_copies(model: LanguageModel, tokens: Int[Tensor, "texts length"], period: int) -> Figures:
    """Measure how much the best head looks after the earlier copy, beyond the median one; and at the token before."""
    scores = head_scores(model, tokens, period)
    copies, before = (torch.tensor([row[name] for row in scores]) for name in ("induction", "previous"))
    return {"induction": copies.max() - copies.median(), "previous": before.max()}


def of_wires(model: LanguageModel, tokens: Int[Tensor, "texts length"], period: int) -> Figures:
    """Measure the most that any earlier head takes of the look of the best head of layer 18: the share that is lost
    without it in the keys, less that without it in the queries.
    """
    layer = READERS[-1][0]
    best = int(prefix_matching(model.patterns(tokens)[layer], period).argmax())
    rows = cut_wires(model, tokens, period, Part(layer, best))
    return {"wire": max((row["queries"] - row["keys"]) / row["whole"] for row in rows)}


def of_facts(model: LanguageModel, pairs: dict[str, str], prompt: str) -> Figures:
    """Measure what the subject's place brings back before layer 14 more than any other place does; from layer 20 on,
    by how much the last place's share rises at most from a layer to the next, and the largest share of one head.
    """
    facts = comparable(model, pairs, prompt)
    found = what_brings_back(model, facts, [14, *range(20, model.layers)])
    first, last = found.streams[0].clone(), found.streams[1:, -1]
    subject = first[facts.place].item()
    first[facts.place] = -torch.inf
    return {"subject": subject - first.max(), "rise": last.diff().max(), "head": found.heads.max()}


def of_names(model: LanguageModel, drawn: IndirectObjects) -> Figures:
    """Measure how much more the last word looks at the receiver than at the giver, by head 23.0; in a model that was
    not trained, by the best head of its layer.
    """
    receivers, givers = ([model.encode(f" {name}")[0] for name in each] for each in (drawn.receivers, drawn.givers))
    tokens = model.batch(drawn.texts)
    weights = toward_receivers(tokens, receivers, givers)
    looks = (weights[:, None] * model.patterns(tokens)[MOVERS[0][0]]).sum((0, 2, 3))
    return {"look": looks[MOVERS[0][1]] if model.trained else looks.max()}


def of_layers(model: LanguageModel, cities: dict[str, str]) -> Figures:
    """Measure a country's log2 odds against 'the', as a mean over cities; by how much they rise with the MLP of layer
    28 at half of its rank; and the share of the cities whose country then comes earlier in the list.
    """
    before = countries_of_cities(model, cities)
    halve_rank(model, 28)
    after = countries_of_cities(model, cities)
    odds = [torch.tensor([row["country"] / row["the"] for row in rows]).log2() for rows in (before, after)]
    earlier = [new["rank"] < old["rank"] for old, new in zip(before, after, strict=True)]
    return {"before": odds[0].mean(), "odds": (odds[1] - odds[0]).mean(), "earlier": sum(earlier) / len(earlier)}


@measurement(
    "language-capitals",
    "what SmolLM2 says first after 'The capital of .. is', and how likely and at which rank it says the capital",
    seeds=(0,),
    tolerance=0.005,
    because=ROUNDING,
    quick=True,
    models=SMOLLM2,
)
def capitals(seed: int, scale: str) -> list[Row]:  # noqa: ARG001 - nothing is drawn
    """Ask for 23 capitals, of each of which the first token counts."""
    model = smollm2()
    asked = list(ALL_CAPITALS.items())[: 3 if scale == "smoke" else None]
    rows = []
    following = following_tokens(model, [PROMPT.format(country) for country, _ in asked])
    for (country, capital), likely in zip(asked, following, strict=True):
        guess, answer = int(likely.argmax()), likely[model.encode(f" {capital}")[0]].item()
        rows.append(
            {
                "country": country,
                "capital": capital,
                "guess": model.decode([guess]).strip(),
                "p_guess": likely[guess].item(),
                "p_capital": answer,
                "rank": int((likely > answer).sum()),
            }
        )
    return rows


@measurement(
    "language-limits",
    "whether SmolLM2 puts the right word before the others, where the answer stands in the text, by one hop or two, or "
    "is the mood of a remark; and whether it names a town as the capital of an invented country",
    cells=[{"task": task} for task in (*HOPS, "mood", "invented")],
    tolerance=0.005,
    because=ROUNDING,
    models=SMOLLM2,
)
def limits(seed: int, scale: str, task: str) -> list[Row]:
    """Ask one draw of questions of one kind."""
    model, count = smollm2(), QUESTIONS[scale]
    if task == "invented":
        countries = invented_countries(count, generator=seed)
        following = following_tokens(model, [PROMPT.format(country) for country in countries])
        named = [model.decode([int(likely.argmax())]).strip()[:1].isupper() for likely in following]
        return [
            {"question": row, "choices": 0, "right": int(is_name), "p_first": likely.max().item()}
            for row, (is_name, likely) in enumerate(zip(named, following, strict=True))
        ]
    questions = mood_questions(count, generator=seed) if task == "mood" else hop_questions(task, count, generator=seed)
    rows = []
    following = following_tokens(model, [question.text for question in questions])
    for row, (question, likely) in enumerate(zip(questions, following, strict=True)):
        choices = likely[[model.encode(f" {choice}")[0] for choice in question.choices]]
        right = int(choices.argmax() == question.right)
        rows.append({"question": row, "choices": len(choices), "right": right, "p_first": likely.max().item()})
    return rows


@measurement(
    "language-layers",
    "p(the), p(its country), the country's rank and the entropy after a city 'is located in', with an MLP cut",
    seeds=(0, 1),
    cells=[{"cut": cut, "layer": layer} for cut, layer in CUTS],
    tolerance=0.005,
    because=ROUNDING,
    quick=True,
    models=SMOLLM2,
)
def layers(seed: int, scale: str, cut: str, layer: int) -> list[Row]:
    """Ask about the ``seed``-th twenty cities: "none" is cut, the "mlp" of a layer is taken out, or the rank of its
    three matrices is "half".
    """
    model = smollm2()
    if cut == "half":
        halve_rank(model, layer)
    cities = dict([*CITIES[seed].items()][: 3 if scale == "smoke" else None])
    with model.hooks(ablation(f"blocks.{layer}.hook_mlp_out", "zero") if cut == "mlp" else {}):
        return countries_of_cities(model, cities)


@measurement(
    "language-lifted",
    "by how much log2 p rises after a city 'is located in', for words of five kinds without the MLP of layer 28; the "
    "loss on the course's own text without each MLP",
    seeds=(0, 1),
    tolerance=0.05,
    because=ROUNDING,
    models=SMOLLM2,
)
def lifted(seed: int, scale: str) -> list[Row]:
    """Measure the median rise over the ``seed``-th twenty cities: of "the"; of the city's own "country"; of the "other
    countries"; of 2,000 "random tokens" and ten "everyday nouns". Layer -1 stands for the whole model.
    """
    model = smollm2()
    cities = dict(list(CITIES[seed].items())[: 3 if scale == "smoke" else None])
    asked = [PLACE.format(city) for city in cities]
    before = following_tokens(model, asked)
    with model.hooks(ablation("blocks.28.hook_mlp_out", "zero")):
        rise = (following_tokens(model, asked) / before).log2()
    own = torch.tensor([model.encode(f" {country}")[0] for country in cities.values()])[:, None]
    nouns = torch.tensor([model.encode(f" {noun}")[0] for noun in NOUNS])
    drawn = torch.randperm(model.tokens, generator=torch.Generator().manual_seed(seed))[:2000]
    others = rise[:, own[:, 0]].masked_fill(own == own[:, 0], torch.nan).nanmedian(1).values
    kinds = {"the": rise[:, model.encode(" the")[0]], "country": rise.gather(1, own), "other countries": others}
    kinds |= {"random tokens": rise[:, drawn].median(1).values, "everyday nouns": rise[:, nouns].median(1).values}
    rows = [{"layer": 28, "of": kind, "value": each.median().item()} for kind, each in kinds.items()]
    read = passages(model, seed, scale)[:6]
    for layer in range(-1, 3 if scale == "smoke" else model.layers):
        with model.hooks(ablation(f"blocks.{layer}.hook_mlp_out", "zero") if layer >= 0 else {}):
            loss = cross_entropy(model(read)[:, :-1].mT, read[:, 1:]).item()
        rows.append({"layer": layer, "of": "loss", "value": loss})
    return rows


@measurement(
    "language-relations",
    "which share of an answer's lead comes back by late layer and place, and by head, for facts of four relations",
    cells=[{"relation": relation} for relation in ALL_RELATIONS],
    tolerance=0.01,
    because=ROUNDING,
    models=SMOLLM2,
)
def relations(seed: int, scale: str, relation: str) -> list[Row]:
    """Measure it over six facts of a relation, each beside another's subject, as `facts_at` does."""
    prompt, known = ALL_RELATIONS[relation]
    return facts_at(smollm2(), _drawn(known, seed, FEW[scale]), prompt, LATE[scale])


@measurement(
    "language-asked",
    "what SmolLM2 says first when asked for facts of four relations, and at which rank it says the answer",
    seeds=(0,),
    cells=[{"relation": relation} for relation in ALL_RELATIONS],
    tolerance=0.005,
    because=ROUNDING,
    quick=True,
    models=SMOLLM2,
)
def asked_of_relations(seed: int, scale: str, relation: str) -> list[Row]:  # noqa: ARG001 - nothing is drawn
    """Ask for all facts of a relation (`guesses_of_facts`)."""
    prompt, known = ALL_RELATIONS[relation]
    return guesses_of_facts(smollm2(), prompt, dict([*known.items()][: 3 if scale == "smoke" else None]))


def passages(model: LanguageModel, seed: int, scale: str) -> Int[Tensor, "texts length"]:
    """Draw paragraphs of the course's text, of each its first tokens; the first draws have none in common."""
    texts, length = PASSAGES[scale]
    long = [tokens for tokens in map(model.encode, paragraphs()) if len(tokens) >= length]
    order = torch.randperm(len(long), generator=torch.Generator().manual_seed(0)).roll(-seed * texts)
    return torch.tensor([long[row][:length] for row in order[:texts].tolist()])


@measurement(
    "language-prose",
    "how much each head of SmolLM2 looks at what followed a token's earlier occurrence, in the course's own text",
    tolerance=0.005,
    because=ROUNDING,
    quick=True,
    models=SMOLLM2,
)
def natural(seed: int, scale: str) -> list[Row]:
    """Measure it where a text is said "twice", from the second saying; and in the text said "once", where a word comes
    again by itself, beside the same places in another text ("elsewhere").
    """
    model = smollm2()
    read = passages(model, seed, scale)
    weights, period = toward_followers(read), read.shape[1]
    rows = []
    for layer, pattern in enumerate(model.patterns(torch.cat([read, read], 1))):
        first = pattern[..., :period, :period]  # causal: the second saying is not yet there
        twice = prefix_matching(pattern, period)
        once, elsewhere = ((each[:, None] * first).sum((0, 2, 3)) for each in (weights, weights.roll(1, 0)))
        rows += _by_head(layer, twice=twice, once=once, elsewhere=elsewhere)
    return rows


@measurement(
    "language-losses",
    "SmolLM2's loss at each place of the course's own text, which is said twice",
    tolerance=0.05,
    because=ROUNDING,
    quick=True,
    models=SMOLLM2,
)
def losses(seed: int, scale: str) -> list[Row]:
    """Measure the mean over the draw's paragraphs of the loss of each token but the first."""
    model = smollm2()
    read = passages(model, seed, scale).repeat(1, 2)
    lost = torch.stack([cross_entropy(model(text[None])[0, :-1], text[1:], reduction="none") for text in read])
    return [{"place": place, "loss": loss} for place, loss in enumerate(lost.mean(0).tolist(), 1)]


@measurement(
    "language-readouts",
    "what SmolLM2's stream says before each layer, read by the output embedding: directly, or fitted to do so",
    tolerance=0.1,
    because="a linear map of 576 channels is fitted to 3,810 places, which rounds",
    models=SMOLLM2,
)
def readouts(seed: int, scale: str) -> list[Row]:
    """Fit the readouts on one draw of the course's text (`readouts_of_text`)."""
    return readouts_of_text(smollm2(), seed, *PIECES[scale])


@measurement(
    "language-first-look",
    "how SmolLM2 goes on after a few words, and where three heads look in a sentence in which a phrase comes again",
    seeds=(0,),
    tolerance=0.005,
    because=ROUNDING,
    quick=True,
    models=SMOLLM2,
)
def first_look(seed: int, scale: str) -> list[Row]:  # noqa: ARG001 - nothing is drawn
    """Measure what the taster shows where there is no model."""
    return stand_ins(smollm2())


@measurement(
    "language-held",
    "how many capitals a head of SmolLM2 holds as an outer-product memory, by number of countries and by rank",
    tolerance=0.02,
    because=ROUNDING,
    models=SMOLLM2,
)
def held(seed: int, scale: str) -> list[Row]:
    """Read the head over one draw of countries, in three texts (`held_capitals`)."""
    return held_capitals(smollm2(), seed, DRAWN[scale])


@measurement("language-known", "which capitals fitted maps find", tolerance=0.1, because=ROUNDING, models=SMOLLM2)
def known(seed: int, scale: str) -> list[Row]:
    """Fit the maps to one draw of words and ask for one of countries, at each layer and two places."""
    return known_capitals(smollm2(), seed, DRAWN[scale], WORDS[scale])


@measurement(
    "limits-cups",
    "whether SmolLM2 follows a ball under five cups over 1 to 32 swaps: at once, by steps that it writes, and where "
    "each step before is written rightly",
    cells=[{"asked": asked} for asked in FOLLOWED],
    tolerance=0,
    because="guesses are words; where two are equally likely another machine may take the other",
    models=SMOLLM2,
)
def cups(seed: int, scale: str, asked: str) -> list[Row]:
    """Play one draw of games."""
    folder, generator = smollm2_folder(), torch.Generator().manual_seed(seed)
    untouched = asked == FOLLOWED[1]
    drawn = cup_games(GAMES[scale], max(SWAPS[scale]), untouched=untouched, generator=generator)
    examples = cup_games(2 * len(drawn), 2, untouched=untouched, generator=generator)
    tokenizer, model = read_tokenizer(folder), by_transformers(folder).float()
    return play(model, lambda text: tokenizer.encode(text).ids, asked, drawn, examples, SWAPS[scale])


@measurement(
    "calibration-first-guesses",
    "what SmolLM2, and a Llama of its size that nobody trained, says first of two hundred facts and of the capitals of "
    "invented countries, how sure it is, and whether that is right",
    seeds=(0,),
    cells=[{"world": world} for world in ("trained", "untrained")],
    tolerance=0.005,
    because=ROUNDING,
    models=SMOLLM2,
)
def first_guesses(seed: int, scale: str, world: str) -> list[Row]:
    """Ask for every fact, and for as many capitals of invented countries as of others."""
    model = smollm2()
    if world == "untrained":
        model = RandomModel(model.body.config, seed)
    return guessed(model, seed, 3 if scale == "smoke" else None)
