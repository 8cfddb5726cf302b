"""What a person should look at: names in the code that an answer reaches which no answer needs, changed checks, and
false claims in the metadata. A flag takes no points.
"""

import ast
import functools
import re
from collections.abc import Iterator, Set

from companion.workshop.grading.notebook.handout import Handout
from companion.workshop.grading.notebook.syntax import aliases, defined, inner_imports, modules_of, parse, plain, used


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
    quit SystemExit KeyboardInterrupt BaseException GeneratorExit vars"""
)
ATTRIBUTES = _words(
    """_C answer as_subclass attrgetter BaseConfigurator builtins cpp_extension cr_frame ctypes ctypeslib data_ptr
    dictConfig draw dump f2py f_back f_globals f_locals ForwardRef Formatter from_file frombuffer fromfile
    fromregex genfromtxt get_field get_type_hints gi_frame hub import_item importlib importstring imread imsave
    io is_meta load load_inline load_library loads loadtxt memmap methodcaller mistakes modules multiprocessing
    open_memmap os run_cell runstring save savefig savetxt savez savez_compressed serialization setprofile
    settrace sleep subprocess sys tb_frame to_csv to_pickle tofile user_ns"""
)
KEYWORDS = _words("allow_pickle initializer num_workers pickle_module weights_only worker_init_fn")
CLOCKS = _words("monotonic monotonic_ns perf_counter perf_counter_ns process_time thread_time time time_ns")
SPECIAL = _words(
    """__abs__ __add__ __call__ __contains__ __doc__ __enter__ __exit__ __future__ __getitem__ __iadd__ __init__
    __init_subclass__ __iter__ __len__ __main__ __matmul__ __mul__ __name__ __neg__ __next__ __post_init__ __pow__
    __radd__ __repr__ __rmatmul__ __rmul__ __rsub__ __setitem__ __str__ __sub__ __truediv__ __version__"""
)
MAKERS = _words("arange bytearray bytes empty eye full ones rand randint randn zeros")
LARGE, LONG = 1 << 26, 100_000  # entries, letters
MOST = 400  # letters of a flag, and 20,000 of a text that is looked at
Reached = tuple[str, dict[str, str], list[str]]
MARKUP = re.compile(r"<[\s/]*(a|body|form|iframe|img|link|object|script|style|svg)\b", re.IGNORECASE)
DUNDER = re.compile(r"__[a-z]\w*?__")
PATH = re.compile(r"\w+(\.\w+)+")  # what an attribute's getter takes


def odd(reached: list[Reached], modules: Set[str], own: Set[str]) -> list[str]:
    """Return what is odd in the answers and in the code that they reach, in at most one sentence.

    ``reached`` has for each answer its function, which name stands there for which part of the course, and the code
    that is not the lesson's own; ``modules`` is what the lesson imports, and ``own`` names the modules that were handed
    in, whose code stands in ``reached``.
    """
    code = list(dict.fromkeys(source for *_, sources in reached for source in sources))
    trees = list(filter(None, map(parse, code)))
    imports = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    imports = [node for node in imports if own.isdisjoint(modules_of(node))]
    modules = {*modules, *(alias.asname or alias.name.split(".")[0] for node in imports for alias in node.names)}
    strange = dict(found for node in imports for found in _strange(node))
    mentioned = {*_builtins([source for source in code if parse(source)], trees, modules)}
    for tree in trees:
        fine = _fine(tree, strange)
        for node in ast.walk(tree):
            mentioned |= set(_mentions(node, modules)) - own
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and id(node) not in fine:
                mentioned |= {strange[node.id]} if node.id in strange else set()
                mentioned |= {node.id} & {"getattr", "setattr"}
    return _flag("mentions", mentioned)


def borrowed(reached: list[Reached], handout: Handout) -> list[str]:
    """Return which parts of the course the answers call that they cannot need, in at most one sentence; ``reached`` as
    `odd` takes it. The ``handout`` has the exercises that an answer may decorate, and the solutions, which say what
    answers are made of.
    """
    course = {part for answer in reached for part in _of_course(*answer, handout)}
    return _flag("calls the course's own code:", course - _of_solutions(handout))


def _flag(what: str, names: Set[str]) -> list[str]:
    flag = f"{what} {', '.join(sorted(names))}"
    return [flag if len(flag) <= MOST else f"{flag[:MOST]} …"] if names else []


@functools.lru_cache(1)
def _of_solutions(handout: Handout) -> frozenset[str]:
    """The parts of the course of which the lesson's own solutions are made."""
    return frozenset(_of_course("", aliases([*handout.code]), [*map(plain, handout.solutions.values())], handout))


def _of_course(function: str, names: dict[str, str], code: list[str], handout: Handout) -> Iterator[str]:
    """The parts of the course with which an answer computes, or which it is itself."""
    functions = {question.exercise[1]: question.function for question in handout.automatic}
    yield from [names[function]] if function in names else []
    for source in code:
        yield from inner_imports(source)
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
        match node:
            case ast.Attribute(ast.Name(name) as whole, part) if part in HARMLESS_PARTS.get(strange.get(name, ""), ()):
                found.add(id(whole))
            case ast.Call(ast.Name("getattr" | "setattr") as called):
                found.add(id(called))
    return found


def _builtins(code: list[str], trees: list[ast.Module], modules: set[str]) -> Set[str]:
    """The odd names that mean Python's own, or what a star import brought: an ``open`` that is a variable opens no
    file, unless it is called.
    """
    free = set().union(*map(used, code))
    own = set().union(*map(defined, code)) | modules
    calls = [node.func for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call)]
    called = {function.id for function in calls if isinstance(function, ast.Name)}
    return ((NAMES | ATTRIBUTES) & free - own) | (NAMES & free & own & called)


def _mentions(node: ast.AST, modules: set[str]) -> Iterator[str]:
    """The odd names in one node of a tree."""
    match node:
        case ast.ImportFrom(module, [ast.alias("*")]) if next(_strange(node), None):
            yield module or "."
        case ast.Name(name) | ast.FunctionDef(name) | ast.ClassDef(name) if _special(name):
            yield name
        case ast.Attribute(whole, name, context):
            of_module = isinstance(whole, ast.Name) and whole.id in modules
            asks_its_class = name == "__class__" and isinstance(context, ast.Load)
            odd = _odd_name(name) or name.startswith("read_") or (of_module and _private(name))
            yield from [name] if odd and not asks_its_class else []
            yield from [f"{whole.id}.{name} ="] if of_module and isinstance(context, ast.Store) else []
        case ast.MatchClass(kwd_attrs=names):
            yield from filter(_odd_name, names)
        case ast.Constant(str(text)) if _odd_text(text[:20_000]):
            yield repr(text[:40])
        case ast.While(test):
            asked = {getattr(part, "attr", getattr(part, "id", "")) for part in ast.walk(test)}
            yield from ["a loop by the clock"] if asked & CLOCKS else []
        case ast.keyword(name, what) if name in KEYWORDS and (name != "num_workers" or getattr(what, "value", 1)):
            yield name
        case ast.Call(ast.Name("getattr" | "setattr"), [_, ast.Constant(name), *_]):
            yield from filter(_odd_name, [str(name)])
        case ast.Call(ast.Name("getattr" | "setattr" as asks)):  # with a name that is put together
            yield asks
        case ast.Call(ast.Name("type"), [_, _, _]):  # makes a class
            yield "type"
        case ast.Call(ast.Name(name) | ast.Attribute(attr=name), sizes) if name in MAKERS and _number(*sizes) >= LARGE:
            yield "a very large tensor"
        case ast.BinOp(ast.Constant(str()), ast.Mult(), many) | ast.BinOp(many, ast.Mult(), ast.Constant(str())):
            yield from ["a very long text"] if _number(many) >= LONG else []


def _odd_text(text: str) -> bool:
    """A device, markup, a part of the course, the inside of Python, or a way to attributes that no answer needs."""
    inside = any(_special(word) for word in DUNDER.findall(text))
    way = PATH.fullmatch(text) and ATTRIBUTES.intersection(text.split("."))
    return text == "meta" or text.startswith("companion.") or inside or bool(way or MARKUP.search(text))


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


def _odd_name(name: str) -> bool:
    return name in ATTRIBUTES or _special(name)


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
        match node:
            case ast.Call(ast.Attribute(mark, "check" | "grade")) | ast.Call(ast.Attribute() as mark):
                marks.append((mark, functions.get(getattr(mark, "attr", ""))))
        for mark, function in marks:
            match mark:
                case ast.Attribute(ast.Name(name) as whole, exercise) if name in names and function:
                    found |= {id(whole)} if functions.get(exercise) == function else set()
    return found
