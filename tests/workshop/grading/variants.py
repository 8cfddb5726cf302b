"""Right answers as honest people hand them in: rewritten, with helpers, imports and magics, in cells of their own.

Each way takes an answer's source (a decorated function) and gives the cells that come before it, and its cell. Each
habit takes a notebook's cells and the place of an answer and of its check, and changes what stands around them.
"""

import ast
import re

from nbformat.v4 import new_code_cell, new_markdown_cell

from companion.workshop.grading.notebook.syntax import defined, plain

Cells = tuple[list[str], str]


def parts(source: str) -> tuple[str, str, str, list[str]]:
    """Return an answer's decorator, head, body and the arguments' names."""
    node = ast.parse(source).body[-1]
    lines = source.splitlines()
    first = node.body[0].lineno - 1
    names = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args)]
    return (
        "\n".join(lines[: node.lineno - 1]),
        "\n".join(lines[node.lineno - 1 : first]),
        "\n".join(lines[first:]),
        names,
    )


def commented(source: str) -> Cells:
    return (
        [],
        "# my answer; I tried to open it, compile it and exec it: eval() at os.system level\n" + source + "\n# done",
    )


def unparsed(source: str) -> Cells:
    return [], ast.unparse(ast.parse(source))


def documented(source: str) -> Cells:
    decorator, head, body, _ = parts(source)
    return [], f'{decorator}\n{head}\n    """What was asked for: `sys` and <b>bold</b>."""\n{body}'.replace(
        "<b>bold</b>", "bold"
    )


def helper(source: str) -> Cells:
    decorator, head, body, names = parts(source)
    name = "my_work" if "my_work" not in source else "my_other_work"  # of one that has a helper already
    work = re.sub(r"^def \w+", f"def {name}", head)
    return [f"{work}\n{body}"], f"{decorator}\n{head}\n    return {name}({', '.join(names)})"


def helper_below(source: str) -> Cells:
    [work], answer = helper(source)
    return [], f"{work}\n\n{answer}"


def line_magics(source: str) -> Cells:
    return ["%load_ext autoreload\n%autoreload 2\n!pip list"], f"{source}\n%timeit -n1 1 + 1\n%matplotlib inline"


def cell_magic(source: str) -> Cells:
    return ["%%bash\nls"], f"%%time\n{source}"


def question_marks(source: str) -> Cells:
    return ["torch.einsum?"], f"{source}\ntorch.Tensor.mT?"


def shown(source: str) -> Cells:
    decorator, head, body, names = parts(source)
    return [], f"{decorator}\n{head}\n    display({names[0]})\n    print({names[0]})\n{body}"


def star_import(source: str) -> Cells:
    decorator, head, body, _ = parts(source)
    return ["from math import *"], f"{decorator}\n{head}\n    assert floor(pi) == 3\n{body}"


def alias(source: str) -> Cells:
    return ["import torch as th\nimport numpy as np"], source.replace("torch.", "th.")


def state(source: str) -> Cells:
    decorator, head, body, _ = parts(source)
    cells = ["calls = []\ncalls.append(0)\nfor k in range(3):\n    calls.append(k)"]
    return cells, f"{decorator}\n{head}\n    assert len(calls) == 4\n{body}"


def undecorated(source: str) -> Cells:
    return [], re.sub(r"^@exercises\.\w+\n", "", source, flags=re.MULTILINE)


def guarded(source: str) -> Cells:
    decorator, head, body, _ = parts(source)
    inner = "\n".join("    " + line for line in body.splitlines())
    return [], f"{decorator}\n{head}\n    with torch.no_grad():\n{inner}"


def nested(source: str) -> Cells:
    decorator, head, body, names = parts(source)
    inner = "\n".join("    " + line for line in body.splitlines())
    work = "    " + re.sub(r"^def \w+", "def signal", head)
    return [], f"{decorator}\n{head}\n{work}\n{inner}\n    return signal({', '.join(names)})"


def tested(source: str) -> Cells:
    node = ast.parse(source).body[-1]
    call = (
        ast.unparse(node.decorator_list[0]) + f".check({node.name})" if node.decorator_list else f"print({node.name})"
    )
    return [f"def demo():\n    return {node.name}\nimport time\nstart = time.time()"], f"{source}\n{call}"


def in_a_class(source: str) -> Cells:
    decorator, head, body, names = parts(source)
    inner = "\n".join("    " + line for line in body.splitlines())
    work = re.sub(r"^def \w+", "def work", head)
    cells = [f"class Mine:\n    @staticmethod\n    {work}\n{inner}"]
    return cells, f"{decorator}\n{head}\n    return Mine.work({', '.join(names)})"


def partially(source: str) -> Cells:
    [work], answer = helper(source)
    decorator, head, _, names = parts(source)
    name = re.search(r"\w+(?=\()", work)[0]
    cells = ["from functools import partial, lru_cache", work, f"bound = partial({name})"]
    return cells, f"{decorator}\n{head}\n    return bound({', '.join(names)})"


def configured(source: str) -> Cells:
    decorator, head, body, _ = parts(source)
    cells = [
        "from dataclasses import dataclass\n\n@dataclass\nclass Config:\n    seed: int = 0\n    name: str = 'a learner'"
    ]
    return [*cells, "config = Config(seed=3)"], f"{decorator}\n{head}\n    assert config.seed == 3\n{body}"


def suspicious_of_inputs(source: str) -> Cells:
    decorator, head, body, names = parts(source)
    asked = f"    if isinstance({names[0]}, str) or not hasattr({names[0]}, '__len__') and type({names[0]}) is dict:\n"
    return [], f"{decorator}\n{head}\n{asked}        raise TypeError(f'what is {{type({names[0]}).__name__}}?')\n{body}"


def functional(source: str) -> Cells:
    decorator, head, body, names = parts(source)
    used = f"    _ = F.relu(torch.ones(2, device='cpu')) if torch.is_tensor({names[0]}) else None\n"
    return ["import torch.nn.functional as F\nfrom torch import nn, Tensor"], f"{decorator}\n{head}\n{used}{body}"


def timed(source: str) -> Cells:
    decorator, head, body, names = parts(source)
    work = re.sub(r"^def \w+", "def untimed", head)
    call = f"    start = time.perf_counter()\n    out = untimed({', '.join(names)})\n"
    said = "    print(f'{time.perf_counter() - start:.3f} s, see https://docs.pytorch.org', end='\\r')\n    return out"
    return ["import time\nfrom time import sleep"], f"{work}\n{body}\n\n{decorator}\n{head}\n{call}{said}"


def cleared(source: str) -> Cells:
    decorator, head, body, _ = parts(source)
    cells = ["from IPython.display import clear_output, Markdown, display as show"]
    return cells, f"{decorator}\n{head}\n    clear_output(wait=True)\n    show(Markdown('**trying**'))\n{body}"


def with_progress(source: str) -> Cells:
    decorator, head, body, _ = parts(source)
    inner = "\n".join("    " + line for line in body.splitlines())
    return ["from tqdm.auto import tqdm, trange"], f"{decorator}\n{head}\n    for _ in trange(1, leave=False):\n{inner}"


def without_warnings(source: str) -> Cells:
    head = "import warnings\nwarnings.filterwarnings('ignore')\ntorch.set_printoptions(precision=3, sci_mode=False)\n"
    return ["import numpy as np\nnp.set_printoptions(precision=3)"], head + source


def captured(source: str) -> Cells:
    return ["%config InlineBackend.figure_format = 'retina'\n%env OMP_NUM_THREADS=1"], f"%%capture out\n{source}"


def generated(source: str) -> Cells:
    decorator, head, body, names = parts(source)
    work = re.sub(r"^def \w+", "def once", head)
    cell = f"{work}\n{body}\n\ndef every_step(*given):\n    yield once(*given)\n"
    return [cell], f"{decorator}\n{head}\n    *_, last = every_step({', '.join(names)})\n    return last"


def through_numpy(source: str) -> Cells:
    decorator, head, body, names = parts(source)
    work = re.sub(r"^def \w+", "def mine", head)
    back = (
        f"    out = mine({', '.join(names)})\n    if torch.is_tensor(out) and out.device.type == 'cpu':\n"
        "        out = torch.from_numpy(out.detach().numpy().copy()).to(out.dtype)\n    return out"
    )
    return [f"{work}\n{body}"], f"{decorator}\n{head}\n{back}"


def callable_object(source: str) -> Cells:
    decorator, head, body, names = parts(source)
    inner = "\n".join("    " + line for line in body.splitlines())
    work = re.sub(r"^def \w+\(", "def __call__(self, ", head)
    cell = f"class Solver:\n    def __init__(self):\n        self.calls = 0\n\n    {work}\n{inner}\n\nsolver = Solver()"
    return [cell], f"{decorator}\n{head}\n    solver.calls += 1\n    return solver({', '.join(names)})"


def in_another_script(source: str) -> Cells:
    decorator, head, body, names = parts(source)
    work = re.sub(r"^def \w+", "def 解", head)
    text = f"# Lösung, решение 🙂\n{work}\n{body}\n\n{decorator}\n{head}\n"
    text += f"    ответ = 解({', '.join(names)})\n    return ответ"
    return [], text.replace("\n", "\r\n")


def logged(source: str) -> Cells:
    decorator, head, body, names = parts(source)
    cells = ["import logging\nlogging.basicConfig(level=logging.INFO)\nlog = logging.getLogger('mine')"]
    return cells, f"{decorator}\n{head}\n    log.info('called with %s', {names[0]})\n{body}"


def with_a_duplicate_library(source: str) -> Cells:
    return ["import os\nos.environ['KMP_DUPLICATE_LIB_OK'] = 'TRUE'\nos.makedirs('figures', exist_ok=True)"], (
        "import os, sys\nfrom pathlib import Path\n" + source
    )


def _new(source: str) -> dict:
    return new_code_cell(source)


def merged(cells: list, answer: int, check: int) -> None:
    """The cell and its check are one, as JupyterLab merges them."""
    cells[answer].source += f"\n\n{cells[check].source}"
    del cells[check]


def check_split(cells: list, answer: int, check: int) -> None:
    cells[check].source += "\n"
    cells.insert(check + 1, _new("print('and it is right')"))


def stripped(cells: list, answer: int, check: int) -> None:
    """An editor that keeps neither marks nor ids."""
    for cell in cells:
        cell.metadata.pop("nbgrader", None)
        cell.pop("id", None)


def first_try_above(cells: list, answer: int, check: int) -> None:
    cells.insert(answer, _new(f"{_head(cells[answer].source)}\n    return None"))


def corrected_below(cells: list, answer: int, check: int) -> None:
    cells.insert(check + 1, _new(cells[answer].source))
    cells[answer].source = f"{_head(cells[answer].source)}\n    return None"


def first_try_kept(cells: list, answer: int, check: int) -> None:
    """The right one above, and below the check one that came to nothing."""
    cells.insert(check + 1, _new(f"{_head(cells[answer].source)}\n    return None"))


def doubled(cells: list, answer: int, check: int) -> None:
    cells.insert(answer + 1, _new(cells[answer].source))


def checked_twice(cells: list, answer: int, check: int) -> None:
    cells.insert(check + 1, _new(cells[check].source))


def plotted(cells: list, answer: int, check: int) -> None:
    cells.insert(check, _new("import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()"))


def broken_above(cells: list, answer: int, check: int) -> None:
    cells.insert(answer, _new("print(not_there)\n1 / 0"))


def half_a_line_above(cells: list, answer: int, check: int) -> None:
    cells.insert(answer, _new("for x in (1, 2:\n    print(x"))


def endless_above(cells: list, answer: int, check: int) -> None:
    cells.insert(answer, _new("while True:\n    pass"))


def in_the_check(cells: list, answer: int, check: int) -> None:
    """The answer moved into the cell of its check."""
    cells[check].source = f"{cells[answer].source}\n\n{cells[check].source}"
    del cells[answer]


def at_the_end(cells: list, answer: int, check: int) -> None:
    """Answer and check, moved to where one has room; with an answer that was corrected below the check."""
    answered = defined(plain(cells[answer].source))
    corrected = (
        [check + 1] if any(answered & defined(plain(cell.source)) for cell in cells[check + 1 : check + 2]) else []
    )
    cells += [cells[place] for place in (answer, check, *corrected)]
    for place in (*corrected, check, answer):
        del cells[place]


def noted(cells: list, answer: int, check: int) -> None:
    cells.insert(answer, new_markdown_cell("## My notes\n\n`os.system`, $x^2$ and <b>more</b>"))


def long_printed(cells: list, answer: int, check: int) -> None:
    cells[answer].outputs = [{"output_type": "stream", "name": "stdout", "text": ["x" * 1000 + "\n"] * 200}]


def _head(source: str) -> str:
    """Decorator and head of an answer, whatever else its cell holds."""
    tree = ast.parse(re.sub(r"(?m)^\s*[%!].*$|^.*\?$", "", source))
    node = [node for node in tree.body if isinstance(node, ast.FunctionDef)][-1]
    node.body = [ast.Pass()]
    return ast.unparse(node).removesuffix("\n    pass")


WAYS = (
    *(commented, unparsed, documented, helper, helper_below, line_magics, cell_magic, question_marks, shown),
    *(star_import, alias, state, undecorated, guarded, nested, tested, in_a_class),
    *(partially, configured, suspicious_of_inputs, functional, timed, cleared, with_progress, without_warnings),
    *(captured, generated, through_numpy, callable_object, in_another_script, logged, with_a_duplicate_library),
)
CUTTING = (guarded, through_numpy)  # of these, no gradient comes back: wrong where one is asked for
HABITS = (
    *(merged, check_split, stripped, first_try_above, corrected_below, first_try_kept, doubled, checked_twice),
    *(plotted, broken_above, half_a_line_above, endless_above, in_the_check, at_the_end, noted, long_printed),
)
