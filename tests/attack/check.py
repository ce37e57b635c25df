"""Compare the brackets of one setting with its exact curve."""

from __future__ import annotations

import dataclasses

import jax
import mpmath
import numpy as np
from mpmath import mpf

from jaxgdp.accounting.run import engine, lower_bound_member, routes
from jaxgdp.accounting.run.nested import narrowed
from jaxgdp.bracket import Bracket
from jaxgdp.mechanisms import as_composition
from jaxgdp.quantities import registry
from jaxgdp.quantities.base import Quantity
from jaxgdp.tradeoff import dominating

LARGEST_LATTICE = 2**13  # a bracket has to hold on any lattice, and the small ones are quick
ROUNDING = mpf("1e-15")  # the last digit of a double is not what is looked for


def brackets_of(setting) -> dict[str, Bracket]:
    """Brackets of a setting on small lattices, as ``measure`` puts them together."""
    records = registry.select(setting.quantities)
    paired, order = dominating(as_composition(setting.mechanism), setting.adjacency)
    at = {record.name: setting.at.get(record.own_argument, record.default) for record in records}
    depths = [record.rate(at[record.name]) for record in records if record.rate is not None]
    question = engine.Question(
        rtol=setting.at["rtol"],
        fpr_floor=setting.at["fpr_floor"],
        adjacency=order,
        asked=tuple(
            (record, None if record.own_argument is None else at[record.name]) for record in records
        ),
        deepest=min(depths) if depths else None,
    )

    def stacked(mechanism):
        return jax.tree.map(lambda leaf: np.asarray(leaf)[None], mechanism.stacked())

    found = routes.answer(stacked(paired), question, max_size=LARGEST_LATTICE).results
    monotone = tuple(entry for entry in question.asked if entry[0].monotone)
    for member in paired.lower_bound_mechanisms() if monotone else ():
        seen = lower_bound_member.answer(
            stacked(member), dataclasses.replace(question, asked=monotone)
        ).results
        found = found | {
            record.name: narrowed(record, found[record.name], seen[record.name])
            for record, _ in monotone
        }
    return {
        record.name: record.settle(Bracket(*(side[0] for side in found[record.name])))[0]
        for record in records
    }


def failures(setting) -> list[str]:
    """What of a setting does not hold, one line each; empty if all holds."""
    with np.errstate(all="ignore"):
        found = brackets_of(setting)
    curves = setting.curve if isinstance(setting.curve, tuple) else (setting.curve, setting.curve)
    with mpmath.workdps(setting.digits):
        wrong = (
            _wrong(setting, record, found[record.name], curves)
            for record in registry.select(setting.quantities)
        )
        return [line for line in wrong if line]


def _wrong(setting, record: Quantity, bracket: Bracket, curves) -> str:
    """What is wrong with one bracket; empty if nothing is."""
    lower, upper = float(bracket.lower), float(bracket.upper)
    at = "" if record.argument is None else f" at {record.argument}={setting.at[record.argument]!r}"
    place = f"{record.name}{at}: [{lower!r}, {upper!r}]"
    if np.isnan(lower) or np.isnan(upper):
        return f"{place} (nan side)"
    if not all(hasattr(curve, record.name) for curve in curves):
        # (no exact answer is known: the bracket lies at least where the quantity does)
        least, largest = record.extent
        return "" if least <= lower <= upper <= largest else f"{place} (outside of its extent)"
    argument = [] if record.argument is None else [setting.at[record.argument]]
    exact = [getattr(curve, record.name)(*argument) for curve in curves]
    if any(value is None for value in exact):
        return ""
    # what is certain of the truth
    least, most = exact if record.grows else exact[::-1]
    room = mpf(setting.accuracy) + ROUNDING
    # (rates are sums and differences of numbers of order one)
    last = mpf(10) ** (10 - setting.digits)
    sides = []
    if not lower <= most * (1 + room) + last:
        sides.append("lower")
    if not upper >= least * (1 - room) - last:
        sides.append("upper")
    if not sides:
        return ""
    truth = mpmath.nstr(least, 20)
    if most is not least:
        truth += f" .. {mpmath.nstr(most, 20)}"
    return f"{place} but {truth} ({', '.join(sides)} side)"
