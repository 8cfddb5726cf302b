"""Every step away from an answer: the rows of the table of near misses, `table.txt`, whose head says what they mean, each
where it applies, with its sentence.

A place in an answer (`sites`) has headings of the table, by what stands there and what it was on a drawn input; or it
has the form of one (`match`). A block applies at a place in certain ways (`ways`), each of which says what the letters
of its rows stand for; what a row asks for by a name in braces, as {S}, a size, is everything that can stand there
(`fillings`).
"""

import ast
import itertools
import re
from collections.abc import Iterator
from functools import partial
from typing import Any

from companion.lesson.near_misses.fillings import fillings
from companion.lesson.near_misses.matching import ways
from companion.lesson.near_misses.places import Scene, Site, sites
from companion.lesson.near_misses.syntax import call, operation
from companion.lesson.near_misses.table import near_miss_table
from companion.lesson.near_misses.trees import (
    FUNCTION_LETTERS,
    SLOT,
    Edit,
    Path,
    made,
)
from companion.lesson.near_misses.words import COMPARISONS, OPERATIONS, RELATIONS, VAGUE, Words
from companion.lesson.seen import ORDINALS

INNER = 0.8  # how much less likely a change is to a tensor on its way than to the answer


def edits(scene: Scene) -> Iterator[Edit]:
    """Yield every step away from an answer."""
    for site in sites(scene):
        name = (call(site.node) or ("", {}))[0] if site.node else ""
        now_is = COMPARISONS[type(site.node.ops[0])] if "compare" in site.kinds else ""
        for block in near_miss_table():
            base = INNER if block.kind == "value" and "answer" not in site.kinds else 0
            for parts in ways(block, site, scene):
                held = parts(site.node)
                for row in block.rows:
                    text = row.text.replace("{name}", name).replace("{now}", now_is)
                    says = row.says.replace("{now}", RELATIONS.get(now_is, ""))
                    for new, said, hole, nouns, more in filled(text, says, site, held, scene):
                        sentence = partial(_in_words, said, held | nouns, site, name=name)
                        try:
                            plain = sentence(scene.words)
                        except KeyError:
                            continue

                        def change(now: Any, new=new, parts=parts, hole=hole) -> Any:
                            return made(new, **parts(now), **hole)

                        filled_in = "".join(map(ast.unparse, nouns.values()))
                        same = row.says if block.kind == "list" else said + filled_in  # for a mistake in several forms
                        kind = f"{site.kinds & {'argument'}} {same} {name if 'is missing' in same else ''}"
                        number = (float(new), float(ast.literal_eval(site.node))) if "{new}" in says else None
                        if number and number[0] == 0 and block.kind == "index":
                            number = None  # it may go without saying, as in [0:]
                        cost = base + row.cost + more
                        of_values = row.of_values or (block.kind == "value" and "answer" in site.kinds)
                        yield Edit(site.path, change, plain, kind, cost, row.line, sentence, number, of_values)


def together(edits: list[Edit]) -> Iterator[tuple[tuple[Edit, ...], float]]:
    """Yield edits of one kind, to be made together everywhere, or everywhere but once, and what this costs."""
    kinds: dict[str, dict[Path, Edit]] = {}
    for edit in edits:
        kinds.setdefault(edit.kind, {}).setdefault(edit.path, edit)
    for _, by_path in sorted(kinds.items()):
        every = tuple(by_path.values())
        if 2 <= len(every) <= 5:
            cost = max(edit.cost for edit in every) + 0.1
            yield every, cost
            if len(every) > 2:
                yield every[1:], cost + 0.1


def _in_words(says: str, parts: dict[str, Any], site: Site, words: Words, *, name: str) -> str:
    """Put the parts that a sentence names into words; if two parts have the same, say what the row says without them,
    or nothing. Raises KeyError for a part that is not there.
    """
    says, _, nameless = says.partition(" || ")
    nouns: dict[str, str] = {}

    def noun(found: re.Match) -> str:
        part = parts[found[1]]
        if found[1] in FUNCTION_LETTERS:
            return OPERATIONS[operation(part)[0]]
        if site.path == SLOT:
            said = part.id  # an argument, before anything has changed it
        else:
            said = "the answer" if part is site.node and "answer" in site.kinds else words.noun(part)
        nouns[found[1]] = said
        return said

    for text in (says, nameless):
        nouns.clear()
        said = re.sub(r"\{([A-Zfg]|one|two|other|whose)\}", noun, text).replace("{word}", OPERATIONS.get(name) or name)
        said = said.replace("1 minus minus ", "1 plus ")
        if VAGUE not in said and _told_apart(list(nouns.values())):
            return said
    return ""


def _told_apart(nouns: list[str]) -> bool:
    """Return whether no two parts have one name, nor one a vague name that is part of another's."""
    vague = [noun[noun.find("what is computed from") :] if "what is computed from" in noun else "" for noun in nouns]
    alike = any(one and two.startswith(one) for one, two in itertools.permutations(vague, 2))
    return len(set(nouns)) == len(nouns) and not alike


def filled(
    text: str, says: str, site: Site, held: dict[str, Any], scene: Scene
) -> Iterator[tuple[str, str, dict[str, Any], dict[str, Any], float]]:
    """Yield a row's text, sentence, node, what its sentence names and further cost, for each that it asks for: of its ``text`` and of what it
    ``says``, at a ``site`` of the answer, with what its pattern ``held`` there, in the ``scene`` of the exercise.
    """
    text = f"X = {text}" if "argument" in site.kinds else text
    if "{new}" in says:
        own = ast.literal_eval(site.node)
        try:
            number = eval(text, {"X": own})  # a row's own text, of a number
        except ZeroDivisionError:
            return
        number = int(number) if type(own) is int and number == int(number) else float(f"{number:.12g}")  # 10 * 1e-6
        if number != own:
            yield repr(number), says.replace("{new}", f"{number:g}"), {}, {}, 0
    elif "places" in held:
        yield f"cut({text!r})", _of_places(says, held["places"], scene.inputs), {}, {}, 0
    elif asked := re.search(r"\{(\w+)\}", text):
        parts = _joined(site.node) and (".flip(" in text or ".roll(" in text)
        for new, words, more in fillings(asked[1], site, held, scene):
            if parts and asked[1] == "E" and new.value == 0:
                continue  # what a list puts together is no row of places
            said = says
            nouns = {name: word for name, word in words.items() if isinstance(word, ast.AST)}
            for name in words.keys() - nouns.keys():
                said = said.replace(f"{{{name}}}", words[name])
            hole = "HOLE" if isinstance(new, ast.AST) else new
            yield text.replace(asked[0], hole), said, {"HOLE": new} if hole == "HOLE" else {}, nouns, more
    else:
        yield text, says, {}, {}, 0


def _joined(node: Any) -> bool:
    return (
        node is not None and operation(node)[0] in ("stack", "cat") and isinstance(node.args[0], ast.List | ast.Tuple)
    )


def _of_places(says: str, places: list[tuple[str, int]], inputs: dict[str, Any]) -> str:
    """Say what is cut: entries, rows or columns of all arguments that share an axis."""
    (name, dim), *_ = places
    last = inputs[name].ndim - 1
    shared = " and ".join(dict.fromkeys(name for name, _ in places))
    kinds = ("entry", "entries") if not last else ("row", "rows") if not dim else ("column", "columns")
    if dim not in (0, last):
        kinds, shared = ("place", "places"), f"{shared} along the {ORDINALS[dim]} axis"
    return says.format(one=f"{kinds[0]} of {shared}", many=f"{kinds[1]} of {shared}")
