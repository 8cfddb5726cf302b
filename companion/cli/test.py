"""``test``: every test of the house, two at a time."""

import os
import sys
from argparse import Namespace
from typing import NoReturn

from companion.cli.setup import ROOT, go_on_as


def main(arguments: Namespace) -> NoReturn:
    """Go on as pytest."""
    # two workers of one thread each are faster on two cores than two of two
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.chdir(ROOT)
    go_on_as([sys.executable, "-m", "pytest", "-n", "2", "--dist", "worksteal", *arguments.pytest_args])
