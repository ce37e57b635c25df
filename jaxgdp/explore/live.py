"""A server on this machine that answers for every position of the sliders."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np
from scipy import special

from ..report import report
from ..report.strength import graded
from ..run_settings import Run, run
from ..tradeoff import tradeoff
from .grid import rounded_up
from .page import page

_HOST = "127.0.0.1"  # nobody else can ask
_POINTS = 65  # of the curve


def answer(query: dict[str, list[str]]) -> dict[str, Any]:
    """Certified numbers of one run, ready for JSON; upper sides, rounded up to four digits.

    Args:
        query: "sigma", "n", "b", "epochs" and "delta", as typed.
    """
    given = {name: float(values[0]) for name, values in query.items()}
    mine = run(given["sigma"], int(given["n"]), int(given["b"]), num_epochs=given["epochs"])
    found = report(mine, delta=given["delta"], rtol=1e-2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # (the statement says so itself)
        statement = found.statement()
    poisson = {"mu": found.mu, "advantage": found.advantage, "epsilon": found["epsilon"]}
    other = next(iter(found.alternatives), None)
    return {
        "poisson": _upper(poisson) | {"curve": _curve(mine)},
        "shuffled": None
        if other is None
        else _upper({name: getattr(other, name) for name in poisson}),
        "word": graded(found).word,
        "statement": statement,
    }


def _upper(brackets: Mapping[str, Any]) -> dict[str, float | None]:
    """Upper sides, rounded up; None where there is no finite one."""
    return {name: rounded_up([bracket.upper])[0] for name, bracket in brackets.items()}


def _curve(mine: Run) -> list[dict[str, float]]:
    """Both sides of the FNR, at FPRs that look evenly spaced on both ends."""
    fprs = special.ndtr(np.linspace(-4.0, 4.0, _POINTS))
    fnr = tradeoff(mine.mechanism, rtol=1e-2).beta(fprs)
    inner = [
        {"fpr": float(x), "low": float(low), "high": float(high)}
        for x, low, high in zip(fprs, fnr.lower, fnr.upper, strict=True)
    ]
    return [
        {"fpr": 0.0, "low": inner[0]["low"], "high": 1.0},
        *inner,
        {"fpr": 1.0, "low": 0.0, "high": 0.0},
    ]


def server(port: int = 0) -> ThreadingHTTPServer:
    """A server of the page and of its numbers, on a free port unless one is named.

    Raises:
        OSError: the port is taken.
    """
    text = page(None).encode()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            place = urlsplit(self.path)
            if place.path == "/measure":
                try:
                    found = answer(parse_qs(place.query))
                except (ValueError, KeyError) as error:
                    found = {"error": str(error)}
                self._send(json.dumps(found).encode(), "application/json")
            elif place.path == "/":
                self._send(text, "text/html; charset=utf-8")
            else:
                self.send_error(404)

        def _send(self, body: bytes, kind: str) -> None:
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing is logged."""

    return ThreadingHTTPServer((_HOST, port), Handler)
