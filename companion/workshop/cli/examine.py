"""``examine``: load a model that others trained from a local folder, and put a lesson's probes to it."""

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from companion.core.extras import Extra
from companion.core.files import atomic_write
from companion.pretrained.language import LanguageModel, number_tokens, token_embeddings
from companion.pretrained.regression import published_regressor
from companion.topics.addition import examined as addition
from companion.topics.bigrams import examined as bigrams
from companion.topics.facts import examined as facts
from companion.topics.regression import examined as in_context

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def main(arguments: Namespace) -> int:
    """Print what the probes of ``arguments.topic`` see in the model; draw it if ``arguments.out`` says where."""
    drawn = {
        "regression": "The similarities are",
        "numbers": "The spectrum is",
        "induction": "The scores are",
        "facts": "What brings the answers back is",
    }
    folder = arguments.folder
    out = Path(arguments.out) if arguments.out else None
    if out:  # before minutes are spent on what cannot be drawn
        with Extra("lessons"):
            from companion.lesson.figures import png  # noqa: PLC0415
    try:
        match arguments.topic:
            case "regression":
                model = published_regressor(folder)
                figure = in_context.examine(model, name=folder, kappa=arguments.kappa, drawn=bool(out))
            case "numbers":
                figure = _numbers(arguments)
            case "induction":
                figure = bigrams.examine(LanguageModel(folder), name=folder, drawn=bool(out))
            case "facts":
                figure = _facts(arguments)
    except ValueError as error:
        print(f"examine {arguments.topic}: {error}")
        return 2
    try:
        if out:
            atomic_write(out, png(figure))
            print(f"{drawn[arguments.topic]} drawn in {out}")
    except OSError as error:
        print(f"examine {arguments.topic}: out = {arguments.out!r}: cannot be written ({error.strerror})")
        return 1
    return 0


def _facts(arguments: Namespace) -> "Figure | None":
    """Examine where the facts of ``arguments.facts`` are, in the words of ``arguments.prompt``, if they are given."""
    pairs = facts.read_facts(arguments.facts) if arguments.facts else None
    prompt = arguments.prompt or facts.PROMPT
    model, drawn = LanguageModel(arguments.folder), bool(arguments.out)
    return facts.examine(model, name=arguments.folder, pairs=pairs, prompt=prompt, drawn=drawn)


def _numbers(arguments: Namespace) -> "Figure | None":
    """Examine the embeddings of ``arguments.numbers`` numbers; with ``arguments.add``, train an adder on them."""
    tokens = number_tokens(arguments.folder, arguments.numbers)
    embeddings = token_embeddings(arguments.folder, list(tokens.values()))
    first, *_, last = tokens
    name = f"{arguments.folder}: {first!r} to {last!r}, one token each, embeddings of width {embeddings.shape[1]}"
    return addition.examine(embeddings, name=name, scale=arguments.add, drawn=bool(arguments.out))
