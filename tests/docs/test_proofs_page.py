"""docs/proofs.md is what the stored certificates say, they are sound, and every number that the
README prints is there or is named with the reason why not."""

import importlib.util
import re
import sys
from decimal import Decimal
from pathlib import Path

import pytest

pytest.importorskip("flint")
import jaxgdp
from jaxgdp.proof import RefusedCertificate, check
from jaxgdp.proof.certificate import digest

ROOT = Path(jaxgdp.__file__).parents[1]
DOCS = ROOT / "docs"
pytestmark = pytest.mark.skipif(
    not (DOCS / "proofs.md").exists(), reason="run without the documentation"
)
PARAMETERS = {"3410", "0.48236"}  # numbers of the README that are of a mechanism, not of a bracket


@pytest.fixture(scope="module")
def make():
    spec = importlib.util.spec_from_file_location("make_proofs", DOCS / "make_proofs.py")
    module = importlib.util.module_from_spec(spec)
    before = list(sys.path)
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path[:] = before
    return module


@pytest.fixture(scope="module")
def stored(make):
    return make.load()


def test_page_is_what_the_certificates_say(make, stored):
    page = (DOCS / "proofs.md").read_text(encoding="utf-8")
    assert make.page(stored) == page
    verdicts = [proof["verdict"] for each in stored.values() for proof in each["proofs"]]
    assert len(verdicts) > 250 and "refuted" not in verdicts
    assert verdicts.count("proven") >= 0.97 * len(verdicts)
    assert {each["group"] for each in stored.values()} == set(make.GROUPS)
    assert {f"Deployment `{name}`" for name in jaxgdp.deployments.names()} <= set(stored)


def test_certificates_of_the_page_have_their_digests(make, stored):
    for where, setting in stored.items():
        for proof in setting["proofs"]:
            whole = make.full(setting, proof)
            assert whole["digest"] == digest(whole), where
            low, high = (float(proof["bracket"][side]) for side in ("lower", "upper"))
            claimed = [float(proof["claim"][side]) for side in ("lower", "upper")]
            inside = claimed[0] <= low and high <= claimed[1]
            assert low <= high and inside == (proof["verdict"] == "proven"), where
            assert bool(proof["reason"]) == (proof["verdict"] == "undecided"), where


def test_certificates_of_the_page_can_be_computed_again(make, stored):
    """A few at once here; all of them by ``make proofs``."""
    few = [where for where in stored if where.startswith("Entry `google_mobility`")]
    assert len(few) >= 3
    for where in few:
        for proof in stored[where]["proofs"]:
            whole = make.full(stored[where], proof)
            assert check(whole).verdict == "proven", where
    whole["bracket"] = {"lower": whole["bracket"]["upper"], "upper": whole["bracket"]["upper"]}
    with pytest.raises(RefusedCertificate):
        check({**whole, "digest": digest(whole)})


def printed_by_the_readme() -> set[str]:
    """Decimals of the README, but for its code, its tables and what is behind them; and numbers
    that are called certified."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    before = text.split("| μ and Δ of 1536 settings")[0]
    found = set(re.findall(r"# (\d+): certified", before))
    for block in re.findall(r"```python\n.*?```", before, re.S):
        before = before.replace(block, "")
    before = re.sub(r"(?<!`)`[^`\n]+`(?!`)", "", before)
    lines = [line for line in before.splitlines() if not line.startswith((">>>", "..."))]
    return found | set(re.findall(r"(?<![\d.\w])\d+\.\d{2,}\b(?!\.)", "\n".join(lines)))


def test_numbers_of_the_readme_are_on_the_page_or_have_a_reason(make, stored):
    proofs = [p for each in stored.values() if each["group"] == "README" for p in each["proofs"]]
    proven = {d: p for p in proofs if p["verdict"] == "proven" for d in p["printed"]}
    numbers = printed_by_the_readme()
    assert len(numbers) >= 20
    assert numbers - set(proven) - set(make.ELSEWHERE) == set()
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert all(number in readme for number in {*proven, *make.ELSEWHERE})
    for number, proof in proven.items():
        if number not in PARAMETERS:
            unit = Decimal(1).scaleb(Decimal(number).as_tuple().exponent)
            low, high = (Decimal(str(proof["claim"][side])) for side in ("lower", "upper"))
            assert low - unit <= Decimal(number) <= high + unit, number
