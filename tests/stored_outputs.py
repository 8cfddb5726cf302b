"""What a run of a notebook gave, beside what its source stores."""

from collections import defaultdict

from nbformat import NotebookNode


def faults(source: NotebookNode, executed: NotebookNode) -> list[str]:
    """Return what is wrong with a run of ``source``: each cell that was not run, that raised, or that is tagged
    ``nbval-check-output`` and gave something else than it stores.
    """
    ran, found = {cell.id: cell for cell in executed.cells}, []
    for number, cell in enumerate(source.cells, 1):
        if cell.cell_type != "code" or not cell.source:
            continue
        if cell.id not in ran or not ran[cell.id].execution_count:
            found.append(f"cell {number} was not run")
            continue
        outputs = ran[cell.id].outputs
        errors = [output for output in outputs if output.output_type == "error"]
        found += [f"cell {number} raises {error.ename}: {error.evalue}" for error in errors]
        if "nbval-check-output" in cell.metadata.get("tags", []) and given(outputs) != given(cell.outputs):
            found.append(f"cell {number} gives {given(outputs)} and stores {given(cell.outputs)}")
    return found


def given(outputs: list[NotebookNode]) -> dict[str, str]:
    """Return what a cell printed by stream, in however many pieces it came, and its other outputs by type."""
    texts: dict[str, str] = defaultdict(str)
    for output in outputs:
        texts[output.get("name", output.output_type)] += output.get("text", str(output.get("data", "")))
    return dict(texts)
