"""A lesson's page: what is folded, what leads where, what a picture says."""

import re

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from companion.lesson.widgets.frames import MIME
from companion.workshop.site import notebooks
from companion.workshop.site.course import Chapter

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="  # one pixel


@pytest.fixture
def page(tmp_path):
    """The page's cells of a notebook with these cells."""

    def made(*cells, opens=(), terms=()):
        path = tmp_path / "07-doubling.ipynb"
        nbformat.write(new_notebook(cells=list(cells)), path)
        chapter = Chapter("07-doubling", {}, path, path, {}, {path.name: dict(opens)})
        patterns = {term: re.compile(rf"(?<![\w-]){term}", re.IGNORECASE) for term in terms}
        return notebooks.page(chapter, path, patterns, tmp_path).cells

    return made


def test_answers_and_hints_are_folded(page):
    stub, code, hint, written = page(
        new_code_cell("def double(x):\n    ### BEGIN SOLUTION\n    return 2 * x\n    ### END SOLUTION"),
        new_markdown_cell("<details><summary>Hint: $x$ and `y`</summary>Is $2x$ right?</details>"),
        new_markdown_cell("Why?\n\n### BEGIN SOLUTION\nBecause.\n### END SOLUTION"),
    )
    assert stub.source == "```python\ndef double(x):\n    ...\n```"
    assert code.source == "def double(x):\n    return 2 * x\n"
    assert code.metadata == {"tags": ["hide-input"], "mystnb": {"code_prompt_show": "An answer"}}
    assert '<summary>Hint: <span class="math">\\(x\\)</span> and <code>y</code></summary>\n\nIs $2x$' in hint.source
    assert "<summary>An answer</summary>\n\nBecause.\n\n</details>" in written.source


def test_hidden_tests_are_not_shown_and_what_draws_is_folded(page):
    check, drawing, plain = page(
        new_code_cell("check(f)\n### BEGIN HIDDEN TESTS\ngrade(f)\n### END HIDDEN TESTS"),
        new_code_cell("draw()", metadata={"tags": ["drawing"]}),
        new_code_cell("1 + 1"),
        new_code_cell("SEED = 1", metadata={"tags": ["injected-parameters"]}),
        new_code_cell("claims.verdicts()", outputs=[new_output("stream", name="stdout", text="first: reproduced")]),
    )
    assert check.source == "check(f)"
    assert drawing.metadata["tags"] == ["hide-input"]
    assert plain.metadata == {}


def test_the_picture_of_the_head_is_shown_once(page, tmp_path):
    output = new_output("display_data", {"image/png": PNG, "text/plain": "A line."})
    [cell] = page(new_code_cell("draw()", metadata={"tags": ["drawing", "remove-output"]}, outputs=[output]))
    assert (cell.source, cell.outputs) == ("draw()", [])
    assert not list(tmp_path.glob("*.png"))


def test_a_picture_is_a_file_with_its_text(page, tmp_path):
    data = {"image/png": PNG, "text/plain": 'A "line".', notebooks.WIDGET: {}}
    [cell] = page(
        new_code_cell("f", outputs=[new_output("display_data", data, metadata={"image/png": {"alt": 'A "line".'}})])
    )
    [output] = cell.outputs
    assert output.data["text/html"] == (
        f'<div class="wide" tabindex="0"><img src="../../_static/{tmp_path.name}/07-doubling-0-0.png" '
        'alt="A &quot;line&quot;." width="1" height="1" style="min-width: 1px" loading="lazy"></div>'
    )
    assert (tmp_path / "07-doubling-0-0.png").is_file()


def test_an_explorer_is_sliders_over_frames(page, tmp_path):
    controls = [
        {"label": "k", "values": ["0", "1"], "start": 1, "menu": False},
        {"label": "m", "values": ["a", "b", "c"], "start": 2, "menu": False},
        {"label": "<text>", "values": ["a rose", "the cat"], "start": 1, "menu": True},
    ]
    data = {"image/png": PNG, "text/plain": "Bars.", MIME: {"controls": controls, "frames": [PNG] * 12}}
    [cell] = page(new_code_cell("Explorer(f)", outputs=[new_output("execute_result", data)]))
    shown = cell.outputs[0].data["text/html"]
    assert re.findall(r'max="(\d)" value="(\d)".*?aria-valuetext="(\w)"', shown) == [("1", "1", "1"), ("2", "2", "c")]
    assert '&lt;text&gt; <select><option value="0">a rose</option><option value="1" selected>the cat<' in shown
    assert '07-doubling-0-0-11.png" alt="Bars."' in shown, "where it stood"
    assert len(list(tmp_path.glob("07-doubling-0-0-*.png"))) == 12


def test_what_needs_a_kernel_is_left_out(page):
    bar = new_output("display_data", {notebooks.WIDGET: {}, "text/plain": "100%"})
    [cell] = page(new_code_cell("train()", outputs=[bar, new_output("stream", name="stderr", text="a warning")]))
    assert cell.outputs == []


def test_a_prediction_is_asked_for_before_the_measurement_shows(page):
    asked = {"text/html": "<div><p><strong>Your prediction.</strong> How &lt; many?</p><p><em>none</em></p></div>"}
    question, answer = page(
        new_code_cell('predictions.number("many", "How")', outputs=[new_output("execute_result", asked)]),
        new_code_cell(
            'predictions.compare("many", 3)', outputs=[new_output("stream", name="stdout", text="measured 3")]
        ),
    )
    assert (
        '<label>Your prediction: <span>How &lt; many?</span> <input data-prediction="many">'
        in question.outputs[0].data["text/html"]
    )
    shown = answer.outputs[0].data["text/html"]
    assert shown.startswith('<details class="measured" data-predictions="many"><summary>')
    assert shown.index("</summary>") < shown.index("measured 3") < shown.index("</details>")


def test_a_choice_is_a_menu_and_names_that_a_loop_makes_are_found(page):
    asks = "<div><p><strong>Your prediction.</strong> Which?</p><ul><li>a &lt; b</li><li>none</li></ul></div>"
    said = [new_output("stream", name="stdout", text="measured 3")]
    cells = [
        new_code_cell(
            f'predictions.choice("{name}", "Which?")', outputs=[new_output("execute_result", {"text/html": asks})]
        )
        for name in ("mod-2", "mod-5", "which")
    ]
    shows = (
        'predictions.compare(f"mod-{m}", 3)',
        "predictions.compare(name, 3)",
        'predictions.mark(axes[0], "which", x=3)\npredictions.compare(\n    "mod-5", 3)',
    )
    made = page(*cells, *(new_code_cell(show, outputs=said) for show in shows))
    assert (
        '<select data-prediction="mod-2"><option></option><option>a &lt; b</option><option>none</option>'
        in (made[0].outputs[0].data["text/html"])
    )
    names = [re.search('data-predictions="(.*?)"', cell.outputs[0].data["text/html"])[1] for cell in made[3:]]
    assert names == ["mod-2 mod-5", "mod-2 mod-5 which", "mod-5 which"]


def test_links_lead_to_pages_and_terms_to_the_glossary_once(page):
    first, second, third = page(
        new_markdown_cell("# A head"),
        new_markdown_cell(
            "`head` $head$ [head](x.md): a Head. [a](../01-a/01-a.ipynb#2-·-What-it-does?) [all](../README.md)"
        ),
        new_markdown_cell("Another head."),
        terms=("head",),
    )
    assert first.source == "# A head"
    assert second.source == (
        "`head` $head$ [head](x.md): a {term}`Head <head>`. [a](../01-a/01-a.ipynb#2--what-it-does) [all](/index.md)"
    )
    assert third.source == "Another head."


def test_a_page_has_one_title(page):
    cells = page(new_markdown_cell("# A\n\n## So"), new_markdown_cell("# Part\n\n```\n# no\n```\n\n## What"))
    assert [cell.source for cell in cells] == ["# A\n\n### So", "## Part\n\n```\n# no\n```\n\n### What"]
    for plain in ("# A\n\n## So", "# A\n\n## So\n\n<pre>\n# no</pre>", "# A\n\n```\n# no\n```"):
        assert [cell.source for cell in page(new_markdown_cell(plain))] == [plain]


def test_places_to_run_it_are_named_where_there_are_any(page):
    cells = page(new_markdown_cell("# A"), opens={"Binder": "https://b", "Colab": "https://c"})
    assert cells[1].source == "Run it: [Binder](https://b) · [Colab](https://c)"
    assert len(page(new_markdown_cell("# A"))) == 1
