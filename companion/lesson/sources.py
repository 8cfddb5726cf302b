"""A function's source, read in one place for the rows of mistakes, the near misses and the lessons' answers."""

import ast
import inspect
import io
import textwrap
import tokenize
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Source:
    """A function as it is written, without its decorators and its docstring.

    ``tree``: its definition.
    ``signature``, ``body``: their texts, the body dedented and with its comments; both empty for a lambda.
    """

    tree: ast.FunctionDef | ast.Lambda
    signature: str = ""
    body: str = ""


def source_of(function: Callable[..., Any]) -> Source | None:
    """Read a function's source, anew each time; None if it has none."""
    try:
        text = textwrap.dedent(inspect.getsource(inspect.unwrap(function)))
        nodes = ast.walk(ast.parse(text))
    except (OSError, TypeError, SyntaxError):
        return None
    tree = next((node for node in nodes if isinstance(node, ast.FunctionDef | ast.Lambda)), None)
    if not isinstance(tree, ast.FunctionDef):
        return tree and Source(tree)
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    end = next(each.end[0] for each in tokens if each.type == tokenize.NEWLINE and each.end[0] >= tree.lineno)
    begin = end if ast.get_docstring(tree) is None else tree.body.pop(0).end_lineno
    tree.decorator_list = []
    lines = text.splitlines()
    body = textwrap.dedent("\n".join(lines[begin:])).strip("\n")
    return Source(tree, "\n".join(lines[tree.lineno - 1 : end]), body)
