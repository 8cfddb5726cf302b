"""A site of one lesson and one module, for the tests in a browser."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
from sample_lesson import NAME

ROOT = Path(__file__).resolve().parents[1]
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


def make(
    root: Path, executed: nbformat.NotebookNode, claims: list[dict], further: nbformat.NotebookNode | None = None
) -> Path:
    """The folder of the site of the checkout at ``root``, of which a run has given ``executed``, perhaps ``further``,
    and ``claims``; made in a process of its own.
    """
    for origin, name in COPIED.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / origin, root / name)
    run = root / "run"
    run.mkdir()
    nbformat.write(executed, run / f"{NAME}.ipynb")
    if further:
        nbformat.write(further, run / f"{NAME}-further.ipynb")
    entry = {"lesson": NAME, "scale": "smoke", "seed": 3, "claims": claims}
    (run / "report.json").write_text(json.dumps({"lessons": [entry]}))
    done = subprocess.run([sys.executable, "-c", CODE, root], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "[]\n"), f"Sphinx has nothing to warn of: {done.stderr}{done.stdout}"
    return root / "site/html"
