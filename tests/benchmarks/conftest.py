"""How the benchmarks compare: the same work in a plain version, timed in the same run."""

import time

import pytest


@pytest.fixture
def ratio(benchmark, capsys):
    """Benchmark ``ours`` and time ``plain`` once; record and print how many times faster ours is."""

    def compare(name, ours, plain):
        answer = benchmark.pedantic(ours, rounds=10, warmup_rounds=1)
        started = time.perf_counter()
        reference = plain()
        seconds = time.perf_counter() - started
        if benchmark.enabled:
            benchmark.extra_info |= {"plain_seconds": seconds, "ratio": seconds / benchmark.stats.stats.median}
            with capsys.disabled():
                print(
                    f"\n{name}: {seconds / benchmark.stats.stats.median:.1f} times as fast as the plain version "
                    f"({seconds:.3f} s)"
                )
        return answer, reference

    return compare
