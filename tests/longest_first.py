"""The order in which xdist's workers run the tests: a long one that began last would leave all workers but one idle."""

import re

# The longest first. Of these each item is a unit,
SINGLY = (
    "tests/notebooks/test_grades.py",
    "tests/notebooks/test_lessons.py::test_the_unsolved_lesson_runs_to_its_end",
    "tests/notebooks/test_further.py::test_unsolved_it_runs_to_its_end",
)
# and of these each file, whose items share what they look at
TOGETHER = (
    "tests/workshop/grading/test_class.py",
    "tests/workshop/grading/test_neighbours.py",
    "tests/notebooks/test_browser.py",
    "tests/workshop/cli/test_site.py",
    "tests/test_static_types.py",
    "tests/workshop/grading/test_variants.py",
    "tests/workshop/grading/test_marking.py",
    "tests/workshop/grading/test_formgrader.py",
)

# Of these all items on one exercise follow each other: its near misses are made once, for whoever asks first
BY_EXERCISE = (
    "tests/lesson/test_mutants.py",
    "tests/lesson/test_unlisted.py",
    "tests/wrong_answers/test_wrong_answers.py",
)
EXERCISE = re.compile(r"\[(\w+-\w+)[-\]]")  # topic and name, with which the id of a case begins


def order(names: list[str], workers: int) -> list[int]:
    """Return the places in ``names`` (node ids as they were collected) in the order in which the tests are to run.

    With ``--dist worksteal`` each of the ``workers`` gets an equal stretch of the items, and whoever is done steals
    from the end of another's. So each stretch begins with its share of the long ones; all others follow as they came.
    """
    units = [[place] for start in SINGLY for place, name in enumerate(names) if name.startswith(start)]
    units += [[place for place, name in enumerate(names) if name.startswith(start)] for start in TOGETHER]
    units = [unit for unit in units if unit]
    long = {place for unit in units for place in unit}
    rest = [place for place in range(len(names)) if place not in long]
    exercises = {place: names[place].startswith(BY_EXERCISE) and EXERCISE.search(names[place]) for place in rest}
    # stable: what is of no exercise stays in front, as it came
    rest.sort(key=lambda place: exercises[place][1] if exercises[place] else "")
    ordered: list[int] = []
    for worker in range(workers):
        stretch = [place for unit in units[worker::workers] for place in unit]
        missing = (len(names) - len(ordered)) // (workers - worker) - len(stretch)
        filling, rest = rest[: max(missing, 0)], rest[max(missing, 0) :]
        ordered += stretch + filling
    return ordered + rest
