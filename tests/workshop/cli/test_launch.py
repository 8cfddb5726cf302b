"""Where the course can be opened: nowhere, until one setting says where it is published."""

from urllib.parse import parse_qs, urlparse

import pytest
from sample_lesson import checkout

from companion.workshop.cli import launch

PATH = "lessons/07-doubling/07-doubling.ipynb"


def test_one_setting_holds_the_address(tmp_path):
    assert launch.repository(checkout(tmp_path / "a")) == ""
    assert launch.repository(checkout(tmp_path / "b", repository="someone/course")) == "someone/course"
    with pytest.raises(ValueError, match=r"repository = 'https://x': must be owner/name, or empty"):
        launch.repository(checkout(tmp_path / "c", repository="https://x"))


def test_each_place_opens_the_notebook():
    assert launch.places("", PATH) == {}
    opens = launch.places("someone/course", PATH)
    assert opens.keys() == launch.BADGES.keys()
    assert parse_qs(urlparse(opens["Binder"]).query) == {"urlpath": [f"lab/tree/{PATH}"]}
    assert urlparse(opens["Binder"]).path == "/v2/gh/someone/course/HEAD"
    assert opens["Colab"] == f"https://colab.research.google.com/github/someone/course/blob/main/{PATH}"
    assert opens["Codespaces"].endswith("/someone/course")


def test_a_hub_pulls_the_course():
    address = urlparse(launch.gitpuller("https://hub.example.edu/", "someone/course", PATH))
    assert address.path == "/hub/user-redirect/git-pull"
    assert parse_qs(address.query) == {
        "repo": ["https://github.com/someone/course"],
        "branch": ["main"],
        "urlpath": [f"lab/tree/course/{PATH}"],
    }
