"""The companion's public face: names that come when they are asked for; and packages that import nothing."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules, walk_packages

import pytest

import companion.topics
from companion.lesson.exercise import Exercise

PACKAGES = sorted(Path(companion.__file__).parent.rglob("__init__.py"))
ROOMS = [found.name for found in walk_packages(companion.topics.__path__, "companion.topics.") if found.ispkg]


@pytest.mark.parametrize("name", companion.__all__)
def test_a_public_name_is_there(name):
    value = getattr(companion, name)
    assert value.__name__.rpartition(".")[2] == name
    assert name in dir(companion) and "walk_packages" not in dir(companion)


def test_every_topic_has_a_public_name():
    topics = {found.name for found in iter_modules(companion.topics.__path__)}
    named = {name for name, room in companion.PUBLIC.items() if room == "topics"}
    assert topics == named, "a line for each topic in PUBLIC of companion/__init__.py"


def test_a_topic_comes_with_what_can_be_used_without_its_lesson():
    code = "from companion import structures; structures.baselines.trees, structures.data; structures.exercises"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "module 'companion.topics.structures' has no attribute 'exercises'" in done.stderr


def test_a_name_that_is_not_there_says_what_is():
    with pytest.raises(AttributeError, match=r"has no name 'Transformer'; it has Decoder, .*, regression, "):
        companion.Transformer  # noqa: B018


def test_importing_the_companion_loads_none_of_it():
    code = "import sys, companion; print([name for name in sys.modules if name == 'torch' or 'companion.' in name])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def loaded_lazily(package: str) -> dict[str, str]:
    """The names that a package gives when they are asked for, and the module that each is imported from."""
    module = import_module(package)
    if package == "companion":
        return {name: f"companion.{room}" for name, room in companion.PUBLIC.items()}
    if package.endswith(".exercises"):
        exercises = {name: getattr(module, name) for name in dir(module)}
        return {name: each.answer.__module__ for name, each in exercises.items() if isinstance(each, Exercise)}
    is_topic = package.count(".") == 2
    parts = [found.name for found in iter_modules(module.__path__)]
    return {name: package for name in parts if name in companion.ROLES or not is_topic}


@pytest.mark.parametrize("package", ["companion", *ROOMS])
def test_editors_are_told_by_a_stub_what_loads_lazily(package):
    stub = Path(import_module(package).__file__).with_suffix(".pyi")
    imports = [node for node in ast.parse(stub.read_text("utf-8")).body if isinstance(node, ast.ImportFrom)]
    told = {(node.module, alias.name, alias.asname) for node in imports for alias in node.names}
    due = {(module, name, name) for name, module in loaded_lazily(package).items()}
    assert told == due, f"{stub.name} of {package}: `from MODULE import NAME as NAME` for each, and no other"


@pytest.mark.parametrize("path", PACKAGES, ids=lambda path: path.parent.name)
def test_a_package_imports_nothing_of_the_course(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    names += [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    assert not [name for name in names if name.split(".")[0] not in {"importlib", "pkgutil", "typing"}]
