"""One use of a mixture of shifts in closed form, against 50 digits."""

import mpmath as mp
import numpy as np
import pytest

import jaxgdp
from tests.pairs.test_known_curves import normal, quantile


class Exact:
    """The mixture by definition: rates of half-lines, with the output of a ratio by Newton's
    method."""

    def __init__(self, sigma, shifts, weights):
        total = mp.fsum(mp.mpf(float(w)) for w in weights)
        self.rows = [
            (mp.mpf(float(c)) / mp.mpf(float(sigma)), mp.mpf(float(w)) / total)
            for c, w in zip(shifts, weights, strict=True)
            if w > 0.0
        ]
        self.rest = mp.fsum(w for t, w in self.rows if t == 0)

    def output(self, goal):
        """The output of this ratio: the log of what shifts add is convex and rises."""
        moved = [(t, w) for t, w in self.rows if t > 0]
        v = mp.log(goal - self.rest)
        z = min((v - mp.log(w)) / t + t / 2 for t, w in moved)
        for _ in range(80):
            parts = [w * mp.exp(t * z - t * t / 2 - v) for t, w in moved]
            total = mp.fsum(parts)
            step = (
                mp.log(total)
                * total
                / mp.fsum(t * p for (t, _), p in zip(moved, parts, strict=True))
            )
            z -= step
            if abs(step) < mp.mpf(10) ** -45 * (1 + abs(z)):
                return z
        raise AssertionError("no root")

    def absent(self, z):
        return normal(-z)

    def present(self, z):
        return mp.fsum(w * normal(t - z) for t, w in self.rows)

    def missed(self, z):
        return mp.fsum(w * normal(z - t) for t, w in self.rows)

    def delta(self, order, epsilon):
        e = mp.exp(mp.mpf(epsilon))
        if order == "remove":
            z = self.output(e)
            return self.present(z) - e * self.absent(z)
        if 1 / e <= self.rest * (1 + mp.mpf(10) ** -40):
            return mp.mpf(0)
        z = self.output(1 / e)
        return normal(z) - e * self.missed(z)

    def worst(self, adjacency, epsilon):
        orders = ("remove", "add") if adjacency == "add_remove" else (adjacency,)
        return max(self.delta(order, epsilon) for order in orders)

    def beta_removed(self, rate):
        return self.missed(-quantile(mp.mpf(rate)))


SETTINGS = {  # σ, shifts, weights
    "a user's records": (1.0, [0.0, 1.0, 2.0, 3.0], [0.729, 0.243, 0.027, 0.001]),
    "always moved": (2.0, [1.0, 3.0], [0.5, 0.5]),
    "tiny weights": (0.5, [0.0, 1.0, 5.0], [1.0 - 2e-13, 2e-13, 1e-300]),
    "little is left": (1.5, [0.0, 0.3, 4.0], [1e-20, 0.75, 0.25]),
    "little noise": (1e-3, [0.0, 1.0, 7.0], [0.5, 0.3, 0.2]),
    "much noise": (1e6, [0.0, 1e-3, 1e3], [0.2, 0.5, 0.3]),
}


@pytest.mark.parametrize(
    ("name", "adjacency"),
    [(name, order) for name in SETTINGS for order in ("remove", "add")]
    + [(name, "add_remove") for name in ("always moved", "little is left")],
)
def test_mixtures_hold_the_truth(name, adjacency):
    sigma, shifts, weights = SETTINGS[name]
    mechanism = jaxgdp.GaussianMixture(sigma, shifts, weights)
    with mp.workdps(60):
        exact = Exact(sigma, shifts, weights)
        whole = exact.delta("remove", 0)
        asked = {
            "epsilon": 0.7 * float(min(mp.log1p(whole), 1)),
            "delta": 0.3 * float(whole),
            "fpr": 1e-4,
        }
        names = ("delta", "epsilon", "advantage", "beta")
        found = jaxgdp.measure(mechanism, names, adjacency=adjacency, **asked)
        assert found.lattice_size == 0
        rtol = 1e-7 if sigma < 1e-2 else 1e-10
        for name, truth in (
            ("delta", exact.worst(adjacency, asked["epsilon"])),
            ("advantage", whole),
        ):
            low, high = found[name]
            assert low <= truth <= high and high - low <= rtol * high
        # (what is found by a search is tried on either side of it)
        low, high = found.epsilon
        assert exact.worst(adjacency, high) <= asked["delta"] and high - low <= rtol * high
        assert low == 0.0 or exact.worst(adjacency, low) >= asked["delta"]
        low, high = found.beta
        if adjacency == "add":
            assert exact.beta_removed(low) >= asked["fpr"] >= exact.beta_removed(high)
        else:
            middle = exact.output(mp.mpf(1))
            alpha, beta = exact.absent(middle), exact.missed(middle)
            fpr = mp.mpf(asked["fpr"])
            bent = adjacency == "add_remove" and alpha < fpr < beta
            if adjacency == "remove" or fpr <= alpha:
                assert low <= exact.beta_removed(fpr) <= high
            elif bent:
                assert low <= alpha + beta - fpr <= high
            else:
                assert exact.beta_removed(low) >= fpr >= exact.beta_removed(high)
        assert high - low <= 1e-9 * high + 1e-300


@pytest.mark.parametrize("floor", [1e-10, 1e-3])
def test_mu_of_a_mixture_is_at_the_least_rate(floor):
    for name in ("a user's records", "always moved", "much noise"):
        sigma, shifts, weights = SETTINGS[name]
        mechanism = jaxgdp.GaussianMixture(sigma, shifts, weights)
        low, high = jaxgdp.mu(mechanism, fpr_floor=floor)
        with mp.workdps(60):
            exact = Exact(sigma, shifts, weights)
            beta = exact.beta_removed(floor)
            assert beta >= floor
            truth = -quantile(beta) - quantile(mp.mpf(floor))
            assert low <= truth <= high and high - low <= 1e-10 * high
            # (at no other rate is it larger)
            for rate in np.geomspace(floor, 0.4, 6):
                assert -quantile(exact.beta_removed(rate)) - quantile(mp.mpf(rate)) <= high


def test_mixtures_of_a_batch_are_read_as_alone():
    weights = np.array([[0.9, 0.1], [0.5, 0.5], [0.0, 1.0]])
    batch = jaxgdp.GaussianMixture([0.5, 1.0, 2.0], [0.0, 1.0], weights)
    together = jaxgdp.measure(batch, ("epsilon", "tpr"), delta=1e-6, fpr=0.01)
    for i, sigma in enumerate((0.5, 1.0, 2.0)):
        one = jaxgdp.measure(
            jaxgdp.GaussianMixture(sigma, [0.0, 1.0], weights[i]),
            ("epsilon", "tpr"), delta=1e-6, fpr=0.01,
        )  # fmt: skip
        for name in ("epsilon", "tpr"):
            assert one[name].lower <= together[name].upper[i]
            assert together[name].lower[i] <= one[name].upper
