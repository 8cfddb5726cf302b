"""A written answer that means harm, in nbgrader's real form grader and a real browser. Skipped without Chromium."""

import subprocess
import urllib.request
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from browsing import free_port, wait_until_it_answers
from nbgrader.api import Gradebook
from workshop.grading.reading import small_handout
from workshop.grading.sharing import here
from workshop.grading.small_lesson import NAME, QUESTION, cell, checkout, edited, hand_in, solved
from workshop.grading.test_submissions import PNG

from companion.workshop.grading.course import classroom, formgrader

pytestmark = pytest.mark.needs("browser")
HOSTILE = r"""
[f][r]

[r]: &#106;avascript:alert(1)

[x](java&Tab;scri&NewLine;pt:alert(2)) [y](javascript:alert(3)) <a href="javascript:alert(4)">z</a>

![](/logout) ![](http://example.org/seen.png) <img src=x onerror=alert(5)>

</pre></div><script>alert(6)</script>

$$\href{javascript:alert(7)}{math}$$ $\href{javascript:alert(8)}{math}$ \(\href{javascript:alert(9)}{math}\)

```
</code></pre><script>alert(10)</script> a<b
```

<svg onload=alert(11)> ]]> --> &lt;script&gt;alert(12)&lt;/script&gt;
![image.png](attachment:image.png)
"""


def harm(notebook):
    answer = cell(notebook, "open-question")
    answer.source = QUESTION + HOSTILE
    answer.attachments = {"image.png": {"image/png": PNG}}
    cell(notebook, "newton-step").source += "\n# </pre><script>alert(13)</script>"


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A checkout with one student's hostile written answer, recorded; what the sandbox would find is made up."""

    def marks(submission, handout, *_, **__):
        result = classroom.nothing("", handout)
        result["exercises"]["newton-step-check"]["diagnosis"] = "<script>alert(14)</script>"
        return result | {"written": submission.written, "answers": submission.answers, "pictures": submission.pictures}

    monkeypatch.setattr(classroom, "mark", marks)
    monkeypatch.setattr(classroom, "alone", here)
    monkeypatch.setattr(classroom.reference, "require", lambda *_, **__: None)
    root = checkout(tmp_path)
    hand_in(root, "anna", edited(harm, solved()))
    assert classroom.grade(small_handout(), root / "solutions" / NAME / f"{NAME}.ipynb", root) == []
    return root


@contextmanager
def served(root):
    """``grade --formgrader``; gives its address."""
    port, started = free_port(), []
    folders = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR")
    ours = {name: str(root / "jupyter") for name in folders}
    ours |= {"JUPYTER_TOKEN": "for-the-test", "JUPYTER_PORT": str(port)}
    with (root / "server.log").open("w") as log, pytest.MonkeyPatch.context() as patch:
        start = partial(subprocess.Popen, stdout=log, stderr=log)
        patch.setattr(subprocess, "call", lambda words, cwd, env: started.append(start(words, cwd=cwd, env=env | ours)))
        formgrader.serve(root, open_browser=False)
    [server] = started
    try:
        wait_until_it_answers(server, f"http://127.0.0.1:{port}", root / "server.log", 120)
        yield f"http://127.0.0.1:{port}"
    finally:
        urllib.request.urlopen(
            urllib.request.Request(f"http://127.0.0.1:{port}/api/shutdown?token=for-the-test", method="POST"),
            timeout=30,
        )
        server.wait(60)


@pytest.mark.filterwarnings("default")  # nbgrader's own are not ours to mend
def test_a_written_answer_runs_nothing_and_fetches_nothing(course, browser):
    with Gradebook(f"sqlite:///{course / 'grading' / 'gradebook.db'}") as book:
        [notebook] = book.find_submission(NAME, "anna").notebooks
        number = notebook.id
    alerts, fetched = [], []
    with served(course) as address:
        page = browser.new_page(viewport={"width": 1200, "height": 1800})
        page.set_default_timeout(90_000)
        page.on("dialog", lambda dialog: (alerts.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: fetched.append(request.url))
        page.goto(f"{address}/formgrader/gradebook?token=for-the-test")
        response = page.goto(f"{address}/formgrader/submissions/{number}/?index=0")
        assert "object-src 'none'" in response.headers["content-security-policy"]
        answer = page.locator("pre.mathjax_ignore")
        answer.wait_for()
        page.locator(".text_cell_render mjx-container").first.wait_for()  # the lesson's own formula
        assert answer.locator("a, img, script, svg, .MathJax, mjx-container").count() == 0
        text = answer.inner_text()
        assert "&#106;avascript:alert(1)" in text and "</pre></div><script>alert(6)</script>" in text and "a<b" in text
        for words in ("[f][r]", "[x]", "href="):
            page.get_by_text(words).first.click()
        assert page.locator("img[alt='a picture in the answer']").evaluate("image => image.naturalWidth") == 1
        page.screenshot(path=str(Path(course) / "formgrader.png"), full_page=True)
        page.close()
    assert alerts == []
    assert not [url for url in fetched if "logout" in url]
    assert not [url for url in fetched if not url.startswith((address, "data:"))]
