"""``site``: a small course as pages, looked at in a real browser."""

import functools
import html
import http.server
import io
import json
import random
import re
import shutil
import subprocess
import sys
import threading
from base64 import b64decode, b64encode
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlparse

import nbformat
import numpy as np
import pytest
from browsing import answers_the_hand
from commands import called
from IPython.core.interactiveshell import InteractiveShell
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output
from PIL import Image
from sample_lesson import CLAIM, NAME, checkout, further, notebook

from companion.lesson.widgets.attention_map import AttentionMap
from companion.lesson.widgets.frames import MIME
from companion.workshop.cli import launch, site

ROOT = Path(__file__).resolve().parents[3]
COPIED = {
    "TEACHING.md": "TEACHING.md",
    "companion/published/references.bib": "companion/published/references.bib",
    "solutions/01-attention-basics/figure.png": f"solutions/{NAME}/figure.png",
}
CODE = """
import sys
from pathlib import Path
from companion.workshop.cli import site
from companion.workshop.site.build import build

root = Path(sys.argv[1])
print(build(site.course(root, root / "run", ("companion.core.files",)), root / "site"))
"""
PAGES = (
    "index",
    f"lessons/{NAME}/{NAME}",
    f"lessons/{NAME}/{NAME}-further",
    "claims",
    "sources",
    "glossary",
    "teaching",
    "made",
    "reference/index",
    "reference/core",
    "_modules/companion/core/files",
)
LONG = r"A long formula: $$" + " + ".join(rf"\frac{{x_{{{n}}}}}{{{n}!}}" for n in range(1, 40)) + "$$"
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
CONTROLS = [
    {"label": "k", "values": ["0", "1"], "start": 0, "menu": False},
    {"label": "m", "values": ["a", "b"], "start": 1, "menu": False},
    {"label": "text", "values": ["a rose", "the cat"], "start": 0, "menu": True},
]
EXPLORER = {"image/png": PNG, "text/plain": "A line.", MIME: {"controls": CONTROLS, "frames": [PNG] * 8}}
Image.new("1", (1200, 9)).save(wider := io.BytesIO(), "png")
WIDE = b64encode(wider.getvalue()).decode()  # wider than a phone
ANSWER = new_output("display_data", {"image/png": WIDE}, metadata={"image/png": {"alt": "The box says\nfour."}})
SHEET = (
    "<table><tr><th>Question</th><th>You said</th><th>Measured</th><th>Verdict</th></tr>"
    "<tr><td>How many?</td><td>-</td><td>3</td><td>no prediction</td></tr></table>"
    "<p>0 of 0 judged predictions right; 1 of 1 questions without a prediction.</p>"
)

REPORTED = ("statement", "source", "published", "threshold", "control", "why", "run", "checkpoint")
CLAIMS = [CLAIM, CLAIM | {"id": "trebles", "verdict": "different"}]
CLAIMS += [  # each text another one, with what HTML and Markdown would read
    CLAIM | {"id": f"c{number}"} | {key: f"{key} no{number} <b> & $x$ *y* | `z`" for key in REPORTED}
    for number in range(12)
]


def attention_map() -> dict:
    """What a notebook keeps of a map of two heads."""
    words, previous = ["the", "cat", "and", "the"], np.eye(4)[[0, 0, 1, 2]]
    made = AttentionMap(words, np.stack([previous, np.full((4, 4), 0.25)]), moves=[words, ["a bit of each"] * 4])
    return InteractiveShell.instance().display_formatter.format(made)[0]


def write_run(root: Path, claims: list[dict]) -> None:
    """The report of a run in the checkout at ``root``, which gave these ``claims``."""
    (root / "run").mkdir()
    entry = {"lesson": NAME, "scale": "smoke", "seed": 3, "claims": claims}
    (root / "run/report.json").write_text(json.dumps({"lessons": [entry]}))


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """The folder of a site of one lesson and one module, made in a process of its own."""
    root = checkout(tmp_path_factory.mktemp("checkout"), repository="someone/course", two=True)
    (root / f"solutions/{NAME}/answer.png").write_bytes(b64decode(PNG))
    executed = notebook()
    asked = {"text/html": "<div><p><strong>Your prediction.</strong> How many?</p><p><em>none</em></p></div>"}
    executed.cells += [
        new_markdown_cell(
            f"{LONG}\n\n<details><summary>Hint</summary>A residual stream.</details>\n\n![A](figure.png)\n\n"
            "| | one |\n|---|---|\n| a | 1 |"
        ),
        new_code_cell('predictions.number("n", "How many?")', outputs=[new_output("execute_result", asked)]),
        new_code_cell('predictions.compare("n", 3)', outputs=[new_output("stream", name="stdout", text="measured 3")]),
        new_code_cell("predictions.sheet()", outputs=[new_output("execute_result", {"text/html": SHEET})]),
        new_code_cell("answer", metadata={"tags": ["drawing", "answer"]}, outputs=[ANSWER]),
        new_code_cell("Explorer(draw)", outputs=[new_output("execute_result", EXPLORER)]),
        new_code_cell("AttentionMap(words, pattern)", outputs=[new_output("execute_result", attention_map())]),
    ]
    for origin, name in COPIED.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / origin, root / name)
    write_run(root, CLAIMS)
    nbformat.write(executed, root / f"run/{NAME}.ipynb")
    nbformat.write(further(), root / f"run/{NAME}-further.ipynb")
    done = subprocess.run([sys.executable, "-c", CODE, root], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "[]\n"), f"Sphinx has nothing to warn of: {done.stderr}{done.stdout}"
    return root / "site/html"


@pytest.fixture(scope="module")
def address(built):
    """Where the site is served."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *arguments):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(built)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def page(browser):
    page = browser.new_page()
    yield page
    page.close()


def test_every_page_is_there(built):
    assert [page for page in PAGES if not (built / f"{page}.html").is_file()] == []
    text = (built / f"lessons/{NAME}/{NAME}.html").read_text(encoding="utf-8")
    assert "double(3)" not in text, "what learners must not see of a check"
    assert 'id="atomic_write"' in (built / "_modules/companion/core/files.html").read_text(encoding="utf-8"), (
        "the source"
    )


def test_both_notebooks_have_a_page_and_lead_to_each_other_and_the_card_shows_the_answer(built):
    lesson, further = (
        (built / f"lessons/{NAME}/{name}.html").read_text(encoding="utf-8") for name in (NAME, f"{NAME}-further")
    )
    assert f'href="{NAME}-further.html"' in lesson
    assert re.search(rf'Back to the lesson: <a [^>]*href="{NAME}.html"', further)
    front = (built / "index.html").read_text(encoding="utf-8")
    assert re.search(r'<img [^>]*alt="The box says four."', front)
    assert 'id="notation"' in front


def test_the_front_page_says_what_to_type_and_leads_to_a_lesson_whose_badges_open_it(built, page):
    page.goto((built / "index.html").as_uri())
    assert "python3 -m companion lab" in page.inner_text("pre")
    page.locator(".sd-card", has_text="07 · Doubling").click()
    page.get_by_role("heading", name="Doubling", level=1).wait_for()
    binder, colab = (page.get_by_role("link", name=place).get_attribute("href") for place in ("Binder", "Colab"))
    assert parse_qs(urlparse(binder).query)["urlpath"] == [f"lab/tree/lessons/{NAME}/{NAME}.ipynb"]
    assert urlparse(colab).path.partition("/blob/main/")[2] == f"lessons/{NAME}/{NAME}.ipynb"


def test_every_link_of_a_page_leads_somewhere(built):
    pages = [path for path in built.rglob("*.html") if "_static" not in path.parts]
    texts = {path: path.read_text(encoding="utf-8") for path in pages}
    broken = []
    for path, text in texts.items():
        for link in re.findall(r'(?:href|src)="([^"]*)"', text):
            address = urlparse(html.unescape(link))
            target = (path.parent / unquote(address.path)).resolve() if address.path else path
            anchor = address.fragment and target in texts and f'id="{unquote(address.fragment)}"' not in texts[target]
            if not address.scheme and (not target.is_file() or anchor):
                broken.append((path.name, link))
    assert broken == []


@pytest.mark.parametrize(("scheme", "paper"), [("light", "rgb(255, 255, 255)"), ("dark", "rgb(18, 18, 18)")])
def test_nothing_is_wrong_and_no_other_host_is_asked(address, browser, scheme, paper):
    from axe_playwright_python.sync_playwright import Axe

    axe = Axe()
    page = browser.new_page(color_scheme=scheme)
    asked, found = [], []
    page.on("request", lambda request: asked.append(request.url))
    for name in PAGES if scheme == "light" else PAGES[:3]:
        page.goto(f"{address}/{name}.html")
        page.evaluate("window.MathJax?.startup?.promise")
        found += [(name, each["id"], each["impact"]) for each in axe.run(page).response["violations"]]
    assert found == []
    assert any("mathjax" in url for url in asked)
    assert [url for url in asked if not url.startswith((address, "data:"))] == []
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == paper
    page.close()


def test_a_phone_s_page_does_not_scroll_sideways_and_what_is_wider_does_by_keyboard(address, browser):
    from axe_playwright_python.sync_playwright import Axe

    axe = Axe()
    page = browser.new_page(viewport={"width": 390, "height": 844})
    for name in PAGES:
        page.goto(f"{address}/{name}.html")
        page.evaluate("window.MathJax?.startup?.promise")
        assert [each["id"] for each in axe.run(page).response["violations"]] == [], name
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 1, name  # the theme rounds up
    page.close()


def test_ten_random_claims_read_as_the_run_reported_them(address, page):
    for claim in random.sample(CLAIMS, 10):
        page.goto(f"{address}/claims.html#07-{claim['id']}")
        row = page.locator(f"[id='07-{claim['id']}']")
        assert row.get_attribute("open") is not None, "an address opens its claim"
        assert row.locator("summary").inner_text().startswith(f"{claim['verdict']} {claim['statement']}")
        heads, texts = (row.locator(tag).all_inner_texts() for tag in ("dt", "dd"))
        told = dict(zip(heads, texts, strict=True))
        assert told["This run"] == f"{claim['run']} (as expected)"
        shown = {
            "Published": "published",
            "Where": "source",
            "Ours": "why",
            "Our bar": "threshold",
            "Control": "control",
        }
        assert {head: told[head] for head in shown} == {head: claim[key] for head, key in shown.items()}
        assert told.get("Our checkpoint", "-") == claim["checkpoint"]
    page.goto(f"{address}/claims.json")
    told = json.loads(page.inner_text("pre"))
    assert [{key: claim[key] for key in CLAIM} for claim in told["claims"]] == CLAIMS


def test_claims_are_filtered_and_searched(address, page):
    page.goto(f"{address}/claims.html")
    names = lambda: [row.get_attribute("id") for row in page.query_selector_all(".claims details:visible")]  # noqa: E731
    assert page.inner_text(".claims-count") == "14 of 14" and len(names()) == 14
    page.select_option("select[name=verdict]", "different")
    assert (page.inner_text(".claims-count"), names()) == ("1 of 14", ["07-trebles"])
    numbers = [cell.inner_text() for cell in page.query_selector_all(".summary tbody tr:visible td")]
    assert numbers == ["–", "–", "1", "–", ""], "the table of sources counts what is shown"
    page.select_option("select[name=verdict]", "")
    page.fill("input[name=search]", "CHECKPOINT no7")
    assert (page.inner_text(".claims-count"), names()) == ("1 of 14", ["07-c7"])
    page.locator("[id='07-c7'] summary").click()
    page.locator("[id='07-c7']").get_by_role("link", name="#07-c7").click()
    assert page.url.endswith("claims.html#07-c7")
    page.locator("[id='07-c7']").get_by_role("link", name="Doubling").click()
    assert page.url.endswith(f"/{NAME}.html"), "a claim that no cell names leads to its lesson"


def test_a_prediction_comes_back(address, page):
    page.goto(f"{address}/lessons/{NAME}/{NAME}.html")
    assert not page.is_visible("text=measured 3")
    sheet = page.locator("table", has_text="You said")
    assert " ".join(sheet.inner_text().split()) == "Question You said Measured Verdict How many? – 3 no prediction"
    assert page.get_by_text("judged").count() == 0
    page.fill("input[data-prediction=n]", "four")
    page.reload()
    assert " ".join(sheet.inner_text().split()) == "Question You said Measured Verdict How many? four 3"
    page.click("details.measured summary")
    page.wait_for_selector("text=You predicted: four")
    assert page.is_visible("text=measured 3")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_an_attention_map_answers_without_a_network(built, browser, scheme, tmp_path):
    page = browser.new_page(color_scheme=scheme, viewport={"width": 400, "height": 800})
    page.context.set_offline(True)
    page.goto((built / f"lessons/{NAME}/{NAME}.html").as_uri())
    answers_the_hand(page, tmp_path / "map.png")
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 1
    page.close()


def test_an_explorer_moves_with_the_keyboard(address, page):
    page.goto(f"{address}/lessons/{NAME}/{NAME}.html")
    frame = lambda: page.get_attribute(".explorer img", "src").rpartition("-")[2]  # noqa: E731
    assert frame() == "2.png"
    page.focus(".explorer input")
    page.keyboard.press("ArrowRight")
    assert (frame(), page.get_attribute(".explorer input", "aria-valuetext")) == ("6.png", "1")
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowLeft")
    assert (frame(), page.inner_text(".explorer label:nth-of-type(2) output")) == ("4.png", "a")
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    assert (frame(), page.input_value(".explorer select")) == ("5.png", "1")
    page.reload()
    assert (frame(), page.input_value(".explorer select")) == ("2.png", "0"), "where it stood"


def test_a_class_s_own_hub_gets_a_link(address, page):
    page.goto(f"{address}/teaching.html")
    page.get_by_label("The hub's address").fill("hub.example.edu")
    assert page.locator(".pull a").count() == 0, "no address yet"
    page.get_by_label("The hub's address").fill("https://hub.example.edu/")
    link = page.get_attribute(".pull a", "href")
    assert link == launch.gitpuller("https://hub.example.edu", "someone/course", f"lessons/{NAME}/{NAME}.ipynb")


def test_what_has_not_been_run_is_named(tmp_path, capsys):
    (tmp_path / "run").mkdir()
    assert called("site", "--run", tmp_path / "run", "--out", tmp_path / "site", root=checkout(tmp_path)) == 1
    assert f"run lacks {NAME}: `python3 -m companion run` makes it" in capsys.readouterr().out


def test_a_run_in_which_a_lesson_has_stopped_is_named_with_its_cell(tmp_path, capsys):
    checkout(tmp_path, name="06-failing")
    checkout(tmp_path, two=True)
    write_run(tmp_path, [CLAIM])
    for name in ("06-failing", NAME):
        nbformat.write(notebook(), tmp_path / f"run/{name}.ipynb")
    report = json.loads((tmp_path / "run/report.json").read_text())
    error = '06-failing, cell 7 ("A claim"), `e.check(e)`: Mistake: two lines,\nof which one is told'
    report["lessons"] += [{"lesson": "06-failing", "scale": "smoke", "seed": 3, "claims": [], "errors": [error]}]
    (tmp_path / "run/report.json").write_text(json.dumps(report))
    assert called("site", "--run", tmp_path / "run", "--out", tmp_path / "site", root=tmp_path) == 1
    assert capsys.readouterr().out.splitlines() == [
        'site: it stopped at 06-failing, cell 7 ("A claim"), `e.check(e)`: Mistake: two lines,; mend it, then '
        "`python3 -m companion run 06`",
        f"site: {tmp_path / 'run'} lacks {NAME}-further: `python3 -m companion run 07` makes it",
        "No page was made, as the pages show all lessons with their answers.",
    ]
    assert not (tmp_path / "site").exists()


def test_a_lesson_may_have_no_second_notebook_and_no_answered_picture(tmp_path):
    write_run(checkout(tmp_path), [CLAIM])
    [chapter] = site.course(tmp_path, tmp_path / "run", ()).chapters
    assert (chapter.notebooks, chapter.answer) == ([tmp_path / f"run/{NAME}.ipynb"], None)


def test_the_reference_is_of_what_people_read_to_learn():
    names = site.modules(ROOT)
    assert {"companion.core.decoder", "companion.topics.regression.data", "companion.core.training"} <= set(names)
    assert not [name for name in names if ".workshop" in name or name.endswith("__init__")]
