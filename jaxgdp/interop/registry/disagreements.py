"""Numbers of an entry that contradict each other by arithmetic, each allowed its rounding."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ... import gdp
from ...conversions import epsilon_from_zcdp, simple_epsilon_from_zcdp
from .claims import Part, Printed, StatedGuarantee

_ADDITIVE = {"epsilon": "ε", "rho": "ρ"}  # parameters of parts that add up to those of the whole
_FACTOR = re.compile(r"\bfactor (?:of )?(\d+)\b")


def _of_variant(variant: str | None, claims: list[StatedGuarantee]) -> Iterator[str]:
    stated = next((claim for claim in claims if claim.epsilon is not None), None)
    delta = None if stated is None else stated.delta
    if variant == "Pure DP" and delta is not None and delta.value > 0.0:
        yield f"the variant is pure DP, which has δ = 0, but δ = {delta.value:g} is stated"
    if variant == "Approximate DP" and stated is not None and delta is None:
        yield "the variant is approximate DP, but no number is stated for δ"
    if variant == "Zero-concentrated DP" and claims and all(claim.rho is None for claim in claims):
        yield "the variant is zero-concentrated DP, but no ρ is stated"


def _whole(claims: list[StatedGuarantee], name: str) -> Printed | None:
    return next(
        (getattr(claim, name) for claim in claims if getattr(claim, name) is not None), None
    )


def _sums(source: str, parts: list[Part], claims: list[StatedGuarantee]) -> Iterator[str]:
    """Parts of a list against what they are parts of."""
    groups: dict[int | None, list[Part]] = {}
    for part in parts:
        if part.listed:
            groups.setdefault(part.parent, []).append(part)
    for parent, members in groups.items():
        for name, letter in _ADDITIVE.items():
            numbers = [
                getattr(member.claim, name)
                for member in members
                if getattr(member.claim, name) is not None
            ]
            above = getattr(parts[parent].claim, name) if parent is not None else None
            whole = above or (
                _whole(claims, name) if all(member.depth <= 1 for member in members) else None
            )
            if len(numbers) < 2 or whole is None:
                continue
            factor = next(
                (int(found[1]) for part in parts if (found := _FACTOR.search(part.text))), 1
            )
            total = sum(number.value for number in numbers)
            slack = sum(number.half for number in numbers)
            if whole.may_be(total, slack) or whole.may_be(factor * total, factor * slack):
                continue
            listed = " + ".join(f"{number.value:g}" for number in numbers)
            yield (
                f"{letter} = {whole.value:g} is stated for what adds up to {listed} = {total:.6g}"
                f" ({source})"
            )


def _other_values(parts: list[Part], claims: list[StatedGuarantee]) -> Iterator[str]:
    """Other values of a parameter in the text about parameters, which are not parts of a whole."""
    for name, letter in _ADDITIVE.items():
        whole = _whole(claims, name)
        if whole is None:
            continue
        for part in parts:
            number = getattr(part.claim, name)
            if (
                number is not None
                and not part.listed
                and not number.may_be(whole.value, whole.half)
            ):
                told = (
                    f"{letter} = {whole.value:g} is stated, and in the text {letter} ="
                    f" {number.value:g}"
                )
                yield f"{told} (“{part.claim.label}”)"


def _between(function: Callable[[float], Any], low: float, high: float) -> tuple[float, float]:
    return float(function(max(low, 1e-12))), float(function(high))


def _conversions(claims: list[StatedGuarantee], mu: Printed | None) -> Iterator[str]:
    """ε printed beside ρ and δ, against both standard conversions."""
    for claim in claims:
        rho, epsilon, delta = claim.rho, claim.epsilon, claim.delta
        if rho is None or epsilon is None or delta is None:
            continue
        ends = rho.value - rho.half, rho.value + rho.half
        best = _between(lambda r, d=delta.value: epsilon_from_zcdp(delta=d, rho=r), *ends)
        simple = _between(lambda r, d=delta.value: simple_epsilon_from_zcdp(delta=d, rho=r), *ends)
        here = f"{claim.label}: " if claim.label else ""
        said = f"{here}ε = {epsilon.value:g} at δ = {delta.value:g} beside ρ = {rho.value:g}"
        inside = lambda sides, e=epsilon: sides[0] - e.half <= e.value <= sides[1] + e.half
        if inside(best):
            continue
        middle = float(epsilon_from_zcdp(delta=delta.value, rho=rho.value))
        gaussian = float(gdp.epsilon(delta=delta.value, mu=np.sqrt(2.0 * rho.value)))
        if inside(simple):
            yield (
                f"{said} is that of the simple conversion ρ + 2√(ρ·ln(1/δ)); the optimal one gives"
                f" {middle:.4g}"
            )
        elif epsilon.value < best[0]:
            told = (
                f"{said} does not follow from ρ-zCDP, which gives {middle:.4g} at best,"
                f" {gaussian:.4g} for a Gaussian"
            )
            if mu is not None:
                own = _between(
                    lambda m, d=delta.value: gdp.epsilon(delta=d, mu=m),
                    mu.value - mu.half,
                    mu.value + mu.half,
                )
                if inside(own):
                    told += (
                        f"; it is that of the μ = {mu.value:g} of the text, whose ρ would be μ²/2 ="
                        f" {0.5 * mu.value**2:.4g}"
                    )
            yield told
        else:
            yield f"{said} is more than ρ-zCDP implies: the optimal conversion gives {middle:.4g}"


def _scales(parts: list[Part]) -> Iterator[str]:
    """ε of Laplace noise against its sensitivity over its scale."""
    for part in parts:
        if part.scale is not None and part.claim.epsilon is not None:
            implied = part.scale[0] / part.scale[1]
            if not part.claim.epsilon.may_be(implied):
                yield (
                    f"ε = {part.claim.epsilon.value:g} is stated for noise of scale"
                    f" {part.scale[1]:g} and sensitivity {part.scale[0]:g}, whose ε is {implied:g}"
                )


def disagreements(
    variant: str | None, claims: list[StatedGuarantee], texts: dict[str, list[Part]]
) -> tuple[str, ...]:
    """Numbers that do not fit together, one sentence each.

    Args:
        variant: name of the DP variant, or None.
        claims: the structured ones.
        texts: parts of the entry's texts, by their keys.
    """
    details = texts.get("privacy_parameters_details", [])
    mu = next((part.claim.mu for part in details if part.claim.mu is not None), None)
    merged = (
        [claims[0]._replace(**{n: _whole(claims, n) for n in ("epsilon", "delta", "rho")})]
        if claims
        else []
    )
    found = [*_of_variant(variant, claims)]
    for source in ("privacy_parameters_details", "composition"):
        found += _sums(source, texts.get(source, []), claims)
    found += _other_values(details, claims)
    found += _conversions([*merged, *(part.claim for part in details)], mu)
    found += [line for parts in texts.values() for line in _scales(parts)]
    return tuple(dict.fromkeys(found))
