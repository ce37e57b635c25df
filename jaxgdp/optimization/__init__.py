"""Optimisation through the accountant: schedules that serve a purpose best at one certified level
of privacy.
"""

from .optimize import Optimized, Schedule, optimize

__all__ = ["Optimized", "Schedule", "optimize"]
