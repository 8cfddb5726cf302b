"""What a learner sees, in a real JupyterLab and a real browser. Skipped where there is no Chromium."""

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from argparse import Namespace
from contextlib import contextmanager
from pathlib import Path

import nbformat
import pytest
from sample_lesson import NAME, checkout

from companion.cli import release
from companion.cli.lessons import every

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

ROOT = Path(__file__).resolve().parents[2]
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on PATH (Debian: apt install chromium)")


@contextmanager
def lab(root: Path):
    """``python -m companion lab --no-browser`` on the ``lessons/`` of ``root``; gives its address with the token."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    code = (
        "import sys; from argparse import Namespace; from pathlib import Path; from companion.cli import lab\n"
        "lab.main(Namespace(port=int(sys.argv[2]), no_browser=True), Path(sys.argv[1]))"
    )
    # a home of its own: the settings and the workspaces of whoever runs the tests stay out of it
    folders = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "JUPYTERLAB_SETTINGS_DIR", "JUPYTERLAB_WORKSPACES_DIR")
    environment = os.environ | {name: str(root / "jupyter") for name in folders} | {"JUPYTER_TOKEN": "for-the-test"}
    with (root / "lab.log").open("w") as log:
        command = [sys.executable, "-c", code, str(root), str(port)]
        server = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    address = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + 90
        while server.poll() is None and time.monotonic() < deadline:
            try:
                urllib.request.urlopen(f"{address}/api", timeout=5)
                break
            except OSError:
                time.sleep(0.5)
        else:
            pytest.fail(f"JupyterLab did not start:\n{(root / 'lab.log').read_text()}")
        yield address
    finally:
        server.terminate()
        server.wait(30)


@pytest.fixture
def page():
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1400, "height": 1000})
        page.set_default_timeout(60_000)
        yield page
        browser.close()


def open_page(page, address: str) -> None:
    page.goto(f"{address}?token=for-the-test")


def run_all(page, notebook: Path, seconds: float) -> None:
    """Run every cell from the menu, saving until the file shows that all have run; fails on an error, or after ``seconds``."""
    page.get_by_text("Python 3 (ipykernel) | Idle").wait_for()  # before, the menu may still mean another tab
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
    deadline = time.monotonic() + seconds
    while True:
        page.wait_for_timeout(1000)
        page.keyboard.press("Control+s")
        cells = [cell for cell in nbformat.read(notebook, as_version=4).cells if cell.cell_type == "code" and cell.source]
        errors = [output for cell in cells for output in cell.outputs if output.output_type == "error"]
        assert not errors, errors[0]
        if all(cell.execution_count for cell in cells):
            return
        ran = sum(bool(cell.execution_count) for cell in cells)
        assert time.monotonic() < deadline, f"{ran} of {len(cells)} cells ran in {seconds:.0f} s"


def move_slider(page) -> tuple[str, str]:
    """Move the first slider of the page by one step; the picture under it before, and after it changed."""
    explorer = page.locator(".jp-OutputArea-output:has(.noUi-handle)").first
    handle, picture = explorer.locator(".noUi-handle").first, explorer.locator("img").first
    handle.scroll_into_view_if_needed()
    before = picture.get_attribute("src")
    handle.focus()
    at_its_end = handle.get_attribute("aria-valuenow") == handle.get_attribute("aria-valuemax")
    page.keyboard.press("ArrowLeft" if at_its_end else "ArrowRight")
    deadline = time.monotonic() + 30
    while picture.get_attribute("src") == before and time.monotonic() < deadline:
        page.wait_for_timeout(100)
    return before, picture.get_attribute("src")


def test_the_start_page_is_rendered_and_leads_to_the_lessons(page, tmp_path):
    release.main(Namespace(lessons=[], check=False), checkout(tmp_path))
    with lab(tmp_path) as address:
        open_page(page, f"{address}/")
        page.locator(".jp-RenderedMarkdown h1", has_text="Transformers as Algorithms").wait_for()
        page.locator(".jp-RenderedMarkdown td", has_text="What is twice a number?").wait_for()
        page.locator(".jp-RenderedMarkdown a", has_text="07 Doubling").click()
        page.locator(".jp-Notebook .jp-RenderedMarkdown h1", has_text="Doubling").wait_for()
        assert page.get_by_text("official Jupyter news").count() == 0
        run_all(page, tmp_path / f"lessons/{NAME}/{NAME}.ipynb", 60)


@pytest.mark.parametrize("lesson", every()[:1], ids=lambda lesson: lesson.name)
def test_a_lesson_runs_and_its_explorer_redraws_the_figure(page, tmp_path, lesson):
    folder = shutil.copytree(ROOT / "lessons" / lesson.name, tmp_path / "lessons" / lesson.name)  # JupyterLab saves into what it serves
    path = folder / lesson.source.name
    notebook = nbformat.read(path, as_version=4)
    parameters = next(cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", []))
    parameters.source = parameters.source.replace("course", "smoke")
    nbformat.write(notebook, path)
    with lab(tmp_path) as address:
        open_page(page, f"{address}/lab/tree/{lesson.name}/{lesson.source.name}")
        run_all(page, path, 240)
        before, after = move_slider(page)
        assert before.startswith("data:image/png;base64,")
        assert after.startswith("data:image/png;base64,")
        assert after != before
