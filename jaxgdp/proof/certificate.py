"""Certificates: a proof as JSON that anybody can compute again."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .prove import Proof

KIND = "jaxgdp proof"
FORMAT = 1
DIGEST = "digest"


def _plain(value: float) -> float | str:
    """Infinities as text, as JSON has none."""
    return value if math.isfinite(value) else str(value)


def _canonical(content: dict) -> bytes:
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def digest(content: dict) -> str:
    """SHA-256 of everything but the digest itself."""
    rest = {key: value for key, value in content.items() if key != DIGEST}
    return "sha256:" + hashlib.sha256(_canonical(rest)).hexdigest()


def certificate(proof: Proof) -> dict:
    """The certificate of a proof."""
    made = proof.claim
    asked = {} if made.asked is None else {made.asked: made.argument}
    content = {
        "certificate": KIND,
        "format": FORMAT,
        "claim": {
            "mechanism": proof.mechanism,
            "quantity": made.quantity,
            "asked": asked,
            "adjacency": made.adjacency,
            "lower": _plain(made.lower),
            "upper": _plain(made.upper),
        },
        "verdict": proof.verdict,
        "side": proof.side,
        "excess": _plain(proof.excess),
        "reason": proof.reason,
        "bracket": {"lower": _plain(proof.bracket.lower), "upper": _plain(proof.bracket.upper)},
        "effort": dataclasses.asdict(proof.effort),
        "versions": proof.versions,
    }
    return {**content, DIGEST: digest(content)}


def to_text(content: dict) -> str:
    """A certificate as strict JSON text."""
    return json.dumps(content, indent=2, allow_nan=False)
