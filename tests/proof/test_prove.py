"""Verdicts: what is beside the truth is refuted, what holds it proven, the rest refused by name."""

import itertools
import json
import time

import mpmath
import pytest

pytest.importorskip("flint")
import jaxgdp
from jaxgdp.proof import ARGUMENTS, claim, provable, prove_all

SETTINGS = {
    "ApproximateDP": jaxgdp.compose([(jaxgdp.ApproximateDP(0.3, 1e-12), 6)]),
    "Deterministic": jaxgdp.Deterministic(2.0, 3),
    "DiscreteGaussian": jaxgdp.compose([(jaxgdp.DiscreteGaussian(3.0, 2), 4)]),
    "DiscreteLaplace": jaxgdp.compose([(jaxgdp.DiscreteLaplace(2.5), 9)]),
    "FromPMFs": jaxgdp.compose([(jaxgdp.FromPMFs([0.5, 0.3, 0.2], [0.3, 0.3, 0.4]), 5)]),
    "Gaussian": jaxgdp.compose([(jaxgdp.Gaussian(3.0), 4), (jaxgdp.Gaussian(2.0), 1)]),
    "Laplace": jaxgdp.compose([(jaxgdp.Laplace(2.0), 4)]),
    "PureDP": jaxgdp.compose([(jaxgdp.PureDP(0.25), 12)]),
    "RandomizedResponse": jaxgdp.compose([(jaxgdp.RandomizedResponse(0.5, 4), 7)]),
    "SubsampledGaussian": jaxgdp.dpsgd(1.5, 0.3, 6),
    "SubsampledLaplace": jaxgdp.compose([(jaxgdp.SubsampledLaplace(1.5, 0.3), 5)]),
    "mixed": jaxgdp.compose(
        [(jaxgdp.Laplace(3.0), 2), (jaxgdp.PureDP(0.2), 3), (jaxgdp.DiscreteGaussian(4.0), 2)]
    ),
}
ASKED = {
    "delta": {"epsilon": 0.75},
    "epsilon": {"delta": 1e-3},
    "tpr": {"fpr": 0.02},
    "beta": {"fpr": 0.2},
    "advantage": {},
    "bayes_risk": {"prior": 0.4},
    "mu": {"fpr_floor": 1e-5},
    "approximate_mu": {"approximation": 1e-3},
    "regret": {"fpr_floor": 1e-5},
}
ALWAYS = ("Gaussian", "Laplace", "RandomizedResponse", "PureDP")  # decided at once
OFF = 1e-4  # of a claim's width


def known(mechanism, quantity, rtol):
    """What ``measure`` finds, by other means."""
    return jaxgdp.measure(mechanism, quantity, rtol=rtol, **ASKED[quantity])[quantity]


def judge(name, quantity, rtol):
    """Four claims, each as wide as the number itself: off by 1e-4 of that on either side."""
    mechanism, asked = SETTINGS[name], ASKED[quantity]
    low, high = known(mechanism, quantity, rtol)
    # (as wide as it takes to know which claims are right)
    width = max(high, 1e-2, 2.0 * (high - low) / OFF)
    if width > 100.0 * high + 0.1:
        pytest.skip("what is known by other means is too wide to judge by")
    off, verdict = OFF * width, {}
    claims = {
        "above": (low - width, high + off),
        "short of it": (low - width, low - off),
        "below": (low - off, high + width),
        "beyond it": (high + off, high + width),
    }
    for where, made in claims.items():
        found = jaxgdp.prove(mechanism, quantity, made, **asked)
        verdict[where] = found.verdict, found.side
        assert found.bracket.lower <= high and found.bracket.upper >= low
    return verdict


RIGHT = {
    "above": ("proven", ""),
    "short of it": ("refuted", "upper"),
    "below": ("proven", ""),
    "beyond it": ("refuted", "lower"),
}


@pytest.mark.parametrize(
    "name, quantity",
    [
        pair
        for pair in itertools.product(ALWAYS, ASKED)
        if pair != ("Gaussian", "approximate_mu")  # (on a lattice: at night)
    ],
)
def test_claim_beside_the_truth_is_refuted_and_one_that_holds_it_is_proven(name, quantity):
    assert judge(name, quantity, 1e-5) == RIGHT


@pytest.mark.nightly
@pytest.mark.parametrize("quantity", ASKED)
@pytest.mark.parametrize("name", SETTINGS)
def test_every_mechanism_and_quantity(name, quantity):
    assert judge(name, quantity, 1e-6) == RIGHT


def test_every_mechanism_that_can_be_proven_has_a_setting():
    assert set(SETTINGS) - {"mixed"} == set(provable())
    assert set(ASKED) == set(ARGUMENTS)


@pytest.mark.parametrize("adjacency", ("add", "remove", "add_remove"))
def test_adjacencies_differ_and_are_told_apart(adjacency):
    run = jaxgdp.dpsgd(1.0, 0.2, 4)
    own = jaxgdp.measure(run, "epsilon", delta=1e-3, adjacency=adjacency)["epsilon"]
    wide = (own.lower - 0.05, own.upper + 0.05)
    for asked in ("add", "remove", "add_remove"):
        found = jaxgdp.prove(run, "epsilon", wide, delta=1e-3, adjacency=asked)
        same = asked == adjacency or {asked, adjacency} == {"remove", "add_remove"}
        assert found.verdict == ("proven" if same else "refuted"), asked


@pytest.mark.nightly
def test_many_steps_take_seconds():
    """1e5 steps of DP-SGD to 1e-3, δ to 1e-30 and μ at a floor of 1e-10."""
    run = jaxgdp.dpsgd(1.0, 0.01, 100_000)
    for quantity, asked in (
        ("epsilon", {"delta": 1e-5}),
        ("mu", {"fpr_floor": 1e-10}),
        ("epsilon", {"delta": 1e-30}),
    ):
        bracket = jaxgdp.measure(run, quantity, **asked)[quantity]
        started = time.process_time()
        found = jaxgdp.prove(run, quantity, bracket, max_seconds=600, **asked)
        assert found.verdict == "proven", found
        assert time.process_time() - started < 60


@pytest.mark.nightly
@pytest.mark.parametrize(
    "run",
    [
        jaxgdp.dpsgd(1.0, 1e-5, 10**9),
        jaxgdp.dpsgd(10.0, 1e-4, 10**9),
        jaxgdp.compose([(jaxgdp.PureDP(1e-5), 10**9)]),
        jaxgdp.compose([(jaxgdp.DiscreteGaussian(1000.0), 10**9)]),
        jaxgdp.compose([(jaxgdp.SubsampledLaplace(1.0, 1e-5), 10**9)]),
    ],
    ids=lambda run: type(run.mechanisms[0]).__name__,
)
def test_thousand_million_uses_have_sides_within_a_minute(run):
    own = jaxgdp.measure(run, "epsilon", delta=1e-5)["epsilon"]
    started = time.process_time()
    found = jaxgdp.prove(run, "epsilon", own, max_seconds=60, delta=1e-5)
    assert time.process_time() - started < 75  # (a product is not broken off)
    assert found.verdict != "refuted"
    assert found.bracket.lower <= own.upper and own.lower <= found.bracket.upper
    assert found.bracket.upper - found.bracket.lower < 1e-2 * own.upper


def test_digits_of_a_small_delta_are_proven():
    """Of 60 times 0.5-DP only one outcome has a loss above 29: δ(29) is one term, of 40 digits."""
    with mpmath.workdps(50):
        up = 1 / (1 + mpmath.exp(-mpmath.mpf("0.5")))
        true = up**60 - mpmath.exp(29) * (1 - up) ** 60
        low, high = (float(true * (1 + side * mpmath.mpf(10) ** -12)) for side in (-1, 1))
    mechanism = jaxgdp.compose([(jaxgdp.PureDP(0.5), 60)])
    assert jaxgdp.prove(mechanism, "delta", (low, high), epsilon=29.0).verdict == "proven"
    assert jaxgdp.prove(mechanism, "delta", (0.0, low), epsilon=29.0).verdict == "refuted"


def test_mu_of_fnrs_far_below_the_floor_is_proven():
    run = jaxgdp.compose([(jaxgdp.Laplace(0.12), 15)])
    own = jaxgdp.measure(run, "mu", fpr_floor=1e-7, rtol=1e-3)["mu"]
    assert own.lower > 17.0
    assert jaxgdp.prove(run, "mu", own, fpr_floor=1e-7).verdict == "proven"


@pytest.mark.parametrize("prior", [0.25, 0.460397, 0.532997, 0.9])
def test_bayes_risk_of_nearly_nothing_shown_ends_at_the_prior(prior):
    run = jaxgdp.compose([(jaxgdp.Deterministic(1e4, 40), 1), (jaxgdp.PureDP(1e-3), 2)])
    end = min(prior, 1.0 - prior)
    found = jaxgdp.prove(run, "bayes_risk", (end - 2e-3, end), prior=prior)
    assert found.verdict == "proven" and found.bracket.upper <= end


def test_fnr_far_below_the_digits_of_one_is_proven():
    """The line below which the TPR lies differs from 1 by less than doubles tell."""
    run = jaxgdp.compose([(jaxgdp.PureDP(4.0), 40)])
    own = jaxgdp.measure(run, "beta", fpr=1e-4, adjacency="remove")["beta"]
    assert own.upper < 1e-40
    found = jaxgdp.prove(run, "beta", own, fpr=1e-4, adjacency="remove")
    assert found.verdict == "proven"
    beyond = (0.5 * own.lower, 0.99 * own.lower)
    assert jaxgdp.prove(run, "beta", beyond, fpr=1e-4, adjacency="remove").side == "upper"


def test_time_that_is_spent_leaves_a_bracket_that_holds():
    run = jaxgdp.dpsgd(1.5, 0.1, 30)
    own = jaxgdp.measure(run, "mu")["mu"]
    found = jaxgdp.prove(run, "mu", (own.lower, own.lower + 1e-12), max_seconds=0.3)
    assert found.verdict == "undecided"
    assert found.reason
    assert found.bracket.lower <= own.upper and own.lower <= found.bracket.upper
    assert json.loads(found.to_json())["verdict"] == "undecided"


def test_nothing_released_has_nothing_to_hide():
    found = jaxgdp.prove(jaxgdp.PureDP(0.0), "epsilon", (0.0, 0.0))
    assert found.verdict == "proven"
    assert jaxgdp.prove(jaxgdp.PureDP(0.0), "tpr", (0.0, 0.5), fpr=0.25).verdict == "proven"


@pytest.mark.parametrize(
    "mechanism, adjacency, largest",
    [
        (jaxgdp.compose([(jaxgdp.Laplace(2.0), 3)]), "add_remove", 1.5),
        (jaxgdp.compose([(jaxgdp.SubsampledLaplace(2.0, 0.25), 2)]), "remove", 0.30057),
        (jaxgdp.SubsampledLaplace(2.0, 0.25), "add", 0.10356),
        (jaxgdp.dpsgd(1.0, 0.125, 3), "add", 0.40060),
        (jaxgdp.compose([(jaxgdp.PureDP(0.5), 3), (jaxgdp.Laplace(2.0), 1)]), "remove", 2.0),
    ],
)
def test_delta_beyond_the_largest_loss_is_nothing(mechanism, adjacency, largest):
    """At 1.0001 of it δ is exactly 0; a little below it is not."""
    prove = lambda e: jaxgdp.prove(
        mechanism, "delta", (0.0, 0.0), 0.5, adjacency=adjacency, epsilon=e
    )
    assert prove(1.0001 * largest).verdict == "proven"
    assert prove(0.7 * largest).verdict != "proven"


def test_infinities():
    both = jaxgdp.compose([(jaxgdp.ApproximateDP(0.5, 1e-3), 2), (jaxgdp.Laplace(2.0), 1)])
    infinite = (float("inf"), float("inf"))
    assert jaxgdp.prove(both, "epsilon", infinite, delta=1e-3).verdict == "proven"
    assert jaxgdp.prove(both, "approximate_mu", infinite, approximation=1e-3).verdict == "proven"
    assert jaxgdp.prove(both, "epsilon", (0.0, 5.0), delta=1e-3).verdict == "refuted"
    # (all mass of one law, and nearly all of the other, at infinities)
    faint = (jaxgdp.FromPMFs([0.0, 1.0], [1.0, 1e-230]), 2), (jaxgdp.DiscreteGaussian(0.55), 30)
    assert jaxgdp.prove(jaxgdp.compose(faint), "mu", infinite).verdict == "proven"


@pytest.mark.parametrize(
    "mechanism, quantity, bracket, asked, message",
    [
        (jaxgdp.Gaussian([1.0, 2.0]), "mu", (0, 1), {}, "one setting, got a batch"),
        (jaxgdp.Shuffled(1.0, 100), "mu", (0, 1), {}, "got Shuffled"),
        (jaxgdp.Gaussian(1.0), "muu", (0, 1), {}, "quantity must be one of"),
        (jaxgdp.Gaussian(1.0), "mu", (1, 0), {}, "lower <= upper"),
        (jaxgdp.Gaussian(1.0), "mu", 1.0, {}, "two numbers"),
        (jaxgdp.Gaussian(1.0), "epsilon", (0, 1), {"delta": 1.5}, "delta must be in"),
        (jaxgdp.Gaussian(1.0), "epsilon", (0, 1), {"fpr": 0.5}, "asked at delta, got fpr"),
        (jaxgdp.Gaussian(1.0), "mu", (0, 1), {"fpr_floor": 0.0}, "fpr_floor must be"),
        (jaxgdp.Gaussian(1.0), "mu", (0, 1), {"adjacency": "replace_one"}, "adjacency must be"),
        (jaxgdp.Gaussian(1.0), "mu", (0, 1), {"max_seconds": 0}, "max_seconds must be"),
    ],
)
def test_everything_else_is_refused_by_name(mechanism, quantity, bracket, asked, message):
    with pytest.raises(ValueError, match=message):
        jaxgdp.prove(mechanism, quantity, bracket, **asked)


def test_extra_that_is_missing_is_named(monkeypatch):
    from jaxgdp.proof import balls

    monkeypatch.setattr(balls, "flint", None)
    with pytest.raises(ImportError, match=r"jaxgdp\[proof\]"):
        jaxgdp.prove(jaxgdp.Gaussian(1.0), "mu", (0, 2))


@pytest.mark.parametrize("name", ("DiscreteGaussian", "FromPMFs", "Gaussian", "SubsampledGaussian"))
def test_precision_of_the_user_comes_back_and_changes_nothing(name):
    import flint

    before, found = flint.ctx.prec, []
    try:
        for bits, digits in ((53, 15), (2, 3), (3000, 500)):
            flint.ctx.prec = bits
            with mpmath.workdps(digits):
                proof = jaxgdp.prove(SETTINGS[name], "epsilon", (0.0, 30.0), delta=1e-3)
            assert flint.ctx.prec == bits
            found.append((proof.verdict, proof.bracket, proof.effort))
    finally:
        flint.ctx.prec = before
    assert found[1:] == found[:1] * 2


def test_order_that_is_smaller_is_composed_once_and_leaves_the_bracket(monkeypatch):
    """ε of a subsampled mechanism is that of "remove": finer looks compose that order alone, and a
    certificate, which composes both, bears the same bracket out."""
    from jaxgdp.proof import check, refine

    composed = []
    compose = refine.compose

    def counted(parts, order, effort):
        composed.append(order)
        return compose(parts, order, effort)

    monkeypatch.setattr(refine, "compose", counted)
    run = jaxgdp.dpsgd(1.2, 0.2, 8)
    own = jaxgdp.measure(run, "epsilon", delta=1e-3)["epsilon"]
    found = jaxgdp.prove(run, "epsilon", (own.lower - 1e-4, own.upper + 1e-4), delta=1e-3)
    assert found.verdict == "proven"
    assert composed.count("add") == 1 < composed.count("remove")
    assert check(json.loads(found.to_json())).bracket == found.bracket


def test_rare_steps_are_looked_at_as_far_as_the_time_goes():
    """A loss that is rarely much has a long range and next to no variance."""
    run = jaxgdp.dpsgd(0.33, 3e-7, 19)
    side = jaxgdp.tpr(run, fpr=1.6e-9)
    started = time.thread_time()
    found = jaxgdp.prove(run, "tpr", tuple(map(float, side)), fpr=1.6e-9, max_seconds=10)
    assert time.thread_time() - started < 20.0
    assert found.verdict != "refuted"
    assert 1.6e-9 < found.bracket.lower <= side.upper and side.lower <= found.bracket.upper < 1e-8


def test_rare_steps_are_proven_as_they_are_measured():
    """The finest lattice ends where a tail of one use matters to nobody, not where it has no bits:
    a step of p = 1e-5 reveals next to nothing there, and 2.8 nats here.
    """
    run = jaxgdp.dpsgd(1.0, 1e-5, 10_000)
    lower, upper = map(float, jaxgdp.epsilon(run, delta=1e-7))
    claim = 0.997 * lower, 1.003 * upper
    assert jaxgdp.prove(run, "epsilon", claim, delta=1e-7, max_seconds=30).verdict == "proven"


def test_rare_steps_that_are_very_many_are_proven():
    run = jaxgdp.dpsgd(61.6, 1.465e-8, 468_181_347)
    sides = jaxgdp.epsilon(run, delta=1e-6, adjacency="add")
    found = jaxgdp.prove(run, "epsilon", sides, delta=1e-6, adjacency="add", max_seconds=30)
    assert found.verdict == "proven"


def test_faint_outputs_of_large_losses_make_no_long_lattice():
    """Losses of 1e-16 with nearly all mass, and of 1e-3 with 1e-123."""
    p = [4.05851729e-1, 1.37368950e-123, 5.94148271e-1, 1.26439485e-170]
    q = [4.05851729e-1, 1.37511818e-123, 5.94148271e-1, 1.26439485e-170]
    run = jaxgdp.compose([(jaxgdp.FromPMFs(p, q), 30)])
    sides, started = (
        (0.0, 4.2860400000006064e-125),
        time.thread_time(),
    )  # as measured: nightly below
    for quantity, asked in (("epsilon", {"delta": 4.4e-10}), ("advantage", {})):
        found = jaxgdp.prove(run, quantity, sides, max_seconds=10, **asked)
        assert found.verdict == "proven"
    assert time.thread_time() - started < 12.0


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("quantity", "asked"), [("epsilon", {"delta": 4.4e-10}), ("advantage", {})]
)
def test_measured_numbers_of_faint_outputs_are_proven(quantity, asked):
    p = [4.05851729e-1, 1.37368950e-123, 5.94148271e-1, 1.26439485e-170]
    q = [4.05851729e-1, 1.37511818e-123, 5.94148271e-1, 1.26439485e-170]
    run = jaxgdp.compose([(jaxgdp.FromPMFs(p, q), 30)])
    sides = getattr(jaxgdp.measure(run, quantity, **asked), quantity)
    assert jaxgdp.prove(run, quantity, sides, max_seconds=10, **asked).verdict == "proven"


def test_single_use_without_a_closed_form_is_looked_at_finer_and_finer():
    run, floor = jaxgdp.SubsampledGaussian(0.01510098, 5.97414532e-06), 0.25672321545428783
    found = jaxgdp.prove(run, "regret", (0.0, 1e-9), fpr_floor=floor, max_seconds=2)
    assert found.verdict == "undecided"
    assert found.bracket.upper < 1e-5


@pytest.mark.nightly
def test_many_claims_about_rare_steps_are_looked_at_as_finely_as_one():
    run = jaxgdp.dpsgd(0.4, 1e-5, 10_000)
    lower, upper = map(float, jaxgdp.epsilon(run, delta=1e-6))
    made = claim("epsilon", (0.9995 * lower, 1.0005 * upper), "add_remove", {"delta": 1e-6})
    assert prove_all(run, [made], max_seconds=100)[0].verdict == "proven"


@pytest.mark.parametrize("adjacency", ["remove", "add", "add_remove"])
def test_coarse_lattice_of_many_rare_steps_is_above_a_test_of_the_largest_loss(adjacency):
    """The record is looked for in the step with the largest loss: a point of the curve, in closed
    form. A polygon whose TPR is 1 before its FPR is has an infinite level there."""
    sigma, rate, steps, apart = 0.1, 1e-12, 4 * 10**8, 1e-6
    run = jaxgdp.dpsgd(sigma, rate, steps)
    with mpmath.workdps(60):
        tail = lambda x: mpmath.erfc(x / mpmath.sqrt(2)) / 2
        quantile = lambda q: -mpmath.sqrt(2) * mpmath.erfinv(1 - 2 * q)
        at = mpmath.mpf(11)
        fpr = steps * tail(at)  # at most
        once = steps * mpmath.mpf(rate) * (1 - mpmath.mpf(rate)) ** (steps - 1)
        tpr = once * tail(at - 1 / mpmath.mpf(sigma))  # at least
        d = mpmath.mpf(apart)
        shown = quantile((tpr - d) / (1 - d)) - quantile(fpr / (1 - d))
    found = jaxgdp.prove(
        run,
        "approximate_mu",
        (float(shown) * 0.99, 20.0),
        max_seconds=1.0,
        adjacency=adjacency,
        approximation=apart,
    )
    assert shown > 5.0 and found.verdict != "refuted" and found.bracket.upper >= shown
