"""Proofs of published numbers, in exact integers and ball arithmetic (``python-flint``).

This room shares nothing with what finds brackets: it reads the fields of mechanisms, and imports
neither ``accounting`` nor ``quantities`` nor ``pairs`` nor ``numerics``. A test enforces that."""

from .checking import RefusedCertificate, check
from .claims import ARGUMENTS, Claim, claim
from .describe import provable
from .prove import Proof, prove, prove_all

__all__ = [
    "ARGUMENTS",
    "Claim",
    "Proof",
    "RefusedCertificate",
    "check",
    "claim",
    "provable",
    "prove",
    "prove_all",
]
