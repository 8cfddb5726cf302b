"""nbval on one notebook, in a pytest and a process of its own: its options and the course's would get into each other's
way. What the cells gave in that run is kept, for whoever wants to look further.
"""

import gc
import os
import re
import sys
import tempfile
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import nbformat
import pytest
import warm


def validate(notebook: Path) -> nbformat.NotebookNode:
    """Run ``notebook`` from top to bottom in its folder and return it as executed; AssertionError if a cell raises, or
    one tagged ``nbval-check-output`` gives something else than it stores.
    """
    with tempfile.TemporaryDirectory() as folder:
        executed, log = Path(folder) / notebook.name, Path(folder) / "log"
        process = warm.process(main, notebook, executed, log)
        process.join()
        assert process.exitcode == 0, log.read_text(encoding="utf-8")[-8000:]
        return nbformat.read(executed, as_version=4)


def set_parameters(notebook: nbformat.NotebookNode, scale: str, seed: int) -> None:
    """Change the parameters cell."""
    for cell in notebook.cells:
        if "parameters" in cell.metadata.get("tags", []):
            cell.source = cell.source.replace('SCALE = "course"', f'SCALE = "{scale}"')
            cell.source = cell.source.replace("SEED = 0", f"SEED = {seed}")


def set_scale(path: Path, scale: str, seed: int = 0) -> None:
    """Change the notebook at ``path`` to ``scale``: at smoke scale it stores that no claim is assessed."""
    notebook = nbformat.read(path, as_version=4)
    set_parameters(notebook, scale, seed)
    for cell in notebook.cells if scale == "smoke" else ():
        if cell.source.strip() == "claims.verdicts()":
            for output in cell.outputs:
                output.text = re.sub(r": .*$", ": not assessed", output.text, flags=re.M)
    nbformat.write(notebook, path)


def execute(path: Path) -> nbformat.NotebookNode:
    """Run the notebook at ``path`` as papermill does, at smoke scale, in its folder; raise what a cell raises."""
    import papermill

    return papermill.execute_notebook(
        path,
        None,  # papermill would write all of it before and after every cell
        parameters={"SCALE": "smoke", "SEED": 1},
        cwd=path.parent,
        progress_bar=False,
        autosave_cell_every=0,
        extra_arguments=["--log-level=ERROR"],  # ipykernel warns of TCP without encryption on every start
    )


class Keeper:
    """Writes the one notebook of a session of nbval, with the outputs of this run, to ``path``."""

    def __init__(self, path: Path):
        self.path = path

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        for count, item in enumerate(session.items, 1):  # the code cells in turn; each is compared by now
            item.cell.execution_count, item.cell.outputs = count, item.test_outputs or []
        nbformat.write(session.items[0].parent.nb, self.path)


def main(notebook: Path, executed: Path, log: Path) -> None:
    """End with pytest's status of nbval on ``notebook``, which is written to ``executed`` as it ran; pytest's words are
    in the ``log``.
    """
    gc.freeze()  # pytest's collections at its end look through nothing that was loaded before
    warm.kernels()
    os.chdir(notebook.parent)
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # none but nbval
    options = ["-q", "--color=no", "-p", "no:cacheprovider", "-p", "nbval.plugin", "-c", os.devnull]
    options += ["--rootdir", str(notebook.parent), "--nbval-lax", "--nbval-current-env"]
    options += ["--nbval-cell-timeout=1200", str(notebook)]  # a cell that hangs, however busy the machine
    with log.open("w", encoding="utf-8") as file, redirect_stdout(file), redirect_stderr(file):
        sys.exit(pytest.main(options, plugins=[Keeper(executed)]))
