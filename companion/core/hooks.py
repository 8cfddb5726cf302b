"""Hooks into a model: what it computes on the way, by name, to read, to replace and to take out.

The names are TransformerLens's (Nanda and Bloom 2022), so that what is learned here serves there. Two departures:
heads come before positions in queries, keys, values and ``hook_z``, as the computation has them; and a hook is called
with the value and its name, not with a hook point.

>>> output, cache = model.run_with_cache(x)
>>> cache["blocks.0.attn.hook_pattern"]                      # (batch, head, query, key)
>>> def without_head_1(z, name):                             # z (batch, head, length, h)
...     return z * torch.tensor([1.0, 0.0])[:, None, None]
>>> with model.hooks({"blocks.0.attn.hook_z": without_head_1}):
...     ablated = model(x)
>>> name = "blocks.1.hook_resid_pre"                         # patching: what another input gave, here
>>> with model.hooks({name: lambda value, name: cache[name]}):
...     patched = model(y)
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Self

from torch import Tensor, nn

Hook = Callable[[Tensor, str], Tensor | None]


class Cache(dict):
    """Values by name, in the order in which the model computed them."""

    def __missing__(self, name: str):
        raise KeyError(f"{name!r} is not in the cache, which has {listed(list(self))}")

    def keep(self, value: Tensor, name: str) -> None:
        """Keep the value, as a hook that changes nothing."""
        self[name] = value


class HookPoints:
    """Every named value of a model goes through here: ``x = at("hook_resid_pre", x)``. Without a hook, as it is.

    ``names`` are what every run computes, ``on_request`` what is computed only where it is `asked` for. A part of a
    model has the same ones, `scoped`: their names begin with its own.
    """

    def __init__(self, names: Iterable[str], on_request: Iterable[str] = ()):
        self.names, self.on_request, self.prefix = list(names), list(on_request), ""
        self.hooks: dict[str, list[Hook]] = {}

    def scoped(self, prefix: str) -> "HookPoints":
        """Return the same names and hooks, for a part that calls ``prefix + "hook_q"`` just ``"hook_q"``."""
        scoped = HookPoints(())
        scoped.names, scoped.on_request, scoped.hooks = self.names, self.on_request, self.hooks
        scoped.prefix = self.prefix + prefix
        return scoped

    def asked(self, name: str) -> bool:
        """Return whether any hook has this value's name; if not, it need not be computed as a tensor of its own."""
        return bool(self.hooks) and self.prefix + name in self.hooks

    def __call__(self, name: str, value: Tensor) -> Tensor:
        """Return what the hooks make of a value, the outermost first."""
        if not self.hooks:  # nothing is asked for: the model costs what it costs without hooks
            return value
        name = self.prefix + name
        for hook in self.hooks.get(name, ()):
            changed = hook(value, name)
            if changed is not None and changed.shape != value.shape:
                given, made = tuple(value.shape), tuple(changed.shape)
                raise ValueError(f"{name}: its hook returned a value of shape {made}; must be {given}, as it was given")
            value = value if changed is None else changed
        return value


class Hooked(nn.Module):
    """A model with hook points, ``at``: its own, or those of the decoder inside it."""

    at: HookPoints

    @property
    def body(self) -> nn.Module:
        """Return the module with the ``blocks`` and the last ``norm``: the decoder inside it, or the model itself."""
        return getattr(self, "decoder", self)

    @property
    def hook_names(self) -> list[str]:
        """List the names that `run_with_cache` keeps, in the order of the computation; those on request are beside
        them, as they would fill the memory.
        """
        return list(self.at.names)

    @contextmanager
    def hooks(self, functions: Mapping[str, Hook]) -> Iterator[Self]:
        """Attach hooks: within this context, each function changes the value of its name: ``function(value, name)``
        gives what the model goes on with, of the same shape; None leaves the value.

        Contexts nest, and an inner one sees what the outer one made. Raises ValueError for a name that is not there.
        """
        known = self.at.names + self.at.on_request
        for name in functions:
            if name not in known:
                raise ValueError(f"hook = {name!r}: must be one of {listed(known)}")
        for name, function in functions.items():
            self.at.hooks.setdefault(name, []).append(function)
        try:
            yield self
        finally:
            for name, function in functions.items():
                self.at.hooks[name].remove(function)
                if not self.at.hooks[name]:
                    del self.at.hooks[name]

    def run_with_cache(
        self, *inputs: Tensor, names: str | Iterable[str] | None = None, **options: Any
    ) -> tuple[Any, Cache]:
        """Return the output, and the values that the computation used, after all hooks: all `hook_names`, or ``names``,
        which may be on request. ``options`` are the model's own.

        They keep their gradients, unless under `torch.no_grad`. Attention patterns take length^2 numbers a head: ask
        for the names that you need when there are many. Raises ValueError for a name that is not there.
        """
        wanted = self.hook_names if names is None else [names] if isinstance(names, str) else list(names)
        cache = Cache()
        with self.hooks(dict.fromkeys(wanted, cache.keep)):
            return self(*inputs, **options), cache

    def streams(self, *inputs: Tensor) -> list[Tensor] | Tensor:
        """Return the residual stream before the first block and after each block, from the cache."""
        names = [name for name in self.hook_names if name.endswith(("hook_embed", "hook_resid_post"))]
        return list(self.run_with_cache(*inputs, names=names)[1].values())


def listed(names: list[str]) -> str:
    """Return names in a line, with those that every block has written once."""
    alone = [name for name in names if not name.startswith("blocks.")]
    blocks, inside = {}, {}  # as ordered sets
    for name in names:
        if name.startswith("blocks."):
            _, block, rest = name.split(".", 2)
            blocks[block] = inside[rest] = None
    if blocks:
        alone.append(f"blocks.N.{{{', '.join(inside)}}} for N = {', '.join(blocks)}")
    return ", ".join(alone) or "nothing"
