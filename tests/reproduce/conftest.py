"""Every figure that a reproduction writes in these tests can be read, and says on paper which floor
its file states.
"""

import importlib.util

import pytest


@pytest.fixture(autouse=True, scope="module")
def figures_can_be_read():
    if importlib.util.find_spec("matplotlib") is None:
        yield
        return
    from matplotlib.text import Text

    from jaxgdp import plot

    def save(figure, path, *, question, fpr_floor):
        assert plot.faults(figure) == [], path
        texts = " ".join(text.get_text() for text in figure.findobj(Text))
        assert fpr_floor is not None or ("FPR $\\geq" not in texts and "every FPR" not in texts), (
            path
        )
        written(figure, path, question=question, fpr_floor=fpr_floor)

    written = plot.save
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plot, "save", save)
        yield
