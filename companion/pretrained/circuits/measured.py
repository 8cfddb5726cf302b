"""What is measured of circuits in SmolLM2: what a plain search finds for each behaviour in the box, and its scores."""

import math

from companion.core.measuring import Row, measured_table, measurement
from companion.pretrained.circuits.behaviours import BEHAVIOURS
from companion.pretrained.circuits.parts import Circuit
from companion.pretrained.circuits.runs import Runs, draw, draw_pairs
from companion.pretrained.circuits.scoring import score
from companion.pretrained.circuits.search import find_circuit
from companion.pretrained.measured import ROUNDING, SMOLLM2, smollm2

SEARCHED = {"smoke": (8, 3), "course": (16, 300), "paper": (200, 2_000)}  # pairs of prompts, and circuits tried at most
SCORED = {"smoke": (8, 2), "course": (20, 100), "paper": (400, 100)}  # pairs of prompts, and random circuits beside
SEARCH_SEED = 1_000  # beyond the scores' own, which leave out the pairs that are drawn from it


@measurement(
    "language-found-circuits",
    "the small circuit of SmolLM2 that a plain search finds for each behaviour in the box",
    seeds=(SEARCH_SEED,),
    cells=[{"behaviour": name} for name in BEHAVIOURS],
    tolerance=math.inf,
    because="a search goes another way where a circuit just keeps enough, or just not",
    models=SMOLLM2,
)
def found_circuits(seed: int, scale: str, behaviour: str) -> list[Row]:
    """Search once for what keeps nine tenths (`companion.pretrained.circuits.search.find_circuit`)."""
    pairs, budget = SEARCHED[scale]
    model = smollm2()
    runs = Runs(model, draw(model, BEHAVIOURS[behaviour], pairs, seed))
    found = find_circuit(runs, budget=budget, label=behaviour)
    return [{"pairs": len(runs.clean.first), "keeps": runs.share(runs.run(found)), "circuit": " ".join(found.names)}]


@measurement(
    "language-circuits",
    "how faithful and how complete the circuits found in SmolLM2 are on other prompts, beside random ones of that size",
    cells=[{"behaviour": name} for name in BEHAVIOURS],
    tolerance=0.02,
    because=ROUNDING,
    models=SMOLLM2,
)
def circuits(seed: int, scale: str, behaviour: str) -> list[Row]:
    """Score one stored circuit on one draw of pairs, none of which it was searched on. Of days in a row there are
    twelve others, the same in each draw.
    """
    pairs, drawn = SCORED[scale]
    model = smollm2()
    [stored] = measured_table("language-found-circuits").where(behaviour=behaviour).rows
    searched = draw_pairs(BEHAVIOURS[behaviour], stored["pairs"], stored["seed"])
    runs = Runs(model, draw(model, BEHAVIOURS[behaviour], pairs, seed, without=searched))
    random = drawn if seed == 0 else drawn // 10
    scored = score(runs, Circuit.read(stored["circuit"].split()), random=random, seed=seed)
    return [{column: value for column, value in scored.row().items() if column != "wires"}]
