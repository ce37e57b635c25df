"""Table 1 of Liu 2022: ε of the 50-fold composition of 0.2-DP at four δ, by seven routes."""

from __future__ import annotations

import math

from ... import gdp
from ...bracket import Bracket
from ...bridge import identify
from ..published import read
from ..result import Number, Result, Table
from . import composition

ROUTES = ("basic", "advanced", "rdp", "gdp", "laplace", "optimal", "summary")
_ROOM = 1e-12
# of the grid of ε that three of the four printed numbers of the optimal composition lie on
_STEP = 0.04


def basic(epsilon: float, uses: int, delta: float) -> float:
    """The smallest ε that kε-DP implies at δ: log(e^{kε} − δ(1 + e^{kε})) (Theorem 2.1)."""
    whole = uses * epsilon
    return whole + math.log1p(-delta * (1.0 + math.exp(-whole)))


def advanced(epsilon: float, uses: int, delta: float) -> float:
    """ε√(2k·log(1/δ)) + kε(e^ε − 1) (Dwork, Rothblum & Vadhan 2010)."""
    return epsilon * math.sqrt(2.0 * uses * math.log(1.0 / delta)) + uses * epsilon * math.expm1(
        epsilon
    )


def rdp(epsilon: float, uses: int, delta: float) -> float:
    """4ε√(2k·log(1/δ)) (Mironov 2017, Corollary 1, the first term)."""
    return 4.0 * epsilon * math.sqrt(2.0 * uses * math.log(1.0 / delta))


_FORMULAS = {"basic": basic, "advanced": advanced, "rdp": rdp}


def table_1(quick: bool) -> Result:
    """Seven routes at four δ."""
    epsilon, uses = composition.setting()
    deltas = [float(d) for d in read("liu2022")["composition"]["delta"]]
    exact = composition.curve(quick)
    whole = identify(exact).head_mu
    parts = composition.by_parts()
    point = lambda x: Bracket(x * (1.0 - _ROOM), x * (1.0 + _ROOM))
    answers, body = {}, []
    for route in ROUTES:
        row = [route]
        for delta in deltas:
            if route in _FORMULAS:
                found = point(_FORMULAS[route](epsilon, uses, delta))
            elif route == "optimal":
                found = Bracket(*(float(side) for side in exact.epsilon(delta)))
            elif route == "summary":
                found = Bracket(*(float(gdp.epsilon(delta=delta, mu=side)) for side in whole))
            else:
                found = point(float(gdp.epsilon(delta=delta, mu=parts[route == "laplace"])))
            others = ()
            if route == "optimal":
                shown = math.ceil(float(found.upper) / _STEP) * _STEP
                others = ((f"rounded up to a multiple of {_STEP:g}", point(shown)),)
            answers[f"table-1-{route}-{delta:g}"] = Number(found, others)
            row.append(f"[{found.lower:.6f}, {found.upper:.6f}]")
        body.append(tuple(row))
    header = ("route", *(f"delta = {d:g}" for d in deltas))
    return Result(answers, tables={"table-1": Table(header, tuple(body))})
