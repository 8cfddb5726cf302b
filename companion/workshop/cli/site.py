"""``site``: the course as pages to read, in ``build/site``, from what ``run`` has executed."""

import json
import webbrowser
from argparse import Namespace
from pathlib import Path

from companion.workshop.cli import launch
from companion.workshop.cli.lessons import all_lessons, notation
from companion.workshop.cli.setup import ROOT
from companion.workshop.site.build import build
from companion.workshop.site.course import HUB, Chapter, Course

ROOMS = ("core", "topics", "lesson", "pretrained")


def main(arguments: Namespace, root: Path = ROOT) -> int:
    """Build the site; 1 if a lesson has not been executed, or Sphinx warned of something."""
    run = Path(arguments.run)
    notebooks = [path for lesson in all_lessons(root) for path in lesson.notebooks]
    lacking = [path.stem for path in notebooks if not (run / path.name).is_file()]
    if lacking or not (run / "report.json").is_file():
        print(f"site: {run} lacks {', '.join(lacking) or 'report.json'}: `python3 -m companion run` makes it")
        return 1
    warned = build(course(root, run, modules(root)), Path(arguments.out))
    for line in warned:
        print(line)
    index = Path(arguments.out) / "html/index.html"
    print(f"The site is {index}" + f"; Sphinx warned {len(warned)} times" * bool(warned))
    if arguments.open:
        webbrowser.open(index.resolve().as_uri())
    return int(bool(warned))


def course(root: Path, run: Path, modules: tuple[str, ...]) -> Course:
    """Return what the site is made from: the lessons of ``root``, executed in ``run``, and a reference of
    ``modules``.
    """
    entries = {entry["lesson"]: entry for entry in json.loads((run / "report.json").read_text("utf-8"))["lessons"]}
    repository = launch.repository(root)
    chapters = []
    for lesson in all_lessons(root):
        paths = {path.name: f"lessons/{lesson.name}/{path.name}" for path in lesson.notebooks}
        answer = lesson.source.with_name("answer.png")
        chapters.append(
            Chapter(
                lesson.name,
                lesson.facts(),
                run / lesson.source.name,
                lesson.source.with_name("figure.png"),
                entries[lesson.name],
                {name: launch.places(repository, path) for name, path in paths.items()},
                launch.gitpuller(HUB, repository, paths[lesson.source.name]) if repository else "",
                run / lesson.further.name if lesson.further else None,
                answer if answer.is_file() else None,
            )
        )
    return Course(root, chapters, repository, modules, notation())


def modules(root: Path) -> tuple[str, ...]:
    """Return the companion's modules that people read to learn, by name."""
    paths = [path for room in ROOMS for path in sorted((root / "companion" / room).rglob("*.py"))]
    names = [".".join(path.relative_to(root).with_suffix("").parts) for path in paths]
    return tuple(name for name in names if not name.endswith("__init__") and "._" not in name)
