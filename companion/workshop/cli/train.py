"""``train``: a recipe into a checkpoint, alone or under ``torchrun`` on several processes at once; or every shipped
checkpoint that is missing.
"""

from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

from joblib import Parallel, delayed
from tqdm.auto import tqdm

from companion.core import checkpoints
from companion.core.checkpoints import weights_path
from companion.core.files import make_room, read_toml
from companion.core.processes import share
from companion.core.recipe import Recipe, recipe, recipes
from companion.core.training import ResumeError, pick_device

SHIPPED = checkpoints.WEIGHTS / "shipped.toml"
Run = tuple[str, str, int]  # a recipe, a scale, a seed


def main(arguments: Namespace) -> int:
    """Train ``arguments.recipe`` and save it, or all that is missing; without either, list what there is."""
    try:
        chosen = recipe(arguments.recipe, arguments.scale) if arguments.recipe is not None else None
        pick_device(arguments.device, float64=bool(chosen and chosen.needs_float64))
        share()
    except ValueError as error:
        print(f"train: {error}")
        return 2
    if arguments.missing:
        return _missing(arguments)
    if arguments.jobs is not None:
        print(f"train: --jobs {arguments.jobs}: goes with --missing alone, as one recipe is one job; leave it out")
        return 2
    if chosen is None:
        known = recipes()
        for name, scales in sorted(known.items()):
            print(f"{name:{max(map(len, known))}}  {', '.join(scales):22} {next(iter(scales.values())).about}")
        return 0
    out = Path(arguments.out or f"build/train/{arguments.recipe}-{arguments.scale}.safetensors")
    make_room(out.parent)
    try:
        said = _trained(chosen, arguments.seed, arguments.device, out)
    except ResumeError as error:
        print(f"train: {error}")
        return 1
    if said:
        print(said)
    return 0


def shipped_runs() -> Iterator[list[Run]]:
    """Yield what the course ships: groups of runs, of which a later one may begin as a model of an earlier one."""
    for group in read_toml(SHIPPED)["group"]:
        yield [(name, scale, seed) for scale, names in group.items() for name in names for seed in names[name]]


def _missing(arguments: Namespace) -> int:
    """Train every shipped checkpoint whose file is not there, ``arguments.jobs`` at a time."""
    if arguments.recipe or arguments.out or arguments.seed or arguments.scale != "course":
        print("train: --missing makes every shipped checkpoint in its own place: only --jobs and --device go with it")
        return 2
    for group in shipped_runs():
        todo = [run for run in group if not weights_path(*run).is_file()]
        runs = Parallel(n_jobs=arguments.jobs, return_as="generator")(
            delayed(_ship)(*run, arguments.device) for run in todo
        )
        for said in tqdm(runs, desc="checkpoints", total=len(todo), delay=2):
            print(said)
    return 0


def _ship(name: str, scale: str, seed: int, device: str | None) -> str:
    return _trained(recipe(name, scale), seed, device, weights_path(name, scale, seed))


def _trained(chosen: Recipe, seed: int, device: str | None, out: Path) -> str:
    """Train a recipe and save it; what the run was, in a line, for the first of several processes alone."""
    header = checkpoints.train_and_save(chosen, seed, device, out)
    if header is None:
        return ""
    return (
        f"{out}: {header.steps} steps in {header.seconds:.0f} s on {header.device}, loss {header.loss_curve[-1][1]:.4f}"
    )
