"""A learner's own folder, ``work/``: copies of the lessons, which no update overwrites once they hold answers.

Standard library only. Beside its copies, each lesson's folder has a record of what was copied into it (RECORD): so an
untouched copy is told from one that somebody has worked in, even after JupyterLab has saved it.
"""

import hashlib
import json
import sys
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote

from companion.core.files import atomic_write
from companion.workshop.cli.lessons import Lesson, notation, released, start_page
from companion.workshop.cli.results import Results, of_notebook

RECORD = ".copied.json"
ASIDE = "aside"


def refresh(root: Path) -> list[str]:
    """Bring ``work/`` up to date with ``lessons/``; one line for each notebook of which a newer version was laid beside
    one's own.
    """
    messages = [line for lesson in released(root) for line in _refresh_lesson(lesson, root / "work" / lesson.name)]
    write_start_page(root)
    return messages


def write_start_page(root: Path) -> None:
    """``work/README.md``: the map of the lessons, with what is solved and predicted, and where a newer version lies."""
    work = root / "work"
    lessons = [lesson for lesson in released(root) if (work / lesson.name).is_dir()]
    done = {}
    for lesson in lessons:
        results = [best(work / lesson.name, path.stem) for path in lesson.notebooks]
        done[lesson.name] = [
            f"**{word}**: {each.exercises}; predictions: {each.predictions}"
            for word, each in zip(("Done", "Done of Further"), results, strict=False)
            if each.begun
        ]
    lines = [start_page(lessons, done, go_on(lessons, work))]
    for path in (path for lesson in lessons for path in lesson.notebooks):
        name = path.parent.name
        if others := [copy for copy in copies(work / name, path.stem) if copy.name != path.name]:
            link = f"[{others[-1].stem}]({quote(f'{name}/{others[-1].name}')})"
            lines.append(f"\n**There is a newer version of lesson {name[:2]}:** {link}. Yours is as you left it.\n")
    lines += [f"\n**{line}**\n" for line in outdated(root)]
    lines.append(
        "\nThese are your own copies: no update overwrites what you write in them. This page is written anew\n"
        "whenever a notebook is saved; `python3 -m companion progress` prints the same,\n"
        "and with `--reset 02` lesson 02 starts anew.\n\n"
    )
    lines.append(notation())
    atomic_write(work / "README.md", "".join(lines))


def go_on(lessons: list[Lesson], work: Path) -> str:
    """Return a line that leads to the notebook that was last worked in, or to the first of ``lessons``."""
    if not lessons:
        return ""
    begun = [
        copy
        for lesson in lessons
        for path in lesson.notebooks
        for copy in copies(work / lesson.name, path.stem)
        if of_notebook(copy, path.stem).begun
    ]
    if not begun:
        return f"**[Begin here]({lessons[0].path})**"
    last = max(begun, key=lambda copy: copy.stat().st_mtime_ns)
    return f"**[Go on where you left off]({quote(f'{last.parent.name}/{last.name}')})**: {last.stem}"


def outdated(root: Path) -> list[str]:
    """Return a line for each copy of a lesson that another version of the course released."""
    return [
        f"{copy.name} in work/{lesson.name} is of version {made_with(copy)} of the course, and this is "
        f"{made_with(path)}: it may not run here. `python3 -m companion progress --reset {lesson.name[:2]}` "
        "puts it aside, with all answers, and starts a new one."
        for lesson in released(root)
        for path in lesson.notebooks
        for copy in copies(root / "work" / lesson.name, path.stem)
        if made_with(copy) != made_with(path)
    ]


def made_with(path: Path) -> str:
    """Return the version of the course that a notebook was released with, which stands in its metadata."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))["metadata"]["companion"]["version"]
    except (OSError, ValueError, KeyError, TypeError):
        return "0.2 or older"


def reset(lesson: Lesson, root: Path) -> Path:
    """Put the learner's folder of a lesson aside and make a fresh one; where the old one lies now. Raises OSError where
    it cannot be moved: on Windows while a kernel runs in it.
    """
    work = root / "work"
    aside = next(path for n in count(1) if not (path := work / ASIDE / f"{lesson.name} {n}").exists())
    aside.parent.mkdir(parents=True, exist_ok=True)
    (work / lesson.name).rename(aside)
    refresh(root)
    return aside


def copies(folder: Path, name: str) -> list[Path]:
    """Return the copies of the notebook ``name`` in a lesson's folder, the newest version last."""
    numbers = {_name(name, number): number for number in range(1, 100)}
    found = [path for path in folder.glob("*.ipynb") if path.name in numbers]
    return sorted(found, key=lambda path: numbers[path.name])


def best(folder: Path, name: str) -> Results:
    """Return the results of the notebook ``name`` of a lesson: of that copy in which most is solved, the newest of
    several.
    """
    results = [of_notebook(path, name) for path in copies(folder, name)]
    return max(reversed(results), key=lambda result: result.exercises.solved, default=Results())


def after_saving(*, model: dict, contents_manager: Any, **_: Any) -> None:
    """Write the start page anew when JupyterLab has saved a notebook, as its ``post_save_hook``."""
    if model.get("type") == "notebook":
        try:
            write_start_page(Path(contents_manager.root_dir).parent)
        except OSError as error:  # never in the way of saving
            print(f"The start page could not be written: {error}", file=sys.stderr)


def _refresh_lesson(lesson: Lesson, folder: Path) -> list[str]:
    """Copy what is new; a line for each notebook of the learner's that was left as it is, the new one beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    record = _read_record(folder)
    messages = []
    for source in sorted(path for path in lesson.source.parent.iterdir() if path.is_file()):
        if source.name.startswith("."):
            continue
        version, there = _hash(source), folder / source.name
        if source in lesson.notebooks:
            there, message = _place(source, folder, record, version)
            messages += [message] * bool(message)
            if there is None:
                continue
        elif there.exists() and _hash(there) != record.get(source.name, {}).get("version"):
            continue  # the learner's own file of that name, or one that was changed
        if not there.exists() or _hash(there) != version:
            atomic_write(there, source.read_bytes())
        record[there.name] = {"version": version, "text": _text(there)}
    atomic_write(folder / RECORD, json.dumps(record, indent=1) + "\n")
    return messages


def _place(source: Path, folder: Path, record: dict, version: str) -> tuple[Path | None, str]:
    """Where this version of the notebook belongs (None: it is there already), and what to say about it."""
    there = copies(folder, source.stem)
    text = _text(source)
    for copy in there:
        known = record.get(copy.name)
        if known is None and _text(copy) == text:  # the record was lost
            record[copy.name] = {"version": version, "text": text}
        if record.get(copy.name, {}).get("version") == version:
            return None, ""
    untouched = [copy for copy in there if _text(copy) == record.get(copy.name, {}).get("text")]
    if untouched:
        return untouched[-1], ""
    if not there:
        return folder / source.name, ""
    new = next(path for n in count(2) if not (path := folder / _name(source.stem, n)).exists())
    return new, f"{source.stem}: there is a newer version; it lies beside yours as {new.name}"


def _name(notebook: str, number: int) -> str:
    """``02-x.ipynb``, ``02-x (new version).ipynb``, ``02-x (new version 2).ipynb``, ..."""
    suffix = {1: "", 2: " (new version)"}.get(number, f" (new version {number - 1})")
    return f"{notebook}{suffix}.ipynb"


def _text(path: Path) -> str:
    """A hash of what a person can change in a notebook, whatever was run; of any other file, of its bytes."""
    if path.suffix != ".ipynb":
        return _hash(path)
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        text = json.dumps([[cell["cell_type"], "".join(cell["source"])] for cell in cells])
    except (ValueError, KeyError, TypeError):
        return _hash(path)
    return hashlib.sha256(text.encode()).hexdigest()


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _read_record(folder: Path) -> dict:
    try:
        record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
        return record if isinstance(record, dict) else {}
    except (OSError, ValueError):
        return {}
