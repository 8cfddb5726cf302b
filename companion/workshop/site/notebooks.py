"""A lesson's page: its executed notebook, with drawings' code, answers and hints folded, and pictures that say what
they show.
"""

import base64
import html
import json
import re
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell, new_output

from companion.lesson.widgets.frames import MIME
from companion.workshop.site.again import MEASURES
from companion.workshop.site.atlas import anchor
from companion.workshop.site.course import Chapter

WIDGET = "application/vnd.jupyter.widget-view+json"
DETAILS = re.compile(r"<details><summary>(.*?)</summary>(.*?)</details>", re.DOTALL)
ANSWER = re.compile(r"^( *)### BEGIN SOLUTION\n.*?^ *### END SOLUTION\n?", re.DOTALL | re.MULTILINE)
WRITTEN = re.compile(r"### BEGIN SOLUTION\n(.*?)\n### END SOLUTION", re.DOTALL)
HIDDEN = re.compile(r"\n? *### BEGIN HIDDEN TESTS.*?### END HIDDEN TESTS", re.DOTALL)
ASKED = re.compile(r'predictions\.\w+\(\s*"([\w-]+)"')
SHOWN = re.compile(r'predictions\.(?:compare|mark)\((?:\s*(?:[\w.\[\]]+,\s*)?f?"([^"]*)")?')
CHOICES = re.compile(r"<ul>(.*?)</ul>", re.DOTALL)
TALLY = re.compile(r"<p>[^<]* judged predictions right[^<]*</p>")
RECORD = "claims.verdicts()"  # what nbval compares; the table above it says the same
LEGIBLE = 0.52  # of a picture's own width is the least that it is drawn at: 7 inches fit a phone, and wider ones scroll
TITLE = re.compile(r"^# ", re.MULTILINE)
CODE = re.compile(r"(```.*?```|<pre>.*?</pre>)", re.DOTALL)  # a comment in it is no heading
VERBATIM = re.compile(
    r"(```.*?```|`[^`\n]+`|\$\$.*?\$\$|\$[^$\n]+\$|!?\[[^\]]*\]\([^)]*\)|<[^>]+>|^#.*?$)", re.DOTALL | re.MULTILINE
)


def page(chapter: Chapter, executed: Path, terms: dict[str, re.Pattern], pictures: Path) -> NotebookNode:
    """Return one of the notebooks of ``chapter`` as the site shows it.

    ``chapter``: the lesson.
    ``executed``: which of its notebooks.
    ``terms``: the first time that one of them occurs, it leads to the glossary.
    ``pictures``: the folder that the notebook's pictures are written into.
    """
    notebook = nbformat.read(executed, as_version=4)
    unseen, cells, asked = dict(terms), [], []
    _one_title(notebook)
    for number, cell in enumerate(notebook.cells):
        tags = cell.metadata.get("tags", [])
        if {"injected-parameters", "colab"} & set(tags) or cell.source == RECORD:
            continue
        if cell.cell_type == "markdown":
            cells.append(new_markdown_cell(_linked(_prose(cell.source), unseen)))
        else:
            marks = "".join(f'<span id="{anchor(id)}"></span>' for id in MEASURES.findall(cell.source))
            cells += [new_markdown_cell(marks)] * bool(marks)
            if "remove-output" in tags:  # the picture of the head, drawn in the set-up: the page shows it already
                cell.outputs = []
            cells += _code(cell, f"{executed.stem}-{number}", pictures, asked)
    if chapter.beside:
        links = [f"Back to the lesson: [{chapter.title}]({chapter.name}.ipynb)"]
        if executed == chapter.executed:
            links = [f"[{title}]({path.name})" for title, path in chapter.beside.items()]
        cells.append(new_markdown_cell(" · ".join(links)))
    if opens := chapter.opens.get(executed.name):
        places = " · ".join(f"[{name}]({address})" for name, address in opens.items())
        cells.insert(1, new_markdown_cell(f"Run it: {places}"))
    notebook.cells = cells
    notebook.metadata.pop("widgets", None)
    return notebook


def answer_alt(executed: Path) -> str:
    """Return the alt text of the picture that answers the one at the lesson's head: of the cell tagged ``answer``."""
    cells = nbformat.read(executed, as_version=4).cells
    [answer] = [cell for cell in cells if "answer" in cell.metadata.get("tags", [])]
    [alt] = [output.metadata["image/png"]["alt"] for output in answer.outputs if "image/png" in output.get("data", {})]
    return " ".join(alt.split())


def _one_title(notebook: NotebookNode) -> None:
    """Where parts are titles of the first rank, too, every heading but the page's own goes one rank down."""
    prose = [cell for cell in notebook.cells if cell.cell_type == "markdown"]
    if sum(len(TITLE.findall(CODE.sub("", cell.source))) for cell in prose) > 1:
        for number, cell in enumerate(prose):
            head, rest = TITLE.split(cell.source, 1) if number == 0 else ("", cell.source)
            parts = CODE.split(rest)
            parts[::2] = (re.sub(r"^(#+ )", r"#\1", part, flags=re.M) for part in parts[::2])
            cell.source = "".join([f"{head}# "] * (number == 0) + parts)


def _prose(source: str) -> str:
    """Markdown with its folded parts as Markdown too, and links that lead to pages of the site."""
    source = WRITTEN.sub(lambda found: f"<details><summary>An answer</summary>{found[1]}</details>", source)
    source = DETAILS.sub(lambda found: _fold(found[1], found[2]), source)
    source = re.sub(r"\(\.\./README\.md(#[\w-]+)?\)", r"(/index.md\1)", source)
    return re.sub(r"(\]\([^()\s#]+\.ipynb)#([^()\s]+)\)", lambda found: f"{found[1]}#{slug(found[2])})", source)


def _fold(summary: str, body: str) -> str:
    """``<details>`` whose body is Markdown, so that its mathematics is set."""
    summary = re.sub(r"`([^`]+)`", lambda code: f"<code>{code[1]}</code>", summary)
    summary = re.sub(r"\$([^$]+)\$", lambda math: f'<span class="math">\\({html.escape(math[1])}\\)</span>', summary)
    return f"\n\n<details>\n<summary>{summary}</summary>\n\n{body.strip()}\n\n</details>\n\n"


def slug(anchor: str) -> str:
    """JupyterLab's anchor of a heading, as MyST has it."""
    return re.sub(r"[^\w\-]", "", anchor.lower())


def _linked(source: str, unseen: dict[str, re.Pattern]) -> str:
    """Markdown whose first mention of a term, in running text, is a link; it is taken out of ``unseen``."""
    parts = VERBATIM.split(source)
    for place in range(0, len(parts), 2):
        for term, pattern in list(unseen.items()):
            if found := pattern.search(parts[place]):
                start, end = found.span()
                parts[place] = f"{parts[place][:start]}{{term}}`{found[0]} <{term}>`{parts[place][end:]}"
                del unseen[term]
                break  # one to a stretch of text: a second might lie within the first
    return "".join(parts)


def _code(cell: NotebookNode, name: str, pictures: Path, asked: list[str]) -> list[NotebookNode]:
    """A code cell as one or two cells: an exercise's stub stands before its answer.

    ``cell``: as it was executed; it is changed.
    ``name``, ``pictures``: what its pictures are called, and the folder for them.
    ``asked``: the predictions that cells above ask for; what this one asks for is added.
    """
    tags, prompt, before = set(cell.metadata.get("tags", [])), "", []
    source = HIDDEN.sub("", cell.source)
    if ANSWER.search(source):
        stub = ANSWER.sub(lambda found: f"{found[1]}...\n", source)
        before = [new_markdown_cell(f"```python\n{stub.rstrip()}\n```")]
        prompt, source = "An answer", re.sub(r"^ *### (BEGIN|END) SOLUTION\n?", "", source, flags=re.M)
    elif "drawing" in tags or cell.metadata.get("jupyter", {}).get("source_hidden"):
        prompt = "The code behind this" if "drawing" in tags else "Imports and set-up"
    body = "\n".join(filter(None, (_html(output, f"{name}-{n}", pictures) for n, output in enumerate(cell.outputs))))
    if (question := ASKED.search(source)) and "<strong>Your prediction.</strong>" in body:
        asked.append(question[1])
        prompt, body = "The code that asks", _question(question[1], body)
    elif SHOWN.search(source) and body:
        summary = "<summary>Predicted? See what was measured</summary>"
        names = " ".join(_shown(source, asked))
        body = f'<details class="measured" data-predictions="{names}">{summary}{body}</details>'
    cell.source, cell.outputs, cell.execution_count = source, [], None
    if body:
        cell.outputs = [new_output("display_data", {"text/html": TALLY.sub("", body)})]
    cell.metadata = {"tags": ["hide-input"], "mystnb": {"code_prompt_show": prompt}} if prompt else {}
    return [*before, cell]


def _shown(source: str, asked: list[str]) -> list[str]:
    """Which of the predictions ``asked`` for are measured in ``source``: those it names; of a name that is put together
    when it runs, what fits; all of them where a variable has the name.
    """
    named = [re.sub(r"\\{.*?\\}", ".*", re.escape(name)) if name else ".*" for name in SHOWN.findall(source)]
    return [name for name in asked if any(re.fullmatch(pattern, name) for pattern in named)]


def _question(name: str, body: str) -> str:
    """A prediction's question with a box, or the choices, for the answer, which the reader's browser keeps."""
    question = re.sub(r"<em>.*?</em>", "", body.split("</strong>", 1)[1])
    choices = CHOICES.search(question)
    text = html.escape(html.unescape(re.sub(r"<[^>]+>", " ", CHOICES.sub("", question))).strip())
    field = f'<input data-prediction="{name}">'
    if choices:
        options = "".join(f"<option>{option}</option>" for option in re.findall(r"<li>(.*?)</li>", choices[1]))
        field = f'<select data-prediction="{name}"><option></option>{options}</select>'
    return f'<p class="prediction"><label>Your prediction: <span>{text}</span> {field}</label></p>'


def _html(output: NotebookNode, name: str, pictures: Path) -> str:
    """An output as HTML: a picture by its address, with its text; nothing for what needs a kernel."""
    if output.output_type == "stream":
        return f"<pre>{html.escape(output.text)}</pre>" if output.name == "stdout" else ""
    data = output.get("data", {})
    if "image/png" in data:
        content = base64.b64decode(data["image/png"])
        if MIME in data:
            return _explorer(data[MIME], name, pictures, data["text/plain"])
        (pictures / f"{name}.png").write_bytes(content)
        width, height = (int.from_bytes(content[start : start + 4], "big") for start in (16, 20))
        alt = html.escape(output.metadata.get("image/png", {}).get("alt") or data.get("text/plain", ""), quote=True)
        source = f"../../_static/{pictures.name}/{name}.png"
        least = f"min-width: {LEGIBLE * width:.0f}px"
        image = f'<img src="{source}" alt="{alt}" width="{width}" height="{height}" style="{least}" loading="lazy">'
        return f'<div class="wide" tabindex="0">{image}</div>'
    if "text/html" in data:
        return f'<div class="wide" tabindex="0">{data["text/html"]}</div>'
    if WIDGET in data or "text/plain" not in data:
        return ""
    return f"<pre>{html.escape(data['text/plain'])}</pre>"


def _explorer(grid: dict, name: str, pictures: Path, alt: str) -> str:
    """An explorer that moves without a kernel: sliders and menus over a grid of frames.

    ``grid``: what `companion.lesson.widgets.frames` made.
    ``name``: what the frames' files are called.
    ``pictures``: the folder for them.
    ``alt``: what is to be seen.
    """
    for number, frame in enumerate(grid["frames"]):
        (pictures / f"{name}-{number}.png").write_bytes(base64.b64decode(frame))
    start = 0
    for control in grid["controls"]:
        start = start * len(control["values"]) + control["start"]
    boxes = " ".join(map(_control, grid["controls"]))
    frames = f"../../_static/{pictures.name}/{name}"
    picture = f'<img src="{frames}-{start}.png" alt="{html.escape(alt, quote=True)}" loading="lazy">'
    return f'<div class="explorer" data-frames="{frames}">{boxes}{picture}</div>'


def _control(control: dict) -> str:
    """A slider or a menu, with its label; its value is the place in the list of what it can be set to."""
    label, values, here = html.escape(control["label"]), control["values"], control["start"]
    if control["menu"]:
        options = "".join(
            f'<option value="{place}"{" selected" * (place == here)}>{html.escape(value)}</option>'
            for place, value in enumerate(values)
        )
        return f"<label>{label} <select>{options}</select></label>"
    shown, told = html.escape(values[here]), html.escape(json.dumps(values), quote=True)
    return (
        f'<label>{label} <input type="range" min="0" max="{len(values) - 1}" value="{here}" data-values="{told}" '
        f'aria-valuetext="{shown}"> <output>{shown}</output></label>'
    )
