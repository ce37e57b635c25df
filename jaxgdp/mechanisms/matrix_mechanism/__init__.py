"""Matrix mechanisms: noise that is correlated over the steps of a run."""

from .mechanism import MatrixMechanism

__all__ = ["MatrixMechanism"]
