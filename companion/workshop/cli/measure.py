"""``measure``: measure a stored table of the course again; without a name, list them."""

from argparse import Namespace
from pathlib import Path

from companion.core.measuring import Measurement, look_up, measure, measurements, read_table


def main(arguments: Namespace) -> int:
    """Measure ``arguments.name`` and write its table, or all that are missing; without either, list what there is."""
    try:
        if arguments.missing:
            if arguments.name or arguments.out or arguments.seeds or arguments.scale != "course":
                raise ValueError(
                    "--missing makes whole tables in their own places: no other option but --jobs goes with it"
                )
            todo = [name for name, chosen in measurements().items() if not chosen.path.is_file()]
        elif arguments.name:
            todo = [look_up(arguments.name).name]
        else:
            for chosen in measurements().values():
                print(_line(chosen))
            return 0
        for name in todo:
            out = measure(
                name,
                seeds=arguments.seeds,
                scale=arguments.scale,
                jobs=arguments.jobs,
                out=Path(arguments.out) if arguments.out else None,
            )
            table = read_table(out)
            print(f"{out}: {len(table.rows)} rows in {table.header['minutes']} minutes of one core")
    except ValueError as error:
        print(f"measure: {error}")
        return 2
    return 0


def _line(chosen: Measurement) -> str:
    """A table's name, how large it is and how long it took, whether it is what its recipes give today, and about what
    it is.
    """
    if not chosen.path.is_file():
        return f"{chosen.name:32} {'not there':>29}  {chosen.about}"
    table = read_table(chosen.path)
    minutes = table.header["minutes"]
    took = f"{minutes} min" if minutes[0].isdigit() else "minutes unknown"
    changed = "" if table.header["config"] == chosen.config() else " (its recipes have changed since)"
    return f"{chosen.name:32} {len(table.rows):5} rows, {took:>17}  {chosen.about}{changed}"
