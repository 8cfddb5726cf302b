"""What learns a data structure: a network that stores a set of points, and networks that search it with a few lookups.

Salemohamed et al. (2024), arXiv:2411.03253. The data network gives every point a score, and the points are stored in
the order of their scores; query network i looks at one place, knowing the query and what the lookups before it found.
Both are trained from the answers alone. Where we depart: a few layers instead of eight; the sort is SoftSort (Prillo,
Eisenschlos 2020, arXiv:2006.16038) with a straight-through gradient; numbers are read on a linear and on a logarithmic
scale at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from companion.core.arguments import at_least, check_range, positive
from companion.core.decoder import Decoder, DecoderConfig
from companion.core.hooks import Hooked

PANELS, SIDE = 3, 8  # of a picture: digits side by side, and pixels along a digit's edge
SORT_TEMPERATURE = 0.1  # of SoftSort, in standard deviations of the scores
NOTES_FIRST = 20.0  # by how much a first lookup starts out preferring extra slots, in logits
SEARCHED_AT_ONCE, PICTURES_AT_ONCE = 100, 50  # the first layer of an encoder takes 32 times the room of a picture


@dataclass(frozen=True)
class StructureConfig:
    """``n`` points of ``dim`` numbers of about the size ``scale``, ``lookups`` of them for a query, ``extra`` slots
    beside the points.

    ``temperature``: of the lookups in training, 2 in the paper. The lower, the more a lookup is like one of a single
    place, and the noisier is its gradient.
    ``pictures``: the points are pictures, of which both networks see one number each, that of a shared encoder.
    ``norm``: LayerNorm in the query networks (appendix B.1). ``marks``: every input carries a mark of the slot in which
    it was given, so that equal points may get unequal scores.

    Ablations: ``frozen`` leaves the data network as it starts; without ``permute`` the points stay where they are
    given; with ``rewrite`` the data network writes what it likes in place of them, with no order to learn, as in the
    paper's no-permute; without ``adaptive`` the query networks do not see what was found.
    """

    n: int
    dim: int
    lookups: int
    extra: int = 0
    width: int = 32
    layers: int = 2
    hidden: int = 128
    scale: float = 1.0
    temperature: float = 2.0
    pictures: bool = False
    norm: bool = False
    marks: bool = True
    frozen: bool = False
    permute: bool = True
    rewrite: bool = False
    adaptive: bool = True

    def __post_init__(self):
        at_least(n=(self.n, 2), dim=(self.dim, 1), lookups=(self.lookups, 1), extra=(self.extra, 0))
        at_least(width=(self.width, 4), layers=(self.layers, 1), hidden=(self.hidden, 1))
        positive(scale=self.scale, temperature=self.temperature)
        if self.pictures and self.dim != PANELS * SIDE * SIDE:
            raise ValueError(f"dim = {self.dim}: must be {PANELS * SIDE * SIDE}, the pixels of a picture")


class Layout(NamedTuple):
    """``order``: a permutation matrix, row k has its 1 at the point in place k. ``values``: what lies in every place,
    extra slots last.
    """

    order: Float[Tensor, "batch n n"]
    values: Float[Tensor, "batch places dim"]


def soft_sort(scores: Float[Tensor, "batch n"]) -> Float[Tensor, "batch n n"]:
    """Compute the permutation matrix P that sorts the scores, (P s)_1 <= (P s)_2 <= .., whose gradient is that of
    SoftSort:

    row k = softmax_i(-|s_(k) - s_i| / t), with s_(k) the k-th smallest score and t a tenth of the scores' standard
    deviation.
    """
    ordered, order = scores.sort(-1)
    temperature = SORT_TEMPERATURE * scores.std(-1, keepdim=True)[..., None] + 1e-6
    soft = (-(ordered[..., None] - scores[:, None]).abs() / temperature).softmax(-1)
    return F.one_hot(order, scores.shape[-1]).to(soft.dtype) + soft - soft.detach()


class Encoder(nn.Sequential):
    """One number for a picture: the network of appendix B.11, two convolutions and two linear maps, on 8 x 24 pixels
    instead of 28 x 84. Pictures are (.., 192), digit after digit, and what comes out is (.., 1).
    """

    def __init__(self):
        super().__init__(
            nn.Conv2d(1, 32, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(PANELS * SIDE * SIDE * 64 // 16, 128),
            nn.ReLU(),
            nn.Linear(128, 1),
        )

    def forward(self, pictures: Float[Tensor, "*batch pixels"]) -> Float[Tensor, "*batch 1"]:
        side_by_side = pictures.reshape(-1, PANELS, SIDE, SIDE).transpose(1, 2).reshape(-1, 1, SIDE, PANELS * SIDE)
        return super().forward(side_by_side).view(*pictures.shape[:-1], 1)


def _query_network(inputs: int, hidden: int, places: int, *, norm: bool) -> nn.Sequential:
    layers = []
    for size in (inputs, hidden):
        layers += [nn.Linear(size, hidden), *([nn.LayerNorm(hidden)] if norm else []), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(hidden, places))


class Structure(Hooked):
    """A data network that stores points in an order of its own, and ``lookups`` query networks that search them."""

    def __init__(self, config: StructureConfig):
        super().__init__()
        self.config = config
        dim, places = 1 if config.pictures else config.dim, config.n + config.extra
        self.read = Encoder() if config.pictures else nn.Identity()
        self.embed = nn.Linear(3 * dim, config.width)
        # One for each input that has one; smaller, and an untrained network sorts. Extra slots need theirs: they hold
        # nothing else that sets them apart.
        marked = places if config.marks else config.extra
        self.given = nn.Parameter(0.5 * torch.randn(marked, config.width)) if marked else None
        decoder = DecoderConfig(config.width, config.layers, heads=4, context=places, causal=False, positions=False)
        self.decoder = Decoder(decoder)
        self.at = self.decoder.at
        self.score = nn.Linear(config.width, 1)
        self.write = nn.Linear(config.width, dim) if config.extra or config.rewrite else None
        if config.frozen:
            for parameter in self.parameters():
                parameter.requires_grad_(False)
        seen = places + 1 + 4 * dim if config.adaptive else 0  # numbers that a lookup adds to what is known
        self.queries = nn.ModuleList(
            _query_network(2 * dim + i * seen, config.hidden, places, norm=config.norm) for i in range(config.lookups)
        )
        with torch.no_grad():
            # Notes are worth writing only where they are read, and worth reading only where they are written.
            self.queries[0][-1].bias[config.n :] += NOTES_FIRST

    def _both_scales(self, x: Tensor) -> Tensor:
        return torch.cat([x / self.config.scale, x.asinh()], -1)

    def scores(self, points: Float[Tensor, "batch n dim"]) -> Float[Tensor, "batch n"]:
        """Run the data network: a score for every point; they are stored in ascending order of their scores.

        Raises ValueError for another number of points, or of their dimensions.
        """
        return self._scored(self._embedded(self._checked(points)))

    def store(self, points: Float[Tensor, "batch n dim"]) -> Layout:
        """Run the data network: where every point goes, and what is written into the extra slots.

        Raises ValueError for another number of points, or of their dimensions.
        """
        points = self._checked(points)
        x, (batch, n, _) = self._embedded(points), points.shape
        order = (
            soft_sort(self._scored(x))
            if self.config.permute and not self.config.rewrite
            else torch.eye(n, dtype=x.dtype, device=x.device).expand(batch, n, n)
        )
        if self.config.rewrite:
            return Layout(order, self.write(x))
        values = order @ points
        return Layout(order, values if self.write is None else torch.cat([values, self.write(x[:, n:])], 1))

    def _checked(self, points: Tensor) -> Tensor:
        """The points as both networks see them: pictures are read."""
        if points.shape[1:] != (self.config.n, self.config.dim):
            raise ValueError(
                f"points of shape {tuple(points.shape)}: must be (batch, {self.config.n}, {self.config.dim})"
            )
        return self.read(points)

    def _scored(self, x: Tensor) -> Tensor:
        return self.score(x[:, : self.config.n])[..., 0]

    def _embedded(self, points: Tensor) -> Tensor:
        """What the transformer makes of the points, and of the extra slots behind them: (batch, places, width)."""
        centred = points - points.mean(1, keepdim=True)
        x = self.embed(torch.cat([self._both_scales(points), centred.asinh()], -1))
        x = F.pad(x, (0, 0, 0, self.config.extra))
        if self.given is not None:
            x = x + F.pad(self.given, (0, 0, x.shape[1] - len(self.given), 0))  # all of them, or the slots at the end
        return self.decoder(x)

    def forward(
        self,
        points: Float[Tensor, "sets n dim"],
        query: Float[Tensor, "batch dim"] | None = None,
        noise: Float[Tensor, "batch lookups places"] | None = None,
    ) -> Layout | tuple[Layout, Float[Tensor, "batch lookups places"]]:
        """Run the data network, `store`: what `run_with_cache` looks into. The query networks have no attention. With
        ``query``, run them, too: what is stored, and their `lookups`.
        """
        stored = self.store(points)
        return stored if query is None else (stored, self.lookups(stored.values, query, noise))

    def ask(
        self, query: Float[Tensor, "batch seen"], seen: Sequence[Float[Tensor, "batch found"]]
    ) -> Float[Tensor, "batch places"]:
        """Compute the logits of the next lookup, that of query network ``len(seen)``.

        ``query``: what is asked for, as it is read.
        ``seen``: for every lookup so far what it read, and behind that the place, a 1 among zeros or weights.

        Raises ValueError for an entry of ``seen`` of another size, as of one without its place.
        """
        known, size = [self._both_scales(query)], query.shape[-1] + self.queries[-1][-1].out_features
        if wrong := [each.shape[-1] for each in seen if each.shape[-1] != size]:
            raise ValueError(
                f"seen: an entry has size {wrong[0]}; must have {size}: what was read, {query.shape[-1]}, and its "
                f"place as {size - query.shape[-1]} weights, by the identity matrix behind what is stored"
            )
        for each in seen if self.config.adaptive else ():
            found, look = each.split([query.shape[-1], each.shape[-1] - query.shape[-1]], -1)
            place = look @ torch.linspace(-1, 1, look.shape[-1], dtype=look.dtype, device=look.device)[:, None]
            known += [look, place, self._both_scales(found), self._both_scales(query - found)]
        return self.queries[len(seen)](torch.cat(known, -1))

    def lookups(
        self,
        values: Float[Tensor, "sets places seen"],
        query: Float[Tensor, "batch dim"],
        noise: Float[Tensor, "batch lookups places"] | None = None,
    ) -> Float[Tensor, "batch lookups places"]:
        """Compute the logits of every lookup. With ``noise``, a lookup reads the mean of all values under
        softmax((logits + noise) / temperature), as in training with Gumbel noise; without, the value at the largest
        logit.

        ``values``: what is stored, as `store` says. With 16 queries for each set, queries 0 to 15 search the first.

        Raises ValueError for a number of queries that is no multiple of the number of sets.
        """
        if len(query) % len(values):
            raise ValueError(f"query: has {len(query)} rows; must have a multiple of {len(values)}, the number of sets")
        query, seen, logits = self.read(query), [], []
        places = torch.eye(values.shape[1], dtype=values.dtype, device=values.device)
        cells = torch.cat([values, places.expand(len(values), -1, -1)], -1)
        for i in range(len(self.queries)):
            logits.append(self.ask(query, seen))
            if noise is None:
                look = F.one_hot(logits[-1].argmax(-1), logits[-1].shape[-1]).to(query.dtype)
            else:
                look = ((logits[-1] + noise[:, i]) / self.config.temperature).softmax(-1)
            seen.append((look.view(len(values), -1, look.shape[-1]) @ cells).flatten(0, 1))
        return torch.stack(logits, 1)

    @torch.no_grad()
    def search(
        self, points: Float[Tensor, "batch n dim"], query: Float[Tensor, "batch dim"]
    ) -> Int[Tensor, "batch lookups"]:
        """Return which points are looked at, in turn; -1 where a lookup reads an extra slot. A part at a time, so that
        memory does not grow.
        """
        found, part = [], PICTURES_AT_ONCE if self.config.pictures else SEARCHED_AT_ONCE
        for points_here, query_here in zip(points.split(part), query.split(part), strict=True):
            stored = self.store(points_here)
            looked = self.lookups(stored.values, query_here).argmax(-1)
            found.append(F.pad(stored.order.argmax(-1), (0, self.config.extra), value=-1).gather(1, looked))
        return torch.cat(found)


@dataclass(frozen=True)
class SketchConfig:
    """Counts of ``items`` items in ``memory`` cells; every item has ``lookups`` of them.

    Ablation: ``frozen`` leaves every item in the cells where it starts, at random, as a hash function would put it.
    """

    items: int
    memory: int
    lookups: int
    hidden: int = 64
    frozen: bool = False

    def __post_init__(self):
        at_least(items=(self.items, 1), memory=(self.memory, 1), lookups=(self.lookups, 1), hidden=(self.hidden, 1))


class Sketch(nn.Module):
    """Estimates how often items occurred in a stream, from a memory that is smaller than the number of items.

    Three things are learned: in which cells an item lives (a hash function's part), how much an arrival adds to each of
    them, and what is made of them when the item is asked for. The last two are networks that see nothing but the
    numbers in the item's cells.

    After Salemohamed et al. (2024), arXiv:2411.03253, on frequencies in a stream. Where we depart: an item writes and
    reads in the same cells, and they are a table, not a network's answer to the item; cells are whole in training too,
    with the gradient of the softmax (straight-through) in place of noise. With noise the cells are soft, and a sketch
    that learns with soft cells fails with whole ones.
    """

    def __init__(self, config: SketchConfig):
        super().__init__()
        self.config = config
        # Small, and Adam's steps are large beside it: an item can leave its cell early.
        self.places = nn.Parameter(
            0.3 * torch.randn(config.items, config.lookups, config.memory), requires_grad=not config.frozen
        )
        self.update = self._network(config.lookups)
        self.predict = self._network(1)

    def _network(self, outputs: int) -> nn.Sequential:
        lookups, hidden = self.config.lookups, self.config.hidden
        return nn.Sequential(
            nn.Linear(2 * lookups, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, outputs)
        )

    def where(self) -> Float[Tensor, "items lookups memory"]:
        """Return every item's cells: a 1 at the largest logit, with the gradient of softmax(logits)."""
        soft = self.places.softmax(-1)
        return F.one_hot(self.places.argmax(-1), self.config.memory) + (soft - soft.detach())

    def added(self, cells: Float[Tensor, "*batch lookups"]) -> Float[Tensor, "*batch lookups"]:
        """Return how much an arrival adds to each of an item's cells, which hold these numbers; never less than
        nothing.

        A count-min sketch adds 1 to each; with conservative update max(0, least + 1 - c) to a cell that holds c.
        """
        return F.softplus(self.update(self._seen(cells)))

    def estimated(self, cells: Float[Tensor, "*batch lookups"]) -> Float[Tensor, "*batch"]:
        """Return how often an item occurred whose cells hold these numbers; a count-min sketch says: the least of
        them.
        """
        return self.predict(self._seen(cells))[..., 0]

    @staticmethod
    def _seen(cells: Tensor) -> Tensor:
        return torch.cat([cells, cells - cells.amin(-1, keepdim=True)], -1)

    def forward(self, stream: Int[Tensor, "batch length"]) -> Float[Tensor, "batch items"]:
        """Estimate the count of every item after the whole stream. Raises ValueError for an unknown item."""
        check_range(stream=(stream, self.config.items))
        where = self.where()
        memory = torch.zeros(len(stream), 1, self.config.memory, device=stream.device)
        for at in where[stream].unbind(1):  # (batch, lookups, memory), one arrival in every stream
            added = self.added((at * memory).sum(-1))
            memory = memory + (at * added[..., None]).sum(1, keepdim=True)
        return self.estimated((where * memory[:, None]).sum(-1))
