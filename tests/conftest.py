"""What holds in every test: shapes and types in signatures are enforced (not where it is marked ``types_unchecked``),
warnings are errors, torch computes on one thread; what a test needs of the machine is there (`needs`). Where several
workers share the tests, the longest begin.
"""

import gc
import inspect
import os
import typing
from collections.abc import Callable

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch, and for the processes that tests start
os.environ.setdefault("TQDM_DISABLE", "1")

import jaxtyping
import pytest
import torch
from longest_first import order
from needs import CHROMIUM, must_have, require

gc.disable()  # until the tests are collected: what they are made of stays
# "numeric tower": an int is a float wherever one is asked for, as everywhere in Python's typing (PEP 484)
TYPECHECKER = "beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))"
jaxtyped = jaxtyping.jaxtyped


def has_shapes(hint: object) -> bool:
    """Whether an annotation says an array's shape, at any depth, or may: one that is a text, which jaxtyping reads."""
    array = inspect.isclass(hint) and issubclass(hint, jaxtyping.AbstractArray)
    return array or isinstance(hint, str) or any(map(has_shapes, typing.get_args(hint)))


def checked(*, typechecker: Callable) -> Callable:
    """Decorate as `jaxtyping.jaxtyped`, in whose place the import hook finds it. To remember shapes costs more than
    most functions do, so that those without any have the type checker alone, with the same checks. A function within
    another is decorated whenever it is made; where types are not checked, it is left as it is.
    """

    def decorate(thing: object) -> object:
        if not inspect.isfunction(thing):
            return jaxtyped(thing, typechecker=typechecker)
        if jaxtyping.config.jaxtyping_disable and "<locals>" in thing.__qualname__:
            return thing
        shapes = any(map(has_shapes, thing.__annotations__.values()))
        return jaxtyped(thing, typechecker=typechecker) if shapes else typechecker(thing)

    return decorate


@pytest.hookimpl(trylast=True)
def pytest_configure(config):
    """Before any test module, and so before anything of the companion, is imported."""
    must_have()  # a word that it does not know is said at once
    torch.set_num_threads(1)
    if not config.getoption("benchmark_enable"):  # a benchmark times the code that people run, without the checks
        jaxtyping.jaxtyped = checked
        jaxtyping.install_import_hook("companion", TYPECHECKER)
    config.addinivalue_line("filterwarnings", "error")
    config.addinivalue_line(
        "markers",
        "types_unchecked: other tests check the types of what it calls thousands of times, in a third of the time",
    )
    config.addinivalue_line("markers", "needs(what): a sandbox or a browser, without which it is skipped, or fails")
    config.addinivalue_line("markers", "weekly: takes minutes; run by the weekly workflow, with -m weekly")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """In each of xdist's workers, which must all say the same order."""
    if workers := int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "0")):
        items[:] = [items[place] for place in order([item.nodeid for item in items], workers)]


def pytest_collection_finish():
    """What thousands of tests are made of stays: no collection of garbage looks through it. Syntax trees, of which near
    misses are made by the thousand, are looked through less often.
    """
    gc.freeze()
    gc.set_threshold(50_000)
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Before any fixture of a test that needs what may not be here."""
    for mark in item.iter_markers("needs"):
        require(*mark.args)


@pytest.fixture(scope="module")
def browser():
    """A Chromium."""
    require("browser")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def smollm2():
    """The folder of a language model that others trained, where it was fetched."""
    require("model")
    from companion.pretrained.fetching import model_folder

    return model_folder("smollm2")


@pytest.fixture(scope="session")
def llama_folder(tmp_path_factory):
    """The folder of a tiny random Llama."""
    from tiny_llama import save_tiny_llama

    return save_tiny_llama(tmp_path_factory.mktemp("saved") / "llama")


@pytest.fixture(scope="session")
def llama(llama_folder):
    """A tiny random Llama, as the course reads it."""
    from companion.pretrained.language import LanguageModel

    return LanguageModel(llama_folder)


@pytest.fixture(autouse=True)
def _same_random_state():
    """A test may draw from torch's global generator; it starts where every other test does."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)
        yield


@pytest.fixture(autouse=True)
def _types_checked_or_not(request):
    """Off for one marked test alone."""
    jaxtyping.config.update("jaxtyping_disable", request.node.get_closest_marker("types_unchecked") is not None)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
