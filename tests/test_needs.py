"""A test that the machine cannot run is skipped, or fails where the machine is said to be able to."""

import re
from pathlib import Path

import needs
import pytest

TESTS = Path(__file__).parent
ELSEWHERE = re.compile(r"(?:skipif|skip)\(.*(?:bubblewrap|sandbox|playwright|hromium|smollm2|is_fetched)")


@pytest.mark.parametrize("need", needs.NEEDS)
def test_what_is_not_there_skips_and_what_must_be_there_fails(need, monkeypatch):
    monkeypatch.setitem(needs.NEEDS, need, lambda: "nowhere to be had")
    others = ",".join(set(needs.NEEDS) - {need})
    for said in ("", others):
        monkeypatch.setenv(needs.VARIABLE, said)
        with pytest.raises(pytest.skip.Exception, match=f"^no {need}: nowhere to be had$"):
            needs.require(need)
    monkeypatch.setenv(needs.VARIABLE, f"{others}, {need}")
    with pytest.raises(pytest.fail.Exception, match=f"^COURSE_MUST_HAVE names {need}: nowhere to be had$"):
        needs.require(need)
    monkeypatch.setitem(needs.NEEDS, need, lambda: "")
    needs.require(need)


def test_a_word_that_is_none_of_the_three_is_refused(monkeypatch):
    monkeypatch.setenv(needs.VARIABLE, "sandbox,chrome")
    with pytest.raises(pytest.UsageError, match="'sandbox,chrome': must be some of sandbox, browser, model, with"):
        needs.must_have()


@pytest.mark.parametrize("need", ["sandbox", "browser"])
def test_a_marked_test_asks_before_it_begins(need, monkeypatch, request):
    monkeypatch.setitem(needs.NEEDS, need, lambda: "nowhere to be had")
    monkeypatch.setenv(needs.VARIABLE, need)
    request.node.add_marker(pytest.mark.needs(need))
    with pytest.raises(pytest.fail.Exception, match=f"names {need}"):
        request.config.hook.pytest_runtest_setup(item=request.node)


def test_why_there_is_no_browser_is_said(monkeypatch):
    monkeypatch.setattr(needs, "CHROMIUM", None)
    assert "apt install chromium" in needs.no_browser()
    monkeypatch.setattr(needs, "find_spec", lambda name: None)
    assert needs.no_browser() == "not installed: playwright, axe_playwright_python"


def test_no_file_decides_for_itself_what_is_skipped():
    there = {path: path.read_text(encoding="utf-8").splitlines() for path in TESTS.rglob("*.py")}
    del there[TESTS / "needs.py"], there[TESTS / "test_needs.py"]
    assert [f"{path.name}: {line}" for path, lines in there.items() for line in lines if ELSEWHERE.search(line)] == []
