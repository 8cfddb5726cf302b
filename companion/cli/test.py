"""``test``: every test of the house, on as many cores as there are."""

import os
import subprocess
import sys
from argparse import Namespace

from companion.cli.setup import ROOT


def main(arguments: Namespace) -> int:
    """Run pytest and return its exit status."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # two workers of one thread each are faster on two cores than two of two
    return subprocess.call([sys.executable, "-m", "pytest", "-n", "2", "--dist", "loadfile", *arguments.pytest_args], cwd=ROOT)
