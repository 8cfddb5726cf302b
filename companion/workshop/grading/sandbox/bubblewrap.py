"""The walls around a submission: bubblewrap's namespaces, and the system calls that the kernel refuses.

Inside there is no network and no other process, no capability and no second process; of the disk there are the
system's libraries, this Python environment and a copy of the course without its answers
(`companion.workshop.grading.sandbox.package`), all read-only. ``solutions/``, the gradebook and the other submissions
are not there at all. What may be written is
``/scratch``, in memory and of limited size, which is gone with the process.

Modules are looked for where this interpreter looks for them (`paths`): packages that ``pip install --user`` or
PYTHONPATH have put outside of its environment are seen, too.

The kernel's limits count what a process maps to write and the bytes of its files. Calls that take memory in any other
way are refused here; what is left (files without a byte, pages that are closed after they were written) is looked at
from outside by `companion.workshop.grading.sandbox.sandbox`.
"""

import ctypes
import functools
import os
import platform
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from companion.workshop.grading.sandbox import package

ROOT = Path(__file__).resolve().parents[4]
SCRATCH = "/scratch"
COURSE = "/course"
APPARMOR = (  # the one refusal of which bubblewrap does not say itself what to do
    "On Ubuntu since 24.04 it needs an AppArmor profile that allows bwrap userns, or "
    "`sysctl kernel.apparmor_restrict_unprivileged_userns=0`"
)
SYSTEM = ("/usr", "/bin", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache", "/etc/alternatives")
ENVIRONMENT = {
    "HOME": SCRATCH,
    "TMPDIR": SCRATCH,
    "MPLCONFIGDIR": SCRATCH,
    "IPYTHONDIR": SCRATCH,
    "MPLBACKEND": "Agg",
    "OMP_NUM_THREADS": "1",
    "LOGNAME": "student",  # torch 2.9 asks for it on the way to torch.compile, and the user has no name in /etc/passwd
    "TORCHDYNAMO_DISABLE": "1",  # torch.compile then gives back what it is given: it has no compiler here to start
    "CUDA_VISIBLE_DEVICES": "",  # behind the walls there is no GPU, and its driver maps more than any limit allows
    "LANG": "C.UTF-8",
    "PATH": "/usr/bin:/bin",
}
# by which instructions torch and MKL compute, the same as outside; and what `companion.lesson.disturbed` asks for
HANDED_IN = ("ATEN_CPU_CAPABILITY", "MKL_CBWR", "COURSE_DISTURBED")
ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}  # AUDIT_ARCH_*
# The calls that are refused, with their numbers (x86_64, aarch64); None where a machine has no such call. The tests
# compare the table with libseccomp's.
CALLS = {
    # a second process, and power over others
    "fork": (57, None),
    "vfork": (58, None),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "pidfd_open": (434, 434),
    "pidfd_getfd": (438, 438),
    # a way out
    "socket": (41, 198),
    "socketpair": (53, 199),
    "mount": (165, 40),
    "unshare": (272, 97),
    "setns": (308, 268),
    "open_by_handle_at": (304, 265),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    # memory that no limit counts
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "shmat": (30, 196),
    "semget": (64, 190),
    "msgget": (68, 186),
    "mq_open": (240, 180),
    "vmsplice": (278, 75),  # a pipe then keeps pages that were given back, 2 MiB for each 4 KiB in it
    # what hangs on a file and takes no block of /scratch
    "link": (86, None),
    "linkat": (265, 37),
    "symlink": (88, None),
    "symlinkat": (266, 36),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "setxattrat": (463, 463),
    "inotify_add_watch": (254, 27),
    "fanotify_init": (300, 262),
    # parts of the kernel that no answer needs
    "perf_event_open": (298, 241),
    "bpf": (321, 280),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "seccomp": (317, 277),  # a filter takes half a megabyte
    "landlock_create_ruleset": (444, 444),
}
SET_SMALL, GET_SMALL = 41, 42  # PR_SET_THP_DISABLE, PR_GET_THP_DISABLE
# Calls of which some options are refused: their numbers, and which argument (from 0) has which values.
OPTIONS = {
    "prctl": ((157, 167), 0, (22, SET_SMALL)),  # 22: PR_SET_SECCOMP
    "fcntl": ((72, 25), 1, (1031,)),  # F_SETPIPE_SZ: 1 MiB for each pipe
}
CLONE, CLONE3, MMAP = (56, 220), (435, 435), (9, 222)
LOAD, EQUAL, AT_LEAST, HAS, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06  # steps of a classic BPF program
ALLOW, KILL, REFUSE, UNKNOWN = 0x7FFF0000, 0x80000000, 0x00050000 | 1, 0x00050000 | 38  # EPERM, ENOSYS
CLONE_THREAD, MAP_SHARED, MAP_GROWSDOWN = 0x00010000, 0x01, 0x100
TRIAL = (
    "import sys; print('started', flush=True); sys.path[:] = sys.argv[1:]; "
    "import companion.workshop.grading.sandbox.worker"
)


def missing() -> str:
    """Return why there is no sandbox on this machine; empty if there is one."""
    if sys.platform != "linux" or shutil.which("bwrap") is None:
        return "bubblewrap is not installed (Debian and Ubuntu: `apt-get install bubblewrap`; it is for Linux only)"
    if platform.machine() not in ARCHITECTURES:
        return f"there is no table of system calls for {platform.machine()}, only for {', '.join(ARCHITECTURES)}"
    return _trial()


@functools.cache
def _trial() -> str:
    """Start this very Python behind the walls, import there what a worker does, and return what is wrong with it. It
    takes as long as importing torch does, so it is done once.
    """
    with tempfile.TemporaryFile() as program:
        walls = command(package.without_answers(course=False), 1 << 20, seccomp(program))
        trial = [*walls, sys.executable, "-I", "-B", "-c", TRIAL, COURSE, *paths()]
        done = subprocess.run(trial, capture_output=True, text=True, check=False, pass_fds=[program.fileno()])
    if not done.returncode:
        return ""
    said = done.stderr.strip()
    if not done.stdout and "execvp" not in said:
        return f"bubblewrap does not work here: {said}. {APPARMOR}"
    reason = said.splitlines()[-1] if said else "it crashed"
    return (
        f"inside the sandbox Python does not find what it needs ({reason}). The sandbox shows {sys.prefix} and the "
        "folders on Python's path with installed packages, but none that contains the course or your home. "
        "Install the course into an environment of its own (`python3 -m venv`)"
    )


def environment() -> dict[str, str]:
    """Return all environment variables that a submission sees: of the grader's own none but those of `HANDED_IN`."""
    return ENVIRONMENT | {name: os.environ[name] for name in HANDED_IN if name in os.environ}


def command(package: Path | None, scratch: int, filter_fd: int) -> list[str]:
    """Return the command that puts a program behind the walls; ``companion`` in ``package`` is to be seen in `COURSE`,
    and nothing else of the checkout, wherever it lies.
    """
    words = ["bwrap", "--unshare-all", "--unshare-user", "--uid", "65534", "--gid", "65534", "--cap-drop", "ALL"]
    words += ["--die-with-parent", "--new-session", "--hostname", "sandbox", "--clearenv", "--seccomp", str(filter_fd)]
    for name, value in environment().items():
        words += ["--setenv", name, value]
    environments, elsewhere = _environments(), _elsewhere()
    for path in dict.fromkeys([*elsewhere, *SYSTEM, *environments]):
        words += ["--ro-bind-try", path, path]
    if _inside(ROOT, (*SYSTEM, *environments)):  # an environment that holds the checkout, which may hold another
        words += ["--tmpfs", str(ROOT)]
        for path in (*elsewhere, *environments):
            words += ["--ro-bind-try", path, path] if _inside(path, (str(ROOT),)) else []
        words += ["--remount-ro", str(ROOT)]
    copies = [path for place in environments for path in Path(place).glob("lib/python*/site-packages/companion")]
    for copy in [*copies, *(Path(place) / "companion" for place in elsewhere)]:  # of the course: they have the answers
        if copy.is_dir() and not copy.is_symlink():
            words += ["--tmpfs", str(copy), "--remount-ro", str(copy)]
    if package:
        words += ["--ro-bind", f"{package}/companion", f"{COURSE}/companion"]
    words += ["--proc", "/proc", "--remount-ro", "/proc", "--dev", "/dev", "--remount-ro", "/dev"]
    return [*words, "--size", str(scratch), "--tmpfs", SCRATCH, "--chdir", SCRATCH, "--remount-ro", "/"]


@contextmanager
def small_pages() -> Iterator[None]:
    """Give no huge pages to what is started here: 4 KiB kept of one could hold 2 MiB, which no limit counts."""
    control = ctypes.CDLL(None).prctl
    before = control(GET_SMALL, 0, 0, 0, 0)
    control(SET_SMALL, 1, 0, 0, 0)
    try:
        yield
    finally:
        if before == 0:
            control(SET_SMALL, 0, 0, 0, 0)


def paths() -> list[str]:
    """Return where modules are looked for inside: the folders on this interpreter's path that are seen there."""
    seen, elsewhere = (*SYSTEM, *_environments()), _elsewhere()
    return [path for path in sys.path if path in elsewhere or _below(path, seen)]


def _environments() -> tuple[str, ...]:
    return tuple(dict.fromkeys((sys.base_prefix, sys.prefix)))


def _elsewhere() -> list[str]:
    """Folders of installed packages on this interpreter's path, but outside of its environment."""
    seen = (*SYSTEM, *_environments())
    return [path for path in dict.fromkeys(sys.path) if os.path.isabs(path) and not _below(path, seen) and _apart(path)]


def _apart(path: str) -> bool:
    """Whether it is a folder of installed packages through which neither a checkout of the course can be seen nor the
    home of whoever grades.
    """
    folder = Path(path).resolve()
    if any(_inside(kept, (path,)) for kept in (ROOT, os.path.expanduser("~"))):
        return False
    if folder.name not in ("site-packages", "dist-packages") and (
        _inside(folder, (str(ROOT),)) or (folder / "companion").exists()
    ):
        return False
    return any(folder.glob("*.dist-info"))


def _below(path: Path | str, folders: tuple[str, ...]) -> bool:
    """Whether it is below one of these as they are written, which is how they are seen inside."""
    return any(Path(path).is_relative_to(above) for above in folders)


def _inside(path: Path | str, folders: tuple[str, ...]) -> bool:
    return any(Path(path).resolve().is_relative_to(Path(above).resolve()) for above in folders)


def seccomp(file: BinaryIO) -> int:
    """Write a seccomp program (classic BPF) into ``file``, and give its descriptor: threads may be made, processes and
    sockets not.
    """
    machine = platform.machine()
    column = list(ARCHITECTURES).index(machine)
    program = [(LOAD, 0, 0, 4), (EQUAL, 1, 0, ARCHITECTURES[machine]), (RETURN, 0, 0, KILL), (LOAD, 0, 0, 0)]
    if machine == "x86_64":  # the x32 numbers of the same calls
        program += [(AT_LEAST, 0, 1, 0x40000000), (RETURN, 0, 0, KILL)]
    for numbers in CALLS.values():
        if numbers[column] is not None:
            program += [(EQUAL, 0, 1, numbers[column]), (RETURN, 0, 0, REFUSE)]
    for numbers, argument, values in OPTIONS.values():
        program += [(EQUAL, 0, 2 + 2 * len(values), numbers[column]), (LOAD, 0, 0, 16 + 8 * argument)]
        program += [step for value in values for step in ((EQUAL, 0, 1, value), (RETURN, 0, 0, REFUSE))]
        program += [(RETURN, 0, 0, ALLOW)]
    program += [(EQUAL, 0, 1, CLONE3[column]), (RETURN, 0, 0, UNKNOWN)]  # libc then asks for clone
    program += [(EQUAL, 0, 3, CLONE[column]), (LOAD, 0, 0, 16), (HAS, 1, 0, CLONE_THREAD), (RETURN, 0, 0, REFUSE)]
    # memory that is shared counts as no process's own, and what grows downwards as its stack
    uncounted = MAP_SHARED | MAP_GROWSDOWN
    program += [(EQUAL, 0, 3, MMAP[column]), (LOAD, 0, 0, 40), (HAS, 0, 1, uncounted), (RETURN, 0, 0, REFUSE)]
    program += [(RETURN, 0, 0, ALLOW)]
    file.write(b"".join(struct.pack("HBBI", *step) for step in program))
    file.flush()
    file.seek(0)
    return file.fileno()
