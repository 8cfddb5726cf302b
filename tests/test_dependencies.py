"""Dependencies by use: what is imported is declared where it is imported, and what is declared is imported. Without any
extra, what research needs works, and what needs one names it.
"""

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from companion import PUBLIC
from companion.__main__ import FROM_WHEEL

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
ROOMS = {  # the extras that whoever is in a room has: all are started by a command that needs them
    "companion/workshop/cli": {"lessons", "grading"},
    "companion/workshop/grading": {"lessons", "grading"},
    "companion/workshop/site": {"lessons", "site"},
    "companion/workshop/formulas.py": {"grading", "site"},
    "companion/workshop/notebooks.py": {"lessons"},
    "tests": {"test", "lessons", "grading", "pretrained", "site"},
}
ALONE = {f"companion/workshop/cli/{command}.py" for command in FROM_WHEEL}
ON_TRUST = {  # declared and not imported here: programs and plug-ins that are started by name
    "lessons": {"jupyterlab", "nbconvert"},  # nbconvert has a bound since an older one fails with today's mistune
    "site": {"myst-nb", "sphinx-book-theme", "sphinx-copybutton", "sphinx-design", "sphinxcontrib-bibtex"},
    "test": {
        "codespell", "coverage", "distributed", "import-linter", "jupyter-repo2docker", "nbstripout", "nbval",
        "pyright", "pytest-benchmark", "pytest-xdist", "ruff",
    },
}  # fmt: skip
TORCHS_OWN = {"jinja2", "networkx"}  # torch needs them, so that the base has them


def declared(texts: list[str]) -> dict[str, str]:
    """What is asked for by name, each with its bounds, but for the course's own extras."""
    found = {canonicalize_name(Requirement(text).name): str(Requirement(text).specifier) for text in texts}
    return {name: bounds for name, bounds in found.items() if name != PROJECT["name"]}


BASE = declared(PROJECT["dependencies"])
BY_EXTRA = {extra: declared(texts) for extra, texts in EXTRAS.items()}


def imports(node: ast.AST, extra: str = "") -> Iterator[tuple[str, str]]:
    """Each module that is imported, and around it the `Extra`, or "types" where only a checker of types imports it."""
    for below in ast.iter_child_nodes(node):
        inside = extra
        if isinstance(below, ast.Import):
            yield from ((name.name, extra) for name in below.names)
        elif isinstance(below, ast.ImportFrom) and not below.level:
            yield below.module, extra
        elif isinstance(below, ast.With) and (found := re.match(r"with Extra\('(\w+)'\):", ast.unparse(below))):
            inside = found[1]
        elif isinstance(below, ast.If) and ast.unparse(below.test) == "TYPE_CHECKING":
            inside = "types"
        yield from imports(below, inside)


def used() -> tuple[dict[str, set[str]], list[str]]:
    """What is imported of the base, as "", and of each extra; and imports of what nothing declares where they stand."""
    used, wrong, modules = defaultdict(set), [], packages_distributions()
    own = {path.stem for path in (ROOT / "tests").rglob("*")} | {"companion", "tests"}
    for path in [*(ROOT / "companion").rglob("*.py"), *(ROOT / "tests").rglob("*.py")]:
        place = path.relative_to(ROOT).as_posix()
        room = {extra for start, some in ROOMS.items() if place.startswith(start) for extra in some}
        for module, extra in imports(ast.parse(path.read_text(encoding="utf-8"))):
            top = module.partition(".")[0]
            if top in sys.stdlib_module_names or top in own:
                continue
            names = {canonicalize_name(name) for name in modules.get(top, [top])}
            here = {extra} if extra else set() if place in ALONE else room
            there = {some for some in here & set(EXTRAS) if names & set(BY_EXTRA[some])}
            if names & set(BASE):
                used[""] |= names
            elif extra != "types" and (not there or (place.endswith("formulas.py") and there != here)):
                wrong.append(f"{place}: {module}")
            for some in there:
                used[some] |= names
    return used, wrong


def test_what_is_imported_is_declared_and_what_is_declared_is_imported():
    found, wrong = used()
    assert wrong == [], 'in the base of pyproject.toml, in the extra of the room, or under `with Extra("lessons"):`'
    found["lessons"] |= found["pretrained"]  # a lesson reads a model of others
    for extra, names in {"": BASE, **BY_EXTRA}.items():
        assert set(names) - found[extra] == ON_TRUST.get(extra, set()), extra


def test_each_bound_is_the_same_wherever_it_stands():
    bounds = defaultdict(set)
    for names in (BASE, *BY_EXTRA.values()):
        for name, bound in names.items():
            bounds[name].add(bound)
    assert {name: some for name, some in bounds.items() if len(some) > 1 or ">=" not in str(some)} == {}
    assert set(BY_EXTRA["pretrained"]) - set(BY_EXTRA["lessons"]) == {"transformers"}, "lessons read Llamas alone"
    assert not [name for extra in BY_EXTRA.values() for name in extra if name in BASE]


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """Runs Python where the package is, without its checkout, and none of what the extras bring."""
    folder = tmp_path_factory.mktemp("alone")
    beside = shutil.ignore_patterns("__pycache__", "[!r]*.safetensors")  # the tour opens one of regression
    shutil.copytree(ROOT / "companion", folder / "companion", ignore=beside)
    lacks = {name for extra in BY_EXTRA.values() for name in extra} - TORCHS_OWN
    modules = sorted(top for top, names in packages_distributions().items() if {*map(canonicalize_name, names)} & lacks)
    (folder / "sitecustomize.py").write_text(
        f"from importlib.machinery import PathFinder\nLACKS, find = {modules}, PathFinder.find_spec\n"
        "PathFinder.find_spec = lambda name, *rest: None if name in LACKS else find(name, *rest)\n"
    )

    def run(*words: str) -> subprocess.CompletedProcess:
        environment = os.environ | {"PYTHONPATH": str(folder), "COURSE_MODELS": ""}
        command = [sys.executable, *words]
        return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)

    return run


def test_research_needs_no_extra(alone):
    tour = (ROOT / "companion/workshop/site/tour.md").read_text(encoding="utf-8")
    examples = re.findall(r"^```python\n(.+?)^```$", tour, re.MULTILINE | re.DOTALL)
    names = [name for name, room in PUBLIC.items() if not room.startswith("lesson.")]
    code = [f"from companion import {', '.join(names)}", *examples]
    code.append("from importlib import import_module")
    code += [f"import_module('companion.topics.{name}.exercises')" for name, room in PUBLIC.items() if room == "topics"]
    done = alone("-c", "\n".join(code))
    assert done.returncode == 0, done.stderr
    assert "similar at step" in done.stdout and "without layer 3's attention" in done.stdout
    assert re.search(r"No picture: matplotlib is not installed; it comes with the extra 'lessons'", done.stderr)


def test_what_makes_a_lesson_names_its_extra(alone):
    names = [name for name, room in PUBLIC.items() if room.startswith("lesson.")]
    asks = "\n    ".join(f"try: companion.{name}\n    except ImportError as error: print(error)" for name in names)
    done = alone("-c", f"import companion\nif True:\n    {asks}")
    said = r"\w+ is not installed; it comes with the extra 'lessons': .+\[lessons\]\""
    assert len(re.findall(f"^{said}$", done.stdout, re.MULTILINE)) == len(names), done.stdout + done.stderr


@pytest.mark.parametrize(
    ("words", "lacks", "extra"),
    [
        (["fetch", "smollm2"], "platformdirs", "pretrained"),
        (["examine", "numbers", "."], "tokenizers", "pretrained"),
        (["examine", "induction", ".", "--out", "heads.png"], "matplotlib", "lessons"),
        (["train", "structures-pictures"], "sklearn", "lessons"),
    ],
)
def test_a_command_names_the_extra_that_it_lacks(alone, words, lacks, extra):
    done = alone("-m", "companion", *words)
    assert done.returncode == 2, done.stderr
    *_, said = done.stderr.splitlines()  # after a training's progress bar
    assert said == (
        f"{words[0]}: {lacks} is not installed; it comes with the extra {extra!r}: {sys.executable} -m pip install "
        f'"transformers-as-algorithms[{extra}]"'
    )
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["bench"], 0, "layers: "),
        (["measure"], 0, "language-facts "),
        (["lab"], 2, "lab needs a checkout of the course"),
    ],
)
def test_other_commands_need_none_or_a_checkout(alone, words, status, said):
    done = alone("-m", "companion", *words)
    assert (done.returncode, said in done.stdout + done.stderr) == (status, True), done.stderr
