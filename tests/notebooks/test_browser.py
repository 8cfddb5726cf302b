"""What a learner sees, in a real JupyterLab and a real browser. Skipped where there is no Chromium."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import nbformat
import pytest
from browsing import answers_the_hand, free_port, wait_until_it_answers
from commands import called
from nbval_lesson import set_scale
from sample_lesson import FACTS, NAME, checkout, graded, notebook

from companion.workshop.cli import release
from companion.workshop.cli.lessons import all_lessons

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.needs("browser")
EXEMPLAR = "02-in-context-regression"
WITH_SLIDER = next(each.name for each in all_lessons() if "Slider(" in each.source.read_text(encoding="utf-8"))
THEMES = {"Light": "08-doubling", "Dark": "09-doubling"}  # each has a lesson of its own, so that no answer is there


@contextmanager
def lab(root: Path):
    """``python -m companion lab --no-browser`` on copies of the ``lessons/`` of ``root``; gives its address."""
    # every cell is in the page, wherever it is scrolled to: a locator finds no output that JupyterLab has put away
    save_settings(root, "notebook-extension/tracker", {"windowingMode": "none"})
    port = free_port()
    code = (
        "import sys; from argparse import Namespace; from pathlib import Path; from companion.workshop.cli import lab\n"
        "lab.fetch.once = lambda: None\n"
        "arguments = Namespace(port=int(sys.argv[2]), no_browser=True, without_model=False)\n"
        "lab.main(arguments, Path(sys.argv[1]))"
    )
    # a home of its own: the settings and the workspaces of whoever runs the tests stay out of it
    folders = (
        "JUPYTER_CONFIG_DIR",
        "JUPYTER_DATA_DIR",
        "JUPYTER_RUNTIME_DIR",
        "JUPYTERLAB_SETTINGS_DIR",
        "JUPYTERLAB_WORKSPACES_DIR",
    )
    environment = os.environ | {name: str(root / "jupyter") for name in folders} | {"JUPYTER_TOKEN": "for-the-test"}
    with (root / "lab.log").open("w") as log:
        command = [sys.executable, "-c", code, str(root), str(port)]
        server = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    address = f"http://127.0.0.1:{port}"
    try:
        wait_until_it_answers(server, address, root / "lab.log", 240)
        yield address
    finally:
        server.terminate()
        server.wait(30)


def save_settings(root: Path, plugin: str, values: dict) -> None:
    """Write a user's settings of JupyterLab, which it reads as it is opened."""
    file = root / f"jupyter/@jupyterlab/{plugin}.jupyterlab-settings"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(values))


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """What the tests open in one JupyterLab: its folder and its address. The first lesson is one that was released."""
    root = checkout(tmp_path_factory.mktemp("course"), repository="someone/course")
    executed = notebook()
    executed.cells[3].source = STEP.format("### BEGIN SOLUTION\n    return 2 * M - M @ S @ M\n    ### END SOLUTION")
    executed.cells[4].source = "exercises.newton_step.check(newton_step)"
    executed.cells[4].outputs = []
    executed.cells.insert(2, nbformat.v4.new_code_cell("from companion.topics.regression import exercises"))
    nbformat.write(executed, root / f"solutions/{NAME}/{NAME}.ipynb")
    assert called("release", root=root) == 0
    for name in (WITH_SLIDER, EXEMPLAR):
        shutil.copytree(ROOT / "lessons" / name, root / "lessons" / name)
    set_scale(root / f"lessons/{WITH_SLIDER}/{WITH_SLIDER}.ipynb", "smoke")
    for name in THEMES.values():
        small_lesson(root, name)
    with lab(root) as address:
        yield root, address


@pytest.fixture
def page(browser):
    page = browser.new_page(viewport={"width": 1400, "height": 1000})
    page.set_default_timeout(60_000)
    yield page
    page.close()


def open_page(page, address: str) -> None:
    """Open it without the tabs that were open before."""
    page.goto(f"{address}?token=for-the-test&reset")


def run_all(page, notebook: Path, seconds: float) -> None:
    """Run every cell from the menu, saving until the file shows that all have run; fails on an error, or after
    ``seconds``.
    """
    page.get_by_text("Python 3 (ipykernel) | Idle").wait_for()  # before, the menu may still mean another tab
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
    deadline = time.monotonic() + seconds
    while True:
        page.wait_for_timeout(1000)
        page.keyboard.press("Control+s")
        try:
            cells = nbformat.read(notebook, as_version=4).cells
        except nbformat.reader.NotJSONError:  # JupyterLab is writing it
            continue
        cells = [cell for cell in cells if cell.cell_type == "code" and cell.source]
        errors = [output for cell in cells for output in cell.outputs if output.output_type == "error"]
        assert not errors, errors[0]
        if all(cell.execution_count for cell in cells):
            return
        ran = sum(bool(cell.execution_count) for cell in cells)
        assert time.monotonic() < deadline, f"{ran} of {len(cells)} cells ran in {seconds:.0f} s"


def wait_for_the_start_page(page, root: Path, said: str) -> None:
    """Return when it says so, in which what was saved is written, or after 30 seconds."""
    deadline = time.monotonic() + 30
    while not re.search(said, (root / "work/README.md").read_text()) and time.monotonic() < deadline:
        page.wait_for_timeout(100)


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


CONTRAST = """element => {
    const channels = colour => colour.match(/[\\d.]+/g).map(Number);
    const light = ([r, g, b]) => {
        const [x, y, z] = [r, g, b].map(c => c / 255).map(c => c <= .03928 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4);
        return .2126 * x + .7152 * y + .0722 * z;
    };
    let behind = element;
    while (channels(getComputedStyle(behind).backgroundColor)[3] === 0) behind = behind.parentElement;
    const [a, b] = [getComputedStyle(element).color, getComputedStyle(behind).backgroundColor].map(channels).map(light);
    return (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
}"""


def assert_sliders_have_names(page) -> None:
    """Every slider's handle and its readout go by the label beside them, and a handle says the value that is shown."""
    from playwright.sync_api import expect

    sliders = page.locator(".jp-OutputArea-output .widget-inline-hbox:has(.noUi-handle)").all()
    assert sliders
    for slider in sliders:
        name = slider.locator(".widget-label")
        handle = slider.get_by_role("slider", name=name.inner_text(), exact=True)
        readout = slider.get_by_role("textbox", name=name.inner_text(), exact=True)
        expect(handle).to_have_attribute("aria-valuetext", readout.inner_text(), timeout=30_000)
        assert name.evaluate(CONTRAST) >= 4.5


STEP = "@exercises.newton_step\ndef newton_step(M, S):\n    {}"


def answer(page, step: str) -> None:
    """Write ``step`` over what the cell of the exercise holds, and run it and its check from the keyboard."""
    page.locator(".jp-CodeCell", has_text="def newton_step").locator(".cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(STEP.format(step))
    page.keyboard.press("Shift+Enter")
    page.keyboard.press("Shift+Enter")


def test_a_person_walks_from_the_start_page_to_an_answered_exercise(page, course, tmp_path, capsys):
    """What the site's front page says to type has been typed: the map, the lesson that was released, a wrong answer and
    a right one; what is solved. The first test, in JupyterLab as it is when it is new.
    """
    root, address = course
    open_page(page, f"{address}/")
    page.locator(".jp-RenderedMarkdown h1", has_text="Transformers as Algorithms").wait_for()
    lesson = page.locator(".jp-RenderedMarkdown td", has_text="07 Doubling")
    lesson.filter(has_text="What is twice a number?").wait_for()
    lesson.get_by_role("link", name="07 Doubling").click()
    page.locator(".jp-Notebook .jp-RenderedMarkdown h1", has_text="Doubling").wait_for()
    assert page.get_by_text("official Jupyter news").count() == 0
    run_all(page, root / f"work/{NAME}/{NAME}.ipynb", 120)
    page.get_by_text("newton_step: not attempted").wait_for()
    answer(page, "return 2 * M + M @ S @ M")
    page.get_by_text(re.compile("newton_step: (?!not attempted|correct)")).first.wait_for()  # its diagnosis
    answer(page, "return 2 * M - M @ S @ M")
    page.get_by_text("newton_step: correct").wait_for()
    page.screenshot(path=tmp_path / "answered.png")
    page.keyboard.press("Control+s")
    wait_for_the_start_page(page, root, "07 Doubling.*1 of 1 solved")
    assert called("progress", "07", root=root) == 0
    assert capsys.readouterr().out.splitlines()[-1].split() == [NAME, "1", "of", "1", "solved", "-"]


def test_a_lesson_runs_and_its_explorer_redraws_the_figure(page, course):
    root, address = course
    open_page(page, f"{address}/lab/tree/{WITH_SLIDER}/{WITH_SLIDER}.ipynb")
    run_all(page, root / f"work/{WITH_SLIDER}/{WITH_SLIDER}.ipynb", 240)
    before, after = move_slider(page)
    assert before.startswith("data:image/png;base64,")
    assert after.startswith("data:image/png;base64,")
    assert after != before
    assert_sliders_have_names(page)


def test_the_drawings_of_the_exemplar_are_folded_when_it_is_opened(page, course, tmp_path):
    root, address = course
    exemplar = nbformat.read(root / f"lessons/{EXEMPLAR}/{EXEMPLAR}.ipynb", as_version=4)
    cells = [cell for cell in exemplar.cells if cell.cell_type == "code"]
    folded = [cell for cell in cells if cell.metadata.get("jupyter", {}).get("source_hidden")]
    open_page(page, f"{address}/lab/tree/{EXEMPLAR}/{EXEMPLAR}.ipynb")
    page.locator(".jp-CodeCell").nth(len(cells) - 1).wait_for(state="attached")
    page.get_by_text("Python 3 (ipykernel) | Idle").wait_for()
    assert page.locator(".jp-CodeCell").count() == len(cells)
    assert page.locator(".jp-CodeCell .jp-InputPlaceholder:visible").count() == len(folded) > 10
    assert page.locator(".jp-CodeCell .jp-InputArea-editor:visible").count() == len(cells) - len(folded)
    page.locator(".jp-InputPlaceholder").first.scroll_into_view_if_needed()
    page.screenshot(path=tmp_path / "folded.png")


TEXTS = ".companion-prediction .widget-label, .companion-prediction p"
ASKED = [
    "How many steps of gradient descent come as near as ten of Newton's, on the data of the figure above?",
    "At which rate does the error fall?",
    "Why?",
]
SMALL = [
    "import matplotlib.pyplot as plt\nfrom companion import Predictions\nfrom companion.lesson import figures\n"
    'predictions = Predictions("NAME")',
    f'predictions.number("steps", "{ASKED[0]}", low=1, high=1e6)',
    f'predictions.choice("rate", "{ASKED[1]}", ["linear", "exponential", "like a power of the number of layers"])',
    f'predictions.words("why", "{ASKED[2]}")',
    'predictions.compare("steps", 691, within=2)\npredictions.compare("rate", "exponential")',
    'figure, ax = plt.subplots(figsize=(5, 2.5))\nax.semilogy([0, 10], [1, 691])\npredictions.mark(ax, "steps", x=10)\n'
    'figures.Picture(figure, "A line.")',
    "predictions.sheet()",
    'print("double: correct")',
    "import ipywidgets\nfrom companion import Explorer\n"
    'Explorer(lambda ax, **at: ax.plot([0, 1], [0, at["slope"] * at["rate"]]), alt="A line.", '
    'slope=ipywidgets.IntSlider(3, 0, 8, description="slope of the line"), '
    'rate=ipywidgets.FloatLogSlider(100, min=0, max=4, description="learning rate"))',
    "import numpy as np\nfrom companion.lesson.widgets.attention_map import AttentionMap\n"
    'words, previous = ["the", "cat", "and", "the"], np.eye(4)[[0, 0, 1, 2]]\n'
    'AttentionMap(words, np.stack([previous, np.full((4, 4), 0.25)]), moves=[words, ["a bit of each"] * 4])',
]
FOLDED = {"jupyter": {"source_hidden": True}, "tags": ["drawing"]}


def small_lesson(root: Path, name: str) -> None:
    """A lesson of three predictions, a folded drawing, a score sheet and an exercise that is solved."""
    folder = root / "lessons" / name
    folder.mkdir(parents=True)
    cells = [nbformat.v4.new_code_cell(source.replace("NAME", name)) for source in SMALL]
    cells[5].metadata, cells[7].metadata = FOLDED, graded("double-check", solution=False)
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# Doubling"), *cells])
    notebook.metadata = {"companion": FACTS, "kernelspec": release.KERNEL}
    nbformat.write(notebook, folder / f"{name}.ipynb")


@pytest.mark.parametrize("theme", THEMES)
def test_predictions_are_made_by_keyboard_and_come_back_and_the_start_page_knows(page, course, tmp_path, theme):
    (root, address), name, requested = course, THEMES[theme], []
    save_settings(root, "apputils-extension/themes", {"theme": f"JupyterLab {theme}"})
    page.on("request", lambda request: requested.append(request.url))
    open_page(page, f"{address}/lab/tree/{name}/{name}.ipynb")
    run_all(page, root / f"work/{name}/{name}.ipynb", 120)
    assert page.locator("body").get_attribute("data-jp-theme-name") == f"JupyterLab {theme}"
    page.get_by_text("measured 691", exact=False).first.wait_for()
    assert page.get_by_text("ax.semilogy").count() == 0, "the drawing is folded"
    assert page.locator(".jp-RenderedImage img").count() == 1, "and its figure is not"

    answers_the_hand(page, tmp_path / "map.png")
    assert [url for url in requested if not url.startswith((address, "data:", "blob:"))] == []

    page.get_by_label(ASKED[0]).focus()
    page.keyboard.type("five hundred\n")
    page.get_by_text("“five hundred” is not a number").wait_for()
    page.keyboard.press("Control+a")
    page.keyboard.type("512\n")
    page.get_by_text("Kept: 512").wait_for()
    for key in ("Tab", "Space"):
        page.keyboard.press(key)
    page.get_by_text("Kept: linear").wait_for()
    page.get_by_label(ASKED[2]).focus()
    page.keyboard.type("It halves.")
    page.keyboard.press("Tab")
    page.get_by_text("Kept: It halves.").wait_for()
    assert min(text.evaluate(CONTRAST) for text in page.locator(TEXTS).all()) >= 4.5
    assert page.locator(".companion-prediction .widget-radio").bounding_box()["width"] > 400, "no column"
    assert_sliders_have_names(page)
    page.get_by_role("slider", name="learning rate").scroll_into_view_if_needed()
    page.screenshot(path=tmp_path / "explorer.png")
    page.get_by_label(ASKED[0]).scroll_into_view_if_needed()
    page.screenshot(path=tmp_path / "asked.png")

    page.get_by_role("menuitem", name="Kernel", exact=True).click()
    page.get_by_role("menuitem", name="Restart Kernel and Run All Cells…", exact=True).click()
    page.get_by_role("button", name="Confirm Kernel Restart").click()
    page.get_by_text("you said 512; measured 691").wait_for()
    page.get_by_text("you said linear; the answer: exponential").wait_for()
    page.get_by_text("1 of 2 judged predictions right").scroll_into_view_if_needed()
    page.screenshot(path=tmp_path / "sheet.png")
    page.get_by_label(ASKED[0]).wait_for()
    assert [page.get_by_label(ASKED[at]).input_value() for at in (0, 2)] == ["512", "It halves."]
    assert page.get_by_role("radio", name="linear").is_checked()
    page.get_by_label(ASKED[0]).scroll_into_view_if_needed()
    page.screenshot(path=tmp_path / "back.png")
    page.keyboard.press("Control+s")
    wait_for_the_start_page(page, root, f"{name}.*of 2 right")

    open_page(page, f"{address}/lab/tree/README.md")
    lesson = page.locator(".jp-RenderedMarkdown td", has_text=f"{name[:2]} Doubling")
    for said in ("3 of 3 made, 1 of 2 right", "1 of 1 solved"):
        lesson.filter(has_text=said).wait_for()
    page.screenshot(path=tmp_path / "start.png")
