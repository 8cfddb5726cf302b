"""Another Python in the repository, alone or as two processes under torchrun."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--local-addr", "127.0.0.1", "--nproc-per-node", "2")
needs_torchrun = pytest.mark.skipif(
    sys.platform == "win32", reason="PyTorch for Windows has no libuv, which torchrun's rendezvous needs"
)


def python(*arguments: object) -> subprocess.CompletedProcess:
    """Without this process's torchrun variables; Gloo is told to stay on the loopback."""
    environment = os.environ | {
        "OMP_NUM_THREADS": "1",
        "GLOO_SOCKET_IFNAME": "lo0" if sys.platform == "darwin" else "lo",
    }
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )


def torchrun(*arguments: object) -> subprocess.CompletedProcess:
    """Two real processes that talk through gloo."""
    return python(*TORCHRUN, *arguments)
