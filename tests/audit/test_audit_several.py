"""Several claims at once: no true claim is refuted oftener than the level allows, in any of
them."""

import itertools
import json
from typing import Any, NamedTuple

import numpy as np
import pytest

import jaxgdp
from jaxgdp import audit


def draws(mu, number, seed):
    z = np.random.default_rng([5, seed]).standard_normal((2, number))
    return z[0] + mu, z[1]


def test_adjusted_wealths_are_closed_testing():
    """Against all subsets, by enumeration."""
    audits = {
        f"{mu}": audit.Sequential(mu).update(*draws(1.5, 60, 0)) for mu in (0.3, 0.6, 1.0, 1.4, 3.0)
    }
    found = audit.simultaneous(audits, 0.8)
    wealth = {name: float(a.wealth) for name, a in audits.items()}
    for name in audits:
        means = [
            np.mean([wealth[x] for x in chosen])
            for k in range(1, 6)
            for chosen in itertools.combinations(wealth, k)
            if name in chosen
        ]
        assert found.verdicts[name] == pytest.approx(min(means), rel=1e-9)
        assert found.refuted[name] == (min(means) >= 5.0)
    assert found.refuted["0.3"] and not found.refuted["3.0"]
    assert "corrected: averages of wealths" in str(found)
    assert audit.averaged(list(audits.values())[:1]) == pytest.approx(wealth["0.3"])
    with pytest.raises(ValueError, match="audits must be of one claim, got 0.3-GDP, 0.6-GDP"):
        audit.averaged(list(audits.values())[:2])
    for bad in ({}, []):
        with pytest.raises(ValueError, match="must hold at least one"):
            audit.simultaneous(bad)


class Finished(NamedTuple):
    """An audit whose wealth is known: under a true claim 20 with probability 1/20, else 0."""

    wealth: float
    text: str = "a claim"
    confidence: float = 0.95


def test_several_true_claims_are_refuted_no_oftener_than_the_level_allows():
    """However wealths depend on each other; each one for itself refutes far too often."""
    rng = np.random.default_rng(2)
    common, one, any_ = [], [], []
    for i in range(2000):
        drawn = rng.random() if i % 2 else rng.random(10)  # all alike, or independent
        wealth = 20.0 * (np.broadcast_to(drawn, 10) < 0.05)
        audits: Any = [Finished(float(w)) for w in wealth]
        common.append(audit.averaged(audits) * (1 + 2e-12) >= 20.0)
        any_.append(any(audit.simultaneous(audits, 0.95).refuted.values()))
        one.append(bool(np.any(wealth >= 20.0)))
    most = 0.05 + 4.0 * np.sqrt(0.05 * 0.95 / 2000)
    assert np.mean(common) <= most and np.mean(any_) <= most and np.mean(one) > 2.0 * most


def test_fixed_sequence_stops_at_the_first_claim_that_stands():
    scores = draws(2.0, 500, 1)
    found = audit.fixed_sequence([(1.0, *scores), (3.0, *scores), (0.5, *scores)])
    assert list(found.refuted.values()) == [True, False, False]
    assert found.verdicts["3"] is None and "not tested" in str(found)
    assert "corrected: fixed sequence; all verdicts together 95 %" in str(found)


def test_fixed_sequence_of_true_claims_keeps_its_level():
    """Twenty attacks on a true claim: uncorrected ones refute it too often, a sequence does not."""
    claim = audit.as_claim(0.5).tabulated()
    families = []
    for i in range(60):
        scores = [draws(0.5, 60, 1000 * i + j) for j in range(20)]
        families.append([(claim, *s) for s in scores])
    options = {"confidence": 0.5, "method": "threshold"}
    wrong = [any(audit.fixed_sequence(f, **options).refuted.values()) for f in families]
    assert np.mean(wrong) <= 0.5
    uncorrected = [any(audit.verdict(*e, **options).refuted for e in f) for f in families]
    assert np.mean(uncorrected) > 0.7


def test_claim_of_infinite_mu_is_answered_in_every_format():
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    claim = jaxgdp.FromPMFs([1.0, 1e-300], [0.0, 1.0])
    scores = draws(100.0, 100, 0)
    found = audit.verdict(claim, *scores)
    data = json.loads(found.to_json())
    assert data["mu_claimed"] == {"lower": "inf", "upper": "inf"} and data["refuted"] is False
    assert "the claim has no finite mu at its FPR floor" in str(found)
    jaxgdp.plot.audit_verdict(found, Figure().add_subplot())
    run = audit.one_run_verdict(claim, scores[0], np.arange(100) % 2, 10)
    assert json.loads(run.to_json())["mu_claimed"]["upper"] == "inf"
    assert not audit.Sequential(claim).update(*scores).refuted
