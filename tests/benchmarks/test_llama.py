"""The course's Llama beside ``transformers``' own, in one run, on one core: speed, and the memory that loading takes.

Both must give the same logits and patterns, which every run of the tests asserts on a tiny model; with
``--benchmark-enable`` it is the fetched one, and ratios and megabytes are asserted, too.
"""

import subprocess
import sys
import time

import pytest
import torch
from tiny_llama import TOKENS, save_tiny_llama

from companion.pretrained.language import LanguageModel

MOST_MEMORY = 1050  # MiB, of a process that has loaded the model in float32
MOST_LOADING = 1.5  # times a plain loop over the tensors
PLAIN = """
import sys, time
import torch
from safetensors import safe_open
started = time.process_time()
with safe_open(sys.argv[1] + "/model.safetensors", "pt") as file:
    weights = {name: file.get_tensor(name).float() for name in file.keys()}
seconds = time.process_time() - started
print(seconds, next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1])
"""
OURS = """
import sys, time
from pathlib import Path
import torch
from companion.pretrained.folder import read_config
from companion.pretrained.language import LanguageModel
from companion.pretrained.llama import read_llama
folder = Path(sys.argv[1])
started = time.process_time()
model = read_llama(folder, read_config(folder), torch.float32)
seconds = time.process_time() - started
del model
LanguageModel(folder)
print(seconds, next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1])
"""


@pytest.fixture
def folder(request, benchmark, tmp_path):
    """The fetched model for a benchmark, else a tiny one."""
    return request.getfixturevalue("smollm2") if benchmark.enabled else save_tiny_llama(tmp_path / "llama")


def seconds(function):
    """Of one core, whoever else computes on it."""
    started = time.process_time()
    function()
    return time.process_time() - started


def best_ratio(ours, theirs, rounds):
    """How long ours takes of their time, each at its best; in turns, so that a crowded machine is one for both."""
    turns = [(seconds(ours), seconds(theirs)) for _ in range(rounds)]
    return min(our for our, _ in turns) / min(their for _, their in turns)


@pytest.mark.parametrize("what", ["five tokens", "4 x 80 tokens with all patterns"])
@torch.no_grad()
def test_it_is_as_fast_as_transformers(benchmark, capsys, folder, what):
    transformers = pytest.importorskip("transformers", reason="it is compared with transformers, of the extra")
    transformers.logging.disable_progress_bar()
    patterns = "patterns" in what
    shape, most = ((4, 80), 40_000) if patterns else ((1, 5), 40_000)
    if not benchmark.enabled:
        shape, most = (2, 5), TOKENS
    tokens = torch.randint(most, shape, generator=torch.Generator().manual_seed(0))
    ours = LanguageModel(folder)
    options = {"local_files_only": True, "dtype": torch.float32}
    theirs = transformers.LlamaForCausalLM.from_pretrained(
        folder, attn_implementation="eager" if patterns else "sdpa", **options
    ).eval()
    names = [name for name in ours.hook_names if patterns and name.endswith("hook_pattern")]

    def our_turn():
        return ours.run_with_cache(tokens, names=names)

    def their_turn():
        return theirs(tokens, use_cache=False, output_attentions=patterns)

    (logits, cache), expected = benchmark.pedantic(our_turn, rounds=3, warmup_rounds=1), their_turn()
    assert (logits - expected.logits).abs().max() <= 1e-4 * expected.logits.abs().max()
    for pattern, other in zip(cache.values(), expected.attentions or (), strict=True):
        torch.testing.assert_close(pattern, other, rtol=0, atol=1e-4)
    if benchmark.enabled:
        ratio = best_ratio(our_turn, their_turn, 7 if patterns else 30)
        benchmark.extra_info |= {"ratio": ratio}
        with capsys.disabled():
            print(f"\nthe course's Llama, {what}: {ratio:.2f} times as long as transformers")
        assert ratio < 1.05  # as fast, but for what a crowded machine adds


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of a process's memory is read from Linux's /proc")
def test_loading_is_a_plain_loop_over_the_tensors(benchmark, capsys, folder):
    def took(code):
        done = subprocess.run(
            [sys.executable, "-c", code, str(folder)], capture_output=True, text=True, check=True, timeout=120
        )
        length, kib = done.stdout.split()
        return float(length), int(kib) / 1024

    _, memory = benchmark.pedantic(took, (OURS,), rounds=1)
    assert memory > 0
    if benchmark.enabled:
        turns = [(took(OURS), took(PLAIN)) for _ in range(5)]
        ratio = min(ours[0] for ours, _ in turns) / min(plain[0] for _, plain in turns)
        peaks = [max(turn[which][1] for turn in turns) for which in (0, 1)]
        benchmark.extra_info |= {"ratio": ratio, "peak_mib": peaks[0]}
        with capsys.disabled():
            print(
                f"\nloading a Llama: {ratio:.2f} times a plain loop; peak {peaks[0]:.0f} MiB, {peaks[1]:.0f} of a loop"
            )
        assert peaks[0] < MOST_MEMORY
        assert ratio < MOST_LOADING
