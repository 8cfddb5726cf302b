"""Right answers as honest people hand them in: rewritten, with helpers, imports and magics, in cells of their own.

Each way takes an answer's source (a decorated function) and gives the cells that come before it, and its cell. Each
habit takes a notebook's cells and the place of an answer and of its check, and changes what stands around them.
"""

import ast
import re
from collections.abc import Callable
from string import Template

from nbformat.v4 import new_code_cell, new_markdown_cell

from companion.workshop.grading.notebook.syntax import defined, plain

Cells = tuple[list[str], str]
Way = Callable[[str], Cells]
Habit = Callable[[list, int, int], None]


class Parts(dict):
    """What stands for ``$name`` in a way's cells, looked for once it is needed: an answer's decorator and head
    (``top``), its ``args`` up to the colon, its ``body``, that further in (``inner``), the arguments' names
    (``given``), the ``first`` of these, and a name for a function of one's own (``mine``).
    """

    def __missing__(self, name: str) -> str:
        source = self["source"]
        node, lines = ast.parse(source).body[-1], source.splitlines()
        first = node.body[0].lineno - 1
        head, body = "\n".join(lines[node.lineno - 1 : first]), "\n".join(lines[first:])
        names = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args)]
        args = re.sub(r"^def \w+\(", "", head)
        self |= {"decorator": "\n".join(lines[: node.lineno - 1]), "args": args, "body": body}
        self |= {"top": f"{self['decorator']}\n{head}", "given": ", ".join(names), "first": names[0]}
        self |= {"inner": indented(body), "work_inside": indented(f"def my_work({args}\n{body}")}
        self["mine"] = "my_work" if "my_work" not in source else "my_other_work"  # of one that has a helper already
        return self[name]


def indented(text: str) -> str:
    return "\n".join("    " + line for line in text.splitlines())


def way(name: str, answer: str, *before: str) -> Way:
    """Make a way of the text of the answer's cell and of those before it, in which `Parts` have their places."""

    def write(source: str) -> Cells:
        own = Parts(source=source)
        return [Template(cell).substitute(own) for cell in before], Template(answer).substitute(own)

    write.__name__ = name
    return write


def unparsed(source: str) -> Cells:
    return [], ast.unparse(ast.parse(source))


def alias(source: str) -> Cells:
    return ["import torch as th\nimport numpy as np"], source.replace("torch.", "th.")


def undecorated(source: str) -> Cells:
    return [], re.sub(r"^@exercises\.\w+\n", "", source, flags=re.MULTILINE)


def tested(source: str) -> Cells:
    node = ast.parse(source).body[-1]
    decorators = [ast.unparse(each) for each in node.decorator_list]
    call = f"{decorators[0]}.check({node.name})" if decorators else f"print({node.name})"
    return [f"def demo():\n    return {node.name}\nimport time\nstart = time.time()"], f"{source}\n{call}"


def in_another_script(source: str) -> Cells:
    text = "# Lösung, решение 🙂\ndef 解($args\n$body\n\n$top\n    ответ = 解($given)\n    return ответ"
    return [], Template(text).substitute(Parts(source=source)).replace("\n", "\r\n")


helper = way("helper", "$top\n    return $mine($given)", "def $mine($args\n$body")
helper_below = way("helper_below", "def $mine($args\n$body\n\n$top\n    return $mine($given)")
guarded = way("guarded", "$top\n    with torch.no_grad():\n$inner")
through_numpy = way(
    "through_numpy",
    "$top\n    out = mine($given)\n    if torch.is_tensor(out) and out.device.type == 'cpu':\n"
    "        out = torch.from_numpy(out.detach().numpy().copy()).to(out.dtype)\n    return out",
    "def mine($args\n$body",
)
OF_THE_CLOCK = """def untimed($args
$body

$top
    start = time.perf_counter()
    out = untimed($given)
    print(f'{time.perf_counter() - start:.3f} s, see https://docs.pytorch.org', end='\\r')
    return out"""
DOUBTS = """$top
    if isinstance($first, str) or not hasattr($first, '__len__') and type($first) is dict:
        raise TypeError(f'what is {type($first).__name__}?')
$body"""
SOLVER = """class Solver:
    def __init__(self):
        self.calls = 0

    def __call__(self, $args
$inner

solver = Solver()"""
CONFIG = (
    "from dataclasses import dataclass\n\n@dataclass\nclass Config:\n    seed: int = 0\n    name: str = 'a learner'"
)
QUIET = "import warnings\nwarnings.filterwarnings('ignore')\ntorch.set_printoptions(precision=3, sci_mode=False)\n"
LOGS = "import logging\nlogging.basicConfig(level=logging.INFO)\nlog = logging.getLogger('mine')"
DUPLICATE = "import os\nos.environ['KMP_DUPLICATE_LIB_OK'] = 'TRUE'\nos.makedirs('figures', exist_ok=True)"
RELU = "_ = F.relu(torch.ones(2, device='cpu')) if torch.is_tensor($first) else None"
WAYS = (
    way(
        "commented",
        "# my answer; I tried to open it, compile it and exec it: eval() at os.system level\n$source\n# done",
    ),
    unparsed,
    way("documented", '$top\n    """What was asked for: `sys` and bold."""\n$body'),
    helper,
    helper_below,
    way(
        "line_magics",
        "$source\n%timeit -n1 1 + 1\n%matplotlib inline",
        "%load_ext autoreload\n%autoreload 2\n!pip list",
    ),
    way("cell_magic", "%%time\n$source", "%%bash\nls"),
    way("question_marks", "$source\ntorch.Tensor.mT?", "torch.einsum?"),
    way("shown", "$top\n    display($first)\n    print($first)\n$body"),
    way("star_import", "$top\n    assert floor(pi) == 3\n$body", "from math import *"),
    alias,
    way(
        "state",
        "$top\n    assert len(calls) == 4\n$body",
        "calls = []\ncalls.append(0)\nfor k in range(3):\n    calls.append(k)",
    ),
    undecorated,
    guarded,
    way("nested", "$top\n    def signal($args\n$inner\n    return signal($given)"),
    tested,
    way(
        "in_a_class", "$top\n    return Mine.work($given)", "class Mine:\n    @staticmethod\n    def work($args\n$inner"
    ),
    way(
        "partially",
        "$top\n    return bound($given)",
        "from functools import partial, lru_cache",
        "def $mine($args\n$body",
        "bound = partial($mine)",
    ),
    way("configured", "$top\n    assert config.seed == 3\n$body", CONFIG, "config = Config(seed=3)"),
    way("suspicious_of_inputs", DOUBTS),
    way("functional", f"$top\n    {RELU}\n$body", "import torch.nn.functional as F\nfrom torch import nn, Tensor"),
    way("timed", OF_THE_CLOCK, "import time\nfrom time import sleep"),
    way(
        "cleared",
        "$top\n    clear_output(wait=True)\n    show(Markdown('**trying**'))\n$body",
        "from IPython.display import clear_output, Markdown, display as show",
    ),
    way("with_progress", "$top\n    for _ in trange(1, leave=False):\n$inner", "from tqdm.auto import tqdm, trange"),
    way("without_warnings", f"{QUIET}$source", "import numpy as np\nnp.set_printoptions(precision=3)"),
    way(
        "captured",
        "%%capture out\n$source",
        "%config InlineBackend.figure_format = 'retina'\n%env OMP_NUM_THREADS=1",
    ),
    way(
        "generated",
        "$top\n    *_, last = every_step($given)\n    return last",
        "def once($args\n$body\n\ndef every_step(*given):\n    yield once(*given)\n",
    ),
    through_numpy,
    way("callable_object", "$top\n    solver.calls += 1\n    return solver($given)", SOLVER),
    in_another_script,
    way("logged", "$top\n    log.info('called with %s', $first)\n$body", LOGS),
    way("with_a_duplicate_library", "import os, sys\nfrom pathlib import Path\n$source", DUPLICATE),
)
CUTTING = (guarded, through_numpy)  # of these, no gradient comes back: wrong where one is asked for


def adding(name: str, source: str, *, below: str = "", above: str = "") -> Habit:
    """Make a habit: one more cell, ``above`` or ``below`` the "answer" or the "check". In its ``source`` these have
    their places, and a ``$try`` to answer that comes to nothing.
    """

    class Around(dict):
        def __missing__(self, name: str) -> str:
            return f"{_head(self['answer'])}\n    return None"

    def add(cells: list, answer: int, check: int) -> None:
        text = Template(source).substitute(Around(answer=cells[answer].source, check=cells[check].source))
        place = {"answer": answer, "check": check}[below or above] + bool(below)
        cells.insert(place, new_code_cell(text))

    add.__name__ = name
    return add


def merged(cells: list, answer: int, check: int) -> None:
    """The cell and its check are one, as JupyterLab merges them."""
    cells[answer].source += f"\n\n{cells[check].source}"
    del cells[check]


def check_split(cells: list, answer: int, check: int) -> None:
    cells[check].source += "\n"
    cells.insert(check + 1, new_code_cell("print('and it is right')"))


def stripped(cells: list, answer: int, check: int) -> None:
    """An editor that keeps neither marks nor ids."""
    for cell in cells:
        cell.metadata.pop("nbgrader", None)
        cell.pop("id", None)


def corrected_below(cells: list, answer: int, check: int) -> None:
    cells.insert(check + 1, new_code_cell(cells[answer].source))
    cells[answer].source = f"{_head(cells[answer].source)}\n    return None"


def in_the_check(cells: list, answer: int, check: int) -> None:
    """The answer moved into the cell of its check."""
    cells[check].source = f"{cells[answer].source}\n\n{cells[check].source}"
    del cells[answer]


def at_the_end(cells: list, answer: int, check: int) -> None:
    """Answer and check, moved to where one has room; with an answer that was corrected below the check."""
    answered = defined(plain(cells[answer].source))
    is_corrected = any(answered & defined(plain(cell.source)) for cell in cells[check + 1 : check + 2])
    places = [answer, check, *([check + 1] if is_corrected else [])]
    cells += [cells[place] for place in places]
    for place in reversed(places):
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


doubled = adding("doubled", "$answer", below="answer")
endless_above = adding("endless_above", "while True:\n    pass", above="answer")
HABITS = (
    merged,
    check_split,
    stripped,
    adding("first_try_above", "$try", above="answer"),
    corrected_below,
    adding("first_try_kept", "$try", below="check"),  # the right one stands above
    doubled,
    adding("checked_twice", "$check", below="check"),
    adding("plotted", "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()", above="check"),
    adding("broken_above", "print(not_there)\n1 / 0", above="answer"),
    adding("half_a_line_above", "for x in (1, 2:\n    print(x", above="answer"),
    endless_above,
    in_the_check,
    at_the_end,
    noted,
    long_printed,
)
