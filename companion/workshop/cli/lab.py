"""``lab``: JupyterLab on a learner's own copies of the lessons."""

import os
import sys
import tempfile
from argparse import Namespace
from pathlib import Path
from typing import NoReturn

from companion.workshop.cli import fetch, work
from companion.workshop.cli.setup import ROOT, go_on_as

HOMES = ("JUPYTER_RUNTIME_DIR", "JUPYTER_DATA_DIR", "JUPYTERLAB_SETTINGS_DIR", "JUPYTERLAB_WORKSPACES_DIR")
HOMES += ("JUPYTER_CONFIG_DIR", "IPYTHONDIR", "MPLCONFIGDIR")  # what is written at home
SETTINGS = Path(__file__).parent / "jupyter"  # Markdown opens rendered: the start page is Markdown


def main(arguments: Namespace, root: Path = ROOT) -> NoReturn:
    """Serve ``work/`` until interrupted, and open its start page in the browser."""
    for line in work.refresh(root, answers=True):
        print(line)
    _find_room()
    if arguments.without_model:
        fetch.leave_out("It was left out by `lab --without-model`.")
    else:
        fetch.once()
    command = [sys.executable, "-m", "jupyterlab", f"--port={arguments.port}", f"--ServerApp.root_dir={root / 'work'}"]
    command += ["--FileContentsManager.post_save_hook=companion.workshop.cli.work.after_saving"]
    command += ["--LabApp.default_url=/lab/tree/README.md"] + ["--no-browser"] * arguments.no_browser
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        # whoever is root here is most likely in a container, where JupyterLab would refuse to start
        command.append("--allow-root")
    os.environ["JUPYTER_CONFIG_PATH"] = os.pathsep.join(
        filter(None, [str(SETTINGS), os.environ.get("JUPYTER_CONFIG_PATH")])
    )
    os.chdir(root)
    go_on_as(command)


def _find_room() -> None:
    """Let Jupyter keep in a folder of its own what it would write into a home that cannot be written, or is none. A
    person's own settings there are read all the same.
    """
    home = Path(os.path.expanduser("~"))
    if home.is_dir() and os.access(home, os.W_OK):
        return
    own = os.environ.get("JUPYTER_CONFIG_DIR", str(home / ".jupyter"))
    os.environ["JUPYTER_CONFIG_PATH"] = os.pathsep.join(filter(None, [os.environ.get("JUPYTER_CONFIG_PATH"), own]))
    room = tempfile.mkdtemp(prefix="companion-")
    print(f"Your home cannot be written: JupyterLab keeps its settings in {room} this time; your answers are in work/.")
    for name in HOMES:
        os.environ.setdefault(name, str(Path(room) / name.lower()))
