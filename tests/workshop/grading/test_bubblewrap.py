"""The walls' table of system calls is the kernel's, and a machine that cannot have walls is told why."""

import ctypes
import ctypes.util
import inspect
import json
import subprocess
import sys
from pathlib import Path

import pytest
from wrong_answers.cases import EXERCISES

from companion.workshop.grading.sandbox import bubblewrap, package

LIBRARY = ctypes.util.find_library("seccomp")


@pytest.mark.skipif(LIBRARY is None, reason="libseccomp is not installed")
@pytest.mark.parametrize("machine", bubblewrap.ARCHITECTURES)
def test_the_calls_have_the_numbers_that_libseccomp_knows(machine):
    resolve = ctypes.CDLL(LIBRARY).seccomp_syscall_resolve_name_arch
    resolve.argtypes, column = [ctypes.c_uint32, ctypes.c_char_p], list(bubblewrap.ARCHITECTURES).index(machine)
    named = bubblewrap.CALLS | {"clone": bubblewrap.CLONE, "clone3": bubblewrap.CLONE3, "mmap": bubblewrap.MMAP}
    named |= {name: numbers for name, (numbers, *_) in bubblewrap.OPTIONS.items()}
    known = {name: resolve(bubblewrap.ARCHITECTURES[machine], name.encode()) for name in named}
    # some are younger than some copies of the library; what a machine does not have is below 0
    wrong = {name: number for name, number in known.items() if (named[name][column] or -1) != max(number, -1)}
    assert wrong.keys() <= {"memfd_secret", "setxattrat", "landlock_create_ruleset"}


def test_there_is_a_program_for_every_machine(monkeypatch, tmp_path):
    for machine in bubblewrap.ARCHITECTURES:
        monkeypatch.setattr(bubblewrap.platform, "machine", lambda machine=machine: machine)
        with (tmp_path / machine).open("w+b") as file:
            bubblewrap.seccomp(file)
        assert len((tmp_path / machine).read_bytes()) % 8 == 0


def test_a_machine_without_walls_is_told_why(monkeypatch):
    monkeypatch.setattr(bubblewrap.shutil, "which", lambda name: None)
    assert "apt-get install bubblewrap" in bubblewrap.missing()
    monkeypatch.setattr(bubblewrap.shutil, "which", lambda name: "/usr/bin/bwrap")
    monkeypatch.setattr(bubblewrap.platform, "machine", lambda: "z80")
    assert "z80" in bubblewrap.missing()


@pytest.fixture
def _tried_anew(monkeypatch):
    monkeypatch.setattr(bubblewrap, "_trial", bubblewrap._trial.__wrapped__)


LINUX = sys.platform == "linux" and bubblewrap.platform.machine() in bubblewrap.ARCHITECTURES


@pytest.mark.skipif(not LINUX, reason="there are no walls")
@pytest.mark.usefixtures("_tried_anew")
def test_a_kernel_without_user_namespaces_is_refused(monkeypatch):
    monkeypatch.setattr(
        bubblewrap, "command", lambda *_: [sys.executable, "-c", "import sys; sys.exit('no namespace')"]
    )
    monkeypatch.setattr(bubblewrap.shutil, "which", lambda name: name)
    assert bubblewrap.missing().startswith("bubblewrap does not work here: no namespace")


@pytest.mark.needs("sandbox")
@pytest.mark.usefixtures("_tried_anew")
def test_a_python_without_its_packages_is_refused_in_a_sentence(monkeypatch):
    assert bubblewrap.missing() == ""
    monkeypatch.setattr(bubblewrap, "paths", lambda: [path for path in sys.path if "site-packages" not in path])
    said = bubblewrap.missing()
    assert said.startswith("inside the sandbox Python does not find what it needs (ModuleNotFoundError: No module")
    assert "`python3 -m venv`" in said and "\n" not in said
    monkeypatch.setattr(bubblewrap.sys, "executable", "/no/python")
    assert "/no/python" in bubblewrap.missing() and "AppArmor" not in bubblewrap.missing()


def with_packages(folder: Path) -> str:
    (folder / "given-1.0.dist-info").mkdir(parents=True)
    return str(folder)


def test_packages_outside_of_the_environment_are_seen_but_no_checkout_and_no_home(monkeypatch, tmp_path):
    monkeypatch.setattr(bubblewrap, "ROOT", tmp_path / "course")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    site = ".local/lib/python3/site-packages"
    own = [with_packages(tmp_path / place) for place in (f"home/{site}", "modules/torch", f"course/.venv/{site}")]
    (tmp_path / "other/companion").mkdir(parents=True)
    never = [with_packages(tmp_path / place) for place in ("home", "course", "course/vendored", "other", ".")]
    (tmp_path / "plain").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "course")
    never += [str(tmp_path / "plain"), str(tmp_path / "nowhere"), str(tmp_path / "link"), "relative", ""]
    monkeypatch.setattr(bubblewrap.sys, "path", [*own, *never, *sys.path])
    assert bubblewrap._elsewhere()[:3] == own and bubblewrap.paths()[:3] == own
    assert not {*never} & {*bubblewrap._elsewhere(), *bubblewrap.paths()}
    (tmp_path / "home" / site / "companion").mkdir()
    command = bubblewrap.command(None, 1 << 20, 3)
    assert command[command.index(own[0]) - 1] == "--ro-bind-try"
    assert command[command.index(f"{own[0]}/companion") - 1] == "--tmpfs", "a copy of the course is covered"


def test_the_sandboxed_course_has_no_answers():
    for course in (False, True):
        place = package.without_answers(course=course) / "companion"
        files = {path.relative_to(place).as_posix() for path in place.rglob("*") if path.is_file()}
        assert {"topics/regression/exercises/__init__.py", "topics/limits/exercises.py", "lesson/exercise.py"} <= files
        asked = {name for name in files if "exercise" in name or "near_misses" in name}
        assert {(place / name).read_text() for name in asked} == {package.STAND_IN}
        assert ("topics/regression/baselines.py" in files) is course
        assert ("core/decoder.py" in files) is course, "what a model imports"
        rooms = {name.rpartition("/")[0] for name in files}
        records = {"measured", "published", "weights", "lesson/widgets"}  # what a notebook looks up
        assert records <= rooms if course else not records & rooms
        assert rooms - records <= {
            "core",
            "lesson",
            *(room for room in rooms if room.startswith(("topics", "lesson/near_misses"))),
        } | {"", "pretrained", "workshop", "workshop/grading", "workshop/grading/sandbox"}
        assert not any(name.endswith("mistakes.toml") for name in files)


def test_a_checkout_inside_an_environment_is_covered(monkeypatch):
    monkeypatch.setattr(bubblewrap, "SYSTEM", (str(Path(bubblewrap.ROOT).parent),))
    command = bubblewrap.command(Path("/course"), 1 << 20, 3)
    covered = command.index(str(bubblewrap.ROOT), command.index("--tmpfs"))
    assert command[covered - 1] == "--tmpfs"


def fingerprint(function):
    """What a function computes with, whatever its name and docstring."""
    code = function.__code__
    constants = [value for value in code.co_consts[1:] if not inspect.iscode(value)]
    return repr((code.co_code.hex(), code.co_names, code.co_varnames, constants))


IMPORTS_ALL = """
import importlib, inspect, json, pkgutil, sys
sys.path.insert(0, sys.argv[1])
import companion

FINGERPRINT

found = {}
for module in pkgutil.walk_packages(companion.__path__, "companion."):
    loaded = importlib.import_module(module.name)
    for name in {*dir(loaded), *sys.argv[2:]}:
        value = getattr(loaded, name, None)
        real = hasattr(value, "answer") and hasattr(value, "draw") and not inspect.ismodule(value)
        known = fingerprint(value) if inspect.isfunction(value) else ""
        found[f"{module.name}.{name}"] = "an answer" if real else known
print(json.dumps(found))
""".replace("FINGERPRINT", inspect.getsource(fingerprint))


def test_no_name_that_can_be_imported_inside_is_an_answer():
    names = {exercise.name for exercise in EXERCISES.values()}
    place = package.without_answers(course=True)
    command = [sys.executable, "-I", "-c", IMPORTS_ALL, str(place), *names]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert "companion.topics.regression.baselines.newton" in found
    assert "companion.topics.regression.exercises.newton_step" in found, "a stand-in"
    assert not [name for name, what in found.items() if what == "an answer"]
    theirs = {fingerprint(inspect.unwrap(exercise.answer)) for exercise in EXERCISES.values()}
    assert not [name for name, what in found.items() if what in theirs]
