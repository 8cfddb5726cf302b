"""Where the course can be opened in a browser: nowhere, until ``pyproject.toml`` says where the repository is."""

import re
from pathlib import Path
from urllib.parse import quote

from companion.core.files import read_toml
from companion.workshop.cli.setup import ROOT

BADGES = {
    "Binder": "https://mybinder.org/badge_logo.svg",
    "Colab": "https://colab.research.google.com/assets/colab-badge.svg",
    "Codespaces": "https://github.com/codespaces/badge.svg",
}


def repository(root: Path = ROOT) -> str:
    """``owner/name`` of the repository on GitHub, ``[tool.companion] repository`` in ``pyproject.toml``; empty where
    there is none. Raises ValueError for anything else.
    """
    settings = read_toml(root / "pyproject.toml")
    found = settings.get("tool", {}).get("companion", {}).get("repository", "")
    if found and not re.fullmatch(r"[\w.-]+/[\w.-]+", found):
        raise ValueError(f"pyproject.toml: repository = {found!r}: must be owner/name, or empty")
    return found


def places(repository: str, path: str) -> dict[str, str]:
    """Return where the notebook at ``path`` of ``repository`` (``owner/name``) can be opened, as names of places and
    addresses that do it: nowhere if that is empty.
    """
    if not repository:
        return {}
    tree = quote(f"lab/tree/{path}", safe="")
    return {
        "Binder": f"https://mybinder.org/v2/gh/{repository}/HEAD?urlpath={tree}",
        "Colab": f"https://colab.research.google.com/github/{repository}/blob/main/{path}",
        "Codespaces": f"https://codespaces.new/{repository}",
    }


def gitpuller(hub: str, repository: str, path: str) -> str:
    """Return the link by which a class's own JupyterHub at ``hub`` pulls the course and opens ``path``
    (nbgitpuller).
    """
    name = repository.rpartition("/")[2]
    tree = quote(f"lab/tree/{name}/{path}", safe="")
    source = quote(f"https://github.com/{repository}", safe="")
    return f"{hub.rstrip('/')}/hub/user-redirect/git-pull?repo={source}&branch=main&urlpath={tree}"
