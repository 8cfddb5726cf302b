"""What tests in a real browser share: a port, and the wait for a server."""

import socket
import subprocess
import time
import urllib.request
from pathlib import Path

import pytest


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
            time.sleep(0.1)
    pytest.fail(f"the server did not start:\n{log.read_text()}")


def answers_the_hand(page, picture: Path) -> None:
    """Point at the attention map of the ``page``, of the words *the cat and the*, two heads and what they move, and go
    through it by keyboard; the test fails if it says anything else than it should. Its ``picture`` is kept.
    """
    shown = page.locator(".attention-map")
    said = shown.get_by_role("status")
    shown.scroll_into_view_if_needed()
    assert said.inner_text() == "At “the” no. 4, head 1 looks at “and” (100 %); from “and” it moves and."
    shown.get_by_role("button", name="cat").hover()
    assert said.inner_text() == "At “cat”, head 1 looks at “the” no. 1 (100 %); from “the” no. 1 it moves the."
    assert shown.locator("path").count() == 1
    buttons, offsets = (
        shown.locator("button"),
        "all => all.map(one => [one.offsetLeft, one.offsetTop, one.offsetWidth])",
    )
    places = buttons.evaluate_all(offsets)
    shown.get_by_role("button", name="and").focus()
    page.keyboard.press("ArrowRight")
    assert shown.locator("button:focus").inner_text().split() == ["the"]
    page.keyboard.press("Home")
    assert said.inner_text().startswith("At “the” no. 1, head 1 looks at “the” no. 1 (100 %)")
    assert shown.locator("path").count() == 0, "a word that looks at itself has no arc"
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("ArrowDown")  # from one head to the next
    assert said.inner_text().endswith("“and” (25 %); from “the” no. 1 it moves a bit of each.")
    assert buttons.evaluate_all(offsets) == places, "no word moves away"
    assert shown.locator("button[tabindex='0']").count() == 1, "one stop for Tab"
    page.screenshot(path=picture)
