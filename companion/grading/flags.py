"""What a person should look at: names in the code that an answer reaches which no answer needs, changed checks, and
false claims in the metadata. A flag takes no points.
"""

import ast
import re
from collections.abc import Iterator

from companion.grading.questions import Question
from companion.grading.syntax import aliases, parse


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


MODULES = _words(
    """__future__ abc collections companion contextlib copy dataclasses decimal einops enum fractions functools IPython
    itertools jaxtyping math matplotlib numbers numpy operator pandas pprint random re scipy seaborn sklearn statistics
    string time torch tqdm typing typing_extensions warnings"""
)
NAMES = _words(
    """__builtins__ __import__ __loader__ __spec__ breakpoint compile delattr eval exec exit globals input locals open
    quit setattr SystemExit KeyboardInterrupt BaseException GeneratorExit vars"""
)
ATTRIBUTES = _words(
    """_C as_subclass answer builtins cr_frame ctypes draw f_back f_globals f_locals frombuffer from_file fromfile
    gi_frame importlib is_meta load_inline load_library mistakes modules os setprofile settrace sleep subprocess sys
    tb_frame tofile"""
)
SPECIAL = _words(
    """__add__ __call__ __doc__ __enter__ __exit__ __future__ __getitem__ __init__ __iter__ __len__ __main__ __matmul__
    __mul__ __name__ __next__ __post_init__ __repr__ __setitem__ __str__ __sub__ __version__"""
)
MAKERS = _words("arange bytearray bytes empty eye full ones rand randint randn zeros")
LARGE, LONG = 1 << 26, 100_000  # entries, letters
WORDS = {"meta"}
MARKUP = re.compile(r"<\s*/?\s*(a|body|form|iframe|img|link|object|script|style|svg)\b", re.IGNORECASE)


def odd(code: list[str], names: dict[str, str], modules: set[str], questions: list[Question]) -> list[str]:
    """What is odd in the code that the answers reach, in at most two sentences.

    ``code``: that code, by cells.
    ``names``: which name stands for which part of the course.
    ``modules``: what the lesson imports.
    ``questions``: the lesson's, whose own exercises an answer may decorate.
    """
    mentioned, course = set(), set()
    functions = {question.exercise[1]: question.function for question in questions if question.exercise}
    names = names | aliases(code)
    modules = set(modules)
    trees = list(filter(None, map(parse, dict.fromkeys(code))))
    for tree in trees:
        modules |= {
            alias.asname or alias.name.split(".")[0]
            for node in ast.walk(tree)
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names
        }
    own = set().union(*map(_bound, trees)) if trees else set()
    for tree in trees:
        allowed = _decorators(tree, names, functions)
        for node in ast.walk(tree):
            mentioned |= set(_mentions(node, own, modules))
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in names:
                course |= {names[node.id]} - ({names[node.id]} if id(node) in allowed else set())
    flags = [f"mentions {', '.join(sorted(mentioned))}"] if mentioned else []
    return flags + ([f"calls the course's own code: {', '.join(sorted(course))}"] if course else [])


def _bound(tree: ast.Module) -> set[str]:
    """The names that the code gives a meaning of its own: an ``open`` that is a variable opens no file."""
    stored = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    arguments = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    return stored | arguments | {node.name for node in ast.walk(tree) if isinstance(node, kinds)}


def _mentions(node: ast.AST, own: set[str], modules: set[str]) -> Iterator[str]:
    """The odd names in one node of a tree."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        yield from _imports(node)
    elif isinstance(node, ast.Name):
        yield from [node.id] if (node.id in NAMES and node.id not in own) or _special(node.id) else []
    elif isinstance(node, ast.Attribute):
        yield from [node.attr] if node.attr in ATTRIBUTES or _special(node.attr) else []
        if isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name) and node.value.id in modules:
            yield f"{node.value.id}.{node.attr} ="
    elif isinstance(node, ast.FunctionDef | ast.ClassDef):
        yield from [node.name] if _special(node.name) else []
    elif isinstance(node, ast.Constant):
        odd = isinstance(node.value, str) and (node.value in WORDS or MARKUP.search(node.value))
        yield from [repr(node.value[:40])] if odd else []
    elif isinstance(node, ast.Call):
        yield from _odd_call(node)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        text = [
            side for side in (node.left, node.right) if isinstance(side, ast.Constant) and isinstance(side.value, str)
        ]
        yield from ["a very long text"] if text and _number(node.left, node.right) >= LONG else []


def _imports(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    """What is imported and no part of the tools that answers are made of."""
    if isinstance(node, ast.ImportFrom):
        yield from [node.module or "."] if (node.module or "").split(".")[0] not in MODULES else []
        yield from (alias.name for alias in node.names if alias.name in ATTRIBUTES)
    else:
        yield from (alias.name for alias in node.names if alias.name.split(".")[0] not in MODULES)


def _odd_call(node: ast.Call) -> Iterator[str]:
    """``getattr`` with a name that is put together, and ``type`` that makes a class."""
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    if name == "getattr" and not (len(node.args) > 1 and isinstance(node.args[1], ast.Constant)):
        yield "getattr"
    if name == "getattr" and len(node.args) > 1 and isinstance(node.args[1], ast.Constant):
        word = str(node.args[1].value)
        if word in ATTRIBUTES or _special(word):
            yield word
    if getattr(node.func, "attr", name) in MAKERS and _number(*node.args) >= LARGE:
        yield "a very large tensor"
    if name == "type" and len(node.args) == 3:
        yield "type"


def _number(*nodes: ast.AST) -> int:
    """The largest whole number among constants such as ``7``, ``1 << 28`` and ``10**9``."""
    largest = 0
    for node in nodes:
        if isinstance(node, ast.Constant) and type(node.value) is int:
            largest = max(largest, node.value)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.LShift | ast.Pow):
            base, times = _number(node.left), min(_number(node.right), 64)
            largest = max(largest, base << times if isinstance(node.op, ast.LShift) else min(base, 1 << 64) ** times)
    return largest


def _special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__") and name not in SPECIAL


def _decorators(tree: ast.Module, names: dict[str, str], functions: dict[str, str]) -> set[int]:
    """The names that stand where a lesson has them: ``@exercises.NAME`` above the function of that exercise, and
    ``exercises.NAME.check(...)``.
    """
    found = set()
    for node in ast.walk(tree):
        marks = [(mark, node.name) for mark in getattr(node, "decorator_list", [])]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            inner = node.func.value if node.func.attr in ("check", "grade") else node.func
            marks.append((inner, functions.get(getattr(inner, "attr", ""), "")))
        for mark, function in marks:
            of_course = isinstance(mark, ast.Attribute) and isinstance(mark.value, ast.Name) and mark.value.id in names
            if of_course and function and functions.get(mark.attr) == function:
                found.add(id(mark.value))
    return found
