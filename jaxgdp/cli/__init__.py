"""The command line; ``jaxgdp --help`` shows an example for each command."""

from .app import app, main

__all__ = ["app", "main"]
