"""What the workflow `release` publishes: into FOLDER the file ``tag``, ``v`` and the version in pyproject.toml, and
``notes.md``, what CHANGELOG.md says of it. It ends with a sentence where the change log begins with another version,
and where origin has the tag already.
"""

import re
import subprocess
import sys
import tomllib
from pathlib import Path


def main(folder: Path) -> str:
    """Write the two files, of the checkout in the current folder; return why not, empty if so."""
    version = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    changes = Path("CHANGELOG.md").read_text(encoding="utf-8")
    [first, notes] = re.search(r"^## (.+?)\n(.*?)(?=^## |\Z)", changes, re.MULTILINE | re.DOTALL).groups()
    if first != version:
        return f"CHANGELOG.md begins with {first}, and pyproject.toml says {version}"
    tag = f"v{version}"
    if subprocess.check_output(["git", "ls-remote", "--tags", "origin", f"refs/tags/{tag}"]):
        return (
            f"{tag} is released; a new version goes into pyproject.toml, companion/__init__.py, CITATION.cff (with its "
            "date) and on top of CHANGELOG.md"
        )
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tag").write_text(tag)
    (folder / "notes.md").write_text(notes.strip() + "\n", encoding="utf-8")
    return ""


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])) or 0)
