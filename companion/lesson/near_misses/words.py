"""What stands in an answer, in words: as a teacher would point at it, without showing the code."""

import ast
import functools

from companion.lesson.near_misses.trees import BEFORE

OPERATIONS = {
    "mT": "transpose", "T": "transpose", "sum": "sum", "mean": "mean", "norm": "length", "std": "standard deviation", "var": "variance",
    "square": "square", "sqrt": "square root", "abs": "absolute value", "log": "logarithm", "exp": "exponential",
    "softmax": "softmax", "sigmoid": "sigmoid", "tanh": "tanh", "relu": "relu", "cos": "cosine", "sin": "sine",
    "amin": "smallest", "amax": "largest", "min": "smallest", "max": "largest", "argmax": "argmax", "argmin": "argmin",
    "cumsum": "running sum", "cummin": "running minimum", "cummax": "running maximum", "sort": "sorted order", "argsort": "sorted order",
    "masked_fill": "masked form", "solve": "solution", "lstsq": "least-squares fit", "normalize": "normalised version", "entr": "entropy",
    "clamp": "clamped version", "clamp_min": "positive part", "nan_to_num": "version without NaN", "any": "any", "all": "all",
    "outer": "outer product", "one_hot": "one-hot form", "triu": "upper triangle", "tril": "lower triangle", "gather": "picked entries",
    "flip": "reversed order", "roll": "shifted version", "diagonal": "diagonal", "cumprod": "running product", "log_softmax": "log-softmax",
}  # fmt: skip
PLAIN = {"to", "double", "float", "long", "clone", "contiguous", "unsqueeze", "squeeze", "view", "reshape", "expand", "values", "solution", "int", "expand_as", "nan_to_num"}  # fmt: skip
ORDINALS = ["first", "second", "third", "fourth"]
SIZE = "the number of {} of {}"


class Words:
    """Names for the parts of one answer."""

    def __init__(self, tree: ast.FunctionDef):
        self.parameters = [argument.arg for argument in tree.args.args]
        self.defined: dict[str, ast.expr] = {}
        stored = [node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
        self.changing = {name for name in stored if stored.count(name) > 1}
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign):
                target, value = node.targets[0], node.value
                both = isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)
                for name, known in zip(target.elts, value.elts, strict=True) if both else [(target, value)]:
                    if isinstance(name, ast.Name) and name.id not in self.parameters:
                        self.defined.setdefault(name.id, known)

    def inside(self, name: str) -> list[ast.expr]:
        """What a variable's definition is made of, a step or two down."""
        found: list[ast.expr] = []
        layer: list[ast.AST] = [self.defined[name]] if name in self.defined else []
        for _ in range(2):
            layer = [child for node in layer for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
            found += [node for node in layer if isinstance(node, ast.BinOp | ast.Call | ast.Subscript | ast.UnaryOp)]
        return found

    def made_of_what_changes(self, name: str) -> ast.expr | None:
        """A variable's definition, if it may be another one by the time that the variable is used."""
        definition = self.defined.get(name)
        if definition is None or name in self.changing or name.startswith(BEFORE):
            return None
        used = {node.id for node in ast.walk(definition) if isinstance(node, ast.Name)}
        return definition if used & self.changing else None

    @functools.lru_cache(maxsize=4096)  # noqa: B019  # lives as long as the family of near misses it belongs to
    def noun(self, node: ast.AST, depth: int = 2) -> str:
        """What a node is, in a few words."""
        if isinstance(node, ast.Name):
            return self._variable(node.id, depth)
        if isinstance(node, ast.Constant):
            return "infinity" if node.value == float("inf") else str(node.value)
        if (size := size_of(node)) is not None:
            return size
        if isinstance(node, ast.UnaryOp):
            return ("minus " if isinstance(node.op, ast.USub) else "") + self.noun(node.operand, depth)
        name, inside = self.operation(node)
        if name in PLAIN:
            return self.noun(inside, depth)
        if name is not None:
            word = OPERATIONS.get(name, name)
            if word.startswith("_") or inside is None:
                return self.about(node)
            return f"the {word} of {self.noun(inside, depth - 1)}" if depth > 0 else f"the {word}"
        if isinstance(node, ast.Subscript):
            return self._part(node, depth)
        if isinstance(node, ast.BinOp) and depth > 0:
            return self._combined(node, depth)
        if isinstance(node, ast.Compare) and depth > 0:
            return (
                f"the comparison of {self.noun(node.left, depth - 1)} with {self.noun(node.comparators[0], depth - 1)}"
            )
        return self.about(node)

    def _variable(self, name: str, depth: int) -> str:
        if name.startswith(BEFORE):
            return f"{self._variable(name.removeprefix(BEFORE), depth)} from before the update"
        if name in self.changing - set(self.parameters):
            start = self.defined.get(name)
            known = isinstance(start, ast.Name) and start.id in self.parameters
            return f"{start.id} as it has been changed so far" if known else name
        if name in self.parameters or name not in self.defined or len(name) >= 4:
            return name
        return self.noun(self.defined[name], depth - 1) if depth > 0 else self.about(self.defined[name])

    def _part(self, node: ast.Subscript, depth: int) -> str:
        inner = self.noun(node.value, depth)
        index = node.slice
        names = [each.id for each in ast.walk(index) if isinstance(each, ast.Name) and each.id != "torch"]
        if isinstance(index, ast.Name):
            return f"{inner} at {self._variable(index.id, 0)}"
        if isinstance(index, ast.Compare):
            return f"the chosen part of {inner}"
        if any(isinstance(each, ast.Slice) and (each.lower or each.upper) for each in ast.walk(index)) or names:
            return f"the part of {inner}"
        return inner

    def _combined(self, node: ast.BinOp, depth: int) -> str:
        chain = factors(node)
        if len(chain) > 2 and isinstance(node.op, ast.MatMult | ast.Mult):
            nouns = [self.noun(each, depth - 1) for each in chain]
            said = f"the product of {', '.join(nouns[:-1])} and {nouns[-1]}"
            return said if len(said) < 60 else self.about(node)
        left, right = self.noun(node.left, depth - 1), self.noun(node.right, depth - 1)
        if isinstance(node.op, ast.Pow) and isinstance(node.right, ast.Constant):
            known = {0.5: f"the square root of {left}", 2: f"{left} squared", 3: f"{left} cubed"}
            return known.get(node.right.value, f"the power of {left}")
        text = {
            ast.MatMult: "the product of {} and {}",
            ast.Mult: "{} times {}",
            ast.Div: "{} over {}",
            ast.Add: "the sum of {} and {}",
            ast.Sub: "the difference of {} and {}",
            ast.Pow: "{} to the power of {}",
        }.get(type(node.op))
        said = text.format(left, right) if text else ""
        return said if said and len(said) < 60 else self.about(node)

    def about(self, node: ast.AST) -> str:
        """The parameters and variables that a node is made of."""
        names: list[str] = []
        for each in ast.walk(node):
            if (
                isinstance(each, ast.Name)
                and each.id not in names
                and (each.id in self.parameters or each.id in self.defined)
            ):
                names.append(each.id)
        return "the part with " + " and ".join(names[:3]) if names else "that part"

    def operation(self, node: ast.AST) -> tuple[str | None, ast.AST | None]:
        """An operation's name, and what it works on."""
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute):
                outside = isinstance(node.func.value, ast.Name | ast.Attribute) and _root(node.func.value) in (
                    "torch",
                    "F",
                    "math",
                )
                inside = (node.args[0] if node.args else None) if outside else node.func.value
                if node.func.attr == "solve" and node.args:
                    inside = node.args[0]
                return node.func.attr, inside
            if isinstance(node.func, ast.Name):
                return node.func.id, node.args[0] if node.args else None
        if isinstance(node, ast.Attribute) and _root(node) not in ("torch", "F", "math"):
            return node.attr, node.value
        return None, None


def factors(node: ast.AST) -> list[ast.expr]:
    """The factors of a product of several."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult | ast.Mult):
        same = type(node.op)
        sides = [
            factors(side) if isinstance(side, ast.BinOp) and isinstance(side.op, same) else [side]
            for side in (node.left, node.right)
        ]
        return [*sides[0], *sides[1]]
    return [node]


def _root(node: ast.AST) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def size_of(node: ast.AST) -> str | None:
    """The words for len(x) and x.shape[i]."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len":
        return SIZE.format("rows", node.args[0].id) if isinstance(node.args[0], ast.Name) else "the number of rows"
    if (
        isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Attribute)
        and node.value.attr == "shape"
        and isinstance(node.value.value, ast.Name)
    ):
        index = ast.literal_eval(node.slice) if not isinstance(node.slice, ast.Name) else 0
        return SIZE.format({0: "rows", -1: "columns"}.get(index, "columns"), node.value.value.id)
    return None


def along(whose: str, dim: int, ndim: int) -> str:
    """Along which axis, where there are several."""
    return f" along {whose} {ORDINALS[dim]} axis" if ndim > 1 else ""
