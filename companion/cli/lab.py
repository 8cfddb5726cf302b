"""``lab``: JupyterLab on the map of the lessons."""

import os
import sys
from argparse import Namespace
from pathlib import Path
from typing import NoReturn

from companion.cli.setup import ROOT, go_on_as

SETTINGS = Path(__file__).parent / "jupyter"  # Markdown opens rendered: the start page is Markdown


def main(arguments: Namespace, root: Path = ROOT) -> NoReturn:
    """Serve ``lessons/`` until interrupted, and open its start page in the browser."""
    command = [sys.executable, "-m", "jupyterlab", f"--port={arguments.port}", "--ServerApp.root_dir=lessons"]
    command += ["--LabApp.default_url=/lab/tree/README.md"] + ["--no-browser"] * arguments.no_browser
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        command.append("--allow-root")  # whoever is root here is most likely in a container, where JupyterLab would refuse to start
    os.environ["JUPYTER_CONFIG_PATH"] = os.pathsep.join(filter(None, [str(SETTINGS), os.environ.get("JUPYTER_CONFIG_PATH")]))
    os.chdir(root)
    go_on_as(command)
