"""Checkpoints: weights as safetensors, with the recipe, scale, seed and machine that made them in the header."""

import json
import platform
from collections.abc import Callable
from dataclasses import MISSING, asdict, dataclass, field, fields, is_dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import nn

import companion
from companion.core.files import in_its_place, write_safetensors
from companion.core.processes import share
from companion.core.recipe import Recipe, kept_in, recipe, times
from companion.core.rounding import STORED, STORED_FITTED, compact, expand, fitted
from companion.core.training import History, pick_device
from companion.core.wrappers import by_own_names, load_tensors, tensors_of, unwrapped

WEIGHTS = Path(__file__).parents[1] / "weights"
CURVE_POINTS = 200


class CheckpointError(ValueError):
    """A file that is not the checkpoint it should be; the message says what is wrong with it."""


def _machine(device: str) -> str:
    """Return the system, its processor, and what computed: the GPU's name, or the number of threads."""
    threads = torch.get_num_threads()
    threads = f"{threads} thread{'s' * (threads > 1)}"
    computed = torch.cuda.get_device_name(device) if device.startswith("cuda") else threads
    return f"{platform.system()} {platform.machine()}, {computed}"


@dataclass(frozen=True)
class Header:
    """How a checkpoint was made.

    ``loss_curve``: pairs (step, mean loss since the pair before), at most 200. ``stored``: the form in which the file
    keeps the weights, where it says so.
    """

    recipe: str
    scale: str
    seed: int
    steps: int
    device: str
    machine: str
    seconds: float
    config: dict
    loss_curve: list[tuple[int, float]] = field(repr=False)
    versions: dict[str, str] = field(
        default_factory=lambda: {
            "companion": companion.__version__,
            "torch": torch.__version__,
            "python": platform.python_version(),
        }
    )
    stored: str = ""


OPTIONAL = {"stored"}  # files from before this field do not have it


def loss_curve(losses: list[float]) -> list[tuple[int, float]]:
    """Return the losses of a run in at most 200 pairs (last step of a stretch, its mean loss)."""
    stride = max(1, -(-len(losses) // CURVE_POINTS))
    stretches = [losses[start : start + stride] for start in range(0, len(losses), stride)]
    return [
        (start * stride + len(stretch), round(sum(stretch) / len(stretch), 6))
        for start, stretch in enumerate(stretches)
    ]


def save(
    path: str | Path,
    model: nn.Module,
    *,
    recipe: str,
    scale: str,
    seed: int,
    history: History,
    dtype: torch.dtype | None = None,
    calibrate: Callable[[nn.Module], object] | None = None,
) -> Header:
    """Write the weights with their run's header, and return it; `load` gives them back in the model's own dtype.

    ``path``: the file, ending in .safetensors.
    ``model``: what was trained; it has a dataclass ``config``. Compiled or data-parallel, it is kept as it is alone.
    ``recipe``, ``scale``, ``seed``: what made it.
    ``history``: what the run did.
    ``dtype``: ``torch.bfloat16`` halves the file, with 8 bits of each weight; ``torch.int8`` quarters it, each weight
    rounded to the nearest (`companion.core.rounding.compact`); None keeps all.
    ``calibrate``: runs the model on what rounded weights must still do well; the file is then in int8, fitted to it
    (`companion.core.rounding.fitted`), whatever ``dtype`` is.
    """
    if calibrate is not None:
        weights, stored = fitted(unwrapped(model), calibrate), STORED_FITTED
    elif dtype is not None:
        weights, stored = compact(tensors_of(model), dtype), STORED.get(dtype, "")
    else:
        weights, stored = tensors_of(model), ""
    header = Header(
        recipe,
        scale,
        seed,
        len(history.losses),
        history.device,
        _machine(history.device),
        round(history.seconds, 1),
        asdict(_config(model)),
        loss_curve(history.losses),
        stored=stored,
    )
    write_safetensors(
        Path(path), by_own_names(weights), {name: json.dumps(value) for name, value in asdict(header).items()}
    )
    return header


def _config(model: nn.Module):
    """Return a model's config. Raises ValueError where it is no dataclass."""
    config = unwrapped(model).config
    if not is_dataclass(config) or isinstance(config, type):
        raise ValueError(f"model = {type(model).__name__}: its config is {config!r}; must be a dataclass")
    return config


def read_header(path: str | Path) -> Header:
    """Read the header alone. Raises CheckpointError for a missing, truncated or foreign file."""
    path = Path(path)
    if not path.is_file():
        raise CheckpointError(f"{path}: no such checkpoint; make it with `python -m companion train`")
    try:
        with safe_open(path, "pt") as file:
            metadata = file.metadata() or {}
    except SafetensorError as error:
        raise CheckpointError(
            f"{path}: not a safetensors file, or a truncated one ({error}){in_its_place(path)}"
        ) from None
    missing = [name for name in Header.__dataclass_fields__ if name not in metadata.keys() | OPTIONAL]
    if missing:
        raise CheckpointError(f"{path}: not a checkpoint of this course: its header lacks {', '.join(missing)}")
    try:
        values = {name: json.loads(metadata[name]) for name in Header.__dataclass_fields__ if name in metadata}
        values["loss_curve"] = [(step, loss) for step, loss in values["loss_curve"]]
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"{path}: not a checkpoint of this course: its header cannot be read ({error})") from None
    return Header(**values)


def load(path: str | Path, model: nn.Module, *, recipe: str | None = None) -> Header:
    """Fill ``model`` from ``path``; return the header.

    Raises CheckpointError for a missing, truncated or foreign file, for one of another recipe, and for a config, or
    weights' names or shapes, that are not the model's (each is named). A setting that configs have gained since the
    file was made counts as its default.
    """
    header = read_header(path)
    if recipe is not None and header.recipe != recipe:
        raise CheckpointError(f"{path}: made by the recipe {header.recipe!r}; must be made by {recipe!r}")
    with safe_open(path, "pt") as file:
        found = expand({name: file.get_tensor(name) for name in file.keys()})
    found = by_own_names(found)
    wanted, config = tensors_of(model), _config(model)
    settings = {
        setting.name: setting.default for setting in fields(config) if setting.default is not MISSING
    } | header.config
    wrong = [f"the tensor {name} is missing" for name in wanted.keys() - found.keys()]
    wrong += [f"the tensor {name} is not one of the model's" for name in found.keys() - wanted.keys()]
    wrong += [
        f"config.{name} is {settings.get(name)!r}, but {value!r} in the model"
        for name, value in json.loads(json.dumps(asdict(config))).items()
        if settings.get(name) != value
    ]
    wrong += [
        f"{name} has shape {tuple(found[name].shape)}, but {tuple(wanted[name].shape)} in the model"
        for name in wanted.keys() & found.keys()
        if found[name].shape != wanted[name].shape
    ]
    if wrong:
        raise CheckpointError(f"{path}: {'; '.join(sorted(wrong))}")
    load_tensors(model, found)
    model.eval()
    return header


def weights_path(name: str, scale: str = "course", seed: int = 0) -> Path:
    """Return where a recipe's shipped checkpoint lies (or would lie); of several seeds where a lesson needs an
    interval.
    """
    return kept_in(WEIGHTS) / f"{name}-{scale}{f'-seed{seed}' if seed else ''}.safetensors"


def train_and_save(chosen: Recipe, seed: int, device: str | None, out: Path) -> Header | None:
    """Train a recipe, from where it was if it was stopped, and save it; return the header. Of several processes the
    first alone saves, and the others return None.

    ``chosen``, ``seed``, ``device``: the recipe, and what it is trained with.
    ``out``: the file; a state for resuming lies beside it until the end.
    """
    model, history = chosen.train(seed=seed, device=device, resume=out.with_suffix(".partial.safetensors"))
    if share()[0]:
        return None
    kept = {"dtype": chosen.stored, "calibrate": chosen.calibrate}
    return save(out, model, recipe=chosen.name, scale=chosen.scale, seed=seed, history=history, **kept)


def shipped(
    name: str, scale: str = "course", seed: int = 0, *, device: str | torch.device = "cpu"
) -> tuple[nn.Module, Header]:
    """Return a shipped model and the header that says how it was made. Where all is trained longer (`times`), it is
    trained first, once. Raises CheckpointError where there is none, and ValueError for an unknown recipe or a device
    that will not do.

    ``name``, ``scale``, ``seed``: the recipe that made it, and what it was made with.
    ``device``: where the model is to be; as for `companion.core.training.pick_device`.
    """
    chosen, path = recipe(name, scale), weights_path(name, scale, seed)
    if times() > 1 and not path.is_file():
        train_and_save(chosen, seed, "cpu", path)
    model = chosen.model()
    header = load(path, model, recipe=name)
    needs_float64 = any(weight.dtype == torch.float64 for weight in model.parameters())
    return model.to(pick_device(device, float64=needs_float64)), header
