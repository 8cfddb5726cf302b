"""A wrong use of a command is answered by a sentence and the status 2, and nothing is written."""

import re

import pytest

from companion.__main__ import main
from companion.workshop.cli import setup

REFUSED = """
lesson                                 | invalid choice: 'lesson'
traim                                  | 'traim': must be one of train, lab, progress
lab --port 0                           | --port: '0': must be a whole number from 1 to 65535
lab --port 99999999                    | --port: '99999999': must be
lab --no-brower                        | lab: error: unrecognized arguments: --no-brower (nearest: --no-browser)
progress regressiun                    | LESSON = 'regressiun': there is no such lesson; there is 02-in-context-regr
progress --reset nope --yes            | LESSON = 'nope'
test --quik --maxfail 1                | unrecognized arguments: --quik (nearest: --quick) --maxfail
test --quick stars                     | TOPIC = 'stars': no lesson has this name or topic; there is addition
test --processors stars                | TOPIC = 'stars': no lesson has this name or topic; there is addition
run --scale papers                     | --scale: invalid choice: 'papers': must be one of paper, smoke, course
run memoris                            | run: LESSON = 'memoris': there is no such lesson; there is 05-associative-mem
run 02 --readme                        | run: --readme needs a run of all lessons; leave LESSON out
run 02 --evidence --scale smoke        | run: --evidence needs --scale course, not smoke
run 02 --seed -1                       | --seed: '-1': must be a whole number from 0 to 2147483647
run 02 --out there.txt                 | --out: 'there.txt': must be a folder
run 02 --out there.txt/in              | --out: 'there.txt/in': cannot be written (
release languagge                      | LESSON = 'languagge': there is no such lesson; there is 15-language-model,
fetch smollm2 --from nope.gguf         | --from: 'nope.gguf': must be a file that exists
fetch smollm2 --check                  | --check goes with MODEL = numbers alone: `fetch numbers --check`, with
fetch --remove                         | which MODEL? There is smollm2
fetch gpt9                             | fetch: MODEL = 'gpt9': must be one of smollm2
train --seed one                       | --seed: 'one': must be
train regressiun-isotropic             | 'regressiun-isotropic': must be one of regression-isotropic, or another of the
train nope                             | must be one of the
train regression-live --device tpu     | train: device = 'tpu': must be one of
train --missing --device tpu           | train: device = 'tpu': must be one of
train regression-live --jobs 2         | train: --jobs 2: goes with --missing alone
train --missing --seed 1               | train: --missing makes every shipped checkpoint in its own place
train addition --out a.pt              | --out: 'a.pt': must be a file that ends in .safetensors
train addition --out there.txt/in/a.safetensors | cannot be written (
train --missing --jobs 0               | --jobs: '0': must be a whole number from 1 to 1024
measure addition-cut                   | 'addition-cut': must be one of addition-cuts,
measure addition-cuts --missing        | measure: --missing makes whole tables in their own places
measure addition-cuts --seeds 1 1.5    | --seeds: '1.5': must be
measure addition-cuts --out folder.csv | --out: 'folder.csv': must be a file that ends in .csv
bench lstn                             | 'lstn': must be one of lstm, softmax
bench my_layer.py:Nothing              | bench: layer = 'my_layer.py:Nothing': must be one of softmax
bench lstm --tasks recalll             | 'recalll': must be one of recall, addition
bench lstm --out there.txt/b.csv       | --out: 'there.txt/b.csv': cannot be written (
examine                                | required: regression | numbers | induction | facts
examine induction                      | required: FOLDER
examine regressiun .                   | 'regressiun': must be one of regression, numbers
examine regression . --kappa inf       | --kappa: 'inf': must be a number from 1 on
examine numbers smolm2                 | 'smolm2': no such folder, nor a model of this name (nearest: smollm2)
examine regression . --out x.svg       | --out: 'x.svg': must be a file that ends in .png
examine numbers . --out x.svg          | --out: 'x.svg': must be a file that ends in .png
examine induction . --out x.svg        | --out: 'x.svg': must be a file that ends in .png
examine facts . --out x.svg            | --out: 'x.svg': must be a file that ends in .png
grade grafs                            | LESSON = 'grafs'
grade                                  | grade: which LESSON? Or --formgrader
grade 00                               | LESSON = '00': there is no such lesson; there is 01-
grade 01 02 --take-in a.zip            | grade: --take-in ZIP needs one LESSON
grade 02 --jobs -1                     | --jobs: '-1': must be
grade --self-test -3                   | --self-test: '-3': must be a number from 0.01 on
site --run nope                        | --run: 'nope': must be a folder that exists
site --out folder.csv                  | out = 'folder.csv': has other files; must be a new folder, an empty one
"""


@pytest.mark.parametrize(
    ("words", "said"), [re.split(r" +\| ", row, maxsplit=1) for row in REFUSED.strip().splitlines()]
)
def test_a_wrong_use_is_answered_by_a_sentence(words, said, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(setup, "ensure", lambda *_, **__: None)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.csv").mkdir()
    there = {tmp_path / "folder.csv", tmp_path / "folder.csv/mine.txt", tmp_path / "there.txt"}
    (tmp_path / "folder.csv/mine.txt").touch()
    (tmp_path / "there.txt").touch()
    try:
        status = main(words.split())
    except SystemExit as stop:
        status = stop.code
    assert status == 2
    answer = capsys.readouterr()
    assert said in answer.out + answer.err
    assert set(tmp_path.rglob("*")) == there
