"""Core imports one way: what is above it, `companion.core.registry` finds, and nobody else."""

import ast
from pathlib import Path

from companion.core import registry

CORE = Path(registry.__file__).parent
BY_NAME = {"import_module", "__import__", "walk_packages", "iter_modules", "find_spec"}


def test_the_registry_alone_imports_by_name():
    found = {
        path.name
        for path in CORE.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if BY_NAME & {getattr(node, field, None) for field in ("id", "attr", "name")}
    }
    assert found == {"registry.py"}
