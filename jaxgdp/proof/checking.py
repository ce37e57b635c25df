"""Certificates, read and computed again."""

from __future__ import annotations

from typing import Any

from .. import spec
from ..bracket import Bracket
from .certificate import DIGEST, FORMAT, KIND, digest
from .claims import Claim, claim
from .prove import VERDICTS, Effort, Proof, again


class RefusedCertificate(ValueError):
    """A certificate that does not hold what it says; names what is wrong."""


def read(content: Any) -> Proof:
    """The proof that a certificate tells of.

    Raises:
        RefusedCertificate: it is none, or was changed after it was made; says where.
    """
    if not isinstance(content, dict) or content.get("certificate") != KIND:
        raise RefusedCertificate(f"this is no certificate: its key 'certificate' must be {KIND!r}")
    if content.get("format") != FORMAT:
        raise RefusedCertificate(f"format must be {FORMAT}, got {content.get('format')!r}")
    if content.get(DIGEST) != digest(content):
        raise RefusedCertificate(
            "the digest is not that of the certificate: it was changed after it was made"
        )
    try:
        given, bracket = content["claim"], content["bracket"]
        sides = float(given["lower"]), float(given["upper"])
        made: Claim = claim(given["quantity"], sides, given["adjacency"], given["asked"])
        if content["verdict"] not in VERDICTS:
            raise ValueError(f"verdict must be one of {', '.join(VERDICTS)}")
        return Proof(
            content["verdict"],
            Bracket(float(bracket["lower"]), float(bracket["upper"])),
            made,
            content["side"],
            float(content["excess"]),
            content["reason"],
            given["mechanism"],
            Effort(**content["effort"]),
            content["versions"],
        )
    except (KeyError, TypeError, ValueError) as error:
        raise RefusedCertificate(f"the certificate is malformed: {error}") from None


def check(content: Any) -> Proof:
    """Compute a certificate again, from its mechanism and claim alone, as finely as it says.

    Args:
        content: a certificate, as read from JSON.

    Returns:
        The proof as computed now.

    Raises:
        RefusedCertificate: it was changed after it was made, or what is computed now does not bear
            it out; says what.
        ImportError: python-flint is not installed.

    Method: docs/method/proof.md#certificates
    """
    stored = read(content)
    mechanism = spec.from_dict({"mechanism": stored.mechanism}, "certificate").mechanism
    fresh = again(stored, mechanism)
    says, found = (" ".join(filter(None, (p.verdict, p.side))) for p in (stored, fresh))
    if found != says:
        raise RefusedCertificate(f"the certificate says {says}, computed again it is {found}")
    if stored.verdict != "undecided" and stored.reason != "":
        raise RefusedCertificate(
            f"the certificate has a reason why nothing was decided, computed again it is {found}"
        )
    low, high = stored.bracket
    if not (low <= fresh.bracket.lower and fresh.bracket.upper <= high):
        raise RefusedCertificate(
            f"the certificate's bracket [{low!r}, {high!r}] does not hold the one computed again,"
            f" [{fresh.bracket.lower!r}, {fresh.bracket.upper!r}]"
        )
    if not stored.excess <= fresh.excess:
        raise RefusedCertificate(
            f"the certificate's excess is {stored.excess!r}, computed again it is {fresh.excess!r}"
        )
    return fresh
