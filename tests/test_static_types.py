"""What a type checker finds in the package: nothing in what others build on, and elsewhere no more than it did."""

import json
import re
import subprocess
import sys
from collections import Counter
from importlib.metadata import version
from pathlib import Path

import pytest

pytest.importorskip("pyright", reason="pyright is not installed: `pip install 'pyright[nodejs]'`")
ROOT = Path(__file__).resolve().parents[1]
MOST = 502  # errors outside of `CLEAN`: whoever mends some lowers it
CLEAN = ("core", "lesson", "pretrained")  # but for the near misses
TYPED = ("matplotlib", "pyright", "torch", "transformers")  # what is found hangs on their types


def errors() -> dict[str, list[str]]:
    """The checker's errors, each with its place, in `CLEAN` and in the rest. It starts a Node of its own and asks no
    network.
    """
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "--outputjson"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, encoding="utf-8", check=False)
    found = {"clean": [], "rest": []}
    for each in json.loads(done.stdout)["generalDiagnostics"]:
        path = Path(each["file"]).relative_to(ROOT / "companion")
        clean = path.parts[0] in CLEAN and path.parts[1] != "near_misses"
        if each["severity"] == "error":
            said = f"{path}:{each['range']['start']['line'] + 1}: {each['message']}"
            found["clean" if clean else "rest"].append(said)
    return found


def test_what_others_build_on_has_no_errors_of_type_and_the_rest_no_more_than_it_had():
    pinned = dict(re.findall(r"^(\S+)==(\S+)", (ROOT / "constraints.txt").read_text("utf-8"), re.MULTILINE))
    others = [name for name in TYPED if version(name).partition("+")[0] != pinned[name]]
    if others:
        pytest.skip(f"constraints.txt has other versions of {', '.join(others)}")
    found = errors()
    assert not found["clean"], "\n".join(found["clean"])
    by_file = Counter(said.partition(":")[0] for said in found["rest"])
    assert len(found["rest"]) <= MOST, f"{len(found['rest'])} errors: {dict(by_file)}"
    assert len(found["rest"]) >= MOST, f"fewer errors than before: MOST = {len(found['rest'])}"
