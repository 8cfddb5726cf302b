"""What is deleted is given back to the system."""

import subprocess
import sys

import pytest

CODE = """
import psutil
from companion.pretrained.memory import give_back_memory

class Ring:
    def __init__(self):
        self.own, self.parts = self, [bytearray(20_000) for _ in range(10_000)]

before = psutil.Process().memory_info().rss
ring = Ring()
last = bytearray(20_000)  # above what was taken: the heap cannot shrink from its end
taken = psutil.Process().memory_info().rss - before
del ring
give_back_memory()
print(taken / 1e6, (psutil.Process().memory_info().rss - before) / 1e6)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="another system's own way")
def test_what_is_deleted_is_given_back():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    taken, left = map(float, done.stdout.split())
    assert taken > 150 and left < 0.2 * taken
