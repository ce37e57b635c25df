"""Random questions about random compositions of every class of mechanisms: what to ask, with no
exact answer at hand.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from jaxgdp.adjacency import Adjacency
from jaxgdp.quantities import registry

ADJACENCIES = tuple(relation for relation in Adjacency if not relation.replaces)


def asked_at() -> dict[str, str]:
    """What each quantity of the registry is asked at, where it is asked at something."""
    return {q.name: q.argument for q in registry.REGISTRY.values() if q.argument is not None}


def names() -> tuple[str, ...]:
    """Every quantity of the registry; those without an argument last."""
    return tuple(dict.fromkeys([*asked_at(), *registry.REGISTRY]))


class Asked(NamedTuple):
    """One question.

    Attributes:
        mechanism: an expression that builds it.
        quantities: what to ask. adjacency, rtol, at: how, as :func:`jaxgdp.measure` takes it.
    """

    mechanism: str
    quantities: tuple[str, ...]
    adjacency: str
    rtol: float
    at: dict[str, float]

    def __str__(self):
        asked = "".join(f", {name}={value!r}" for name, value in self.at.items())
        return (
            f"jaxgdp.measure({self.mechanism}, {self.quantities!r}, rtol={self.rtol!r},"
            f" adjacency={self.adjacency!r}{asked})"
        )

    def options(self) -> dict[str, Any]:
        """Arguments of ``measure`` beside the mechanism and the quantities."""
        return {"rtol": self.rtol, "adjacency": self.adjacency} | self.at


def _log_uniform(rng, low, high) -> float:
    return float(f"{math.exp(rng.uniform(math.log(low), math.log(high))):.6g}")


def _laws(rng, number):
    """Two random laws on a few outputs that sum to one in six digits; now and then an output that
    one of them never gives.
    """
    p, q = (rng.dirichlet(np.full(number, 2.0)).round(6) for _ in range(2))
    q = (0.6 * p + 0.4 * q).round(6)
    if rng.uniform() < 0.2:
        p[0] = 0.0
    for law in (p, q):
        law[-1] = round(1.0 - float(np.sum(law[:-1])), 6)
    return [float(v) for v in p], [float(v) for v in q]


def _subsampled_gaussian(rng):
    return (
        f"jaxgdp.SubsampledGaussian({_log_uniform(rng, 0.4, 20.0)}, {_log_uniform(rng, 1e-4, 1.0)})"
    )


def _subsampled_laplace(rng):
    return (
        f"jaxgdp.SubsampledLaplace({_log_uniform(rng, 0.4, 20.0)}, {_log_uniform(rng, 1e-3, 1.0)})"
    )


def _from_pmfs(rng, outputs: int | None = None):
    return "jaxgdp.FromPMFs({!r}, {!r})".format(*_laws(rng, outputs or int(rng.integers(2, 6))))


def _from_profile(rng):
    epsilon, delta = _log_uniform(rng, 0.1, 2.0), _log_uniform(rng, 1e-4, 0.3)
    return (
        f"jaxgdp.FromProfile([0.0, {epsilon}, {2.0 * epsilon}], [{delta}, {0.4 * delta},"
        f" {0.05 * delta}])"
    )


def _from_densities(rng):
    ends, scale = (-9.0, 10.0), _log_uniform(rng, 0.6, 4.0)
    x = f"numpy.linspace({ends[0]}, {ends[1]}, 77)"
    return f"jaxgdp.FromDensities.normalized({x}, -abs({x}) / {scale}, -abs({x} - 1.0) / {scale})"


def _one(form, low, high):
    return lambda rng: form.format(_log_uniform(rng, low, high))


# class → (a random use of it, how often it is used at most)
CLASSES = {
    "SubsampledGaussian": (_subsampled_gaussian, 5000),
    "Gaussian": (_one("jaxgdp.Gaussian({})", 0.5, 50.0), 100),
    "Laplace": (_one("jaxgdp.Laplace({})", 0.5, 50.0), 100),
    "SubsampledLaplace": (_subsampled_laplace, 300),
    "DiscreteGaussian": (_one("jaxgdp.DiscreteGaussian({})", 0.7, 20.0), 100),
    "DiscreteLaplace": (_one("jaxgdp.DiscreteLaplace({})", 0.7, 20.0), 100),
    "RandomizedResponse": (_one("jaxgdp.RandomizedResponse({})", 0.02, 3.0), 100),
    "PureDP": (_one("jaxgdp.PureDP({})", 0.02, 2.0), 100),
    "ApproximateDP": (
        lambda rng: (
            f"jaxgdp.ApproximateDP({_log_uniform(rng, 0.02, 2.0)}, "
            f"{_log_uniform(rng, 1e-14, 1e-4)})"
        ),
        50,
    ),
    "ExponentialMechanism": (_one("jaxgdp.ExponentialMechanism({})", 0.02, 2.0), 50),
    "FromPMFs": (_from_pmfs, 30),
    "FromProfile": (_from_profile, 20),
    "FromDensities": (_from_densities, 30),
}


def _classes(rng, name: str | None = None) -> list[str]:
    """Classes of one to three components, the first of them ``name``."""
    names = [name or str(rng.choice(list(CLASSES)))]
    return names + [
        str(rng.choice(list(CLASSES))) for _ in range(int(rng.choice(3, p=[0.6, 0.3, 0.1])))
    ]


def _composed(rng, names: list[str], **shapes) -> str:
    """A composition of these classes."""
    parts = []
    for each in names:
        make, most = CLASSES[each]
        use = make(rng, **shapes) if each == "FromPMFs" else make(rng)
        parts.append(f"({use}, {max(1, int(_log_uniform(rng, 1.0, most)))})")
    return f"jaxgdp.compose([{', '.join(parts)}])"


def mechanism_of(rng, name: str | None = None) -> str:
    """A composition of one to three components, one of them of the class ``name``."""
    return _composed(rng, _classes(rng, name))


def _arguments(rng) -> dict[str, float]:
    """A value of everything that a quantity may be asked at."""
    defaults = {name: q.default for name, q in registry.arguments().items()}
    return defaults | {
        "fpr_floor": _log_uniform(rng, 1e-12, 1e-2),
        "delta": _log_uniform(rng, 1e-12, 0.1),
        "epsilon": float(rng.choice([0.0, _log_uniform(rng, 0.01, 10.0)])),
        "fpr": _log_uniform(rng, 1e-10, 0.4),
        "approximation": _log_uniform(rng, 1e-10, 1e-2),
        "prior": float(f"{rng.uniform(0.01, 0.99):.4g}"),
    }


def _named(quantities, at) -> dict[str, float]:
    arguments = asked_at()
    return {arguments[q]: at[arguments[q]] for q in quantities if q in arguments}


def question_of(seed: int, index: int, rtols=(1e-2, 1e-3, 1e-4, 1e-5), number: int = 9) -> Asked:
    """Question number ``index`` of a seed, about ``number`` of the quantities; every class takes
    its turn.
    """
    rng = np.random.default_rng([seed, index])
    mechanism = mechanism_of(rng, list(CLASSES)[index % len(CLASSES)])
    at = _arguments(rng)
    quantities = tuple(str(q) for q in rng.permutation(names())[:number])
    return Asked(
        mechanism,
        quantities,
        str(rng.choice(ADJACENCIES)),
        float(rng.choice(rtols)),
        _named(quantities, at),
    )


def questions_alike(
    seed: int, index: int, size: int, rtols=(1e-3,), number: int = 9
) -> list[Asked]:
    """Questions that one batch can ask: the same classes, quantities, adjacency and accuracy, all
    else at random.
    """
    rng = np.random.default_rng([seed, index, size])
    classes = _classes(rng, list(CLASSES)[index % len(CLASSES)])
    quantities = tuple(str(q) for q in rng.permutation(names())[:number])
    how = str(rng.choice(ADJACENCIES)), float(rng.choice(rtols))
    return [
        Asked(
            _composed(rng, classes, outputs=3),
            quantities,
            *how,
            _named(quantities, _arguments(rng)),
        )
        for _ in range(size)
    ]


def built(text: str):
    """The mechanism of an expression."""
    import numpy

    import jaxgdp

    return eval(text, {"jaxgdp": jaxgdp, "numpy": numpy})
