"""The rules of the house that a program can check."""

import ast
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import yaml

from companion.workshop.cli.lessons import all_lessons

ROOT = Path(__file__).resolve().parents[1]
PAGES = [path.name for path in sorted(ROOT.glob("*.md"))]
SMALLER = "ship fewer seeds, or a smaller model (CONTRIBUTING.md, a new checkpoint)"
MACHINE = re.compile(r"(?<![\w.])(/root|/home/\w+|/Users/\w+|/tmp)/[\w.-]+")


def run(*command: str) -> subprocess.CompletedProcess:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "command",
    [
        ["-c", "import sys; from importlinter.cli import lint_imports_command; sys.exit(lint_imports_command())"],
        ["-m", "ruff", "check"],
        ["-m", "ruff", "format", "--check"],
        ["-m", "codespell_lib", *PAGES, "companion", "solutions", "tests", "binder"],
    ],
    ids=["layers", "ruff-check", "ruff-format", "codespell"],
)
def test_the_checkers_find_nothing(command):
    done = run(sys.executable, *command)
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_runs_before_a_commit_is_what_the_tests_run():
    [local] = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    hooks = {hook["id"]: hook for hook in local["hooks"]}
    assert list(hooks) == ["nbstripout", "ruff-check", "ruff-format", "codespell"]
    pinned = (ROOT / "constraints.txt").read_text().splitlines()
    assert [need for hook in hooks.values() for need in hook["additional_dependencies"] if need not in pinned] == []
    looked_at = [str(path.relative_to(ROOT)) for path in tracked() if path.suffix in (".py", ".md", ".ipynb")]
    spelled = {name.partition("/")[0] for name in looked_at if re.search(hooks["codespell"]["files"], name)}
    assert spelled == {*PAGES, "companion", "solutions", "tests"}
    stripped = {name.partition("/")[0] for name in looked_at if re.search(hooks["nbstripout"]["files"], name)}
    assert stripped == {"solutions"}


def tracked() -> list[Path]:
    files = run("git", "ls-files", "-z").stdout.split("\0")
    return [ROOT / name for name in files if name and (ROOT / name).is_file()]


def too_large(sizes: dict[str, int], lessons: int) -> dict[str, str]:
    """What of the weights (MiB by file name) is above its limit, in words: a file's, a topic's, and that of all."""
    mib = {name: size / 2**20 for name, size in sizes.items()}
    topics = Counter()
    for name, size in mib.items():
        topics[name.partition("-")[0]] += size
    limits = [(name, size, 4) for name, size in mib.items()] + [(name, size, 16) for name, size in topics.items()]
    limits.append(("all", sum(mib.values()), 3.5 * lessons))
    return {name: f"{size:.1f} MiB; at most {most:g}: {SMALLER}" for name, size, most in limits if size > most}


def test_the_shipped_weights_are_small_enough_to_clone():
    sizes = {path.name: path.stat().st_size for path in tracked() if path.suffix == ".safetensors"}
    assert too_large(sizes, len(all_lessons())) == {}


def test_weights_grow_with_the_lessons_alone():
    waves = {f"waves-{number}.safetensors": 3 * 2**20 for number in range(5)}
    assert too_large(waves, lessons=5) == {}
    assert too_large(waves, lessons=4) == {"all": f"15.0 MiB; at most 14: {SMALLER}"}
    waves["waves-5.safetensors"] = 5 * 2**20
    assert list(too_large(waves, lessons=9)) == ["waves-5.safetensors", "waves"]


def test_no_source_file_is_longer_than_600_lines():
    read = [
        path for path in tracked() if path.suffix == ".py" and "wrong_answers" not in path.parts
    ]  # tables of cases, not code
    long = [path for path in read if len(path.read_text(encoding="utf-8").splitlines()) > 600]
    assert not long


def test_no_file_knows_the_machine_it_was_written_on():
    text = [
        path
        for path in tracked()
        if path.suffix in {".py", ".md", ".toml", ".txt", ".ipynb", ".cff"} and path != Path(__file__)
    ]
    assert not [f"{path}: {found[0]}" for path in text if (found := MACHINE.search(path.read_text(encoding="utf-8")))]


def undecoded(path: Path) -> list[str]:
    """Where text is read or written without saying its encoding, which on Windows is not UTF-8."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call) or "encoding" in {keyword.arg for keyword in node.keywords}:
            continue
        name, words = ast.unparse(node.func).rpartition(".")[2], [ast.unparse(word) for word in node.args]
        is_text = any(re.fullmatch(r"'[rwax]\+?t?'", word) for word in words) or "newline" in str(ast.dump(node))
        if (name == "open" and is_text) or (name in ("read_text", "write_text") and "'utf-8'" not in words):
            found.append(f"{path.name}:{node.lineno}: {ast.unparse(node)}")
    return found


def test_every_text_is_read_and_written_as_utf_8():
    linux_alone = {"bubblewrap.py", "sandbox.py"}  # what they read is the kernel's
    modules = [path for path in (ROOT / "companion").rglob("*.py") if path.name not in linux_alone]
    found = [place for path in modules for place in undecoded(path)]
    known = re.compile(r"distribution\.read_text\(|(?<!\.)\bread_text\(")  # a package's has no encoding, ours finds it
    assert [place for place in found if not known.search(place)] == []


def test_weights_are_safetensors_and_nothing_is_pickled():
    assert not [path for path in tracked() if path.suffix in {".pt", ".pth", ".pkl", ".npy", ".npz", ".bin"}]
    loads = re.compile(  # what others trained may be read with `weights_only`, which runs nothing
        r"\btorch\.load\((?!.*\bweights_only=True\))|\b(torch\.(save|dump)|joblib\.(load|save|dump))\("
        r"|\b(import|from) pickle\b|\bjoblib import .*\b(load|dump)\b|\ballow_pickle="
    )
    assert not [path for path in (ROOT / "companion").rglob("*.py") if loads.search(path.read_text(encoding="utf-8"))]


ALLOWED_TWICE = {
    "examine": "of each topic: its probes on a model that others trained",
    "is_stub": "an attempt's own function while it runs; the source of a submission's answer, which is not run",
    "Question": "of a prediction, as its widget; of an exercise, as grading reads it off a notebook",
}
REBUILT = {  # exercises that keep the name of the course's own function: a learner who is right has written that one
    "best_so_far": "topics/structures/probes.py",
    "binary_search": "topics/structures/baselines/search.py",
    "conjugate_gradient": "topics/regression/baselines.py",
    "first_step": "topics/multihead/baselines.py",
    "interval": "topics/memories/probes.py",
    "recalled": "topics/bigrams/probes.py",
    "similarity_of_errors": "topics/regression/probes.py",
    "soft_sort": "topics/structures/model.py",
    "softmax_update": "topics/memories/by_hand.py",
}


def is_exercise(node: ast.stmt) -> bool:
    """Whether a definition is the course's answer to an exercise."""
    made = [ast.unparse(each) for each in getattr(node, "decorator_list", [])]
    return any(each.startswith(("exercise(", "summit(")) for each in made)


def defined() -> dict[str, set[str]]:
    """Where each public function and class of the companion is defined, but for exercises; all of the workshop, which
    nobody reads to learn, counts as one place.
    """
    places: dict[str, set[str]] = {}
    for path in (ROOT / "companion").rglob("*.py"):
        place = path.relative_to(ROOT / "companion").as_posix()
        place = "machinery" if place.startswith(("workshop/", "__main__")) else place
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_") | is_exercise(node):
                places.setdefault(node.name, set()).add(place)
    return places


def exercises() -> list[str]:
    """The names of all exercises, which are those of the functions that learners write."""
    topics = ROOT / "companion/topics"
    paths = [*topics.glob("*/exercises.py"), *topics.glob("*/exercises/*.py")]
    return [node.name for path in paths for node in ast.parse(path.read_text("utf-8")).body if is_exercise(node)]


def test_no_public_name_means_two_things():
    twice = {name: sorted(places) for name, places in defined().items() if len(places) > 1}
    new = {name: places for name, places in twice.items() if name not in ALLOWED_TWICE}
    assert not new, f"public names of the whole course are taken once; give the new one another name: {new}"
    assert twice.keys() == ALLOWED_TWICE.keys()


def test_an_exercise_shares_its_name_with_the_function_that_it_rebuilds_alone():
    names, places = exercises(), defined()
    assert len(names) == len(set(names)) > 100
    shared = {name: "".join(places[name]) for name in names if name in places}
    assert shared == REBUILT, "give the exercise a name that no function has, or list it in REBUILT"


def unexplained(path: Path) -> list[str]:
    """Parameters of public functions with four or more of them that the docstring does not have between backticks."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.FunctionDef) or node.name.startswith("_") or ast.get_docstring(node) is None:
            continue
        if is_exercise(node) or any("measurement(" in ast.unparse(decorator) for decorator in node.decorator_list):
            continue  # a lesson explains its exercises; a decorator names seed, scale, and the columns of a table
        arguments = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
        given = {"self", "cls"}
        if any(ast.unparse(decorator) == "as_sampler" for decorator in node.decorator_list):
            given |= {"config", "batch", "generator", "done"}  # of every sampler, as its decorator says
        names = [argument.arg for argument in arguments if argument.arg not in given]
        quoted = set(re.findall(r"\w+", " ".join(re.findall(r"``(.*?)``", ast.get_docstring(node), re.DOTALL))))
        found += [f"{node.name}: {name}" for name in names if len(names) >= 4 and name not in quoted]
    return found


def test_from_four_parameters_on_a_docstring_names_every_one():
    modules = [path.relative_to(ROOT).as_posix() for path in (ROOT / "companion").rglob("*.py")]
    found = {name: missing for name in modules if (missing := unexplained(ROOT / name))}
    assert found == {}


NOT_YET_BY_VERB = ("topics/*/measured.py", "topics/*/recipes.py")  # left out until they follow
CLAUSES = re.compile(r"(What|How|Of|Whether|Where|Which)\b")
NO_VERB = re.compile(CLAUSES.pattern + r"|(An?|By|Every|Into|The|This|Within) ")


def public_functions(node: ast.AST) -> list[ast.FunctionDef]:
    """Public functions of a module, and public methods of its classes; what a function defines within is its own."""
    inside = list(ast.iter_child_nodes(node))
    methods = [found for part in inside if isinstance(part, ast.ClassDef) for found in public_functions(part)]
    return [part for part in inside if isinstance(part, ast.FunctionDef) and part.name[0] != "_"] + methods


def test_a_docstring_says_first_what_the_function_does():
    """In core and lesson, which are read first, that of a private function too, and with a verb."""
    found = []
    for path in (ROOT / "companion").rglob("*.py"):
        place = path.relative_to(ROOT / "companion")
        if not any(place.match(pattern) for pattern in NOT_YET_BY_VERB):
            tree, first = ast.parse(path.read_text(encoding="utf-8")), place.parts[0] in ("core", "lesson")
            of_all = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
            functions = of_all if first else public_functions(tree)
            texts = [(function.name, ast.get_docstring(function) or "") for function in functions]
            wrong = NO_VERB if first else CLAUSES
            found += [f"{place}: {name}: {text}" for name, text in texts if wrong.match(text)]
    assert found == [], "begin with what it does: Return, Draw, Train"


def untested(name: str) -> list[str]:
    """Return the modules of a topic's part, such as ``data``, without a test file, and their public functions that it
    does not import (what is imported is used: ruff).
    """
    topics, found = ROOT / "companion/topics", []
    for path in sorted([*topics.glob(f"*/{name}.py"), *topics.glob(f"*/{name}/[!_]*.py")]):
        place = path.relative_to(topics)
        test = ROOT / "tests/topics" / place.with_name(f"test_{path.name}")
        nodes = [*ast.walk(ast.parse(test.read_text("utf-8") if test.is_file() else ""))]
        named = {node.name for node in nodes if isinstance(node, ast.alias)}
        named |= {node.attr for node in nodes if isinstance(node, ast.Attribute)}
        functions = [node.name for node in ast.parse(path.read_text("utf-8")).body if isinstance(node, ast.FunctionDef)]
        found += [str(place)] * (not test.is_file())
        found += [f"{place}: {function}" for function in functions if function[0] != "_" and function not in named]
    return found


@pytest.mark.parametrize("name", ["data", "baselines", "by_hand", "probes"])
def test_functions_are_tested_in_the_file_of_their_module(name):
    assert untested(name) == [], f"import and test each in tests/topics/TOPIC/test_{name}.py or {name}/test_MODULE.py"
