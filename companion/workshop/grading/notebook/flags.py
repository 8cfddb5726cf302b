"""What a person should look at: names in the code that an answer reaches which no answer needs, changed checks, and
false claims in the metadata. A flag takes no points.
"""

import ast
import re
from collections.abc import Iterator, Set

from companion.workshop.grading.notebook.questions import Handout
from companion.workshop.grading.notebook.syntax import aliases, defined, parse, plain, used


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


MODULES = _words(
    """__future__ abc bisect cmath collections companion contextlib copy dataclasses decimal einops enum fractions
    functools heapq IPython itertools jaxtyping logging math matplotlib networkx numbers numpy operator pandas pprint
    random re scipy seaborn sklearn statistics string textwrap time torch tqdm typing typing_extensions warnings"""
)
HARMLESS_PARTS = {"sys": _words("float_info getsizeof maxsize stderr stdout version version_info")}
NAMES = _words(
    """__builtins__ __import__ __loader__ __spec__ breakpoint compile delattr eval exec exit globals input locals open
    quit setattr SystemExit KeyboardInterrupt BaseException GeneratorExit vars"""
)
ATTRIBUTES = _words(
    """_C answer as_subclass attrgetter builtins cpp_extension cr_frame ctypes ctypeslib data_ptr draw dump f2py f_back
    f_globals f_locals ForwardRef Formatter from_file frombuffer fromfile fromregex genfromtxt get_field get_type_hints
    gi_frame hub importlib imread imsave io is_meta load load_inline load_library loads loadtxt memmap methodcaller
    mistakes modules multiprocessing open_memmap os run_cell runstring save savefig savetxt savez savez_compressed
    serialization setprofile settrace sleep subprocess sys tb_frame to_csv to_pickle tofile user_ns"""
)
KEYWORDS = _words("allow_pickle initializer num_workers pickle_module weights_only worker_init_fn")
CLOCKS = _words("monotonic monotonic_ns perf_counter perf_counter_ns process_time thread_time time time_ns")
SPECIAL = _words(
    """__abs__ __add__ __call__ __contains__ __doc__ __enter__ __exit__ __future__ __getitem__ __iadd__ __init__
    __iter__ __len__ __main__ __matmul__ __mul__ __name__ __neg__ __next__ __post_init__ __pow__ __radd__ __repr__
    __rmatmul__ __rmul__ __rsub__ __setitem__ __str__ __sub__ __truediv__ __version__"""
)
MAKERS = _words("arange bytearray bytes empty eye full ones rand randint randn zeros")
LARGE, LONG = 1 << 26, 100_000  # entries, letters
MOST = 400  # letters of a flag, and 20,000 of a text that is looked at
Reached = tuple[str, dict[str, str], list[str]]
WORDS = {"meta"}
MARKUP = re.compile(r"<[\s/]*(a|body|form|iframe|img|link|object|script|style|svg)\b", re.IGNORECASE)
DUNDER = re.compile(r"__[a-z]\w*?__")
PATH = re.compile(r"\w+(\.\w+)+")  # what an attribute's getter takes


def odd(code: list[str], reached: list[Reached], modules: set[str], handout: Handout) -> list[str]:
    """Return what is odd in the answers and in the code that they reach, in at most two sentences.

    ``code``: that code, by cells.
    ``reached``: the same for each answer: its function, which name stands there for which part of the course, and the
        code that is not the lesson's own.
    ``modules``: what the lesson imports.
    ``handout``: the lesson, whose own exercises an answer may decorate, and whose solutions say what they are made of.
    """
    mentioned = set()
    functions = {question.exercise[1]: question.function for question in handout.automatic}
    course = {part for answer in reached for part in _of_course(*answer, functions)}
    course -= set(_of_course("", aliases(handout.code), list(map(plain, handout.solutions.values())), functions))
    trees = list(filter(None, map(parse, dict.fromkeys(code))))
    imports = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    modules = {*modules, *(alias.asname or alias.name.split(".")[0] for node in imports for alias in node.names)}
    strange = dict(found for node in imports for found in _strange(node))
    mentioned |= _builtins([source for source in code if parse(source)], trees, modules)
    for tree in trees:
        fine = _fine(tree, strange)
        for node in ast.walk(tree):
            mentioned |= set(_mentions(node, modules))
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and id(node) not in fine:
                mentioned |= {strange[node.id]} if node.id in strange else set()
                mentioned |= {"getattr"} if node.id == "getattr" else set()
    flags = [f"mentions {', '.join(sorted(mentioned))}"] if mentioned else []
    flags += [f"calls the course's own code: {', '.join(sorted(course))}"] if course else []
    return [flag if len(flag) <= MOST else f"{flag[:MOST]} …" for flag in flags]


def _of_course(function: str, names: dict[str, str], code: list[str], functions: dict[str, str]) -> Iterator[str]:
    """The parts of the course with which an answer computes, or which it is itself."""
    yield from [names[function]] if function in names else []
    for source in code:
        tree, free = parse(source), used(source)
        allowed = _decorators(tree, names, functions) if tree else set()
        for node in ast.walk(tree) if tree else ():
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in free & names.keys():
                yield from [] if id(node) in allowed else [names[node.id]]


def _strange(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str]]:
    """What an import brings that is no part of the tools that answers are made of: (the name it gets, what it is). An
    import that nobody uses is no harm.
    """
    for alias in node.names:
        whole = f"{node.module or '.'}.{alias.name}" if isinstance(node, ast.ImportFrom) else alias.name
        parts = whole.split(".")
        if parts[0] in MODULES and not ATTRIBUTES.intersection(parts) and not any(map(_private, parts)):
            continue
        bound = alias.asname or (alias.name if isinstance(node, ast.ImportFrom) else parts[0])
        yield bound, (node.module or ".") if isinstance(node, ast.ImportFrom) and parts[0] not in MODULES else whole


def _fine(tree: ast.Module, strange: dict[str, str]) -> set[int]:
    """The names that stand where they do no harm: ``sys`` in ``sys.maxsize``, ``getattr`` where it is called."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            harmless = HARMLESS_PARTS.get(strange.get(node.value.id, ""), ())
            found |= {id(node.value)} if node.attr in harmless else set()
        elif isinstance(node, ast.Call):
            found |= {id(node.func)} if getattr(node.func, "id", "") == "getattr" else set()
    return found


def _builtins(code: list[str], trees: list[ast.Module], modules: set[str]) -> Set[str]:
    """The odd names that mean Python's own, or what a star import brought: an ``open`` that is a variable opens no
    file, unless it is called.
    """
    free = set().union(*map(used, code))
    own = set().union(*map(defined, code)) | modules
    called = {node.func.id for tree in trees for node in ast.walk(tree) if _calls_name(node)}
    return ((NAMES | ATTRIBUTES) & free - own) | (NAMES & free & own & called)


def _calls_name(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name)


def _mentions(node: ast.AST, modules: set[str]) -> Iterator[str]:
    """The odd names in one node of a tree."""
    if isinstance(node, ast.ImportFrom):
        yield from [node.module or "."] if node.names[0].name == "*" and next(_strange(node), None) else []
    elif isinstance(node, ast.Name):
        yield from [node.id] if _special(node.id) else []
    elif isinstance(node, ast.Attribute):
        of_module = isinstance(node.value, ast.Name) and node.value.id in modules
        odd = node.attr in ATTRIBUTES or node.attr.startswith("read_") or (of_module and _private(node.attr))
        asks_its_class = node.attr == "__class__" and isinstance(node.ctx, ast.Load)
        yield from [node.attr] if odd or (_special(node.attr) and not asks_its_class) else []
        if isinstance(node.ctx, ast.Store) and of_module:
            yield f"{node.value.id}.{node.attr} ="
    elif isinstance(node, ast.FunctionDef | ast.ClassDef):
        yield from [node.name] if _special(node.name) else []
    elif isinstance(node, ast.MatchClass):
        yield from (name for name in node.kwd_attrs if name in ATTRIBUTES or _special(name))
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield from [repr(node.value[:40])] if _odd_text(node.value[:20_000]) else []
    elif isinstance(node, ast.While):
        clocks = {getattr(part, "attr", getattr(part, "id", "")) for part in ast.walk(node.test)} & CLOCKS
        yield from ["a loop by the clock"] if clocks else []
    elif isinstance(node, ast.keyword):
        none = isinstance(node.value, ast.Constant) and node.value.value in (0, None)
        yield from [node.arg] if node.arg in KEYWORDS and not (node.arg == "num_workers" and none) else []
    elif isinstance(node, ast.Call):
        yield from _odd_call(node)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        text = [
            side for side in (node.left, node.right) if isinstance(side, ast.Constant) and isinstance(side.value, str)
        ]
        yield from ["a very long text"] if text and _number(node.left, node.right) >= LONG else []


def _odd_text(text: str) -> bool:
    """A device, markup, a part of the course, the inside of Python, or a way to attributes that no answer needs."""
    inside = any(_special(word) for word in DUNDER.findall(text))
    way = PATH.fullmatch(text) and ATTRIBUTES.intersection(text.split("."))
    return text in WORDS or text.startswith("companion.") or inside or bool(way or MARKUP.search(text))


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


def _private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


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
