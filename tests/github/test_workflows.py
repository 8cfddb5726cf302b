"""The workflows do what the README says, on every Python and system that the course is for."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from needs import NEEDS, VARIABLE

from companion.__main__ import parser
from companion.workshop.cli.lessons import all_lessons

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
PINNED = re.compile(r"uses: (?:\$/\.github/[\w/.]+|[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+)")


def jobs(path: Path) -> dict:
    """The jobs of a workflow that have steps of their own."""
    every = yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"]
    return {name: job for name, job in every.items() if "steps" in job}


def said(path: Path) -> list[str]:
    """The commands of the course that a workflow runs."""
    steps = [step.get("run", "") for job in jobs(path).values() for step in job["steps"]]
    return re.findall(r"python -m companion ([^\n]+)", "\n".join(steps))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_the_door_understands_what_is_run(path):
    commands = [line.split() for line in said(path)]
    assert commands
    for command in commands:
        parser().parse_args(command[:1] if command[0] == "test" else command)  # what follows `test` is pytest's


def test_it_is_tested_on_every_system_and_python():
    matrix = jobs(ROOT / ".github/workflows/tests.yml")["tests"]["strategy"]["matrix"]
    assert [name.partition("-")[0] for name in matrix["os"]] == ["ubuntu", "macos", "windows"]
    least = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    assert matrix["python"][0] == least.removeprefix(">=")
    assert matrix["python"] == [f"3.{minor}" for minor in range(11, 15)]
    [other] = [entry for entry in matrix["include"] if entry["os"] not in matrix["os"]]
    assert other["os"].endswith("-arm") and other["python"] in matrix["python"], "another processor, too"


def test_every_lesson_is_tried_on_every_processor():
    matrix = jobs(ROOT / ".github/workflows/weekly.yml")["processors"]["strategy"]["matrix"]
    there = [lesson.name.partition("-")[0] for lesson in all_lessons()]
    assert matrix["lesson"] == there, "list every lesson in .github/workflows/weekly.yml, under processors"


def test_whoever_tests_has_fetched_the_model_and_keeps_it_where_it_is_sought():
    for name, testing in (("tests", ["tests"]), ("weekly", ["newest", "measured"])):
        path = ROOT / f".github/workflows/{name}.yml"
        models = yaml.safe_load(path.read_text(encoding="utf-8"))["env"]["COURSE_MODELS"]
        for job in testing:
            steps = jobs(path)[job]["steps"]
            [kept] = [step["with"]["path"] for step in steps if "actions/cache" in step.get("uses", "")]
            run = [step["run"].split()[3] for step in steps if "python -m companion" in step.get("run", "")]
            assert kept == models and run[:2] == ["fetch", "test"]


def test_what_is_tested_must_be_there_and_nothing_is_skipped_for_want_of_it():
    systems = jobs(ROOT / ".github/workflows/tests.yml")["tests"]["strategy"]["matrix"]["include"]
    asked = {entry["os"]: entry["has"] for entry in systems}
    apart = {"ubuntu-24.04-arm": "sandbox,model", "macos-latest": "model", "windows-latest": "model"}
    assert asked == apart | {"ubuntu-latest": ",".join(NEEDS)}
    ready = {"sandbox": "$/.github/actions/sandbox", "model": "python -m companion fetch smollm2", "browser": ""}
    for path in WORKFLOWS:
        for steps in (job["steps"] for job in jobs(path).values()):
            commands = [step.get("run", step.get("uses")) for step in steps]
            for number, step in enumerate(steps):
                if "companion test" in commands[number] and "--processors" not in commands[number]:
                    must_have = step["env"][VARIABLE].replace("${{ matrix.has }}", asked["ubuntu-latest"]).split(",")
                    assert set(must_have) <= set(NEEDS)
                    absent = [need for need in must_have if not any(ready[need] in each for each in commands[:number])]
                    assert not absent and not any("continue-on-error" in each for each in steps), (path.name, absent)


def test_the_sandbox_is_tried_where_it_is_made():
    [step] = yaml.safe_load((ROOT / ".github/actions/sandbox/action.yml").read_text())["runs"]["steps"]
    words = ["install -q -y --no-install-recommends bubblewrap", "apparmor_restrict_unprivileged_userns=0", "bwrap --"]
    assert sorted(words, key=step["run"].index) == words


@pytest.mark.skipif(sys.platform == "win32", reason="a script for a shell")
@pytest.mark.parametrize(
    ("works", "must_have"),
    [
        ({"bwrap": 0, "google-chrome": 0, "python3": 0}, "sandbox,browser,model"),
        ({"bwrap": 1, "chromium": 0, "python3": 0}, "browser,model"),
        ({"bwrap": 0, "python3": 1}, "sandbox"),
        ({"python3": 1}, ""),
    ],
)
def test_a_new_machine_must_have_what_works_on_it(works, must_have, tmp_path):
    for name, status in works.items():
        said = 'echo "$*: $COURSE_MUST_HAVE"; [ "$3" = test ] && exit 0' if name == "python3" else ":"
        (tmp_path / name).write_text(f"#!/bin/sh\n{said}\nexit {status}\n")
    (tmp_path / "id").write_text("#!/bin/sh\necho 1000\n")  # who has no right to install anything
    for path in tmp_path.iterdir():
        path.chmod(0o755)
    (tmp_path / "dirname").symlink_to(shutil.which("dirname"))
    script = [shutil.which("bash"), ROOT / ".ci/run"]
    done = subprocess.run(script, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == f"-m companion test: {must_have}"
    assert ("sandbox will be skipped" in done.stdout) == ("sandbox" not in must_have)
    assert ("browser will be skipped" in done.stdout) == ("browser" not in must_have)


def test_the_core_is_covered_by_its_own_tests():
    steps = jobs(ROOT / ".github/workflows/tests.yml")["coverage"]["steps"]
    assert [step["run"] for step in steps[-2:]] == ["coverage run -m pytest tests/core", "coverage report"]
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["coverage"]
    assert tool["run"] == {"branch": True, "source": ["companion/core"]} and tool["report"]["fail_under"] >= 90


def test_actions_are_pinned_and_kept_up_to_date():
    lines = [line for path in (ROOT / ".github").rglob("*.yml") for line in path.read_text("utf-8").splitlines()]
    used = [line.strip().removeprefix("- ") for line in lines if "uses:" in line]
    assert len(used) > 9 and [line for line in used if not PINNED.fullmatch(line)] == []
    assert len({line.partition("@")[0] for line in used}) == len(set(used)), "one version of each"
    [update] = yaml.safe_load((ROOT / ".github/dependabot.yml").read_text())["updates"]
    assert update["package-ecosystem"] == "github-actions"
    assert update["directories"] == ["/", "/.github/actions/*"]


def test_no_step_can_push_with_what_the_checkout_left():
    steps = [step for path in WORKFLOWS for job in jobs(path).values() for step in job["steps"]]
    out = [step for step in steps if "actions/checkout" in step.get("uses", "")]
    assert out and all(step["with"]["persist-credentials"] is False for step in out)


def test_no_workflow_may_write_more_than_the_pages_and_a_release():
    granted = {}
    for path in WORKFLOWS:
        workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert workflow["permissions"] == {"contents": "read"}
        granted |= {(path.stem, name): job.get("permissions") for name, job in workflow["jobs"].items()}
    assert {job: rights for job, rights in granted.items() if rights} == {
        ("site", "publish"): {"pages": "write", "id-token": "write"},
        ("release", "publish"): {"contents": "write"},
    }


def test_a_release_is_of_main_tested_and_begun_by_hand():
    release = yaml.load((ROOT / ".github/workflows/release.yml").read_text(), yaml.BaseLoader)
    tests = yaml.load((ROOT / ".github/workflows/tests.yml").read_text(), yaml.BaseLoader)
    assert list(release["on"]) == ["workflow_dispatch"] and "workflow_call" in tests["on"]
    assert "${{ github.workflow }}" in tests["concurrency"]["group"], "or a release's tests and a push's end each other"
    assert release["jobs"]["tests"] == {"uses": "$/.github/workflows/tests.yml"}
    publish = release["jobs"]["publish"]
    assert (publish["needs"], publish["if"]) == (["tests", "build"], "github.ref == 'refs/heads/main'")
    steps = [step for job in ("build", "publish") for step in release["jobs"][job]["steps"]]
    [made, got] = (step["with"] for step in steps if "artifact@" in step.get("uses", ""))
    assert made == got


@pytest.mark.parametrize(
    ("changes", "tags", "said"),
    [
        ("# What changed\n\n## 1.2.0\n\nNew\n\n- a line\n\n## 1.1.0\n\nOld\n", ["v1.1.0", "v1.2.0.1"], ""),
        ("# What changed\n\n## 1.2.0\n\nNew\n\n- a line\n", ["v1.2.0"], "v1.2.0 is released; a new version goes into"),
        ("# What changed\n\n## 1.1.0\n\nOld\n", [], "CHANGELOG.md begins with 1.1.0, and pyproject.toml says 1.2.0"),
    ],
    ids=["new", "released", "changes of another"],
)
def test_a_release_has_the_version_and_what_changed_in_it(changes, tags, said, tmp_path):
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.org", "-C", tmp_path]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "Begin"], check=True)
    subprocess.run([*git, "remote", "add", "origin", tmp_path / ".git"], check=True)
    for tag in tags:
        subprocess.run([*git, "tag", tag], check=True)
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "1.2.0"\n')
    (tmp_path / "CHANGELOG.md").write_text(changes)
    script = [sys.executable, ROOT / ".ci/release.py", "dist"]
    done = subprocess.run(script, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.startswith(said)) == (int(bool(said)), True), done.stderr
    files = {path.name: path.read_text() for path in tmp_path.glob("dist/*")}
    assert files == ({} if said else {"tag": "v1.2.0", "notes.md": "New\n\n- a line\n"})


def test_the_pages_are_made_for_every_change_and_published_of_main_alone():
    site = yaml.load((ROOT / ".github/workflows/site.yml").read_text(), yaml.BaseLoader)  # in which `on` is a word
    assert "pull_request" in site["on"] and site["on"]["push"] == {"branches": ["main"]}
    assert "if" not in site["jobs"]["build"] and site["jobs"]["publish"]["if"] == "github.ref == 'refs/heads/main'"
    assert "${{ github.ref }}" in site["concurrency"]["group"], "or a change's pages would stop those of main"


def test_the_pages_are_where_the_site_is_made():
    steps = jobs(ROOT / ".github/workflows/site.yml")["build"]["steps"]
    [path] = [step["with"]["path"] for step in steps if "upload-pages-artifact" in step.get("uses", "")]
    out = parser().parse_args(["site"]).out
    assert path == f"{out}/html"


def test_the_container_installs_as_binder_does():
    container = (ROOT / ".devcontainer.json").read_text(encoding="utf-8")
    version = (ROOT / "binder/runtime.txt").read_text().strip().removeprefix("python-")
    assert f"devcontainers/python:{version}" in container
    for option in ("-c constraints.txt", "-e '.[lessons]'", "--extra-index-url https://download.pytorch.org/whl/cpu"):
        assert option in container
