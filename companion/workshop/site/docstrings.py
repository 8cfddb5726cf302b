"""A Sphinx extension: docstrings as the house writes them, prose with ``code``, formulas indented and parameters one to
a line, become reStructuredText; and what Sphinx marks up wrongly (roles, empty heads of tables) is mended.
"""

import re
from itertools import pairwise
from typing import Any

from sphinx.application import Sphinx

PARAMETER = re.compile(r"``[\w, `*]+``: ")
CODE = re.compile(r"(``.+?``|`[^`]+`)")
ROLES = re.compile(r' role="(?:list|doc-biblioentry|doc-backlink)"')
CORNER = re.compile(r"<th\b([^>]*)>\s*(?:<p>\s*</p>)?\s*</th>")


def convert(docstring: list[str]) -> list[str]:
    """Return a docstring's lines as reStructuredText: nothing in its prose is markup but code between backticks."""
    found: list[str] = []
    for block in re.split(r"\n\s*\n", "\n".join(docstring).strip("\n")):
        lines = block.splitlines() or [""]
        if all(line.startswith("    ") for line in lines) or lines[0].startswith(">>>"):
            found += ["::", "", *(f"    {line}" for line in lines), ""]
            continue
        starts = [number for number, line in enumerate(lines) if PARAMETER.match(line)]
        prose = lines[: starts[0]] if starts else lines
        found += [_text(prose), ""] if prose else []
        for start, end in pairwise([*starts, len(lines)]):
            found.append(f"* {_text(lines[start:end])}")
        found.append("")
    return found


def _text(lines: list[str]) -> str:
    parts = CODE.split(" ".join(line.strip() for line in lines))
    return "".join(
        f"\\ ``{part.strip('`')}``\\ " if place % 2 else re.sub(r"([\\*|_`])", r"\\\1", part)
        for place, part in enumerate(parts)
    )


def _listen(*arguments: Any) -> None:
    """What Sphinx calls with a docstring, its lines last: they are replaced in place."""
    lines: list[str] = arguments[-1]
    lines[:] = convert(lines)


def _skip(*arguments: Any) -> bool | None:
    """What Sphinx asks of a member, which is the fourth argument: a named tuple's fields say nothing."""
    return True if str(getattr(arguments[3], "__doc__", "")).startswith("Alias for field number") else None


def _plain(app: Sphinx, page: str, template: str, context: dict, doctree: Any) -> None:  # noqa: ARG001 (Sphinx's own)
    """A list of citations is no ARIA list: links back stand between its items. A table's empty corner is no head."""
    body = CORNER.sub(r"<td\1></td>", context.get("body", ""))
    context["body"] = ROLES.sub("", body) if "citation" in body else body


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect to the events of Sphinx, which calls this."""
    app.connect("autodoc-process-docstring", _listen)
    app.connect("autodoc-skip-member", _skip)
    app.connect("html-page-context", _plain)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
