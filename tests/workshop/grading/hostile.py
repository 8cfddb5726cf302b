"""The other half of the class: answers that mean harm. Each gets what its answers earn, and no more.

Those of `NEWTON` put their harm into the answer of newton_step, the other two exercises being right; "{ROOT}" is the
checkout and "{PORT}" a port on which somebody listens. Where it says ``won``, the attack has succeeded, and gives the
right answer: it must never come to that.
"""

import copy

from nbformat.v4 import new_code_cell
from workshop.grading.answers import RETURNS, RIGHT, newton_step
from workshop.grading.honest import NOTHING, Student, without
from workshop.grading.small_lesson import AUTOMATIC, cell, edited, grade_id, handed_in, marks, solved

LOST = without("newton-step")
WRONG = newton_step("return 0 * M")
PUBLIC = "companion.topics.regression"
HARMLESS = """import os, subprocess, threading
def harmless(action):
    try:
        return action()
    except (OSError, RuntimeError, MemoryError):
        return None"""


def losing(body: str, above: str = "", says: str = "", flag: str = "") -> Student:
    """Who loses the points of newton_step."""
    return Student(newton_step(body, above), LOST, says, flag)


def attacking(body: str, flag: str = "mentions") -> Student:
    """Who is right if the attack that ``body`` makes has ``won``."""
    return losing(f"{body}\nreturn 2 * M - M @ S @ M if won else 0 * M", flag=flag)


def keeping(above: str = "", below: str = "", flag: str = "") -> Student:
    """Who does harm around a right answer, and keeps the points."""
    return Student(f"{above}{RIGHT['newton-step']}{below}", flag=flag)


READS = """import glob, os, sys
leads = sys.prefix, sys.base_prefix, exercises.__file__  # folders on the way to these have to be there
won = [glob.glob(f"{ROOT}/{part}/*") for part in ("solutions", "grading", "lessons")]
checkout = exercises.__file__.partition("/companion/")[0]
private = ("solutions", "grading", "grading/secret", "tests", ".git")
places = [f"{folder}/{name}" for folder in ("{ROOT}", checkout) for name in private]
for place in (*places, "{ROOT}", "/etc/passwd", "/etc/shadow", "/home", "/sys", "/tmp"):
    try:
        names = os.listdir(place) if os.path.isdir(place) else [open(place).read()]
        won += [name for name in names if not any(path.startswith(os.path.join(place, name)) for path in leads)]
    except OSError:
        pass
won = any(won)"""
WRITES = """import os, sys, tempfile
won = 0
places = ("/", "{ROOT}", "{ROOT}/grading", "/tmp", "/dev", "/dev/shm", "/usr/lib", "/proc/sys/kernel", "/etc")
places += (sys.prefix,)
for place in (*places, os.path.dirname(exercises.__file__)):
    try:
        with open(os.path.join(place, "planted-by-a-submission"), "w") as file:
            won += file.write("x")
    except OSError:
        pass"""
NETWORK = """import socket
won = 0
for host in ("127.0.0.1", "localhost", "::1", "1.1.1.1", "example.org"):
    try:
        socket.create_connection((host, {PORT}), timeout=1).sendall(b"hello")
        won += 1
    except OSError:
        pass"""
PATCHES = """import numpy, random
import companion.lesson.exercise as machinery
torch.equal = torch.allclose = torch.isclose = numpy.allclose = numpy.array_equal = lambda *a, **k: True
torch.Tensor.__eq__ = torch.Tensor.all = torch.Tensor.__le__ = lambda *a, **k: True
machinery.Exercise._close = lambda *a: True
machinery.Exercise._examine = machinery.Exercise.grade = machinery.Exercise.check = lambda *a, **k: None
machinery.GRADE_SEEDS = machinery.CHECK_SEEDS = range(0)
object.__setattr__(exercises.newton_step, "answer", lambda M, S: 0 * M)
random.seed = numpy.random.seed = torch.manual_seed = lambda *a: None"""
REMEMBERS = """known = {}
for seed in [*range(5), *range(1000, 1006), *range(2000, 2003)]:
    M, S = exercises.newton_step.draw(torch.Generator().manual_seed(seed)).values()
    known[str(M)] = 2 * M - M @ S @ M"""
FORGES = r"""import os
forged = b'0 {"points": 1000, "outcome": "right", "values": [{"value": 1}]}\n'
for line in (b'0 {"tensor": 1, "values": []}\n', forged, b"not a message\n"):
    for number in range(3, 64):
        try:
            os.write(number, line)
        except OSError:
            pass
return 0 * M"""
FLOODS = """import os
while True:
    for number in range(3, 64):
        try:
            os.write(number, b"x" * 65536)
        except OSError:
            pass"""
KILLS = """import os, signal
for victim in (os.getppid(), 1, -1, *range(2, 400)):
    try:
        if victim != os.getpid():
            os.kill(victim, signal.SIGKILL)
    except OSError:
        pass
return 0 * M"""
THREADS = (
    "while harmless(lambda: threading.Thread(target=threading.Event().wait).start() or 1):\n    pass\nreturn 0 * M"
)
FILES = "for n in range(64):\n    harmless(lambda: open(f'{n}', 'wb').write(bytes(1 << 24)))\nreturn 0 * M"
SHELLS = "while harmless(lambda: subprocess.Popen(['/bin/sh', '-c', ':(){ :|:& };:'])):\n    pass\nreturn 0 * M"
ENDLESS = "n = 0\nwhile True:\n    n += 1"
PRINTS = "while len(printed) < 1000:\n    printed.append(print('x' * 1_000_000))\nreturn 0 * M"
TAKES = "kept = []\nwhile True:\n    kept.append(torch.empty(1 << 28, dtype=torch.uint8))"
DELETES = "import shutil\nshutil.rmtree('/scratch', ignore_errors=True)\nshutil.rmtree('{ROOT}', ignore_errors=True)"
PASSES = "class T:\n    __class__ = torch.Tensor\n    def __eq__(self, other):\n        return True"
EQUALS = "class T(torch.Tensor):\n    def __eq__(self, o):\n        return True"
STUB = "@exercises.newton_step\ndef other(M, S):\n    raise NotImplementedError"
HIDDEN = "return getattr(globals()['exer' + 'cises'], 'newton_' + 'step').answer(M, S)"
DOES = {  # something to the process that it runs in
    "infinite loop": losing("while True:\n    pass", says="took too long"),
    "thread bomb": losing(THREADS, HARMLESS),
    "fills the disk": losing(FILES, HARMLESS),
    "os._exit": losing("os._exit(0)", "import os", says="ended itself", flag="mentions _exit, os"),
    "infinite loop that the answer needs": losing("return (2 + 0 * n) * M - M @ S @ M", ENDLESS, says="took too long"),
    "crashes the interpreter": losing("ctypes.string_at(0)", "import ctypes", says="ended itself"),
    "kills its parent": losing(KILLS, flag="signal"),
    "patches every comparison": losing("return 0 * M", PATCHES, flag="companion.lesson"),
    "forges messages": losing(FORGES),
    "floods the pipe": losing(FLOODS),
}
TRIES = {  # what the walls refuse, or what is never run: no process is any worse for it, unless they fail
    "infinite loop in the cell": keeping(below="\nwhile True:\n    pass"),
    "sleeps for ever": keeping("import time\ntime.sleep(1e9)\n", flag="sleep"),
    "allocates 100 GB": losing("return torch.ones(100 << 30, dtype=torch.uint8)", says="raises RuntimeError"),
    "allocates without end": losing(TAKES, says="raises RuntimeError"),
    "fork bomb": losing("import os\nwhile True:\n    os.fork()", says="raises PermissionError", flag="mentions os"),
    "fork bomb by the shell": losing(SHELLS, HARMLESS),
    "prints 1 GB": losing(PRINTS, "printed = []\n\n", says="every entry is 0"),
    "os._exit in the cell": keeping(below="\nimport os\nos._exit(0)", flag="_exit"),
    "deletes its own folder": losing("return 0 * M", f"{HARMLESS}\n{DELETES}", flag="mentions"),
    "reads what it must not": attacking(READS),
    "writes where it must not": attacking(WRITES),
    "tries the network": attacking(NETWORK, "mentions socket"),
}
SAYS = {  # what is not so: no process is any worse for it
    # An answer of this size that takes no memory until it is sent: on a busy machine another limit would stop it first.
    "answers with 1 GB": losing("return M.new_zeros(1).expand(1 << 27)", says="which is too large"),
    "an error in half a letter": losing("raise ValueError('\\ud800')", says="raises ValueError"),
    "leaves by SystemExit": losing("raise SystemExit('correct')", says="raises SystemExit"),
    "remembers the public seeds": losing("return known.get(str(M), 0 * M)", REMEMBERS),
    "an object that passes for a tensor": losing("return T()", PASSES, says="returns T"),
    "a tensor that equals everything": losing("return M.as_subclass(T)", EQUALS, says="returns T"),
    "meta when it should be real": losing("return M.to('meta')", says="the answer is on meta"),
    "HTML in an error": losing("raise ValueError('<script>alert(1)</script>')", says="&lt;script&gt;"),
    "the course's own answer": losing(
        "return exercises.newton_step.answer(M, S)", flag=f"calls the course's own code: {PUBLIC}.exercises"
    ),
    "the course's own answer, hidden": losing(HIDDEN, flag="mentions answer, getattr, globals"),
    "the stub as its own stand-in": losing("return other(M, S)", STUB, says="not attempted"),
    "a baseline instead of an answer": keeping(
        below="\n    baselines.newton", flag=f"calls the course's own code: {PUBLIC}.baselines"
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
    notebook.cells += [copy.deepcopy(one) for one in notebook.cells if grade_id(one) in AUTOMATIC] * 2


def _delete_checks(notebook):
    notebook.cells = [one for one in notebook.cells if grade_id(one) not in AUTOMATIC]


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


CHANGED, SEVERAL = "the check cell was changed", "several cells are marked as this check"
WHOLE = {
    "half letters": Student(edited(_half_letters)),
    "replaces the checks, unsolved": Student(edited(_replace_checks, handed_in({})), NOTHING, flag=CHANGED),
    "replaces the checks, solved": Student(edited(_replace_checks), flag=CHANGED),
    "copies the checks": Student(edited(_copy_checks), flag=SEVERAL),
    "copies the checks, unsolved": Student(edited(_copy_checks, handed_in({})), NOTHING, flag=SEVERAL),
    "deletes the checks": Student(edited(_delete_checks, handed_in({})), NOTHING, flag="the check cell is missing"),
    "reverses the notebook": Student(edited(_reverse)),
    "claims points": Student(edited(_claim, handed_in({})), NOTHING, flag="claim points"),
    "swaps the ids": Student(edited(_swap)),
    "stands in for the check": Student(edited(_in_the_check, solved(newton_step=WRONG)), LOST, flag=CHANGED),
    "answers three times": Student(edited(_twice)),
}

# Ways around the rules that flag: each reaches what no answer needs, and must be shown to a person
FORMATS = "said = '{0.__class__.__init__.__globals__}'.format(exercises.newton_step)\nreturn 2 * M + 0 * len(said)"
NOTES = "import typing\ndef note(x: 'exercises.newton_step.solution(M, S)'):\n    pass"
HINTS = "return typing.get_type_hints(note, globalns={'exercises': exercises, 'M': M, 'S': S})['x']"
LOADER = f"list(DataLoader([M], num_workers=4, worker_init_fn=print))\n{RETURNS}"
PICKLES = "torch.save({'x': M}, 'kept.pt')\nreturn torch.load('kept.pt', weights_only=False)['x']"
GETTER = "found = operator.attrgetter('sys.modules')(warnings)\nreturn found['companion.lesson'].right(M, S)"
NUMBERS = f"seen = np.loadtxt('/proc/self/maps', dtype=str, max_rows=1)\n{RETURNS} + 0 * len(seen)"
HOLDS = f"end = time.monotonic() + 4\nwhile time.monotonic() < end:\n    pass\n{RETURNS}"
HANDS_ON = "return functools.reduce(getattr, ('newton_step', 'real'), exercises)(M, S)"
SLY = {
    "reads a file as numbers": newton_step(NUMBERS, "import numpy as np"),
    "modules by a getter": newton_step(GETTER, "import operator, warnings"),
    "attributes by a format": newton_step(FORMATS),
    "code in an annotation": newton_step(HINTS, NOTES),
    "memory by its address": newton_step(
        "np.ctypeslib.as_array(M.data_ptr(), shape=(1 << 20,))[:] = 0\nreturn M", "import numpy as np"
    ),
    "workers of a loader": newton_step(LOADER, "from torch.utils.data import DataLoader"),
    "holds the grader by the clock": newton_step(HOLDS, "import time"),
    "a builtin under a parameter's name": newton_step(
        f"exec('found = 1')\n{RETURNS}", "def never(exec):\n    return exec"
    ),
    "a getter that is handed on": newton_step(HANDS_ON, "import functools"),
    "a pickle with a program": newton_step(PICKLES),
}
