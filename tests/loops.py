"""What becomes of the claims that rest on a notebook's own loops, or on recipes that it names inside a function, where
these are longer. ``COURSE_TIMES=3 PYTHONPATH=.:tests python tests/loops.py 05-associative-memory-further`` runs the
cells that they rest on, with recipes and loops three times as long, and puts the claims, or those named after the
notebook, into ``measured/longer.csv``.
"""

import ast
import sys
from dataclasses import asdict
from unittest.mock import MagicMock

import matplotlib
import nbformat
from sources import LESSONS

from companion.core.recipe import times
from companion.workshop.cli.evidence import BUDGET, LONGER, became, put, table_of_runs
from companion.workshop.site.again import MEASURES, SHEETS, reads_and_writes, steps

# By notebook, the claims, and for each of its own loops what the code says and what it says instead
LOOPS: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {
    "01-attention-basics": (
        ("one-layer-cannot-two-can", "keys-carry-it"),
        {'"course": (300, 64)': '"course": (TIMES * 300, 64)'},
    ),
    "01-attention-basics-further": (
        ("few-of-many", "sparsity-is-enough"),
        {"RUNS))": "RUNS), steps=TIMES * 300)"},
    ),
    "02-in-context-regression-further": (
        ("linear-attention-one-step", "linear-attention-weights"),
        {'"course": 600, "paper": 3000': '"course": TIMES * 600, "paper": 3000'},
    ),
    "04-fourier-addition": (("counting-helps", "fourier-features"), {}),
    "05-associative-memory-further": (
        (
            "optimiser-schemes",
            "adam-large-batches",
            "layer-norm-small-steps",
            "layer-norm-best-steps",
            "capacity-trained",
        ),
        {
            "lrs=[0.01, 100.0], ": "lrs=[0.01, 100.0], steps=TIMES * 1000, ",
            "steps=10, d=100": "steps=TIMES * 10, d=100",
            "trained_accuracy(N, d, ": "trained_accuracy(N, d, steps=TIMES * 150, ",
        },
    ),
    "06-induction-heads": (("last-mlp",), {}),
    "06-induction-heads-further": (
        ("joint-faster", "second-stage", "staged-order", "rank-first-matrix", "rank-second-matrix"),
        {'"course": (300, 100)': '"course": (TIMES * 300, TIMES * 100)'},
    ),
    "07-factual-recall": (("capacity-transition",), {}),
    "07-factual-recall-further": (
        (
            "the-stronger-signal-wakes-first",
            "plateau-of-either-half",
            "only-the-product-counts",
            "attention-alone-needs-places",
        ),
        {"int(1.5 * math.log(1e5)": "int(TIMES * 1.5 * math.log(1e5)"},
    ),
    "08-learned-data-structures-further": (
        ("many-queries-pay", "hard-plane-is-a-line", "marks-spoil-the-order"),
        {"Schedule(steps if": "Schedule(TIMES * steps if"},
    ),
    "09-pac-learning": (("gradient-descent-wins",), {'"course": (3, 500)': '"course": (3, TIMES * 500)'}),
    "09-pac-learning-further": (
        ("adam-from-the-answer", "descent-from-the-answer"),
        {'"course": (2, 500)': '"course": (2, TIMES * 500)', "get(SCALE, 200)": "get(SCALE, TIMES * 200)"},
    ),
    "12-limits": (("decoder-with-steps", "trained-steps"), {}),
    "12-limits-further": (("offsets-do-not-lengthen",), {}),
    "13-calibration": (
        ("trained-floor",),
        {'"course": (256, 1500, 1000, 40)': '"course": (256, 1500, 1000, TIMES * 40)'},
    ),
}


def needed(cells: list[str], claims: tuple[str, ...]) -> list[str]:
    """Those of a notebook's code cells that its figures on ``claims`` come from: the imports, and whatever binds or
    changes a name that a later one reads.
    """
    parsed = [list(steps(ast.parse(source).body)) for source in cells]
    imports = [each for body in parsed for each in body if isinstance(each, ast.Import | ast.ImportFrom)]
    given = SHEETS.union(alias.asname or alias.name for each in imports for alias in each.names)
    kept, names = [], set()
    for source, body in zip(reversed(cells), reversed(parsed), strict=True):
        flows = [_flow(statement, given) for statement in body]
        bound = names & {name for _, writes in flows for name in writes}
        if bound or set(claims) & set(MEASURES.findall(source)) or set(body) & set(imports):
            kept.append(source)
            for reads, writes in reversed(flows):
                names = (names - writes) | reads
    return kept[::-1]


def _flow(statement: ast.stmt, given: set[str]) -> tuple[set[str], set[str]]:
    """What a statement reads and binds beside what is ``given``; of a function its own names are neither."""
    reads, writes = reads_and_writes(statement)
    if isinstance(statement, ast.FunctionDef):
        reads, writes = reads - writes, {statement.name}
    return reads - given, writes - given


def longer(notebook: str, chosen: tuple[str, ...]) -> list[dict[str, str]]:
    """The rows of the ``chosen`` claims of a notebook whose loops are as many times as long as `times` says."""
    lesson = notebook.removesuffix("-further")
    (path,) = (path for path in LESSONS[lesson].notebooks if path.stem == notebook)
    cells = [cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    space = {"TIMES": times(), "display": lambda shown: None}
    for source in needed(cells, chosen):
        code = source
        for short, long in LOOPS[notebook][1].items():
            code = code.replace(short, long)
        exec(compile(code, notebook, "exec"), space)
        space["predictions"] = MagicMock()  # what learners foretold is no part of it
    head = {"lesson": lesson, "times": str(times()), "seed": str(space["SEED"])}
    return [head | became(asdict(row)) for row in space["claims"].rows if row.id in chosen]


if __name__ == "__main__":
    matplotlib.use("Agg")
    made = longer(sys.argv[1], tuple(sys.argv[2:]) or LOOPS[sys.argv[1]][0])
    again = {(row["lesson"], row["claim"], row["times"], row["seed"]) for row in made}
    kept = [row for row in table_of_runs(path=LONGER) if tuple(row[name] for name in BUDGET[:4]) not in again]
    put(kept + made, LONGER, BUDGET)
    print(*made, sep="\n")
