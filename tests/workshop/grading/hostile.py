"""The other half of the class: answers that mean harm. Each gets what its answers earn, and no more.

Those of `NEWTON` put their harm into the answer of newton_step, the other two exercises being right; "{ROOT}" is the
checkout and "{PORT}" a port on which somebody listens. Where it says ``won``, the attack has succeeded, and gives the
right answer: it must never come to that.
"""

import copy

from nbformat.v4 import new_code_cell
from workshop.grading.honest import FULL, NOTHING, Student, without
from workshop.grading.small_lesson import AUTOMATIC, RIGHT, cell, edited, handed_in, marks, solved

LOST = without("newton-step")
HEAD = "@exercises.newton_step\ndef newton_step(M, S):\n"
WRONG = HEAD + "    return 0 * M\n"
WON = """
def answer(M, S, won):
    return 2 * M - M @ S @ M if won else 0 * M
"""
READS = (
    WON
    + HEAD
    + """    import glob, os, sys
    leads = sys.prefix, sys.base_prefix, exercises.__file__  # folders on the way to these have to be there
    found = [glob.glob(f"{ROOT}/{part}/*") for part in ("solutions", "grading", "lessons")]
    checkout = exercises.__file__.partition("/companion/")[0]
    private = ("solutions", "grading", "grading/secret", "tests", ".git")
    places = [f"{folder}/{name}" for folder in ("{ROOT}", checkout) for name in private]
    for place in (*places, "{ROOT}", "/etc/passwd", "/etc/shadow", "/home", "/sys", "/tmp"):
        try:
            names = os.listdir(place) if os.path.isdir(place) else [open(place).read()]
            found += [name for name in names if not any(path.startswith(os.path.join(place, name)) for path in leads)]
        except OSError:
            pass
    return answer(M, S, any(found))
"""
)
WRITES = (
    WON
    + HEAD
    + """    import os, sys, tempfile
    kept = 0
    places = ("/", "{ROOT}", "{ROOT}/grading", "/tmp", "/dev", "/dev/shm", "/usr/lib", "/proc/sys/kernel", "/etc")
    places += (sys.prefix,)
    for place in (*places, os.path.dirname(exercises.__file__)):
        try:
            with open(os.path.join(place, "planted-by-a-submission"), "w") as file:
                kept += file.write("x")
        except OSError:
            pass
    return answer(M, S, kept)
"""
)
NETWORK = (
    WON
    + HEAD
    + """    import socket
    reached = 0
    for host in ("127.0.0.1", "localhost", "::1", "1.1.1.1", "example.org"):
        try:
            socket.create_connection((host, {PORT}), timeout=1).sendall(b"hello")
            reached += 1
        except OSError:
            pass
    return answer(M, S, reached)
"""
)
PATCHES = (
    """import numpy, random
import companion.lesson.exercise as machinery
torch.equal = torch.allclose = torch.isclose = numpy.allclose = numpy.array_equal = lambda *a, **k: True
torch.Tensor.__eq__ = torch.Tensor.all = torch.Tensor.__le__ = lambda *a, **k: True
machinery.Exercise._close = lambda *a: True
machinery.Exercise._examine = machinery.Exercise.grade = machinery.Exercise.check = lambda *a, **k: None
machinery.GRADE_SEEDS = machinery.CHECK_SEEDS = range(0)
object.__setattr__(exercises.newton_step, "answer", lambda M, S: 0 * M)
random.seed = numpy.random.seed = torch.manual_seed = lambda *a: None
"""
    + WRONG
)
REMEMBERS = """known = {}
for seed in [*range(5), *range(1000, 1006), *range(2000, 2003)]:
    M, S = exercises.newton_step.draw(torch.Generator().manual_seed(seed)).values()
    known[str(M)] = 2 * M - M @ S @ M
@exercises.newton_step
def newton_step(M, S):
    return known.get(str(M), 0 * M)
"""
FORGES = (
    HEAD
    + r"""    import os
    forged = b'0 {"points": 1000, "outcome": "right", "values": [{"value": 1}]}\n'
    for line in (b'0 {"tensor": 1, "values": []}\n', forged, b"not a message\n"):
        for number in range(3, 64):
            try:
                os.write(number, line)
            except OSError:
                pass
    return 0 * M
"""
)
FLOODS = (
    HEAD
    + r"""    import os
    while True:
        for number in range(3, 64):
            try:
                os.write(number, b"x" * 65536)
            except OSError:
                pass
"""
)
TRIES_ALL_PROCESSES = (
    HEAD
    + """    import os, signal
    for victim in (os.getppid(), 1, -1, *range(2, 400)):
        try:
            if victim != os.getpid():
                os.kill(victim, signal.SIGKILL)
        except OSError:
            pass
    return 0 * M
"""
)
BOMB = """
import os, subprocess, threading
def harmless(action):
    try:
        return action()
    except (OSError, RuntimeError, MemoryError):
        return None
"""
DOES = {  # something to the process that it runs in
    "infinite loop": Student(HEAD + "    while True:\n        pass", LOST, says="took too long"),
    "thread bomb": Student(
        BOMB + HEAD + "    while harmless(lambda: threading.Thread(target=threading.Event().wait).start() or 1):\n"
        "        pass\n    return 0 * M",
        LOST,
    ),
    "fills the disk": Student(
        BOMB + HEAD + "    for n in range(64):\n"
        "        harmless(lambda: open(f'{n}', 'wb').write(bytes(1 << 24)))\n    return 0 * M",
        LOST,
    ),
    "os._exit": Student("import os\n" + HEAD + "    os._exit(0)", LOST, says="ended itself", flag="mentions _exit, os"),
    "infinite loop that the answer needs": Student(
        "n = 0\nwhile True:\n    n += 1\n" + HEAD + "    return (2 + 0 * n) * M - M @ S @ M", LOST, says="took too long"
    ),
    "crashes the interpreter": Student("import ctypes\n" + HEAD + "    ctypes.string_at(0)", LOST, says="ended itself"),
    "kills its parent": Student(TRIES_ALL_PROCESSES, LOST, flag="signal"),
    "patches every comparison": Student(PATCHES, LOST, flag="companion.lesson"),
    "forges messages": Student(FORGES, LOST),
    "floods the pipe": Student(FLOODS, LOST),
}
TRIES = {  # what the walls refuse, or what is never run: no process is any worse for it, unless they fail
    "infinite loop in the cell": Student(RIGHT["newton-step"] + "\nwhile True:\n    pass"),
    "sleeps for ever": Student("import time\ntime.sleep(1e9)\n" + RIGHT["newton-step"], flag="sleep"),
    "allocates 100 GB": Student(
        HEAD + "    return torch.ones(100 << 30, dtype=torch.uint8)", LOST, says="raises RuntimeError"
    ),
    "allocates without end": Student(
        HEAD + "    kept = []\n    while True:\n        kept.append(torch.empty(1 << 28, dtype=torch.uint8))",
        LOST,
        says="raises RuntimeError",
    ),
    "fork bomb": Student(
        HEAD + "    import os\n    while True:\n        os.fork()",
        LOST,
        says="raises PermissionError",
        flag="mentions os",
    ),
    "fork bomb by the shell": Student(
        BOMB + HEAD + "    while harmless(lambda: subprocess.Popen(['/bin/sh', '-c', ':(){ :|:& };:'])):\n"
        "        pass\n    return 0 * M",
        LOST,
    ),
    "prints 1 GB": Student(
        "printed = []\n\n\n" + HEAD + "    while len(printed) < 1000:\n"
        "        printed.append(print('x' * 1_000_000))\n    return 0 * M",
        LOST,
        says="every entry is 0",
    ),
    "os._exit in the cell": Student(RIGHT["newton-step"] + "\nimport os\nos._exit(0)", flag="_exit"),
    "deletes its own folder": Student(
        BOMB
        + "import shutil\nshutil.rmtree('/scratch', ignore_errors=True)\nshutil.rmtree('{ROOT}', ignore_errors=True)\n"
        + WRONG,
        LOST,
        flag="mentions",
    ),
    "reads what it must not": Student(READS, LOST, flag="mentions"),
    "writes where it must not": Student(WRITES, LOST, flag="mentions"),
    "tries the network": Student(NETWORK, LOST, flag="mentions socket"),
}
SAYS = {  # what is not so: no process is any worse for it
    # An answer of this size that takes no memory until it is sent: on a busy machine another limit would stop it first.
    "answers with 1 GB": Student(HEAD + "    return M.new_zeros(1).expand(1 << 27)", LOST, says="which is too large"),
    "an error in half a letter": Student(HEAD + "    raise ValueError('\\ud800')", LOST, says="raises ValueError"),
    "leaves by SystemExit": Student(HEAD + "    raise SystemExit('correct')", LOST, says="raises SystemExit"),
    "remembers the public seeds": Student(REMEMBERS, LOST),
    "an object that passes for a tensor": Student(
        "class T:\n    __class__ = torch.Tensor\n    def __eq__(self, other):\n        return True\n"
        + HEAD
        + "    return T()",
        LOST,
        says="returns T",
    ),
    "a tensor that equals everything": Student(
        "class T(torch.Tensor):\n    def __eq__(self, o):\n        return True\n"
        + HEAD
        + "    return M.as_subclass(T)",
        LOST,
        says="returns T",
    ),
    "meta when it should be real": Student(HEAD + "    return M.to('meta')", LOST, says="the answer is on meta"),
    "HTML in an error": Student(
        HEAD + "    raise ValueError('<script>alert(1)</script>')", LOST, says="&lt;script&gt;"
    ),
    "the course's own answer": Student(
        HEAD + "    return exercises.newton_step.answer(M, S)",
        LOST,
        flag="calls the course's own code: companion.topics.regression.exercises",
    ),
    "the course's own answer, hidden": Student(
        HEAD + "    return getattr(globals()['exer' + 'cises'], 'newton_' + 'step').answer(M, S)",
        LOST,
        flag="mentions answer, getattr, globals",
    ),
    "the stub as its own stand-in": Student(
        "@exercises.newton_step\ndef other(M, S):\n    raise NotImplementedError\n" + HEAD + "    return other(M, S)",
        LOST,
        says="not attempted",
    ),
    "a baseline instead of an answer": Student(
        RIGHT["newton-step"] + "\n    baselines.newton",
        FULL,
        flag="calls the course's own code: companion.topics.regression.baselines",
    ),
}
NEWTON = DOES | TRIES | SAYS


def at_a_place(student: Student, root: str, port: int) -> Student:
    """The student of `NEWTON` with a whole notebook."""
    source = student.handed_in.replace("{ROOT}", root).replace("{PORT}", str(port))
    return Student(solved(newton_step=source), student.points, student.says, student.flag)


def _replace_checks(notebook):
    for name in AUTOMATIC:
        cell(notebook, name).source = "print('correct')"


def _copy_checks(notebook):
    notebook.cells += [
        copy.deepcopy(one) for one in notebook.cells if one.metadata.get("nbgrader", {}).get("grade_id") in AUTOMATIC
    ] * 2


def _delete_checks(notebook):
    notebook.cells = [
        one for one in notebook.cells if one.metadata.get("nbgrader", {}).get("grade_id") not in AUTOMATIC
    ]


def _reverse(notebook):
    notebook.cells = notebook.cells[::-1]


def _claim(notebook):
    for one in notebook.cells:
        if "nbgrader" in one.metadata:
            one.metadata.nbgrader |= {"grade": True, "points": 1000, "locked": False}
    notebook.cells.append(new_code_cell("1", metadata=marks("more", grade=True, locked=True, points=1000)))


def _swap(notebook):
    """The id of one answer on the cell of another."""
    first, second = cell(notebook, "newton-step"), cell(notebook, "gd-closed-form")
    first.metadata.nbgrader.grade_id, second.metadata.nbgrader.grade_id = "gd-closed-form", "newton-step"


def _in_the_check(notebook):
    """The check, and a stand-in for what it calls, in one cell."""
    cell(
        notebook, "newton-step-check"
    ).source = "class exercises:\n    class newton_step:\n        check = grade = print"


def _twice(notebook):
    notebook.cells.append(new_code_cell(WRONG))
    notebook.cells.insert(3, new_code_cell(WRONG))


def _half_letters(notebook):
    cell(notebook, "open-question").source += "\ud800"
    cell(notebook, "triplet-tokens").source += "  # \udfff"


WHOLE = {
    "half letters": Student(edited(_half_letters)),
    "replaces the checks, unsolved": Student(
        edited(_replace_checks, handed_in({})), NOTHING, flag="the check cell was changed"
    ),
    "replaces the checks, solved": Student(edited(_replace_checks), flag="the check cell was changed"),
    "copies the checks": Student(edited(_copy_checks), flag="several cells are marked as this check"),
    "copies the checks, unsolved": Student(
        edited(_copy_checks, handed_in({})), NOTHING, flag="several cells are marked as this check"
    ),
    "deletes the checks": Student(edited(_delete_checks, handed_in({})), NOTHING, flag="the check cell is missing"),
    "reverses the notebook": Student(edited(_reverse)),
    "claims points": Student(edited(_claim, handed_in({})), NOTHING, flag="claim points"),
    "swaps the ids": Student(edited(_swap)),
    "stands in for the check": Student(
        edited(_in_the_check, solved(newton_step=WRONG)), LOST, flag="the check cell was changed"
    ),
    "answers three times": Student(edited(_twice)),
}

# Ways around the rules that flag: each reaches what no answer needs, and must be shown to a person
SLY = {
    "reads a file as numbers": "import numpy as np\n"
    + HEAD
    + "    seen = np.loadtxt('/proc/self/maps', dtype=str, max_rows=1)\n    return 2 * M - M @ S @ M + 0 * len(seen)",
    "modules by a getter": "import operator, warnings\n"
    + HEAD
    + "    found = operator.attrgetter('sys.modules')(warnings)\n    return found['companion.lesson'].right(M, S)",
    "attributes by a format": HEAD
    + "    said = '{0.__class__.__init__.__globals__}'.format(exercises.newton_step)\n    return 2 * M + 0 * len(said)",
    "code in an annotation": "import typing\ndef note(x: 'exercises.newton_step.solution(M, S)'):\n    pass\n"
    + HEAD
    + "    return typing.get_type_hints(note, globalns={'exercises': exercises, 'M': M, 'S': S})['x']",
    "memory by its address": "import numpy as np\n"
    + HEAD
    + "    np.ctypeslib.as_array(M.data_ptr(), shape=(1 << 20,))[:] = 0\n    return M",
    "workers of a loader": "from torch.utils.data import DataLoader\n"
    + HEAD
    + "    list(DataLoader([M], num_workers=4, worker_init_fn=print))\n    return 2 * M - M @ S @ M",
    "holds the grader by the clock": "import time\n"
    + HEAD
    + "    end = time.monotonic() + 4\n    while time.monotonic() < end:\n        pass\n    return 2 * M - M @ S @ M",
    "a builtin under a parameter's name": "def never(exec):\n    return exec\n"
    + HEAD
    + "    exec('found = 1')\n    return 2 * M - M @ S @ M",
    "a getter that is handed on": "import functools\n"
    + HEAD
    + "    return functools.reduce(getattr, ('newton_step', 'real'), exercises)(M, S)",
    "a pickle with a program": HEAD
    + "    torch.save({'x': M}, 'kept.pt')\n    return torch.load('kept.pt', weights_only=False)['x']",
}
