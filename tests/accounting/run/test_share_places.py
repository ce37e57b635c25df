"""How many points curves have about the place where a number is read off, and what that makes of
small δ of records that are seldom sampled."""

import math

import mpmath
import numpy as np
import pytest
from by_day import first

import jaxgdp
from jaxgdp.accounting.certify.seldom_sampled import LargeSteps, Products, Run
from jaxgdp.accounting.question import Question
from jaxgdp.accounting.run import share_places
from jaxgdp.accounting.run.engine import Engine
from jaxgdp.accounting.run.share_places import Points, Widths
from jaxgdp.bracket import Bracket
from jaxgdp.quantities.registry import REGISTRY


def _place(name, asked, adjacency, lower, upper, rtol=1e-3):
    question = Question(rtol, 1e-10, adjacency, ((REGISTRY[name], np.float64(asked)),))
    results = {name: Bracket(np.array([9.0, lower]), np.array([9.0, upper]))}
    return share_places.place(question, results, 1)


def test_place_is_a_loss_of_removing_a_record():
    assert _place("delta", 2.0, "remove", 0.0, 1.0) == 2.0
    assert _place("delta", 2.0, "add_remove", 0.0, 1.0) == 2.0
    assert _place("epsilon", 1e-5, "remove", 3.0, 3.2) == 3.1
    # what is hardly known is no place, and the same one comes of brackets that differ by little
    assert _place("epsilon", 1e-5, "remove", 1.0, 3.0) is None
    assert _place("epsilon", 1e-5, "remove", 3.0, 3.0) == _place(
        "epsilon", 1e-5, "remove", 2.99, 3.01
    )
    # two numbers are read off at two places
    both = tuple((REGISTRY[name], np.float64(1e-5)) for name in ("epsilon", "delta"))
    assert not share_places.served(Question(1e-3, 1e-10, "remove", both))
    assert share_places.served(Question(1e-3, 1e-10, "remove", both[:1]))
    # losses of adding one are bounded: points elsewhere count
    assert _place("delta", 2.0, "add", 0.0, 1.0) is None
    # numbers that whole curves decide have none, nor has an ε to more digits than usual
    assert _place("mu", 1e-10, "remove", 1.0, 1.1) is None
    assert _place("epsilon", 1e-5, "remove", 3.0, 3.2, rtol=1e-5) is None
    assert _place("delta", 2.0, "remove", 0.0, 1.0, rtol=1e-5) == 2.0


def test_widths_ask_for_as_many_points_as_make_them_narrow():
    widths = Widths()
    widths.add(Points(0.25, 2), 40.0, Products(1e7, 1e7))
    found = widths.next(1e12)
    # nearly the square of the distance between points leaves what is asked, and two thirds as many
    # do not
    assert 40.0 / found.near**1.8 <= 0.8 < 40.0 / (found.near / 1.5) ** 1.8
    assert found == Points(1.5, 3)
    # four times as many products for twice as many points at the place
    assert widths.work(found) == pytest.approx(1e7 * (16.0 * 1.5**2 + found.near**2))
    # fewer where these are too many, none where no more are left
    fewer = widths.next(1e9)
    assert widths.work(fewer) <= 1e9 and fewer.near in (found.near / 1.5, found.near)
    assert widths.next(1e8) is None


@pytest.mark.parametrize(
    ("many", "points", "width", "products", "found"),
    [
        # between two powers of two only where that takes less than the larger one
        (False, Points(1.5, 3), 2.6, Products(3.6e8, 1e9), Points(1.5, 4)),
        (False, Points(1.0, 1), 1.2, Products(1e9, 1e6), Points(1.0, 2)),
        # as many elsewhere as take a tenth of all products, and no fewer than there were
        (False, Points(1.5, 3), 3.0, Products(3.6e8, 1e9), Points(2.0, 4)),
        (False, Points(1.5, 3), 3.0, Products(1.2e8, 1e9), Points(2.0, 4)),
        (False, Points(1.5, 3), 3.0, Products(1e6, 1e9), Points(8.0, 2)),
        # … or a quarter
        (True, Points(1.5, 3), 3.0, Products(3.6e8, 1e9), Points(2.0, 4)),
        (True, Points(1.5, 3), 3.0, Products(1.2e8, 1e9), Points(4.0, 3)),
    ],
)
def test_widths_ask_for_points_elsewhere_that_take_little(many, points, width, products, found):
    widths = Widths(many)
    widths.add(points, width, products)
    assert widths.next(1e12) == found
    # twice as many would take more than that, or are more than there may be
    elsewhere = products.usual * (found.finer / points.finer) ** 2
    about = products.finer * (found.near / points.near) ** 2
    assert found.finer == 8.0 or 4.0 * elsewhere > (0.25 if many else 0.1) * about


def test_widths_that_fall_slower_ask_for_more_points_there_and_elsewhere():
    fast, slow = Widths(), Widths()
    for widths, before in ((fast, 450.0), (slow, 64.0)):
        widths.add(Points(0.25, 2, 3), before, Products(1e7, 1e7))
        widths.add(Points(1.0, 3, 3), 9.0, Products(1e8, 6e8))
    # 8 times as many points left a fiftieth of the width, or a seventh
    assert fast.next(1e12, 3) == Points(2.0, 4, 3)
    assert slow.next(1e12, 3) == Points(8.0, 3, 3)
    # where nothing was seen there is nothing to compare with
    widths = Widths()
    widths.add(Points(0.25, 2), math.inf, Products(1e7, 1e7))
    assert widths.next(1e12) == Points(1.0, 3)
    widths.add(Points(1.0, 3), 9.0, Products(1e8, 6e8))
    assert widths.next(1e12) == Points(2.0, 4)


@pytest.mark.parametrize(
    ("sigma", "p", "steps", "epsilon", "adjacency"),
    [
        (0.28, 1.52e-9, 31750, 64.8, "remove"),  # δ of 3e-81, left .9 % wide by points alike
        (2.31, 6.86e-7, 643, 0.702, "remove"),  # of 7e-238
        (0.819, 2.48e-8, 2, 23.4, "remove"),  # of 3e-246
        (1.03, 3.01e-9, 9963601, 5.43, "add_remove"),  # of 6e-146
    ],
)
def test_small_deltas_of_records_seldom_sampled_are_as_accurate_as_asked(
    sigma, p, steps, epsilon, adjacency
):
    run = jaxgdp.dpsgd(sigma, p, steps)
    asked = {"epsilon": epsilon, "adjacency": adjacency, "executor": "eager"}
    found = jaxgdp.measure(run, "delta", **asked)
    lower, upper = found["delta"]
    assert found.status["delta"] == 0
    assert 0.0 < lower <= upper <= (1.0 + 1e-3) * lower
    # one use shows no more than all of them, and is known in closed form
    one = jaxgdp.measure(jaxgdp.dpsgd(sigma, p, 1), "delta", **asked)["delta"]
    assert upper >= one[0]


@pytest.mark.parametrize(
    ("sigma", "p", "steps", "epsilon"),
    [
        # δ of 5e-30, and of 6e-33
        *first(1, [(0.327, 3.95e-6, 735936, 38.8), (0.184, 4.03e-5, 213747, 503.0)]),
        (1.94, 2.37e-5, 340646, 0.287),  # 4e-75, by one large step
    ],
)
def test_numbers_at_a_known_loss_of_many_steps_take_no_lattice(
    monkeypatch, sigma, p, steps, epsilon
):
    # (lattices took 1 to 7 s there, and left both wide)
    def refuse(self):
        raise AssertionError("a lattice")

    monkeypatch.setattr(Engine, "answer", refuse)
    run, asked = jaxgdp.dpsgd(sigma, p, steps), {"epsilon": epsilon, "adjacency": "remove"}
    lower, upper = jaxgdp.measure(run, "delta", executor="eager", **asked)["delta"]
    assert 0.0 < lower <= upper <= (1.0 + 1e-3) * lower


def test_numbers_at_a_loss_that_is_not_known_are_left_to_lattices():
    # (an ε whose curves are no narrower on twice as many points: a lattice does)
    run = jaxgdp.dpsgd(0.487, 0.000643, 12733)
    found = jaxgdp.measure(run, "epsilon", delta=2.42e-15, executor="eager")
    lower, upper = found["epsilon"]
    assert found.status["epsilon"] == 0 and upper <= (1.0 + 1e-3) * lower


@pytest.mark.parametrize(
    ("run", "loss"),
    [
        (Run(1.04, 1.72e-5, 280315), 9.45),  # one
        (Run(0.976, 4.62e-5, 1107273), 15.7),  # two
        (Run(0.765, 1.52e-4, 1203192), 41.1),  # six
        (Run(0.334, 7.11e-6, 84926), 178.0),  # seventeen
    ],
)
def test_large_steps_are_about_the_likeliest_number_of_them(run, loss):
    # (all other steps bring a sum to a loss of 0, about)
    def rarity(steps):
        """−log of the probability that so many of all steps each have their part of the loss."""
        log_v = mpmath.log(mpmath.expm1(mpmath.mpf(loss) / steps)) - run.log_odds
        tail = mpmath.erfc((log_v * run.sigma + 0.5 / run.sigma) / mpmath.sqrt(2)) / 2
        return -mpmath.log(mpmath.binomial(run.steps, steps)) - steps * mpmath.log(tail)

    each = {steps: rarity(steps) for steps in range(1, 40)}
    found = LargeSteps.of(run, loss)
    best = min(each, key=each.get)
    assert each[found.number] <= 1.05 * each[best]
    assert best / 1.5 <= found.number <= 1.5 * best
    # with the record, an outcome is e^loss times as likely as without
    assert found.log_delta == pytest.approx(float(loss - each[best]), rel=0.1)
