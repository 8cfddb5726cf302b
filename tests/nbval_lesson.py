"""nbval on one notebook, in a pytest of its own: its options and the course's would get into each other's way."""

import os
import subprocess
import sys
from pathlib import Path


def compare_outputs(notebook: Path) -> None:
    """Run ``notebook`` from top to bottom; AssertionError if a cell raises, or one tagged ``nbval-check-output`` gives
    something else than it stores.
    """
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-c", os.devnull]
    command += [
        "--rootdir",
        str(notebook.parent),
        "--nbval-lax",
        "--nbval-current-env",
        "--nbval-cell-timeout=300",
        str(notebook),
    ]
    done = subprocess.run(command, cwd=notebook.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
