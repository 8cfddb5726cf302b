"""Every step away from an answer: the rows of the table, each where it applies, with its sentence."""

import re
from collections.abc import Iterator
from typing import Any

from companion.lesson.near_misses.fillings import filled
from companion.lesson.near_misses.scene import Scene, Site, sites
from companion.lesson.near_misses.table import call, near_miss_table
from companion.lesson.near_misses.trees import FUNCTION_LETTERS, SLOT, Edit, Path, made
from companion.lesson.near_misses.ways import ways
from companion.lesson.near_misses.words import COMPARISONS, OPERATIONS, RELATIONS, Words, operation

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
                    same_call = text.startswith(("along", "other"))  # X is then what is inside, not the answer
                    for new, said, hole, more in filled(text, says, site, held, scene):
                        try:
                            sentence = _in_words(said, held, site, scene.words, name, whole=not same_call)
                        except KeyError:
                            continue

                        def change(now: Any, new=new, parts=parts, hole=hole) -> Any:
                            return made(new, **parts(now), **hole)

                        same = row.says if block.kind == "list" else said  # for a mistake in several forms
                        kind = f"{site.kinds & {'argument'}} {same}"
                        yield Edit(site.path, change, sentence, kind, base + row.cost + more, row.line)


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


def _in_words(says: str, parts: dict[str, Any], site: Site, words: Words, name: str, *, whole: bool) -> str:
    """Put the parts that a sentence names into words. Raises KeyError for a part that is not there."""

    def noun(found: re.Match) -> str:
        part = parts[found[1]]
        if found[1] in FUNCTION_LETTERS:
            return OPERATIONS[operation(part)[0]]
        if site.path == SLOT:
            return part.id  # an argument, before anything has changed it
        return "the answer" if whole and found[1] == "X" and "answer" in site.kinds else words.noun(part)

    said = re.sub(r"\{([A-Zfg])\}", noun, says).replace("{word}", OPERATIONS.get(name) or name)
    return re.sub(r"(the running \w+) and \1\b", r"\1 and the same again", said)
