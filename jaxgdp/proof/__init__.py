"""Proofs of published numbers, in exact integers and ball arithmetic (``python-flint``).

This room shares nothing with what finds brackets: it reads the fields of mechanisms, and imports
neither ``accounting`` nor ``quantities`` nor ``pairs`` nor ``numerics``. A test enforces that."""

from .checking import RefusedCertificate, check
from .claims import ARGUMENTS, Claim
from .describe import provable
from .prove import Proof, prove

__all__ = ["ARGUMENTS", "Claim", "Proof", "RefusedCertificate", "check", "provable", "prove"]
