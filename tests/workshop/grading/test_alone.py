"""A process for each call: what a call sets, breaks or waits for is gone with it."""

import os
import subprocess
import sys
import time
import warnings
from functools import partial

import psutil
import pytest
import torch

from companion.workshop.grading.alone import Ended, alone

WITHIN = {"seconds": 60.0, "memory": 1 << 30}
SETS = (  # what a call sets, and what the next, or this process, would see of it
    (partial(torch.set_default_dtype, torch.float64), torch.get_default_dtype),
    (partial(exec, "import torch; torch.manual_seed(7)"), torch.initial_seed),
    (partial(torch.use_deterministic_algorithms, True), torch.are_deterministic_algorithms_enabled),
    (partial(torch.set_num_threads, 3), torch.get_num_threads),
    (partial(torch.set_grad_enabled, False), torch.is_grad_enabled),
    (partial(os.chdir, "/"), os.getcwd),
    (partial(exec, "import os; os.environ['X'] = '1'"), partial(eval, "__import__('os').environ.get('X')")),
    (partial(warnings.simplefilter, "ignore"), partial(eval, "__import__('warnings').filters")),
    (partial(sys.setrecursionlimit, 777), sys.getrecursionlimit),
)


@pytest.mark.parametrize("setting, seen", SETS)
def test_nothing_passes_from_a_call_to_the_next_or_to_this_process(setting, seen):
    before, here = alone(seen, **WITHIN), repr(seen())
    alone(setting, **WITHIN)
    assert repr(alone(seen, **WITHIN)) == repr(before) and repr(seen()) == here


def test_it_gives_what_the_function_gives_and_raises_what_it_raises():
    assert alone(divmod, 17, 5, **WITHIN) == (3, 2)
    with pytest.raises(ZeroDivisionError):
        alone(divmod, 17, 0, **WITHIN)
    assert alone(divmod, 17, 5, **WITHIN) == (3, 2)


def test_it_has_a_deadline_whatever_it_waits_for():
    started = time.monotonic()
    with pytest.raises(TimeoutError, match=r"took more than 0\.5 seconds"):
        alone(time.sleep, 1000, seconds=0.5, memory=1 << 30)
    assert time.monotonic() - started < 60
    assert alone(len, "three", **WITHIN) == 5


def test_one_that_breaks_breaks_itself_alone():
    with pytest.raises(Ended, match="ended itself"):
        alone(os.abort, **WITHIN)
    with pytest.raises((MemoryError, Ended)):
        alone(bytes, 4 << 30, **WITHIN)
    with pytest.raises(Ended, match="lambda"):
        alone(eval, "lambda: 1", **WITHIN)
    assert alone(len, "three", **WITHIN) == 5


def test_what_is_prepared_is_there_for_later_calls():
    alone(len, "", prepare=partial(exec, "import builtins; builtins.prepared = 3"), **WITHIN)
    assert alone(eval, "__import__('builtins').prepared", **WITHIN) == 3


def test_what_is_prepared_starts_no_thread_for_which_a_call_would_wait():
    large = "(__import__('torch').ones(700, 700) @ __import__('torch').ones(700, 700))[0, 0].item()"
    call = "from functools import partial; from companion.workshop.grading.alone import alone; "
    call += f"print(alone(eval, {large!r}, prepare=partial(eval, {large!r}), seconds=30, memory=1 << 30))"
    env = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    ran = subprocess.run([sys.executable, "-c", call], env=env, capture_output=True, text=True, check=False)
    assert ran.stdout == "700.0\n", ran.stderr


def test_it_computes_by_the_instructions_that_were_chosen_for_its_caller():
    call = "import torch; from companion.workshop.grading.alone import alone; "
    call += "print(alone(torch.backends.cpu.get_cpu_capability, seconds=60, memory=1 << 30))"
    env = os.environ | {"ATEN_CPU_CAPABILITY": "default"}
    ran = subprocess.run([sys.executable, "-c", call], env=env, capture_output=True, text=True, check=False)
    assert ran.stdout in ("DEFAULT\n", "NO AVX\n"), ran.stderr  # torch 2.6 says the latter


def test_it_does_not_outlast_the_one_who_called():
    call = "import time; from companion.workshop.grading.alone import alone; "
    call += "alone(time.sleep, 1e4, seconds=1e4, memory=1 << 30)"
    caller = psutil.Popen([sys.executable, "-c", call])
    try:
        while len(made := caller.children(recursive=True)) < 2:  # the process that forks, and its child
            time.sleep(0.1)
    finally:
        caller.kill()
        caller.wait()
    assert psutil.wait_procs(made, timeout=60)[1] == []
