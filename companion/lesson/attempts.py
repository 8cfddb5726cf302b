"""A learner's function, whether written yet or not, how it is written, and what may be said of it.

Nothing here knows an answer, so that grading can use it beside a learner's code.
"""

import ast
import contextlib
import functools
import inspect
import io
import textwrap
import tokenize
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any


def in_lines(text: str) -> str:
    """Break each line of a text between words before it is long: JupyterLab would break it anywhere."""
    fill = functools.partial(textwrap.fill, width=80, break_long_words=False, break_on_hyphens=False)
    return "\n".join(map(fill, text.split("\n")))


class Mistake(AssertionError):
    """A wrong answer; the message is the diagnosis, and all that a notebook shows."""

    def _render_traceback_(self) -> list[str]:
        return [in_lines(str(self))]


class NotAttempted(Mistake):
    """An exercise that still has its stub, where an answer is due."""


class Attempt:
    """A learner's function; it stands in with ``exercise.answer``, the course's, until it is written."""

    def __init__(self, exercise: Any, own: Callable[..., Any]):
        functools.update_wrapper(self, own)
        self.exercise, self.own = exercise, own

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.exercise not in examined:
            called.add(self.exercise.name)
            if answered:
                return self.exercise.answer(*args, **kwargs)
        try:
            return self.own(*args, **kwargs)
        except NotImplementedError as error:
            if not is_stub(self.own, error):
                raise
        if self.exercise in examined:  # what is checked calls the stub
            raise NotAttempted(f"{self.exercise.name}: not attempted")
        return self.exercise.answer(*args, **kwargs)


examined: set[Any] = set()  # the exercises being checked at the moment; for these nothing stands in
called: set[str] = set()  # the names of other exercises whose functions have been called since it was emptied
answered: list[bool] = []  # not empty within `others_answered`


@contextlib.contextmanager
def others_answered() -> Iterator[None]:
    """Let the course's answers stand in for all functions of the learner but those being checked, until the block
    ends.
    """
    answered.append(True)
    try:
        yield
    finally:
        answered.pop()


def own_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return what the learner wrote, without the stand-in around it."""
    return own_function(function.own) if isinstance(function, Attempt) else function


def is_stub(function: Callable[..., Any], error: BaseException) -> bool:
    """Return whether the function itself raised a bare NotImplementedError. Those of torch come with a message."""
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    return isinstance(error, NotImplementedError) and not error.args and frame.f_code is _code(function)


def failing_line(function: Callable[..., Any], error: BaseException) -> str:
    """Return the function's own line that failed, wherever below it the error was raised; ``own_line`` if it ran in
    another process.
    """
    if isinstance(line := getattr(error, "own_line", None), str):
        return line
    trace = error.__traceback__
    own = [frame.f_code is _code(function) for frame, _ in traceback.walk_tb(trace)]
    return next(
        (summary.line or "" for summary, is_own in zip(traceback.extract_tb(trace), own, strict=True) if is_own), ""
    )


def _code(function: Callable[..., Any]) -> Any:
    return getattr(inspect.unwrap(function), "__code__", None)


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
