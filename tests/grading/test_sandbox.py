"""What the sandbox is made of, looked at from inside."""

import time

import pytest
import torch

from companion.cli import sandbox, wire
from companion.cli.sandbox import Limits, Process, SandboxError, Stopped

pytestmark = pytest.mark.skipif(bool(sandbox.missing()), reason=f"no sandbox here: {sandbox.missing()}")
JOB = {"module": "companion.checks.regression", "exercise": "newton_step", "function": "f", "before": []}


@pytest.fixture(scope="module")
def process():
    with Process(Limits(call=5)) as process:
        process.send(wire.encode({"limits": sandbox.as_message(process.limits)}))
        yield process


def inside(process, body: str):
    """What ``f`` with this body returns in the sandbox, in words: the error that it raises with them."""
    lines = "\n    ".join(body.splitlines())
    process.allow(20)
    process.send(wire.encode(JOB | {"answer": f"def f():\n    import os, sys\n    {lines}"}))
    assert b'"ready"' in process.receive()[0]
    process.send(wire.encode({"call": 1}, []))
    message, _ = wire.decode(*process.receive())
    return message


def said(process, expression: str) -> str:
    return inside(process, f"raise ValueError({expression})")["text"]


def test_it_is_nobody_and_has_no_capability(process):
    assert said(process, "(os.getuid(), os.getgid())") == "(65534, 65534)"
    status = said(process, "open('/proc/self/status').read()")
    assert "CapEff:\t0000000000000000" in status and "CapBnd:\t0000000000000000" in status and "NoNewPrivs:\t1" in status


def test_it_sees_neither_the_disk_nor_other_processes(process):
    assert said(process, "sorted(os.listdir('/etc'))") in ("['alternatives', 'ld.so.cache']", "['ld.so.cache']")
    assert len(eval(said(process, "[name for name in os.listdir('/proc') if name.isdigit()]"))) <= 3
    assert said(process, "os.getcwd()") == "/scratch"
    first = said(process, "open('/proc/1/environ').read()")
    assert all(part.startswith("PATH=") for part in first.split("\0") if part)


@pytest.mark.parametrize("place", ["/", "/dev", "/dev/shm", "/proc/sys/kernel/core_pattern", "/usr", "sys.prefix"])
def test_it_writes_nowhere_but_in_its_scratch_folder(process, place):
    path = "sys.prefix + '/x'" if place == "sys.prefix" else repr(place if "core" in place else f"{place.rstrip('/')}/x")
    assert inside(process, f"open({path}, 'w')")["raised"] in ("OSError", "PermissionError", "FileNotFoundError")
    assert said(process, "open('/scratch/x', 'w').write('abc')") == "3"


@pytest.mark.parametrize(
    "body, error",
    [
        ("os.fork()", "PermissionError"),
        ("import subprocess\nsubprocess.run(['/bin/true'])", "PermissionError"),
        ("import socket\nsocket.socket()", "PermissionError"),
        ("import socket\nsocket.socket(40, 1, 0)", "PermissionError"),
        ("bytearray(8 << 30)", "MemoryError"),
        ("import resource\nresource.setrlimit(resource.RLIMIT_AS, (1 << 40, 1 << 40))", "ValueError"),
        ("import ctypes\nif ctypes.CDLL(None).unshare(0x10000000) != 0: raise PermissionError", "PermissionError"),
        ("import ctypes\nif ctypes.CDLL(None).ptrace(0, 0, 0, 0) != 0: raise PermissionError", "PermissionError"),
    ],
)
def test_what_is_forbidden_fails(process, body, error):
    assert inside(process, body)["raised"] == error


def test_one_file_and_all_files_are_limited(process):
    assert inside(process, "open('/scratch/big', 'wb').write(bytes(20 << 20))")["raised"] == "OSError"
    assert inside(process, "for n in range(9): open(f'/scratch/{n}', 'wb').write(bytes(15 << 20))")["raised"] == "OSError"


def test_threads_work(process):
    assert said(process, "__import__('concurrent.futures').futures.ThreadPoolExecutor(2).submit(len, 'four').result()") == "4"


@pytest.mark.parametrize("body", ["while True: pass", "import time; time.sleep(1000)"])
def test_time_is_limited_and_nothing_stays(body):
    with Process(Limits(call=1, exercise=2)) as process:
        started = time.monotonic()
        with pytest.raises(Stopped, match="took too long"):
            inside(process, body)
        assert time.monotonic() - started < 60
        worker = process.worker
    worker.wait(10)
    assert not worker.is_running()


def test_a_sandbox_that_does_not_start_is_told_from_a_wrong_answer(monkeypatch):
    monkeypatch.setattr(sandbox, "SYSTEM", ())
    monkeypatch.setattr(sandbox.sys, "executable", "/no/python")
    with pytest.raises(SandboxError, match="did not start"):
        Process(Limits(start=5))


def test_without_bubblewrap_it_says_so(monkeypatch):
    monkeypatch.setattr(sandbox.shutil, "which", lambda name: None)
    assert "apt-get install bubblewrap" in sandbox.missing()
    monkeypatch.undo()
    monkeypatch.setattr(sandbox.platform, "machine", lambda: "z80")
    assert "z80" in sandbox.missing()


VALUES = [
    torch.arange(6.0).reshape(2, 3).mT,
    torch.tensor(1 + 2j, dtype=torch.complex128).conj(),
    torch.zeros(0, 3),
    torch.tensor(True),
    torch.ones(2, dtype=torch.bfloat16, requires_grad=True),
    torch.empty(2, 3, device="meta"),
    *(3, 2.5, float("inf"), "text", None, True),
]


@pytest.mark.parametrize("value", VALUES, ids=str)
def test_a_value_goes_over_the_wire(value):
    line, _, raw = wire.encode({"a": 1}, [value, 7]).partition(b"\n")
    message, (got, seven) = wire.decode(line.partition(b" ")[2], raw)
    assert message == {"a": 1} and seven == 7
    if not isinstance(value, torch.Tensor):
        assert got == value and type(got) is type(value)
    else:
        assert got.dtype == value.dtype and got.shape == value.shape and got.device == value.device
        assert got.device.type == "meta" or torch.equal(got, value)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b"{}",
        b'{"values": 3}',
        b'{"values": [[]]}',
        b'{"values": [{"value": {}}]}',
        b'{"values": [{"dtype": "float64", "shape": [1000], "meta": false}]}',
        b'{"values": [{"dtype": "float64", "shape": [-1], "meta": false}]}',
        b'{"values": [{"dtype": "float64", "shape": [4294967296, 4294967296], "meta": true}]}',
        b'{"values": [{"dtype": "float64", "shape": "no", "meta": true}]}',
        b'{"values": [{"dtype": "load", "shape": [], "meta": true}]}',
        b'{"values": [{"dtype": [], "shape": [], "meta": true}]}',
        b"[" * 100_000,
        b"\xff",
    ],
)
def test_nothing_else_does(text):
    with pytest.raises(wire.WireError):
        wire.decode(text, b"12345678")
