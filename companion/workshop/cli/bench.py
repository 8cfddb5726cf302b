"""``bench``: a layer of one's own on the course's tasks; without one, list tasks and the layers that are known."""

from argparse import Namespace
from importlib.util import find_spec

from companion.core.task import tasks
from companion.topics.layers.bench import bench
from companion.topics.layers.known import KNOWN
from companion.topics.layers.readings import reading
from companion.topics.layers.runs import BUDGETS


def main(arguments: Namespace) -> int:
    """Train ``arguments.layers`` on tasks, say how far each has come, and where table and picture lie."""
    if not arguments.layers:
        for name, task in tasks(arguments.scale).items():
            print(f"{name:14}{task.about} ({task.axis}: {', '.join(map(str, task.sizes))})")
        print(f"layers: {', '.join(KNOWN)}, or FILE.py:NAME of your own")
        return 0
    given = {name: getattr(arguments, name) for name in ("tasks", "seeds", "scale", "jobs", "out")}
    try:
        table = bench(*arguments.layers, **given)
    except ValueError as error:
        print(f"bench: {error}")
        return 2
    width, steps, positions = BUDGETS[arguments.scale]
    made = "Table and picture" if find_spec("matplotlib") else "Table"
    print(*reading(table.rows), f"{made}: {arguments.out or 'in build/bench'}", sep="\n")
    print(f"The budget: width {width}, {steps} steps of about {positions} positions. What is not learned")
    print("within it may still be learned with more steps or a larger width.")
    return 0
