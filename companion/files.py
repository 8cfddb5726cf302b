"""Files that are never half written, and where those lie that other packages bring."""

import os
from importlib.resources import files
from pathlib import Path
from types import ModuleType


def atomic_write(path: Path, content: str | bytes) -> None:
    """Write beside, then rename: whoever reads ``path`` sees the old content or the new. Its folder is made if need be,
    and nothing stays beside it when writing fails.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name[:100]}.{os.getpid()}")
    try:
        beside.write_bytes(content.encode() if isinstance(content, str) else content)
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def mathjax() -> Path:
    """The folder with MathJax 3 (``tex-chtml.js``, its parts and fonts), which the package ``mathjax`` brings."""
    package: ModuleType = __import__("mathjax")
    return Path(str(files(package))) / "static/mathjax/es5"
