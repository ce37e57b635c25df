"""A certificate holds what it says, or is refused."""

import json

import pytest

pytest.importorskip("flint")
import jaxgdp
from jaxgdp.proof import RefusedCertificate, check
from jaxgdp.proof.certificate import digest


@pytest.fixture(scope="module")
def text():
    run = jaxgdp.dpsgd(1.2, 0.4, 3)
    found = jaxgdp.prove(run, "epsilon", (2.0, 4.5), delta=1e-4)
    assert found.verdict == "proven"
    return found.to_json()


@pytest.fixture
def content(text):
    return json.loads(text)


def test_certificate_computes_again(content):
    found = check(content)
    assert found.verdict == "proven"
    assert found.to_dict() == content
    assert content["claim"]["asked"] == {"delta": 1e-4}
    assert {"python-flint", "flint", "jaxgdp"} <= set(content["versions"])
    assert content["effort"]["bits"] > 64


CHANGES = {
    "mechanism": lambda c: c["claim"]["mechanism"][0].update(noise_multiplier=1.3),
    "count": lambda c: c["claim"]["mechanism"][0].update(count=2),
    "delta": lambda c: c["claim"]["asked"].update(delta=1e-3),
    "quantity": lambda c: c["claim"].update(quantity="delta", asked={"epsilon": 1.0}),
    "adjacency": lambda c: c["claim"].update(adjacency="add"),
    "claim": lambda c: c["claim"].update(upper=2.25),
    "verdict": lambda c: c.update(verdict="refuted", side="upper"),
    "bracket": lambda c: c["bracket"].update(upper=c["bracket"]["lower"]),
    "excess": lambda c: c.update(excess=1.0),
    "excess that is no number": lambda c: c.update(excess="nan"),
    "side": lambda c: c.update(side="lower"),
    "reason": lambda c: c.update(reason="the time was spent before a finer look was done"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_tampered_certificate_is_refused(name, content):
    CHANGES[name](content)
    with pytest.raises(RefusedCertificate, match="digest"):
        check(content)


@pytest.mark.parametrize("name", CHANGES)
def test_new_digest_does_not_help(name, content):
    CHANGES[name](content)
    content["digest"] = digest(content)
    with pytest.raises(RefusedCertificate, match="computed again"):
        check(content)


@pytest.mark.parametrize(
    "content, message",
    [
        ([], "no certificate"),
        ({"certificate": "something else"}, "no certificate"),
        ({"certificate": "jaxgdp proof", "format": 7}, "format must be 1, got 7"),
    ],
)
def test_other_content_is_refused_by_name(content, message):
    with pytest.raises(RefusedCertificate, match=message):
        check(content)


@pytest.mark.parametrize("key", ("claim", "effort", "verdict", "bracket"))
def test_certificate_that_lacks_something_is_refused(key, content):
    del content[key]
    content["digest"] = digest(content)
    with pytest.raises(RefusedCertificate, match="malformed"):
        check(content)
