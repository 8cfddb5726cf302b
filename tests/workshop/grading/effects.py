"""Right answers that rest on what code does, and not on a name that it gives: ways of writing, as in
`workshop.grading.variants`.
"""

from workshop.grading.variants import Way, way

WORK = "def my_work($args\n$body"
DISPATCHER = (
    "from functools import singledispatch\n@singledispatch\ndef chosen(key, *given):\n    raise TypeError(key)\n"
)
BASE = "class Base:\n    kinds = []\n    def __init_subclass__(cls):\n        Base.kinds.append(cls)"
REGISTER = "WORK = {}\ndef register(f):\n    WORK[f.__name__] = f\n    return f\n@register"
FILLED = "my_functions = {}\n" + WORK + "\ndef fill():\n    my_functions['f'] = my_work\nfill()"
OPTIMIZED = """my_weight = torch.zeros((), requires_grad=True)
opt = torch.optim.SGD([my_weight], lr=0.25)
for _ in range(50):
    opt.zero_grad()
    (my_weight - 2).square().backward()
    opt.step()"""
DRAWN = """my_draws = torch.Generator()
_ = my_draws.manual_seed(3)
my_draw = torch.rand(1, generator=my_draws)
my_draw -= torch.rand(1, generator=torch.Generator().manual_seed(3))"""
NET = "my_net = torch.nn.Linear(1, 1)\n"
FUTURE = "from __future__ import annotations\nfrom dataclasses import dataclass"
STEP = "@dataclass\nclass Step:\n    two: int\n    def copy(self) -> Step:\n        return Step(self.two)"
TYPES = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from nowhere import Nothing"
MODULE = "%%writefile my_module.py\nfound = []\n\ndef setup():\n    found.append(2)"


def two(name: str, above: str, value: str, *before: str) -> Way:
    """Make an answer that counts on a ``value`` to be 2 by what stands above it."""
    return way(name, f"{above}\n$top\n    assert abs({value} - 2) < 1e-3\n$body", *before)


registered_by_a_call = way(
    "registered_by_a_call",
    "$top\n    return WORK['mine']($given)",
    "WORK = {}\ndef register(name, f):\n    WORK[name] = f",
    f"{WORK}\nregister('mine', my_work)",
)
EFFECTS = (
    way("registered", f"{REGISTER}\n{WORK}\n\n$top\n    return WORK['my_work']($given)"),
    registered_by_a_call,
    way(
        "dispatched",
        "$top\n    return chosen(2, $given)",
        DISPATCHER,
        "@chosen.register\ndef _(key: int, $args\n$body",
    ),
    way(
        "subclassed",
        "$top\n    return Base.kinds[0].my_work($given)",
        BASE,
        "class Mine(Base):\n    @staticmethod\n$work_inside",
    ),
    way(
        "patched",
        "$top\n    return torch.Tensor.my_work($given)",
        f"{WORK}\ntorch.Tensor.my_work = staticmethod(my_work)",
    ),
    way("filled", f"{FILLED}\n$top\n    return my_functions['f']($given)"),
    way(
        "made_global",
        "$top\n    return found($given)",
        f"found = None\n{WORK}\ndef setup():\n    global found\n    found = my_work",
        "setup()",
    ),
    two(
        "changed_by_a_function",
        "my_table = {'two': 1}\ndef double(each):\n    each['two'] = 2\nfor each in [my_table]:\n    double(each)",
        "my_table['two']",
    ),
    two("changed_by_an_alias", "my_config = {'two': 1}\nalias = my_config\nalias['two'] = 2", "my_config['two']"),
    two("parameters_filled", f"{NET}for p in my_net.parameters():\n    p.data.fill_(2.)", "my_net.weight.item()"),
    two("weights_filled", f"{NET}with torch.no_grad():\n    my_net.weight.fill_(2.)", "my_net.weight.item()"),
    two("optimized", OPTIMIZED, "my_weight.item()"),
    two("mapped", "my_values = []\nlist(map(my_values.append, [1, 1]))", "sum(my_values)"),
    two("comprehended", "my_values = []\n[my_values.append(1) for _ in range(2)]", "sum(my_values)"),
    two("seeded", DRAWN, "2 + my_draw.item()"),
    two("annotated", "", "Step(2).copy().two", FUTURE, STEP),
    two("annotated_here", f"{FUTURE}\n{TYPES}\n{STEP}", "Step(2).copy().two"),
    two("configured_module", "my_module.setup()", "my_module.found[0]", MODULE, "import my_module"),
)
