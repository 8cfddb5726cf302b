"""Commands as people start them: in a home that is none, an ASCII locale, a folder with a space and an umlaut, and
where pip is told to install for the user alone. Each ends well, and says nothing that only a maintainer understands.
"""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from commands import called
from sample_lesson import NAME, checkout

ROOT = Path(__file__).resolve().parents[2]
# as `python -m companion`, in this environment: nothing is installed
DOOR = "from companion import __main__; from companion.workshop.cli import setup; setup.missing = lambda *_, **__: []; "
DOOR += "raise SystemExit(__main__.command())"
ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": ""}
PEOPLE = {
    "a home that is a file": ("course", {"HOME": "{}/file"}),
    "no home": ("course", {"HOME": "{}/file/none"}),
    "an ASCII locale": ("course", ASCII),
    "a space and an umlaut": ("my course größe", {}),
    "a user with an umlaut in an ASCII locale": ("größe", ASCII | {"HOME": "{}/größe"}),
    "pip for the user": ("course", {"PIP_USER": "1", "PIP_REQUIRE_VIRTUALENV": "1"}),
}
COMMANDS = {
    "progress": (["progress"], NAME),
    "fetch": (["fetch", "smollm2"], "smollm2: ready in"),
    "run": (["run", "--scale", "smoke"], "The executed notebooks and report.json are in build/run"),
    "lab": (["lab", "--no-browser", "--port", "18961"], "Or copy and paste one of these URLs:"),
}


@pytest.mark.weekly
@pytest.mark.parametrize(("words", "said"), COMMANDS.values(), ids=COMMANDS)
@pytest.mark.parametrize(("name", "more"), PEOPLE.values(), ids=PEOPLE)
def test_a_command_does_on_their_machine_what_it_does_on_ours(tmp_path, name, more, words, said):
    course = tmp_path / name
    shutil.copytree(ROOT / "companion", course / "companion", ignore=shutil.ignore_patterns("weights"))
    assert called("release", root=checkout(course)) == 0
    for file in ("pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / file, course)
    (tmp_path / "models/smollm2").mkdir(parents=True)
    (tmp_path / "file").touch()
    theirs = {"PYTHONPATH": str(course), "COURSE_MODELS": str(tmp_path / "models")}
    theirs |= {name: value.format(tmp_path) for name, value in more.items()}
    log = tmp_path / "said.txt"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-c", DOOR, *words],
            cwd=course,
            env=os.environ | theirs,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
        )
        try:
            for _ in range(600):
                if words[0] == "lab" and said in log.read_text(encoding="utf-8"):
                    process.send_signal(signal.SIGTERM)
                try:
                    status = process.wait(0.2)
                    break
                except subprocess.TimeoutExpired:
                    continue
        finally:
            process.kill()
            process.wait()
    text = log.read_text(encoding="utf-8")
    assert said in text and "Traceback" not in text, text
    assert status in (0, -signal.SIGTERM), text
