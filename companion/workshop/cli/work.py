"""A learner's own folder, ``work/``: copies of the lessons. Of what is written in them nothing is lost: a newer version
of a lesson gets the answers (`carry`), and the copy as it was is put aside.

Standard library only. Beside its copies, each lesson's folder has a record of what was copied into it (RECORD): so an
untouched copy is told from one that somebody has worked in, even after JupyterLab has saved it, and a changed cell from
one of the lesson's.
"""

import hashlib
import json
import sys
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote

from companion.core.files import FileError, atomic_write, encoding, make_room, patiently
from companion.workshop.cli.carry import carry, fingerprint, of_version_0_3
from companion.workshop.cli.lessons import Lesson, notation, released, start_page
from companion.workshop.cli.results import Results, of_notebook
from companion.workshop.grading.notebook.versions import FIRST, VERSION, series
from companion.workshop.notebooks import read_notebook

RECORD = ".copied.json"
ASIDE = "aside"
OLD = "0.2 or older"  # which wrote no version


def refresh(root: Path, *, answers: bool = False) -> list[str]:
    """Bring ``work/`` up to date with ``lessons/``; a line for each notebook of which a newer version was laid beside
    one's own, or, if ``answers`` are to be carried over, has got them; and for each lesson that cannot be copied.
    """
    messages = [f"{damage}. The other lessons open." for lesson in released(root) if (damage := lesson.damage())]
    work = root / "work"
    make_room(work)
    for lesson in _sound(root):
        try:
            messages += _refresh_lesson(lesson, work / lesson.name, answers=answers)
        except OSError as error:  # of one lesson; on Windows a file that is open elsewhere, for example
            messages.append(f"{lesson.name} is left as it is: {error}")
    write_start_page(root)
    return messages


def _sound(root: Path) -> list[Lesson]:
    return [lesson for lesson in released(root) if not lesson.damage()]


def write_start_page(root: Path) -> None:
    """``work/README.md``: the map of the lessons, with what is solved and predicted, and where a newer version lies, or
    one's own older one.
    """
    work = root / "work"
    lessons = [lesson for lesson in _sound(root) if (work / lesson.name).is_dir()]
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
        there = copies(work / name, path.stem)
        if others := [copy for copy in there if copy.name != path.name]:
            link = f"[{others[-1].stem}]({quote(f'{name}/{others[-1].name}')})"
            lines.append(f"\n**There is a newer version of lesson {name[:2]}:** {link}. Yours is as you left it.\n")
        record = {}
        with suppress(OSError):  # it is locked for a moment
            record = _read_record(work / name)
        for aside in filter(None, (record.get(copy.name, {}).get(ASIDE) for copy in there)):
            link = f"[your copy as it was]({quote(aside)})"
            lines.append(f"\n**{path.stem} came in a newer version,** and your answers are in it. Here is {link}.\n")
    lines += [f"\n**{line}**\n" for line in outdated(root)]
    lines.append(
        "\nThese are your own copies: no update loses what you write in them. This page is written anew\n"
        "whenever a notebook is saved; `python3 -m companion progress` prints the same,\n"
        "and with `--reset 02` lesson 02 starts anew. `python3 -m companion review` asks again, after days, what you\n"
        "predicted wrongly, and the quizzes.\n\n"
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
    """Return a line for each copy of a lesson that another version of the course released, or that is no notebook."""
    return [
        line
        for lesson in _sound(root)
        for path in lesson.notebooks
        for copy in copies(root / "work" / lesson.name, path.stem)
        for line in _outdated(copy, path, lesson)
    ]


def _outdated(copy: Path, path: Path, lesson: Lesson) -> Iterator[str]:
    """What is to be said of one copy of the notebook at ``path``, and what to do."""
    place, this = f"{copy.name} in work/{lesson.name}", made_with(path)
    command = f"`python3 -m companion progress --reset {lesson.name[:2]}`"
    anew = f"{command} puts it aside, with all answers, and starts a new one."
    try:
        version = made_with(copy)
        record = _read_record(copy.parent)
    except (FileError, OSError) as error:
        yield f"{error}: {anew}" if isinstance(error, FileError) else f"{place}: {error}"
        return
    if (found := encoding(copy.read_bytes())) != "utf-8":
        yield f"{place} is in {found}, which JupyterLab cannot open: save it as UTF-8, without a mark at its begin."
    other = f"{place} is of version {version} of the course, and this is {this}: "
    if copy in _older(path, copy.parent, record, _hash(path)):
        if version not in ("", this):
            yield f"{other}`python3 -m companion lab` carries your answers over into the new one."
    elif version not in ("", this) and not _portable(copy, path):
        yield f"{other}it may not run here. {anew}"


def made_with(path: Path) -> str:
    """Return the version of the course that a notebook was released with, which stands in its metadata; empty where an
    editor has lost these. Raises FileError where it is no notebook.
    """
    course = read_notebook(path)["metadata"].get("companion")
    version = course.get("version", OLD) if course and isinstance(course, dict) else ""
    return version if version == OLD or VERSION.match(str(version)) else ""


def _portable(copy: Path, path: Path) -> bool:
    """Whether what stands in a copy can be carried over into the lesson at ``path``: not from before version 0.3, whose
    lessons were others, from a later one, or from what is no notebook.
    """
    try:
        version, this = made_with(copy), made_with(path)
    except FileError:
        return False
    return version == "" or (OLD not in (version, this) and FIRST <= series(version) <= series(this))


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
    return max(reversed(results), key=lambda result: result.solved, default=Results())


def after_saving(*, model: dict, contents_manager: Any, **_: Any) -> None:
    """Write the start page anew when JupyterLab has saved a notebook, as its ``post_save_hook``."""
    if model.get("type") == "notebook":
        try:
            write_start_page(Path(contents_manager.root_dir).parent)
        except OSError as error:  # never in the way of saving
            print(f"The start page could not be written: {error}", file=sys.stderr)


def _refresh_lesson(lesson: Lesson, folder: Path, *, answers: bool) -> list[str]:
    """Copy what is new; a line for each notebook of the learner's that was left as it is, the new one beside it, or
    whose ``answers`` were carried over.
    """
    folder.mkdir(parents=True, exist_ok=True)
    record = _read_record(folder)
    messages = []
    for source in sorted(path for path in lesson.source.parent.iterdir() if path.is_file()):
        if source.name.startswith("."):
            continue
        version, there = _hash(source), folder / source.name
        copied = {"version": version, "text": _text(source)}
        if source in lesson.notebooks:
            copied["cells"] = [fingerprint(cell) for cell in read_notebook(source)["cells"]]
            if answers and (older := _older(source, folder, record, version)):
                there, aside, message = _carry_over(source, older, record)
                record[there.name] = copied | {ASIDE: aside}
                _write_record(folder, record)
                messages.append(message)
                continue
            there, message = _place(source, folder, record, version)
            messages += [message] * bool(message)
            if there is None:
                continue
        elif there.exists() and _hash(there) != record.get(source.name, {}).get("version"):
            continue  # the learner's own file of that name, or one that was changed
        if not there.exists() or _hash(there) != version:
            data = source.read_bytes()
            atomic_write(there, data.decode(encoding(data)) if source in lesson.notebooks else data)
        record[there.name] = copied
    _write_record(folder, record)
    return messages


def _older(source: Path, folder: Path, record: dict, version: str) -> list[Path]:
    """The copies of an earlier lesson than ``source`` in which somebody has worked: what stands in them can be carried
    over. None where somebody works in a copy of this one already.
    """
    found, text = [], _text(source)
    for copy in copies(folder, source.stem):
        if not _portable(copy, source):
            continue
        known = record.get(copy.name, {"text": text})
        # what its metadata say counts first: JupyterLab may have saved an old one over the new
        earlier = made_with(copy) not in ("", made_with(source))
        current = not earlier and (_text(copy) == text or known.get("version") == version)
        if _text(copy) != known.get("text"):
            if current:
                return []
            found.append(copy)
    return found


def _carry_over(source: Path, older: list[Path], record: dict) -> tuple[Path, str, str]:
    """Carry over, into the lesson ``source``, what stands in that of the ``older`` copies in which most is solved, the
    newest of several. Where it is now, where all of them lie, seen from ``work/``, and what to say.

    Each step leaves what was there: copies are put aside first, and then written over in one rename.
    """
    folder, name = older[0].parent, source.stem
    mine = max(reversed(older), key=lambda copy: of_notebook(copy, name).solved)
    version, this = made_with(mine), made_with(source)
    known = of_version_0_3().union(record.get(mine.name, {}).get("cells", []))
    carried = carry(read_notebook(mine), read_notebook(source), known, version)
    there = copies(folder, name)
    aside = _put_aside([*there, folder / "predictions.json"], folder)
    atomic_write(older[0], json.dumps(carried.notebook, indent=1, ensure_ascii=False) + "\n")
    for copy in there:
        if copy != older[0] and _portable(copy, source):
            copy.unlink()
            record.pop(copy.name, None)
    place = (aside / mine.name).relative_to(folder.parent).as_posix()
    changed = (
        "the lesson has changed" if version in ("", this) else f"yours is of version {version}, and this is {this}"
    )
    return (
        older[0],
        place,
        f"{name}: {changed}; carried over: {carried}. As it was it lies in work/{place}. "
        "Run it once from top to bottom: the checks may say something else now.",
    )


def _put_aside(files: list[Path], folder: Path) -> Path:
    """Copy ``files`` of a lesson's ``folder`` into one in which there is none of them; where they lie. If that was done
    before, and what comes after it was interrupted, it is not done again.
    """
    contents = {path.name: path.read_bytes() for path in files if path.is_file()}
    for n in count(1):
        aside = folder.parent / ASIDE / f"{folder.name} {n}"
        there = {name for name in contents if (aside / name).exists()}
        empty = not (aside.is_dir() and any(aside.iterdir()))
        if empty or (there and all((aside / name).read_bytes() == contents[name] for name in there)):
            break
    for name in contents.keys() - there:
        atomic_write(aside / name, contents[name])
    return aside


def _place(source: Path, folder: Path, record: dict, version: str) -> tuple[Path | None, str]:
    """Where this version of the notebook belongs (None: it is there already, or has to wait until `lab` carries over
    what is written in an older one), and what to say about it.
    """
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
    if _older(source, folder, record, version):
        return None, ""
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
        cells = read_notebook(path)["cells"]
    except FileError:
        return _hash(path)
    text = json.dumps([[cell["cell_type"], "".join(cell["source"])] for cell in cells])
    return hashlib.sha256(text.encode()).hexdigest()


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _write_record(folder: Path, record: dict) -> None:
    atomic_write(folder / RECORD, json.dumps(record, indent=1) + "\n")


def _read_record(folder: Path) -> dict:
    """The record of a folder's copies; an empty one where there is none, or a damaged one. Raises OSError where it
    cannot be read at the moment.
    """
    path = folder / RECORD
    try:
        record = json.loads(patiently(path.read_bytes, path))
        return {name: known for name, known in record.items() if isinstance(known, dict)}
    except (FileNotFoundError, ValueError, AttributeError):
        return {}
