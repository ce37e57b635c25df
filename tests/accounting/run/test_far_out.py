"""δ and FNR far below the rounding of one meet the requested accuracy, too, in few passes.

The origin of the odd settings of this file was not recorded; they look like draws of a random
search, rounded to a few digits. The comments beside them give the size of the number, and the way
there.
"""

import pytest

import jaxgdp
from jaxgdp.bracket import LEAST

# σ, p, T, quantity, its argument
SETTINGS = [
    (
        2.118,
        0.01169,
        1037,
        "delta",
        {"epsilon": 4.03},
    ),  # one large step is the likeliest way: 1.8e-59
    (2.56, 0.01345, 263, "delta", {"epsilon": 7.44}),  # two of them: 6.9e-177
    (14.496, 0.02564, 19043, "delta", {"epsilon": 4.731}),  # many small ones: 6e-84
    (2.4, 0.8459, 6016, "beta", {"fpr": 8.8e-5}),  # 3.6e-123
    (1.871, 0.9011, 3980, "beta", {"fpr": 2.26e-5}),  # 1.8e-152
]


@pytest.mark.parametrize("sigma, p, uses, name, at", SETTINGS)
def test_tiny_numbers_are_as_accurate_as_asked(sigma, p, uses, name, at):
    found = jaxgdp.measure(jaxgdp.dpsgd(sigma, p, uses), name, rtol=1e-3, **at)
    bracket = found.brackets[name]
    assert found.status[name] == 0
    assert 0.0 < bracket.lower <= bracket.upper <= bracket.lower * 1.00101


def test_coarser_and_finer_passes_at_a_tiny_delta_agree():
    """Other accuracies get other lattices and other tilts: nothing but the truth is common to
    them.
    """
    setting, narrow = jaxgdp.dpsgd(1.207, 0.001013, 707), []
    for rtol in (0.1, 1e-2, 1e-3, 1e-4):
        bracket = jaxgdp.measure(setting, "delta", epsilon=2.44, rtol=rtol, nested=False).brackets[
            "delta"
        ]
        narrow.append((float(bracket.lower), float(bracket.upper)))
    assert max(low for low, _ in narrow) <= min(high for _, high in narrow) <= 1e-27


@pytest.mark.nightly
@pytest.mark.parametrize(
    "sigma, p, uses, epsilon",
    [(0.5314, 0.002247, 6429, 4.54), (0.555, 0.00415, 1272, 4.47), (0.5051, 0.000907, 16874, 4.48)],
)
def test_little_noise_at_five_digits(sigma, p, uses, epsilon):
    found = jaxgdp.measure(jaxgdp.dpsgd(sigma, p, uses), "delta", epsilon=epsilon, rtol=1e-5)
    coarse = jaxgdp.measure(
        jaxgdp.dpsgd(sigma, p, uses), "delta", epsilon=epsilon, rtol=1e-3, nested=False
    )
    bracket, around = found.brackets["delta"], coarse.brackets["delta"]
    assert found.status["delta"] == 0 and bracket.upper <= bracket.lower * 1.0000101
    assert around.lower <= bracket.upper and bracket.lower <= around.upper


@pytest.mark.parametrize("rtol", [1e-3, pytest.param(1e-5, marks=pytest.mark.nightly)])
def test_one_order_far_out_beside_one_that_ends_early(rtol):
    """δ of removing a record where that of adding ends at 1e-6 nats: each is planned as deep as it
    needs alone."""
    found = jaxgdp.measure(
        jaxgdp.dpsgd(0.0947, 5.37e-7, 2), "delta", epsilon=321.76, rtol=rtol, executor="eager"
    )
    assert found.status["delta"] == 0
    alone = jaxgdp.measure(
        jaxgdp.dpsgd(0.0947, 5.37e-7, 2), "delta", epsilon=321.76, adjacency="remove"
    )
    assert alone.delta.lower <= found.delta.upper and found.delta.lower <= alone.delta.upper


@pytest.mark.parametrize(
    ("run", "epsilon"),
    [
        (jaxgdp.dpsgd(3.0, 1e-9, 10**9), 0.3),  # up to 2e-20 where both orders went one way
        (jaxgdp.dpsgd(2.0, 1e-8, 10**8), 0.35),
        (jaxgdp.dpsgd(5.0, 1e-6, 10**5), 0.05),
    ],
)
def test_both_orders_show_as_much_as_the_one_of_which_anything_is_left(run, epsilon):
    found = {
        adjacency: jaxgdp.measure(run, "delta", epsilon=epsilon, adjacency=adjacency)
        for adjacency in ("add_remove", "add", "remove")
    }
    both, *each = (one["delta"] for one in found.values())
    assert found["add_remove"].status["delta"] == 0
    assert max(one.lower for one in each) * (1.0 - 1e-3) <= both.upper
    assert both.upper <= max(LEAST, *(one.upper * (1.0 + 1e-3) for one in each))
    assert both.lower >= max(one.lower * (1.0 - 1e-3) for one in each)
