"""A server on this machine that answers for every position of the sliders."""

from __future__ import annotations

import json
import warnings
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from ..report import report
from ..run_settings import run
from .page import page

_HOST = "127.0.0.1"  # nobody else can ask


def answer(query: dict[str, list[str]]) -> dict[str, Any]:
    """Certified numbers of one run.

    Args:
        query: "sigma", "n", "b", "epochs" and "delta", as typed.
    """
    given = {name: float(values[0]) for name, values in query.items()}
    mine = run(given["sigma"], int(given["n"]), int(given["b"]), num_epochs=given["epochs"])
    found = report(mine, delta=given["delta"], rtol=1e-2)
    epsilon: Any = found["epsilon"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # (the statement says so itself)
        statement = found.statement()
    shuffled = next((other.epsilon.upper for other in found.alternatives), None)
    return {
        "mu": float(found.mu.upper),
        "advantage": float(found.advantage.upper),
        "epsilon": float(epsilon.upper),
        "shuffled": None if shuffled is None else float(shuffled),
        "statement": statement,
    }


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
