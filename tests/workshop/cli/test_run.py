"""``run`` executes every lesson, names the cell that fails, and reports."""

import json
from argparse import Namespace

import pytest
from sample_lesson import CLAIM, NAME, checkout

from companion.workshop.cli import run


def arguments(out, *lessons: str, readme: bool = False) -> Namespace:
    return Namespace(lessons=list(lessons), scale="smoke", seed=3, out=str(out), readme=readme)


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """(exit status, folder, report) of a lesson that fails, one whose kernel dies, and one that is well."""
    root = tmp_path_factory.mktemp("checkout")
    checkout(root, name="05-dying", closing="import os; os._exit(3)")
    checkout(root, name="06-failing", closing="[SCALE, SEED][2]")
    checkout(
        root,
        name=NAME,
        closing="assert (SCALE, SEED) == ('smoke', 3)\nbig = bytearray(200 * 2**20)\nimport time; time.sleep(0.3)",
    )
    status = run.main(arguments(root / "out"), root)
    return status, root / "out", json.loads((root / "out/report.json").read_text())


def test_the_report_says_everything(ran):
    _, _, report = ran
    assert list(report) == ["lessons"]
    dying, failing, well = report["lessons"]
    assert list(well) == ["lesson", "scale", "seed", "seconds", "peak_rss_mib", "errors", "claims"]
    assert (well["lesson"], well["scale"], well["seed"], well["errors"]) == (NAME, "smoke", 3, [])
    assert well["claims"] == [CLAIM]
    assert 0 < well["seconds"] < 60
    assert 200 < well["peak_rss_mib"] < 600, "the kernel's memory, not this process's"
    assert failing["errors"] == ['06-failing, cell 7 ("A claim about two"): IndexError: list index out of range']
    assert dying["errors"] == ['05-dying, cell 7 ("A claim about two"): DeadKernelError: Kernel died']
    assert failing["claims"] == [CLAIM], "what was claimed before the failure"


def test_a_failing_cell_does_not_stop_the_others(ran):
    status, out, _ = ran
    assert status == 1
    kept = {f"{name}.{kind}" for name in ("05-dying", "06-failing", NAME) for kind in ("html", "ipynb")} | {
        "report.json"
    }
    assert {path.name for path in out.iterdir()} == kept
    assert "the end" not in (out / f"{NAME}.html").read_text()
    assert "big = bytearray" in (out / f"{NAME}.ipynb").read_text()


def test_bad_input_is_named(tmp_path, capsys):
    checkout(tmp_path)
    assert run.main(arguments(tmp_path / "out", "memories"), tmp_path) == 2
    assert capsys.readouterr().out == f"run: LESSON = 'memories': there is no such lesson; there is {NAME}\n"
    assert run.main(arguments(tmp_path / "out", NAME, readme=True), tmp_path) == 2
    assert "--readme needs a run of all lessons" in capsys.readouterr().out
