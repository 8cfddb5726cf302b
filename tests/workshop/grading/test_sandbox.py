"""What the sandbox is made of, looked at from inside."""

import os
import re
import time
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

import pytest
import torch

from companion.lesson.disturbed import VARIABLE, disturbed, one_unit_off
from companion.workshop.grading.sandbox import bubblewrap, sandbox, wire
from companion.workshop.grading.sandbox.sandbox import Limits, Process, SandboxError, Stopped

pytestmark = pytest.mark.needs("sandbox")
JOB = {
    "define": "f",
    "exercise": ["companion.topics.regression.exercises", "newton_step"],
    "function": "f",
    "before": [],
    "goes_on": False,
    "cell": 0,
}

CALL = {"call": "f", "wide": False, "places": []}


@pytest.fixture(scope="module")
def process():
    with Process(Limits()) as process:
        process.send(wire.encode({"limits": asdict(process.limits)}))
        yield process


@pytest.fixture
def limited():
    """Starts a process of one's own, in which something may have been done ``before`` it had limits."""
    with ExitStack() as stack:

        def started(before="", *, unsafe=False):
            process = stack.enter_context(Process(Limits(), unsafe=unsafe))
            if before:
                inside(process, before)
            process.send(wire.encode({"limits": asdict(process.limits)}))
            return process

        yield started


def inside(process, body: str, seconds: float = 20):
    """What ``f`` with this body returns in the sandbox, in words: the error that it raises with them."""
    lines = "\n    ".join(body.splitlines())
    define(process, f"def f():\n    import os, sys\n    {lines}", seconds)
    process.send(wire.encode(CALL, []), seconds)
    message, _ = wire.decode(*process.receive())
    return message


def define(process, answer: str, seconds: float = 20):
    process.allow(seconds)
    process.send(wire.encode(JOB | {"answer": answer}))
    assert b'"failed": false' in process.receive()[0]  # of what stands before the answer's cell
    assert b'"ready"' in process.receive()[0]


def said(process, expression: str) -> str:
    return inside(process, f"raise ValueError({expression})")["text"]


def test_it_is_nobody_and_has_no_capability(process):
    assert said(process, "(os.getuid(), os.getgid())") == "(65534, 65534)"
    status = said(process, "open('/proc/self/status').read()")
    assert all(f"{name}:\t0000000000000000" in status for name in ("CapEff", "CapBnd")) and "NoNewPrivs:\t1" in status


def test_it_sees_neither_the_disk_nor_other_processes(process):
    assert said(process, "sorted(os.listdir('/etc'))") in ("['alternatives', 'ld.so.cache']", "['ld.so.cache']")
    assert len(eval(said(process, "[name for name in os.listdir('/proc') if name.isdigit()]"))) <= 3
    assert said(process, "os.getcwd()") == "/scratch"
    first = said(process, "open('/proc/1/environ').read()")
    assert all(part.startswith("PATH=") for part in first.split("\0") if part)


CAPABILITY = "sorted(os.environ), __import__('torch').backends.cpu.get_cpu_capability(), os.environ.get('MKL_CBWR')"


@pytest.mark.parametrize("unsafe", [False, True])
def test_of_the_environment_it_sees_by_which_instructions_to_compute(limited, monkeypatch, unsafe):
    monkeypatch.setenv("COURSE_SECRET", "x")
    for name in bubblewrap.HANDED_IN:
        monkeypatch.delenv(name, raising=False)
    names, _, products = eval(said(limited(unsafe=unsafe), CAPABILITY))
    plain = {*bubblewrap.ENVIRONMENT, "PWD", "LC_CTYPE"}  # what bubblewrap and Python add
    assert set(names) <= plain and products is None
    monkeypatch.setenv("ATEN_CPU_CAPABILITY", "default")
    monkeypatch.setenv("MKL_CBWR", "COMPATIBLE")
    names, chosen, products = eval(said(limited(unsafe=unsafe), CAPABILITY))
    assert set(names) <= plain | {*bubblewrap.HANDED_IN} and products == "COMPATIBLE"
    assert chosen in ("DEFAULT", "NO AVX"), "torch 2.6 says the latter"


@pytest.mark.parametrize(
    "path", ["'/x'", "'/dev/x'", "'/dev/shm/x'", "'/proc/sys/kernel/core_pattern'", "'/usr/x'", "sys.prefix + '/x'"]
)
def test_it_writes_nowhere_but_in_its_scratch_folder(process, path):
    assert inside(process, f"open({path}, 'w')")["raised"] in ("OSError", "PermissionError", "FileNotFoundError")
    assert said(process, "open('/scratch/x', 'w').write('abc')") == "3"


MAPS = "import mmap\nmmap.mmap(-1, 1 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | {})"
KERNEL = """
import ctypes, fcntl, resource, socket, subprocess
kernel = ctypes.CDLL(None, use_errno=True)
def done(result):
    if result < 0: raise OSError(ctypes.get_errno(), 'refused')
"""
FORBIDDEN = [
    "os.fork()",
    "subprocess.run(['/bin/true'])",
    "socket.socket()",
    "socket.socket(40, 1, 0)",
    "done(kernel.unshare(0x10000000))",
    "done(kernel.ptrace(0, 0, 0, 0))",
    # memory that no limit counts
    "os.memfd_create('x')",
    "done(kernel.shmget(0, 1 << 20, 0o1666))",
    "done(kernel.msgget(0, 0o1666))",
    "done(kernel.syscall(438, 0, 0, 0))",
    "done(kernel.vmsplice(os.pipe()[1], 0, 0, 0))",
    "done(kernel.prctl(22, 1, 0, 0, 0))",
    "done(kernel.syscall(444, 0, 0, 1))",  # landlock_create_ruleset: asks for its version
    "fcntl.fcntl(os.pipe()[1], fcntl.F_SETPIPE_SZ, 1 << 20)",
    "os.symlink('x', '/scratch/link')",
    "open('/scratch/a', 'w').close()\nos.link('/scratch/a', '/scratch/b')",
    "open('/scratch/a', 'w').close()\nos.setxattr('/scratch/a', 'user.a', b'x')",
    "done(kernel.inotify_add_watch(kernel.inotify_init(), b'/usr', 1))",
    MAPS.format("0x100"),  # MAP_GROWSDOWN
    MAPS.format("0x20100"),  # and MAP_STACK
    "import mmap\nmmap.mmap(-1, 1 << 20)",  # shared
    "import mmap\nmmap.mmap(os.open('/dev/zero', os.O_RDWR), 1 << 20)",
]
LIMITED = [
    ("bytearray(8 << 30)", "MemoryError"),
    ("resource.setrlimit(resource.RLIMIT_AS, (1 << 40, 1 << 40))", "ValueError"),
    ("resource.setrlimit(resource.RLIMIT_STACK, (1 << 40, 1 << 40))", "ValueError"),
    ("open('/scratch/big', 'wb').write(bytes(20 << 20))", "OSError"),
    ("for n in range(9): open(f'/scratch/{n}', 'wb').write(bytes(15 << 20))", "OSError"),
    ("kept = [open(os.devnull) for _ in range(200)]", "OSError"),
]


@pytest.mark.parametrize("body, error", [*((body, "PermissionError") for body in FORBIDDEN), *LIMITED])
def test_what_is_forbidden_fails(process, body, error):
    assert inside(process, f"{KERNEL}{body}")["raised"] == error


def test_threads_work(process):
    pool = "__import__('concurrent.futures').futures.ThreadPoolExecutor(2)"
    assert said(process, f"{pool}.submit(len, 'four').result()") == "4"


@pytest.mark.parametrize(
    "body, seconds, why",
    [("while True: pass", 1, "took too long"), ("import time; time.sleep(1000)", 1000, "waits, and computes nothing")],
)
def test_time_is_limited_and_nothing_stays(body, seconds, why):
    with Process(Limits()) as process:
        started = time.monotonic()
        with pytest.raises(Stopped, match=why):
            inside(process, body, seconds)
        assert time.monotonic() - started < 60
        worker = process.clock.process
    worker.wait(10)
    assert not worker.is_running()


def test_a_sandbox_that_does_not_start_is_told_from_a_wrong_answer(monkeypatch):
    monkeypatch.setattr(bubblewrap, "SYSTEM", ())
    monkeypatch.setattr(sandbox.sys, "executable", "/no/python")
    with pytest.raises(SandboxError, match="did not start"):
        Process(Limits(start=5))


TAKES = """
kept = []
try:
    while True: kept.append(b'x' * (1 << 20))
except MemoryError:
    raise ValueError(len(kept))
"""


def test_all_the_memory_that_it_can_get_is_at_most_470_mib(limited):
    """On top of what Python and torch take: 230 MiB where torch is for CPUs alone, and 515 with CUDA's libraries."""
    process = limited()
    status = Path(f"/proc/{process.clock.process.pid}/status")
    before = int(re.search(r"VmRSS:\s+(\d+)", status.read_text())[1])
    assert 0 <= (process.limits.memory >> 20) - int(inside(process, TAKES, 60)["text"]) < 50
    peak = int(re.search(r"VmHWM:\s+(\d+)", status.read_text())[1])
    assert peak - before + (process.limits.scratch >> 10) <= 470 << 10


CLOSES = """
import ctypes, mmap
libc, kept = ctypes.CDLL(None), []
try:
    while True:
        kept.append(mmap.mmap(-1, 16 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
        kept[-1].write(bytes(16 << 20))
        at = ctypes.addressof(ctypes.c_char.from_buffer(kept[-1]))
        if libc.mprotect(ctypes.c_void_p(at), ctypes.c_size_t(16 << 20), mmap.PROT_READ): raise PermissionError
        time.sleep(.01)
except OSError: pass
"""


@pytest.mark.parametrize("unsafe", [False, True])
def test_memory_that_is_closed_once_it_is_written_counts_as_well(limited, unsafe):
    """The kernel's limit counts what can be written, and this was a way to 2.5 GiB."""
    with pytest.raises(Stopped, match="took too much memory"):
        inside(limited(unsafe=unsafe), f"import time\n{CLOSES}", 60)


@pytest.mark.parametrize("unsafe", [False, True])
def test_it_has_no_huge_pages(limited, unsafe):
    """Of each, 4 KiB that are kept could hold 2 MiB."""
    prctl = "__import__('ctypes').CDLL(None).prctl"
    process = limited(unsafe=unsafe)
    assert said(process, f"{prctl}(42, 0, 0, 0, 0)") == "1"
    assert unsafe or said(process, f"{prctl}(41, 0, 0, 0, 0)") == "-1"
    assert eval(prctl)(42, 0, 0, 0, 0) == 0, "the grader keeps its own"


MAKES = """
import time
for number in range({number}):
    {make}
    time.sleep(1e-4)
"""


@pytest.mark.parametrize("make", ["os.mkdir(f'/scratch/{number}')", "os.mkfifo(f'/scratch/{number}')"])
def test_few_files_and_folders_can_be_made(limited, make):
    process = limited()
    assert "other" in inside(process, MAKES.format(number=2000, make=make), 60)
    with pytest.raises(Stopped, match="made too many files"):
        inside(process, MAKES.format(number=50000, make=make.replace("scratch/", "scratch/x")), 60)


def test_files_that_are_removed_do_not_count(limited):
    make = "open('/scratch/a', 'w').close(); os.remove('/scratch/a')"
    assert "other" in inside(limited(), MAKES.format(number=6000, make=make), 60)


@pytest.mark.parametrize("unsafe", [False, True])
def test_packages_are_found_where_this_interpreter_finds_them(limited, monkeypatch, tmp_path, unsafe):
    """``pip install --user`` and PYTHONPATH put them outside of the environment."""
    (tmp_path / "given-1.0.dist-info").mkdir()
    (tmp_path / "given.py").write_text("VALUE = 7", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    assert said(limited(unsafe=unsafe), "__import__('given').VALUE") == "7"


@pytest.mark.parametrize("unsafe", [False, True])
def test_what_is_compiled_runs_as_it_is_written(limited, unsafe):
    """No compiler can be started in the sandbox."""
    body = "import torch\ndouble = torch.compile(lambda x: 2 * x, fullgraph=True)\nreturn double(torch.ones(3))"
    assert "tensor" in inside(limited(unsafe=unsafe), body)


CUDA = """
import mmap
import torch
private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000
torch.cudas = mmap.mmap(-1, 5 << 29, prot=0, flags=private)
"""  # 0x4000: MAP_NORESERVE; as its libraries do, it takes addresses and no memory
TRAINS = """
import torch
x = torch.randn(200, 32, 8, 1, requires_grad=True)
step = torch.optim.Adam([x])
for _ in range(3):
    x.square().sum().backward()
    step.step()
return x.detach()
"""
RESERVES = "import mmap\nmmap.mmap(-1, 3 << 30, prot=0, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)"


@pytest.mark.parametrize("unsafe", [False, True])
def test_limits_count_from_what_a_build_of_torch_maps(limited, unsafe):
    """CUDA's build maps 2.5 GiB more than the one for CPUs before a line of an answer has run."""
    process = limited(before=CUDA, unsafe=unsafe)
    mapped = int(Path(f"/proc/{process.clock.process.pid}/statm").read_text().split()[0])
    assert mapped * os.sysconf("SC_PAGE_SIZE") > 3 << 30
    assert "tensor" in inside(process, TRAINS)
    assert inside(process, RESERVES)["raised"] == "OSError"
    assert inside(process, "bytearray(8 << 30)")["raised"] == "MemoryError"


def test_there_is_no_answer_inside(process):
    seen = eval(said(process, "sorted(os.listdir('/course/companion'))"))
    assert seen == ["__init__.py", "lesson", "topics", "workshop"]
    define(process, "from companion.topics.regression import exercises\ndef f():\n    exercises.newton_step.answer()")
    process.send(wire.encode(CALL, []))
    assert b"stand_in" in process.receive()[0]
    process.send(wire.encode({"refused": 1}))
    assert b"stub" in process.receive()[0]


TRICKLE = r"""
import os, time
while True:
    for number in range(3, 64):
        try:
            os.write(number, b"x")
        except OSError:
            pass
    time.sleep(.05)
"""


def test_a_pipe_that_is_never_quiet_has_a_deadline():
    with Process(Limits()) as process:
        started = time.monotonic()
        with pytest.raises(Stopped, match="took too long"):
            inside(process, TRICKLE, 0.5)
        assert time.monotonic() - started < 40


def test_a_cell_may_sleep(process):
    define(process, "import time\ntime.sleep(1.1)\ndef f():\n    pass")


SPIN = "import time\nend = time.process_time() + 1\nwhile time.process_time() < end: pass"


def test_who_waits_for_a_thread_that_computes_is_not_asleep(process):
    lines = SPIN.replace("\n", "\n    ")
    body = f"def spin():\n    {lines}\nfrom concurrent.futures import ThreadPoolExecutor\n"
    assert "other" in inside(process, body + "ThreadPoolExecutor(1).submit(spin).result()")


def test_a_slow_machine_is_nobodys_fault(monkeypatch):
    monkeypatch.setattr(sandbox, "QUICK", 0.05)  # this one seems to take many times as long
    with Process(Limits()) as process:
        assert "other" in inside(process, SPIN, 0.5)


def test_a_busy_machine_is_nobodys_fault(monkeypatch):
    clock = sandbox.Clock()
    clock.wall -= 100
    assert clock.used() >= 100
    monkeypatch.setattr(clock, "_delayed", lambda: 99.0)
    assert clock.used() < 2


def test_what_is_given_and_drawn_is_disturbed_where_the_environment_asks(monkeypatch):
    monkeypatch.setenv(VARIABLE, "3")
    given = torch.rand(5)
    with Process(Limits()) as process:
        answer = "def f(x):\n    torch.manual_seed(0)\n    return torch.stack([x, torch.randn(5)])"
        define(process, f"import torch\n{answer}")
        process.send(wire.encode(CALL, [given]), 20)
        _, (got, changed) = wire.decode(*process.receive())
    with torch.random.fork_rng(devices=[]), disturbed(3):
        torch.default_generator.manual_seed(0)
        assert torch.equal(got, torch.stack([one_unit_off(given, 3), torch.randn(5)]))
    assert changed is None and not torch.equal(got[0], given)
