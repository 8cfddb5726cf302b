"""The one training loop: seed, device, schedule, progress bar, resume; alone, or data-parallel under ``torchrun``.

Every batch is drawn from the pair (seed, step), so a run that was killed goes on exactly where its last save was, and
every rank of a data-parallel run draws the same global batch and keeps its own share: one process or many, the numbers
are the same.
"""

import json
import math
import os
import time
from collections import Counter
from collections.abc import Callable, Collection
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn
from tqdm.auto import tqdm

from companion.core.arguments import at_least, positive
from companion.core.files import write_safetensors
from companion.core.processes import BY_TORCHRUN, process_group, share, shared
from companion.core.wrappers import load_tensors, tensors_of

SAVE_EVERY_SECONDS = 20.0
AFRESH = "remove it to start afresh"
FETCH_EVERY = 20  # steps, after which losses come from the device and the progress bar says them
PRECISIONS = ("float32", "bfloat16")


class ResumeError(ValueError):
    """A saved state that this run cannot go on from; the message says why and what to do."""


@dataclass(frozen=True)
class Schedule:
    """Adam with linear warm-up to ``lr`` and a cosine down to zero over ``steps``; gradients clipped to norm 1.

    ``precision`` is that of the forward pass, on every device alike: "float32", or "bfloat16" for wide models (not
    every processor is faster for it); weights stay in their own. With ``muon`` the matrices inside blocks are left to
    Muon (Jordan et al. 2024), whose steps are orthogonal matrices, of the size that Adam's have (Liu et al. 2025,
    arXiv:2502.16982), so that ``lr`` serves both. With ``curriculum`` the sampler is told, too, how much of the run is
    over. With ``decay`` every step takes lr times ``decay`` of each weight away (AdamW, Loshchilov and Hutter 2019,
    arXiv:1711.05101).
    """

    steps: int
    batch: int
    lr: float
    warmup: int = 200
    betas: tuple[float, float] = (0.9, 0.99)
    clip: float = 1.0
    precision: str = "float32"
    muon: bool = False
    curriculum: bool = False
    decay: float = 0.0

    def __post_init__(self):
        at_least(steps=(self.steps, 1), batch=(self.batch, 1))
        positive(lr=self.lr)
        if self.precision not in PRECISIONS:
            raise ValueError(f"precision = {self.precision!r}: must be one of {', '.join(PRECISIONS)}")

    def lr_at(self, step: int) -> float:
        """Return the learning rate of step 0, 1, .., steps - 1."""
        warmup = min(self.warmup, max(1, self.steps // 10))
        if step < warmup:
            return self.lr * (step + 1) / warmup
        return self.lr * 0.5 * (1 + math.cos(math.pi * (step - warmup) / max(1, self.steps - warmup)))


@dataclass
class History:
    """What a run did: the loss of every step, what ``each`` returned, the seconds it took, the device it ran on."""

    losses: list[float] = field(default_factory=list)
    seconds: float = 0.0
    device: str = "cpu"
    looks: list = field(default_factory=list)


def pick_device(name: str | torch.device | None = None, *, float64: bool = False) -> torch.device:
    """Return the device ``name``; without a name, cuda where it is there, else cpu: mps, which has no float64 and other
    last digits, only on request.

    ``name``: such as 'cpu', 'cuda', 'cuda:1' or 'mps'.
    ``float64``: whether the device must compute in float64.

    Raises ValueError for a device that is not there, and for mps where float64 is needed.
    """
    available = [f"cuda:{index}" for index in range(torch.cuda.device_count())] if torch.cuda.is_available() else []
    available += ["mps"] * torch.backends.mps.is_available() + ["cpu"]
    kinds = dict.fromkeys(device.split(":")[0] for device in available)
    name = name and str(name)
    if name is not None and name not in [*available, *kinds]:
        raise ValueError(f"device = {name!r}: must be one of {', '.join(available)}, which this machine has")
    if name == "mps" and float64:
        others = ", ".join(device for device in available if device != "mps")
        raise ValueError(f"device = 'mps': has no float64, which is needed here; must be one of {others}")
    name = name or ("cuda" if "cuda" in kinds else "cpu")
    if name == "cuda" and "LOCAL_RANK" in os.environ and (BY_TORCHRUN in os.environ or dist.is_initialized()):
        name = f"cuda:{os.environ['LOCAL_RANK']}"  # one GPU for each process of this machine
    return torch.device(name)


@contextmanager
def seeded(seed: int):
    """Draw from ``seed`` on the CPU inside, and go on outside as if nothing had been drawn; GPUs keep their states."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)  # the CPU's alone; torch.manual_seed would reach every GPU's
        yield


def batch_generator(seed: int, step: int, device: torch.device) -> torch.Generator:
    """Return the random numbers of one step: they depend on the seed and the step alone."""
    return torch.Generator(device=device).manual_seed((seed * 1_000_003 + step + 1) % 2**63)


def train(
    model: nn.Module,
    draw: Callable[..., tuple[Tensor, ...]],
    loss: Callable[..., Tensor],
    schedule: Schedule,
    *,
    seed: int = 0,
    device: str | None = None,
    resume: str | Path | None = None,
    label: str = "training",
    each: Callable[[nn.Module], Any] | None = None,
    every: int | Collection[int] = 1,
) -> History:
    """Train ``model`` in place and return its `History`.

    ``model``: what learns; at the end, also of a run that was stopped, it is on the device where it was before.
    ``draw(batch, generator)``: gives a batch, tensors with the batch first. Under a ``schedule`` with ``curriculum`` it
    is called as ``draw(batch, generator, done)``, with the share of the run that is over, 0 to 1.
    ``loss(model, *tensors)``: their mean loss, of no dimensions.
    ``schedule``: steps, sequences a batch, learning rate, precision.
    ``seed``: decides every batch of a device, whatever the number of processes.
    ``device``: as for `pick_device`; None for cuda where it is there, else cpu.
    ``resume``: a file where the state is saved every 20 seconds, and that is gone on from if it is there already; it is
    removed at the end. Inside `resumable`, a run without one has a file there.
    ``label``: what the progress bar says, and what a file to resume from must have been saved by.
    ``each(model)``: looks at the model while it trains, on the device where it was found; what it returns is kept in
    ``History.looks``. Where there is a state to resume from it is kept there, too, and must be made of tensors,
    numbers, texts and None, in lists, tuples and dictionaries.
    ``every``: it looks before the first step and each time that so many steps are done (after the last step, the caller
    can); or the numbers of the steps before which it looks.

    Under ``torchrun`` the processes share every batch. Raises ValueError if ``schedule.batch`` is no multiple of their
    number, where its variables are set without it, for ``every`` below 1, and where a state cannot hold what the model
    has beside tensors or what ``each`` returns; ResumeError for a file of another run.
    """
    looks_at = () if each is None else _steps_to_look_at(schedule, every)
    where = pick_device(device, float64=any(p.dtype == torch.float64 for p in model.parameters()))
    processes = share()[1]
    if schedule.batch % processes:
        raise ValueError(f"batch = {schedule.batch}: must be a multiple of the number of processes, {processes}")
    run = f"{label}, seed {seed}, {schedule}"
    with (
        process_group(where, processes) as rank,
        _moved(model, where) as found,
        _own_state(Path(resume) if resume else None, run) as (state, states),
        torch.inference_mode(False),
        torch.enable_grad(),  # also where a notebook has switched gradients off
    ):
        optimizers = make_optimizers(model, schedule)
        history = History(device=str(where))
        if state is not None:
            _load_state(state, model, optimizers, history, run, looks_at)
            if states is not None:
                states.seconds += history.seconds
        compute = shared(model, loss) if processes > 1 else partial(loss, model)
        parameters = list(model.parameters())

        started, saved, before = time.perf_counter(), time.perf_counter(), history.seconds
        first = len(history.losses)
        bar = tqdm(
            range(first, schedule.steps),
            initial=first,
            total=schedule.steps,
            desc=label,
            disable=rank > 0,
            mininterval=0.5,
        )
        fresh: list[Tensor] = []  # losses still on the device: to ask for one is to wait for it
        for step in bar:
            if each is not None and step in looks_at:
                model.to(found)
                history.looks.append(each(model))
                model.to(where)
            for group in (group for optimizer in optimizers for group in optimizer.param_groups):
                group["lr"] = schedule.lr_at(step)
            done = (step / schedule.steps,) if schedule.curriculum else ()
            tensors = draw(schedule.batch, batch_generator(seed, step, where), *done)
            with torch.autocast(where.type, torch.bfloat16, enabled=schedule.precision == "bfloat16"):
                value = compute(*(tensor[rank::processes] for tensor in tensors))
            for parameter in parameters:
                parameter.grad = None
            value.backward()
            nn.utils.clip_grad_norm_(parameters, schedule.clip)
            for optimizer in optimizers:
                optimizer.step()

            value = value.detach().float()
            if processes > 1:
                dist.all_reduce(value)
            fresh.append(value)
            if step % FETCH_EVERY == 0:
                _fetch(fresh, history, processes)
                bar.set_postfix(loss=f"{sum(history.losses[-100:]) / len(history.losses[-100:]):.4f}", refresh=False)
            if state is not None and rank == 0 and time.perf_counter() - saved > SAVE_EVERY_SECONDS:
                _fetch(fresh, history, processes)
                history.seconds = before + time.perf_counter() - started
                _save_state(state, model, optimizers, history, run)
                saved = time.perf_counter()
        _fetch(fresh, history, processes)
        history.seconds = before + time.perf_counter() - started
        if rank == 0 and states is not None:
            _save_state(state, model, optimizers, history, run)
    return history


@dataclass
class States:
    """The states of all runs inside `resumable`: their folder, how many runs there were of each name, and the seconds
    that had gone into those that were there before.
    """

    folder: Path
    runs: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    def path(self, run: str) -> Path:
        """Return the path where the next run of this name keeps its state."""
        self.runs[run] += 1
        return self.folder / f"{sha256(run.encode()).hexdigest()[:16]}-{self.runs[run]}.safetensors"


_states: ContextVar[States | None] = ContextVar("states", default=None)


@contextmanager
def resumable(folder: Path | None):
    """Keep the state of every `train` inside in ``folder``, also once a run is over: the same work, begun again after
    it was stopped, trains only what is left. Yields the `States`; the folder is for the caller to remove. With None,
    none has a state.
    """
    states = None if folder is None else States(folder)
    token = _states.set(states)
    try:
        yield states
    finally:
        _states.reset(token)


@contextmanager
def _own_state(resume: Path | None, run: str):
    """Return the file of a run's state, if it has one, and the `States` to which it belongs, if it does; a file of its
    own is removed at the end. What is trained inside, while the run is looked at, has none: a look that was kept is not
    repeated.
    """
    states = _states.get() if resume is None else None
    with resumable(None):
        yield (resume if states is None else states.path(run)), states
    if resume is not None:
        resume.unlink(missing_ok=True)


def _steps_to_look_at(schedule: Schedule, every: int | Collection[int]) -> Collection[int]:
    """Return the numbers of the steps before which `train` looks. Raises ValueError for ``every`` below 1."""
    if not isinstance(every, int):
        return every
    at_least(every=(every, 1))
    return range(0, schedule.steps, every)


def _fetch(fresh: list[Tensor], history: History, processes: int) -> None:
    """Move losses, sums over all processes, from the device to the history."""
    if fresh:
        history.losses += (torch.stack(fresh).double() / processes).tolist()
        fresh.clear()


def make_optimizers(model: nn.Module, schedule: Schedule) -> list[torch.optim.Optimizer]:
    """Make Adam for all parameters; under ``muon``, Muon for the matrices inside ``blocks`` and Adam for the others.

    Raises ValueError for a model without such matrices under ``muon``.
    """
    hidden = [p for name, p in model.named_parameters() if schedule.muon and p.ndim == 2 and "blocks." in name]
    if schedule.muon and not hidden:
        raise ValueError(
            f"muon = True: must be False for {type(model).__name__}, which has no matrices inside `blocks`"
        )
    taken = {id(parameter) for parameter in hidden}
    others = [parameter for parameter in model.parameters() if id(parameter) not in taken]
    # foreach: all tensors in one call, the same steps to the last digit, and up to a third quicker where they are small
    adam = torch.optim.AdamW(others, lr=schedule.lr, betas=schedule.betas, weight_decay=schedule.decay, foreach=True)
    if not schedule.muon:
        return [adam]
    return [adam, torch.optim.Muon(hidden, lr=schedule.lr, weight_decay=0.0, adjust_lr_fn="match_rms_adamw")]


@contextmanager
def _moved(model: nn.Module, device: torch.device):
    """Train ``model`` on ``device``; then leave it in evaluation mode, on the device where it was found. Gives that
    device.
    """
    found = next(model.parameters()).device
    model.to(device).train()
    try:
        yield found
    finally:
        model.to(found).eval()


def _save_state(path, model, optimizers, history, run: str) -> None:
    tensors = {f"model.{name}": tensor for name, tensor in tensors_of(model).items()}
    for kind, optimizer in enumerate(optimizers):
        for index, state in optimizer.state_dict()["state"].items():
            tensors |= {f"optimizer.{kind}.{index}.{name}": tensor for name, tensor in state.items()}
    tensors["losses"] = torch.tensor(history.losses, dtype=torch.float64)
    tensors["random"] = torch.get_rng_state()  # some losses draw from it
    looks = json.dumps(_in_json(history.looks, tensors))
    write_safetensors(path, tensors, {"run": run, "seconds": str(history.seconds), "looks": looks})


def _in_json(look: Any, tensors: dict[str, Tensor]) -> Any:
    """Return what ``each`` returned as JSON can hold it, with its tensors among the state's; `_from_json` makes it
    again. Raises ValueError for what neither holds.
    """
    if look is None or isinstance(look, (bool, int, float, str)):
        return look
    if isinstance(look, Tensor):
        tensors[name := f"look.{len(tensors)}"] = look.detach().clone()
        return {"tensor": name}
    if type(look) is dict:
        return {"dict": _in_json(list(look.items()), tensors)}
    if type(look) in (list, tuple):
        return {type(look).__name__: [_in_json(part, tensors) for part in look]}
    kinds = "tensors, numbers, texts and None, in lists, tuples and dictionaries"
    raise ValueError(f"each: returned {look!r}; must return {kinds} alone, so that a run that is stopped can go on")


def _from_json(look: Any, tensors: dict[str, Tensor]) -> Any:
    if not isinstance(look, dict):
        return look
    ((kind, found),) = look.items()
    if kind == "tensor":
        return tensors[found]
    if kind == "dict":
        return dict(_from_json(found, tensors))
    return {"list": list, "tuple": tuple}[kind](_from_json(part, tensors) for part in found)


def _load_state(path, model, optimizers, history, run: str, looks_at: Collection[int]) -> None:
    """Load the state that a run goes on from, where there is one."""
    tensors_of(model)  # what cannot be saved is told now, and not after the first steps
    if not path.exists():
        return
    try:
        with safe_open(path, "pt") as file:
            header = file.metadata() or {}
            # copies: Adam keeps what it is given, and Windows replaces no file that is mapped into memory
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}
    except SafetensorError as error:
        raise ResumeError(f"{path}: not the saved state of a run ({error}); {AFRESH}") from None
    if header.get("run") != run:
        raise ResumeError(f"{path}: saved by another run ({header.get('run')}), not by this one ({run}); {AFRESH}")
    if "looks" not in header:
        raise ResumeError(f"{path}: saved by an earlier version of the course; {AFRESH}")
    looks = _from_json(json.loads(header["looks"]), tensors)
    if len(looks) != (expected := sum(step in looks_at for step in range(len(tensors["losses"])))):
        raise ResumeError(
            f"{path}: saved by a run that called `each` {len(looks)} times, where this one would have {expected}; "
            f"{AFRESH}"
        )
    try:
        load_tensors(model, {name[6:]: tensor for name, tensor in tensors.items() if name.startswith("model.")})
    except RuntimeError as error:
        raise ResumeError(f"{path}: saved with another model ({error}); {AFRESH}") from None
    states: list[dict[int, dict[str, Tensor]]] = [{} for _ in optimizers]
    for name, tensor in tensors.items():
        if name.startswith("optimizer."):
            _, kind, index, key = name.split(".")
            states[int(kind)].setdefault(int(index), {})[key] = tensor
    for optimizer, state in zip(optimizers, states, strict=True):
        optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
    history.losses, history.looks = tensors["losses"].tolist(), looks
    history.seconds = float(header["seconds"])
    torch.set_rng_state(tensors["random"])
