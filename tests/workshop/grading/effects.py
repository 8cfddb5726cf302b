"""Right answers that rest on what code does, and not on a name that it gives: ways of writing, as in
`workshop.grading.variants`.
"""

import re

from workshop.grading.variants import Cells, parts


def _work(source: str, name: str = "my_work") -> tuple[str, str, str]:
    """The answer's body as a function of this ``name``, the head of what is left, and the call between the two."""
    decorator, head, body, names = parts(source)
    work = re.sub(r"^def \w+", f"def {name}", head)
    return f"{work}\n{body}", f"{decorator}\n{head}\n", f"({', '.join(names)})"


def registered(source: str) -> Cells:
    work, head, call = _work(source)
    cell = f"WORK = {{}}\ndef register(f):\n    WORK[f.__name__] = f\n    return f\n@register\n{work}"
    return [], f"{cell}\n\n{head}    return WORK['my_work']{call}"


def registered_by_a_call(source: str) -> Cells:
    work, head, call = _work(source)
    cells = ["WORK = {}\ndef register(name, f):\n    WORK[name] = f", f"{work}\nregister('mine', my_work)"]
    return cells, f"{head}    return WORK['mine']{call}"


def dispatched(source: str) -> Cells:
    work, head, call = _work(source, "_")
    cell = "from functools import singledispatch\n@singledispatch\ndef chosen(key, *given):\n    raise TypeError(key)\n"
    work = work.replace("def _(", "def _(key: int, ", 1)
    return [cell, f"@chosen.register\n{work}"], f"{head}    return chosen(2, {call[1:]}"


def subclassed(source: str) -> Cells:
    work, head, call = _work(source)
    base = "class Base:\n    kinds = []\n    def __init_subclass__(cls):\n        Base.kinds.append(cls)"
    inner = "\n".join("    " + line for line in work.splitlines())
    return [base, f"class Mine(Base):\n    @staticmethod\n{inner}"], f"{head}    return Base.kinds[0].my_work{call}"


def patched(source: str) -> Cells:
    work, head, call = _work(source)
    return [f"{work}\ntorch.Tensor.my_work = staticmethod(my_work)"], f"{head}    return torch.Tensor.my_work{call}"


def filled(source: str) -> Cells:
    work, head, call = _work(source)
    above = f"my_functions = {{}}\n{work}\ndef fill():\n    my_functions['f'] = my_work\nfill()"
    return [], f"{above}\n{head}    return my_functions['f']{call}"


def made_global(source: str) -> Cells:
    work, head, call = _work(source)
    cells = [f"found = None\n{work}\ndef setup():\n    global found\n    found = my_work", "setup()"]
    return cells, f"{head}    return found{call}"


def _two(source: str, above: str, two: str) -> Cells:
    """An answer that counts on a value to be 2 by what stands above it."""
    decorator, head, body, _ = parts(source)
    return [], f"{above}\n{decorator}\n{head}\n    assert abs({two} - 2) < 1e-3\n{body}"


def changed_by_a_function(source: str) -> Cells:
    above = "my_table = {'two': 1}\ndef double(each):\n    each['two'] = 2\nfor each in [my_table]:\n    double(each)"
    return _two(source, above, "my_table['two']")


def changed_by_an_alias(source: str) -> Cells:
    return _two(source, "my_config = {'two': 1}\nalias = my_config\nalias['two'] = 2", "my_config['two']")


def parameters_filled(source: str) -> Cells:
    above = "my_net = torch.nn.Linear(1, 1)\nfor p in my_net.parameters():\n    p.data.fill_(2.)"
    return _two(source, above, "my_net.weight.item()")


def weights_filled(source: str) -> Cells:
    above = "my_net = torch.nn.Linear(1, 1)\nwith torch.no_grad():\n    my_net.weight.fill_(2.)"
    return _two(source, above, "my_net.weight.item()")


def optimized(source: str) -> Cells:
    above = "my_weight = torch.zeros((), requires_grad=True)\nopt = torch.optim.SGD([my_weight], lr=0.25)\n"
    above += "for _ in range(50):\n    opt.zero_grad()\n    (my_weight - 2).square().backward()\n    opt.step()"
    return _two(source, above, "my_weight.item()")


def mapped(source: str) -> Cells:
    return _two(source, "my_values = []\nlist(map(my_values.append, [1, 1]))", "sum(my_values)")


def comprehended(source: str) -> Cells:
    return _two(source, "my_values = []\n[my_values.append(1) for _ in range(2)]", "sum(my_values)")


def seeded(source: str) -> Cells:
    above = "my_draws = torch.Generator()\n_ = my_draws.manual_seed(3)\nmy_draw = torch.rand(1, generator=my_draws)\n"
    above += "my_draw -= torch.rand(1, generator=torch.Generator().manual_seed(3))"
    return _two(source, above, "2 + my_draw.item()")


STEP = "\n@dataclass\nclass Step:\n    two: int\n    def copy(self) -> Step:\n        return Step(self.two)"
FUTURE = "from __future__ import annotations"


def annotated(source: str) -> Cells:
    [], answer = _two(source, "", "Step(2).copy().two")
    return [f"{FUTURE}\nfrom dataclasses import dataclass", STEP.strip()], answer


def annotated_here(source: str) -> Cells:
    above = f"{FUTURE}\nfrom dataclasses import dataclass\nfrom typing import TYPE_CHECKING\nif TYPE_CHECKING:\n"
    return _two(source, f"{above}    from nowhere import Nothing{STEP}", "Step(2).copy().two")


def configured_module(source: str) -> Cells:
    module = "%%writefile my_module.py\nfound = []\n\ndef setup():\n    found.append(2)"
    [], answer = _two(source, "my_module.setup()", "my_module.found[0]")
    return [module, "import my_module"], answer


EFFECTS = (
    *(registered, registered_by_a_call, dispatched, subclassed, patched, filled, made_global),
    *(changed_by_a_function, changed_by_an_alias, parameters_filled, weights_filled, optimized, mapped),
    *(comprehended, seeded, annotated, annotated_here, configured_module),
)
