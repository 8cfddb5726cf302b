"""Right answers as honest people hand them in: rewritten, with helpers, imports and magics, in cells of their own.

Each way takes an answer's source (a decorated function) and gives the cells that come before it, and its cell.
"""

import ast
import re

Cells = tuple[list[str], str]


def _parts(source: str) -> tuple[str, str, str, list[str]]:
    """Decorator, head, body and the arguments' names."""
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
    decorator, head, body, _ = _parts(source)
    return [], f'{decorator}\n{head}\n    """What was asked for: `sys` and <b>bold</b>."""\n{body}'.replace(
        "<b>bold</b>", "bold"
    )


def helper(source: str) -> Cells:
    decorator, head, body, names = _parts(source)
    work = re.sub(r"^def \w+", "def my_work", head)
    given = ", ".join(names)
    return [f"{work}\n{body}"], f"{decorator}\n{head}\n    return my_work({given})"


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
    decorator, head, body, names = _parts(source)
    return [], f"{decorator}\n{head}\n    display({names[0]})\n    print({names[0]})\n{body}"


def star_import(source: str) -> Cells:
    decorator, head, body, _ = _parts(source)
    return ["from math import *"], f"{decorator}\n{head}\n    assert floor(pi) == 3\n{body}"


def alias(source: str) -> Cells:
    return ["import torch as th\nimport numpy as np"], source.replace("torch.", "th.")


def state(source: str) -> Cells:
    decorator, head, body, _ = _parts(source)
    cells = ["calls = []\ncalls.append(0)\nfor k in range(3):\n    calls.append(k)"]
    return cells, f"{decorator}\n{head}\n    assert len(calls) == 4\n{body}"


def undecorated(source: str) -> Cells:
    _, head, body, _ = _parts(source)
    return [], f"{head}\n{body}"


def guarded(source: str) -> Cells:
    decorator, head, body, _ = _parts(source)
    inner = "\n".join("    " + line for line in body.splitlines())
    return [], f"{decorator}\n{head}\n    with torch.no_grad():\n{inner}"


def nested(source: str) -> Cells:
    decorator, head, body, names = _parts(source)
    inner = "\n".join("    " + line for line in body.splitlines())
    work = "    " + re.sub(r"^def \w+", "def signal", head)
    return [], f"{decorator}\n{head}\n{work}\n{inner}\n    return signal({', '.join(names)})"


def tested(source: str) -> Cells:
    decorator, *_ = _parts(source)
    name = ast.parse(source).body[-1].name
    return [
        f"def demo():\n    return {name}\nimport time\nstart = time.time()"
    ], f"{source}\n{decorator[1:]}.check({name})"


def in_a_class(source: str) -> Cells:
    decorator, head, body, names = _parts(source)
    inner = "\n".join("    " + line for line in body.splitlines())
    work = re.sub(r"^def \w+", "def work", head)
    cells = [f"class Mine:\n    @staticmethod\n    {work}\n{inner}"]
    return cells, f"{decorator}\n{head}\n    return Mine.work({', '.join(names)})"


WAYS = (
    *(commented, unparsed, documented, helper, helper_below, line_magics, cell_magic, question_marks, shown),
    *(star_import, alias, state, undecorated, guarded, nested, tested, in_a_class),
)
