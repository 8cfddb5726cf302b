"""A mistake need not have been foreseen: with the listed diagnoses taken away, most wrong answers are still named.

Each answer, with what is said of it then, is printed by

    PYTHONPATH=.:tests python tests/lesson/test_unlisted.py [lesson ..]

which is what the test runs, for without the checks of types it takes half a minute. Single near misses count alone;
pairs, which are tried as long as there is time, come on top.
"""

import dataclasses
import os
import re
import subprocess
import sys
import warnings

import torch
from wrong_answers.cases import CASES, EXERCISES
from wrong_answers.reviewed import REVIEWED
from wrong_answers.test_wrong_answers import compiled, foreseen

from companion.lesson.exercise import Mistake
from companion.lesson.near_misses import search
from companion.lesson.near_misses.search import family
from companion.lesson.summit import Summit

# near misses are of exercises with one right answer; a summit has many
KEYS = {name: (topic, name) for topic, name in CASES if not isinstance(EXERCISES[topic, name], Summit)}
LESSONS = {"01": "attention", "04": "addition", "05": "memories", "06": "bigrams", "07": "facts", "08": "structures"}
LESSONS |= {"09": "multihead", "10": "sensitivity", "11": "graphs", "12": "limits", "13": "calibration"}
NAMES = {lesson: [name for name, (topic, _) in KEYS.items() if topic == LESSONS[lesson]] for lesson in LESSONS}
NAMES["03"] = [name for name, key in KEYS.items() if EXERCISES[key].answer.__module__.endswith(".recurrent")]
NAMES["02"] = [name for name, (topic, _) in KEYS.items() if topic == "regression" and name not in NAMES["03"]]
FLOOR = 0.7
NAMELESS = re.compile(r"wrong values? |nearly right, |every entry is (0$|\S+ times)")  # true, but not what is wrong


def test_most_wrong_answers_are_named_without_the_list():
    paths = os.pathsep.join([os.getcwd(), os.path.join(os.getcwd(), "tests")])
    run = [sys.executable, os.path.abspath(__file__)]
    done = subprocess.run(run, env=os.environ | {"PYTHONPATH": paths}, capture_output=True, text=True, check=False)
    print(done.stdout)
    assert done.returncode == 0, done.stderr


def test_what_was_reviewed_is_there():
    for name, phrases in REVIEWED.items():
        messages = [case.message for case in CASES[KEYS[name]] if case.message]
        assert not [part for part in phrases if not any(part in each or each in part for each in messages)]


def said_of(name):
    """Of each wrong answer with a listed diagnosis: its message, and what is said without the list."""
    listed = EXERCISES[KEYS[name]]
    bare = dataclasses.replace(listed, mistakes={})
    family(bare).all_singles()
    for case in CASES[KEYS[name]]:
        if case.message and foreseen(listed, case):
            try:
                bare.check(compiled(bare, case.source))
            except Mistake as mistake:
                yield case.message, str(mistake).removeprefix(f"{name}: ")
            else:
                raise AssertionError(f"{name}, {case.message}: passes")


def agrees(name, message, sentence):
    """Whether a sentence says what was found right when somebody read it; true if nobody has."""
    phrases = [phrase for part, phrase in REVIEWED.get(name, {}).items() if part in message or message in part]
    return not phrases or any(phrase in sentence for phrase in phrases)


def main(lessons):
    """Print every answer with what is said of it, and each lesson's share. What falls short ends the program."""
    short = []
    for lesson in lessons or sorted(NAMES):
        said = [(name, *each) for name in NAMES[lesson] for each in said_of(name)]
        named = [each for each in said if not NAMELESS.match(each[2])]
        for name, message, sentence in said:
            print(f"{name} [{message}]\n    {sentence}")
        told = f"lesson {lesson}: {len(named)} of {len(said)} named without the list ({len(named) / len(said):.0%})"
        print(told)
        short += [told] * (len(named) < FLOOR * len(said))
        short += [
            f"{name} [{message}]: {said}, against its review"
            for name, message, said in named
            if not agrees(name, message, said)
        ]
    sys.exit("\n".join(short) or 0)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    search.PAIRS = 0
    main(sys.argv[1:])
