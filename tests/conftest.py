"""What holds in every test: shapes and types in signatures are enforced (not where it is marked ``types_unchecked``),
warnings are errors, torch computes on one thread. Where several workers share the tests, the longest begin.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch, and for the processes that tests start
os.environ.setdefault("TQDM_DISABLE", "1")

import pytest
import torch
from jaxtyping import config as jaxtyping_config
from jaxtyping import install_import_hook
from longest_first import order

# "numeric tower": an int is a float wherever one is asked for, as everywhere in Python's typing (PEP 484)
TYPECHECKER = "beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))"


@pytest.hookimpl(trylast=True)
def pytest_configure(config):
    """Before any test module, and so before anything of the companion, is imported."""
    torch.set_num_threads(1)
    if not config.getoption("benchmark_enable"):  # a benchmark times the code that people run, without the checks
        install_import_hook("companion", TYPECHECKER)
    config.addinivalue_line("filterwarnings", "error")
    config.addinivalue_line(
        "markers",
        "types_unchecked: other tests check the types of what it calls thousands of times, in a third of the time",
    )
    config.addinivalue_line("markers", "weekly: takes minutes; run by the weekly workflow, with -m weekly")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """In each of xdist's workers, which must all say the same order."""
    if workers := int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "0")):
        items[:] = [items[place] for place in order([item.nodeid for item in items], workers)]


@pytest.fixture(autouse=True)
def _same_random_state():
    """A test may draw from torch's global generator; it starts where every other test does."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)
        yield


@pytest.fixture(autouse=True)
def _types_checked_or_not(request):
    """Off for one marked test alone."""
    jaxtyping_config.update("jaxtyping_disable", request.node.get_closest_marker("types_unchecked") is not None)
    yield
    jaxtyping_config.update("jaxtyping_disable", False)
