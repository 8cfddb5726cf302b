"""Files that are never half written."""

import os
from pathlib import Path


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
