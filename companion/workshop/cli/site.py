"""``site``: the course as pages to read, in ``build/site``, from what ``run`` has executed."""

import json
import webbrowser
from argparse import Namespace
from pathlib import Path

from companion.workshop.cli import launch
from companion.workshop.cli.lessons import Lesson, everything, notation
from companion.workshop.cli.setup import ROOT
from companion.workshop.site.build import PICTURES, build
from companion.workshop.site.course import HUB, Chapter, Course

ROOMS = ("core", "topics", "lesson", "pretrained")


def main(arguments: Namespace, root: Path = ROOT) -> int:
    """Build the site; 1 if a lesson has not been executed or has stopped, or Sphinx warned of something; 2 if something
    else lies where it is to go.
    """
    run, out = Path(arguments.run), Path(arguments.out)
    if out.is_dir() and any(out.iterdir()) and not (out / PICTURES).is_dir():  # all that is there will be deleted
        print(
            f"site: out = {str(out)!r}: has other files; must be a new folder, an empty one, or that of an earlier site"
        )
        return 2
    if problems := unfit(root, run):
        print("\n".join(f"site: {problem}" for problem in problems))
        print("No page was made, as the pages show all lessons with their answers.")
        return 1
    warned = build(course(root, run, modules(root)), out)
    for line in warned:
        print(line)
    index = out / "html/index.html"
    print(f"The site is {index}" + f"; Sphinx warned {len(warned)} times" * bool(warned))
    if arguments.open:
        webbrowser.open(index.resolve().as_uri())
    return int(bool(warned))


def unfit(root: Path, run: Path) -> list[str]:
    """Return why no site can be made of ``run``, and what to do: a line for each cell at which a lesson has stopped,
    and one for what is not there.
    """
    stopped, lacking, again = [], [], []
    entries = _entries(run)
    for lesson in everything(root):
        number, entry = lesson.name[:2], entries.get(lesson.name, {})
        if errors := entry.get("errors"):
            said = (error.partition("\n")[0] for error in errors)
            stopped += [f"it stopped at {each}; mend it, then `python3 -m companion run {number}`" for each in said]
        elif missing := [
            path.stem for path in lesson.notebooks if not entry or Lesson(path.stem, run / path.name).unread()
        ]:
            lacking += missing
            again.append(number)
    if lacking:
        numbers = "" if not entries else f" {' '.join(again)}"
        stopped.append(f"{run} lacks {', '.join(lacking)}: `python3 -m companion run{numbers}` makes it")
    return stopped


def _entries(run: Path) -> dict[str, dict]:
    """The entries of a run's report, by lesson; none where there is no report that can be read."""
    try:
        report = json.loads((run / "report.json").read_bytes())
        return {entry["lesson"]: entry for entry in report["lessons"]}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def course(root: Path, run: Path, modules: tuple[str, ...]) -> Course:
    """Return what the site is made from: the lessons of ``root``, executed in ``run``, and a reference of
    ``modules``.
    """
    entries = _entries(run)
    repository = launch.repository(root)
    chapters = []
    for lesson in everything(root):
        paths = {path.name: f"lessons/{lesson.name}/{path.name}" for path in lesson.notebooks}
        executed, answer = Lesson(lesson.name, run / lesson.source.name), lesson.source.with_name("answer.png")
        chapters.append(
            Chapter(
                lesson.name,
                (executed if executed.source.is_file() else lesson).facts(),
                executed.source,
                lesson.source.with_name("figure.png"),
                entries[lesson.name],
                {name: launch.places(repository, path) for name, path in paths.items()},
                launch.gitpuller(HUB, repository, paths[lesson.source.name]) if repository else "",
                {title: run / path.name for title, path in lesson.beside.items()},
                answer if answer.is_file() else None,
            )
        )
    return Course(root, chapters, repository, modules, notation())


def modules(root: Path) -> tuple[str, ...]:
    """Return the companion's modules that people read to learn, by name."""
    paths = [path for room in ROOMS for path in sorted((root / "companion" / room).rglob("*.py"))]
    names = [".".join(path.relative_to(root).with_suffix("").parts) for path in paths]
    return tuple(name for name in names if not name.endswith("__init__") and "._" not in name)
