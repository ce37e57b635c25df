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


# what a notebook finds where another one has run in the same process before
_AS_NEW = """%reset -f
import os
import sys
import matplotlib.pyplot
matplotlib.pyplot.close("all")
os.chdir({folder!r})
if "jaxgdp.accounting.run.batch" in sys.modules:
    from jaxgdp.accounting.run import batch
    batch.BACKGROUND.wait_for_all()
    batch.BACKGROUND._known.clear()
    batch._COMPILED.clear()
    batch._EAGER_WORK_SO_FAR.clear()
%reset -f
"""


def execute(path: Path, folder, kernel=None):
    """A notebook with the outputs of a fresh run in ``folder``.

    Args:
        path: of the notebook. folder: its working directory.
        kernel: the manager of a kernel that runs already, in which it runs with nothing of what
            others left there; None: a kernel of its own.

    Returns:
        The notebook.
    """
    from nbclient import NotebookClient

    book = nbformat.read(path, as_version=4)
    for cell in book.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
            cell.metadata.pop("execution", None)
    if kernel is not None:
        first = nbformat.v4.new_code_cell(_AS_NEW.format(folder=str(folder)))
        book.cells.insert(0, first)
    client = NotebookClient(
        book,
        km=kernel,
        timeout=None,
        kernel_name="python3",
        record_timing=False,
        resources={"metadata": {"path": str(folder)}},
    )
    client.execute()
    if kernel is not None:
        client.kc.stop_channels()
        assert book.cells.pop(0) is first
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
