"""What stands in an answer, in words: as a teacher would point at it, by the names of the task alone."""

import ast
import functools
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from companion.lesson.near_misses.syntax import factors, indices, operation, root, size_of
from companion.lesson.near_misses.trees import BEFORE
from companion.lesson.seen import ORDINALS

_lines = Path(__file__).with_name("words.txt").read_text(encoding="utf-8").splitlines()[1:]  # the first is a comment
OPERATIONS = {name.strip(): word.strip() for name, _, word in (line.partition("=") for line in _lines)}
COMPARISONS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
RELATIONS = {
    "<": "is below", "<=": "is at most", ">": "is above", ">=": "is at least", "==": "equals", "!=": "differs from",
}  # fmt: skip
JOINED = {
    ast.MatMult: "the product of {} and {}", ast.Mult: "{} times {}", ast.Div: "{} over {}", ast.Add: "the sum of {} and {}",
    ast.Sub: "the difference of {} and {}", ast.Pow: "{} to the power of {}",
}  # fmt: skip
ENDS = {"0": "the first", "-1": "the last", "1:": "all but the first", ":-1": "all but the last"}
LONG = 55  # characters; what takes more is said by the arguments that it comes from
MOST_SOURCES = 5  # arguments; what comes from more, or from none, has no words
VAGUE = "a value on the way"


class Words:
    """Names for the parts of one answer.

    ``ndims``: how many axes each variable has, where that is known.
    ``known``: the variables of the answer that a learner's program has, too: these go by their names.
    """

    def __init__(self, tree: ast.FunctionDef, ndims: Mapping[str, int] | None = None, known: Collection[str] = ()):
        self.parameters = [argument.arg for argument in tree.args.args]
        self.ndims, self.known = dict(ndims or {}), frozenset(known)
        self.defined: dict[str, ast.expr] = {}
        self.looped: dict[str, ast.expr] = {}  # what a loop's variable is a part of
        self.unpacked: set[str] = set()
        nodes = list(ast.walk(tree))
        stored = [node for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
        times = Counter(node.id for node in stored)
        self.changing = {name for name in times if times[name] > 1 or name in self.parameters}
        self.stores = [(node.id, node.lineno) for node in stored if node.id in self.changing]
        for node in nodes:
            if isinstance(node, ast.Assign):
                self._define(node.targets[0], node.value)
            elif isinstance(node, ast.For | ast.comprehension):
                self._define_looped(node.target, node.iter)

    def _define_looped(self, target: ast.expr, over: ast.expr) -> None:
        """Note what the variables of a loop run over: of ``for a, b in zip(x, y)`` each over its own."""
        zipped = isinstance(target, ast.Tuple) and operation(over)[0] == "zip"
        pairs = zip(target.elts, over.args, strict=False) if zipped else [(target, over)]
        self.looped |= {name.id: own for name, own in pairs if isinstance(name, ast.Name)}

    def _define(self, target: ast.expr, value: ast.expr) -> None:
        """Note what variables are defined as: of ``a, b = x, y`` each by its own, of ``a, b = x`` both as parts of x."""
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            pairs = list(zip(target.elts, value.elts, strict=True))
        else:
            pairs = [(target, value)]
            if isinstance(target, ast.Tuple):
                self.unpacked |= {part.id for part in target.elts if isinstance(part, ast.Name)}
        for part, start in pairs:
            for name in getattr(part, "elts", [part]):
                if isinstance(name, ast.Name) and name.id not in self.parameters:
                    self.defined.setdefault(name.id, start)

    @functools.lru_cache(maxsize=8192)  # noqa: B019  # lives as long as the family of near misses it belongs to
    def definition_now(self, node: ast.Name) -> ast.expr | None:
        """Return a variable's definition, or None if that would give something else now: it is assigned again, or taken
        apart from several, or something in it has changed in between.
        """
        start = self.defined[node.id]
        own = {name.id for name in ast.walk(start) if isinstance(name, ast.Name)}
        changed = any(name in own and start.lineno < line < getattr(node, "lineno", 0) for name, line in self.stores)
        return None if changed or node.id in self.changing | self.unpacked else start

    @functools.lru_cache(maxsize=8192)  # noqa: B019  # the same
    def noun(self, node: ast.AST, depth: int = 3) -> str:
        """Return what a node is, in a few words."""
        shallow = 0 if isinstance(node, ast.Name | ast.Constant) else 1
        nouns = (self._noun(node, deep) for deep in range(depth, shallow - 1, -1))
        return next((noun for noun in nouns if noun and len(noun) <= LONG), "") or self.about(node)

    def _noun(self, node: ast.AST, depth: int) -> str:
        """Return what a node is, its parts down to a depth; nothing where that has no words."""
        if isinstance(node, ast.Name):
            return self._variable(node.id, depth)
        if (size := self.size(node)) is not None:
            return size
        name, inside = operation(node)
        if isinstance(node, ast.Attribute) and root(node) in ("math", "torch"):
            return "infinity" if node.attr == "inf" else node.attr if root(node) == "math" else ""
        if name is not None:
            return self._operation(name, inside, depth)
        kinds: dict[type, Callable[[Any, int], str]] = {
            ast.Constant: lambda node, depth: "infinity" if node.value == float("inf") else str(node.value),
            ast.UnaryOp: self._negated,
            ast.Subscript: self._part,
            ast.BinOp: self._combined,
            ast.Compare: self._compared,
        }
        return kinds[type(node)](node, depth) if type(node) in kinds else ""

    def _operation(self, name: str, inside: ast.AST | None, depth: int) -> str:
        if name == "eye":
            return "the identity"
        word = OPERATIONS.get(name)
        if inside is None or word is None:
            return ""
        return f"the {word} of {self.noun(inside, depth - 1)}" if word else self._noun(inside, depth)

    def _negated(self, node: ast.UnaryOp, depth: int) -> str:
        if isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
            return f"-{node.operand.value}"
        inner = self.noun(node.operand, depth)
        if inner == self.about(node.operand) or isinstance(node.op, ast.UAdd):
            return inner  # whatever its sign
        return f"minus {inner}" if isinstance(node.op, ast.USub) else f"the opposite of {inner}"

    def _compared(self, node: ast.Compare, depth: int) -> str:
        relation = RELATIONS.get(COMPARISONS.get(type(node.ops[0]), ""))
        left, right = self.noun(node.left, depth - 1), self.noun(node.comparators[0], depth - 1)
        return f"whether {left} {relation} {right}" if relation else ""

    def _variable(self, name: str, depth: int) -> str:
        before, name = name.startswith(BEFORE), name.removeprefix(BEFORE)
        start = self.defined.get(name)
        if name in self.parameters or name in self.known:
            return f"the old {name}" if before else name
        if name in self.changing:
            begin = self.noun(start, 1) if start is not None else ""
            clear = begin and not re.search("from|carried", begin)
            current = f"the value that begins as {begin}" if clear else "the value carried on"
            return f"{current} from before the update" if before else current
        if start is None:
            return self._each_of(name) if depth > 0 else self.about(ast.Name(name))
        if name in self.unpacked:
            return self.size(ast.Name(name)) or self.about(ast.Name(name))
        return self.noun(start, depth - 1)

    def _each_of(self, name: str) -> str:
        """Return what a loop's variable is: the number of the round, one of several, a row."""
        over = self.looped.get(name)
        if isinstance(over, ast.Tuple | ast.List):
            return f"each of {' and '.join(self.noun(part, 2) for part in over.elts)}"
        if over is None or operation(over)[0] in ("range", "enumerate", "zip"):
            return "the loop's number"
        kind = {1: "entry", 2: "row"}.get(self.ndims.get(getattr(over, "id", ""), 0), "part")
        return f"each {kind} of {self.noun(over, 1)}"

    def _part(self, node: ast.Subscript, depth: int) -> str:
        inner, index = self.noun(node.value, depth), node.slice
        if isinstance(index, ast.Name):
            at = self._variable(index.id, 1)
            return f"{inner} at {at}" if at in self.parameters else f"the picked part of {inner}"
        if isinstance(index, ast.Compare):
            return f"the chosen part of {inner}"
        if ast.unparse(index) in ENDS:
            return f"{ENDS[ast.unparse(index)]} of {inner}"
        return inner if all(ast.unparse(part) in (":", "None") for part in indices(node)) else f"the part of {inner}"

    def _combined(self, node: ast.BinOp, depth: int) -> str:
        chain = factors(node)
        if len(chain) > 2 and isinstance(node.op, ast.MatMult | ast.Mult):
            nouns = [self.noun(factor, depth - 1) for factor in chain]
            return f"the product of {', '.join(nouns[:-1])} and {nouns[-1]}"
        left, right = self.noun(node.left, depth - 1), self.noun(node.right, depth - 1)
        if isinstance(node.op, ast.Pow) and isinstance(node.right, ast.Constant):
            known = {0.5: f"the square root of {left}", 2: f"{left} squared", 3: f"{left} cubed"}
            return known.get(node.right.value, f"the power of {left}")
        text = JOINED.get(type(node.op))
        return text.format(left, right) if text else ""

    def about(self, node: ast.AST) -> str:
        """Return which arguments a node comes from."""
        names = self.sources(node)
        listed = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}" if names else ""
        return f"what is computed from {listed}" if 0 < len(names) <= MOST_SOURCES else VAGUE

    def sources(self, node: ast.AST, seen: frozenset[str] = frozenset()) -> list[str]:
        """Return the arguments that a node is made of, by way of the answer's own variables."""
        names: list[str] = []
        for variable in ast.walk(node):
            if isinstance(variable, ast.Name) and variable.id not in seen:
                name = variable.id.removeprefix(BEFORE)
                arguments = [name] if name in self.parameters else []
                if not arguments and (start := self.defined.get(name) or self.looped.get(name)):
                    arguments = self.sources(start, seen | {variable.id, name})
                names += [argument for argument in arguments if argument not in names]
        return names

    def size(self, node: ast.AST) -> str | None:
        """Return what len(x), x.shape[i] or a size that was taken apart is, or None if a node is none of these."""
        of_tensor = size_of(node)
        if of_tensor is None and isinstance(node, ast.Name) and node.id in self.unpacked:
            start = self.defined[node.id]
            if isinstance(start, ast.Attribute) and start.attr == "shape":
                return f"a size of {self.noun(start.value, 1)}"
        if of_tensor is None:
            return None
        tensor, dim = of_tensor
        ndim = self.ndims.get(tensor.id) if isinstance(tensor, ast.Name) else None
        return size_words(self.noun(tensor, 1), dim, ndim)


def size_words(name: str, dim: int, ndim: int | None) -> str:
    """Return which size of a tensor an axis has."""
    at = dim + ndim if ndim and dim < 0 else dim
    kind = {1: ["entries"], 2: ["rows", "columns"], None: ["rows", "columns"]}.get(ndim)
    if kind is not None and at < len(kind):
        return f"the number of {kind[at]} of {name}"
    return f"the size of {name} along its {ORDINALS[at]} axis"
