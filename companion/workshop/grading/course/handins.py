"""What was handed in: every version is kept, in the order in which they came, and one of each student's counts.

grading/submitted/STUDENT/NN-topic/NN-topic.ipynb      as it is handed in; may be written over by the next (`folders`)
grading/kept/STUDENT/NN-topic/TIME-HASH.ipynb          every notebook that was ever seen there, or taken in from an LMS
grading/kept/STUDENT/NN-topic/TIME-HASH/helpers.py     the files of Python beside it, which it can import
grading/kept/STUDENT/NN-topic.json                     in which order they came, when and from where; what is said of
                                                       them; and of what could not be read, why

The time is the file's own, or where the settings say ``timestamps = true``, what nbgrader's ``timestamp.txt`` beside it
says. What is handed in later is later, whatever a file says: its time is no earlier than the one's before it. What
counts is the last hand-in before the deadline; if there is none, the last one, late; one that cannot be read only if
all cannot. Where the settings say ``counts = "best"``, all that are in time are marked, or else all, and the one with
the most points counts.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from companion.core.files import atomic_write, read_kept
from companion.workshop.grading.course.folders import Answered, find
from companion.workshop.grading.course.names import file_name, student
from companion.workshop.grading.course.settings import Settings, parse_stamp, stamp
from companion.workshop.grading.course.stamps import NEWEST, OLDEST, parse_time, read_timestamp
from companion.workshop.grading.notebook.files import Unreadable, refused
from companion.workshop.grading.notebook.handout import Handout
from companion.workshop.grading.notebook.submissions import parsed

NEVER = datetime.fromtimestamp(0, UTC)
Results = Mapping[str, dict[str, Any] | str | None]  # of one student's versions, by key


@dataclass(frozen=True)
class HandIn:
    """A version that was handed in, or the ``problem`` that kept it from being read, with ``remarks`` for the
    instructor and the student. ``versions`` says how many there are of that student.
    """

    student: str
    path: Path | None
    when: datetime
    problem: str = ""
    days_late: int = 0
    remarks: tuple[str, ...] = ()
    versions: int = 1

    @property
    def key(self) -> str:
        """By which one hand-in is told from another."""
        return self.path.name if self.path else f"problem: {self.problem}"

    @property
    def dated(self) -> dict[str, Any]:
        """Return what a result says of how and when it was handed in."""
        about = {"when": self.when, "days_late": self.days_late}
        return about | {"remarks": [*self.remarks], "versions": self.versions}

    def helpers(self) -> dict[str, str]:
        """Return the text of each file of Python beside the notebook, by its name."""
        if self.path is None:
            return {}
        paths = sorted(self.path.with_suffix("").glob("*.py"))
        return {path.name: path.read_text(encoding="utf-8-sig") for path in paths}


def answered(data: bytes, handout: Handout) -> bool:
    """Return whether a notebook holds an answer that is no stub, or a written one."""
    try:
        submission = parsed(data, handout)
    except Unreadable:
        return False
    return not submission.answers.keys() <= {*submission.stubs} or any(submission.written.values())


def collect(
    grading: Path, lesson: str, settings: Settings, largest: int, answered: Answered = bool
) -> dict[str, list[HandIn]]:
    """Keep what is new in the folder ``grading`` of a ``lesson`` (NN-topic), if it has at most ``largest`` bytes;
    ``answered`` says of one of several notebooks in a folder whether it holds answers: if each does, names decide.

    Return all versions by student, in the order of their names; the one that counts first, if it can be read, since
    ``settings`` say what is late, then the one that would count without it, and so on.
    """
    last: dict[str, HandIn] = {}
    lessons = {path.name for path in _inside(grading.parent / "solutions")}
    for place in _inside(grading / "submitted"):
        name = student(place.name)
        if problem := _keep_folder(grading, name, lesson, place, (lessons, largest, answered)):
            last[name] = HandIn(name, None, NEVER, problem)
    by_student: dict[str, list[HandIn]] = {}
    for place in _inside(grading / "kept"):
        name = _name(place)
        for entry in _entries(place, lesson):
            mine = by_student.setdefault(name, [])
            mine.append(_hand_in(name, place / lesson, entry, settings, again=bool(mine)))
    for name, hand_in in last.items():
        by_student.setdefault(name, []).append(hand_in)
    return {name: _by_preference(hand_ins) for name, hand_ins in sorted(by_student.items()) if hand_ins}


def _hand_in(name: str, folder: Path, entry: dict[str, Any], settings: Settings, *, again: bool) -> HandIn:
    """A version that was kept, as an ``entry`` of the log says it; ``again`` if there is one before it."""
    when, remarks = parse_stamp(entry["when"]), [*entry["remarks"]]
    late = settings.late_days(name, folder.name, when)
    if entry["problem"]:
        return HandIn(name, None, when, entry["problem"], late, tuple(remarks))
    path = folder / entry["file"]
    if stated := parse_time(entry["stated"]):
        if settings.timestamps:
            late, when = settings.late_days(name, folder.name, stated), stated
        elif settings.late_days(name, folder.name, stated) < late:
            remarks.append(
                f"timestamp.txt says {_shown(stated)}, which is not believed (timestamps in settings.toml): the file's "
                "own time counts"
            )
    elif entry["stated"] and settings.timestamps:
        remarks.append(f"timestamp.txt cannot be read ({entry['stated']!r}): the file's own time counts")
    if "claimed" in entry:
        claimed = _shown(parse_stamp(entry["claimed"]))
        remarks.append(f"its file says {claimed}, which is before the version that came first: it counts as the later")
    if again and entry.get("unsure"):
        remarks.append("it was downloaded after the deadline, is not marked as late, and replaces an earlier version")
    problem = refused(path.read_bytes(), folder.name)
    return HandIn(name, None if problem else path, when, problem, late, tuple(remarks))


def _by_preference(hand_ins: list[HandIn]) -> list[HandIn]:
    """The last in time, those before it, then those that were late, then those that cannot be read; the later first.
    The first is told if one after it cannot be read.
    """
    hand_ins = [*{one.key: one for one in reversed(hand_ins)}.values()][::-1]  # one may have come back
    ranks = [(2 if one.path is None else 1 if one.days_late else 0) for one in hand_ins]
    order = sorted(range(len(hand_ins)), key=lambda at: (ranks[at], -at))
    many = len({one.key for one in hand_ins if one.path})
    first, *rest = (replace(hand_ins[at], versions=many) for at in order)
    unread = [hand_ins[at].problem for at in order[1:] if first.path and ranks[at] == 2 and at > order[0]][:1]
    said = tuple(f"what was handed in after it cannot be read: {problem}" for problem in unread)
    return [replace(first, remarks=first.remarks + said), *rest]


def unmarked(hand_ins: list[HandIn], results: Results, settings: Settings) -> list[HandIn]:
    """Return which versions of a student (as `collect` gives them) must be marked before it can be said which one
    counts. ``results`` are what is known; a text is what kept one from being marked.
    """
    return [one for one in _candidates(hand_ins, results, settings) if results.get(one.key) is None]


def hand_in_that_counts(hand_ins: list[HandIn], results: Results, settings: Settings) -> HandIn | None:
    """Return the version that counts, with a remark where another might have; None if one could not be marked."""
    known = [(one, results.get(one.key)) for one in _candidates(hand_ins, results, settings)]
    if any(not isinstance(result, dict) for _, result in known):
        return None
    best = max(known, key=lambda pair: _points(*pair, settings))[0]  # the first of equals, which is the last one
    said = []
    if len(known) > 1:
        said.append(f"of {len(known)} versions that were marked the best counts, which is of {_shown(best.when)}")
    elif best is not hand_ins[0] and (problem := _problem(hand_ins[0], results)):
        said.append(f"a later version cannot be read ({problem}), so that of {_shown(best.when)} counts")
    return replace(best, remarks=(*best.remarks, *said))


def _candidates(hand_ins: list[HandIn], results: Results, settings: Settings) -> list[HandIn]:
    """The versions of which the best counts, the last first: the last one alone, if the settings say so; one that is
    known to be unreadable only if all are.
    """
    readable = [one for one in hand_ins if not _problem(one, results)] or hand_ins[:1]
    if settings.counts == "last":
        return readable[:1]
    return [one for one in readable if not one.days_late] or readable


def _problem(hand_in: HandIn, results: Results) -> str:
    """Why a version cannot be read, as far as that is known."""
    result = results.get(hand_in.key)
    return hand_in.problem or (result["problem"] if isinstance(result, dict) else "")


def _points(hand_in: HandIn, result: Any, settings: Settings) -> float:
    """What checks gave, less what lateness cost."""
    return sum(entry["points"] for entry in result["exercises"].values()) * settings.factor(hand_in.days_late)


def _shown(when: datetime) -> str:
    return f"{when.astimezone(UTC):%d %B %Y, %H:%M} UTC"


def _keep_folder(grading: Path, name: str, lesson: str, place: Path, search: tuple[set[str], int, Answered]) -> str:
    """Keep the notebook in a student's folder, if there is one; why it cannot be read, if so."""
    try:
        found = find(place, lesson, *search)
        if found is None:
            return ""
        about = {"remarks": found.remarks, "stated": read_timestamp(found.notebook.folder), "files": found.files}
        seconds = min(max(found.notebook.changed, OLDEST.timestamp()), NEWEST.timestamp())  # it may be said to be any
        when, source = datetime.fromtimestamp(seconds, UTC), f"submitted/{place.name}"
        keep(grading, name, lesson, found.notebook.data, when, source=source, **about)
    except Unreadable as error:
        return str(error)
    except OSError as error:
        return f"it cannot be opened or kept ({error.strerror})"
    return ""


def _inside(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _name(place: Path) -> str:
    """Whose hand-ins are kept there. A run that was ended may have left a folder alone, which is named alike."""
    try:
        return (place / "student.txt").read_text(encoding="utf-8")
    except OSError:
        return student(place.name)


def folders(grading: Path, names: Iterable[str]) -> dict[str, str]:
    """Return how the folder of each student is called: as `file_name` says, unless that is kept for another."""
    chosen: dict[str, str] = {}

    def is_free(way: str, name: str) -> bool:
        place = grading / "kept" / way
        return way not in chosen.values() and (not (place / "student.txt").exists() or _name(place) == name)

    for name in names:
        digest = hashlib.sha256(name.encode()).hexdigest()
        ways = file_name(name), *(f"{file_name(name)}-{digest[:many]}" for many in (8, 16, 32, 64))
        chosen[name] = next((way for way in ways if is_free(way, name)), digest)
    return chosen


def keep(
    grading: Path,
    name: str,
    lesson: str,
    data: bytes,
    when: datetime,
    *,
    source: str,
    files: dict[str, bytes] | None = None,
    problem: str = "",
    remarks: list[str] | None = None,
    stated: str = "",
    seen: datetime | None = None,
    unsure: bool = False,
) -> None:
    """Keep in the folder ``grading`` what the student ``name`` has handed in for ``lesson``: the notebook, as ``data``,
    with the Python ``files`` beside it, or the ``problem`` that kept it from being read; and the ``remarks`` on it.

    It came at the time ``when`` (and a timestamp beside it ``stated`` another) from the ``source``. That is a folder,
    of which the very one that was kept last is not kept again, and another one is later, whatever its time; or an LMS,
    if it is said when it was downloaded (``seen``), and then what was downloaded later is later; it may be ``unsure``
    whether it was handed in before the deadline.
    """
    place, files = grading / "kept" / folders(grading, [name])[name], files or {}
    log = _entries(place, lesson)
    entry = {"when": stamp(when), "source": source, "problem": problem, "stated": stated, "remarks": remarks or []}
    entry |= {"seen": stamp(seen), "unsure": unsure} if seen else {}
    parts = [data, *(f"\0{file}\0".encode() + files[file] for file in sorted(files))]
    ending = f"-{hashlib.sha256(b''.join(parts)).hexdigest()[:16]}.ipynb"
    alike = [one for one in log if problem == one["problem"] and (problem or one["file"].endswith(ending))]
    at = len(log)
    if seen:
        at = next((number for number, one in enumerate(log) if one.get("seen", "") > entry["seen"]), at)
        same = [one for one in alike if one.get("seen") == entry["seen"] or one in log[max(at - 1, 0) : at]]
    else:
        last = [one for one in log if one["source"] == source][-1:]
        same = [one for one in alike if one in (last or log[-1:])]
        before = min(parse_stamp(log[-1]["when"]), datetime.now(UTC)) if log else when
        entry |= {"when": stamp(before), "claimed": stamp(when)} if when < before else {}
    same = same or [one for one in alike if one["source"] == "" and one["when"] == stamp(when)]
    if same:
        said = {key: entry[key] for key in ("stated", "remarks", "source")}
        changed = [one for one in same if one["source"] in ("", source) and one != one | said]
        for one in changed:
            one.update(said)
        if not changed:
            return
    place.mkdir(parents=True, exist_ok=True)
    atomic_write(place / "student.txt", name)
    if not same:
        log.insert(at, entry)
    if not problem and not same:
        entry["file"] = f"{entry['when']}{ending}"
        for file, text in files.items():
            atomic_write(place / lesson / entry["file"].removesuffix(".ipynb") / file, text)
        atomic_write(place / lesson / entry["file"], data)
    atomic_write(place / f"{lesson}.json", json.dumps(log, indent=1) + "\n")


def _entries(place: Path, lesson: str) -> list[dict[str, Any]]:
    """What is kept of a student's hand-ins for a lesson, in the order in which they came: what the log lists, then what
    a run has left that was ended before it wrote that; without a log in the order of its times.
    """

    def is_log(content: Any) -> bool:
        return all({"when", "source", "problem"} <= one.keys() and (one["problem"] or one["file"]) for one in content)

    log = read_kept(place / f"{lesson}.json", "a log of hand-ins", is_log) or []
    log = [one for one in log if one["problem"] or (place / lesson / one["file"]).is_file()]
    listed = {one.get("file") for one in log}
    blank = {"source": "", "problem": "", "stated": "", "remarks": []}
    unlisted = [
        {"file": path.name, "when": stamp(when)} | blank
        for path in sorted((place / lesson).glob("*.ipynb"))
        if path.name not in listed and (when := _kept_at(path))
    ]
    return log + unlisted


def _kept_at(path: Path) -> datetime | None:
    """The time in the name of a kept notebook; None for what is none of ours: a copy, what a system adds, a folder."""
    try:
        return parse_stamp(path.name.partition("Z-")[0] + "Z") if path.is_file() else None
    except ValueError:
        return None
