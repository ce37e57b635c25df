"""Run the notebooks and store their outputs.

    python notebooks/run.py                                  # all of them, some minutes
    python notebooks/run.py 2_regret_landscape 5_batch_samplers

What is stored depends on nothing but the code: times, paths, kernels and addresses in memory are
left out."""

from __future__ import annotations

import hashlib
import os
import re
import sys
import tempfile
from pathlib import Path

import nbformat

FOLDER = Path(__file__).parent
_ADDRESS = re.compile(r" at 0x[0-9a-f]{6,}")
_KEPT = ("image/png", "text/markdown", "text/plain")  # of one output


def sources(book) -> str:
    """A fingerprint of the code cells, stored with the outputs that they gave."""
    text = "\n\0\n".join(cell.source for cell in book.cells if cell.cell_type == "code")
    return hashlib.sha256(text.encode()).hexdigest()


def execute(path: Path, folder):
    """A notebook with the outputs of a fresh run in ``folder``.

    Args:
        path: of the notebook. folder: its working directory.

    Returns:
        The notebook.
    """
    from nbclient import NotebookClient

    book = nbformat.read(path, as_version=4)
    for cell in book.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
            cell.metadata.pop("execution", None)
    NotebookClient(
        book,
        timeout=None,
        kernel_name="python3",
        record_timing=False,
        resources={"metadata": {"path": str(folder)}},
    ).execute()
    return cleaned(book)


def cleaned(book):
    """The notebook without what differs from run to run or from machine to machine."""
    book.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
        "jaxgdp": {"sources": sources(book)},
    }
    for cell in book.cells:
        if cell.cell_type != "code":
            continue
        # (progress and warnings of the machine are no results)
        cell.outputs = _joined(each for each in cell.outputs if each.get("name") != "stderr")
        for output in cell.outputs:
            if "text" in output:
                output["text"] = _ADDRESS.sub("", output["text"])
            if "data" in output:
                data = {kind: output["data"][kind] for kind in _KEPT if kind in output["data"]}
                if "text/plain" in data:
                    data["text/plain"] = _ADDRESS.sub("", data["text/plain"])
                output["data"], output["metadata"] = data, {}
    return book


def _joined(outputs) -> list:
    """Printed text in one piece: where it is cut depends on how busy the machine is."""
    found = []
    for output in outputs:
        if found and output.get("name") == found[-1].get("name") == "stdout":
            found[-1]["text"] += output["text"]
        else:
            found.append(output)
    return found


def main(names) -> None:
    os.environ.setdefault("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    os.environ["PYTHONPATH"] = os.pathsep.join(
        filter(None, [str(FOLDER.parent), os.environ.get("PYTHONPATH")])
    )
    paths = [FOLDER / f"{name}.ipynb" for name in names] or sorted(FOLDER.glob("*.ipynb"))
    for path in paths:
        print(path.stem, flush=True)
        with tempfile.TemporaryDirectory() as folder:
            book = execute(path, folder)
        nbformat.write(book, path)


if __name__ == "__main__":
    main(sys.argv[1:])
