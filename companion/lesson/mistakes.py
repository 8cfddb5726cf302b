"""Reads the mistakes that a topic knows by name from its ``mistakes.toml``: rows, each a sentence and an edit of the
course's own answer.

    [newton_step]
    "M S M is added; it must be subtracted" = ["2 * M -", "2 * M +"]
    "this is where the iteration ends, the inverse of S" = "return torch.linalg.inv(S)"

The first row is the answer with ``2 * M +`` where it has ``2 * M -``; further pairs of old and new may follow. The
second, no edit of the answer, is the body of another function of the same arguments.
"""

import functools
import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from torch import Tensor

from companion.core.files import read_toml
from companion.lesson.attempts import source_of

Row = str | list[str]


class Mistakes(Mapping[str, Callable[..., Tensor]]):
    """The wrong functions of one exercise, by the sentence that each deserves. They are made when first asked for."""

    def __init__(self, name: str, answer: Callable[..., Tensor]):
        self.name, self.answer = name, inspect.unwrap(answer)

    @functools.cached_property
    def functions(self) -> dict[str, Callable[..., Tensor]]:
        """Return the wrong functions. Raises ValueError, with the row, unless each text to be replaced occurs exactly
        once in the answer.
        """
        package, _, _ = self.answer.__module__.partition(".exercises")
        rows = topic_rows(package).get(self.name, {}) if package != self.answer.__module__ else {}
        return {sentence: self._function(sentence, row) for sentence, row in rows.items()}

    def _function(self, sentence: str, row: Row) -> Callable[..., Tensor]:
        source = source_of(self.answer)
        assert source is not None
        try:
            body = row if isinstance(row, str) else replaced(source.body, row)
            text = f"{source.signature}\n{textwrap.indent(body, '    ')}\n"
            namespace: dict[str, Any] = dict(self.answer.__globals__)
            exec(compile(text, f"<{self.name}: {sentence}>", "exec"), namespace)
        except (ValueError, SyntaxError) as error:
            raise ValueError(f"{self.name}, the mistake {sentence!r}: {error}") from None
        return namespace[self.answer.__name__]

    def __getitem__(self, sentence: str) -> Callable[..., Tensor]:
        return self.functions[sentence]

    def __iter__(self) -> Iterator[str]:
        return iter(self.functions)

    def __len__(self) -> int:
        return len(self.functions)


@functools.cache
def topic_rows(package: str) -> dict[str, dict[str, Row]]:
    """Return the rows of a topic, which is the package ``companion.topics.TOPIC``: of each exercise, by sentence."""
    file = files(package) / "mistakes.toml"
    return read_toml(Path(str(file))) if file.is_file() else {}


def replaced(text: str, pairs: list[str]) -> str:
    """Return ``text`` with each old part replaced by the new one that follows it in ``pairs``. Raises ValueError unless
    each occurs exactly once when its turn has come.
    """
    for old, new in zip(pairs[::2], pairs[1::2], strict=True):
        if (times := text.count(old)) != 1:
            raise ValueError(f"{old!r} occurs {times} times; must occur exactly once in\n{text}")
        text = text.replace(old, new)
    return text
