"""What tests in a real browser share: where Chromium is, a port, and the wait for a server."""

import shutil
import socket
import subprocess
import time
import urllib.request
from pathlib import Path

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on PATH (Debian: apt install chromium)")


def free_port() -> int:
    """A port of this machine that nobody listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def wait_until_it_answers(server: subprocess.Popen, address: str, log: Path, seconds: float) -> None:
    """Return when the Jupyter server at ``address`` answers; the test fails, with the ``log``, if it ends before, or
    takes more than ``seconds``.
    """
    deadline = time.monotonic() + seconds
    while server.poll() is None and time.monotonic() < deadline:
        try:
            urllib.request.urlopen(f"{address}/api", timeout=5)
            return
        except OSError:
            time.sleep(0.5)
    pytest.fail(f"the server did not start:\n{log.read_text()}")
