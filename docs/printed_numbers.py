"""The numbers that the package prints of mechanisms that can be proven: where each is printed, of
what it is, and which quantities. ``docs/make_proofs.py`` proves them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jaxgdp
from jaxgdp import deployments, targets
from jaxgdp.interop import registry
from jaxgdp.report import rounded_outward
from jaxgdp.reproduce import digits
from jaxgdp.reproduce.published import read

RECORDS = Path(__file__).parent.parent / "tests" / "interop" / "data" / "registry"
ASKED: dict[str, dict[str, float]] = {
    "mu": {"fpr_floor": 1e-10},
    "regret": {"fpr_floor": 1e-10},
    "advantage": {},
    "epsilon": {"delta": 1e-5},
    "tpr": {"fpr": 1e-3},
}
_PAPERS = 5  # digits of risks: more than the papers print
_FPRS = (0.01, 0.05, 0.1)  # of Kulynych 2024
_NOISE_OF_DIGITS = (0.8, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)


class Question(NamedTuple):
    """What is printed of a setting.

    Attributes:
        quantity: its name.
        asked: what it is asked at.
        bracket: what is printed; None is what ``measure`` finds.
        printed: the digits that the README prints, if it does.
        digits: that the page prints of both sides: they are what is proven.
    """

    quantity: str
    asked: Mapping[str, float]
    bracket: Any = None
    printed: tuple[str, ...] = ()
    digits: int = 6


class Setting(NamedTuple):
    """A mechanism, where its numbers are printed, and which of them to prove."""

    where: str
    mechanism: Any
    questions: Sequence[Question]


def usual(*names: str, digits: int = 6) -> list[Question]:
    """Quantities at their usual arguments."""
    return [Question(name, ASKED[name], digits=digits) for name in names]


def claimed(setting: Setting) -> list[tuple[float, float]]:
    """The brackets that are printed, rounded outward to the digits that are printed."""
    found = []
    for question in setting.questions:
        bracket = question.bracket
        if bracket is None:
            asked: dict[str, Any] = dict(question.asked)
            bracket = jaxgdp.measure(setting.mechanism, question.quantity, **asked)
            bracket = bracket[question.quantity]
        low, high = (float(side) for side in bracket)
        if question.bracket is None or question.digits < 5:
            low, high = (
                float(rounded_outward(side, up=up, digits=question.digits))
                if math.isfinite(side)
                else side
                for side, up in ((low, False), (high, True))
            )
        found.append((low, high))
    return found


def _of_readme(quantity: str, *printed: str, bracket: Any = None) -> Question:
    return Question(quantity, ASKED[quantity], bracket, printed)


def readme() -> Iterator[Setting]:
    """The numbers of the README."""
    dpsgd = jaxgdp.dpsgd
    for sigma, rate, text in (
        (1, 0.01, "0.5224"), (1, 0.1, "3.9762"), (2, 0.01, "0.1782"),
        (2, 0.1, "1.723"), (4, 0.01, "0.0824"), (4, 0.1, "0.8171"),
    ):  # fmt: skip
        where = f"README, the grid: σ {sigma}, p {rate}, T 1000"
        yield Setting(where, dpsgd(sigma, rate, 1000), [_of_readme("mu", text)])
    yield Setting(
        "README, the budget: σ 2, p 0.01, T 3410 (besides what padded batches cut off)",
        dpsgd(2.0, 0.01, 3410),
        [_of_readme("epsilon", "3410", bracket=(0.0, 1.2))],
    )
    found = jaxgdp.calibrate(targets.FNR(fnr=0.7, fpr=0.1), sampling_prob=0.001, num_steps=10_000)
    yield Setting(
        "README, the smallest noise: σ 0.48236, p 0.001, T 10000",
        dpsgd(float(found.value), 0.001, 10_000),
        [Question("beta", {"fpr": 0.1}, (0.7, 1.0), ("0.48236",))],
    )
    yield Setting(
        "README, the gradient: σ 2, p 0.05, T 1000",
        dpsgd(2.0, 0.05, 1000),
        [_of_readme("mu", "0.8765")],
    )
    worked = dpsgd(9.4, 16384 / 50_000, 2000)
    curve = jaxgdp.tradeoff(worked)
    questions = [
        _of_readme("mu", "1.56685", "1.56718", "1.56719", bracket=curve.mu()),
        _of_readme("epsilon", "7.4248", bracket=curve.epsilon(delta=1e-5)),
    ]
    where = "README, the worked example: σ 9.4, p 16384/50000, T 2000"
    yield Setting(where, worked, [*questions, *usual("regret", "advantage", "tpr")])
    yield Setting(
        "README, a run in people's terms, as Poisson samples: σ 0.9, p 512/45000, T 2637",
        dpsgd(0.9, 512 / 45_000, 2637),
        [_of_readme("epsilon", "4.29"), _of_readme("mu", "1.03")],
    )
    given = _of_readme("epsilon", "1.827", "1.829", bracket=(1.827, 1.829))
    yield Setting("README, the proof: σ 1, p 0.01, T 1000", dpsgd(1.0, 0.01, 1000), [given])
    mixed = jaxgdp.compose([(jaxgdp.DiscreteGaussian(sigma=8.28), 10), (jaxgdp.Laplace(2.0), 1)])
    questions = [_of_readme("mu", "0.63033"), *usual("epsilon")]
    yield Setting("README, discrete Gaussian and Laplace noise", mixed, questions)
    where = "README, the samplers, as Poisson samples: σ 0.5, p 0.001, T 1000"
    yield Setting(where, dpsgd(0.5, 0.001, 1000), [_of_readme("epsilon", "3.24")])


# other numbers of the README, by their digits, and why no proof is about them
ELSEWHERE = {
    "0.01": "what the paper's rule calls a small regret",
    "0.5092": "a derivative of μ, not a bracket",
    "0.48187": "a noise multiplier that is rejected",
    "3.2105": "users with up to four records: groups have a pair of their own",
    "2.67": "the best of about ten runs: selection has a pair of its own",
    "2.68": "the best of about ten runs: selection has a pair of its own",
    "9.996": "shuffled batches",
    "9.998": "shuffled batches",
    "1.23206": "what two statements imply: of no mechanism",
    "0.908054": "what an attack shows with confidence: of no mechanism",
    "4.758": "√T/σ, a formula",
    "3.11": "a version of Python",
}


def _gomez() -> Iterator[Setting]:
    names = ("mu", "regret", "epsilon", "advantage")
    for table in (4, 5):
        trained = deployments.de_et_al_2022(table=table, dataset_size=60_000)
        (step,), (steps,) = trained.mechanisms, trained.counts
        columns = read("gomez2025")[f"table-{table}"]["epsilon"]
        for text, sigma, number in zip(columns, step.noise_multiplier, steps, strict=True):
            run = jaxgdp.dpsgd(float(sigma), float(step.sampling_prob), int(number))
            where = f"Gomez 2025, Table {table}, ε = {text}, of 60,000 records"
            yield Setting(where, run, usual(*names))
    two = usual("mu", "regret")
    yield Setting("Gomez 2025, Figure 2: discrete Gaussian", jaxgdp.DiscreteGaussian(1.0), two)
    where = "Gomez 2025, Figure 4: randomized response"
    yield Setting(where, jaxgdp.RandomizedResponse(1.0), two)


def _kulynych() -> Iterator[Setting]:
    paper = read("kulynych2024")
    tprs = [Question("tpr", {"fpr": a}, digits=_PAPERS) for a in _FPRS]
    for sigma in (0.6, 1.0, 2.0):
        run = jaxgdp.dpsgd(sigma, 0.001, 10_000)
        where = f"Kulynych 2024: p 0.001, T 10000, σ {sigma:g}"
        yield Setting(where, run, [*usual("advantage", digits=_PAPERS), *tprs])
    model = paper["language"]
    rate, steps = model["batch"] / model["records"], model["epochs"] * model["records"]
    for text in model["sigma"]:
        run = jaxgdp.dpsgd(float(text), rate, int(steps / model["batch"]))
        where = f"Kulynych 2024, the language model: σ {text}"
        yield Setting(where, run, [*usual("epsilon", digits=_PAPERS), *tprs])
    for sigma in model["repository_sigma"]:
        run = jaxgdp.dpsgd(sigma, model["repository_rate"], model["repository_steps"])
        where = f"Kulynych 2024, the language model of the repository: σ {sigma:.6g}"
        yield Setting(where, run, [*usual("epsilon", digits=_PAPERS), *tprs])
    for sigma in _NOISE_OF_DIGITS:
        run = jaxgdp.dpsgd(sigma, digits.RATE, 400)
        questions = [*usual("epsilon", digits=_PAPERS), *tprs]
        yield Setting(f"Kulynych 2024, digits: σ {sigma:g}", run, questions)


def _chua() -> Iterator[Setting]:
    for sigma, steps, epsilons in (
        (0.35, 1000, (1.0, 4.0, 8.0)),
        (0.4, 10_000, (4.0,)),
        (0.7, 1000, (0.61,)),
        (0.8, 1000, (1.0,)),
        (1.0, 1000, (1.0,)),
    ):
        run = jaxgdp.dpsgd(sigma, 1.0 / steps, steps)
        questions = [Question("delta", {"epsilon": e}, digits=_PAPERS) for e in epsilons]
        yield Setting(f"Chua 2024: Poisson, σ {sigma}, T {steps}, one epoch", run, questions)
    run = jaxgdp.dpsgd(0.4, 1e-5, 100_000)
    asked = [Question("epsilon", {"delta": 1e-6}, digits=_PAPERS)]
    yield Setting("Chua 2024, Figure 1: Poisson, σ 0.4, T 100000, one epoch", run, asked)
    fixed = [Question("delta", {"epsilon": 4.0}, digits=_PAPERS)]
    yield Setting("Chua 2024, Figure 3: a fixed order, σ 0.4", jaxgdp.Deterministic(0.4), fixed)


def papers() -> Iterator[Setting]:
    """Numbers of the papers that are reproduced."""
    yield from _gomez()
    yield from _kulynych()
    yield from _chua()
    fifty = jaxgdp.compose([(jaxgdp.PureDP(0.2), 50)])
    yield Setting("Liu 2022: 50 uses of a 0.2-DP mechanism", fifty, usual("mu", "epsilon"))


def shipped() -> Iterator[Setting]:
    """The shipped deployments."""
    for name in deployments.names():
        mechanism = jaxgdp.mechanisms.as_composition(deployments.about(name).mechanism())
        names = ("mu", "regret", "epsilon", "advantage")
        yield Setting(f"Deployment `{name}`", mechanism, usual(*names))


def entries() -> Iterator[Setting]:
    """The registry's stated guarantees, each as the most revealing mechanism that it allows; of a
    stated ρ, the Gaussian noise that the lower side is of."""
    paths = sorted(path for path in RECORDS.glob("*.yaml") if "schema" not in path.name)
    for path in paths:
        for i, stated in enumerate(registry.read(path).claims):
            where = (
                f"Entry `{path.stem}`" + (f", claim {i + 1}" if i else "") + f": {stated.stated}"
            )
            asked = {"mu": ASKED["mu"], "advantage": {}, "tpr": ASKED["tpr"]}
            if stated.epsilon is not None and stated.rho is None:
                delta = 0.0 if stated.delta is None else stated.delta.value
                mechanism: Any = jaxgdp.ApproximateDP(stated.epsilon.value, delta)
                if delta > 0.0:
                    asked["approximate_mu"] = {"approximation": delta}
                brackets = {name: stated.brackets.get(name) for name in asked}
            elif stated.rho is not None:
                mechanism = jaxgdp.Gaussian(1.0 / math.sqrt(2.0 * stated.rho.value))
                lower = {name: stated.brackets.get(name) for name in asked}
                brackets = {k: b if b is None else (b[0], math.inf) for k, b in lower.items()}
            else:
                continue
            questions = [
                Question(name, asked[name], bracket, digits=4)
                for name, bracket in brackets.items()
                if bracket is not None
            ]
            if questions:  # (a δ that is not stated leaves no number)
                yield Setting(where, mechanism, questions)


GROUPS = {
    "README": readme,
    "Papers": papers,
    "Shipped deployments": shipped,
    "The registry": entries,
}
