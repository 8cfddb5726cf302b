"""What a language model says first, and how sure it is of it."""

import torch
from jaxtyping import Float
from torch import Tensor

from companion.core.measuring import Row
from companion.pretrained.facts import FIRST_GUESSES, PLACE
from companion.pretrained.language import LanguageModel
from companion.topics.language.data import invented_countries


def following_tokens(model: LanguageModel, texts: list[str]) -> Float[Tensor, "texts vocabulary"]:
    """Return how likely each token is to follow each text; those of one length are read together."""
    tokens = [model.encode(text) for text in texts]
    likely = torch.empty(len(texts), len(model.unembedding))
    for length in {len(each) for each in tokens}:
        rows = [row for row, each in enumerate(tokens) if len(each) == length]
        read = torch.tensor([tokens[row] for row in rows])
        likely[rows] = model(read, only_last=True)[:, -1].softmax(-1)
    return likely


def guessed(model: LanguageModel, seed: int, few: int | None) -> list[Row]:
    """Take a model's first guess of each fact, of the first ``few`` of each kind alone if so many are said: how likely
    it is among all tokens ("p"), and whether it begins the answer ("right"); the same "among" the answers of its kind
    alone, whose probabilities are made to sum to 1. Of an invented country nothing is right; "pieces" are the tokens of
    the subject.
    """
    rows = []
    for kind, (prompt, facts) in FIRST_GUESSES.items():
        known = [*facts.items()][:few]
        invented = invented_countries(len(known), generator=seed) if kind == "capital" else []
        asked = [*known, *((country, "") for country in invented)]
        firsts = [model.encode(f" {answer}")[0] if answer else -1 for _, answer in asked]
        answers = torch.tensor(sorted({*firsts} - {-1}))
        following = following_tokens(model, [prompt.format(subject) for subject, _ in asked])
        for (subject, answer), first, likely in zip(asked, firsts, following, strict=True):
            guess, among = int(likely.argmax()), likely[answers] / likely[answers].sum()
            rows.append(
                {
                    "kind": kind if answer else "invented",
                    "subject": subject,
                    "pieces": len(model.encode(f" {subject}")),
                    "guess": model.decode([guess]).strip() or "(blank)",
                    "p": likely[guess].item(),
                    "right": int(guess == first),
                    "p_among": among.max().item(),
                    "right_among": int(answers[among.argmax()] == first),
                }
            )
    return rows


def guesses_of_facts(model: LanguageModel, prompt: str, known: dict[str, str]) -> list[Row]:
    """Ask for facts of one relation: the answer's "rank" among all tokens, and "among" the relation's answers."""
    answers = {answer: model.encode(f" {answer}")[0] for answer in known.values()}
    rows = []
    following = following_tokens(model, [prompt.format(subject) for subject in known])
    for (subject, answer), likely in zip(known.items(), following, strict=True):
        share = likely[answers[answer]]
        rows.append(
            {
                "subject": subject,
                "answer": answer,
                "guess": model.decode([int(likely.argmax())]).strip(),
                "p_answer": share.item(),
                "rank": int((likely > share).sum()),
                "among": int((likely[list(answers.values())] > share).sum()),
            }
        )
    return rows


def countries_of_cities(model: LanguageModel, cities: dict[str, str]) -> list[Row]:
    """Return what the ``model`` says of each of the ``cities``, whose country is given."""
    rows = []
    following = following_tokens(model, [PLACE.format(city) for city in cities])
    for (city, country), likely in zip(cities.items(), following, strict=True):
        the, answer = (likely[model.encode(word)[0]].item() for word in (" the", f" {country}"))
        rank, entropy = int((likely > answer).sum()), torch.special.entr(likely).sum().item()
        rows.append({"city": city, "the": the, "country": answer, "rank": rank, "entropy": entropy})
    return rows
