"""Runs examples/try_a_promise.ipynb from top to bottom and stores its outputs: ``make notebook``."""

from __future__ import annotations

from pathlib import Path

import nbformat
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).resolve().parents[1] / "examples" / "try_a_promise.ipynb"


def run_notebook(path: Path, folder: Path) -> nbformat.NotebookNode:
    """The notebook with the outputs of a run in ``folder``."""
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(folder)}})
    client.execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # times of the run
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]  # Spark's log
    return notebook


def main() -> None:
    """Run the notebook beside itself and write it back."""
    notebook = run_notebook(NOTEBOOK, NOTEBOOK.parent)
    nbformat.write(notebook, NOTEBOOK)
    print(NOTEBOOK, f"{NOTEBOOK.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
