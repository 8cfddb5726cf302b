"""``circuit``: score a circuit that a file names, beside others; without one, list the built-in behaviours."""

import json
import runpy
import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path
from random import Random
from traceback import extract_tb
from typing import Any

from companion.core.checkpoints import load, read_header
from companion.core.defaults import torch_defaults
from companion.core.extras import Extra
from companion.core.files import atomic_write
from companion.core.measuring import Row, measured_table
from companion.core.recipe import recipe
from companion.core.registry import nearest_first
from companion.pretrained.circuits.behaviours import BEHAVIOURS, Behaviour, Pair
from companion.pretrained.circuits.parts import Circuit
from companion.pretrained.circuits.runs import Runs, as_tokens, draw, draw_pairs
from companion.pretrained.circuits.scoring import FLAT, score
from companion.pretrained.circuits.search import find_circuit
from companion.pretrained.language import LanguageModel

STORED = "language-found-circuits"


def main(arguments: Namespace) -> int:
    """Score what ``arguments.file`` names on ``arguments.model``, print it, and draw it if ``arguments.out`` says
    where. Returns 2 for what cannot be scored, after a sentence that says why.
    """
    if arguments.file is None:
        width = max(map(len, BEHAVIOURS))
        print(*(f"{name:{width}}  {' '.join((of.__doc__ or '').split())}" for name, of in BEHAVIOURS.items()), sep="\n")
        return 0
    with Extra("lessons") if arguments.out else nullcontext():  # before a minute is spent on what cannot be drawn
        picture = import_module("companion.pretrained.circuits.shown").circuit_picture if arguments.out else None
    try:
        name, behaviour, claimed = read_claim(arguments.file, search=bool(arguments.find))
        model = load_model(arguments.model)
        rows = measured_table(STORED).rows if arguments.model == "smollm2" else []
        known = next((row for row in rows if behaviour is BEHAVIOURS.get(row["behaviour"])), None)
        stored = Circuit.read(known["circuit"].split()) if known else None
        circuit, called = (Circuit.read(claimed), "the circuit") if claimed else (stored, "the stored circuit")
        searched: list[Pair] = []  # no circuit is scored on what it was searched on
        if arguments.find:
            searched = draw_pairs(behaviour, 2 * arguments.prompts, arguments.seed + 1)
            searched = searched[: len(searched) // 2]  # where there are few pairs, half of them stay to be scored on
            kept = Path("build/circuits") / f"{name.replace(' ', '-')}.partial.json"
            others = Runs(model, as_tokens(model, searched))
            circuit, called = find_circuit(others, budget=arguments.find, kept=kept, label=name), "the found circuit"
        elif circuit is None:
            raise ValueError(
                f"circuit: none is stored for {name!r} in {arguments.model}; name one in a file, or search with --find"
            )
        elif known:
            searched = draw_pairs(behaviour, known["pairs"], known["seed"])
        runs = Runs(model, draw(model, behaviour, arguments.prompts, arguments.seed, without=searched))
        scored = score(runs, circuit, random=arguments.random, seed=arguments.seed)
        best = score(runs, stored, random=0) if stored and called == "the circuit" else None
    except ValueError as error:
        print(f"circuit: {str(error).removeprefix('circuit: ')}", file=sys.stderr)
        return 2
    said = {"behaviour": name, "model": arguments.model, "seed": arguments.seed, "parts": len(runs.parts)}
    said["model_mlps"] = len(runs.blocks) * runs.has_mlps
    row = said | scored.row() | {"circuit": circuit.names, "stored": best.row() if best else None}
    if picture:
        drawn = picture(circuit, layers=len(runs.blocks), heads=runs.heads, title=f"{name}, {arguments.model}")
        atomic_write(arguments.out, drawn.png)
    if arguments.json:
        print(json.dumps(row))
        return 0
    print(*report(row, len(scored.random), called), sep="\n")
    if arguments.find:
        print(f"circuit = {json.dumps(circuit.names)}")
    if arguments.out:
        print(f"It is drawn in {arguments.out}.")
    return 0


def read_claim(file: str, *, search: bool = False) -> tuple[str, Behaviour, Sequence[str] | None]:
    """Return a behaviour's name, the behaviour, and the circuit: of a file of Python that has ``behaviour``, a function
    or the name of a built-in one, and ``circuit``, a list of names; or of a built-in behaviour, without a circuit.
    Raises ValueError for what is neither, for a file that cannot be run, and for one that names no circuit, unless a
    ``search`` is to find one.
    """
    if file in BEHAVIOURS:
        return file, BEHAVIOURS[file], None
    there = ", ".join(nearest_first(file, BEHAVIOURS))
    if not Path(file).is_file():
        raise ValueError(f"file = {file!r}: must be a Python file that exists, or one of {there}")
    try:
        with torch_defaults():
            names = runpy.run_path(file)
    except (Exception, SystemExit) as error:
        raise ValueError(f"file = {file!r}: cannot be run: {_told(error, file)}") from error
    if "behaviour" not in names:
        raise ValueError(f"file = {file!r}: has no `behaviour`; must define it, as a function or one of {there}")
    behaviour, circuit = names["behaviour"], names.get("circuit")
    if isinstance(behaviour, str) and behaviour in BEHAVIOURS:
        name, of = behaviour, BEHAVIOURS[behaviour]
    elif callable(behaviour):
        name, of = Path(file).stem, _drawn(behaviour, file)
    else:
        raise ValueError(f"file = {file!r}: behaviour = {behaviour!r}; must be a function, or one of {there}")
    if search:
        return name, of, None
    if not circuit or not isinstance(circuit, str | list | tuple):
        said = f"circuit = {circuit!r}" if "circuit" in names else "has no `circuit`"
        raise ValueError(
            f'file = {file!r}: {said}; must name its parts, as circuit = ["m0", "23.4"]; --find searches for them'
        )
    return name, of, circuit


def _drawn(behaviour: Callable[..., Any], file: str) -> Behaviour:
    """A behaviour of a file, whose errors tell where they are."""

    def drawn(random: Random) -> Any:
        try:
            return behaviour(random)
        except Exception as error:
            begins = getattr(getattr(behaviour, "__code__", None), "co_firstlineno", None)
            raise ValueError(f"behaviour: raises an error: {_told(error, file, begins)}") from error

    return drawn


def _told(error: BaseException, file: str, line: int | None = None) -> str:
    """What went wrong, and in which line of a file: the last that was reached there, or else ``line``."""
    said = error.msg if isinstance(error, SyntaxError) else error
    reached = [frame.lineno for frame in extract_tb(error.__traceback__) if frame.filename == file]
    line = error.lineno if isinstance(error, SyntaxError) else reached[-1] if reached else line
    return f"{type(error).__name__}: {said}" + (f", line {line} of {Path(file).name}" if line else "")


def load_model(name: str) -> Any:
    """Return a fetched model by its name, that of a folder, or that of a checkpoint of the course's, FILE.safetensors.
    Raises ValueError for one that is not there or cannot be read.
    """
    if not name.endswith(".safetensors"):
        return LanguageModel(name)
    header = read_header(name)
    model = recipe(header.recipe, header.scale).model()
    load(name, model)
    return model.requires_grad_(False).eval()


def report(row: Row, drawn: int, called: str = "the circuit") -> list[str]:
    """Return the score of a circuit ``called`` so in words and as a small table, beside ``drawn`` random circuits."""

    def two(number: float) -> str:
        return f"{round(number, 2) + 0.0:.2f}"  # never -0.00

    def within(of: Row, name: str) -> str:
        return f"{two(of[name]):>5} ({two(of[f'{name}_low'])} to {two(of[f'{name}_high'])})"

    def line(name: str, of: Row) -> str:
        kept = f"{within(of, 'faithfulness')}  {within(of, 'completeness')}"
        return f"{name:22}{of['size']:5}{of['wires']:7}  {kept}  {of['probability']:5.2f}  {of['first']:4.0%}"

    low, high = row["accuracy_low"], row["accuracy_high"]
    whole, given, other = row["whole_probability"], row["probability"], f"{drawn} random circuits"
    lines = [
        f"{row['behaviour']}, {row['model']}: right ahead of wrong in {row['accuracy']:.0%} of {row['pairs']} prompts "
        f"({low:.0%} to {high:.0%}).",
        f"{'':22}parts  wires  faithfulness           completeness           p(right) first guess",
        f"{'the whole model':22}{row['parts']:5}{'all':>7}  {' 1.00':23}{' 0.00':23}"
        f"{whole:5.2f}  {row['whole_first']:4.0%}",
        line(called, row),
        *([line("the stored circuit", row["stored"])] if row["stored"] else []),
        f"{other:22}{row['size']:5}{0:7}  {two(row['random']):>5} as a mean, {two(row['random_best'])} the best",
        f"{'no part at all':22}{0:5}{0:7}  {two(row['empty']):>5}",
    ]
    said = f"the right continuation has p = {given:.2f}, where the model gives it {whole:.2f}."
    if row["flattens"]:
        lines.append(f"It only flattens what the model says: the difference stays, and {said}")
    elif row["faithfulness"] > FLAT:
        lines.append(f"It does not only flatten what the model says: {said}")
    elif given < FLAT * whole:
        lines.append(
            f"It keeps {two(row['faithfulness'])}, and does not say the answer: p = {given:.2f} of {whole:.2f}."
        )
    mlps = row["model_mlps"]
    if row["mlps"] in (0, mlps) and row["heads"] in (0, row["parts"] - mlps):
        lines.append("No other circuit has as many heads and MLPs: the random ones have its parts.")
    elif row["random_best"] >= row["faithfulness_low"]:
        these = "heads, for no other circuit has that many MLPs" if row["mlps"] == mlps > 0 else "parts"
        lines.append(f"A random circuit of its size keeps as much: it says nothing about these {these}.")
    elif row["random_best"] >= 0.5 * row["faithfulness"]:
        share = row["random_best"] / row["faithfulness"]
        lines.append(f"The best random circuit of its size keeps {share:.0%} as much: some of this is due to its size.")
    if row["faithfulness"] > 1.1:
        lines.append("It says more than the model: what holds the model back is among the parts left out.")
    if row["completeness"] > 0.1:
        lines.append(f"It is not all: without it {row['completeness']:.0%} of the difference stays.")
    return lines
