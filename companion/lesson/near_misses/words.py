"""What stands in an answer, in words: as a teacher would point at it, by the names of the task alone."""

import ast
import functools
import re
from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path

from companion.lesson.near_misses.syntax import factors, operation, root, size_of
from companion.lesson.near_misses.trees import BEFORE
from companion.lesson.seen import ORDINALS

_named = [
    line.partition("=") for line in Path(__file__).with_name("words.txt").read_text(encoding="utf-8").splitlines()[1:]
]
OPERATIONS = {name.strip(): word.strip() for name, _, word in _named}
COMPARISONS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
RELATIONS = dict(
    zip(
        COMPARISONS.values(),
        ["is below", "is at most", "is above", "is at least", "equals", "differs from"],
        strict=True,
    )
)
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
                target, value = node.targets[0], node.value
                both = isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)
                for name, start in zip(target.elts, value.elts, strict=True) if both else [(target, value)]:
                    names = [each.id for each in getattr(name, "elts", [name]) if isinstance(each, ast.Name)]
                    self.unpacked |= set(names if name is target and isinstance(name, ast.Tuple) else ())
                    for each in names:
                        if each not in self.parameters:
                            self.defined.setdefault(each, start)
            elif isinstance(node, ast.For | ast.comprehension):
                several = isinstance(node.target, ast.Tuple) and operation(node.iter)[0] == "zip"
                pairs = zip(node.target.elts, node.iter.args, strict=False) if several else [(node.target, node.iter)]
                self.looped |= {name.id: over for name, over in pairs if isinstance(name, ast.Name)}

    @functools.lru_cache(maxsize=8192)  # noqa: B019  # lives as long as the family of near misses it belongs to
    def still_so(self, node: ast.Name) -> bool:
        """Return whether a variable is what its definition would give now: nothing in it has changed in between."""
        start = self.defined[node.id]
        own = {each.id for each in ast.walk(start) if isinstance(each, ast.Name)}
        return not any(name in own and start.lineno < line < getattr(node, "lineno", 0) for name, line in self.stores)

    @functools.lru_cache(maxsize=8192)  # noqa: B019  # the same
    def noun(self, node: ast.AST, depth: int = 3) -> str:
        """Say what a node is, in a few words."""
        shallow = 0 if isinstance(node, ast.Name | ast.Constant) else 1
        for deep in range(depth, shallow - 1, -1):
            if (said := self._noun(node, deep)) and len(said) <= LONG:
                return said
        return self.about(node)

    def _noun(self, node: ast.AST, depth: int) -> str:
        if isinstance(node, ast.Name):
            return self._variable(node.id, depth)
        if isinstance(node, ast.Constant):
            return "infinity" if node.value == float("inf") else str(node.value)
        if (size := self.size(node)) is not None:
            return size
        if isinstance(node, ast.Attribute) and root(node) in ("math", "torch") and node.attr == "inf":
            return "infinity"
        if isinstance(node, ast.Attribute) and root(node) == "math":
            return node.attr
        if isinstance(node, ast.UnaryOp):
            if isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
                return f"-{node.operand.value}"
            inner = self.noun(node.operand, depth)
            if inner == self.about(node.operand):
                return inner  # whatever its sign
            marks = {ast.USub: "minus {}", ast.Invert: "the opposite of {}", ast.Not: "the opposite of {}"}
            return marks.get(type(node.op), "{}").format(inner)
        name, inside = operation(node)
        if name == "eye":
            return "the identity"
        if name is not None:
            word = OPERATIONS.get(name)
            if word == "" and inside is not None:
                return self._noun(inside, depth)
            return f"the {word} of {self.noun(inside, depth - 1)}" if word and inside is not None else ""
        if isinstance(node, ast.Subscript):
            return self._part(node, depth)
        if isinstance(node, ast.BinOp):
            return self._combined(node, depth)
        if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARISONS:
            relation = RELATIONS[COMPARISONS[type(node.ops[0])]]
            return f"whether {self.noun(node.left, depth - 1)} {relation} {self.noun(node.comparators[0], depth - 1)}"
        return ""

    def _variable(self, name: str, depth: int) -> str:
        old, name = name.startswith(BEFORE), name.removeprefix(BEFORE)
        start = self.defined.get(name)
        if name in self.parameters:
            return f"the old {name}" if old else name
        if name in self.known:
            return f"the old {name}" if old else name
        if name in self.changing:
            begins = self.noun(start, 1) if start is not None else ""
            said = (
                f"the value that begins as {begins}"
                if begins and not re.search("from|carried", begins)
                else "the value carried on"
            )
            return f"{said} from before the update" if old else said
        if start is None:
            return self._each_of(name) if depth > 0 else self.about(ast.Name(name))
        if name in self.unpacked:
            return self.size(ast.Name(name)) or self.about(ast.Name(name))
        return self.noun(start, depth - 1)

    def _each_of(self, name: str) -> str:
        """Say what a loop's variable is: the number of the round, one of several, a row."""
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
        parts = list(index.elts) if isinstance(index, ast.Tuple) else [index]
        whole = all(
            (isinstance(each, ast.Slice) and not (each.lower or each.upper or each.step))
            or (isinstance(each, ast.Constant) and each.value is None)
            for each in parts
        )
        return inner if whole else f"the part of {inner}"

    def _combined(self, node: ast.BinOp, depth: int) -> str:
        chain = factors(node)
        if len(chain) > 2 and isinstance(node.op, ast.MatMult | ast.Mult):
            nouns = [self.noun(each, depth - 1) for each in chain]
            return f"the product of {', '.join(nouns[:-1])} and {nouns[-1]}"
        left, right = self.noun(node.left, depth - 1), self.noun(node.right, depth - 1)
        if isinstance(node.op, ast.Pow) and isinstance(node.right, ast.Constant):
            known = {0.5: f"the square root of {left}", 2: f"{left} squared", 3: f"{left} cubed"}
            return known.get(node.right.value, f"the power of {left}")
        text = JOINED.get(type(node.op))
        return text.format(left, right) if text else ""

    def about(self, node: ast.AST) -> str:
        """Say which arguments a node comes from."""
        names = self.sources(node)
        listed = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}" if names else ""
        return f"what is computed from {listed}" if 0 < len(names) <= MOST_SOURCES else VAGUE

    def sources(self, node: ast.AST, seen: frozenset[str] = frozenset()) -> list[str]:
        """Return the arguments that a node is made of, by way of the answer's own variables."""
        names: list[str] = []
        for each in ast.walk(node):
            if isinstance(each, ast.Name) and each.id not in seen:
                name = each.id.removeprefix(BEFORE)
                known = [name] if name in self.parameters else []
                if not known and (start := self.defined.get(name) or self.looped.get(name)):
                    known = self.sources(start, seen | {each.id, name})
                names += [one for one in known if one not in names]
        return names

    def size(self, node: ast.AST) -> str | None:
        """Say what len(x), x.shape[i] or a size that was taken apart is, or None if a node is none of these."""
        found = size_of(node)
        if found is None and isinstance(node, ast.Name) and node.id in self.unpacked:
            start = self.defined[node.id]
            if isinstance(start, ast.Attribute) and start.attr == "shape":
                return f"a size of {self.noun(start.value, 1)}"
        if found is None:
            return None
        of, dim = found
        ndim = self.ndims.get(of.id) if isinstance(of, ast.Name) else None
        return size_words(self.noun(of, 1), dim, ndim)


def size_words(name: str, dim: int, ndim: int | None) -> str:
    """Say which size of a tensor an axis has."""
    at = dim + ndim if ndim and dim < 0 else dim
    kind = {1: ["entries"], 2: ["rows", "columns"], None: ["rows", "columns"]}.get(ndim)
    if kind is not None and at < len(kind):
        return f"the number of {kind[at]} of {name}"
    return f"the size of {name} along its {ORDINALS[at]} axis"
