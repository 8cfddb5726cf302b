"""Linear maps in a language model, and of its stream: an MLP at half of its rank; a map fitted by ridge regression; a
head read as an outer-product memory of capitals; the capitals that maps fitted to other words find; and what fitted
readouts say of the course's text.
"""

import re

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import cross_entropy

from companion.core.circuits import Part, unscaled
from companion.core.measuring import Row
from companion.pretrained.facts import COUNTRIES
from companion.pretrained.language import LanguageModel
from companion.topics.bigrams.probes import truncated
from companion.topics.facts.examined import CAPITALS, PROMPT, comparable
from companion.topics.language.data import paragraphs
from companion.topics.language.probes import answer_places, head_maps, streams_at

RIDGE = 0.01  # of the mean variance
MOVER = Part(23, 4)  # the head of lesson 15 that carries the capital
HEARD = ("The capital of {}", "She is from {}", "I have never been to {}")  # what the head reads ends with the country
DRAWN = {"smoke": 16, "course": 64, "paper": 64}  # countries
RANKS, SUBSETS = (1, 2, 4, 8, 16, 32, 64), 20  # of the head's singular directions; subsets of them at random
WORDS = {"smoke": 40, "course": 1500, "paper": 3000}  # in the place of a country
AKIN = 3
WORD, AT_ONCE = re.compile(r" [A-Z][a-z]{2,}"), 50


def halve_rank(model: LanguageModel, layer: int) -> None:
    """Cut each of the three matrices of one MLP, in place, to half of its rank (Sharma et al. 2023)."""
    mlp = model.body.get_submodule(f"blocks.{layer}.mlp")
    for matrix in (*mlp.get_parameter("gate_and_up.weight").chunk(2), mlp.get_parameter("down.weight")):
        matrix.copy_(truncated(matrix, 0.5))


def ridge(
    x: Float[Tensor, "places width"], y: Float[Tensor, "places width"]
) -> tuple[Float[Tensor, "width width"], Float[Tensor, "width"]]:
    """Fit the matrix A and the offset b of y = x A + b by ridge regression."""
    middle, mean = x.mean(0), y.mean(0)
    centred = x - middle
    products = centred.mT @ centred
    products.diagonal().add_(RIDGE * products.trace() / len(products))
    A = torch.linalg.solve(products, centred.mT @ (y - mean))
    return A, mean - middle @ A


def drawn_countries(model: LanguageModel, seed: int, count: int) -> dict[str, int]:
    """Draw countries that are one token each; return the first token of each one's capital."""
    single = [country for country in COUNTRIES if len(model.encode(f" {country}")) == 1]
    order = torch.randperm(len(single), generator=torch.Generator().manual_seed(seed))[:count]
    return {single[at]: model.encode(f" {COUNTRIES[single[at]]}")[0] for at in order.tolist()}


def lead_of_diagonal(gains: Float[Tensor, "asked asked"]) -> tuple[Bool[Tensor, " asked"], Float[Tensor, " asked"]]:
    """Return in which rows the diagonal, the right answer, gains more than any other answer; and its lead over the mean
    of the others, in their standard deviations.
    """
    others = gains[~torch.eye(len(gains), dtype=torch.bool)].view(len(gains), -1)
    own = gains.diagonal()
    return own > others.amax(1), (own - others.mean(1)) / others.std(1, correction=0)


@torch.no_grad()
def held_capitals(model: LanguageModel, seed: int, count: int) -> list[Row]:
    """Read head 23.4 as an outer-product memory: of a normed stream u at a country's word it writes W_OV u, and a token
    with the output vector v gains v^T W_OV u. A country is "right" where its own capital gains most of those that
    compete; its "lead" is over all of them, and "foretold" is what is right where rivals draw from a normal law.

    Rows differ by the "text" that the country ends, by what is read ("of"), and by how many "countries" compete: the
    whole "head"; the same in "shuffled" pairs; the "model"'s own logits after the first text and "is"; "each head" of
    every layer, there; and of the singular directions of W_OV as many as "rank" says, the "largest", or at "random",
    also "random, shuffled". "best" is the best table of gains of this rank.
    """
    drawn, rows = drawn_countries(model, seed, count), []
    capitals = torch.tensor(list(drawn.values()))
    vectors = unscaled(model.norm, model.unembedding[capitals])
    generator = torch.Generator().manual_seed(seed)

    def tell(of: str, gains: list[Tensor], sizes: list[int], part: Part = MOVER, rank: int = RANKS[-1]) -> None:
        leads = torch.stack([lead_of_diagonal(each)[1] for each in gains])
        for size in sizes:
            blocks = [table[at : at + size, at : at + size] for table in gains for at in range(0, count, size)]
            right = torch.cat([lead_of_diagonal(block)[0] for block in blocks]).double().mean()
            foretold = torch.special.ndtr(leads.double()).pow(size - 1).mean()
            row = {"text": text, "of": of, "layer": part.layer, "head": part.head, "rank": rank, "countries": size}
            rows.append(row | {"right": right.item(), "foretold": foretold.item(), "lead": leads.mean().item()})

    halves = [size for size in (2, 4, 8, 16, 32, 64) if size <= count]
    _, _, WV, WO = head_maps(model, MOVER.layer)[MOVER.head]
    P, S, Q = torch.linalg.svd(WV.mT @ WO, full_matrices=False)
    for text, heard in enumerate(HEARD):
        streams = streams_at(model, model.batch([heard.format(country) for country in drawn]), model.layers, -1)
        read = model.body.get_submodule(f"blocks.{MOVER.layer}.norm1")(streams[MOVER.layer]) @ P * S
        written = vectors @ Q.mT
        gains = read @ written.mT
        tell("head", [gains], halves)
        tell("shuffled", [gains.roll(1, 1)], halves)
        for rank in RANKS:
            subsets = [torch.randperm(len(WV), generator=generator)[:rank] for _ in range(SUBSETS)]
            random = [read[:, kept] @ written[:, kept].mT for kept in subsets]
            left, sizes, right = torch.linalg.svd(gains)
            tell("largest", [read[:, :rank] @ written[:, :rank].mT], [count], rank=rank)
            tell("random", random, [count], rank=rank)
            tell("random, shuffled", [each.roll(1, 1) for each in random], [count], rank=rank)
            tell("best", [(left[:, :rank] * sizes[:rank]) @ right[:rank]], [count], rank=rank)
        if text == 0:
            asked = model.batch([PROMPT.format(country) for country in drawn])
            tell("model", [model(asked, only_last=True)[:, -1][:, capitals]], halves)
            for layer, stream in enumerate(streams):
                norm = model.body.get_submodule(f"blocks.{layer}.norm1")
                for head, (_, _, values, out) in enumerate(head_maps(model, layer)):
                    table = norm(stream) @ values.mT @ out @ vectors.mT
                    tell("each head", [table], [count], Part(layer, head))
    return rows


def drawn_words(model: LanguageModel, seed: int, count: int) -> list[str]:
    """Draw words of one token that begin with a capital letter: names of people and places, and others; none is a
    country or a capital that the model is asked for.
    """
    asked = set(COUNTRIES) | {capital.split()[0] for capital in COUNTRIES.values()}
    texts = {token: model.decode([token]) for token in range(model.tokens)}
    words = [text[1:] for token, text in texts.items() if WORD.fullmatch(text) and model.encode(text) == [token]]
    words = [word for word in words if word not in asked]
    order = torch.randperm(len(words), generator=torch.Generator().manual_seed(seed))[:count]
    return [words[at] for at in order.tolist()]


@torch.no_grad()
def known_capitals(model: LanguageModel, seed: int, count: int, words: int) -> list[Row]:
    """Read the capital in the stream before each layer, as the layer reads it, and after the last, at the "country"'s
    word and at the "last" one. It is read "direct", by the output embedding; by a linear map to what the output
    embedding reads at the end, "fitted" by `ridge` to words in the place of the country, none a country; by one fitted
    to "strangers", the words at whose end no drawn capital stands out (by `AKIN` standard deviations of what it gains
    beyond the others, over all words: French has Paris); and by one fitted to all ends "shuffled". A capital is "right"
    where it gains most of all drawn ones; "lead" is as in `held_capitals`.

    ``model``: which is read.
    ``seed``, ``count``, ``words``: a draw of so many countries and words.
    """
    drawn = drawn_countries(model, seed, count)
    capitals = model.unembedding[torch.tensor(list(drawn.values()))]
    last = f"blocks.{model.layers - 1}.hook_resid_post"
    names = [*(f"blocks.{layer}.hook_resid_pre" for layer in range(model.layers)), last]
    norms = [*(block.norm1 for block in model.body.blocks), model.norm]

    def streams(subjects: list[str]) -> Float[Tensor, "layers places subjects width"]:
        found = []
        for few in torch.arange(len(subjects)).split(AT_ONCE):
            tokens = model.batch([PROMPT.format(subjects[at]) for at in few.tolist()])
            _, cache = model.run_with_cache(tokens, names=names, only_last=True)
            found.append(torch.stack([norm(cache[name][:, [-2, -1]]) for name, norm in zip(names, norms, strict=True)]))
        return torch.cat(found, 1).transpose(1, 2)

    asked, seen = streams(list(drawn)), streams(drawn_words(model, seed, words))
    ends = seen[-1, -1]
    mixed = ends[torch.randperm(len(ends), generator=torch.Generator().manual_seed(seed))]
    gains = ends @ capitals.mT
    gains -= gains.mean(1, keepdim=True)
    strangers = ((gains - gains.mean(0)) / gains.std(0) < AKIN).all(1)
    rows = []
    for layer in range(len(names)):
        for at, place in enumerate(("country", "last")):
            x, y = asked[layer, at], seen[layer, at]
            maps = {"direct": (0, None), "fitted": (words, ridge(y, ends)), "shuffled": (words, ridge(y, mixed))}
            maps["strangers"] = int(strangers.sum()), ridge(y[strangers], ends[strangers])
            for readout, (taught, fitted) in maps.items():
                right, lead = lead_of_diagonal((x if fitted is None else x @ fitted[0] + fitted[1]) @ capitals.mT)
                shares = {"right": right.double().mean().item(), "lead": lead.mean().item()}
                rows.append({"layer": layer, "place": place, "readout": readout, "words": taught} | shares)
    return rows


@torch.no_grad()
def readouts_of_text(model: LanguageModel, seed: int, taught: int, held: int, length: int) -> list[Row]:
    """Fit for each second layer a linear map from its stream to the last one, by ridge regression on the course's text,
    and read both: the "direct" stream, the "fitted" map of it, and one fitted to "shuffled" places.

    ``model``: the language model.
    ``seed``: draws the pieces of the text.
    ``taught``, ``held``, ``length``: pieces that are fitted, pieces that are not, and the tokens of each.

    What the readouts say is measured by the "loss" on the pieces that were held out, and by the mean log2 of 1 + the
    "rank" of sixteen capitals, of which the text tells little.
    """
    generator = torch.Generator().manual_seed(seed)
    text = torch.tensor(model.encode("\n".join(paragraphs())))
    pieces = text[: len(text) // length * length].view(-1, length)
    pieces = pieces[torch.randperm(len(pieces), generator=generator)[: taught + held]]
    asked = comparable(model, CAPITALS, PROMPT)
    names = [f"blocks.{layer}.hook_resid_pre" for layer in range(0, model.layers, 2)]
    names.append(f"blocks.{model.layers - 1}.hook_resid_post")

    def streams(tokens: Tensor) -> Tensor:
        """(layers, texts, length, width)"""
        return torch.stack(list(model.run_with_cache(tokens, names=names, only_last=True)[1].values()))

    def said(stream: Tensor) -> Tensor:
        return model.norm(stream) @ model.unembedding.mT

    # the first place of each piece has another size of its own, and teaches nothing
    seen = torch.cat([streams(piece[None])[:, :, 1:] for piece in pieces], 1)
    last = streams(asked.prompts)[:, :, -1]
    following, fresh = pieces[taught:, 2:].flatten(), seen[:, taught:, :-1].flatten(1, 2)
    seen = seen[:, :taught].flatten(1, 2)
    mixed = torch.randperm(seen.shape[1], generator=generator)
    rows = []
    for at in range(len(names)):
        maps = {"direct": None, "fitted": ridge(seen[at], seen[-1]), "shuffled": ridge(seen[at], seen[-1][mixed])}
        for readout, fitted in maps.items():
            text_logits, logits = (
                said(x if fitted is None else x @ fitted[0] + fitted[1]) for x in (fresh[at], last[at])
            )
            rank = answer_places(logits, asked.answers).log2().mean().item()
            loss = cross_entropy(text_logits, following).item()
            rows.append({"layer": 2 * at, "readout": readout, "loss": loss, "rank": rank})
    return rows
